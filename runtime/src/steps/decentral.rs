//! Load-balancing steps without a centre: PEs run the members of a strategy ([`equipoise_strategies::decentral`]).
//!
//! 1. PE 0 begins the step along the tree of PEs. Every PE makes its member from its own elements.
//! 2. A round: the member reads the letters of the round before and sends letters. A receiver says that a letter has arrived. When all
//!    letters of a PE and of all PEs below it in the tree have arrived, the PE tells its parent what they add to the totals. So all letters
//!    are there when PE 0 begins the next round along the tree, with the totals.
//! 3. When the members say that the protocol is over, every PE adds what it has decided to an [`Account`], up the tree. PE 0 reports the
//!    step, and says along the tree whether the decision is applied. Then elements migrate as in a step with a centre.
//!
//! In a round, a PE receives the letters to it, a word for each letter that it has sent, and one message of its parent and of each child.
//! What needs the database of all objects needs a centre ([`strategy`]).

use super::balancer::{bound_leader, finish, outside_seconds, sorted, strategy_seconds, sync_points};
use super::gate::kept;
use super::{carry_out, gather, try_step};
use crate::elements::Held;
use crate::lb_history::LbStep;
use crate::load::{array_and_rank, element_key};
use crate::order::{Account, Decentral as Order, PeOrder, Plan, Statistics};
use crate::pe::{Current, PeCx, Told};
use crate::pulse::Activity;
use equipoise_model::costs::EndCosts;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::decentral::{Decentral, Item, Own, Sends, Totals};
use equipoise_strategies::predict::Predictor;
use equipoise_strategies::strategy::panic_message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// The strategy of a step that needs no centre. `None` if the step needs one: for its strategy, or for what is made of its database.
pub(super) fn strategy(pe: &PeCx, step: u32) -> Option<&dyn Decentral> {
    let settings = pe.settings();
    let needs_database = settings.dumps(u64::from(step))
        || settings.report.is_some()
        || settings.lb_predict.is_some_and(|predictor| predictor != Predictor::Last)
        || settings.lists_pes()
        || pe.out.interleaved().is_some();
    if needs_database {
        return None;
    }
    let decentral = settings.schedule.at(u64::from(step))?.strategy.decentral()?;
    // Where the strategy refuses this number of PEs, PE 0 decides, and reports the refusal.
    decentral.check(pe.out.pes).is_ok().then_some(decentral)
}

/// Begins a step on PE 0.
pub(super) fn begin(pe: &PeCx, step: u32) {
    let migration = pe.settings().costs.as_ref().map(|costs| costs.migration);
    pe.out.tell_all(|| order(Order::Begin { step, migration }));
}

fn order(order: Order) -> PeOrder {
    PeOrder::Decentral(Box::new(order))
}

/// Executes an order of a step without a centre.
pub(crate) fn execute(pe: &PeCx, received: Order, managers: &[Held]) {
    let meeting = &pe.collectives.steps.meeting;
    match received {
        Order::Begin { step, migration } => {
            pe.out.relay(|| order(Order::Begin { step, migration }));
            let Some(all) = strategy(pe, step) else {
                return pe.fail(
                    "the PEs of this run have different strategies; start all processes with the same flags"
                        .into(),
                );
            };
            *meeting.current.borrow_mut() = Some(current(pe, (step, migration), all, gather(pe, managers)));
            run_round(pe, &Totals::default());
        }
        Order::Round { step, round, totals } => {
            pe.out.relay(|| order(Order::Round { step, round, totals }));
            if let Some(current) = meeting.current.borrow_mut().as_mut() {
                current.round = round;
            }
            run_round(pe, &totals);
        }
        Order::Letter { step, round, from, letter } => {
            meeting.letters.borrow_mut().entry((step, round)).or_default().push((from, letter));
            pe.out.tell(from, order(Order::Arrived { step }));
        }
        Order::Arrived { .. } => {
            if let Some(current) = meeting.current.borrow_mut().as_mut() {
                current.under_way -= 1;
            }
            end_round(pe);
        }
        Order::Sum { pes, totals, .. } => {
            meeting.add(pes, &totals, &Account::default());
            end_round(pe);
        }
        Order::Decided { pes, account, .. } => {
            meeting.add(pes, &Totals::default(), &account);
            end_decision(pe);
        }
        Order::End { step, point, is_applied } => {
            pe.out.relay(|| order(Order::End { step, point, is_applied }));
            let ended = meeting.current.borrow_mut().take_if(|current| current.step == step);
            let outcome =
                ended.and_then(|current| current.outcome).filter(|_| is_applied).unwrap_or_default();
            let moves = outcome.leaving.into_iter().map(|(key, to)| {
                let (array, rank) = array_and_rank(key);
                (array, rank, to)
            });
            let plan = Plan { pe: pe.out.rank, moves: moves.collect(), incoming: outcome.coming.0 };
            carry_out(pe, point, plan, managers);
        }
    }
}

