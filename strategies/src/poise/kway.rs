//! Refinement of a placement over all blocks of a layer: what a move costs, and moves that pay.
//!
//! A vertex costs the weight of each of its edges times the distance of the blocks at its ends. It may move to any
//! block it has a neighbor in, to those next to its own where vertices are few, and home. [`State`] is what all
//! kinds of refinement share; the greedy one is here, the others have files of their own: [`super::local`] (moves
//! that pay later), [`super::swaps`], [`super::repair`].

use rand_core::RngCore;
use rayon::prelude::*;

use super::csr::{Csr, Half};
use super::distance::Metric;
use super::machine::Near;
use crate::random::shuffle;

/// Of more neighboring blocks than these only the [`HEAVY_BLOCKS`] heaviest are candidates.
const MANY_BLOCKS: usize = 24;
const HEAVY_BLOCKS: usize = 16;

/// Vertices that look for a better block at the same time.
const BATCH: usize = 8192;

/// No block.
pub(crate) const NONE: u32 = u32::MAX;

/// Where vertices live now, and what it costs to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Homes<'a> {
    /// By vertex: its block; [`NONE`] if it has to leave anyway.
    pub home_of: &'a [u32],
    /// By vertex: what it costs to live elsewhere, in the scale of the layer.
    pub leave_costs: &'a [i64],
}

impl Homes<'_> {
    /// What all cost together that do not live at home.
    pub fn cost(&self, block_of: &[u32]) -> i64 {
        let away = self.home_of.iter().zip(block_of).zip(self.leave_costs);
        away.filter(|((home, block), _)| home != block).map(|(_, cost)| cost).sum()
    }
}

/// What is refined.
pub(crate) struct Board<'a, M> {
    pub graph: &'a Csr,
    /// Vertices from here on stay where they are.
    pub movable: usize,
    pub distance: &'a M,
    pub near: &'a Near,
    /// By block: the most load.
    pub capacity: &'a [i64],
    pub homes: Option<Homes<'a>>,
    /// Whether blocks next to one's own are candidates although no neighbor is there.
    pub looks_near: bool,
}

/// A placement that is refined.
pub(crate) struct State<'a, M> {
    pub board: &'a Board<'a, M>,
    pub block_of: &'a mut [u32],
    pub loads: Vec<i64>,
    pub scratch: Scratch,
}

/// What surrounds the vertex that is looked at.
pub(crate) struct Scratch {
    /// By block: the vertex number at which it was last seen, and its place in `around`.
    seen: Vec<(u32, u32)>,
    round: u32,
    /// The blocks of the neighbors, and the weight to each.
    pub around: Vec<(u32, i64)>,
    pub candidates: Vec<u32>,
}

impl Scratch {
    pub fn new(blocks: usize) -> Scratch {
        Scratch { seen: vec![(0, 0); blocks], round: 0, around: Vec::new(), candidates: Vec::new() }
    }
}

