//! Repeats a run of threads, in one thread ([`interleaving`](crate::interleaving) says how).
//!
//! PEs take turns. A PE whose next event needs messages that are not sent yet waits. If all PEs wait, one of them finds
//! quiescence, as in the recorded run, or the replay has diverged from the recorded run.

use super::worker::BUSY;
use crate::inbox::Bag;
use crate::interleaving::{Event, Halted, Interleaved, PeReplay, Replay};
use crate::node::{Failure, Node};
use crate::order::PeOrder;
use crate::pe::{Carrier, PeCx};
use crate::scheduler::{Built, build, execute, flush, quiet, run_queued};
use equipoise_model::table::count;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// A PE, and its position in the recorded run.
struct Replayed {
    built: Built,
    position: Rc<PeReplay>,
    /// The queues to run at the end of the turn, if the PE is in a turn and takes mail.
    turn: Option<u64>,
    /// Turns with work so far.
    busy: u32,
    /// Whether the PE has sent what it has collected since its last work.
    flushed: bool,
    /// Whether the PE has ended, by a panic or because it cannot continue.
    ended: bool,
    orders: Bag<(), PeOrder>,
}

/// Runs all PEs until all recorded events are over.
pub(crate) fn run(node: &Arc<Node>, setup: &(dyn Fn(PeCx) -> Built + Sync), replay: &Arc<Replay>) {
    let mut pes = Vec::new();
    for rank in 0..node.pes {
        let position = Rc::new(PeReplay::new(replay, rank));
        let carrier = Carrier::Interleaved(Interleaved::Replay(Rc::clone(&position)));
        let built = build(node, PeCx::new(rank, Arc::clone(node), carrier, None), setup);
        pes.extend(built.map(|built| Replayed::new(built, position)));
    }
    let agreeing = pes.iter().filter(|pe| pe.built.agrees()).count();
    if node.stopped() {
        return;
    }
    if agreeing < node.pes as usize {
        let sentence = "a setup failed that did not fail in the recorded run; start the same program";
        return node.fail(Failure::Program(replay.sentence(sentence)));
    }
    for pe in &pes {
        if let Some(difference) = replay.array_difference(&pe.built.arrays()) {
            return node.fail(Failure::Program(difference));
        }
    }
    for pe in &mut pes {
        pe.guarded(node, |pe| {
            pe.built.begin();
            true
        });
    }
    loop {
        if node.stopped() && matches!(node.outcome.lock().failure, Some(Failure::TimeLimit)) {
            pes.iter_mut().for_each(|pe| pe.built.finish());
            return;
        }
        let mut ran = false;
        for pe in &mut pes {
            ran |= pe.guarded(node, Replayed::advance);
        }
        if !ran && !pes.iter_mut().any(|pe| pe.guarded(node, Replayed::finds_quiet)) {
            break;
        }
    }
    if let Some(sentence) = difference(node, replay, &pes) {
        // Replaces the outcome: a replay that is not the recorded run has none.
        let mut outcome = node.outcome.lock();
        (outcome.result, outcome.failure) = (None, Some(Failure::Program(sentence)));
    }
    for pe in &mut pes {
        pe.built.finish();
    }
}

impl Replayed {
    fn new(built: Built, position: Rc<PeReplay>) -> Self {
        let orders = Bag::default();
        Replayed { built, position, turn: None, busy: 0, flushed: false, ended: false, orders }
    }

    /// Runs `step`, unless the PE has ended; returns whether it did something.
    fn guarded(&mut self, node: &Node, step: impl FnOnce(&mut Self) -> bool) -> bool {
        if self.ended {
            return false;
        }
        let payload = match catch_unwind(AssertUnwindSafe(|| step(self))) {
            Ok(ran) => {
                self.ended |= self.position.fault().is_some();
                return ran;
            }
            Err(payload) => payload,
        };
        self.ended = true;
        if payload.is::<Halted>() {
            self.built.pe.delivery.running.clear();
            self.position.check_end();
            return true;
        }
        let failure = self.built.panic_failure(&*payload);
        if !self.position.expects_panic() {
            let what = match failure {
                Failure::Panic { place, message } => format!("{place} panicked: {message}"),
                _ => "it panicked".into(),
            };
            self.position.diverge(&format!("{what}, but the recorded run had no panic here"));
        } else {
            node.fail_on(self.built.pe.out.rank, failure);
        }
        true
    }

