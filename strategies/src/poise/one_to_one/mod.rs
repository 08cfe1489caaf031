//! At most one object per PE: a quadratic assignment problem, solved by local search from good starts.
//!
//! Bisection has few cuts to choose from here, so its result is only one start. Another start is the placement by
//! [TopoLB](crate::placement::topolb), which embeds grids in grids either almost perfectly or badly. Few PEs are
//! searched by [`tabu`], many PEs by [`anneal`] at three temperatures; the best result is kept.

use rayon::prelude::*;

use equipoise_model::random::generator;
use equipoise_model::{Database, Topology};

use super::bound::cost_bound;
use super::initial_mapping::map;
use super::machine::distance::{Metric, with_metric};
use super::objective::cost;
use super::problem::Problem;
use super::refinement::refine_layer;
use super::settings::Settings;
use crate::partition::groups::{By, Grouping, Groups};
use crate::placement::topolb::{Order, place};
use crate::placement::{answer, hosts};
use crate::strategy::check;

mod anneal;
pub(crate) mod tabu;

use anneal::Annealing;

/// The maximum number of PEs for tabu search.
const MAX_TABU_PES: usize = 128;

/// The maximum number of iterations of tabu search per start; more do not help on 20 to 42 PEs.
const MAX_TABU_ITERATIONS: usize = 25_000;

/// The maximum number of PEs for which TopoLB is a start.
const MAX_TOPOLB_PES: usize = 4096;

/// The number of annealing steps does not grow with the number of objects above this number, because annealing would
/// take minutes or hours.
const MAX_ANNEALED: usize = 1 << 13;

/// The initial temperatures of annealing, in mean edge weights.
const TEMPERATURES: [f64; 3] = [0.5, 1.0, 2.0];

/// Each object is its own group.
const ALONE: Grouping = Grouping { by: By::Greedy, equal: false, imbalance: 0.0 };

/// The random number stream of the searches.
const STREAM: u64 = 3 << 40;

/// A better placement than `block_of`, with at most one object per block. Returns `block_of` if none is found, if two
/// objects share a block, or if a block has no room for the heaviest object.
pub(crate) fn search(
    problem: &Problem,
    database: &Database,
    topology: &dyn Topology,
    settings: &Settings,
    block_of: Vec<u32>,
    seed: u64,
) -> Vec<u32> {
    let blocks = problem.capacity.len();
    let heaviest = problem.graph.heaviest();
    // Only blocks with room for the heaviest object are used, so that any two objects may be swapped.
    let is_open: Vec<bool> = problem.capacity.iter().map(|&capacity| capacity >= heaviest).collect();
    let open: Vec<u32> = (0..blocks as u32).filter(|&block| is_open[block as usize]).collect();
    let is_alone = |block_of: &[u32]| {
        let mut is_free = is_open.clone();
        block_of[..problem.movable]
            .iter()
            .all(|&block| std::mem::replace(&mut is_free[block as usize], false))
    };
    let bound = cost_bound(problem, problem.most_load(&block_of));
    let is_optimal = cost(&problem.graph, &problem.machine.last().distance, &block_of) <= bound;
    if is_optimal || !is_alone(&block_of) {
        return block_of;
    }
    let mut starts = vec![block_of];
    if blocks <= MAX_TABU_PES {
        let once = |number| map(problem, settings, seed.wrapping_add(number));
        starts.extend((1..settings.starts as u64).map(once).filter(|start| is_alone(start)));
    }
    if database.pes.len() <= MAX_TOPOLB_PES
        && let Some(start) = topolb(problem, database, topology, ALONE, seed).filter(|start| is_alone(start))
    {
        starts.push(start);
    }
    let layer = problem.machine.layers.len() - 1;
    let graph = &problem.graph;
    let found: Vec<Vec<u32>> = starts
        .into_par_iter()
        .enumerate()
        .flat_map_iter(|(number, start)| {
            let mut rng = generator(seed, STREAM + number as u64);
            let distance = &problem.machine.last().distance;
            let mut found = vec![start];
            if blocks <= MAX_TABU_PES && graph.vertices() == problem.movable {
                let iterations = (settings.tabu_work / (open.len() * open.len())).min(MAX_TABU_ITERATIONS);
                let placed = with_metric!(distance, metric =>
                    tabu::search(graph, metric, &open, &found[0], iterations, &mut rng));
                found.push(placed);
            } else if settings.anneal_steps > 0 {
                let annealed =
                    with_metric!(distance, metric => anneal(problem, metric, settings, &found[0], &mut rng));
                found.extend(annealed);
            }
            found
        })
        .map(|mut placed| {
            refine_layer(problem, settings, layer, &mut placed, &problem.capacity, None, seed);
            placed
        })
        .collect();
    let best = found
        .into_iter()
        .filter(|placed| is_alone(placed))
        .min_by_key(|placed| cost(graph, &problem.machine.last().distance, placed));
    best.unwrap_or_default()
}

/// The results of annealing from `start`, one per temperature.
fn anneal<M: Metric>(
    problem: &Problem,
    metric: &M,
    settings: &Settings,
    start: &[u32],
    rng: &mut rand_chacha::ChaCha8Rng,
) -> Vec<Vec<u32>> {
    let (graph, layer) = (&problem.graph, problem.machine.last());
    let (mut weight, mut count) = (0.0, 0.0);
    for half in (0..graph.vertices()).flat_map(|v| graph.row(v)) {
        weight += f64::from(half.weight);
        count += 1.0;
    }
    if count == 0.0 {
        return Vec::new();
    }
    let at = |temperature: f64| {
        let annealing = Annealing {
            graph,
            movable: problem.movable,
            distance: metric,
            near: &layer.near,
            capacity: &problem.capacity,
            steps: settings.anneal_steps * problem.movable.min(MAX_ANNEALED),
            temperature: temperature * weight / count * layer.scale as f64,
        };
        annealing.run(start, rng).0
    };
    TEMPERATURES.into_iter().map(at).collect()
}

/// The placement by TopoLB of the objects in groups by `grouping`.
pub(crate) fn topolb(
    problem: &Problem,
    database: &Database,
    topology: &dyn Topology,
    grouping: Grouping,
    seed: u64,
) -> Option<Vec<u32>> {
    let available = check(database, topology).ok()?;
    let groups = Groups::of(database, &available, grouping, seed).ok()?;
    let hosts = hosts(database, &available, groups.count, grouping.by);
    let places = place(&groups.graph, &groups.anchors, &hosts, topology, Order::Second).ok()?;
    let answer = answer(database, topology, &groups, grouping, available, &places);
    let block_of_pe = problem.machine.blocks_of_pes(database.pes.len());
    let block = |&object: &u32| block_of_pe[answer.pe_of[object as usize] as usize];
    Some(problem.objects.iter().map(block).chain(problem.anchors.iter().copied()).collect())
}
