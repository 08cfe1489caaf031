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
//! Networks that route adaptively seldom make detours. With [`Ways::Shortest`] f(s, a) is 0 unless the end of a is
//! farther from s than its beginning by just the length of a, so that no path is longer than the shortest there is.
//!
//! Prices say which links to buy, together: T falls with the bandwidths of all that have one, and with that of one link
//! at most by its share ([`Purchases`]). And they bound what other mappings cost, so that a search need not solve a
//! program for each swap ([`OptimalSwaps`]).

use super::commodities::Commodities;
use crate::{Database, Topology};

mod paths;
mod program;
mod purchases;
mod stars;
mod swaps;
pub(crate) mod wiring;

pub use purchases::{Purchase, Purchases};
pub use swaps::OptimalSwaps;
use wiring::{Core, Wiring};

/// The most variables of a linear program: links times senders of what is left without trees. (At this size it takes
/// a minute and a gigabyte.)
pub const MAX_VARIABLES: usize = 1 << 16;

/// The most links of a machine whose wiring is looked at, in a second.
pub const MAX_LINKS: usize = 1 << 20;

/// How far an answer may be from the optimum, as a part of it. (Most are a thousand times closer.)
pub const TOLERANCE: f64 = 1e-6;

/// Which ways bytes may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// Any, as in equation 7.
    Any,
    /// The shortest ones by the lengths of links, which are those of packets with minimal adaptive routing where the
    /// machine offers them all ([`Topology::onward`]: not on platforms, which know one route, nor where two global links
    /// of a dragonfly are shorter than one); or all of them the machine's own routes.
    Shortest,
}

/// The best routing of a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimal {
    /// The time of the busiest link.
    pub seconds: f64,
    /// What no routing by these ways can go below; at most `seconds`, and less by at most the [`TOLERANCE`].
    pub bound_seconds: f64,
    /// The bytes over every link.
    pub link_bytes: Vec<f64>,
    /// By link: its part of the price of all bandwidth; they add up to 1, or are all 0 where nothing is sent. When the
    /// bandwidth of a link rises by one percent, `seconds` fall by at most its share of a percent, and by less, often
    /// not at all, where other links would then be as busy. Where several prices are possible, one of them.
    pub shares: Vec<f64>,
}

/// Why the best routing of a placement is not known.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Unsolved {
    /// The machine is too large to be looked at.
    #[error(
        "the best routes are looked for on machines of at most {MAX_LINKS} links, and this one has {links}"
    )]
    Links {
        /// Links of the machine.
        links: usize,
    },
    /// The linear program is too large.
    #[error(
        "the linear program of the best routes has more than {MAX_VARIABLES} variables (links times senders)"
    )]
    Variables,
    /// The cuts of the machine are too many.
    #[error(
        "the machine's vertices times its links and the messages are more than {}, so its cuts are not looked at",
        super::cuts::MAX_WORK
    )]
    Cuts,
    /// Routes do not lead from where one link ends to where another begins.
    #[error(
        "the machine's routes cross links that do not meet, as those of a product do between nodes and cores, so \
             nothing is known of other routes"
    )]
    Apart,
    /// The solver found neither an answer that is good enough nor that there is none.
    #[error(
        "the linear program was not solved to 1e-6: the busiest link of the best routes takes from \
             {bound_seconds:e} s to {seconds:e} s"
    )]
    Inexact {
        /// The time of the best routing that was found.
        seconds: f64,
        /// What no routing can go below.
        bound_seconds: f64,
    },
}

/// The best routing when object `i` of `database` is on PE `placement[i]`.
///
/// # Errors
/// Where the program or the machine is too large, routes cross links that do not meet, or the solver fails.
///
/// # Panics
/// When `placement` is shorter than the objects, or a PE is unknown.
pub fn solve(
    database: &Database,
    machine: &dyn Topology,
    placement: &[u32],
    ways: Ways,
) -> Result<Optimal, Unsolved> {
    let commodities = Commodities::of(database);
    let places = commodities.places(placement);
    Router::new(machine, ways)?.solve(&commodities, &places)
}

/// A machine on which routings are looked for.
pub struct Router<'a> {
    machine: &'a dyn Topology,
    wiring: Wiring,
    /// By link, in bytes per second.
    bandwidth: Vec<f64>,
    ways: Ways,
    /// Whether trees are taken off first.
    peels: bool,
}

impl<'a> Router<'a> {
    /// For routings by these ways.
    ///
    /// # Errors
    /// Where the machine has more than [`MAX_LINKS`].
    pub fn new(machine: &'a dyn Topology, ways: Ways) -> Result<Self, Unsolved> {
        let links = machine.links();
        if links > MAX_LINKS {
            return Err(Unsolved::Links { links });
        }
        let bandwidth = (0..links).map(|link| machine.link(link).bandwidth).collect();
        Ok(Router { machine, wiring: Wiring::of(machine), bandwidth, ways, peels: true })
    }

