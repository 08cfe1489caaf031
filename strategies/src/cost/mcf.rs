//! `mcf`: the time of the busiest link, which is the communication time of a multicommodity flow on given routes.
//!
//! Equations 3 to 5 of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area
//! computing, 2014: link (i, j) carries v bytes at b bytes per second and takes t = v / b; communication takes as
//! long as the link for which that is most. Here the routes are the machine's own; [`super::mcf_optimal`] is the
//! case where they may be chosen.
//!
//! When two tasks change places, only links on the routes of their messages carry something else: [`McfSwaps`]
//! updates these. Volumes are integers, so nothing is rounded but the quotient. The busiest of the other links is
//! found in a tree of winners.
//!
//! The busiest link alone says nothing about most swaps, which do not touch it. The sum over all links of t^p does:
//! it is dominated by the busiest for large p and still sees the others. [`Aim`] says which decides, and which only
//! between equals.

use super::commodities::{Commodities, Partner};
use super::link_loads;
use super::routes::Routes;
use super::swaps::{SwapCost, Worth};
use crate::{Database, Topology};

mod busiest;

use busiest::Busiest;

/// By link: the seconds it takes to carry what it has to, when object `i` is on PE `placement[i]` (equation 3).
///
/// # Panics
/// When `placement` is shorter than the objects, or a PE is unknown.
pub fn link_seconds(database: &Database, machine: &dyn Topology, placement: &[u32]) -> Vec<f64> {
    let loads = link_loads(database, machine, placement).into_iter().enumerate();
    loads.map(|(link, bytes)| bytes as f64 / machine.link(link).bandwidth).collect()
}

/// The seconds of the busiest link (equation 5).
///
/// # Panics
/// As [`link_seconds`].
pub fn cost(database: &Database, machine: &dyn Topology, placement: &[u32]) -> f64 {
    link_seconds(database, machine, placement).into_iter().fold(0.0, f64::max)
}

/// What makes a mapping better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The busiest link, and nothing else.
    Busiest,
    /// The busiest link, then the sum of the p-th powers of all links' times.
    BusiestThenPower(i32),
    /// That sum, then the busiest link.
    PowerThenBusiest(i32),
}

impl Aim {
    fn power(self) -> Option<i32> {
        match self {
            Aim::Busiest => None,
            Aim::BusiestThenPower(power) | Aim::PowerThenBusiest(power) => Some(power),
        }
    }
}

/// After so many swaps the sum of powers is computed anew, so that rounding does not pile up.
const RENEW: u32 = 256;

/// A sum of powers that falls to less than this part of itself is computed anew, too.
const CANCELLED: f64 = 1e-3;

/// The cost of a one-to-one mapping, updated when two tasks change places.
#[derive(Clone)]
pub struct McfSwaps<'a> {
    commodities: &'a Commodities,
    routes: &'a Routes<'a>,
    seconds_per_byte: &'a [f64],
    aim: Aim,
    /// The PE of every vertex.
    places: Vec<u32>,
    /// The bytes over every link.
    loads: Vec<u64>,
    busiest: Busiest,
    /// The sum of powers of the times over `unit_seconds`.
    power: f64,
    /// A time near those of the links, so that powers neither vanish nor overflow.
    unit_seconds: f64,
    kept: u32,
    /// What the swap that was tried last changes: links without repetition, and by link how much.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    changes: Vec<i64>,
    buffer: Vec<usize>,
}

impl<'a> McfSwaps<'a> {
    /// The mapping of task `i` to `places[i]`; `seconds_per_byte` are those of the routes' links.
    pub fn new(
        commodities: &'a Commodities,
        routes: &'a Routes<'a>,
        seconds_per_byte: &'a [f64],
        aim: Aim,
        places: &[u32],
    ) -> Self {
        let links = seconds_per_byte.len();
        let mut swaps = McfSwaps {
            commodities,
            routes,
            seconds_per_byte,
            aim,
            places: Vec::new(),
            loads: vec![0; links],
            busiest: Busiest::new(links),
            power: 0.0,
            unit_seconds: 1.0,
            kept: 0,
            touched: Vec::new(),
            is_touched: vec![false; links],
            changes: vec![0; links],
            buffer: Vec::new(),
        };
        swaps.restart(places);
        swaps
    }

    /// Makes something else better; the mapping stays.
    pub fn aim(&mut self, aim: Aim) {
        self.aim = aim;
        self.renew();
    }

    /// The PE of every task.
    pub fn places(&self) -> &[u32] {
        &self.places[..self.commodities.tasks]
    }

    /// The bytes over every link.
    pub fn loads(&self) -> &[u64] {
        &self.loads
    }

    /// The link that takes longest, the lowest of several.
    pub fn busiest_link(&self) -> usize {
        self.busiest.winner()
    }

    /// The tasks whose messages cross that link, in ascending order.
    pub fn users(&mut self, link: usize, users: &mut Vec<usize>) {
        users.clear();
        for (from, to, _) in self.commodities.sent() {
            let mut crosses = false;
            let (a, b) = (self.places[from], self.places[to]);
            self.routes.follow(a, b, &mut self.buffer, |crossed| crosses |= crossed == link);
            if crosses {
                users.extend([from, to].into_iter().filter(|&vertex| vertex < self.commodities.tasks));
            }
        }
        users.sort_unstable();
        users.dedup();
    }

    fn seconds(&self, link: usize, bytes: u64) -> f64 {
        bytes as f64 * self.seconds_per_byte[link]
    }

