//! Load-balancing steps: everybody arrives, PE 0 decides, elements move, everybody goes on.
//!
//! 1. Elements of `sync` arrays call `at_sync`; each PE tells PE 0 how many came ([`PeOrder::AtSync`]).
//! 2. When every element of every `sync` array has come, PE 0 asks all PEs for their statistics
//!    ([`PeOrder::Collect`], [`PeOrder::Statistics`]).
//! 3. [`balancer`](crate::balancer) makes them a database, calls the strategy, and tells every PE whom
//!    to send where and how many to expect ([`PeOrder::Carry`]).
//! 4. A PE that has everybody it expects lets its elements go on; it does not wait for other PEs.
//!
//! Messages go on being delivered all the while. Steps are numbered, so an order that overtakes
//! another one of an earlier step does no harm.

use crate::balancer::{self, Plan, Statistics};
use crate::context::{PeCx, after};
use crate::elements::Manager;
use crate::order::{Ended, PeOrder};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// What a PE knows of load-balancing steps.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// How many steps this PE is through with.
    pub(crate) resumed: Cell<u32>,
    /// What [`Cx::set_load`](crate::Cx::set_load) was told.
    pub(crate) declared: Cell<f64>,
    /// Arrivals of each step that is not over: how many came, and how many are to come once known.
    arrivals: RefCell<BTreeMap<u32, Arrivals>>,
    /// When the period began that the next statistics are about, in ticks.
    since: Cell<u64>,
    /// Since when nothing is measured, if so.
    off: Cell<Option<u64>>,
    /// Ticks of it without work.
    pub(crate) idle: Cell<u64>,
    /// Ticks of it in deliveries that charged something else.
    pub(crate) charged: Cell<u64>,
    /// On PE 0: the step under way or next, when it began, and the statistics that have come.
    number: Cell<u32>,
    began: Cell<u64>,
    collected: RefCell<Vec<Statistics>>,
    /// On PE 0: statistics are being collected. Elements may come to the next step meanwhile, if those
    /// that came to this one end.
    collecting: Cell<bool>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    came: u32,
    expected: Option<u32>,
}

impl Steps {
    /// Leaves so many ticks out of the period.
    fn skip(&self, ticks: u64) {
        self.since.set(self.since.get().wrapping_add(ticks));
    }

    /// Measuring stops or goes on at a point in time; what lies between is in no period.
    pub(crate) fn measure(&self, on: bool, now: u64) {
        match (on, self.off.get()) {
            (false, None) => self.off.set(Some(now)),
            (true, Some(since)) => {
                self.off.set(None);
                self.skip(now.wrapping_sub(since));
            }
            _ => {}
        }
    }
}

impl PeCx {
    /// Begins the first period.
    pub(crate) fn begin_steps(&self) {
        self.steps.since.set(self.ticker.now());
    }

    /// Carries out an order about the run.
    pub(crate) fn obey(&self, order: PeOrder, managers: &mut [Box<dyn Manager>]) {
        match order {
            PeOrder::AtSync { array, round, tally } => {
                self.rolls.borrow_mut()[usize::from(array)].syncs.note(round, tally);
                self.try_step();
            }
            PeOrder::Ended(ended) => {
                let Ended { array, reductions, syncs } = *ended;
                {
                    let roll = &mut self.rolls.borrow_mut()[usize::from(array)];
                    roll.reductions.note(reductions.0, reductions.1);
                    roll.syncs.note(syncs.0, syncs.1);
                }
                self.complete_reductions(array);
                self.try_step();
            }
            PeOrder::Collect => {
                let statistics = self.statistics(managers);
                self.tell(0, PeOrder::Statistics(Box::new(statistics)));
            }
            PeOrder::Statistics(statistics) => {
                self.steps.collected.borrow_mut().push(*statistics);
                if self.steps.collected.borrow().len() == self.pes as usize {
                    self.decide();
                }
            }
            PeOrder::Carry(plan) => self.carry(*plan, managers),
            PeOrder::Excused { step, count } => {
                self.came(step, count);
                self.look(step, managers);
            }
            PeOrder::Look { step } => self.look(step, managers),
            PeOrder::Reply { parked, answer } => self.answered(parked, answer),
            PeOrder::Quiet { round } => self.found_quiet(round),
        }
    }

