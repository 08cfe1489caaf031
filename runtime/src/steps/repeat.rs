//! The decisions of load-balancing steps while the order of deliveries is recorded or repeated. Loads are measured, so a
//! strategy would decide differently in a replay; its decisions are recorded with the order.

use crate::interleaving::{Event, Interleaved, Plan};
use crate::options::LbWhen;
use crate::pe::Outbox;
use equipoise_model::Assignment;

/// What a strategy answers; none if the step has no strategy.
type Answer = Option<Result<Assignment, String>>;

/// The answer of `ask`, which a recording notes; in a replay, the answer of the recorded run.
pub(super) fn answer(out: &Outbox, placement: &[u32], ask: impl FnOnce() -> Answer) -> Answer {
    match out.interleaved() {
        None => ask(),
        Some(Interleaved::Record(recording)) => {
            let answer = ask();
            recording.note(&Event::Plan(plan(placement, &answer)));
            answer
        }
        Some(Interleaved::Replay(replay)) => Some(repeated(placement, replay.plan(placement.len()))),
    }
}

/// Whether the sync point becomes a step. `point` counts sync points from 0; `needs` says whether the losses need a step.
pub(super) fn is_step(out: &Outbox, when: LbWhen, point: u32, needs: impl FnOnce() -> bool) -> bool {
    match when {
        LbWhen::Every(every) => (point + 1).is_multiple_of(every.get()),
        LbWhen::Auto => match out.interleaved() {
            None => needs(),
            Some(Interleaved::Record(recording)) => {
                let is_step = needs();
                recording.note(&Event::Sync { is_step });
                is_step
            }
            Some(Interleaved::Replay(replay)) => replay.is_step(),
        },
    }
}

fn plan(placement: &[u32], answer: &Answer) -> Plan {
    let mut plan = Plan::default();
    match answer {
        None => {}
        Some(Err(error)) => plan.error = Some(error.clone()),
        Some(Ok(answer)) => {
            let moves = (0..).zip(placement.iter().zip(&answer.pe_of));
            plan.moves =
                moves.filter(|(_, (from, to))| from != to).map(|(object, (_, &to))| (object, to)).collect();
        }
    }
    plan
}

fn repeated(placement: &[u32], plan: Plan) -> Result<Assignment, String> {
    let mut pe_of = placement.to_vec();
    for (object, to) in plan.moves {
        pe_of[object as usize] = to;
    }
    plan.error.map_or(Ok(Assignment::new(pe_of)), Err)
}
