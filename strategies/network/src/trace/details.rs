//! What timelines show of a run, and a simulation does not need.

use serde::{Deserialize, Serialize};

/// Names, charges, waits, migrations, load-balancing steps and memory. Parts are empty if they were not recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// By array: the names of its entries.
    pub entries: Vec<Vec<String>>,
    /// By object: its index, as in `[3, 4]`.
    pub indices: Vec<String>,
    /// By execution: its entry and its charge.
    pub calls: Vec<Call>,
    /// Messages that waited for their guards, in the order in which they were executed. Those that still wait at the end of a
    /// recording in real time come last.
    pub waits: Vec<Wait>,
    /// Migrations, by time.
    pub migrations: Vec<Migration>,
    /// Load-balancing steps, by time.
    pub steps: Vec<LbStep>,
    /// The memory of processes, by time.
    pub memory: Vec<Memory>,
    /// The records that PEs dropped, because the recording reached its limit. Events of other PEs before
    /// [`begins_seconds`](Self::begins_seconds) are not counted.
    pub dropped_events: u64,
    /// When the trace begins, in seconds after the begin of the run; above 0 if events were dropped.
    pub begins_seconds: f64,
    /// The largest error of the clock of a process relative to that of process 0, in seconds: as estimated when the clocks were
    /// compared, or by as much as a message arrived before it was sent.
    pub clock_error_seconds: f64,
}

/// The entry and the charge of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The number of the entry in its array; none for work of the PE itself.
    pub entry: Option<u16>,
    /// The charged work, in seconds; 0 if the entry charged none.
    pub charged_seconds: f64,
}

/// A message that waited because the guard of its entry was false.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// The receiver.
    pub object: u32,
    /// The number of the entry in its array.
    pub entry: u16,
    /// The PE on which the message waited last.
    pub pe: u32,
    /// When the message was taken first, in seconds.
    pub begin_seconds: f64,
    /// When it was executed, in seconds; the end of the trace if it was not.
    pub end_seconds: f64,
}

/// An object that left a PE for another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Migration {
    /// The object.
    pub object: u32,
    /// The PE that it left.
    pub from: u32,
    /// The PE for which it left.
    pub to: u32,
    /// When it left, in seconds.
    pub seconds: f64,
}

/// A load-balancing step, from the last call of `at_sync` to the moment when PE 0 continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LbStep {
    /// The number of the step.
    pub number: u64,
    /// The strategy; empty if there was none.
    pub strategy: String,
    /// When PE 0 began the step, in seconds.
    pub begin_seconds: f64,
    /// When PE 0 continued, in seconds.
    pub end_seconds: f64,
    /// The number of objects that migrated.
    pub migrations: u64,
    /// The load of the heaviest PE over the average load: before, and as predicted for the placement after.
    pub max_over_avg: [f64; 2],
}

/// The memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The first PE of the process.
    pub pe: u32,
    /// When, in seconds.
    pub seconds: f64,
    /// The bytes of memory that the process had in use.
    pub bytes: u64,
}

impl Details {
    /// Checks that the details belong to a trace of `objects` objects, PEs among them, and `executions` executions.
    ///
    /// # Errors
    /// The first violation, as a clause.
    pub(super) fn check(&self, pes: u32, objects: usize, executions: usize) -> Result<(), String> {
        let all = pes as usize + objects;
        let length = |name: &str, has: usize, expected: usize| match has == 0 || has == expected {
            true => Ok(()),
            false => Err(format!("`{name}` has length {has}, expected {expected}")),
        };
        length("indices", self.indices.len(), objects)?;
        length("calls", self.calls.len(), executions)?;
        let wait = |it: &Wait| {
            it.object as usize >= all || it.pe >= pes || !(0.0..=it.end_seconds).contains(&it.begin_seconds)
        };
        if self.waits.iter().any(wait) {
            return Err("a wait names an object, a PE or a time that does not exist".into());
        }
        let migration = |it: &Migration| {
            it.object as usize >= all || it.from >= pes || it.to >= pes || !is_time(it.seconds)
        };
        if self.migrations.iter().any(migration) {
            return Err("a migration names an object, a PE or a time that does not exist".into());
        }
        let step =
            |it: &LbStep| !is_time(it.end_seconds) || !(0.0..=it.end_seconds).contains(&it.begin_seconds);
        if self.steps.iter().any(step) {
            return Err("a load-balancing step has a time that does not exist".into());
        }
        if self.memory.iter().any(|it| it.pe >= pes || !is_time(it.seconds)) {
            return Err("the memory is that of a PE or a time that does not exist".into());
        }
        Ok(())
    }
}

fn is_time(seconds: f64) -> bool {
    equipoise_model::params::are_seconds(seconds)
}
