//! Refinement of a placement over all blocks of a layer: greedy refinement.
//!
//! All kinds of refinement share [`State`]. The other kinds are in [`super::local`] (moves whose gain comes later),
//! [`super::swaps`] and [`super::repair`].

use equipoise_model::random::shuffle;
use rand_core::RngCore;
use rayon::prelude::*;

use crate::poise::board::{Board, Scratch};
use crate::poise::machine::distance::Metric;

/// The number of vertices whose best moves are computed in parallel.
const BATCH: usize = 8192;

/// A placement during refinement.
pub(crate) struct State<'a, M> {
    pub board: &'a Board<'a, M>,
    pub block_of: &'a mut [u32],
    pub loads: Vec<i64>,
    pub scratch: Scratch,
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
        let block_of = &*self.block_of;
        let all = (0..board.movable as u32).into_par_iter().with_min_len(BATCH);
        let mut waiting: Vec<u32> = all.filter(|&v| board.could_gain(v as usize, block_of)).collect();
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
