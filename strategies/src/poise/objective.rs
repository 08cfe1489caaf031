//! The objective of placements: overload above the capacities, then hop-bytes, and the costs of moves.

use equipoise_model::{Database, Topology};
use rayon::prelude::*;

use super::machine::distance::Metric;
use super::problem::{Problem, mean_size};
use crate::cost::hop_byte_seconds;
use crate::partition::bisection::csr::Csr;

/// The maximum of `gamma`; no message travels so far that a larger cost differs from it.
pub(crate) const MAX_GAMMA: f64 = 1e9;

/// Costs of graphs with at least this many vertices are computed in parallel.
const PARALLEL: usize = 1 << 16;

/// The value of a placement in its layer: overload, then cost. Smaller is better.
pub(crate) type Grade = (i64, i64);

/// The value of a placement in a layer.
pub(crate) fn grade(problem: &Problem, layer: usize, block_of: &[u32]) -> Grade {
    let capacity = problem.capacities(layer);
    let mut loads = vec![0; capacity.len()];
    block_of.iter().zip(&problem.graph.loads).for_each(|(&block, load)| loads[block as usize] += load);
    let overload = loads.iter().zip(&capacity).map(|(load, capacity)| (load - capacity).max(0)).sum();
    (overload, cost(&problem.graph, &problem.machine.layers[layer].distance, block_of))
}

/// Weights times distances, over all edges.
pub(crate) fn cost(graph: &Csr, distance: &impl Metric, block_of: &[u32]) -> i64 {
    let of_vertex = |v: usize| -> i64 {
        let higher = graph.row(v).iter().filter(|half| half.to as usize > v);
        higher
            .map(|half| i64::from(half.weight) * distance.between(block_of[v], block_of[half.to as usize]))
            .sum()
    };
    let vertices = 0..graph.vertices();
    if vertices.len() < PARALLEL {
        vertices.map(of_vertex).sum()
    } else {
        vertices.into_par_iter().map(of_vertex).sum()
    }
}

/// The hop-bytes that cost as much as moving a byte, of a database whose recorded costs are known: the byte crosses the network once as a
/// byte of a message does, and takes PEs time, of which a mean object has its share for each byte. 1 if costs are unknown or there are no
/// messages, and 0 for task graphs, whose objects start anywhere.
pub(crate) fn measured_gamma(database: &Database, topology: &dyn Topology) -> f64 {
    if database.pes.iter().all(|pe| pe.wall_seconds <= 0.0) {
        return 0.0;
    }
    let of_pes = || {
        let costs = database.costs.as_ref()?.migration;
        let all: Vec<u32> = (0..database.objects.len() as u32).collect();
        let bytes = mean_size(database, &all)?;
        let seconds = costs.send_seconds + costs.receive_seconds;
        let per_byte = costs.send_seconds_per_byte + costs.receive_seconds_per_byte;
        let of_move = seconds / bytes + per_byte;
        // Where no PE waits for messages, hop-bytes cost nothing, and objects move for the loads only.
        Some(if of_move > 0.0 { of_move / hop_byte_seconds(database, topology)? } else { 0.0 })
    };
    (1.0 + of_pes().unwrap_or(0.0)).min(MAX_GAMMA)
}

/// By movable vertex: the cost of moving it to another PE, in the scale of the last layer: `gamma` hop-bytes per byte of
/// its object.
///
/// An object whose size was never measured gets the mean size of the others. If no size was measured, all objects get
/// the mean number of bytes that an object exchanges.
pub(crate) fn migration_costs(problem: &Problem, database: &Database, gamma: f64) -> Vec<i64> {
    let size = |&object: &u32| database.objects[object as usize].bytes.filter(|&bytes| bytes > 0);
    let exchanged = || {
        let weights =
            (0..problem.movable).flat_map(|v| problem.graph.row(v)).map(|half| f64::from(half.weight));
        weights.sum::<f64>() * problem.unit / problem.movable.max(1) as f64
    };
    let usual = mean_size(database, &problem.objects).unwrap_or_else(exchanged);
    let per_byte = gamma / problem.unit * problem.machine.last().scale as f64;
    // The sum of all costs must not overflow, for any gamma.
    let most = (i64::MAX >> 4) as f64 / problem.movable.max(1) as f64;
    // Costs are integers in the scale of the smallest edges: a smaller positive cost must not become 0.
    let least = if gamma > 0.0 { 1.0 } else { 0.0 };
    let cost = |object: &u32| {
        (size(object).map_or(usual, |bytes| bytes as f64) * per_byte).max(least).min(most) as i64
    };
    problem.objects.iter().map(cost).collect()
}

/// The value of a placement: overload, then the cost including that of its moves, then the cost of its moves.
pub(crate) fn grade_with_moves(problem: &Problem, migration_costs: &[i64], block_of: &[u32]) -> (Grade, i64) {
    let (overload, cost) = grade(problem, problem.machine.layers.len() - 1, block_of);
    let moves = problem.homes(migration_costs).map_or(0, |homes| homes.cost(block_of));
    ((overload, cost + moves), moves)
}
