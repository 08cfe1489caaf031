//! Load-balancing steps: all elements arrive, PE 0 decides, elements migrate, all elements resume.
//!
//! 1. Elements of `sync` arrays call `at_sync`; the number of calls goes up the tree of PEs to PE 0
//!    ([`PeOrder::AtSync`]). With `--lb-when auto`, the loads of the PEs go with them.
//! 2. When every element of every `sync` array has called `at_sync`, PE 0 asks all PEs for their statistics
//!    ([`PeOrder::Collect`], [`PeOrder::Statistics`]).
//! 3. [`balancer`] builds a database, calls the strategy, and sends every PE the migrations of its
//!    elements and the number of elements to expect ([`PeOrder::Migrate`]).
//!    If the strategy and the flags allow, PEs decide together instead, without a database on PE 0 ([`decentral`]).
//! 4. A PE to which all expected elements have migrated resumes its elements; it does not wait for other PEs.
//!
//! Messages are delivered during a step. Orders carry the number of their step, so they may arrive out of order.

mod available;
mod balancer;
pub(crate) mod decentral;
mod gate;
mod repeat;

use crate::checkpoint::Reason;
use crate::elements::Held;
use crate::events::EventLog;
use crate::losses::Loads;
use crate::order::{Calls, Ended, PeOrder, Plan, Statistics};
use crate::pe::{Outbox, PeCx};
use std::collections::BTreeMap;

/// Receives the numbers of elements that called `at_sync`, and loads of PEs. PE 0 adds them up; another PE forwards them.
pub(crate) fn at_sync(pe: &PeCx, calls: Vec<Calls>, loads: Option<Loads>) {
    let steps = &pe.collectives.steps;
    loads.into_iter().for_each(|loads| steps.add_loads(loads));
    if pe.out.rank != 0 {
        calls.into_iter().for_each(|(of, tally)| steps.add_calls(of, tally));
        return pe.collectives.forwards.set(true);
    }
    for ((array, round), tally) in calls {
        pe.collectives.ledgers.borrow_mut()[usize::from(array)].syncs.note(round, tally);
    }
    try_step(pe);
}

