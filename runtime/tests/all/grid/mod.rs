//! The grid of the front page's program.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Side {
    West,
    East,
    North,
    South,
}

impl Side {
    const ALL: [Side; 4] = [Side::West, Side::East, Side::North, Side::South];

    pub fn opposite(self) -> Side {
        match self {
            Side::West => Side::East,
            Side::East => Side::West,
            Side::North => Side::South,
            Side::South => Side::North,
        }
    }

    fn of(self, [x, y]: [i32; 2], shape: [i32; 2]) -> Option<[i32; 2]> {
        let to = match self {
            Side::West => [x - 1, y],
            Side::East => [x + 1, y],
            Side::North => [x, y - 1],
            Side::South => [x, y + 1],
        };
        (0..2).all(|d| (0..shape[d]).contains(&to[d])).then_some(to)
    }
}

/// The neighbours of a block, with the side they are on.
pub fn neighbours(index: [i32; 2], shape: [i32; 2]) -> impl Iterator<Item = (Side, [i32; 2])> {
    Side::ALL.into_iter().filter_map(move |side| Some((side, side.of(index, shape)?)))
}

/// A square block of cells with a halo of one cell.
#[derive(Serialize, Deserialize)]
pub struct Grid {
    n: usize,
    #[serde(with = "equipoise::numbers")]
    cells: Vec<f64>,
}

impl Grid {
    pub fn new(n: usize, value: f64) -> Self {
        Grid { n, cells: vec![value; (n + 2) * (n + 2)] }
    }

    fn at(&self, x: usize, y: usize) -> usize {
        y * (self.n + 2) + x
    }

    /// The cell of an edge, or (`out` 1) of the halo next to the edge.
    fn along(&self, side: Side, out: usize, i: usize) -> usize {
        match side {
            Side::West => self.at(1 - out, i),
            Side::East => self.at(self.n + out, i),
            Side::North => self.at(i, 1 - out),
            Side::South => self.at(i, self.n + out),
        }
    }

    pub fn edge(&self, side: Side) -> Vec<f64> {
        (1..=self.n).map(|i| self.cells[self.along(side, 0, i)]).collect()
    }

    pub fn set_halo(&mut self, side: Side, row: &[f64]) {
        for i in 1..=self.n {
            let at = self.along(side, 1, i);
            self.cells[at] = row[i - 1];
        }
    }

    /// One Jacobi sweep; returns the largest change.
    pub fn relax(&mut self) -> f64 {
        let (old, width) = (self.cells.clone(), self.n + 2);
        let mut change = 0.0f64;
        for y in 1..=self.n {
            for x in 1..=self.n {
                let c = self.at(x, y);
                self.cells[c] = 0.25 * (old[c - 1] + old[c + 1] + old[c - width] + old[c + width]);
                change = change.max((self.cells[c] - old[c]).abs());
            }
        }
        change
    }
}
