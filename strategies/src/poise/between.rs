//! Placements between the present one and the answer, which move fewer objects and save fewer hop-bytes.
//!
//! The answer is often a placement from scratch, which moves almost all objects. Two families lie between:
//!
//! - the present placement, refined with a price of each move besides its migration cost. A high price leaves only moves that are needed
//!   for the loads, or that save much; without a price refinement ends at the nearest local optimum.
//! - the answer in a part of the machine: the objects that the answer places there move there, those that were there make room, and all
//!   others stay. The parts are the first PEs in the order of the machine's tree, so that each is connected and most traffic is inside.

use rayon::prelude::*;

use super::Solver;
use super::initial_mapping::incremental;
use super::objective::cost;
use super::problem::Problem;

/// The prices of a move, in shares of the mean cost of the edges of an object in the present placement.
const PRICES: [f64; 9] = [4.0, 2.0, 1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.0];

/// The parts of the machine in which the answer is applied, in 64ths, and the prices of a move while a part is refined: a high price
/// keeps what is outside of the part where it is.
const PARTS: [usize; 11] = [1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56];
const PRICES_IN_PARTS: [f64; 2] = [0.5, 0.12];

/// The placements, in blocks of the last layer. They depend on nothing but the problem and the answer, whatever the limit of moves is.
pub(super) fn placements(solver: &Solver, problem: &Problem, answer: &[u32]) -> Vec<Vec<u32>> {
    let present = incremental::start(problem);
    let distance = &problem.machine.last().distance;
    let mean = 2.0 * cost(&problem.graph, distance, &present) as f64 / problem.movable.max(1) as f64;
    let refined = |start: Vec<u32>, price: f64| {
        let price = (price * mean) as i64;
        let costs: Vec<i64> = solver.migration_costs.iter().map(|cost| cost.saturating_add(price)).collect();
        solver.refined_with(problem, start, &costs)
    };
    let blocks = problem.capacity.len();
    let mut ends: Vec<usize> = PARTS.iter().map(|part| (part * blocks).div_ceil(64)).collect();
    ends.retain(|&end| end < blocks);
    ends.dedup();
    let in_part = |&end: &usize| {
        let start = applied_below(end as u32, problem, &present, answer);
        PRICES_IN_PARTS.map(|price| (start.clone(), price))
    };
    let starts = PRICES.iter().map(|&price| (present.clone(), price)).chain(ends.iter().flat_map(in_part));
    let starts: Vec<(Vec<u32>, f64)> = starts.collect();
    starts.into_par_iter().map(|(start, price)| refined(start, price)).collect()
}

/// The present placement, except that the objects which the answer places on blocks below `end` are there.
fn applied_below(end: u32, problem: &Problem, present: &[u32], answer: &[u32]) -> Vec<u32> {
    let apply = |(&now, &then): (&u32, &u32)| if then < end { then } else { now };
    let movable = present.iter().zip(answer).take(problem.movable).map(apply);
    movable.chain(present[problem.movable..].iter().copied()).collect()
}
