//! Nothing is in flight: found out between threads, so that sends that wait for it can go, or the run
//! can say that it will never end.
//!
//! Every PE has a counter that is odd while it rests: it has run out of work, has passed on whatever
//! it collected for others, and has seen its bell silent. It counts on before it touches its bell
//! again. Suppose all counters are odd, then all bells are silent, then the counters are the same as
//! before: a message in a mailbox would have rung before its sender rested, and its receiver would
//! either still hear it or have counted on. So there is none.

use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::transport::Bells;

pub(crate) struct Quiescence {
    rests: Box<[CachePadded<AtomicU64>]>,
    /// The sum of the counters when quiescence was last found, so that one PE finds it only.
    found: AtomicU64,
    /// Sends that wait for quiescence, on all PEs.
    waiting: AtomicU64,
    /// How many times quiescence was found that some of them waited for.
    rounds: AtomicU64,
}

impl Quiescence {
    pub(crate) fn new(pes: u32) -> Self {
        Quiescence {
            rests: (0..pes).map(|_| CachePadded::default()).collect(),
            found: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
        }
    }

    /// One more send waits; returns how many rounds came before, none of which it waits for.
    pub(crate) fn wait(&self) -> u64 {
        self.waiting.fetch_add(1, SeqCst);
        self.rounds.load(SeqCst)
    }

    /// So many of the sends that waited are sent.
    pub(crate) fn served(&self, sends: usize) {
        self.waiting.fetch_sub(sends as u64, SeqCst);
    }

    /// Counts another round and returns its number, if anything waits for one.
    pub(crate) fn round(&self) -> Option<u64> {
        (self.waiting.load(SeqCst) > 0).then(|| self.rounds.fetch_add(1, SeqCst) + 1)
    }

    /// The PE rests.
    pub(crate) fn rest(&self, pe: u32) {
        self.rests[pe as usize].fetch_add(1, SeqCst);
    }

    /// The PE goes on, and will look at its bell.
    pub(crate) fn go_on(&self, pe: u32) {
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

    /// Whether nothing is in flight; true to one PE only, and once for each time.
    pub(crate) fn found(&self, bells: &Bells) -> bool {
        let Some(sum) = self.all_rest() else { return false };
        (0..self.rests.len()).all(|pe| bells.surely_quiet(pe as u32))
            && self.all_rest() == Some(sum)
            && self.found.fetch_max(sum, SeqCst) < sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_once_when_the_last_pe_rests() {
        let (quiescence, bells) = (Quiescence::new(2), Bells::new(2));
        quiescence.rest(0);
        assert!(!quiescence.found(&bells));
        quiescence.rest(1);
        assert!(quiescence.found(&bells));
        assert!(!quiescence.found(&bells), "one PE has found it");
        quiescence.go_on(0);
        assert!(!quiescence.found(&bells));
        quiescence.rest(0);
        assert!(quiescence.found(&bells), "something happened in between");
    }
}
