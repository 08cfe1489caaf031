//! What is added to a trace while the run proceeds.

use super::{Call, Execution, Migration, Trace, TraceMessage, TraceObject, Wait};

/// The executions or messages after which a part is written.
pub(super) const PART: usize = 1 << 12;

/// What is added to a trace.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Objects; the first object of the first part has the number of PEs as its number.
    pub objects: Vec<TraceObject>,
    /// Messages, each sent by an execution of this part.
    pub messages: Vec<TraceMessage>,
    /// Executions.
    pub executions: Vec<Execution>,
    /// The indices of these objects, and the calls of these executions; see [`Details`](super::Details).
    pub indices: Vec<String>,
    /// See [`Details::calls`](super::Details::calls).
    pub calls: Vec<Call>,
    /// See [`Details::waits`](super::Details::waits).
    pub waits: Vec<Wait>,
    /// See [`Details::migrations`](super::Details::migrations).
    pub migrations: Vec<Migration>,
}

impl Part {
    /// Whether the part is worth writing.
    pub fn is_full(&self) -> bool {
        self.executions.len().max(self.messages.len()) >= PART
    }
}

impl Trace {
    /// Adds a part, as the reader of a file does.
    pub fn extend(&mut self, part: Part) {
        let Part { objects, messages, executions, indices, calls, waits, migrations } = part;
        self.objects.extend(objects);
        self.messages.extend(messages);
        self.executions.extend(executions);
        self.details.indices.extend(indices);
        self.details.calls.extend(calls);
        self.details.waits.extend(waits);
        self.details.migrations.extend(migrations);
    }
}