/// The elements of an array on this PE have called `at_sync`: reports it, with the load of this PE if no other array is to call it.
pub(crate) fn report(pe: &PeCx, managers: &[Held]) {
    match managers.iter().all(|manager| manager.borrow().all_called()) {
        true => say_load(pe, managers),
        false => pe.report_syncs(),
    }
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

/// Starts a step, on PE 0, if every element has called `at_sync`. The run saves itself before, if flags ask for it.
pub(crate) fn try_step(pe: &PeCx) {
    let steps = &pe.collectives.steps;
    if !pe.settings().has_barriers() || steps.collecting.get() || steps.saves.get() {
        return;
    }
    if !is_complete(pe) || !knows_loads(pe) || saves_first(pe) {
        return;
    }
    {
        let mut ledgers = pe.collectives.ledgers.borrow_mut();
        for (array_ledgers, _) in ledgers.iter_mut().zip(&pe.infos).filter(|(_, info)| info.sync) {
            array_ledgers.syncs.advance();
        }
    }
    steps.began.set(pe.clock.now());
    if !pe.settings().balances() {
        // No period begins: a run that is restarted with a load balancer counts from here.
        steps.points_before.set(steps.number.get() + 1);
        return resume_all(pe);
    }
    let loads = steps.loads.take();
    let needs_step = || steps.losses.borrow_mut().need_step(loads);
    let is_step = repeat::is_step(&pe.out, pe.settings().lb_when, steps.number.get(), needs_step);
    steps.collecting.set(is_step);
    if is_step {
        let step = steps.done();
        return match decentral::strategy(pe, step) {
            Some(_) => decentral::begin(pe, step),
            None => pe.out.tell_all(|| PeOrder::Collect),
        };
    }
    resume_all(pe);
    try_step(pe);
}

/// All elements resume where they are: the sync point is no step.
fn resume_all(pe: &PeCx) {
    let steps = &pe.collectives.steps;
    steps.skipped.set(steps.skipped.get() + 1);
    let point = steps.number.replace(steps.number.get() + 1);
    send_plans(&pe.out, point, &mut Vec::new());
    pe.out.tell(0, PeOrder::Migrate { step: point, plans: Vec::new() });
}

/// Whether PE 0 knows the loads on which it depends whether this sync point becomes a step. If not, it asks for them: a PE has not said
/// its load if it has no elements that call `at_sync`, or if some ended, migrated or were inserted meanwhile.
fn knows_loads(pe: &PeCx) -> bool {
    if !pe.settings().weighs() {
        return true;
    }
    let steps = &pe.collectives.steps;
    let (known, point) = (steps.loads.get().pes, steps.number.get());
    debug_assert!(known <= pe.out.pes, "each PE says its load once");
    if known < pe.out.pes && steps.asked.replace(point + 1) <= point {
        pe.out.tell_all(|| PeOrder::Weigh { point });
    }
    known == pe.out.pes
}

/// PE 0 asks how much load this PE had before a sync point. A PE that has not yet resumed after the last one answers when it has.
pub(crate) fn weigh(pe: &PeCx, point: u32, managers: &[Held]) {
    pe.out.relay(|| PeOrder::Weigh { point });
    let steps = &pe.collectives.steps;
    steps.asked.set(steps.asked.get().max(point + 1));
    if steps.resumed.get() == point {
        say_load(pe, managers);
    }
}

/// Reports the load of this PE since the last sync point, once.
fn say_load(pe: &PeCx, managers: &[Held]) {
    let steps = &pe.collectives.steps;
    let points = steps.resumed.get() + 1;
    if steps.said.replace(points) < points {
        let of_elements = managers.iter().map(|manager| manager.borrow_mut().weigh(pe)).sum();
        let seconds = pe.recorder.load_since_last(of_elements);
        steps.add_loads(Loads { pes: 1, sum_seconds: seconds, max_seconds: seconds });
    }
    pe.report_syncs();
    if pe.out.rank == 0 {
        try_step(pe);
    }
}

/// Whether every element of every `sync` array has called `at_sync`, and there is one.
fn is_complete(pe: &PeCx) -> bool {
    let ledgers = pe.collectives.ledgers.borrow();
    let mut syncs = ledgers.iter().zip(&pe.infos).filter(|(_, info)| info.sync).map(|(all, _)| &all.syncs);
    let mut arrived = 0;
    syncs.all(|ledger| {
        arrived += ledger.arrived();
        ledger.complete()
    }) && arrived > 0
}

/// Whether the run saves itself before the next step, when nothing is in flight.
fn saves_first(pe: &PeCx) -> bool {
    let steps = &pe.collectives.steps;
    let Some(saver) = &pe.out.node.saver else { return false };
    if steps.has_saved.take() || !saver.is_due_at_sync(steps.number.get() + 1) {
        return false;
    }
    saver.want(Reason::Program);
    pe.out.node.quiescence.wait_for_step();
    steps.saves.set(true);
    true
}

/// The run has saved itself before a sync point, which goes on, on PE 0.
pub(crate) fn has_saved(pe: &PeCx) {
    let steps = &pe.collectives.steps;
    if steps.saves.take() {
        pe.out.node.quiescence.step_goes_on();
        steps.has_saved.set(true);
        try_step(pe);
    }
}

/// Continues, on PE 0, with the step before which a restarted run was saved, if it was saved at a sync point.
pub(crate) fn resume_after_restart(pe: &PeCx) {
    pe.collectives.steps.has_saved.set(is_complete(pe));
    try_step(pe);
}

/// Adds the statistics of this PE since the last step.
pub(crate) fn collect(pe: &PeCx, managers: &[Held]) {
    pe.out.relay(|| PeOrder::Collect);
    collected(pe, vec![gather(pe, managers)]);
}

/// The statistics of this PE since the last step.
fn gather(pe: &PeCx, managers: &[Held]) -> Statistics {
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
        manager.borrow_mut().collect(pe, &mut statistics);
    }
    if pe.settings().samples_order() {
        // All PEs run in one thread, so the wall clock does not measure a single PE.
        statistics.wall_seconds = statistics.objects.iter().map(|object| object.load_seconds).sum();
        statistics.idle_seconds = 0.0;
        statistics.measured_seconds = statistics.wall_seconds;
    }
    statistics
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
    let (step, point) = (steps.done(), steps.number.replace(steps.number.get() + 1));
    let start = pe.clock.now();
    let mut plans = balancer::decide(pe, step, collected);
    // Excludes the time of the decision from this PE's background load in the next period.
    pe.recorder.skip(pe.clock.now().wrapping_sub(start));
    send_plans(&pe.out, point, &mut plans);
    pe.out.tell(0, PeOrder::Migrate { step: point, plans });
    steps.collecting.set(false);
    try_step(pe);
}

