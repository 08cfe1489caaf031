//! `mcf:optimal`: the time of the busiest link when every message may be divided among all paths, as well as can be.
//!
//! Equation 7 of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing, 2014.
//! That program has a variable for each vertex of the polyhedron of routings, exponentially many; the same optimum
//! has the arc-flow program (T. C. Hu, Integer Programming and Network Flows, 1970), aggregated by source: with
//! f(s, a) the bytes on link a that come from s,
//!
//! ```text
//! minimise T  with  sum over s of f(s, a) <= b(a) T                       for every link a
//!                   sum of f(s, .) into v less out of v = bytes from s to v   for every s and v other than s
//!                   f >= 0
//! ```
//!
//! What hangs by one cable has no choice: such vertices are taken off first (`wiring`), which solves trees as
//! they are, and makes the program of what is left small. That goes to an interior-point solver in numbers near 1
//! (`program`). Its answer is only nearly feasible, so it is made into paths (`paths`), which carry every byte
//! exactly; and its prices give a bound by weak duality: for any prices p of links, messages sent by the cheapest
//! paths cost at most T times the sum of p(a) b(a). So the answer is never above the cost of the machine's routes,
//! and how far it can be from the optimum is known.
//!
//! Networks that route adaptively seldom make detours. With [`Ways::Shortest`] f(s, a) is 0 unless a leads farther from
//! s, so that all paths have the fewest links there are.
//!
//! Prices say which link to buy: a link's share is by how many percent T falls when its bandwidth rises by one.

use super::commodities::Commodities;
use super::link_loads;
use crate::{Database, Topology};

mod paths;
mod program;
pub(super) mod wiring;

use wiring::{Core, Wiring};

/// The most variables of a linear program: links times senders of what is left without trees. (At this size it takes
/// a minute and a gigabyte.)
pub const MAX_VARIABLES: usize = 1 << 16;

/// Which ways bytes may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// Any, as in equation 7.
    Any,
    /// Those with the fewest links, as packets do with minimal adaptive routing; and the machine's own routes.
    Shortest,
}

/// The best routing of a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimal {
    /// The time of the busiest link.
    pub seconds: f64,
    /// What no routing can go below; at most `seconds`, and the same but for what the solver leaves.
    pub bound_seconds: f64,
    /// The bytes over every link.
    pub link_bytes: Vec<f64>,
    /// By link: by how many percent `seconds` fall when its bandwidth rises by one; they add up to 1. Where several
    /// answers are possible, one of them. All 0 where nothing is sent.
    pub shares: Vec<f64>,
}

/// The best routing when object `i` of `database` is on PE `placement[i]`; `None` where the program has more
/// than [`MAX_VARIABLES`], or the machine is a product, whose cores and nodes no links join.
///
/// # Panics
/// When `placement` is shorter than the objects, or a PE is unknown.
pub fn solve(database: &Database, machine: &dyn Topology, placement: &[u32], ways: Ways) -> Option<Optimal> {
    solve_of(database, machine, placement, ways, true)
}

/// The same, with or without taking trees off first.
fn solve_of(
    database: &Database,
    machine: &dyn Topology,
    placement: &[u32],
    ways: Ways,
    peels: bool,
) -> Option<Optimal> {
    let wiring = Wiring::of(machine);
    let commodities = Commodities::of(database);
    let places = commodities.places(placement);
    let sent = || commodities.sent().map(|(from, to, bytes)| (places[from], places[to], bytes));
    if !sent().all(|(from, to, _)| from == to || wiring.has_route(machine, from, to)) {
        return None;
    }
    let core = Core::of(&wiring, sent(), ways, peels);
    if core.flows() > MAX_VARIABLES {
        return None;
    }
    let bandwidth: Vec<f64> = (0..machine.links()).map(|link| machine.link(link).bandwidth).collect();
    let fixed = link_loads(database, machine, placement);
    let seconds = |link: usize, bytes: f64| bytes / bandwidth[link];
    let mut best = Optimal {
        seconds: 0.0,
        bound_seconds: 0.0,
        link_bytes: core.forced.iter().map(|&bytes| bytes as f64).collect(),
        shares: vec![0.0; bandwidth.len()],
    };
    // Links without a choice, and the best that can be done with the others, have nothing to do with each other.
    let busiest = |links: &mut dyn Iterator<Item = (usize, f64)>| {
        let better = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
        links.reduce(better).unwrap_or((0, 0.0))
    };
    let (link, forced_seconds) = busiest(
        &mut core.forced.iter().enumerate().map(|(link, &bytes)| (link, seconds(link, bytes as f64))),
    );
    if forced_seconds > 0.0 {
        best.shares[link] = 1.0;
    }
    (best.seconds, best.bound_seconds) = (forced_seconds, forced_seconds);
    if core.demands.is_empty() {
        return Some(best);
    }
    let routed = core.arcs.iter().map(|arc| (arc.link, seconds(arc.link, fixed[arc.link] as f64)));
    let (_, routed_seconds) = busiest(&mut routed.into_iter());
    let flow = program::solve(&core, &bandwidth, routed_seconds);
    let mut bytes = paths::carry(&core, &flow.flows);
    let times = core.arcs.iter().zip(&bytes).map(|(arc, &bytes)| seconds(arc.link, bytes));
    let mut core_seconds = times.fold(0.0, f64::max);
    if core_seconds >= routed_seconds {
        // The machine's own routes are a routing, too.
        bytes = core.arcs.iter().map(|arc| fixed[arc.link] as f64).collect();
        core_seconds = routed_seconds;
    }
    for (arc, bytes) in core.arcs.iter().zip(bytes) {
        best.link_bytes[arc.link] = bytes;
    }
    let bound_seconds = paths::bound(&core, &bandwidth, &flow.prices).min(core_seconds);
    if core_seconds > forced_seconds {
        best.shares.fill(0.0);
        let worth = |(arc, price): (&wiring::Arc, &f64)| price * bandwidth[arc.link];
        let sum: f64 = core.arcs.iter().zip(&flow.prices).map(worth).sum();
        for pair in core.arcs.iter().zip(&flow.prices).filter(|_| sum > 0.0) {
            best.shares[pair.0.link] = worth(pair) / sum;
        }
    }
    best.seconds = core_seconds.max(forced_seconds);
    best.bound_seconds = bound_seconds.max(forced_seconds);
    Some(best)
}

#[cfg(test)]
mod tests;
