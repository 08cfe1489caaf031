//! The control messages between the connections of processes, in addition to batches of orders: a closed list.

use crate::checkpoint::Reason;
use crate::desk::Desk;
use crate::events::join::ProcessEvents;
use crate::node::{Failure, Outcome};
use crate::quiescence::Quiet;
use crate::report::Traffic;
use crate::waiting::Waiting;
use equipoise_model::table::bytes;
use serde::{Deserialize, Serialize};

/// A control message between two processes. "Up" and "down" are along the tree of processes, whose root is process 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Control {
    /// The setup of all processes of a subtree is over and made the same; `setup` describes it. Up.
    Ready { setup: Vec<String> },
    /// All setups are the same: PEs begin. Down.
    Start,
    /// The run is over in the sending process. To process 0.
    Over(Ending),
    /// The run is over. Down.
    Stop(Ending),
    /// Asks for the counts of a process as soon as it is at rest; quiescence has been found `round` times. Down.
    Count { wave: u64, round: u64 },
    /// The counts of all processes of a subtree, each of which was at rest. Up.
    Counted { wave: u64, counts: Counts },
    /// Nothing is in flight. Down.
    Quiet(Quiet),
    /// A process wants a checkpoint, which process 0 begins when nothing is in flight. To process 0.
    Checkpoint(Reason),
    /// The bytes of batches of the receiving process that were executed since the last such message.
    Executed { bytes: u64 },
    /// Lines that PEs have printed. To process 0.
    Print(Vec<String>),
    /// Asks process 0 for its time; the time of the sender is `asked`.
    AsksTime { asked: u64 },
    /// The answer: the time of process 0 is `now`. Times are nanoseconds since the recording began.
    Time { asked: u64, now: u64 },
    /// What is left of the processes of a subtree, whose PEs have stopped. Up.
    Gathered(Box<Gathered>),
    /// What is left of all processes. Down.
    Finish(Totals),
}

impl Control {
    /// Whether the message counts like a batch: no wave may succeed before it has arrived.
    pub(super) fn counts_for_quiescence(&self) -> bool {
        matches!(self, Control::Quiet(_) | Control::Checkpoint(_))
    }

    /// Whether the message is in the numbers of [`Gathered::sent_to`].
    pub(super) fn counts_for_end(&self) -> bool {
        !matches!(self, Control::Gathered(_) | Control::Finish(_))
    }
}

/// How a run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Ending {
    /// With this result, encoded.
    Result(#[serde(with = "crate::codec::numbers")] Vec<u8>),
    Failure(Failure),
}

/// The counts from which quiescence follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Batches that PEs have handed over for other processes, and control messages that count like batches.
    pub(super) sent: u64,
    /// Those that have arrived from other processes.
    pub(super) received: u64,
    /// Sends that wait for quiescence.
    pub(super) waiting: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Counts) {
        self.sent += other.sent;
        self.received += other.received;
        self.waiting += other.waiting;
    }
}

/// What is left of some processes at the end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Gathered {
    /// The number of batches and of control messages that count to each process.
    pub(super) sent_to: Vec<u64>,
    pub(super) counts: RunCounts,
    /// Why the run failed, perhaps after its end.
    pub(super) failure: Option<Failure>,
    pub(super) inserts_in_flight: i64,
    /// The bytes that were sent to other processes, minus those that were executed.
    pub(super) bytes_in_flight: i64,
    pub(super) waiting: Waiting,
    pub(super) warnings: Vec<String>,
    /// What the PEs recorded, by process; not of process 0.
    pub(super) events: Vec<ProcessEvents>,
}

/// The counts of a report.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct RunCounts {
    executions: u64,
    remote_messages: u64,
    migrations: u64,
    traffic: Traffic,
}

/// What all processes learn at the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Totals {
    /// The number of messages that each process has been sent, without control messages of this type and of [`Gathered`].
    pub(super) sent_to: Vec<u64>,
    pub(super) counts: RunCounts,
    /// Why the run failed, perhaps after its end.
    pub(super) failure: Option<Failure>,
}

impl Ending {
    /// How the run ended in this process.
    pub(super) fn of(outcome: &Outcome) -> Self {
        match (&outcome.failure, &outcome.result) {
            (Some(failure), _) => Ending::Failure(failure.clone()),
            (None, Some(result)) => {
                Ending::Result(result.downcast_ref::<Vec<u8>>().cloned().unwrap_or_default())
            }
            (None, None) => Ending::Failure(Failure::Program("the run ended without a result".into())),
        }
    }
}

impl From<Ending> for Result<Vec<u8>, Failure> {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Result(result) => Ok(result),
            Ending::Failure(failure) => Err(failure),
        }
    }
}

impl Gathered {
    /// Takes what is left of this process.
    pub(super) fn take(outcome: &mut Outcome, desk: &Desk, sent_to: Vec<u64>) -> Self {
        Gathered {
            sent_to,
            failure: outcome.failure.clone(),
            bytes_in_flight: desk.sent_minus_executed_bytes(),
            counts: RunCounts {
                executions: outcome.executions,
                remote_messages: outcome.remote_messages,
                migrations: outcome.migrations,
                traffic: outcome.traffic,
            },
            inserts_in_flight: outcome.inserts_in_flight,
            waiting: std::mem::take(&mut outcome.waiting),
            warnings: std::mem::take(&mut outcome.warnings),
            events: Vec::new(),
        }
    }

    /// Adds what is left of other processes.
    pub(super) fn add(&mut self, other: Gathered) {
        for (sum, sent) in self.sent_to.iter_mut().zip(other.sent_to) {
            *sum += sent;
        }
        self.failure = self.failure.take().or(other.failure);
        self.counts.executions = self.counts.executions.wrapping_add(other.counts.executions);
        self.counts.remote_messages += other.counts.remote_messages;
        self.counts.migrations += other.counts.migrations;
        self.counts.traffic.add(other.counts.traffic);
        self.inserts_in_flight += other.inserts_in_flight;
        self.bytes_in_flight += other.bytes_in_flight;
        self.waiting.merge(other.waiting);
        self.warnings.extend(other.warnings);
        self.events.extend(other.events);
    }

    /// Gives all that is left to the outcome of process 0.
    pub(super) fn give(self, outcome: &mut Outcome) -> Totals {
        let Gathered {
            sent_to,
            counts,
            failure,
            inserts_in_flight,
            bytes_in_flight,
            mut waiting,
            warnings,
            events,
        } = self;
        outcome.gathered_events = events;
        if outcome.is_unfinished() && bytes_in_flight > 0 {
            let amount = bytes(bytes_in_flight as u64);
            waiting.line(None, format!("{amount} of messages between processes are in flight"));
        }
        (outcome.inserts_in_flight, outcome.waiting, outcome.warnings) =
            (inserts_in_flight, waiting, warnings);
        Totals { sent_to, counts, failure }
    }
}

impl RunCounts {
    /// Sets the counts of a report.
    pub(super) fn give(self, outcome: &mut Outcome) {
        outcome.executions = self.executions;
        outcome.remote_messages = self.remote_messages;
        outcome.migrations = self.migrations;
        outcome.traffic = self.traffic;
    }
}