    /// Starts a step, on PE 0, if everybody has come.
    fn try_step(&self) {
        if !self.node.settings.balances() || self.steps.collecting.get() {
            return;
        }
        {
            let mut rolls = self.rolls.borrow_mut();
            let mut waiting = 0;
            for (roll, _) in rolls.iter().zip(&self.infos).filter(|(_, info)| info.sync) {
                if !roll.syncs.complete() {
                    return;
                }
                waiting += roll.syncs.arrived();
            }
            if waiting == 0 {
                return;
            }
            for (roll, _) in rolls.iter_mut().zip(&self.infos).filter(|(_, info)| info.sync) {
                roll.syncs.advance();
            }
        }
        self.steps.collecting.set(true);
        self.steps.began.set(self.ticker.now());
        for to in 0..self.pes {
            self.tell(to, PeOrder::Collect);
        }
    }

    /// What this PE recorded since the last step.
    fn statistics(&self, managers: &mut [Box<dyn Manager>]) -> Statistics {
        let now = self.steps.off.get().unwrap_or_else(|| self.ticker.now());
        let mut statistics = Statistics {
            pe: self.rank,
            wall_seconds: self.ticker.seconds(now.wrapping_sub(self.steps.since.replace(now))),
            idle_seconds: self.ticker.seconds(self.steps.idle.take()),
            measured_seconds: self.ticker.seconds(self.steps.charged.take()),
            speed: self.ticker.speed(),
            ..Statistics::default()
        };
        for manager in managers {
            manager.collect(self, &mut statistics);
        }
        statistics.edges = self.own_edges.borrow_mut().take();
        if self.node.settings.is_simulated() && self.node.settings.simulation.is_none() {
            // PEs share one thread there: the wall clock of one says nothing of another.
            statistics.wall_seconds = statistics.objects.iter().map(|object| object.load_seconds).sum();
            statistics.idle_seconds = 0.0;
            statistics.measured_seconds = statistics.wall_seconds;
        }
        statistics
    }

    fn decide(&self) {
        let collected = self.steps.collected.take();
        debug_assert_eq!(
            collected.iter().map(|statistics| u64::from(statistics.pe)).sum::<u64>(),
            u64::from(self.pes) * u64::from(self.pes - 1) / 2,
            "every PE once"
        );
        let step = self.steps.number.replace(self.steps.number.get() + 1);
        let start = self.ticker.now();
        let plans = balancer::decide(self, step, self.steps.began.get(), collected);
        // The balancer's own time is not this PE's background in the next period.
        self.steps.skip(self.ticker.now().wrapping_sub(start));
        for (to, plan) in plans.into_iter().enumerate() {
            self.tell(to as u32, PeOrder::Carry(Box::new(plan)));
        }
        self.steps.collecting.set(false);
        self.try_step();
    }

    fn carry(&self, plan: Plan, managers: &mut [Box<dyn Manager>]) {
        let Plan { step, moves, incoming } = plan;
        for (array, rank, to) in moves {
            if !managers[usize::from(array)].carry(self, step, rank, to) {
                self.tell(to, PeOrder::Excused { step, count: 1 });
            }
        }
        self.steps.arrivals.borrow_mut().entry(step).or_default().expected = Some(incoming);
        self.look(step, managers);
    }

    /// Counts elements that came for a step.
    pub(crate) fn came(&self, step: u32, count: u32) {
        self.steps.arrivals.borrow_mut().entry(step).or_default().came += count;
    }

    /// Ends a step on this PE if everybody who is expected has come.
    fn look(&self, step: u32, managers: &mut [Box<dyn Manager>]) {
        {
            let mut arrivals = self.steps.arrivals.borrow_mut();
            let over = arrivals.get(&step).is_some_and(|arrivals| arrivals.expected == Some(arrivals.came));
            if !over {
                return;
            }
            arrivals.remove(&step);
        }
        self.steps.resumed.set(self.steps.resumed.get().max(step + 1));
        for manager in managers {
            manager.resume(self, step);
        }
    }

    /// Counts time without work, from `start` to `end`.
    pub(crate) fn was_idle(&self, start: u64, end: u64) {
        if self.after.get() & after::LOAD != 0 {
            self.steps.idle.set(self.steps.idle.get() + end.wrapping_sub(start));
        }
    }
}
