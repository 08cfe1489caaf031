//! Nonzero patterns of sparse matrices.

use super::Graph;

/// The nonzero pattern of a square matrix, without the diagonal.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The number of rows and of columns.
    pub rows: usize,
    /// (row, column) of each entry.
    pub entries: Vec<(u32, u32)>,
    /// Whether every entry also represents its transposed entry.
    pub is_symmetric: bool,
}

impl Matrix {
    /// The graph of the matrix: a vertex per row, and an edge per pair of rows connected by an entry.
    pub fn graph(&self) -> Graph {
        Graph::of_places(self.rows, &self.entries)
    }
}
