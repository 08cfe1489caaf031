//! The cost of moves of vertices between the blocks of a layer.
//!
//! The cost of a vertex is the sum over its edges of weight times distance of the blocks at both ends, and the cost of
//! leaving its present block in the database. A vertex may move to any block with a neighbor, to adjacent blocks if
//! there are few vertices, and to its present block.

use super::machine::distance::Metric;
use super::machine::{NONE, Near};
use crate::partition::bisection::csr::{Csr, Half};

/// If more blocks than this have neighbors of a vertex, only the [`HEAVY_BLOCKS`] heaviest are candidates.
const MANY_BLOCKS: usize = 24;
const HEAVY_BLOCKS: usize = 16;

/// If more blocks than this are adjacent to a block, only the first are candidates.
const MANY_NEAR: usize = 64;

/// The present blocks of vertices, and the costs of leaving them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Homes<'a> {
    /// By vertex: its present block; [`NONE`] if the vertex cannot stay there.
    pub home_of: &'a [u32],
    /// By vertex: the cost of being in another block, in the scale of the layer.
    pub migration_costs: &'a [i64],
}

impl Homes<'_> {
    /// The total cost of the vertices that are not in their present block.
    pub fn cost(&self, block_of: &[u32]) -> i64 {
        let away = self.home_of.iter().zip(block_of).zip(self.migration_costs);
        away.filter(|((home, block), _)| home != block).map(|(_, cost)| cost).sum()
    }
}

/// The fixed input of a refinement.
pub(crate) struct Board<'a, M> {
    pub graph: &'a Csr,
    /// Vertices from this number on do not move.
    pub movable: usize,
    pub distance: &'a M,
    pub near: &'a Near,
    /// By block: the allowed load.
    pub capacity: &'a [i64],
    pub homes: Option<Homes<'a>>,
    /// Whether blocks adjacent to a vertex's own are candidates even without a neighbor in them.
    pub includes_adjacent: bool,
}

/// The surroundings of one vertex; reused for all vertices.
pub(crate) struct Scratch {
    /// By block: the round in which it was last seen, and its index in `around`.
    seen: Vec<(u32, u32)>,
    round: u32,
    /// The blocks of the neighbors, and the total weight to each.
    pub around: Vec<(u32, i64)>,
    pub candidates: Vec<u32>,
    /// By block: the number of the last list of candidates that contains it.
    listed: Vec<u64>,
    lists: u64,
}

impl Scratch {
    pub fn new(blocks: usize) -> Scratch {
        Scratch {
            seen: vec![(0, 0); blocks],
            round: 0,
            around: Vec::new(),
            candidates: Vec::new(),
            listed: vec![0; blocks],
            lists: 0,
        }
    }
}

impl<'a, M: Metric> Board<'a, M> {
    /// Collects the blocks around `v` into `scratch`.
    #[inline]
    pub fn gather(&self, v: usize, block_of: &[u32], scratch: &mut Scratch) {
        scratch.round = scratch.round.wrapping_add(1);
        if scratch.round == 0 {
            scratch.seen.fill((0, 0));
            scratch.round = 1;
        }
        scratch.around.clear();
        for half in self.graph.row(v) {
            let block = block_of[half.to as usize];
            let (round, place) = &mut scratch.seen[block as usize];
            if *round == scratch.round {
                scratch.around[*place as usize].1 += i64::from(half.weight);
            } else {
                (*round, *place) = (scratch.round, scratch.around.len() as u32);
                scratch.around.push((block, i64::from(half.weight)));
            }
        }
    }

    /// The cost of `v` in `block`; the last call of [`Self::gather`] must have been for `v`.
    #[inline]
    pub fn cost(&self, v: usize, block: u32, scratch: &Scratch) -> i64 {
        let mut sum = 0;
        for &(other, weight) in &scratch.around {
            sum += weight * self.distance.between(block, other);
        }
        if let Some(homes) = self.homes
            && homes.home_of[v] != block
        {
            sum += homes.migration_costs[v];
        }
        sum
    }

