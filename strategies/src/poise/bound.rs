//! A lower bound of hop-bytes for placements within the capacities, which are loads. That of `cost/hops.rs` holds for numbers of objects.
//!
//! Next to an object, a PE has limited room for its partners. The traffic with partners that do not fit travels at least
//! the shortest distance between PEs. If partners may be divided, this is a fractional knapsack (G. B. Dantzig,
//! "Discrete-variable extremum problems", 1957), whose optimum takes the partners with the most bytes per load first.
//! Every edge is counted at both of its ends.
//!
//! If each object fits on a PE together with all its partners, that bound is 0. But a connected component that does not
//! fit on one PE is spread over k PEs, so at least k - 1 edges are cut: at best the lightest edges.

use super::machine::distance::{MAX_TABLE_BLOCKS, Metric};
use super::problem::Problem;

/// The bound for placements with at most `most` load of movable objects per PE, in weights times distances of the last
/// layer.
pub(crate) fn cost_bound(problem: &Problem, most: i64) -> i64 {
    let graph = &problem.graph;
    let mut partners: Vec<(u32, i64)> = Vec::new();
    let mut twice = 0i64;
    for v in 0..problem.movable {
        let mut room = i128::from(most - graph.loads[v]);
        partners.clear();
        let movable = graph.row(v).iter().filter(|half| (half.to as usize) < problem.movable);
        partners.extend(movable.map(|half| (half.weight, graph.loads[half.to as usize])));
        partners.sort_unstable_by(|a, b| {
            (i128::from(b.0) * i128::from(a.1)).cmp(&(i128::from(a.0) * i128::from(b.1))).then(a.cmp(b))
        });
        for &(weight, load) in &partners {
            let (weight, load) = (i128::from(weight), i128::from(load));
            let part = if load <= room { weight } else { (weight * room.max(0) + load - 1) / load.max(1) };
            twice += (weight - part).max(0) as i64;
            room -= load;
        }
    }
    let partners_apart = (twice as u64).div_ceil(2) as i64;
    partners_apart.max(component_cuts(problem, most)) * nearest(problem)
}

/// Lower bound of the cut weight because connected components need several PEs.
fn component_cuts(problem: &Problem, most: i64) -> i64 {
    let graph = &problem.graph;
    let mut is_seen = vec![false; problem.movable];
    let mut reached = Vec::new();
    let mut cuts = 0;
    for start in 0..problem.movable {
        let mut load = 0;
        reached.push(start);
        while let Some(v) = reached.pop() {
            if std::mem::replace(&mut is_seen[v], true) {
                continue;
            }
            load += graph.loads[v];
            let others = graph.row(v).iter().map(|half| half.to as usize);
            reached.extend(others.filter(|&other| other < problem.movable && !is_seen[other]));
        }
        cuts += ((load - 1).max(0) / most.max(1)) as usize;
    }
    let rows = (0..problem.movable).flat_map(|v| graph.row(v).iter().map(move |half| (v, half)));
    let mut weights: Vec<i64> =
        rows.filter(|(v, half)| (half.to as usize) < *v).map(|(_, half)| i64::from(half.weight)).collect();
    let cuts = cuts.min(weights.len());
    if cuts > 0 {
        weights.select_nth_unstable(cuts - 1);
    }
    weights[..cuts].iter().sum()
}

/// A lower bound of the distance between two different blocks of the last layer.
fn nearest(problem: &Problem) -> i64 {
    let layer = problem.machine.last();
    let blocks = layer.blocks() as u32;
    let pairs = (0..blocks).flat_map(|a| (0..a).map(move |b| (a, b)));
    match layer.blocks() {
        1 => 0,
        2..=MAX_TABLE_BLOCKS => pairs.map(|(a, b)| layer.distance.between(a, b)).min().unwrap_or(0),
        // Different PEs are at least 1 apart, unless the machine defines a distance of 0. PEs at distance 0 are
        // successive blocks.
        _ => (1..blocks).map(|b| layer.distance.between(b - 1, b)).min().unwrap_or(0).min(layer.scale),
    }
}