    /// Computes the sum of powers anew.
    fn renew(&mut self) {
        self.kept = 0;
        self.power = 0.0;
        let Some(power) = self.aim.power() else { return };
        if self.busiest.seconds() > 0.0 {
            self.unit_seconds = self.busiest.seconds();
        }
        let terms = self.loads.iter().zip(self.seconds_per_byte);
        self.power =
            terms.map(|(&bytes, seconds)| (bytes as f64 * seconds / self.unit_seconds).powi(power)).sum();
    }

    fn worth_of(&self, busiest: f64, power: f64) -> Worth {
        // In seconds again, as the unit changes.
        let seconds = |power: f64, of: i32| self.unit_seconds * power.max(0.0).powf(1.0 / f64::from(of));
        match self.aim {
            Aim::Busiest => Worth { cost: busiest, tie: 0.0 },
            Aim::BusiestThenPower(of) => Worth { cost: busiest, tie: seconds(power, of) },
            Aim::PowerThenBusiest(of) => Worth { cost: seconds(power, of), tie: busiest },
        }
    }

    /// Adds `bytes` times `sign` to the links between two PEs.
    fn add(&mut self, from: u32, to: u32, bytes: u64, sign: i64) {
        // Modulo 2^64, as loads are: what is added is taken off again.
        let change = sign.wrapping_mul(bytes as i64);
        let Self { touched, is_touched, changes, .. } = self;
        self.routes.follow(from, to, &mut self.buffer, |link| {
            if !is_touched[link] {
                is_touched[link] = true;
                touched.push(link as u32);
            }
            changes[link] = changes[link].wrapping_add(change);
        });
    }

    /// Puts `task` from one PE on another; its partner `swapped`, if it has one, is on `from` then.
    fn shift(&mut self, task: usize, from: u32, to: u32, swapped: Option<usize>, is_first: bool) {
        let commodities = self.commodities;
        for &Partner { vertex, sent_bytes, received_bytes } in commodities.partners(task) {
            let there = self.places[vertex as usize];
            let then = if swapped == Some(vertex as usize) {
                // What the two send each other is seen from both, and changes once.
                if !is_first {
                    continue;
                }
                from
            } else {
                there
            };
            if sent_bytes > 0 {
                self.add(from, there, sent_bytes, -1);
                self.add(to, then, sent_bytes, 1);
            }
            if received_bytes > 0 {
                self.add(there, from, received_bytes, -1);
                self.add(then, to, received_bytes, 1);
            }
        }
    }

    /// Forgets the swap that was tried last.
    fn forget(&mut self) {
        for link in self.touched.drain(..) {
            self.is_touched[link as usize] = false;
            self.changes[link as usize] = 0;
        }
    }
}

impl SwapCost for McfSwaps<'_> {
    fn restart(&mut self, places: &[u32]) {
        self.forget();
        self.places = self.commodities.places(places);
        self.loads.fill(0);
        for (from, to, bytes) in self.commodities.sent() {
            let Self { loads, buffer, .. } = self;
            self.routes.follow(self.places[from], self.places[to], buffer, |link| loads[link] += bytes);
        }
        let seconds =
            self.loads.iter().zip(self.seconds_per_byte).map(|(&bytes, seconds)| bytes as f64 * seconds);
        self.busiest.fill(seconds);
        self.renew();
    }

    fn worth(&self) -> Worth {
        self.worth_of(self.busiest.seconds(), self.power)
    }

    fn try_swap(&mut self, [a, b]: [Option<usize>; 2], [p, q]: [u32; 2]) -> Worth {
        self.forget();
        if let Some(a) = a {
            self.shift(a, p, q, b, true);
        }
        if let Some(b) = b {
            self.shift(b, q, p, a, a.is_none());
        }
        let (mut most, mut power) = (0.0f64, self.power);
        for &link in &self.touched {
            let link = link as usize;
            let before = self.loads[link];
            let after = before.wrapping_add_signed(self.changes[link]);
            let seconds = self.seconds(link, after);
            most = most.max(seconds);
            if let Some(of) = self.aim.power().filter(|_| before != after) {
                power += (seconds / self.unit_seconds).powi(of);
                power -= (self.seconds(link, before) / self.unit_seconds).powi(of);
            }
        }
        let most = self.busiest.except(&self.is_touched, most);
        if let Some(of) = self.aim.power().filter(|_| power < CANCELLED * self.power) {
            // What is left of a difference of sums so much larger is their rounding.
            let terms = self.loads.iter().zip(&self.changes).zip(self.seconds_per_byte);
            power = terms
                .map(|((&load, &change), seconds)| load.wrapping_add_signed(change) as f64 * seconds)
                .map(|seconds| (seconds / self.unit_seconds).powi(of))
                .sum();
        }
        self.worth_of(most, power)
    }

    fn keep(&mut self, tasks: [Option<usize>; 2], [p, q]: [u32; 2], worth: Worth) {
        for (task, to) in tasks.into_iter().zip([q, p]) {
            task.into_iter().for_each(|task| self.places[task] = to);
        }
        for &link in &self.touched {
            let link = link as usize;
            self.loads[link] = self.loads[link].wrapping_add_signed(self.changes[link]);
            self.busiest.set(link, self.loads[link] as f64 * self.seconds_per_byte[link]);
        }
        self.forget();
        self.kept += 1;
        let (of, seconds) = match self.aim {
            Aim::Busiest => return,
            Aim::BusiestThenPower(of) => (of, worth.tie),
            Aim::PowerThenBusiest(of) => (of, worth.cost),
        };
        self.power = (seconds / self.unit_seconds).powi(of);
        // A unit that has become too large for the times would let their powers vanish.
        if self.kept >= RENEW || self.power < CANCELLED {
            self.renew();
        }
    }
}

#[cfg(test)]
mod tests;
