//! When loads do not fit: the lowest limit that can be kept, and no more.
//!
//! Few and heavy objects may not fit below the allowed load whatever one does, or only for a packing that repair does
//! not find. Then all capacities are raised by one factor, which is found by bisection.

use super::distance::with_metric;
use super::kway::State;
use super::problem::Problem;
use super::repair::repair;
use super::scratch::{grade, refine_layer};
use super::settings::Settings;

/// Factors that are tried.
const STEPS: usize = 8;

/// Makes `block_of` fit below the lowest multiple of the capacities that is found, and refines it there, both with what it
/// costs to leave home. The problem has these capacities from then on.
pub(crate) fn settle(
    problem: &mut Problem,
    settings: &Settings,
    leave_costs: &[i64],
    block_of: &mut Vec<u32>,
    seed: u64,
) {
    let layer = problem.machine.layers.len() - 1;
    if grade(problem, layer, block_of).0 == 0 {
        return;
    }
    let original = problem.capacity.clone();
    let raised = |factor: f64| -> Vec<i64> {
        original.iter().map(|&capacity| (capacity as f64 * factor).ceil() as i64).collect()
    };
    let mut low = 1.0;
    let mut high = fill(problem, block_of);
    let mut best: Option<(f64, Vec<u32>)> = None;
    for _ in 0..STEPS {
        let middle = if high.is_finite() { f64::midpoint(low, high) } else { 2.0 * low };
        let capacity = raised(middle);
        let mut attempt = best.as_ref().map_or(&*block_of, |best| &best.1).clone();
        let distance = &problem.machine.last().distance;
        let fits = with_metric!(distance, metric => {
            let board = problem.board(metric, &capacity, problem.homes(leave_costs), false);
            repair(&mut State::new(&board, &mut attempt), settings.repacks)
        });
        let reached = fill(problem, &attempt);
        if fits {
            high = middle;
        } else {
            low = middle;
        }
        let before = best.as_ref().map_or_else(|| fill(problem, block_of), |best| best.0);
        if reached < before {
            best = Some((reached, attempt));
        }
    }
    if let Some((_, placed)) = best {
        *block_of = placed;
    }
    let factor = fill(problem, block_of);
    if factor.is_finite() {
        problem.capacity = raised(factor);
        let homes = problem.homes(leave_costs);
        refine_layer(problem, settings, layer, block_of, &problem.capacity, homes, seed);
    }
}

/// The most load of a block over its capacity.
fn fill(problem: &Problem, block_of: &[u32]) -> f64 {
    let loads = problem.loads(block_of);
    let fills = loads.iter().zip(&problem.capacity).filter(|(load, _)| **load > 0);
    fills.map(|(&load, &capacity)| load as f64 / capacity as f64).fold(0.0, f64::max)
}