impl<'a, M: Metric> Board<'a, M> {
    /// Collects what surrounds `v`.
    #[inline]
    pub fn look(&self, v: usize, block_of: &[u32], scratch: &mut Scratch) {
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

    /// What `v` costs in `block`, for the vertex looked at last.
    #[inline]
    pub fn cost(&self, v: usize, block: u32, scratch: &Scratch) -> i64 {
        let mut sum = 0;
        for &(other, weight) in &scratch.around {
            sum += weight * self.distance.between(block, other);
        }
        if let Some(homes) = self.homes
            && homes.home_of[v] != block
        {
            sum += homes.leave_costs[v];
        }
        sum
    }

    /// Lists where `v`, looked at last, might go from `here`; with `wide`, also what is next to those.
    pub fn list_candidates(&self, v: usize, here: u32, wide: bool, scratch: &mut Scratch) {
        let Scratch { around, candidates, .. } = scratch;
        candidates.clear();
        if around.len() > MANY_BLOCKS {
            let mut heaviest = around.clone();
            heaviest.select_nth_unstable_by_key(HEAVY_BLOCKS, |&(block, weight)| (-weight, block));
            heaviest.truncate(HEAVY_BLOCKS);
            candidates.extend(heaviest.into_iter().map(|(block, _)| block).filter(|&block| block != here));
            candidates.sort_unstable();
        } else {
            candidates.extend(around.iter().map(|&(block, _)| block).filter(|&block| block != here));
        }
        let add = |block: u32, candidates: &mut Vec<u32>| {
            if block != here && !candidates.contains(&block) {
                candidates.push(block);
            }
        };
        if self.looks_near {
            self.near.of(here).iter().for_each(|&block| add(block, candidates));
            if wide {
                for at in 0..candidates.len().min(HEAVY_BLOCKS) {
                    self.near.of(candidates[at]).iter().for_each(|&block| add(block, candidates));
                }
            }
        }
        if let Some(homes) = self.homes
            && homes.home_of[v] != NONE
        {
            add(homes.home_of[v], candidates);
        }
    }

    /// The best block for `v` that has room, and what it saves to move there; of equals the least loaded, in
    /// proportion, then the lowest. Worse than staying, if nothing is better.
    pub fn best_move(
        &self,
        v: usize,
        block_of: &[u32],
        loads: &[i64],
        scratch: &mut Scratch,
    ) -> Option<(i64, u32)> {
        self.look(v, block_of, scratch);
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

    /// Whether a move of `v` could pay at once. To go from one block to another brings nobody nearer than those two are
    /// apart (the triangle inequality), and takes `v` as far from all that stay: so it does not pay as long as `v`
    /// exchanges no less with its own block than with all others.
    fn could_gain(&self, v: usize, block_of: &[u32]) -> bool {
        let here = block_of[v];
        let drawn = |half: &Half| match block_of[half.to as usize] == here {
            true => -i64::from(half.weight),
            false => i64::from(half.weight),
        };
        self.graph.row(v).iter().map(drawn).sum::<i64>() > 0
            || self.homes.is_some_and(|homes| homes.home_of[v] != here && homes.home_of[v] != NONE)
    }

    /// Whether `v` has a neighbor in another block, or is not at home.
    fn is_at_border(&self, v: usize, block_of: &[u32]) -> bool {
        let here = block_of[v];
        self.graph.row(v).iter().any(|half| block_of[half.to as usize] != here)
            || self.homes.is_some_and(|homes| homes.home_of[v] != here && homes.home_of[v] != NONE)
    }
}

/// How full a block is, in thousandths.
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

    /// The movable vertices that could gain by moving, in random order.
    pub fn border(&self, dice: &mut impl RngCore) -> Vec<u32> {
        let mut border: Vec<u32> =
            (0..self.board.movable as u32).filter(|&v| self.is_at_border(v as usize)).collect();
        shuffle(dice, &mut border);
        border
    }

    /// Moves that pay at once, until there are none, or for so many passes. Gives what they save.
    ///
    /// Vertices look for a better block in batches, each against the placement at its beginning, so that several
    /// threads can look; then they move one by one, if what they found is still so.
    pub fn greedy(&mut self, passes: usize, dice: &mut impl RngCore) -> i64 {
        let board = self.board;
        let mut is_active = vec![false; board.graph.vertices()];
        let mut waiting: Vec<u32> =
            (0..board.movable as u32).filter(|&v| board.could_gain(v as usize, self.block_of)).collect();
        shuffle(dice, &mut waiting);
        let mut saved = 0;
        // By vertex: the batch in which something around it last changed.
        let mut changed = vec![0u32; board.graph.vertices()];
        let mut batch_number = 0u32;
        for _ in 0..passes {
            let mut next = Vec::new();
            for batch in waiting.chunks(BATCH) {
                batch_number += 1;
                let wishes = self.wishes(batch);
                for (&v, wish) in batch.iter().zip(wishes) {
                    let v = v as usize;
                    is_active[v] = false;
                    let is_new = changed[v] == batch_number;
                    let wish = if is_new { self.best_move(v) } else { wish };
                    let Some((mut gain, mut block)) = wish.filter(|&(gain, _)| gain > 0) else { continue };
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
            shuffle(dice, &mut next);
            waiting = next;
        }
        saved
    }

    /// The best moves of some vertices as all stand now; none for who cannot gain by any.
    fn wishes(&mut self, vertices: &[u32]) -> Vec<Option<(i64, u32)>> {
        let (board, block_of, loads) = (self.board, &*self.block_of, &self.loads);
        let wish = |scratch: &mut Scratch, &v: &u32| {
            let could_gain = board.could_gain(v as usize, block_of);
            could_gain.then(|| board.best_move(v as usize, block_of, loads, scratch)).flatten()
        };
        if rayon::current_num_threads() == 1 || vertices.len() < BATCH / 8 {
            return vertices.iter().map(|v| wish(&mut self.scratch, v)).collect();
        }
        let blocks = loads.len();
        let part = vertices.len().div_ceil(rayon::current_num_threads());
        vertices
            .par_chunks(part)
            .map_init(
                || Scratch::new(blocks),
                |scratch, part| part.iter().map(|v| wish(scratch, v)).collect::<Vec<_>>(),
            )
            .flatten_iter()
            .collect()
    }
}
