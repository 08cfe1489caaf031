//! `mcf:optimal`: the time of the busiest link when every message is divided optimally among all paths.
//!
//! Equation 7 of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing, 2014.
//! That program has exponentially many variables, one for each vertex of the polyhedron of routings. The arc-flow program
//! (T. C. Hu, Integer Programming and Network Flows, 1970), aggregated by source, has the same optimum: with f(s, a) the
//! bytes on link a that come from s,
//!
//! ```text
//! minimise T  with  sum over s of f(s, a) <= b(a) T                       for every link a
//!                   sum of f(s, .) into v less out of v = bytes from s to v   for every s and v other than s
//!                   f >= 0
//! ```
//!
//! Vertices that are connected by a single cable leave no choice of routes. They are removed first (`two_core`). This
//! solves trees completely and makes the remaining program small. An interior-point solver, built with the cargo
//! feature `lp`, solves that program in numbers near 1 (`program`). Its solution is only nearly feasible, so missing
//! bytes are added along shortest paths (`paths`). Its shadow prices give a lower bound by weak duality: for any prices
//! p of links, messages sent by the cheapest paths cost at most T times the sum of p(a) b(a). The machine's own routes
//! are always a candidate, so the result never exceeds their cost. The bound limits the distance of the result from the
//! optimum.
//!
//! Networks with adaptive routing rarely take detours. With [`Ways::Shortest`], f(s, a) is 0 unless the end of a is
//! farther from s than its start by exactly the length of a, so that every path is a shortest path.
//!
//! Prices show where more bandwidth saves time: T falls if the bandwidths of all links with a price rise together. If
//! the bandwidth of a single link rises, T falls at most by the share of that link ([`Purchases`]). Prices also bound
//! the cost of other mappings, so that a search need not solve a program for each swap ([`OptimalSwaps`]).

use equipoise_model::{Database, Topology};

use super::commodities::Commodities;
use super::unsolved::Unsolved;
use super::wiring::Wiring;

mod paths;
#[cfg(feature = "lp")]
mod program;
mod purchases;
mod stars;
mod swaps;
mod two_core;

pub use purchases::{Purchase, Purchases};
pub use swaps::OptimalSwaps;
use two_core::{Arc, Core, Flow};

/// The largest relative distance of a result from the optimum. (Most results are a thousand times closer.)
pub const TOLERANCE: f64 = 1e-6;

/// The paths that bytes may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// Any path, as in equation 7.
    Any,
    /// The shortest paths by the lengths of links: the paths of packets with minimal adaptive routing if the machine offers
    /// all of them ([`Topology::onward`]). Platforms, which have one route per pair, and dragonflies where two global links
    /// are shorter than one do not. Routing all bytes by the machine's own routes is allowed, too.
    Shortest,
}

/// The best routing of a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimal {
    /// The time of the busiest link.
    pub seconds: f64,
    /// Lower bound for all routings by these paths; at most `seconds`, and at least `seconds` less [`TOLERANCE`].
    pub bound_seconds: f64,
    /// The bytes over every link; links that are not busy may carry bytes that return to a vertex they have left.
    pub link_bytes: Vec<f64>,
    /// By link: its share of the shadow price of all bandwidth. The shares add up to 1, or are all 0 if nothing is
    /// sent. If the bandwidth of a link rises by 1 %, `seconds` falls by at most its share of 1 %; by less, often by
    /// nothing, if other links become the busiest. If the prices are not unique, these are the shares of one solution.
    pub shares: Vec<f64>,
}

/// The best routing when object `i` of `database` is on PE `placement[i]`.
///
/// # Errors
/// When the program or the machine is too large, successive links of a route do not meet, or the solver fails.
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

/// Finds best routings on one machine.
pub struct Router<'a> {
    machine: &'a dyn Topology,
    wiring: Wiring,
    /// By link, in bytes per second.
    bandwidth: Vec<f64>,
    ways: Ways,
    solver: Solver,
    /// Whether trees are removed first.
    removes_trees: bool,
}

/// Solves the program of a core, given the bandwidths by link number, and the seconds of some routing.
type Solver = fn(&Core, &[f64], f64) -> Flow;

/// Whether this build has a solver of linear programs.
pub(crate) const IS_BUILT: bool = cfg!(feature = "lp");

/// The solver of this build, if it has one.
fn solver() -> Result<Solver, Unsolved> {
    #[cfg(feature = "lp")]
    return Ok(program::solve);
    #[cfg(not(feature = "lp"))]
    Err(Unsolved::NotBuilt)
}

impl<'a> Router<'a> {
    /// A router for routings by these paths.
    ///
    /// # Errors
    /// When the machine has more than [`MAX_LINKS`](super::unsolved::MAX_LINKS) links, or the build has no solver.
    pub fn new(machine: &'a dyn Topology, ways: Ways) -> Result<Self, Unsolved> {
        let (solver, wiring) = (solver()?, Wiring::of(machine)?);
        let bandwidth = (0..machine.links()).map(|link| machine.link(link).bandwidth).collect();
        Ok(Router { machine, wiring, bandwidth, ways, solver, removes_trees: true })
    }

