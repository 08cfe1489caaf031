//! Refinement of a placement over all blocks of a layer: the cost of moves, and greedy refinement.
//!
//! The cost of a vertex is the sum over its edges of weight times distance of the blocks at both ends. A vertex may
//! move to any block with a neighbor, to adjacent blocks if there are few vertices, and to its present block in the
//! database. All kinds of refinement share [`State`]. The other kinds are in [`super::local`] (moves whose gain comes
//! later), [`super::swaps`] and [`super::repair`].

use equipoise_model::random::shuffle;
use rand_core::RngCore;
use rayon::prelude::*;

use crate::partition::bisection::csr::{Csr, Half};
use crate::poise::machine::distance::Metric;
use crate::poise::machine::{NONE, Near};
use crate::poise::objective::Homes;

/// If more blocks than this have neighbors of a vertex, only the [`HEAVY_BLOCKS`] heaviest are candidates.
const MANY_BLOCKS: usize = 24;
const HEAVY_BLOCKS: usize = 16;

/// If more blocks than this are adjacent to a block, only the first are candidates.
const MANY_NEAR: usize = 64;

/// The number of vertices whose best moves are computed in parallel.
const BATCH: usize = 8192;

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

/// A placement during refinement.
pub(crate) struct State<'a, M> {
    pub board: &'a Board<'a, M>,
    pub block_of: &'a mut [u32],
    pub loads: Vec<i64>,
    pub scratch: Scratch,
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
    fn could_gain(&self, v: usize, block_of: &[u32]) -> bool {
        let here = block_of[v];
        let pull = |half: &Half| match block_of[half.to as usize] == here {
            true => -i64::from(half.weight),
            false => i64::from(half.weight),
        };
        self.graph.row(v).iter().map(pull).sum::<i64>() > 0
            || self.homes.is_some_and(|homes| homes.home_of[v] != here && homes.home_of[v] != NONE)
    }

    /// Whether `v` has a neighbor in another block, or is not in its present block of the database.
    fn is_at_border(&self, v: usize, block_of: &[u32]) -> bool {
        let here = block_of[v];
        self.graph.row(v).iter().any(|half| block_of[half.to as usize] != here)
            || self.homes.is_some_and(|homes| homes.home_of[v] != here && homes.home_of[v] != NONE)
    }
}

/// The load of a block in thousandths of its capacity.
fn fill(load: i64, capacity: i64) -> i64 {
    (i128::from(load) * 1000 / i128::from(capacity.max(1))) as i64
}

impl<'a, M: Metric> State<'a, M> {
    pub fn new(board: &'a Board<'a, M>, block_of: &'a mut [u32]) -> State<'a, M> {
        let mut loads = vec![0; board.capacity.len()];
        for (&block, load) in block_of.iter().zip(&board.graph.loads) {
            loads[block as usize] += load;
        }
        State { board, block_of, loads, scratch: Scratch::new(board.capacity.len()) }
    }

    /// See [`Board::best_move`].
    #[inline]
    pub fn best_move(&mut self, v: usize) -> Option<(i64, u32)> {
        self.board.best_move(v, self.block_of, &self.loads, &mut self.scratch)
    }

    #[inline]
    pub fn relocate(&mut self, v: usize, block: u32) {
        let load = self.board.graph.loads[v];
        self.loads[self.block_of[v] as usize] -= load;
        self.loads[block as usize] += load;
        self.block_of[v] = block;
    }

    pub fn is_at_border(&self, v: usize) -> bool {
        self.board.is_at_border(v, self.block_of)
    }

    /// The movable vertices at a border, in random order.
    pub fn border(&self, rng: &mut impl RngCore) -> Vec<u32> {
        let mut border: Vec<u32> =
            (0..self.board.movable as u32).filter(|&v| self.is_at_border(v as usize)).collect();
        shuffle(rng, &mut border);
        border
    }

    /// Applies moves that reduce the cost immediately, until there are none, or for `passes` passes. Returns the saved
    /// cost.
    ///
    /// The best moves of a batch of vertices are computed in parallel, for the placement at the start of the batch. Then the
    /// moves are applied one by one, and recomputed if the surroundings have changed.
    pub fn greedy(&mut self, passes: usize, rng: &mut impl RngCore) -> i64 {
        let board = self.board;
        let mut is_active = vec![false; board.graph.vertices()];
        let mut waiting: Vec<u32> =
            (0..board.movable as u32).filter(|&v| board.could_gain(v as usize, self.block_of)).collect();
        shuffle(rng, &mut waiting);
        let mut saved = 0;
        // By vertex: the last batch that changed its surroundings.
        let mut changed = vec![0u32; board.graph.vertices()];
        let mut batch_number = 0u32;
        for _ in 0..passes {
            let mut next = Vec::new();
            for batch in waiting.chunks(BATCH) {
                batch_number += 1;
                let proposals = self.best_moves(batch);
                for (&v, proposal) in batch.iter().zip(proposals) {
                    let v = v as usize;
                    is_active[v] = false;
                    let is_new = changed[v] == batch_number;
                    let proposal = if is_new { self.best_move(v) } else { proposal };
                    let Some((mut gain, mut block)) = proposal.filter(|&(gain, _)| gain > 0) else {
                        continue;
                    };
                    let there = self.loads[block as usize] + board.graph.loads[v];
                    if !is_new && there > board.capacity[block as usize] {
                        match self.best_move(v).filter(|&(gain, _)| gain > 0) {
                            Some(other) => (gain, block) = other,
                            None => continue,
                        }
                    }
                    self.relocate(v, block);
                    saved += gain;
                    for u in board.graph.row(v).iter().map(|half| half.to).chain([v as u32]) {
                        changed[u as usize] = batch_number;
                        if (u as usize) < board.movable
                            && !std::mem::replace(&mut is_active[u as usize], true)
                        {
                            next.push(u);
                        }
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            shuffle(rng, &mut next);
            waiting = next;
        }
        saved
    }

    /// The best moves of some vertices in the current placement; `None` for vertices that no move can improve.
    fn best_moves(&mut self, vertices: &[u32]) -> Vec<Option<(i64, u32)>> {
        let (board, block_of, loads) = (self.board, &*self.block_of, &self.loads);
        let proposal = |scratch: &mut Scratch, &v: &u32| {
            let could_gain = board.could_gain(v as usize, block_of);
            could_gain.then(|| board.best_move(v as usize, block_of, loads, scratch)).flatten()
        };
        if rayon::current_num_threads() == 1 || vertices.len() < BATCH / 8 {
            return vertices.iter().map(|v| proposal(&mut self.scratch, v)).collect();
        }
        let blocks = loads.len();
        let part = vertices.len().div_ceil(rayon::current_num_threads());
        vertices
            .par_chunks(part)
            .map_init(
                || Scratch::new(blocks),
                |scratch, part| part.iter().map(|v| proposal(scratch, v)).collect::<Vec<_>>(),
            )
            .flatten_iter()
            .collect()
    }
}
