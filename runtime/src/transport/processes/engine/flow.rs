//! Flow control: how much is under way to other processes, and how much waits.
//!
//! A process has at most [`WINDOW_BYTES`] (and one batch) under way to another one that were not yet executed; further
//! batches wait at the sender. The receiver reports what its PEs have executed, after every [`EXECUTED_BYTES`].
//!
//! # How much waits
//! While more than [`CONGESTED_BYTES`] wait in a process, its PEs run only messages from other processes
//! ([`Post::is_congested`](crate::batches::Post::is_congested)). Those may send more. So the process then withholds its
//! reports: it reports to another process at most as many bytes as that one has reported to it meanwhile. The others use up
//! their windows, then their batches wait, until they are congested, too. What one entry method sends is not limited.
//!
//! # Why it cannot deadlock
//! Two assumptions: an entry method returns, and PEs always execute a batch that arrives, for which they need no window. So
//! what was sent is executed. The receiver reports it, unless it withholds the report. It does so only while more bytes
//! wait than a limit. If nothing of what waits leaves the process during a pause, because processes wait for each other in a
//! circle, the limit rises above it, and the report is sent (like buffers in T. M. Parks, Bounded scheduling of process
//! networks, 1995). Batches that leave without waiting, for other processes, do not count. A report opens a window, and a window
//! that is not full lets a batch pass. The pauses become longer, so that a receiver in a long entry method raises the limit only a
//! few times.
//!
//! The limit and the pause fall again, by a step for every [`PAUSE`] in which at most [`CONGESTED_BYTES`] wait. No limit is lower, so
//! the process withholds nothing then, and the argument does not depend on the height of the limit. A process that is congested again
//! begins with the lower limit: it may have to wait for pauses again, each of which ends.

use super::{Control, Engine, Phase, Wire};
use crate::desk::CONGESTED_BYTES;
use std::time::{Duration, Instant};

/// The most bytes under way to one process that were not yet executed there, apart from the last batch. Smaller in tests.
pub(in crate::transport::processes) const WINDOW_BYTES: u64 = if cfg!(test) { 8 << 10 } else { 8 << 20 };
/// After this number of executed bytes, the receiver reports them to the sender.
pub(super) const EXECUTED_BYTES: u64 = WINDOW_BYTES / 8;
/// The first pause.
const PAUSE: Duration = Duration::from_millis(100);
/// In place of time, for simulated processes: how long a turn of the connection takes.
const TURN: Duration = Duration::from_micros(100);

/// When a process withholds its reports.
pub(super) struct BackPressure {
    /// The number of bytes that may wait; at least [`CONGESTED_BYTES`].
    limit: u64,
    pause: Duration,
    /// The bytes that left while more waited for the same process; how many there were at the last look, and when that was
    /// first seen.
    left_bytes: u64,
    seen_bytes: u64,
    since: Duration,
    /// Whether the process withheld its reports at the last look.
    withholds: bool,
    /// While the process is not congested: since when, or since the limit fell.
    calm_since: Option<Duration>,
    start: Instant,
    /// The time of simulated processes.
    simulated: Duration,
}

impl Default for BackPressure {
    fn default() -> Self {
        BackPressure {
            limit: CONGESTED_BYTES,
            pause: PAUSE,
            left_bytes: 0,
            seen_bytes: 0,
            since: Duration::ZERO,
            withholds: false,
            calm_since: None,
            start: Instant::now(),
            simulated: Duration::ZERO,
        }
    }
}

impl BackPressure {
    /// Whether the limit is to fall when the process is not congested.
    pub(super) fn is_raised(&self) -> bool {
        self.limit > CONGESTED_BYTES
    }

    fn now(&self, is_simulated: bool) -> Duration {
        if is_simulated { self.simulated } else { self.start.elapsed() }
    }

    /// The process is not congested: the limit and the pause fall by a step if that has lasted for a while.
    fn falls(&mut self, now: Duration) {
        let since = *self.calm_since.get_or_insert(now);
        if now.saturating_sub(since) >= PAUSE {
            self.limit = (self.limit * 2 / 3).max(CONGESTED_BYTES);
            self.pause = (self.pause / 2).max(PAUSE);
            self.calm_since = Some(now);
        }
    }
}

impl Engine {
    /// Sends the batches for a process that its window lets pass.
    pub(super) fn send_waiting(&mut self, wire: &mut dyn Wire, to: u32) {
        // What is not sent when the run is over is not needed.
        while self.phase <= Phase::Running {
            let peer = &mut self.peers[to as usize];
            if peer.sent_bytes - peer.executed_bytes >= WINDOW_BYTES {
                return;
            }
            let Some(batch) = peer.waiting.pop_front() else { return };
            peer.sent_bytes += batch.len() as u64;
            peer.sent += 1;
            if !peer.waiting.is_empty() {
                self.pressure.left_bytes += batch.len() as u64;
            }
            self.left_bytes += batch.len() as u64;
            self.desk.return_buffer(wire.send(to, batch));
        }
    }

    /// Tells processes how much of what they sent has been executed.
    pub(super) fn report_executed(&mut self, wire: &mut dyn Wire) {
        let withholds = self.withholds_reports();
        for from in std::mem::take(&mut self.unreported) {
            let (executed, peer) = (self.desk.executed_bytes(from), &mut self.peers[from as usize]);
            let unreported = executed - peer.reported_bytes;
            let bytes = if withholds { unreported.min(peer.credit_bytes) } else { unreported };
            if bytes >= EXECUTED_BYTES && self.phase <= Phase::Running {
                peer.reported_bytes += bytes;
                peer.credit_bytes = peer.credit_bytes.saturating_sub(bytes);
                self.send_control(wire, from, &Control::Executed { bytes });
            }
            let peer = &self.peers[from as usize];
            if peer.received_bytes - peer.reported_bytes >= EXECUTED_BYTES {
                self.unreported.push(from);
            }
        }
    }

    /// The number of bytes that may wait, for tests.
    #[cfg(test)]
    pub(in crate::transport::processes) fn limit_bytes(&self) -> u64 {
        self.pressure.limit
    }

    /// Whether so much waits that other processes must send less.
    fn withholds_reports(&mut self) -> bool {
        let (pressure, is_simulated) = (&mut self.pressure, self.node.settings.is_simulated());
        pressure.simulated += TURN;
        if !self.desk.is_congested() {
            pressure.withholds = false;
            if pressure.is_raised() {
                pressure.falls(pressure.now(is_simulated));
            }
            return false;
        }
        pressure.calm_since = None;
        let waiting = self.desk.unsent_bytes() - self.left_bytes;
        if waiting <= pressure.limit {
            pressure.withholds = false;
            return false;
        }
        let now = pressure.now(is_simulated);
        if !pressure.withholds {
            self.peers.iter_mut().for_each(|peer| peer.credit_bytes = 0);
        }
        if !pressure.withholds || pressure.seen_bytes != pressure.left_bytes {
            (pressure.withholds, pressure.seen_bytes, pressure.since) = (true, pressure.left_bytes, now);
        } else if now.saturating_sub(pressure.since) >= pressure.pause {
            (pressure.limit, pressure.pause) = (waiting + waiting / 2, pressure.pause * 2);
            return false;
        }
        true
    }
}
