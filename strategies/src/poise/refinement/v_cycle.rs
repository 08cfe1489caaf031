//! V-cycles: a placement is coarsened within its blocks, and refined on every level during uncoarsening.
//!
//! C. Walshaw, "Multilevel refinement for combinatorial optimisation problems", 2004: on coarse levels whole groups of
//! objects move at once, which refinement of single objects cannot do.

use equipoise_model::random::generator;

use super::Refinement;
use crate::partition::bisection::Level;
use crate::partition::bisection::coarsening::cluster;
use crate::poise::machine::distance::with_metric;
use crate::poise::objective::grade;
use crate::poise::problem::Problem;
use crate::poise::settings::Settings;

/// Coarsening ends at this many vertices per block, or at [`FEWEST`] vertices.
const PER_BLOCK: usize = 8;
const FEWEST: usize = 200;

/// A cluster has at most this fraction (1/4) of the capacity of a block, and at most this many times the average load.
const CAPACITY_SHARE: i64 = 4;
const AVERAGES: i64 = 4;

/// Coarsening stops if a level has more than this fraction of the vertices of the level before.
const MAX_SHRUNK: f64 = 0.95;

/// The random number stream of coarsening.
const STREAM: u64 = 4 << 40;

/// Refines a placement in a layer by up to `cycles` V-cycles, as long as the placement does not get worse.
pub(crate) fn refine(
    problem: &Problem,
    settings: &Settings,
    layer: usize,
    cycles: usize,
    block_of: &mut Vec<u32>,
    seed: u64,
) {
    for number in 0..cycles as u64 {
        let mut refined = block_of.clone();
        cycle(problem, settings, layer, &mut refined, seed.wrapping_add(number << 32));
        if grade(problem, layer, &refined) > grade(problem, layer, block_of) {
            break;
        }
        *block_of = refined;
    }
}

/// One cycle.
fn cycle(problem: &Problem, settings: &Settings, layer: usize, block_of: &mut Vec<u32>, seed: u64) {
    let anchors = problem.anchors.len();
    let capacity = problem.capacities(layer);
    let smallest = (PER_BLOCK * capacity.len()).max(FEWEST);
    let least = capacity.iter().copied().filter(|&capacity| capacity > 0).min().unwrap_or(0);
    let mut rng = generator(seed, STREAM);
    let mut levels: Vec<Level> = Vec::new();
    loop {
        let graph = levels.last().map_or(&problem.graph, |level| &level.graph);
        let vertices = graph.vertices();
        if vertices <= smallest {
            break;
        }
        let average = graph.total_load() / vertices as i64;
        let max_load = graph.heaviest().max((AVERAGES * average).min(least / CAPACITY_SHARE).max(2));
        let parts = block_of.as_slice();
        let (cluster_of, clusters) = cluster(graph, vertices - anchors, Some(parts), max_load, &mut rng);
        if clusters as f64 > MAX_SHRUNK * vertices as f64 {
            break;
        }
        let mut coarse = vec![0; clusters];
        cluster_of.iter().zip(&*block_of).for_each(|(&cluster, &block)| coarse[cluster as usize] = block);
        let graph = graph.contract(&cluster_of, clusters);
        levels.push(Level { cluster_of, graph });
        *block_of = coarse;
    }
    let mut is_first = true;
    loop {
        if !std::mem::take(&mut is_first) {
            let Some(level) = levels.pop() else { break };
            *block_of = level.cluster_of.iter().map(|&cluster| block_of[cluster as usize]).collect();
        }
        let graph = levels.last().map_or(&problem.graph, |level| &level.graph);
        let refinement = Refinement {
            graph,
            movable: graph.vertices() - anchors,
            layer,
            is_last: levels.is_empty() && layer + 1 == problem.machine.layers.len(),
            capacity: &capacity,
            homes: None,
            seed: seed.wrapping_add(levels.len() as u64),
        };
        let distance = &problem.machine.layers[layer].distance;
        with_metric!(distance, metric => refinement.run(problem, settings, metric, block_of));
    }
}
