//! Distances between the blocks of a layer, as fast as refinement asks for them.
//!
//! Refinement asks for some hundred million distances, so none of them may cost a virtual call or a division where
//! that can be helped: a table where it fits the cache, coordinates on grids, digits of the way from the root on
//! trees, and only then the machine itself. All are exact integers in a scale of their layer.

use crate::Topology;

/// The distance between blocks of a layer, in the scale of that layer.
pub(crate) trait Metric: Sync {
    /// How far apart two blocks are; 0 for a block and itself.
    fn between(&self, a: u32, b: u32) -> i64;
}

/// The most blocks whose distances are kept as a table: 2 bytes per pair fill a second-level cache.
pub(crate) const MAX_TABLE_BLOCKS: usize = 1024;

/// All distances.
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
    /// The length of each ring, in the unit of the coordinates; larger than any distance where ends do not meet.
    rings: [i32; Points::MAX_DIMENSIONS],
}

impl Points {
    pub const MAX_DIMENSIONS: usize = 4;

    /// Points of these coordinates (doubled, so that the centre of any box is whole) on a grid of these sizes.
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

/// Leaves of a tree, told by the way from the root; how far apart two are depends on where they part.
#[derive(Debug)]
pub(crate) struct Codes {
    /// By block: the numbers of the children on the way down, the first in the highest bits.
    codes: Vec<u64>,
    /// By the number of the highest bit in which codes differ, from 1; 0 for those that are equal.
    distances: Vec<i64>,
}

impl Codes {
    /// Blocks of these codes, with a distance for each of 65 bits.
    pub fn new(codes: Vec<u64>, distances: Vec<i64>) -> Codes {
        assert_eq!(distances.len(), 65, "a distance for every bit, and one for none");
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

/// What the machine itself says of a PE in the middle of each block.
pub(crate) struct Calls<'a> {
    topology: &'a dyn Topology,
    /// By block.
    pes: Vec<u32>,
}

impl<'a> Calls<'a> {
    /// Blocks that are where these PEs are.
    pub fn new(topology: &'a dyn Topology, pes: Vec<u32>) -> Calls<'a> {
        Calls { topology, pes }
    }
}

impl Metric for Calls<'_> {
    fn between(&self, a: u32, b: u32) -> i64 {
        i64::from(self.topology.distance(self.pes[a as usize] as usize, self.pes[b as usize] as usize))
    }
}

/// Any of them.
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

/// Evaluates an expression with the metric behind a [`Distance`], so that it is compiled for each of them.
macro_rules! with_metric {
    ($distance:expr, $metric:ident => $body:expr) => {
        match $distance {
            $crate::poise::distance::Distance::Table($metric) => $body,
            $crate::poise::distance::Distance::Points($metric) => $body,
            $crate::poise::distance::Distance::Codes($metric) => $body,
            $crate::poise::distance::Distance::Calls($metric) => $body,
        }
    };
}
pub(crate) use with_metric;
