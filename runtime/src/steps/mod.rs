//! Load-balancing steps: all elements arrive, PE 0 decides, elements migrate, all elements resume.
//!
//! 1. Elements of `sync` arrays call `at_sync`; each PE reports the number of calls to PE 0 ([`PeOrder::AtSync`]).
//! 2. When every element of every `sync` array has called `at_sync`, PE 0 asks all PEs for their statistics
//!    ([`PeOrder::Collect`], [`PeOrder::Statistics`]).
//! 3. [`balancer`] builds a database, calls the strategy, and sends every PE the migrations of its
//!    elements and the number of elements to expect ([`PeOrder::Migrate`]).
//! 4. A PE to which all expected elements have migrated resumes its elements; it does not wait for other PEs.
//!
//! Messages are delivered during a step. Steps are numbered, so an order may overtake an order of an earlier
//! step.

mod balancer;
mod repeat;

use crate::elements::Manager;
use crate::order::{Ended, PeOrder, Plan, Statistics};
use crate::pe::PeCx;
use crate::reduction::Tally;

/// PE 0 receives the number of elements of an array that wait for a step.
pub(crate) fn at_sync(pe: &PeCx, array: u16, round: u32, tally: Tally) {
    pe.collectives.ledgers.borrow_mut()[usize::from(array)].syncs.note(round, tally);
    try_step(pe);
}

/// PE 0 receives the end of an element: reductions and steps no longer wait for the element.
pub(crate) fn ended(pe: &PeCx, ended: Ended) {
    let Ended { array, reductions, syncs } = ended;
    {
        let array_ledgers = &mut pe.collectives.ledgers.borrow_mut()[usize::from(array)];
        array_ledgers.reductions.note(reductions.0, reductions.1);
        array_ledgers.syncs.note(syncs.0, syncs.1);
    }
    pe.complete_reductions(array);
    try_step(pe);
}

/// Starts a step, on PE 0, if every element has called `at_sync`.
fn try_step(pe: &PeCx) {
    let steps = &pe.collectives.steps;
    if !pe.settings().balances() || steps.collecting.get() {
        return;
    }
    {
        let mut ledgers = pe.collectives.ledgers.borrow_mut();
        let mut waiting = 0;
        for (array_ledgers, _) in ledgers.iter().zip(&pe.infos).filter(|(_, info)| info.sync) {
            if !array_ledgers.syncs.complete() {
                return;
            }
            waiting += array_ledgers.syncs.arrived();
        }
        if waiting == 0 {
            return;
        }
        for (array_ledgers, _) in ledgers.iter_mut().zip(&pe.infos).filter(|(_, info)| info.sync) {
            array_ledgers.syncs.advance();
        }
    }
    steps.collecting.set(true);
    steps.began.set(pe.clock.now());
    for to in 0..pe.out.pes {
        pe.out.tell(to, PeOrder::Collect);
    }
}

/// Sends PE 0 the statistics of this PE since the last step.
pub(crate) fn collect(pe: &PeCx, managers: &mut [Box<dyn Manager>]) {
    let period = pe.recorder.end_period(&pe.clock);
    let mut statistics = Statistics {
        pe: pe.out.rank,
        wall_seconds: period.wall_seconds,
        idle_seconds: period.idle_seconds,
        measured_seconds: period.charged_seconds,
        speed: pe.clock.speed(),
        objects: Vec::new(),
        edges: period.edges,
    };
    for manager in managers {
        manager.collect(pe, &mut statistics);
    }
    if pe.settings().is_simulated() && pe.settings().simulation.is_none() {
        // All PEs run in one thread, so the wall clock does not measure a single PE.
        statistics.wall_seconds = statistics.objects.iter().map(|object| object.load_seconds).sum();
        statistics.idle_seconds = 0.0;
        statistics.measured_seconds = statistics.wall_seconds;
    }
    pe.out.tell(0, PeOrder::Statistics(Box::new(statistics)));
}

/// Receives the statistics of a PE, on PE 0. The last statistics start the decision.
pub(crate) fn collected(pe: &PeCx, statistics: Statistics) {
    let count = {
        let mut collected = pe.collectives.steps.collected.borrow_mut();
        collected.push(statistics);
        collected.len()
    };
    if count == pe.out.pes as usize {
        decide(pe);
    }
}

fn decide(pe: &PeCx) {
    let steps = &pe.collectives.steps;
    let collected = steps.collected.take();
    debug_assert_eq!(
        collected.iter().map(|statistics| u64::from(statistics.pe)).sum::<u64>(),
        u64::from(pe.out.pes) * u64::from(pe.out.pes - 1) / 2,
        "one entry per PE"
    );
    let step = steps.number.replace(steps.number.get() + 1);
    let start = pe.clock.now();
    let plans = balancer::decide(pe, step, steps.began.get(), collected);
    // Excludes the time of the decision from this PE's background load in the next period.
    pe.recorder.skip(pe.clock.now().wrapping_sub(start));
    for (to, plan) in plans.into_iter().enumerate() {
        pe.out.tell(to as u32, PeOrder::Migrate(Box::new(plan)));
    }
    steps.collecting.set(false);
    try_step(pe);
}

/// Migrates the elements that leave this PE in a step.
pub(crate) fn migrate(pe: &PeCx, plan: Plan, managers: &mut [Box<dyn Manager>]) {
    let Plan { step, moves, incoming } = plan;
    for (array, rank, to) in moves {
        if !managers[usize::from(array)].migrate(pe, step, rank, to) {
            pe.out.tell(to, PeOrder::WillNotArrive { step, count: 1 });
        }
    }
    pe.collectives.steps.expect(step, incoming);
    try_resume(pe, step, managers);
}

/// Handles that `count` elements expected in a step will not arrive.
pub(crate) fn will_not_arrive(pe: &PeCx, step: u32, count: u32, managers: &mut [Box<dyn Manager>]) {
    pe.collectives.steps.arrived(step, count);
    try_resume(pe, step, managers);
}

/// Resumes the elements of this PE if all elements expected in a step have arrived.
pub(crate) fn try_resume(pe: &PeCx, step: u32, managers: &mut [Box<dyn Manager>]) {
    if pe.collectives.steps.end(step) {
        for manager in managers {
            manager.resume(pe, step);
        }
    }
}