/// The member of this PE, and what the step's report needs.
fn current(
    pe: &PeCx,
    (step, migration): (u32, Option<EndCosts>),
    all: &dyn Decentral,
    statistics: Statistics,
) -> Current {
    let settings = pe.settings();
    let mut account = Account { wall_seconds: statistics.wall_seconds, ..Account::default() };
    let (speed, rank) = (statistics.speed, pe.out.rank);
    let mut fixed_seconds = if settings.background { outside_seconds(&statistics) } else { 0.0 };
    let mut objects = Vec::new();
    let mut seconds = 0.0;
    let found = statistics.objects.into_iter().map(|object| Some((rank, object))).collect();
    for (_, object) in sorted(found, |array| bound_leader(pe, array)) {
        account.objects += 1;
        let of_object = object.load_seconds / speed;
        let leader = bound_leader(pe, object.array);
        if object.migratable && object.array == leader {
            account.heaviest_seconds = account.heaviest_seconds.max(of_object);
            seconds += of_object;
            let key = element_key(leader, object.rank);
            let bytes = object.bytes.unwrap_or(0);
            objects.push(Item { key, id: key, home: rank, load_seconds: object.load_seconds, bytes });
        } else {
            fixed_seconds += of_object;
        }
    }
    account.fixed_seconds = fixed_seconds;
    account.loads = Totals::with_work(fixed_seconds + seconds, speed);
    let bytes_of = objects.iter().map(|item| (item.key, item.bytes)).collect();
    let (ranks, seed) = (pe.out.pes, settings.seed);
    let own = Own { rank, ranks, seed, step: step.into(), speed, fixed_seconds, objects };
    Current::new((step, migration), all.member(own), account, bytes_of)
}

/// Runs the member in a round, and sends its letters.
fn run_round(pe: &PeCx, totals: &Totals) {
    let meeting = &pe.collectives.steps.meeting;
    let mut borrowed = meeting.current.borrow_mut();
    let Some(current) = borrowed.as_mut() else {
        return pe.fail("a round of a load-balancing step came to a PE that has not begun the step".into());
    };
    let (step, round) = (current.step, current.round);
    let before = round.checked_sub(1).and_then(|before| meeting.letters.borrow_mut().remove(&(step, before)));
    let mut letters = before.unwrap_or_default();
    letters.sort_by_key(|of| of.0);
    let mut sends = Sends::new();
    let (asked, start) = (Instant::now(), pe.clock.now());
    let run = || catch_unwind(AssertUnwindSafe(|| current.member.round(totals, &letters, &mut sends)));
    let added = match pe.delivery.running.during(Activity::Strategy { step }, run) {
        Ok(added) => added,
        Err(payload) => {
            // The members of other PEs have gone on, so the step cannot be left out.
            let message = panic_message(&*payload);
            return pe.fail(format!("load-balancing step {step}: the strategy panicked: {message}"));
        }
    };
    let choice = pe.settings().schedule.at(u64::from(step));
    let measured = asked.elapsed().as_secs_f64();
    current.strategy_seconds += strategy_seconds(pe, choice, &[], measured, round > 0);
    pe.recorder.skip(pe.clock.now().wrapping_sub(start));
    for (receivers, letter) in sends {
        current.under_way += receivers.len() as u64;
        for to in receivers {
            let letter = Arc::clone(&letter);
            pe.out.tell(to, order(Order::Letter { step, round, from: pe.out.rank, letter }));
        }
    }
    match added {
        Some(added) => {
            drop(borrowed);
            meeting.add(1, &added, &Account::default());
            end_round(pe);
        }
        None => {
            decide(pe, current);
            meeting.add(1, &Totals::default(), &current.account);
            drop(borrowed);
            end_decision(pe);
        }
    }
}

/// Ends the round of this subtree if it is over.
fn end_round(pe: &PeCx) {
    let meeting = &pe.collectives.steps.meeting;
    let Some((step, round)) = all_told(pe, |current| current.under_way == 0 && current.outcome.is_none())
    else {
        return;
    };
    let round = round + 1;
    let Told { pes, totals, .. } = meeting.told.take();
    match pe.out.rank {
        0 => pe.out.tell_all(|| order(Order::Round { step, round, totals })),
        rank => pe.out.tell(pe.out.tree.parent(rank), order(Order::Sum { step, pes, totals })),
    }
}

