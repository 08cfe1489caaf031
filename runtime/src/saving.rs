//! What a PE saves of itself in a checkpoint, and how it continues after a restart.
//!
//! While nothing is in flight, the state of a run is: the elements with their counters, waiting messages and the message of
//! `at_sync` ([`Slot`](crate::slot::Slot)); messages for elements that do not exist, and messages that wait for quiescence; on
//! PE 0 unfinished reductions, the counts of participants, and the number of the next broadcast, and those of sync points.
//! Where elements are is not saved: in a restarted run they begin where new elements would. So the number of PEs may differ.

use crate::checkpoint::{Checkpoint, Generation, Part};
use crate::codec;
use crate::elements::Held;
use crate::pe::{Ledgers, PeCx};
use crate::slot::NextRounds;
use crate::steps;
use equipoise_model::table::count;
use serde::{Deserialize, Serialize};

/// The state of PE 0; other PEs save none.
#[derive(Serialize, Deserialize)]
struct PeState {
    /// By array.
    ledgers: Vec<Ledgers>,
    /// By array: the number of the next broadcast.
    broadcasts: Vec<u32>,
    /// The number of sync points so far.
    points: u32,
    /// How many of them were no load-balancing steps.
    skipped: u32,
    /// The number of sync points up to the last step.
    points_before: u32,
}

/// Saves this PE, while nothing is in flight.
pub(crate) fn save(pe: &PeCx, generation: Generation, managers: &[Held]) {
    let Some(saver) = &pe.out.node.saver else { return };
    pe.collectives.steps.cost.save(pe.clock.now());
    saver.wait_for_previous();
    let mut part = Part::default();
    part.index.pe = pe.out.rank;
    part.steps = pe.collectives.steps.done();
    let saved = add_all(pe, &mut part, managers);
    transfer(pe, part.bytes.len() as u64);
    let arrays = pe.infos.iter().zip(&pe.ports);
    let heads = arrays.map(|(info, port)| port.head(info.bound_to)).collect();
    saver.add(generation, saved.map(|()| part), pe.out.node.local_pes().len(), heads);
}

/// Lets the virtual time pass in which a PE of a simulated machine writes or reads a part of a checkpoint.
fn transfer(pe: &PeCx, bytes: u64) {
    if let (Some(clock), Some(simulation)) = (pe.clock.simulated(), &pe.settings().simulation) {
        clock.spend(bytes as f64 / simulation.checkpoint_bandwidth);
    }
}

/// Nothing is in flight, and the run goes on; it may have saved itself.
pub(crate) fn goes_on(pe: &PeCx) {
    if let Some(saver) = &pe.out.node.saver {
        saver.continues();
    }
    let settings = pe.settings();
    // Without a network there is no time.
    if pe.out.rank == 0 && !settings.samples_order() {
        let mtbf = settings.checkpoint.as_ref().and_then(|plan| plan.mtbf_seconds);
        let cost = pe.collectives.steps.cost.go_on(pe.clock.now(), |ticks| pe.clock.seconds(ticks), mtbf);
        if cost.is_some() {
            pe.out.node.outcome.lock().checkpoint_cost = cost;
        }
    }
}

fn add_all(pe: &PeCx, part: &mut Part, managers: &[Held]) -> Result<(), String> {
    let parked = pe.parked();
    if let Some(by) = pe.oldest_parker() {
        let verb = if parked == 1 { "waits" } else { "wait" };
        return Err(format!(
            "{} {verb} for a reply, and a closure cannot be saved (parked by {by}); save when all replies have arrived, or \
             let an entry receive the answer",
            count(parked as u64, "parked closure")
        ));
    }
    if pe.out.rank == 0 {
        let state = PeState {
            ledgers: pe.collectives.ledgers.borrow().clone(),
            broadcasts: pe.ports.iter().map(|port| port.next_broadcast()).collect(),
            points: pe.collectives.steps.number.get(),
            skipped: pe.collectives.steps.skipped.get(),
            points_before: pe.collectives.steps.points_before.get(),
        };
        let encoded = part.record(|bytes| codec::encode_into(&state, bytes));
        part.index.state = encoded.map_err(|error| {
            format!("the state of a PE cannot be saved: {error} (please report this bug)")
        })?;
    }
    for manager in managers {
        let saved = manager.borrow_mut().save(pe, part)?;
        part.index.arrays.push(saved);
    }
    Ok(())
}

