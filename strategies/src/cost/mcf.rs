//! `mcf`: the time of the busiest link, which is the communication time of a multicommodity flow on given routes.
//!
//! Equations 3 to 5 of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area
//! computing, 2014: link (i, j) carries v bytes at b bytes per second and takes t = v / b; the communication time is the
//! largest t of all links. Here the routes are the machine's own; in [`super::mcf_optimal`] they may be chosen.
//!
//! When two tasks swap, only the loads of links on the routes of their messages change: [`McfSwaps`] updates these. Volumes
//! are integers, so only the quotient is rounded. The busiest of the other links is found in a winner tree. Most swaps are
//! no improvement and are rejected early: if only the busiest link counts, a swap of tasks that do not use it cannot improve
//! it; if the sum of powers (below) counts first, the busiest link need not be found when the sum is larger.
//!
//! Most swaps do not touch the busiest link, so its time alone does not rank them. The sum over all links of t^p does: for
//! large p the busiest link dominates it, but all other links count, too. [`Aim`] selects which of the two decides, and
//! which one only breaks ties.

use equipoise_model::{Database, Topology};

use super::commodities::{Commodities, Partner};
use super::link_loads;
use super::routes::Routes;
use super::swaps::{SwapCost, Worth};

mod busiest;
mod crossing;

use busiest::Busiest;
use crossing::Crossing;

/// By link: its time in seconds when object `i` is on PE `placement[i]` (equation 3).
///
/// # Panics
/// When `placement` is shorter than the objects, or a PE is unknown.
pub fn link_seconds(database: &Database, machine: &dyn Topology, placement: &[u32]) -> Vec<f64> {
    seconds_of(machine, &link_loads(database, machine, placement)).collect()
}

/// By link: its time in seconds when `bytes` cross it.
pub fn seconds_of(machine: &dyn Topology, bytes: &[u64]) -> impl Iterator<Item = f64> {
    // Most links of a large machine are idle, and their data need not be asked for.
    let seconds = |(link, &bytes)| if bytes == 0 { 0.0 } else { bytes as f64 / machine.link(link).bandwidth };
    bytes.iter().enumerate().map(seconds)
}

/// The seconds of the busiest link (equation 5).
///
/// # Panics
/// As [`link_seconds`].
pub fn cost(database: &Database, machine: &dyn Topology, placement: &[u32]) -> f64 {
    link_seconds(database, machine, placement).into_iter().fold(0.0, f64::max)
}

/// The objective of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The busiest link only.
    Busiest,
    /// The busiest link; ties are broken by the sum of the p-th powers of all links' times.
    BusiestThenPower(i32),
    /// The sum of the p-th powers; ties are broken by the busiest link.
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

/// The number of swaps after which the sum of powers is recomputed, so that rounding errors do not accumulate.
const RECOMPUTE_AFTER: u32 = 256;

/// A sum of powers that has fallen to less than this fraction since its last recomputation is recomputed, too.
const CANCELLED: f64 = 1e-3;

/// Relative differences of sums above this are not due to rounding.
const SIGNIFICANT: f64 = 1e-9;

/// The cost of a one-to-one mapping, updated when two tasks swap.
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
    /// The sum of powers of the times over `unit_seconds`, and its terms by link.
    power: f64,
    powers: Vec<f64>,
    /// A time near those of the links, so that powers neither underflow nor overflow.
    unit_seconds: f64,
    kept: u32,
    worth: Worth,
    /// The users of every link. If only the busiest link counts: by vertex, whether the vertex uses that link.
    crossing: Crossing,
    uses_busiest: Vec<bool>,
    /// The changes by the swap tried last: links without repetition, and by link the change of its load.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    changes: Vec<i64>,
    buffer: Vec<usize>,
}