    /// The best routing when vertex `i` is on PE `places[i]`.
    ///
    /// # Errors
    /// As [`solve`].
    pub fn solve(&self, commodities: &Commodities, places: &[u32]) -> Result<Optimal, Unsolved> {
        let sent = || commodities.sent().map(|(from, to, bytes)| (places[from], places[to], bytes));
        let fixed = self.wiring.carry(self.machine, sent()).ok_or(Unsolved::Apart)?;
        let core = self.core(commodities, places)?;
        let best = self.best(&core, &fixed);
        let Optimal { seconds, bound_seconds, .. } = best;
        match seconds <= bound_seconds * (1.0 + TOLERANCE) {
            true => Ok(best),
            false => Err(Unsolved::Inexact { seconds, bound_seconds }),
        }
    }

    /// The core of the machine for these messages.
    fn core(&self, commodities: &Commodities, places: &[u32]) -> Result<Core, Unsolved> {
        let sent = commodities.sent().map(|(from, to, bytes)| (places[from], places[to], bytes));
        let machine = (&self.wiring, &self.bandwidth[..]);
        Core::of(machine, sent, self.ways, self.peels).ok_or(Unsolved::Variables)
    }

    /// The best routing that the solver finds; `fixed` are the bytes over every link by the machine's own routes.
    fn best(&self, core: &Core, fixed: &[u64]) -> Optimal {
        let seconds = |link: usize, bytes: f64| bytes / self.bandwidth[link];
        let mut best = Optimal {
            seconds: 0.0,
            bound_seconds: 0.0,
            link_bytes: core.forced.iter().map(|&bytes| bytes as f64).collect(),
            shares: vec![0.0; self.bandwidth.len()],
        };
        // Links without a choice, and the best that can be done with the others, have nothing to do with each other.
        let busiest = |links: &mut dyn Iterator<Item = (usize, f64)>| {
            let better = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
            links.reduce(better).unwrap_or((0, 0.0))
        };
        let forced =
            || core.forced.iter().enumerate().map(|(link, &bytes)| (link, seconds(link, bytes as f64)));
        let (_, forced_seconds) = busiest(&mut forced());
        if forced_seconds > 0.0 {
            let equals: Vec<usize> =
                forced().filter(|link| is_same(link.1, forced_seconds)).map(|link| link.0).collect();
            equals.iter().for_each(|&link| best.shares[link] = 1.0 / equals.len() as f64);
        }
        (best.seconds, best.bound_seconds) = (forced_seconds, forced_seconds);
        if core.stars.is_empty() {
            return best;
        }
        let routed = core.arcs.iter().map(|arc| (arc.link, seconds(arc.link, fixed[arc.link] as f64)));
        let (_, routed_seconds) = busiest(&mut routed.into_iter());
        // Solvers are exact in units of about the optimum, of which the machine's own routes may take thousands: so what is not
        // solved exactly is solved again in the time that was found. The machine's own routes are a routing, too.
        let mut bytes: Vec<f64> = core.arcs.iter().map(|arc| fixed[arc.link] as f64).collect();
        let (mut core_seconds, mut bound_seconds) = (routed_seconds, 0.0);
        let mut prices = Vec::new();
        for _ in 0..PASSES {
            let flow = program::solve(core, &self.bandwidth, core_seconds);
            let found = paths::carry(core, &flow.flows);
            let times = core.arcs.iter().zip(&found).map(|(arc, &bytes)| seconds(arc.link, bytes));
            let found_seconds = times.fold(0.0, f64::max);
            if found_seconds < core_seconds {
                (bytes, core_seconds) = (found, found_seconds);
            }
            let bound = paths::bound(core, &self.bandwidth, &flow.prices);
            if prices.is_empty() || bound > bound_seconds {
                (prices, bound_seconds) = (flow.prices, bound);
            }
            if core_seconds <= bound_seconds * (1.0 + TOLERANCE) {
                break;
            }
        }
        // By shortest ways, the machine's own routes may be better than what the prices say.
        let bound_seconds = bound_seconds.min(core_seconds);
        for (arc, bytes) in core.arcs.iter().zip(bytes) {
            best.link_bytes[arc.link] = bytes;
        }
        // Links of both kinds that are as busy share the price.
        let of_core = match is_same(core_seconds, forced_seconds) {
            true => 0.5,
            false => f64::from(u8::from(core_seconds > forced_seconds)),
        };
        if of_core > 0.0 {
            best.shares.iter_mut().for_each(|share| *share *= 1.0 - of_core);
            let worth = |(arc, price): (&wiring::Arc, &f64)| price * self.bandwidth[arc.link];
            let sum: f64 = core.arcs.iter().zip(&prices).map(worth).sum();
            for pair in core.arcs.iter().zip(&prices).filter(|_| sum > 0.0) {
                best.shares[pair.0.link] = of_core * worth(pair) / sum;
            }
        }
        best.seconds = core_seconds.max(forced_seconds);
        best.bound_seconds = bound_seconds.max(forced_seconds);
        best
    }
}

/// Whether two times are the same but for what solvers leave.
fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.max(b)
}

/// How often a program is solved, at most.
const PASSES: usize = 3;

/// What a solver leaves of equal times, as a part of them.
const SAME: f64 = 1e-8;

#[cfg(test)]
mod tests;
