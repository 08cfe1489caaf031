//! The end of a run in all processes.
//!
//! A process whose run is over tells process 0. The first ending counts; process 0 tells it to all. When the PEs of a process
//! have stopped, the process adds what is left of it to what its children report: counts, what elements wait for, and how
//! many messages it has sent to each process. Process 0 sends the sums back, so that each process knows how many messages
//! are still under way to it, and receives them: no message is left in the network. A destructor that panicked when a PE stopped
//! fails the run after its end; the sums say that, too. If a run has failed and a process does not stop within [`GRACE`],
//! because it is in the middle of an entry method, all processes are aborted.

use super::{Control, Ending, Engine, Gathered, Phase, Wire};
use crate::events::join::ProcessEvents;
use crate::node::Failure;
use crate::process;
use std::time::{Duration, Instant};

/// The time that processes have to stop after a failure.
const GRACE: Duration = Duration::from_millis(800);
/// The time they have after the time limit: the watcher of a stuck process ends it earlier, with a better sentence.
const LONG_GRACE: Duration = Duration::from_secs(4);
/// The time they have in addition for each MiB of `--record-limit`, which process 0 gathers; and the largest number of MiB for
/// which they have it.
const RECORDED: (Duration, u64) = (Duration::from_millis(20), 1500);

impl Engine {
    /// The run is over in this process: tells process 0, once.
    pub(super) fn over(&mut self, wire: &mut dyn Wire) -> bool {
        if self.ended.is_some() {
            return self.abort_if_late(wire);
        }
        self.ended = Some(Instant::now());
        let ending = Ending::of(&self.node.outcome.lock());
        if self.me == 0 {
            self.stop(wire, ending);
        } else {
            self.send_control(wire, 0, &Control::Over(ending));
        }
        true
    }

    /// The run is over in all processes.
    pub(super) fn stop(&mut self, wire: &mut dyn Wire, ending: Ending) {
        self.print(wire);
        self.send_control_to_children(wire, &Control::Stop(ending.clone()));
        self.node.end_as(ending.into());
        self.ended.get_or_insert_with(Instant::now);
        self.phase = Phase::Stopping;
        if self.node.outcome.lock().failure.is_none() {
            self.compare_clocks(wire, true);
        }
    }

    /// Reports what is left of this process and its children, once all are there.
    pub(super) fn report(&mut self, wire: &mut dyn Wire) -> bool {
        if !self.pes_have_stopped
            || self.clocks.waits()
            || self.reports.len() < self.tree.children(self.me).count()
        {
            return self.abort_if_late(wire);
        }
        self.print(wire);
        let sent_to = self.peers.iter().map(|peer| peer.sent).collect();
        let mut left = Gathered::take(&mut self.node.outcome.lock(), &self.desk, sent_to);
        if self.me != 0 && self.node.start.is_some() {
            let pes = std::mem::take(&mut self.node.outcome.lock().events);
            let alignment = self.clocks.alignment();
            left.events.push(ProcessEvents { process: self.me, alignment, pes });
        }
        std::mem::take(&mut self.reports).into_iter().for_each(|report| left.add(report));
        if self.me == 0 {
            self.totals = Some(left.give(&mut self.node.outcome.lock()));
        } else {
            self.send_control(wire, self.tree.parent(self.me), &Control::Gathered(Box::new(left)));
        }
        self.phase = Phase::Finishing;
        if let Some(totals) = &self.totals {
            let finish = Control::Finish(totals.clone());
            self.send_control_to_children(wire, &finish);
        }
        true
    }

    /// Ends when all messages to this process have arrived.
    pub(super) fn finish(&mut self, wire: &mut dyn Wire) -> bool {
        let Some(totals) = &self.totals else { return self.abort_if_late(wire) };
        let received: u64 = self.peers.iter().map(|peer| peer.received).sum();
        let expected = totals.sent_to.get(self.me as usize).copied().unwrap_or_default();
        // Of a failed run, messages may be lost.
        let may_lack = self.node.settings.is_simulated() && self.node.outcome.lock().failure.is_some();
        if received < expected && !may_lack {
            return self.abort_if_late(wire);
        }
        totals.counts.give(&mut self.node.outcome.lock());
        if let Some(failure) = &totals.failure {
            self.node.fail_after_end(failure.clone());
        }
        self.phase = Phase::Over;
        true
    }

    /// Aborts all processes of a program if the run has failed and some process does not stop.
    fn abort_if_late(&mut self, wire: &mut dyn Wire) -> bool {
        let settings = &self.node.settings;
        let may_abort = settings.program && !settings.is_simulated();
        let Some(ended) = self.ended.filter(|_| may_abort) else { return false };
        let mut outcome = self.node.outcome.lock();
        let grace = match &outcome.failure {
            // A run that has saved itself has not failed.
            None | Some(Failure::Saved { .. }) => return false,
            Some(Failure::TimeLimit | Failure::Interrupted { .. }) => LONG_GRACE,
            Some(_) => GRACE,
        };
        let recorded =
            settings.record_bytes_per_pe().map_or(0, |bytes| bytes.saturating_mul(settings.pes as u64));
        let grace = grace + RECORDED.0 * (recorded >> 20).min(RECORDED.1) as u32;
        // Process 0 knows the failure that counts, so it comes first.
        if ended.elapsed() < if self.me == 0 { grace } else { grace * 7 / 4 } {
            return false;
        }
        if let Some(error) = outcome.error(&self.node.settings) {
            process::print_end(&error);
            wire.abort(error.exit_code())
        }
        false
    }
}
