//! Load-balancing steps: all elements arrive, PE 0 decides, elements migrate, all elements resume.
//!
//! 1. Elements of `sync` arrays call `at_sync`; the number of calls goes up the tree of PEs to PE 0
//!    ([`PeOrder::AtSync`]).
//! 2. When every element of every `sync` array has called `at_sync`, PE 0 asks all PEs for their statistics
//!    ([`PeOrder::Collect`], [`PeOrder::Statistics`]).
//! 3. [`balancer`] builds a database, calls the strategy, and sends every PE the migrations of its
//!    elements and the number of elements to expect ([`PeOrder::Migrate`]).
//! 4. A PE to which all expected elements have migrated resumes its elements; it does not wait for other PEs.
//!
//! Messages are delivered during a step. Orders carry the number of their step, so they may arrive out of order.

mod balancer;
mod repeat;

use crate::elements::Manager;
use crate::order::{Ended, PeOrder, Plan, Statistics};
use crate::pe::{PeCx, SyncCalls};
use crate::reduction::Tally;
use std::collections::BTreeMap;

/// Receives the number of elements of an array that called `at_sync`. PE 0 counts them; another PE forwards the number.
pub(crate) fn at_sync(pe: &PeCx, array: u16, round: u32, tally: Tally) {
    if pe.out.rank != 0 {
        let calls = SyncCalls { below: tally, ..SyncCalls::default() };
        pe.collectives.steps.add_calls((array, round), calls);
        return pe.collectives.forwards.set(true);
    }
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
    pe.out.tell_all(|| PeOrder::Collect);
}

/// Adds the statistics of this PE since the last step.
pub(crate) fn collect(pe: &PeCx, managers: &mut [Box<dyn Manager>]) {
    pe.out.relay(|| PeOrder::Collect);
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
    collected(pe, vec![statistics]);
}

/// Adds statistics of PEs of this subtree. When those of all its PEs are there, PE 0 decides; another PE sends them to its
/// parent.
pub(crate) fn collected(pe: &PeCx, statistics: Vec<Statistics>) {
    let rank = pe.out.rank;
    {
        let mut collected = pe.collectives.steps.collected.borrow_mut();
        collected.extend(statistics);
        if collected.len() < pe.out.tree.size(rank) {
            return;
        }
    }
    if rank == 0 {
        return decide(pe);
    }
    let all = pe.collectives.steps.collected.take();
    pe.out.tell(pe.out.tree.parent(rank), PeOrder::Statistics(all));
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
    let mut plans = balancer::decide(pe, step, steps.began.get(), collected);
    // Excludes the time of the decision from this PE's background load in the next period.
    pe.recorder.skip(pe.clock.now().wrapping_sub(start));
    send_plans(pe, step, &mut plans);
    pe.out.tell(0, PeOrder::Migrate { step, plans });
    steps.collecting.set(false);
    try_step(pe);
}

/// Sends the plans of other PEs to the children of this PE; its own plan remains.
fn send_plans(pe: &PeCx, step: u32, plans: &mut Vec<Plan>) {
    let (tree, rank) = (pe.out.tree, pe.out.rank);
    let mut below: BTreeMap<u32, Vec<Plan>> = tree.children(rank).map(|child| (child, Vec::new())).collect();
    for plan in plans.extract_if(.., |plan| plan.pe != rank) {
        below.entry(tree.toward(rank, plan.pe)).or_default().push(plan);
    }
    for (child, plans) in below {
        pe.out.tell(child, PeOrder::Migrate { step, plans });
    }
}

/// Migrates the elements that leave this PE in a step.
pub(crate) fn migrate(pe: &PeCx, step: u32, mut plans: Vec<Plan>, managers: &mut [Box<dyn Manager>]) {
    if pe.out.rank != 0 {
        send_plans(pe, step, &mut plans);
    }
    let Plan { moves, incoming, .. } = plans.pop().unwrap_or_default();
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
