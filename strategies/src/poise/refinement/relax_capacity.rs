//! When loads do not fit: finds the lowest load limit that can be satisfied.
//!
//! Few heavy objects may not fit below the allowed load at all, or only in a packing that repair does not find. Then the
//! limit of all PEs is raised, by bisection.

use super::refine_layer;
use super::repair::repair;
use super::state::State;
use crate::placement::ROUNDING;
use crate::poise::machine::distance::with_metric;
use crate::poise::objective::grade;
use crate::poise::problem::Problem;
use crate::poise::settings::Settings;

/// The number of limits that are tried.
const STEPS: usize = 8;

/// Repairs `block_of` for the lowest limit that is found, and then refines it, both with migration costs. The capacities of
/// the problem become those of that limit.
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
    let slowest = |problem: &Problem, block_of: &[u32]| problem.slowest_seconds(&problem.loads(block_of));
    let mut low = problem.slowest_seconds(&problem.capacity);
    let mut high = slowest(problem, block_of);
    let mut best = high;
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        let capacity = problem.raised(middle);
        let mut attempt = block_of.clone();
        let distance = &problem.machine.last().distance;
        let fits = with_metric!(distance, metric => {
            let board = problem.board(metric, &capacity, problem.homes(migration_costs), false);
            repair(&mut State::new(&board, &mut attempt), settings.repacks)
        });
        if fits {
            high = middle;
        } else {
            low = middle;
        }
        let reached = slowest(problem, &attempt);
        if reached < best {
            (best, *block_of) = (reached, attempt);
        }
        high = high.min(best);
    }
    problem.capacity = problem.raised(best * (1.0 + ROUNDING));
    let homes = problem.homes(migration_costs);
    refine_layer(problem, settings, layer, block_of, &problem.capacity, homes, seed);
}