/// Sends the plans of other PEs to the children of this PE; its own plan remains.
fn send_plans(out: &Outbox, step: u32, plans: &mut Vec<Plan>) {
    let (tree, rank) = (out.tree, out.rank);
    let mut below: BTreeMap<u32, Vec<Plan>> = tree.children(rank).map(|child| (child, Vec::new())).collect();
    for plan in plans.extract_if(.., |plan| plan.pe != rank) {
        below.entry(tree.toward(rank, plan.pe)).or_default().push(plan);
    }
    for (child, plans) in below {
        out.tell(child, PeOrder::Migrate { step, plans });
    }
}

/// Migrates the elements that leave this PE in a step.
pub(crate) fn migrate(pe: &PeCx, step: u32, mut plans: Vec<Plan>, managers: &[Held]) {
    if pe.out.rank != 0 {
        send_plans(&pe.out, step, &mut plans);
    }
    carry_out(pe, step, plans.pop().unwrap_or_default(), managers);
}

/// Migrates the elements of this PE's plan.
fn carry_out(pe: &PeCx, step: u32, Plan { moves, incoming, .. }: Plan, managers: &[Held]) {
    for (array, rank, to) in moves {
        if !managers[usize::from(array)].borrow_mut().migrate(pe, step, rank, to) {
            pe.out.tell(to, PeOrder::WillNotArrive { step, count: 1 });
        }
    }
    pe.collectives.steps.expect(step, incoming);
    try_resume(pe, step, managers);
}

/// Handles that `count` elements expected in a step will not arrive.
pub(crate) fn will_not_arrive(pe: &PeCx, step: u32, count: u32, managers: &[Held]) {
    pe.collectives.steps.arrived(step, count);
    try_resume(pe, step, managers);
}

/// Resumes the elements of this PE if all elements expected in a step have arrived.
pub(crate) fn try_resume(pe: &PeCx, step: u32, managers: &[Held]) {
    if pe.collectives.steps.end(step) {
        if let Some(began) = pe.collectives.steps.decided.take() {
            let now = pe.clock.virtual_seconds();
            pe.out.trace(|tracer| tracer.log().has_balanced(now));
            pe.out.log().into_iter().for_each(EventLog::has_balanced);
            if let Some(metrics) = &pe.out.node.metrics {
                metrics.has_balanced(pe.clock.seconds(pe.clock.now().wrapping_sub(began)));
            }
        }
        for manager in managers {
            manager.borrow_mut().resume(pe, step);
        }
        let steps = &pe.collectives.steps;
        let is_asked = steps.asked.get() > steps.resumed.get();
        // A PE without elements has nothing to wait for. Elements that come to it later count at the next sync point.
        let is_empty = || !managers.iter().any(|manager| manager.borrow().has_elements());
        if pe.settings().weighs() && (is_asked || is_empty()) {
            say_load(pe, managers);
        }
    }
}
