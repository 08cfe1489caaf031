//! Quiescence of all processes.
//!
//! Process 0 sends waves down the tree. A process answers when its PEs rest and its children have answered, with the
//! number of batches that its PEs have sent and received. If two waves in a row have the same sums, and as many batches
//! received as sent, then no message is in flight (F. Mattern, Algorithms for distributed termination detection, 1987,
//! four counters).
//!
//! Then a third wave tells every process the number of the round, before any PE sends what has waited. The messages of this
//! round may arrive in a process before it knows of the round otherwise, and what they postpone belongs to the next round.
//!
//! If waves repeat the same sums, but fewer batches were received than sent, batches are lost, and the run fails.

use super::{Control, Counts, Engine, Wire};
use crate::order::PeOrder;
use crate::process;
use crate::quiescence::Quiet;
use std::time::{Duration, Instant};

/// The time between waves: at first, and at most. It doubles from wave to wave while nothing changes.
const PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// After this number of waves with the same sums and fewer batches received than sent, which takes 20 s, these batches are
/// late: the network is slow, or they are lost. Simulated processes wait for nothing else, so there they are lost.
const LATE: u32 = 400;
/// After this number of such waves, which takes 10 minutes, they are lost. Networks may stall for a minute.
const LOST: u32 = 12_000;

/// A mistake in this protocol, which tests make on purpose and must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport::processes) enum Mistake {
    OneWave,
    CountsMayDiffer,
}

#[cfg(test)]
thread_local! {
    pub(in crate::transport::processes) static MISTAKE: std::cell::Cell<Option<Mistake>> = const { std::cell::Cell::new(None) };
}

/// Whether this protocol has a mistake: only in tests.
#[cfg(test)]
fn has(mistake: Mistake) -> bool {
    MISTAKE.get() == Some(mistake)
}

#[cfg(not(test))]
const fn has(_: Mistake) -> bool {
    false
}

/// Waves, in the view of one process.
#[derive(Default)]
pub(super) struct Waves {
    /// The number of the current wave; on process 0 waves begin.
    pub(super) wave: u64,
    /// Whether this process has to answer, and the sum and number of the answers of its children.
    pub(super) asked: bool,
    pub(super) answers: usize,
    pub(super) sum: Counts,
    /// On process 0: the sums of the previous wave, and how many waves in a row had the same sums and fewer batches received
    /// than sent.
    pub(super) before: Option<Counts>,
    pub(super) repeated: u32,
    /// On process 0: whether quiescence was found, and the wave tells the number of the round.
    pub(super) found: bool,
    /// On process 0: the end of the last wave, and the pause after it.
    pub(super) last: Option<(Instant, Duration)>,
}

impl Engine {
    /// Starts waves, on process 0, and answers them.
    pub(super) fn take_part_in_waves(
        &mut self,
        wire: &mut dyn Wire,
        give: &mut dyn FnMut(u32, PeOrder),
    ) -> bool {
        if self.me == 0 && !self.waves.asked {
            let is_due = self.waves.last.is_none_or(|(end, pause)| end.elapsed() >= pause);
            if !is_due || self.node.quiescence.at_rest(&self.node.bells).is_none() {
                return false;
            }
            self.waves.wave += 1;
            (self.waves.asked, self.waves.answers, self.waves.sum) = (true, 0, Counts::default());
            let (wave, round) = (self.waves.wave, self.node.quiescence.rounds());
            self.send_control_to_children(wire, &Control::Count { wave, round });
        }
        if !self.waves.asked || self.waves.answers < self.tree.children(self.me).count() {
            return false;
        }
        let Some(mine) = self.counts() else { return false };
        self.waves.asked = false;
        self.waves.sum.add(mine);
        if self.me == 0 {
            self.wave_is_over(wire, give);
        } else {
            let (wave, counts) = (self.waves.wave, self.waves.sum);
            self.send_control(wire, self.tree.parent(self.me), &Control::Counted { wave, counts });
        }
        true
    }

    /// The counts of this process, if its PEs rest.
    fn counts(&self) -> Option<Counts> {
        let (quiescence, bells) = (&self.node.quiescence, &self.node.bells);
        let before = quiescence.at_rest(bells)?;
        let counts = Counts {
            sent: self.desk.sent() + self.sent,
            received: self.received,
            waiting: quiescence.waiting(),
        };
        // A PE that continued meanwhile may have sent a batch.
        (quiescence.at_rest(bells) == Some(before)).then_some(counts)
    }

    /// All processes have answered a wave, on process 0.
    fn wave_is_over(&mut self, wire: &mut dyn Wire, give: &mut dyn FnMut(u32, PeOrder)) {
        let sum = self.waves.sum;
        let is_same = self.waves.before == Some(sum) || has(Mistake::OneWave);
        self.waves.before = Some(sum);
        let pause = match self.waves.last {
            Some((_, pause)) if is_same => (pause * 2).min(LONGEST_PAUSE),
            _ => PAUSE,
        };
        let pause = if self.node.settings.is_simulated() { Duration::ZERO } else { pause };
        self.waves.last = Some((Instant::now(), pause));
        if !is_same {
            (self.waves.repeated, self.waves.found) = (0, false);
            return;
        }
        if sum.sent != sum.received && !has(Mistake::CountsMayDiffer) {
            self.waves.repeated += 1;
            return self.report_lost(sum.sent.wrapping_sub(sum.received));
        }
        if self.waves.found {
            // Every process knows the number of the round.
            (self.waves.found, self.waves.before, self.waves.last) = (false, None, None);
            let round = self.node.quiescence.rounds();
            return self.found_quiet(wire, give, Quiet::Send { round });
        }
        match self.node.continuation(sum.waiting) {
            Err(failure) => self.node.fail(failure),
            Ok(Some(quiet)) => {
                (self.waves.before, self.waves.last) = (None, None);
                self.found_quiet(wire, give, quiet);
            }
            Ok(None) => {
                // The next wave tells every process the number of the round.
                self.node.quiescence.reached(self.node.quiescence.rounds() + 1);
                self.waves.found = true;
                self.waves.last = None;
            }
        }
    }

    /// Warns of batches that have been sent and do not arrive, and later ends the run.
    fn report_lost(&self, batches: u64) {
        let are_lost = self.waves.repeated == if self.node.settings.is_simulated() { LATE } else { LOST };
        if !are_lost && self.waves.repeated != LATE {
            return;
        }
        let (what, verb) = match batches {
            1 => ("1 batch of messages between processes".into(), "was"),
            _ => (format!("{batches} batches of messages between processes"), "were"),
        };
        if are_lost {
            self.fail(format!("{what} {verb} lost; the network or the transport is at fault"));
        } else {
            let verb = if batches == 1 { "has" } else { "have" };
            let minutes = LONGEST_PAUSE * LOST / 60;
            process::warn(&format!(
                "{what} {verb} not arrived for 20 s, and all PEs wait; the run fails if that lasts for {} minutes",
                minutes.as_secs()
            ));
        }
    }

    /// Tells the children and the PEs of this process what they do now that nothing is in flight.
    pub(super) fn found_quiet(
        &mut self,
        wire: &mut dyn Wire,
        give: &mut dyn FnMut(u32, PeOrder),
        quiet: Quiet,
    ) {
        self.send_control_to_children(wire, &Control::Quiet(quiet));
        for pe in self.node.local_pes() {
            give(pe, PeOrder::Quiet(quiet));
        }
    }
}