    /// Continues to the end of a turn, or until messages are missing; returns whether it did something.
    fn advance(&mut self) -> bool {
        let mut ran = false;
        if self.turn.is_none() {
            if let Some(Event::Timer(number)) = self.position.next() {
                if self.built.pe.send_numbered(number) {
                    self.position.advance();
                } else {
                    self.position.diverge("no message waits for the time that is over");
                }
                return true;
            }
            let queued = self.built.pe.out.queued.get();
            if (queued != 0 || !self.flushed) && self.position.is_default() {
                if queued != 0 {
                    self.built.pe.out.queued.set(0);
                    self.run(queued);
                } else {
                    self.flushed = true;
                    flush(&self.built.pe);
                }
                return true;
            }
            match self.position.next() {
                Some(Event::Mail { same_turn: false, mailbox, .. }) => {
                    // As on a thread, what the mail queues is for the next turn.
                    self.built.pe.out.queued.set(0);
                    if !self.take(mailbox) {
                        self.built.pe.out.queued.set(queued);
                        return false;
                    }
                    (self.turn, ran) = (Some(queued), true);
                }
                Some(Event::Quiet) if queued == 0 && self.flushed => return false,
                None if self.position.is_over() => {
                    self.ended = true;
                    self.position.check_end();
                    return false;
                }
                _ => {
                    self.position.diverge("the PE has other work than in the recorded run");
                    return false;
                }
            }
        }
        while let Some(Event::Mail { same_turn: true, mailbox, .. }) = self.position.next() {
            if !self.take(mailbox) {
                return ran;
            }
            ran = true;
        }
        let queued = self.turn.take().unwrap_or_default();
        self.run(queued);
        true
    }

    /// Runs the messages and orders of the PE to itself, at the end of a turn.
    fn run(&mut self, queued: u64) {
        let Built { pe, managers, .. } = &mut self.built;
        self.flushed = false;
        run_queued(pe, managers, queued);
        self.busy = self.busy.wrapping_add(1);
        if self.busy % BUSY == 0 {
            flush(pe);
        }
    }

    /// Runs the messages from a mailbox that the next event names; false if they are not sent yet.
    fn take(&mut self, mailbox: u32) -> bool {
        let Built { pe, managers, .. } = &mut self.built;
        self.position.check();
        if self.position.fault().is_some() {
            return false;
        }
        let (mail, from) = ((mailbox / pe.out.pes) as usize, mailbox % pe.out.pes);
        if mail > 0 {
            return managers.get(mail - 1).is_some_and(|manager| manager.borrow_mut().mail(pe, from));
        }
        let taken = pe.out.take(&pe.out.node.mail, from, &mut self.orders);
        for order in self.orders.orders.drain(..) {
            execute(pe, order, managers);
        }
        taken
    }

    /// Finds quiescence if the recorded run did so here; returns whether it did.
    fn finds_quiet(&mut self) -> bool {
        let finds = self.turn.is_none() && self.position.next() == Some(Event::Quiet);
        if finds {
            self.position.advance();
            quiet(&self.built.pe.out);
        }
        finds
    }

    /// Reports that the PE waits for messages that no PE sends.
    fn waits_in_vain(&self) {
        let Some(Event::Mail { mailbox, count: messages, .. }) = self.position.next() else { return };
        let pe = &self.built.pe;
        let (mail, from) = (mailbox / pe.out.pes, mailbox % pe.out.pes);
        let about = match mail.checked_sub(1) {
            None => "about the run",
            Some(array) => pe.name(array as u16),
        };
        let messages = count(messages, "message");
        self.position
            .diverge(&format!("it takes {messages} ({about}) from PE {from}, which did not send them"));
    }
}

/// How the replay differs from the recorded run, if it does.
fn difference(node: &Node, replay: &Replay, pes: &[Replayed]) -> Option<String> {
    let fault = || pes.iter().find_map(|pe| pe.position.fault());
    if let Some(fault) = fault() {
        return Some(fault);
    }
    if replay.is_cut() && !node.stopped() {
        let events = count(pes.iter().map(|pe| pe.position.number() - 1).sum::<u64>(), "event");
        return Some(replay.sentence(&format!(
            "the file ends before the recorded run did (the run was killed, or the file was cut); the {events} \
             before its end were repeated, without a failure"
        )));
    }
    if replay.is_cut() {
        return None;
    }
    pes.iter().filter(|pe| !pe.ended).for_each(Replayed::waits_in_vain);
    if let Some(fault) = fault() {
        return Some(fault);
    }
    if node.stopped() {
        return None;
    }
    Some(match replay.ended_by() {
        Some(pe) => {
            pes[pe as usize].position.diverge("the PE ended the recorded run, and not the replay");
            return fault();
        }
        None => replay.sentence("the recorded run was interrupted here, without a result"),
    })
}
