//! Quiescence of all processes.
//!
//! Process 0 sends waves down the tree. A process answers when its PEs rest and its children have answered, with the
//! number of batches that its PEs have sent and received. If two waves in a row have the same sums, and as many batches
//! received as sent, then no message is in flight (F. Mattern, Algorithms for distributed termination detection, 1987,
//! four counters). Then a third wave carries the number of the round to every process, before any PE sends what has waited: a
//! send that waits for quiescence and is made after such a message must belong to the next round. If waves repeat the
//! same sums, but fewer batches were received than sent, messages are lost, and the run fails.

use super::{Control, Counts, Engine, Wire};
use crate::node::Failure;
use crate::order::PeOrder;
use crate::quiescence::Quiet;
use std::time::{Duration, Instant};

/// The time between waves: at first, and at most. It doubles from wave to wave while nothing changes.
const PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// After this number of waves with the same sums and fewer batches received than sent, these batches are lost.
const LOST_AFTER: u32 = 400;

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
        let is_same = self.waves.before == Some(sum);
        self.waves.before = Some(sum);
        let pause = match self.waves.last {
            Some((_, pause)) if is_same => (pause * 2).min(LONGEST_PAUSE),
            _ => PAUSE,
        };
        let pause = if self.node.settings.is_simulated() { Duration::ZERO } else { pause };
        self.waves.last = Some((Instant::now(), pause));
        if !is_same {
            (self.waves.repeated, self.waves.found) = (0, false);
        } else if sum.sent != sum.received {
            self.waves.repeated += 1;
            if self.waves.repeated == LOST_AFTER {
                let lost = sum.sent.wrapping_sub(sum.received);
                let what = if lost == 1 {
                    "1 batch of messages between processes was".into()
                } else {
                    format!("{lost} batches of messages between processes were")
                };
                self.fail(format!("{what} lost; the network or the transport is at fault"));
            }
        } else if sum.waiting == 0 {
            self.node.fail(Failure::Quiet);
        } else if !self.waves.found {
            match self.node.next_checkpoint() {
                Ok(Some(generation)) => {
                    (self.waves.before, self.waves.last) = (None, None);
                    self.found_quiet(wire, give, Quiet::Save(generation));
                }
                Ok(None) => {
                    // The next wave tells every process the number of the round.
                    self.node.quiescence.reached(self.node.quiescence.rounds() + 1);
                    self.waves.found = true;
                    self.waves.last = None;
                }
                Err(failure) => self.node.fail(failure),
            }
        } else {
            (self.waves.found, self.waves.before, self.waves.last) = (false, None, None);
            let round = self.node.quiescence.rounds();
            self.found_quiet(wire, give, Quiet::Send { round });
        }
    }

    /// Tells the children and the PEs of this process what they do now that nothing is in flight.
    pub(super) fn found_quiet(
        &mut self,
        wire: &mut dyn Wire,
        give: &mut dyn FnMut(u32, PeOrder),
        quiet: Quiet,
    ) {
        // Counted as messages: no wave may succeed before every process has received them.
        self.sent += self.tree.children(self.me).count() as u64;
        self.send_control_to_children(wire, &Control::Quiet(quiet));
        for pe in self.node.local_pes() {
            give(pe, PeOrder::Quiet(quiet));
        }
    }
}
