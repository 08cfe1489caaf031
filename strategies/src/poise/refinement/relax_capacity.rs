//! When loads do not fit: finds the lowest load limit that can be satisfied.
//!
//! Few heavy objects may not fit below the allowed load at all, or only in a packing that repair does not find. Then all
//! capacities are raised by one factor, found by bisection.

use super::refine_layer;
use super::repair::repair;
use super::state::State;
use crate::poise::machine::distance::with_metric;
use crate::poise::objective::grade;
use crate::poise::problem::Problem;
use crate::poise::settings::Settings;

/// The number of factors that are tried.
const STEPS: usize = 8;

/// Repairs `block_of` for the lowest multiple of the capacities that is found, and then refines it, both with migration
/// costs. The capacities of the problem become that multiple.
pub(crate) fn relax_capacity(
    problem: &mut Problem,
    settings: &Settings,
    migration_costs: &[i64],
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
            let board = problem.board(metric, &capacity, problem.homes(migration_costs), false);
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
        let homes = problem.homes(migration_costs);
        refine_layer(problem, settings, layer, block_of, &problem.capacity, homes, seed);
    }
}

/// The largest ratio of a block's load to its capacity.
fn fill(problem: &Problem, block_of: &[u32]) -> f64 {
    let loads = problem.loads(block_of);
    let fills = loads.iter().zip(&problem.capacity).filter(|(load, _)| **load > 0);
    fills.map(|(&load, &capacity)| load as f64 / capacity as f64).fold(0.0, f64::max)
}
