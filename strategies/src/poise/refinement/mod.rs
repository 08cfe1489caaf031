//! Refinement of a placement over all blocks of a layer: swaps of whole blocks, then repair of overload, then moves and
//! swaps of vertices that reduce the cost.

use equipoise_model::random::generator;

use super::board::{Board, Homes};
use super::machine::distance::{Metric, with_metric};
use super::machine::{NONE, Near};
use super::problem::Problem;
use super::settings::Settings;
use crate::partition::bisection::csr::Csr;

mod blocks;
pub(crate) mod links;
pub(crate) mod local;
pub(crate) mod relax_capacity;
pub(crate) mod repair;
pub(crate) mod state;
pub(crate) mod swaps;
pub(crate) mod v_cycle;

use repair::repair;
use state::State;

/// With at most this many objects per PE, adjacent blocks are candidates even without a neighbor of the object in them.
const FEW_OBJECTS_PER_PE: usize = 8;

/// On graphs of more than [`MANY_VERTICES`] with fewer objects per block than this, localized search is skipped,
/// because it is too slow.
const FEW_OBJECTS_PER_BLOCK: usize = 64;
const MANY_VERTICES: usize = 200_000;

/// Rounds of localized search in the last layer, and in the layers before the last.
const LAST_ROUNDS: usize = 5;
const ROUNDS: usize = 2;

/// Passes of greedy refinement in the last layer, and in the layers before the last.
const LAST_PASSES: usize = 10;
const PASSES: usize = 4;

/// Rounds in the last layer, each with swaps and then localized search; and passes of swaps per round.
const SWAP_ROUNDS: usize = 3;
const SWAP_PASSES: usize = 5;

/// The random number stream of refinement.
const STREAM: u64 = 2 << 40;

/// Refines a placement in a layer.
pub(crate) fn refine_layer(
    problem: &Problem,
    settings: &Settings,
    layer: usize,
    block_of: &mut [u32],
    capacity: &[i64],
    homes: Option<Homes>,
    seed: u64,
) {
    let refinement = Refinement {
        graph: &problem.graph,
        movable: problem.movable,
        layer,
        is_last: layer + 1 == problem.machine.layers.len(),
        capacity,
        homes,
        seed,
    };
    with_metric!(&problem.machine.layers[layer].distance, metric => refinement.run(problem, settings, metric, block_of));
}

/// A refinement of a placement.
pub(crate) struct Refinement<'a> {
    /// The graph of the problem, or a coarser one.
    pub graph: &'a Csr,
    pub movable: usize,
    pub layer: usize,
    /// Whether this is the final refinement, in which vertices are objects and blocks are PEs.
    pub is_last: bool,
    pub capacity: &'a [i64],
    pub homes: Option<Homes<'a>>,
    pub seed: u64,
}

impl Refinement<'_> {
    pub fn run<M: Metric>(&self, problem: &Problem, settings: &Settings, metric: &M, block_of: &mut [u32]) {
        let layer = &problem.machine.layers[self.layer];
        let blocks = layer.blocks();
        self.swap_blocks(metric, &layer.near, block_of);
        let board = Board {
            graph: self.graph,
            movable: self.movable,
            distance: metric,
            near: &layer.near,
            capacity: self.capacity,
            homes: self.homes,
            includes_adjacent: self.movable <= FEW_OBJECTS_PER_PE * blocks,
        };
        let mut rng = generator(self.seed, STREAM | self.layer as u64);
        let mut state = State::new(&board, block_of);
        repair(&mut state, settings.repacks);
        let is_huge = self.movable > MANY_VERTICES && self.movable < FEW_OBJECTS_PER_BLOCK * blocks;
        let is_local = settings.patience > 0 && !is_huge;
        if is_local {
            let rounds = if self.is_last { LAST_ROUNDS } else { ROUNDS };
            local::refine(&mut state, rounds, settings.patience, &mut rng);
        } else {
            state.greedy(if self.is_last { LAST_PASSES } else { PASSES }, &mut rng);
        }
        if !self.is_last {
            return;
        }
        for _ in 0..if settings.swaps { SWAP_ROUNDS } else { 0 } {
            let saved = swaps::refine(&mut state, SWAP_PASSES, &mut rng);
            if saved == 0 || !is_local || local::refine(&mut state, 1, settings.patience, &mut rng) == 0 {
                break;
            }
        }
    }

    /// By block: the present blocks of its vertices, and the migration costs saved by placing them there.
    fn pulls(&self, block_of: &[u32]) -> Vec<Vec<(u32, i64)>> {
        let Some(homes) = self.homes else { return Vec::new() };
        let mut pulls = vec![Vec::new(); self.capacity.len()];
        for v in (0..self.movable).filter(|&v| homes.home_of[v] != NONE) {
            pulls[block_of[v] as usize].push((homes.home_of[v], homes.migration_costs[v]));
        }
        let merge = |pulls: &mut Vec<(u32, i64)>| {
            pulls.sort_unstable();
            pulls.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0 };
                is_same
            });
        };
        pulls.iter_mut().for_each(merge);
        pulls
    }

    /// Swaps whole blocks.
    fn swap_blocks<M: Metric>(&self, metric: &M, near: &Near, block_of: &mut [u32]) {
        let blocks = self.capacity.len();
        let anchors = block_of[self.movable..].to_vec();
        let cluster_of: Vec<u32> = block_of[..self.movable]
            .iter()
            .copied()
            .chain((0..anchors.len()).map(|at| (blocks + at) as u32))
            .collect();
        let quotient = self.graph.contract(&cluster_of, blocks + anchors.len());
        let fits = |block: usize, place: usize| quotient.loads[block] <= self.capacity[place];
        let places = blocks::places(&quotient, &anchors, &self.pulls(block_of), metric, near, fits);
        block_of[..self.movable].iter_mut().for_each(|block| *block = places[*block as usize]);
    }
}
