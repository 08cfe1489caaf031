//! What other strategies and tools can use of this room on its own: bisection, repair, swaps.

use super::bisect::{Effort, Halves, bisect};
use super::csr::{Csr, Half};
use super::distance::with_metric;
use super::kway::State;
use super::problem::Problem;
use super::{present, repair, swaps};
use crate::graph::Graph;
use crate::random::generator;
use crate::strategy::check;
use crate::{Database, StrategyError, Topology};

/// Passes of swaps at most.
const PASSES: usize = 10;

/// Streams of random numbers.
const BISECT_STREAM: u64 = 5 << 40;
const SWAP_STREAM: u64 = 6 << 40;

/// The side, 0 or 1, of every vertex, such that `first` of them are on side 0 and few bytes cross: a multilevel
/// bisection.
///
/// # Panics
/// With a `first` of more than there are vertices.
pub fn bisect_exactly(graph: &Graph, first: usize, seed: u64) -> Vec<u8> {
    let vertices = graph.vertices();
    assert!(first <= vertices, "side 0 has at most all {vertices} vertices");
    bisect_within(graph, &vec![1; vertices], [first, vertices - first].map(|size| size as u64), seed)
}

/// The side, 0 or 1, of every vertex, such that side `i` weighs at most `capacities[i]`, where the weights allow,
/// and few bytes cross: a multilevel bisection.
///
/// # Panics
/// With another number of weights than vertices.
pub fn bisect_within(graph: &Graph, weights: &[u32], capacities: [u64; 2], seed: u64) -> Vec<u8> {
    assert_eq!(weights.len(), graph.vertices(), "every vertex has a weight");
    let total: u128 = graph.pairs().map(|(_, _, weight)| u128::from(weight)).sum();
    // All weights together fit 32 bits; the lightest of many may then vanish.
    let unit = total.div_ceil(u128::from(u32::MAX)).max(1);
    let mut csr = Csr::with_capacity(graph.vertices());
    for (v, &load) in weights.iter().enumerate() {
        let half =
            |(to, weight): (usize, u64)| Half { to: to as u32, weight: (u128::from(weight) / unit) as u32 };
        csr.push(i64::from(load), graph.neighbors(v).map(half));
    }
    let capacity = capacities.map(|capacity| i64::try_from(capacity).unwrap_or(i64::MAX / 4));
    // What side 0 has if the room that is left is shared as the capacities are.
    let all = u128::from(capacities[0]) + u128::from(capacities[1]);
    let target = (csr.total_load() as u128 * u128::from(capacities[0])).checked_div(all).unwrap_or(0) as i64;
    let halves = Halves { graph: &csr, edge_cost: 1, bias: &[], capacity, target };
    bisect(&halves, &Effort::THOROUGH, &mut generator(seed, BISECT_STREAM))
}

/// The present placement of `database`, with every PE brought below (1 + `imbalance`) times the average where that is
/// possible, for as few hop-bytes as can be: few objects move, and in a few milliseconds.
///
/// # Errors
/// When the database is not whole, or does not fit the machine.
pub fn repaired(
    database: &Database,
    topology: &dyn Topology,
    imbalance: f64,
) -> Result<Vec<u32>, StrategyError> {
    improved(database, topology, imbalance, None)
}

/// As [`repaired`], and then objects move or change places in pairs where that saves hop-bytes.
///
/// # Errors
/// As [`repaired`].
pub fn swapped(
    database: &Database,
    topology: &dyn Topology,
    imbalance: f64,
    seed: u64,
) -> Result<Vec<u32>, StrategyError> {
    improved(database, topology, imbalance, Some(seed))
}

/// The present placement, repaired, and with a seed for swaps also refined by these.
fn improved(
    database: &Database,
    topology: &dyn Topology,
    imbalance: f64,
    swap_seed: Option<u64>,
) -> Result<Vec<u32>, StrategyError> {
    let available = check(database, topology)?;
    let problem = Problem::new(database, topology, &available, imbalance)?;
    let mut block_of = present::start(&problem);
    let layer = problem.machine.last();
    with_metric!(&layer.distance, metric => {
        let board = problem.board(metric, &problem.capacity, None, true);
        let mut state = State::new(&board, &mut block_of);
        repair::repair(&mut state, true);
        if let Some(seed) = swap_seed {
            swaps::refine(&mut state, PASSES, &mut generator(seed, SWAP_STREAM));
        }
    });
    Ok(problem.placement(database, &block_of))
}
