//! The cells of a block: a box in 2 or 3 dimensions with a halo of one cell, and a sweep of Jacobi's method.

use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// One of the two ends of a block along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// The dimension.
    pub dimension: u8,
    /// Whether it is the end of the larger coordinates.
    pub upper: bool,
}

impl Side {
    /// The side of the neighbor that touches this side.
    pub fn opposite(self) -> Side {
        Side { upper: !self.upper, ..self }
    }
}

/// A box of `D` >= 2 dimensions with a halo of one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "[usize; D]: Serialize", deserialize = "[usize; D]: Deserialize<'de>"))]
pub struct Cells<const D: usize> {
    /// Cells along each dimension, without the halo.
    extent: [usize; D],
    /// Values of the cells and the halo, first dimension fastest.
    #[serde(with = "equipoise::numbers")]
    values: Vec<f64>,
    /// The output of the next sweep; as long as `values`, or empty after a migration.
    #[serde(skip)]
    next: Vec<f64>,
}

impl<const D: usize> Cells<D> {
    /// Cells with the values of a function of the position; positions -1 and `extent` are in the halo.
    pub fn new(extent: [i32; D], value: impl Fn([i64; D]) -> f64) -> Self {
        let extent = extent.map(|size| size as usize);
        let count = extent.iter().map(|size| size + 2).product();
        let position = |mut at: usize| {
            extent.map(|size| {
                let x = at % (size + 2);
                at /= size + 2;
                x as i64 - 1
            })
        };
        Cells { extent, values: (0..count).map(|at| value(position(at))).collect(), next: Vec::new() }
    }

    /// The number of cells, without the halo.
    pub fn count(&self) -> usize {
        self.extent.iter().product()
    }

    /// The place in memory of a cell, or of a cell of the halo.
    fn place(&self, position: [i64; D]) -> usize {
        let (mut place, mut stride) = (0, 1);
        for (x, size) in position.into_iter().zip(self.extent) {
            place += (x + 1) as usize * stride;
            stride *= size + 2;
        }
        place
    }

    /// The value at a position; positions -1 and `extent` are in the halo.
    pub fn at(&self, position: [i64; D]) -> f64 {
        self.values[self.place(position)]
    }

    /// Adds to the value at a position.
    pub fn add(&mut self, position: [i64; D], value: f64) {
        let place = self.place(position);
        self.values[place] += value;
    }

    /// The distance in memory between neighbors along each dimension.
    fn strides(&self) -> [usize; D] {
        let mut stride = 1;
        self.extent.map(|size| {
            let this = stride;
            stride *= size + 2;
            this
        })
    }

    /// The first positions of the rows along dimension `along`: in the whole box, or with `across` = (dimension, at) in
    /// one layer of that dimension.
    fn rows(&self, along: usize, across: Option<(usize, usize)>) -> impl Iterator<Item = usize> + use<D> {
        let (extent, strides) = (self.extent, self.strides());
        let varies = move |d: usize| d != along && across.is_none_or(|(other, _)| d != other);
        let first = strides[along] + across.map_or(0, |(d, at)| at * strides[d]);
        let count: usize = (0..D).filter(|&d| varies(d)).map(|d| extent[d]).product();
        (0..count).map(move |mut row| {
            let mut begin = first;
            for d in (0..D).filter(|&d| varies(d)) {
                begin += (row % extent[d] + 1) * strides[d];
                row /= extent[d];
            }
            begin
        })
    }

    /// The positions of the outermost cells on a side (`out` = 0), or of the halo next to them (`out` = 1).
    fn face(&self, side: Side, out: usize) -> impl Iterator<Item = usize> + use<D> {
        let d = usize::from(side.dimension);
        let at = if side.upper { self.extent[d] + out } else { 1 - out };
        let along = usize::from(d == 0);
        let (length, stride) = (self.extent[along], self.strides()[along]);
        self.rows(along, Some((d, at))).flat_map(move |row| (0..length).map(move |i| row + i * stride))
    }

    /// The outermost cells on a side.
    pub fn edge(&self, side: Side) -> Vec<f64> {
        let mut edge = Vec::with_capacity(self.count() / self.extent[usize::from(side.dimension)]);
        self.face(side, 0).for_each(|at| edge.push(self.values[at]));
        edge
    }

    /// Writes the [`edge`](Self::edge) of the neighbor on a side into the halo.
    pub fn set_halo(&mut self, side: Side, edge: &[f64]) {
        for (at, &value) in self.face(side, 1).zip(edge) {
            self.values[at] = value;
        }
    }

    /// One sweep of Jacobi's method: every cell becomes the mean of its 2 `D` neighbors. Returns the
    /// largest change.
    ///
    /// The sweep is computed `times` times with the same result, to increase the load.
    pub fn relax(&mut self, times: u32) -> f64 {
        if self.next.is_empty() {
            // No neighbor sets the halo at a wall, so both buffers need it.
            self.next.clone_from(&self.values);
        }
        let mut change = 0.0;
        for _ in 0..times {
            change = self.sweep();
            black_box(&mut self.next);
        }
        std::mem::swap(&mut self.values, &mut self.next);
        change
    }

    fn sweep(&mut self) -> f64 {
        let (length, strides) = (self.extent[0], self.strides());
        let mut next = std::mem::take(&mut self.next);
        let mut largest = 0.0;
        for row in self.rows(0, None) {
            let old = |from: usize| &self.values[from..from + length];
            let (below, above) =
                (strides.map(|stride| old(row - stride)), strides.map(|stride| old(row + stride)));
            let (old, new) = (old(row), &mut next[row..row + length]);
            for i in 0..length {
                let sum: f64 = (0..D).map(|d| below[d][i] + above[d][i]).sum();
                new[i] = sum / (2 * D) as f64;
                largest = f64::max(largest, (new[i] - old[i]).abs());
            }
        }
        self.next = next;
        largest
    }

    /// The sum of all cells.
    pub fn sum(&self) -> f64 {
        self.rows(0, None).map(|row| self.values[row..row + self.extent[0]].iter().sum::<f64>()).sum()
    }
}