/// The step and the round in progress, if all PEs of this subtree have told what the round needs, and this one `is_ready`.
fn all_told(pe: &PeCx, is_ready: impl FnOnce(&Current) -> bool) -> Option<(u32, u32)> {
    let meeting = &pe.collectives.steps.meeting;
    let borrowed = meeting.current.borrow();
    let current = borrowed.as_ref()?;
    let are_all_there = meeting.told.get().pes as usize == pe.out.tree.size(pe.out.rank);
    (are_all_there && is_ready(current)).then_some((current.step, current.round))
}

/// Adds what this PE has decided to the account.
fn decide(pe: &PeCx, current: &mut Current) {
    let outcome = current.member.outcome();
    let account = &mut current.account;
    account.after_seconds = outcome.seconds;
    account.strategy_seconds = current.strategy_seconds;
    account.migrations += outcome.leaving.len() as u64;
    let leaving_bytes = outcome.leaving.iter().filter_map(|of| current.bytes_of.get(&of.0)).sum();
    account.migrated_bytes += leaving_bytes;
    if let Some(costs) = current.migration {
        let (coming, bytes) = outcome.coming;
        let sends = costs.sender_seconds(outcome.leaving.len() as u64, leaving_bytes);
        let receives = costs.receiver_seconds(u64::from(coming), bytes);
        account.migration_seconds = (sends + receives) / pe.clock.speed();
    }
    current.outcome = Some(outcome);
}

/// When all PEs of this subtree have decided: tells the parent; on PE 0 reports the step and ends it.
fn end_decision(pe: &PeCx) {
    let meeting = &pe.collectives.steps.meeting;
    let Some((step, _)) = all_told(pe, |current| current.outcome.is_some()) else { return };
    let Told { pes, account, .. } = meeting.told.take();
    let rank = pe.out.rank;
    if rank != 0 {
        return pe.out.tell(pe.out.tree.parent(rank), order(Order::Decided { step, pes, account }));
    }
    let outcome = meeting.current.borrow().as_ref().and_then(|current| current.outcome.clone());
    let notes = outcome.map(|outcome| outcome.notes).unwrap_or_default();
    let steps = &pe.collectives.steps;
    let choice = pe.settings().schedule.at(u64::from(step));
    let before = metrics(pe, &account, account.loads.max_seconds);
    let mut after = metrics(pe, &account, account.after_seconds);
    (after.migrations, after.migrated_bytes) = (account.migrations, Some(account.migrated_bytes));
    after.migration_seconds = pe.settings().costs.is_some().then_some(account.migration_seconds);
    let kept = kept(pe.settings(), &before, &after, 1.0);
    if kept.is_some() {
        after = before.clone();
    }
    let report = LbStep {
        step: u64::from(step),
        strategy: choice.map(|choice| choice.spec.clone()),
        period_seconds: account.wall_seconds,
        sync_points: sync_points(pe, steps.number.get() + 1),
        strategy_seconds: account.strategy_seconds,
        decision_seconds: pe.clock.seconds(pe.clock.now().wrapping_sub(steps.began.get())),
        before,
        after,
        notes,
        remark: None,
        predictor: None,
        kept,
        error: None,
    };
    let (is_applied, rest) = (report.kept.is_none(), report.after.imbalance);
    finish(pe, step, report, rest, None);
    let point = steps.number.replace(steps.number.get() + 1);
    pe.out.tell_all(|| order(Order::End { step, point, is_applied }));
    steps.collecting.set(false);
    try_step(pe);
}

/// What is known of a placement without a database. The bound of the largest load is that of the average, the heaviest object where it
/// is, and what cannot move.
fn metrics(pe: &PeCx, account: &Account, max_load_seconds: f64) -> Metrics {
    let average = account.loads.average_seconds();
    Metrics {
        pes: pe.out.pes as usize,
        objects: account.objects as usize,
        max_load_seconds,
        average_load_seconds: average,
        imbalance: if average > 0.0 { max_load_seconds / average - 1.0 } else { 0.0 },
        lower_bound_seconds: average.max(account.heaviest_seconds).max(account.fixed_seconds),
        heaviest_object_seconds: account.heaviest_seconds,
        ..Metrics::default()
    }
}
