//! From the present placement: repaired and refined where it is, moves counting as what they cost.
//!
//! Objects that live elsewhere afterwards cost their size times gamma on top of hop-bytes. So a step weighs what a
//! better place saves against what it takes to get there, and home is always among the places an object may go.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::kway::Homes;
use super::machine::NONE;
use super::problem::{Problem, mean_size};
use super::scratch::{Grade, grade, refine_layer};
use super::settings::Settings;
use crate::Database;

/// What it costs each movable vertex to live elsewhere than now, in the scale of the last layer: `gamma` hop-bytes
/// per byte of its object.
///
/// An object whose size was never measured is taken to be as large as the others on average; if none was measured,
/// as all that an object exchanges on average.
pub(crate) fn leave_costs(problem: &Problem, database: &Database, gamma: f64) -> Vec<i64> {
    let size = |&object: &u32| database.objects[object as usize].bytes.filter(|&bytes| bytes > 0);
    let exchanged = || {
        let weights =
            (0..problem.movable).flat_map(|v| problem.graph.row(v)).map(|half| f64::from(half.weight));
        weights.sum::<f64>() * problem.unit / problem.movable.max(1) as f64
    };
    let usual = mean_size(database, &problem.objects).unwrap_or_else(exchanged);
    let per_byte = gamma / problem.unit * problem.machine.last().scale as f64;
    // All together must not overflow, however large gamma is.
    let most = (i64::MAX >> 4) as f64 / problem.movable.max(1) as f64;
    // Costs are whole multiples of what the smallest edges may weigh: one that is less must not vanish.
    let least = if gamma > 0.0 { 1.0 } else { 0.0 };
    let cost = |object: &u32| {
        (size(object).map_or(usual, |bytes| bytes as f64) * per_byte).max(least).min(most) as i64
    };
    problem.objects.iter().map(cost).collect()
}

/// Where everything is now, in blocks of the last layer; those whose PE takes nothing where there is most room.
pub(crate) fn start(problem: &Problem) -> Vec<u32> {
    let mut block_of: Vec<u32> = problem.home_of.iter().chain(&problem.anchors).copied().collect();
    let loads = &problem.graph.loads;
    let mut rooms = problem.capacity.clone();
    for (&block, load) in problem.home_of.iter().zip(loads).filter(|(block, _)| **block != NONE) {
        rooms[block as usize] -= load;
    }
    let open = rooms.iter().enumerate().filter(|&(block, _)| problem.capacity[block] > 0);
    let mut emptiest: BinaryHeap<(i64, Reverse<usize>)> =
        open.map(|(block, &room)| (room, Reverse(block))).collect();
    let mut homeless: Vec<usize> = (0..problem.movable).filter(|&v| block_of[v] == NONE).collect();
    homeless.sort_unstable_by_key(|&v| (Reverse(loads[v]), v));
    for v in homeless {
        let Some(mut top) = emptiest.peek_mut() else { break };
        let (room, Reverse(block)) = *top;
        block_of[v] = block as u32;
        *top = (room - loads[v], Reverse(block));
    }
    block_of
}

/// Refines a placement in the last layer; where somebody has a home, leaving it costs.
pub(crate) fn refine(
    problem: &Problem,
    settings: &Settings,
    homes: Option<Homes>,
    block_of: &mut [u32],
    seed: u64,
) {
    let layer = problem.machine.layers.len() - 1;
    refine_layer(problem, settings, layer, block_of, &problem.capacity, homes, seed);
}

/// How good a placement is: its overload, then its cost and that of the moves that lead to it, then that of the moves.
pub(crate) fn grade_with_moves(problem: &Problem, leave_costs: &[i64], block_of: &[u32]) -> (Grade, i64) {
    let (overload, cost) = grade(problem, problem.machine.layers.len() - 1, block_of);
    let moves = problem.homes(leave_costs).map_or(0, |homes| homes.cost(block_of));
    ((overload, cost + moves), moves)
}
