//! Detects quiescence between threads: no message is in flight. Then sends that wait for quiescence proceed; if there
//! are none, the run fails, because it cannot continue.
//!
//! Every PE has a counter that is odd while the PE rests: the PE has no work, has sent everything it
//! collected for other PEs, and has read its bell as silent. It increments the counter before it takes from its bell
//! again. If three reads in a row find all counters odd, all bells silent, and the counters unchanged, no message is in
//! flight. Proof: the sender of a message in a mailbox rings the bell before it rests. So either the bell would be set, or
//! the receiver would have incremented its counter.

use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use crate::checkpoint::Generation;
use crate::inbox::Bells;
use serde::{Deserialize, Serialize};

/// What PEs do when nothing is in flight.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Quiet {
    /// Each saves itself. Quiescence is found again when all have.
    Save(Generation),
    /// The sync point that waited for the checkpoint goes on. The messages that wait for quiescence go on waiting, because the elements
    /// have only begun the sync point.
    Step,
    /// Each sends the messages that have waited for quiescence, which was found for the `round`-th time.
    Send { round: u64 },
}

pub(crate) struct Quiescence {
    rests: Box<[CachePadded<AtomicU64>]>,
    /// The sum of the counters when quiescence was last found, so that only one PE finds it.
    found: AtomicU64,
    /// The number of sends that wait for quiescence, on all PEs.
    waiting: AtomicU64,
    /// Whether a sync point waits for the checkpoint before it, on PE 0; it is one of the waiting sends.
    step_waits: AtomicBool,
    /// The number of rounds: how often quiescence was found while sends waited for it.
    rounds: AtomicU64,
}

impl Quiescence {
    pub(crate) fn new(pes: u32) -> Self {
        Quiescence {
            rests: (0..pes).map(|_| CachePadded::default()).collect(),
            found: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            step_waits: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
        }
    }

    /// Adds a waiting send; returns the number of earlier rounds, for which it does not wait.
    pub(crate) fn wait(&self) -> u64 {
        self.waiting.fetch_add(1, SeqCst);
        self.rounds.load(SeqCst)
    }

    /// Removes `sends` waiting sends, which are sent now.
    pub(crate) fn served(&self, sends: usize) {
        self.waiting.fetch_sub(sends as u64, SeqCst);
    }

    /// A sync point waits until nothing is in flight and the run has saved itself.
    pub(crate) fn wait_for_step(&self) {
        self.step_waits.store(true, SeqCst);
        self.waiting.fetch_add(1, SeqCst);
    }

    /// Whether a sync point waits.
    pub(crate) fn step_waits(&self) -> bool {
        self.step_waits.load(SeqCst)
    }

    /// The sync point goes on.
    pub(crate) fn step_goes_on(&self) {
        self.step_waits.store(false, SeqCst);
        self.served(1);
    }

    /// Starts a round and returns its number.
    pub(crate) fn begin_round(&self) -> u64 {
        self.rounds.fetch_add(1, SeqCst) + 1
    }

    /// The number of sends that wait for quiescence.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(SeqCst)
    }

    /// The number of rounds so far.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds.load(SeqCst)
    }

    /// Another process has started rounds up to this number.
    pub(crate) fn reached(&self, round: u64) {
        self.rounds.fetch_max(round, SeqCst);
    }

    /// The PE rests.
    pub(crate) fn rest(&self, pe: u32) {
        self.rests[pe as usize].fetch_add(1, SeqCst);
    }

    /// The PE continues, and will take from its bell.
    pub(crate) fn resume(&self, pe: u32) {
        self.rests[pe as usize].fetch_add(1, SeqCst);
    }

    fn all_rest(&self) -> Option<u64> {
        let mut sum = 0u64;
        for rest in &self.rests {
            let rest = rest.load(SeqCst);
            if rest % 2 == 0 {
                return None;
            }
            sum += rest;
        }
        Some(sum)
    }

    /// If no message is in flight between the PEs of this process: a number that grows whenever a PE continues.
    pub(crate) fn at_rest(&self, bells: &Bells) -> Option<u64> {
        let sum = self.all_rest()?;
        let is_quiet = (0..self.rests.len()).all(|pe| bells.quiet_seq_cst(pe as u32));
        (is_quiet && self.all_rest() == Some(sum)).then_some(sum)
    }

    /// Whether no message is in flight; true only once for each quiescence, on one PE.
    pub(crate) fn found(&self, bells: &Bells) -> bool {
        self.at_rest(bells).is_some_and(|sum| self.found.fetch_max(sum, SeqCst) < sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_quiescence_once_when_the_last_pe_rests() {
        let (quiescence, bells) = (Quiescence::new(2), Bells::new(2));
        quiescence.rest(0);
        assert!(!quiescence.found(&bells));
        quiescence.rest(1);
        assert!(quiescence.found(&bells));
        assert!(!quiescence.found(&bells), "one PE has found it");
        quiescence.resume(0);
        assert!(!quiescence.found(&bells));
        quiescence.rest(0);
        assert!(quiescence.found(&bells), "PE 0 worked in between");
    }
}
