//! Distances between the blocks of a layer, optimised for refinement.
//!
//! Refinement reads some hundred million distances, so most reads must not need a virtual call or a division. Distances
//! are in a table if it fits the cache. Larger grids use coordinates, larger trees use codes of the path from the root,
//! and other machines are called. All distances are exact integers in a scale of their layer.

use equipoise_model::Topology;

/// The distance between blocks of a layer, in the scale of that layer.
pub(crate) trait Metric: Sync {
    /// The distance of two blocks; 0 for equal blocks.
    fn between(&self, a: u32, b: u32) -> i64;
}

/// The maximum number of blocks whose distances are kept in a table. With 2 bytes per pair, the table fills a
/// second-level cache.
pub(crate) const MAX_TABLE_BLOCKS: usize = 1024;

/// A table of all distances.
#[derive(Debug)]
pub(crate) struct Table {
    blocks: usize,
    distances: Vec<u16>,
}

impl Table {
    /// The table of `blocks` blocks, row by row; `None` if a distance does not fit 16 bits.
    pub fn new(blocks: usize, mut fill: impl FnMut(usize, &mut [i64])) -> Option<Table> {
        let mut row = vec![0; blocks];
        let mut distances = Vec::with_capacity(blocks * blocks);
        for a in 0..blocks {
            fill(a, &mut row);
            for &distance in &row {
                distances.push(u16::try_from(distance).ok()?);
            }
        }
        Some(Table { blocks, distances })
    }
}

impl Metric for Table {
    #[inline]
    fn between(&self, a: u32, b: u32) -> i64 {
        i64::from(self.distances[a as usize * self.blocks + b as usize])
    }
}

/// Points on a grid of at most [`Points::MAX_DIMENSIONS`] dimensions.
#[derive(Debug)]
pub(crate) struct Points {
    /// By block.
    at: Vec<[i32; Points::MAX_DIMENSIONS]>,
    /// The length of each ring, in the unit of the coordinates; larger than any distance for dimensions without a ring.
    rings: [i32; Points::MAX_DIMENSIONS],
}

impl Points {
    pub const MAX_DIMENSIONS: usize = 4;

    /// Points with these coordinates on a grid with these sizes. Coordinates are doubled, so that centres are integers.
    pub fn new(at: Vec<[i32; Points::MAX_DIMENSIONS]>, sizes: &[(usize, bool)]) -> Points {
        let mut rings = [i32::MAX; Points::MAX_DIMENSIONS];
        for (ring, &(size, wraps)) in rings.iter_mut().zip(sizes) {
            if wraps {
                *ring = 2 * size as i32;
            }
        }
        Points { at, rings }
    }
}

impl Metric for Points {
    #[inline]
    fn between(&self, a: u32, b: u32) -> i64 {
        let (a, b) = (&self.at[a as usize], &self.at[b as usize]);
        let mut sum = 0;
        for d in 0..Points::MAX_DIMENSIONS {
            let direct = (a[d] - b[d]).abs();
            sum += direct.min(self.rings[d] - direct);
        }
        i64::from(sum)
    }
}

/// Leaves of a tree, identified by the path from the root; the distance depends on the level at which paths differ.
#[derive(Debug)]
pub(crate) struct Codes {
    /// By block: the child numbers on the path from the root, the first in the highest bits.
    codes: Vec<u64>,
    /// By number of the highest bit in which codes differ, counted from 1; 0 for equal codes.
    distances: Vec<i64>,
}

impl Codes {
    /// Blocks with these codes; `distances` has one entry per bit, and one for equal codes.
    pub fn new(codes: Vec<u64>, distances: Vec<i64>) -> Codes {
        assert_eq!(distances.len(), 65, "one distance per bit, and one for equal codes");
        Codes { codes, distances }
    }
}

impl Metric for Codes {
    #[inline]
    fn between(&self, a: u32, b: u32) -> i64 {
        let differ = self.codes[a as usize] ^ self.codes[b as usize];
        self.distances[(u64::BITS - differ.leading_zeros()) as usize]
    }
}

/// Distances by calls of the machine, between a PE in the middle of each block.
pub(crate) struct Calls<'a> {
    topology: &'a dyn Topology,
    /// By block.
    pes: Vec<u32>,
}

impl<'a> Calls<'a> {
    /// Blocks represented by these PEs.
    pub fn new(topology: &'a dyn Topology, pes: Vec<u32>) -> Calls<'a> {
        Calls { topology, pes }
    }
}

impl Metric for Calls<'_> {
    fn between(&self, a: u32, b: u32) -> i64 {
        i64::from(self.topology.distance(self.pes[a as usize] as usize, self.pes[b as usize] as usize))
    }
}

/// Any of these metrics.
pub(crate) enum Distance<'a> {
    Table(Table),
    Points(Points),
    Codes(Codes),
    Calls(Calls<'a>),
}

impl Metric for Distance<'_> {
    #[inline]
    fn between(&self, a: u32, b: u32) -> i64 {
        match self {
            Distance::Table(metric) => metric.between(a, b),
            Distance::Points(metric) => metric.between(a, b),
            Distance::Codes(metric) => metric.between(a, b),
            Distance::Calls(metric) => metric.between(a, b),
        }
    }
}

/// Evaluates an expression with the metric in a [`Distance`], so that the expression is compiled for each kind of
/// metric.
macro_rules! with_metric {
    ($distance:expr, $metric:ident => $body:expr) => {
        match $distance {
            $crate::poise::machine::distance::Distance::Table($metric) => $body,
            $crate::poise::machine::distance::Distance::Points($metric) => $body,
            $crate::poise::machine::distance::Distance::Codes($metric) => $body,
            $crate::poise::machine::distance::Distance::Calls($metric) => $body,
        }
    };
}
pub(crate) use with_metric;
