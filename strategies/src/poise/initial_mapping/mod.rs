//! Mapping from scratch: the task graph is cut like the machine, and refined after every cut.
//!
//! Dual recursive bipartitioning (Pellegrini 1994) of the whole graph. When the blocks of a layer are split, each block
//! is bisected with terminal propagation: vertices of other blocks attract its vertices. If the other block is already
//! split, the attraction is towards the half with the vertex, else towards the middle of both halves. A block waits for
//! the blocks with lower numbers that it exchanges traffic with; blocks that wait for no other block are split in
//! parallel. So the result is that of sequential splitting, for any number of threads. After every split the placement
//! is refined over all blocks of the new layer with its distances, because the first cuts affect quality most.

use rayon::prelude::*;

use super::machine::NONE;
use super::objective::{Grade, grade};
use super::problem::Problem;
use super::refinement::refine_layer;
use super::settings::Settings;

pub(crate) mod incremental;
pub(crate) mod line;
mod split;

use split::split;

/// On graphs with at most this many vertices, several placements are followed through the first layers on any machine.
const FEW_VERTICES: usize = 1 << 13;

/// Graphs with more vertices are large.
const LARGE: usize = 1 << 16;

/// Offset of the seed for cuts that are made a second time.
const RECUT_SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// By vertex: its block in the last layer.
pub(crate) fn map(problem: &Problem, settings: &Settings, seed: u64) -> Vec<u32> {
    let layers = problem.machine.layers.len();
    let mut kept = vec![start(problem)];
    for layer in 1..layers {
        let pays = problem.machine.is_tree || problem.movable <= FEW_VERTICES;
        let has_beam = settings.beam_layers > 0 && (settings.has_wide_beam || pays);
        let tries = if layer == 1 && has_beam { settings.beam_tries } else { 1 };
        if kept.len() == 1 && tries == 1 {
            kept = vec![descend(problem, settings, layer, &kept[0], seed)];
            continue;
        }
        let jobs: Vec<(usize, u64)> =
            (0..kept.len()).flat_map(|from| (0..tries as u64).map(move |attempt| (from, attempt))).collect();
        let attempts = jobs.into_par_iter().map(|(from, attempt)| {
            // Every attempt has its own seed. The first attempt has the same seed as a single attempt would have.
            let seed = seed.wrapping_add((attempt + from as u64 * 31).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let block_of = descend(problem, settings, layer, &kept[from], seed);
            (grade(problem, layer, &block_of), block_of)
        });
        let mut attempts: Vec<(Grade, Vec<u32>)> = attempts.collect();
        // The sort is stable: of equal attempts the first is kept.
        attempts.sort_by_key(|attempt| attempt.0);
        attempts.dedup_by(|a, b| a.0 == b.0);
        if layer == settings.beam_layers.min(layers - 1) {
            attempts.truncate(1);
        }
        kept = attempts.into_iter().map(|attempt| attempt.1).collect();
    }
    kept.swap_remove(0)
}

/// The placement in the first layer: all vertices in its only block.
fn start(problem: &Problem) -> Vec<u32> {
    vec![0; problem.graph.vertices()]
}

/// The placement in a layer, from the placement in the layer before.
fn descend(problem: &Problem, settings: &Settings, layer: usize, above: &[u32], seed: u64) -> Vec<u32> {
    let capacity = problem.capacities(layer);
    let mut block_of = split(problem, settings, layer, above, &capacity, None, seed);
    refine_layer(problem, settings, layer, &mut block_of, &capacity, None, seed);
    let is_large = problem.movable > LARGE;
    if layer <= if is_large { settings.recut_layers_of_large } else { settings.recut_layers } {
        recut_blocks(problem, settings, layer, &mut block_of, seed);
    }
    block_of
}

/// Cuts the blocks of the layer before `layer` a second time, when the placement of all other blocks is known. Keeps the
/// result if it is better.
fn recut_blocks(problem: &Problem, settings: &Settings, layer: usize, block_of: &mut Vec<u32>, seed: u64) {
    let parents = problem.machine.layers[layer - 1].children.iter().zip(0u32..);
    let mut parent_of = vec![0; problem.machine.layers[layer].blocks()];
    for (children, parent) in parents {
        children.iter().filter(|&&child| child != NONE).for_each(|&child| parent_of[child as usize] = parent);
    }
    let above: Vec<u32> = block_of.iter().map(|&block| parent_of[block as usize]).collect();
    let capacity = problem.capacities(layer);
    let seed = seed.wrapping_add(RECUT_SEED);
    let mut recut = split(problem, settings, layer, &above, &capacity, Some(block_of), seed);
    if recut == *block_of {
        return;
    }
    refine_layer(problem, settings, layer, &mut recut, &capacity, None, seed);
    if grade(problem, layer, &recut) < grade(problem, layer, block_of) {
        *block_of = recut;
    }
}