    /// Lists the candidate blocks for `v`, after [`Self::gather`] for `v`; if `wide`, also blocks adjacent to these.
    pub fn list_candidates(&self, v: usize, here: u32, wide: bool, scratch: &mut Scratch) {
        let Scratch { around, candidates, listed, lists, .. } = scratch;
        *lists += 1;
        candidates.clear();
        listed[here as usize] = *lists;
        let mut add = |block: u32, candidates: &mut Vec<u32>| {
            if std::mem::replace(&mut listed[block as usize], *lists) != *lists {
                candidates.push(block);
            }
        };
        if around.len() > MANY_BLOCKS {
            let mut heaviest = around.clone();
            heaviest.select_nth_unstable_by_key(HEAVY_BLOCKS, |&(block, weight)| (-weight, block));
            heaviest.truncate(HEAVY_BLOCKS);
            heaviest.sort_unstable_by_key(|&(block, _)| block);
            heaviest.iter().for_each(|&(block, _)| add(block, candidates));
        } else {
            around.iter().for_each(|&(block, _)| add(block, candidates));
        }
        // If many blocks are adjacent to a hub, any subset of these blocks suffices.
        let near = |block: u32| self.near.of(block).iter().take(MANY_NEAR);
        if self.includes_adjacent {
            near(here).for_each(|&block| add(block, candidates));
            if wide {
                for at in 0..candidates.len().min(HEAVY_BLOCKS) {
                    near(candidates[at]).for_each(|&block| add(block, candidates));
                }
            }
        }
        if let Some(homes) = self.homes
            && homes.home_of[v] != NONE
        {
            add(homes.home_of[v], candidates);
        }
    }

    /// The best block for `v` with room, and the saved cost. Of equals, the block with the lowest relative load, then the
    /// lowest number. The saved cost is negative if staying is better.
    pub fn best_move(
        &self,
        v: usize,
        block_of: &[u32],
        loads: &[i64],
        scratch: &mut Scratch,
    ) -> Option<(i64, u32)> {
        self.gather(v, block_of, scratch);
        let here = block_of[v];
        self.list_candidates(v, here, false, scratch);
        let (load, cost) = (self.graph.loads[v], self.cost(v, here, scratch));
        let mut best: Option<(i64, u32)> = None;
        let mut best_fill = i64::MAX;
        for &block in &scratch.candidates {
            let there = loads[block as usize] + load;
            let capacity = self.capacity[block as usize];
            if there > capacity {
                continue;
            }
            let gain = cost - self.cost(v, block, scratch);
            let is_better = match best {
                Some(best) if gain == best.0 => {
                    let fill = fill(there, capacity);
                    (fill, block) < (best_fill, best.1)
                }
                Some(best) => gain > best.0,
                None => true,
            };
            if is_better {
                (best, best_fill) = (Some((gain, block)), fill(there, capacity));
            }
        }
        best
    }

    /// Whether a move of `v` could reduce the cost immediately. By the triangle inequality, a move brings `v` closer to
    /// any block by at most the length of the move, and takes `v` away from its own block by this length. So a move
    /// reduces the cost only if the edges of `v` to other blocks weigh more than the edges to its own block. Machines
    /// given as matrices may violate the triangle inequality; there, the searches that follow find the moves skipped
    /// here.
    pub fn could_gain(&self, v: usize, block_of: &[u32]) -> bool {
        let here = block_of[v];
        let pull = |half: &Half| match block_of[half.to as usize] == here {
            true => -i64::from(half.weight),
            false => i64::from(half.weight),
        };
        self.graph.row(v).iter().map(pull).sum::<i64>() > 0
            || self.homes.is_some_and(|homes| homes.home_of[v] != here && homes.home_of[v] != NONE)
    }

    /// Whether `v` has a neighbor in another block, or is not in its present block of the database.
    pub fn is_at_border(&self, v: usize, block_of: &[u32]) -> bool {
        let here = block_of[v];
        self.graph.row(v).iter().any(|half| block_of[half.to as usize] != here)
            || self.homes.is_some_and(|homes| homes.home_of[v] != here && homes.home_of[v] != NONE)
    }
}

/// The load of a block in thousandths of its capacity.
fn fill(load: i64, capacity: i64) -> i64 {
    (i128::from(load) * 1000 / i128::from(capacity.max(1))) as i64
}