impl<'a> McfSwaps<'a> {
    /// The mapping of task `i` to `places[i]`; `seconds_per_byte` is by link of the routes.
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
            powers: vec![0.0; links],
            unit_seconds: 1.0,
            kept: 0,
            worth: Worth { cost: 0.0, tie: 0.0 },
            crossing: Crossing::default(),
            uses_busiest: Vec::new(),
            touched: Vec::new(),
            is_touched: vec![false; links],
            changes: vec![0; links],
            buffer: Vec::new(),
        };
        swaps.restart(places);
        swaps
    }

    /// Changes the objective; the mapping is unchanged.
    pub fn aim(&mut self, aim: Aim) {
        self.aim = aim;
        self.recompute();
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
    ///
    /// The first call looks at all messages; later swaps update the users of all links until the next restart.
    pub fn users(&mut self, link: usize, users: &mut Vec<usize>) {
        self.crossing.users((self.commodities, self.routes), &self.places, link, users);
        users.retain(|&vertex| vertex < self.commodities.tasks);
    }

    fn seconds(&self, link: usize, bytes: u64) -> f64 {
        bytes as f64 * self.seconds_per_byte[link]
    }

    /// The term of a link's time in the sum of powers.
    fn term(&self, seconds: f64, of: i32) -> f64 {
        (seconds / self.unit_seconds).powi(of)
    }

    /// Recomputes what swaps do not update, after a change of the mapping or of the objective.
    fn recompute(&mut self) {
        self.kept = 0;
        self.power = 0.0;
        if let Some(of) = self.aim.power() {
            if self.busiest.seconds() > 0.0 {
                self.unit_seconds = self.busiest.seconds();
            }
            for link in 0..self.loads.len() {
                self.powers[link] = self.term(self.seconds(link, self.loads[link]), of);
            }
            self.power = self.powers.iter().sum();
        }
        self.worth = self.worth_of(self.busiest.seconds(), self.power);
        self.mark_users();
    }

    /// Marks the users of the busiest link, if only that link counts.
    fn mark_users(&mut self) {
        if self.aim != Aim::Busiest {
            return;
        }
        let mut users = Vec::new();
        let busiest = self.busiest_link();
        self.crossing.users((self.commodities, self.routes), &self.places, busiest, &mut users);
        self.uses_busiest.clear();
        self.uses_busiest.resize(self.places.len(), false);
        users.into_iter().for_each(|vertex| self.uses_busiest[vertex] = true);
    }

    fn worth_of(&self, busiest: f64, power: f64) -> Worth {
        // Converted back to seconds, because the unit changes.
        let seconds = |power: f64, of: i32| self.unit_seconds * power.max(0.0).powf(1.0 / f64::from(of));
        match self.aim {
            Aim::Busiest => Worth { cost: busiest, tie: 0.0 },
            Aim::BusiestThenPower(of) => Worth { cost: busiest, tie: seconds(power, of) },
            Aim::PowerThenBusiest(of) => Worth { cost: seconds(power, of), tie: busiest },
        }
    }

    /// Adds `bytes` times `sign` to the links between two PEs.
    fn add(&mut self, from: u32, to: u32, bytes: u64, sign: i64) {
        // Modulo 2^64, like all loads here, so that every addition can be reversed exactly. The saturating sums of
        // `link_loads` cannot be reversed.
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

    /// Moves the traffic of `task` from one PE to another; `swapped` is the partner that moves to `from`, if any.
    fn shift(&mut self, task: usize, from: u32, to: u32, swapped: Option<usize>, is_first: bool) {
        let commodities = self.commodities;
        for &Partner { vertex, sent_bytes, received_bytes } in commodities.partners(task) {
            let there = self.places[vertex as usize];
            let then = if swapped == Some(vertex as usize) {
                // The traffic between both swapped tasks is listed at both, and must change only once.
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

    /// Discards the swap that was tried last.
    fn discard_trial(&mut self) {
        for link in self.touched.drain(..) {
            self.is_touched[link as usize] = false;
            self.changes[link as usize] = 0;
        }
    }

    /// The longest time of the links that the swap tried last touches, after that swap.
    fn most_touched(&self) -> f64 {
        let after = |&link: &u32| {
            let link = link as usize;
            self.seconds(link, self.loads[link].wrapping_add_signed(self.changes[link]))
        };
        self.touched.iter().map(after).fold(0.0, f64::max)
    }

    /// The sum of powers after the swap that was tried last.
    fn power_after(&self, of: i32) -> f64 {
        let after = |link: usize| self.loads[link].wrapping_add_signed(self.changes[link]);
        let mut power = self.power;
        for &link in &self.touched {
            let link = link as usize;
            if self.changes[link] != 0 {
                power += self.term(self.seconds(link, after(link)), of) - self.powers[link];
            }
        }
        if power < CANCELLED * self.power {
            // The difference of two much larger sums is dominated by their rounding error.
            power = (0..self.loads.len()).map(|link| self.term(self.seconds(link, after(link)), of)).sum();
        }
        power
    }
}

impl SwapCost for McfSwaps<'_> {
    fn restart(&mut self, places: &[u32]) {
        self.discard_trial();
        self.places = self.commodities.places(places);
        self.loads.fill(0);
        for (from, to, bytes) in self.commodities.sent() {
            let Self { loads, buffer, .. } = self;
            self.routes.follow(self.places[from], self.places[to], buffer, |link| {
                loads[link] = loads[link].wrapping_add(bytes);
            });
        }
        let seconds =
            self.loads.iter().zip(self.seconds_per_byte).map(|(&bytes, seconds)| bytes as f64 * seconds);
        self.busiest.fill(seconds);
        self.crossing.invalidate();
        self.recompute();
    }

    fn worth(&self) -> Worth {
        self.worth
    }

    fn try_swap(&mut self, [a, b]: [Option<usize>; 2], [p, q]: [u32; 2]) -> Option<Worth> {
        self.discard_trial();
        // A swap of tasks that do not use the busiest link leaves its time unchanged.
        let uses = |task: &usize| self.uses_busiest[*task];
        if self.aim == Aim::Busiest && ![a, b].iter().flatten().any(uses) {
            return None;
        }
        if let Some(a) = a {
            self.shift(a, p, q, b, true);
        }
        if let Some(b) = b {
            self.shift(b, q, p, a, a.is_none());
        }
        let worse = |then: f64, now: f64| then > now * (1.0 + SIGNIFICANT);
        let (most, power) = match self.aim {
            Aim::Busiest => (self.most_touched(), 0.0),
            Aim::BusiestThenPower(of) => {
                let most = self.most_touched();
                if worse(most, self.worth.cost) {
                    return None;
                }
                (most, self.power_after(of))
            }
            Aim::PowerThenBusiest(of) => {
                let power = self.power_after(of);
                if worse(power, self.power) {
                    return None;
                }
                (self.most_touched(), power)
            }
        };
        let most = self.busiest.except(&self.is_touched, most);
        Some(self.worth_of(most, power)).filter(|worth| worth.is_better(self.worth))
    }

    fn keep(&mut self, tasks: [Option<usize>; 2], [p, q]: [u32; 2], worth: Worth) {
        let messages = (self.commodities, self.routes);
        self.crossing.change(messages, &self.places, tasks, false);
        for (task, to) in tasks.into_iter().zip([q, p]) {
            task.into_iter().for_each(|task| self.places[task] = to);
        }
        self.crossing.change(messages, &self.places, tasks, true);
        let of = self.aim.power();
        for &link in &self.touched {
            let link = link as usize;
            self.loads[link] = self.loads[link].wrapping_add_signed(self.changes[link]);
            let seconds = self.loads[link] as f64 * self.seconds_per_byte[link];
            self.busiest.set(link, seconds);
            if let Some(of) = of {
                self.powers[link] = (seconds / self.unit_seconds).powi(of);
            }
        }
        self.discard_trial();
        self.kept += 1;
        self.worth = worth;
        let (of, seconds) = match self.aim {
            Aim::Busiest => return self.mark_users(),
            Aim::BusiestThenPower(of) => (of, worth.tie),
            Aim::PowerThenBusiest(of) => (of, worth.cost),
        };
        self.power = self.term(seconds, of);
        // The unit has become too large for the times; their powers would underflow.
        if self.kept >= RECOMPUTE_AFTER || self.power < CANCELLED {
            self.recompute();
        }
    }
}

#[cfg(test)]
mod tests;
