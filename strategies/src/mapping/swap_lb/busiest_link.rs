//! A restart that relieves the busiest link.
//!
//! A search that only accepts a smaller maximum soon finds no more swaps, because most swaps do not affect the busiest
//! link, or two links are equally busy. So there are three phases:
//!
//! 1. Swaps that decrease bytes times round-trip times. They are the fastest to try, and place tasks that exchange much
//!    close together. (Left out on machines that are too large for a table of distances.)
//! 2. Swaps that decrease the sum of t^p over all links, where t is the time of a link (p = `norm`). A larger p gives busy
//!    links more weight.
//! 3. Swaps of a task that sends or receives over the busiest link. If none is an improvement, swaps of all tasks at two
//!    switches (`switches`). They must decrease the time of this link, or keep it and decrease the sum.
//!
//! A phase ends when no swap is an improvement, or, if there are more pairs than `tries`, after `tries` random swaps in a
//! row without improvement. The best result by the busiest link, then by the sum, is kept.

use equipoise_model::Topology;
use equipoise_model::random::{below, shuffle};

use super::search::{Board, Ending, Plan, Problem, Rng, swap_to_local_minimum};
use super::switches;
use crate::cost::mcf::{Aim, McfSwaps};
use crate::cost::qap::{Distances, Metric, QapSwaps};
use crate::cost::routes::Routes;
use crate::cost::swaps::SwapCost as _;

/// The result of every restart, in order.
pub(super) fn search(
    problem: &Problem,
    topology: &dyn Topology,
    plan: Plan,
    tries: usize,
    norm: i32,
) -> Vec<Ending> {
    let commodities = &problem.commodities;
    let routes = Routes::of(topology);
    let seconds = routes.seconds_per_byte();
    // With too many PEs for a table of distances, there is no first phase.
    let distances = Distances::of(&routes, Metric::Rtt).ok();
    let switches = switches::of(topology, &problem.hosts);
    let all = Aim::PowerThenBusiest(norm);
    let make = |places: &[u32]| McfSwaps::new(commodities, &routes, &seconds, all, places);
    problem.search(plan, make, |cost, board, rng| {
        if let Some(distances) = &distances {
            let mut cost = QapSwaps::new(commodities, distances, &board.places);
            swap_to_local_minimum(&mut cost, board, rng, tries);
        }
        cost.restart(&board.places);
        cost.aim(all);
        swap_to_local_minimum(cost, board, rng, tries);
        cost.aim(Aim::BusiestThenPower(norm));
        relieve_busiest(cost, board, rng, tries);
        while switches::swap(cost, board, rng, &switches) {
            relieve_busiest(cost, board, rng, tries);
        }
    })
}

/// Swaps tasks that use the busiest link with other tasks. Ends when no such swap is an improvement, or, if there are
/// more such swaps than `tries`, after `tries` random swaps in a row without improvement.
fn relieve_busiest(cost: &mut McfSwaps, board: &mut Board, rng: &mut Rng, tries: usize) {
    let (mut users, mut swaps) = (Vec::new(), Vec::new());
    let mut failures = 0;
    cost.users(cost.busiest_link(), &mut users);
    while !users.is_empty() && failures < tries {
        // If there are few swaps, each is tried once.
        let is_few = users.len() * board.positions() <= tries;
        if is_few && failures == 0 {
            swaps.clear();
            swaps.extend(users.iter().flat_map(|&task| board.others(task).map(move |at| (task, at))));
            shuffle(rng, &mut swaps);
        }
        let (task, position) = if is_few {
            let Some(swap) = swaps.pop() else { return };
            swap
        } else {
            let task = users[below(rng, users.len() as u64) as usize];
            let Some(position) = board.elsewhere(task, rng) else { return };
            (task, position)
        };
        if board.swap_if_better(cost, task, position) {
            failures = 0;
            cost.users(cost.busiest_link(), &mut users);
        } else {
            failures += 1;
        }
    }
}
