//! `qap:hops`, `qap:bandwidth`, `qap:rtt`: bytes times distances, the cost of the quadratic assignment problem.
//!
//! Equation 1 of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing,
//! 2014: c = sum over messages of w(u, v) d(place of u, place of v), where the distance d of two PEs is one of
//!
//! - *hops*: [`Topology::distance`], so that the cost is the hop-bytes;
//! - *bandwidth*: the seconds per byte of the slowest link of the route while every PE sends to every other PE: the
//!   largest n / b, where b is the bandwidth of a link and n the number of (sender, receiver) pairs whose routes cross
//!   the link. (The paper prints no formula; this one reproduces the reference results.);
//! - *rtt*: the round-trip time of a packet of 64 KiB, the sum of latency + 64 KiB / b over the links in both
//!   directions.
//!
//! A swap of two tasks changes only the terms of their own messages: [`QapSwaps`] takes O(degree).

use std::str::FromStr;

use equipoise_model::{Database, Topology, memory};

use super::commodities::{Commodities, Partner};
use super::routes::Routes;
use super::swaps::{SwapCost, Worth};
use equipoise_model::fault::{Classified, Fault};

/// Size of the packet of the round-trip time.
const PACKET_BYTES: f64 = 65_536.0;

/// The maximum number of PEs for which a table of distances is kept, at 8 bytes per pair.
pub const MAX_PES: usize = 1 << 13;

/// The maximum number of links that are followed to compute congestion or distances, summed over the routes of all
/// pairs of PEs. (At this size, that takes seconds.)
pub const MAX_FOLLOWED: u64 = 1 << 30;

/// Why distances are unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// A table of distances would take too much memory.
    #[error("a table of distances has at most {MAX_PES} PEs, but the machine has {pes}")]
    Pes {
        /// PEs of the machine.
        pes: usize,
    },
    /// There is not enough memory for a table of distances: the sentence of [`memory::check`].
    #[error("{0}")]
    Memory(String),
    /// Following all routes would take too long.
    #[error("the routes between all pairs of {pes} PEs have more than {MAX_FOLLOWED} links")]
    Routes {
        /// PEs of the machine.
        pes: usize,
    },
}

impl Classified for TooLarge {
    fn fault(&self) -> Fault {
        Fault::Usage
    }
}

/// The distance between two PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Hops, or the machine's own definition of distance.
    Hops,
    /// Seconds per byte of the slowest link of the route when all PEs send to all others.
    Bandwidth,
    /// Round-trip seconds of a packet.
    Rtt,
}

impl FromStr for Metric {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "hops" => Ok(Metric::Hops),
            "bandwidth" => Ok(Metric::Bandwidth),
            "rtt" => Ok(Metric::Rtt),
            _ => Err("expected `hops`, `bandwidth` or `rtt`"),
        }
    }
}

/// The distances between all PEs of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    pes: usize,
    /// From `a` to `b` at `a * pes + b`.
    between: Vec<f64>,
}

impl Distances {
    /// The distances by `metric`. Follows one route per pair of PEs, except for hops.
    ///
    /// # Errors
    /// When the machine is too large for a table, or for following all routes. [`cost`] needs no table.
    pub fn of(routes: &Routes, metric: Metric) -> Result<Self, TooLarge> {
        let machine = routes.machine();
        let pes = machine.pes();
        if pes > MAX_PES {
            return Err(TooLarge::Pes { pes });
        }
        let what = format!("a table of distances between {pes} PEs");
        memory::check(8 * (pes as u64).pow(2), &what, "use a smaller machine").map_err(TooLarge::Memory)?;
        let mut between = vec![0.0f64; pes * pes];
        match metric {
            Metric::Hops => {
                let mut hops = vec![0; pes];
                for (from, row) in between.chunks_exact_mut(pes).enumerate() {
                    machine.distances_from(from, &mut hops);
                    row.iter_mut().zip(&hops).for_each(|(distance, &hops)| *distance = f64::from(hops));
                }
            }
            Metric::Bandwidth => {
                let seconds = congested_seconds_per_byte(routes)?;
                follow_all(routes, |pair, link| between[pair] = between[pair].max(seconds[link]))?;
            }
            Metric::Rtt => {
                let seconds: Vec<f64> = routes.links().map(|link| packet_seconds(machine, link)).collect();
                follow_all(routes, |pair, link| between[pair] += seconds[link])?;
                for a in 0..pes {
                    for b in a + 1..pes {
                        let both_ways = between[a * pes + b] + between[b * pes + a];
                        (between[a * pes + b], between[b * pes + a]) = (both_ways, both_ways);
                    }
                }
            }
        }
        Ok(Distances { pes, between })
    }

    /// The distance from PE `a` to PE `b`.
    pub fn between(&self, a: u32, b: u32) -> f64 {
        self.between[a as usize * self.pes + b as usize]
    }
}

/// Calls `see` with the pair and the link for every link of every route; the pair from `a` to `b` is `a * pes + b`.
fn follow_all(routes: &Routes, mut see: impl FnMut(usize, usize)) -> Result<(), TooLarge> {
    let pes = routes.machine().pes();
    let (mut buffer, mut followed) = (Vec::new(), 0u64);
    for from in 0..pes {
        for to in 0..pes {
            routes.follow(from as u32, to as u32, &mut buffer, |link| {
                followed += 1;
                see(from * pes + to, link);
            });
        }
        // Stop early if the number of links, extrapolated from the routes so far, exceeds 4 times the limit.
        let expected = followed / (from as u64 + 1) * pes as u64;
        if followed > MAX_FOLLOWED || expected > 4 * MAX_FOLLOWED {
            return Err(TooLarge::Routes { pes });
        }
    }
    Ok(())
}