/// Takes over the state of the saved run, after the setup of a PE. The setup has taken its elements.
///
/// # Errors
/// A sentence, if the checkpoint is of another program or damaged.
pub(crate) fn restore(pe: &PeCx, checkpoint: &Checkpoint, managers: &[Held]) -> Result<(), String> {
    let heads = checkpoint.heads();
    if heads.len() != managers.len() {
        let sentence = format!(
            "has {}, and the program makes {}; restart the program that was saved",
            count(heads.len() as u64, "array"),
            managers.len()
        );
        return Err(checkpoint.unfit(&sentence).to_string());
    }
    let bytes = checkpoint.state_of(0).map_err(|error| error.to_string())?;
    let mut state: PeState = codec::decode(&bytes)
        .map_err(|error| checkpoint.unfit(&format!("does not fit: {error}")).to_string())?;
    if state.ledgers.len() != managers.len() || state.broadcasts.len() != managers.len() {
        return Err(checkpoint
            .unfit("has the state of other arrays; restart the program that was saved")
            .to_string());
    }
    if state.skipped > state.points || state.points_before > state.points {
        let reason = "has counts of sync points that no run saves; restart from another checkpoint";
        return Err(checkpoint.unfit(reason).to_string());
    }
    pe.collectives.steps.number.set(state.points);
    pe.collectives.steps.resumed.set(state.points);
    pe.collectives.steps.skipped.set(state.skipped);
    pe.collectives.steps.points_before.set(state.points_before);
    for ((ledgers, info), head) in state.ledgers.iter_mut().zip(&pe.infos).zip(heads) {
        for ledger in [&mut ledgers.reductions, &mut ledgers.syncs] {
            if !ledger.is_plausible() {
                let reason = "has counts of elements that no run saves; restart from another checkpoint";
                return Err(checkpoint.unfit(reason).to_string());
            }
            if head.count != info.count {
                ledger.regroup(info.count);
            }
        }
    }
    let next = state.ledgers.iter().zip(state.broadcasts).map(|(ledgers, broadcast)| NextRounds {
        reduction: ledgers.reductions.next(),
        barrier: ledgers.syncs.next(),
        broadcast,
    });
    let next: Vec<_> = next.collect();
    if pe.out.rank == 0 {
        *pe.collectives.ledgers.borrow_mut() = state.ledgers;
    }
    // What the saved PE n had goes to PE n, modulo the number of PEs now.
    let mut rests = vec![Vec::new(); managers.len()];
    for saved in (pe.out.rank..checkpoint.pes()).step_by(pe.out.pes as usize) {
        let of_saved = checkpoint.rests_of(saved).map_err(|error| error.to_string())?;
        rests.iter_mut().zip(of_saved).for_each(|(rests, rest)| rests.push(rest));
    }
    for ((manager, rests), next) in managers.iter().zip(rests).zip(next) {
        let restored = manager.borrow_mut().restore(&rests, next, heads.len());
        restored.map_err(|reason| checkpoint.unfit(&reason).to_string())?;
    }
    Ok(())
}

/// Continues the saved run on a PE, when all PEs are set up.
pub(crate) fn resume(pe: &PeCx, managers: &[Held]) {
    let steps = &pe.collectives.steps;
    transfer(pe, steps.restored_bytes.get());
    steps.cost.restart(pe.clock.now(), |ticks| pe.clock.seconds(ticks));
    managers.iter().for_each(|manager| manager.borrow_mut().resend(pe));
    if pe.out.rank == 0 {
        steps::resume_after_restart(pe);
    }
}