    /// The best routing when vertex `i` is on PE `places[i]`.
    ///
    /// # Errors
    /// As [`solve`].
    pub fn solve(&self, commodities: &Commodities, places: &[u32]) -> Result<Optimal, Unsolved> {
        let sent = || commodities.sent().map(|(from, to, bytes)| (places[from], places[to], bytes));
        let fixed = self.wiring.carry(self.machine, sent())?;
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
        Core::of(machine, sent, self.ways, self.removes_trees)
    }

    /// The best routing that the solver finds; `fixed` is the bytes over every link by the machine's own routes.
    fn best(&self, core: &Core, fixed: &[u64]) -> Optimal {
        // Links with forced traffic, and the links of the core, are independent of each other.
        let forced =
            || core.forced.iter().enumerate().map(|(link, &bytes)| (link, self.seconds(link, bytes as f64)));
        let forced_seconds = forced().map(|link| link.1).fold(0.0, f64::max);
        let mut best = Optimal {
            seconds: forced_seconds,
            bound_seconds: forced_seconds,
            link_bytes: core.forced.iter().map(|&bytes| bytes as f64).collect(),
            shares: vec![0.0; self.bandwidth.len()],
        };
        if forced_seconds > 0.0 {
            let equals: Vec<usize> =
                forced().filter(|link| are_equal(link.1, forced_seconds)).map(|link| link.0).collect();
            equals.iter().for_each(|&link| best.shares[link] = 1.0 / equals.len() as f64);
        }
        if core.stars.is_empty() {
            return best;
        }
        let found = self.best_core_routing(core, fixed);
        for (arc, bytes) in core.arcs.iter().zip(found.arc_bytes) {
            best.link_bytes[arc.link] = bytes;
        }
        // If forced links and core links are equally busy, both have a share of the price.
        let core_share = match are_equal(found.seconds, forced_seconds) {
            true => 0.5,
            false => f64::from(u8::from(found.seconds > forced_seconds)),
        };
        if core_share > 0.0 {
            best.shares.iter_mut().for_each(|share| *share *= 1.0 - core_share);
            let worth = |(arc, price): (&Arc, &f64)| price * self.bandwidth[arc.link];
            let sum: f64 = core.arcs.iter().zip(&found.prices).map(worth).sum();
            for pair in core.arcs.iter().zip(&found.prices).filter(|_| sum > 0.0) {
                best.shares[pair.0.link] = core_share * worth(pair) / sum;
            }
        }
        best.seconds = found.seconds.max(forced_seconds);
        best.bound_seconds = found.bound_seconds.max(forced_seconds);
        best
    }

    /// The best routing of a core with demands.
    fn best_core_routing(&self, core: &Core, fixed: &[u64]) -> CoreRouting {
        let busiest = |arc_bytes: &[f64]| {
            let times = core.arcs.iter().zip(arc_bytes).map(|(arc, &bytes)| self.seconds(arc.link, bytes));
            times.fold(0.0, f64::max)
        };
        // The machine's own routes are one of the routings.
        let arc_bytes: Vec<f64> = core.arcs.iter().map(|arc| fixed[arc.link] as f64).collect();
        let seconds = busiest(&arc_bytes);
        let mut best = CoreRouting { seconds, bound_seconds: 0.0, arc_bytes, prices: Vec::new() };
        // Solvers are accurate if the unit of time is near the optimum. The first unit is the time of the machine's own
        // routes, which may be a thousand times longer. So an inaccurate solution is recomputed in units of the time
        // found.
        for _ in 0..PASSES {
            let Flow { flows, prices } = (self.solver)(core, &self.bandwidth, best.seconds);
            let arc_bytes = paths::carry(core, &flows);
            let seconds = busiest(&arc_bytes);
            if seconds < best.seconds {
                (best.arc_bytes, best.seconds) = (arc_bytes, seconds);
            }
            let bound_seconds = paths::bound(core, &self.bandwidth, &prices);
            if best.prices.is_empty() || bound_seconds > best.bound_seconds {
                (best.prices, best.bound_seconds) = (prices, bound_seconds);
            }
            if best.seconds <= best.bound_seconds * (1.0 + TOLERANCE) {
                break;
            }
        }
        // With shortest paths, the machine's own routes may take less time than the bound, which is for shortest paths
        // only.
        best.bound_seconds = best.bound_seconds.min(best.seconds);
        best
    }

    /// The seconds that a link takes for `bytes`.
    fn seconds(&self, link: usize, bytes: f64) -> f64 {
        bytes / self.bandwidth[link]
    }
}

/// The best routing of a core.
struct CoreRouting {
    seconds: f64,
    bound_seconds: f64,
    /// By arc.
    arc_bytes: Vec<f64>,
    prices: Vec<f64>,
}

/// Whether two times are equal up to the accuracy of solvers.
fn are_equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= TIME_ACCURACY * a.max(b)
}

/// The maximum number of times that a program is solved.
const PASSES: usize = 3;

/// Relative difference between equal times, due to the accuracy of solvers.
const TIME_ACCURACY: f64 = 1e-8;

#[cfg(all(test, feature = "lp"))]
mod tests;