/// By link: the seconds to carry one byte for each pair of PEs whose route crosses the link.
fn congested_seconds_per_byte(routes: &Routes) -> Result<Vec<f64>, TooLarge> {
    let pes = routes.machine().pes();
    if pes > MAX_PES {
        return Err(TooLarge::Pes { pes });
    }
    let mut pairs = vec![0u64; routes.links().len()];
    follow_all(routes, |_, link| pairs[link] += 1)?;
    Ok(pairs.iter().zip(routes.seconds_per_byte()).map(|(&pairs, seconds)| pairs as f64 * seconds).collect())
}

/// The seconds that the packet takes over one link.
fn packet_seconds(machine: &dyn Topology, link: usize) -> f64 {
    let link = machine.link(link);
    link.latency_seconds + PACKET_BYTES / link.bandwidth
}

/// The sum of terms; 0 for no terms, where `Iterator::sum` would return -0.
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    terms.fold(0.0, |sum, term| sum + term)
}

/// The cost of a placement: bytes times distances, in byte hops, seconds, or byte seconds, depending on the metric.
///
/// # Errors
/// For [`Metric::Bandwidth`], which follows the routes between all pairs of PEs, on machines that are too large.
///
/// # Panics
/// When `placement` is shorter than the objects, or a PE is unknown.
pub fn cost(
    database: &Database,
    machine: &dyn Topology,
    placement: &[u32],
    metric: Metric,
) -> Result<f64, TooLarge> {
    let commodities = Commodities::of(database);
    let places = commodities.places(placement);
    let remote = commodities.sent().map(|(from, to, bytes)| (places[from], places[to], bytes as f64));
    let mut route = Vec::new();
    Ok(match metric {
        Metric::Hops => {
            sum(remote.map(|(a, b, bytes)| bytes * f64::from(machine.distance(a as usize, b as usize))))
        }
        Metric::Bandwidth => {
            let routes = Routes::of(machine);
            let seconds = congested_seconds_per_byte(&routes)?;
            let mut longest = |a, b| {
                let mut most = 0.0f64;
                routes.follow(a, b, &mut route, |link| most = most.max(seconds[link]));
                most
            };
            sum(remote.map(|(a, b, bytes)| bytes * longest(a, b)))
        }
        Metric::Rtt => {
            let mut both_ways = |a: u32, b: u32| {
                route.clear();
                machine.route(a as usize, b as usize, &mut route);
                machine.route(b as usize, a as usize, &mut route);
                route.iter().fold(0.0, |sum, &link| sum + packet_seconds(machine, link))
            };
            sum(remote.map(|(a, b, bytes)| bytes * both_ways(a, b)))
        }
    })
}

/// The cost of a one-to-one mapping, updated when two tasks swap.
#[derive(Clone)]
pub struct QapSwaps<'a> {
    commodities: &'a Commodities,
    distances: &'a Distances,
    /// The PE of every vertex.
    places: Vec<u32>,
    cost: f64,
}

impl<'a> QapSwaps<'a> {
    /// The mapping of task `i` to `places[i]`.
    pub fn new(commodities: &'a Commodities, distances: &'a Distances, places: &[u32]) -> Self {
        let mut swaps = QapSwaps { commodities, distances, places: Vec::new(), cost: 0.0 };
        swaps.restart(places);
        swaps
    }

    /// The change of the cost, without messages exchanged with `other`, if `task` moves to PE `to`.
    fn change(&self, task: usize, to: u32, other: Option<usize>) -> f64 {
        let from = self.places[task];
        let term = |&Partner { vertex, sent_bytes, received_bytes }: &Partner| {
            let there = self.places[vertex as usize];
            let out = self.distances.between(to, there) - self.distances.between(from, there);
            let back = self.distances.between(there, to) - self.distances.between(there, from);
            sent_bytes as f64 * out + received_bytes as f64 * back
        };
        let partners = self.commodities.partners(task).iter();
        sum(partners.filter(|partner| other != Some(partner.vertex as usize)).map(term))
    }
}

impl SwapCost for QapSwaps<'_> {
    fn restart(&mut self, places: &[u32]) {
        self.places = self.commodities.places(places);
        let sent = self.commodities.sent();
        let term = |(a, b, bytes): (usize, usize, u64)| {
            bytes as f64 * self.distances.between(self.places[a], self.places[b])
        };
        self.cost = sum(sent.map(term));
    }

    fn worth(&self) -> Worth {
        Worth { cost: self.cost, tie: 0.0 }
    }

    fn try_swap(&mut self, [a, b]: [Option<usize>; 2], [p, q]: [u32; 2]) -> Option<Worth> {
        let mut change = 0.0;
        for (task, to, other) in [(a, q, b), (b, p, a)] {
            change += task.map_or(0.0, |task| self.change(task, to, other));
        }
        if let (Some(a), Some(b)) = (a, b) {
            // The messages between the two tasks reverse their direction.
            let between = self.commodities.partners(a);
            if let Ok(at) = between.binary_search_by_key(&(b as u32), |partner| partner.vertex) {
                let Partner { sent_bytes, received_bytes, .. } = between[at];
                let turned = self.distances.between(q, p) - self.distances.between(p, q);
                change += (sent_bytes as f64 - received_bytes as f64) * turned;
            }
        }
        Some(Worth { cost: self.cost + change, tie: 0.0 }).filter(|worth| worth.is_better(self.worth()))
    }

    fn keep(&mut self, tasks: [Option<usize>; 2], [p, q]: [u32; 2], worth: Worth) {
        for (task, to) in tasks.into_iter().zip([q, p]) {
            task.into_iter().for_each(|task| self.places[task] = to);
        }
        self.cost = worth.cost;
    }
}
