//! At most one object per PE: a quadratic assignment problem, searched from good starts.
//!
//! Bisection has little to cut there, so its answer is only one start of a search; that of
//! [TopoLB](crate::mapping::topolb) is another, which embeds grids in grids almost perfectly or not at all. Few PEs are
//! searched by [`super::tabu`], many by [`super::anneal`] at three temperatures; the best is kept.

use rayon::prelude::*;

use super::anneal::Annealing;
use super::bound::cost_bound;
use super::distance::{Metric, with_metric};
use super::problem::Problem;
use super::scratch::{cost, map, refine_layer};
use super::settings::Settings;
use super::tabu;
use crate::mapping::topolb::{Order, Ties, TopoLb};
use crate::partition::groups::{By, Grouping};
use crate::random::generator;
use crate::{Database, Strategy, Topology};

/// The most PEs that tabu search is used for.
const MAX_TABU_PES: usize = 128;

/// The most iterations of tabu search from a start; more find nothing on 20 to 42 PEs.
const MAX_TABU_ITERATIONS: usize = 25_000;

/// The most PEs for which TopoLB gives a start.
const MAX_TOPOLB_PES: usize = 4096;

/// With more objects annealing has no more steps: it would take minutes, and then hours.
const MAX_ANNEALED: usize = 1 << 13;

/// The first temperatures of annealing, in mean weights of an edge.
const TEMPERATURES: [f64; 3] = [0.5, 1.0, 2.0];

/// Every object is a group of its own.
const ALONE: Grouping = Grouping { by: By::Greedy, equal: false, imbalance: 0.0 };

/// The stream of random numbers of the searches.
const STREAM: u64 = 3 << 40;

/// A better placement than `block_of`, in which no two objects share a block; `block_of` itself if there is none, if
/// two do, or if one is where not all have room.
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
    // Where there is room for the heaviest anybody may be, so that it does not matter who is swapped.
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
            let mut dice = generator(seed, STREAM + number as u64);
            let distance = &problem.machine.last().distance;
            let mut found = vec![start];
            if blocks <= MAX_TABU_PES && graph.vertices() == problem.movable {
                let iterations = (settings.tabu_work / (open.len() * open.len())).min(MAX_TABU_ITERATIONS);
                let placed = with_metric!(distance, metric =>
                    tabu::search(graph, metric, &open, &found[0], iterations, &mut dice));
                found.push(placed);
            } else if settings.anneal_steps > 0 {
                let annealed =
                    with_metric!(distance, metric => anneal(problem, metric, settings, &found[0], &mut dice));
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

/// What annealing makes of a start at each temperature.
fn anneal<M: Metric>(
    problem: &Problem,
    metric: &M,
    settings: &Settings,
    start: &[u32],
    dice: &mut rand_chacha::ChaCha8Rng,
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
        annealing.run(start, dice).0
    };
    TEMPERATURES.into_iter().map(at).collect()
}

/// Where TopoLB puts the objects, in such groups.
pub(crate) fn topolb(
    problem: &Problem,
    database: &Database,
    topology: &dyn Topology,
    grouping: Grouping,
    seed: u64,
) -> Option<Vec<u32>> {
    let strategy = TopoLb { grouping, order: Order::Second, ties: Ties::First, restarts: 1 };
    let answer = strategy.assign(database, topology, seed).ok()?;
    let block_of_pe = problem.machine.blocks_of_pes(database.pes.len());
    let block = |&object: &u32| block_of_pe[answer.pe_of[object as usize] as usize];
    Some(problem.objects.iter().map(block).chain(problem.anchors.iter().copied()).collect())
}
