//! Messages from their sends to the first executions that they cause.

use equipoise_network::trace::{Speeds, Step};

use super::Run;
use super::slices::{Slice, Slices};

/// A message from its send to the begin of the first execution that it caused.
pub(super) struct Flight {
    pub(super) message: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) sent: f64,
    pub(super) taken: f64,
    /// The number of the execution that sends it.
    pub(super) sender: u32,
    /// The number of the execution that it caused.
    pub(super) execution: u32,
}

/// The messages whose send and execution are both drawn, in the order of messages. [`receives`](equipoise_network::trace::Trace::receives) says which execution
/// receives a message.
pub(super) fn flights(run: &Run, slices: &Slices) -> Vec<Flight> {
    let trace = run.trace;
    let mut sent = vec![None; trace.messages.len()];
    let mut drawn: Vec<Option<&Slice>> = vec![None; trace.executions.len()];
    let normal = Speeds::default();
    for slice in &slices.0 {
        drawn[slice.execution as usize] = Some(slice);
        let execution = &trace.executions[slice.execution as usize];
        let speeds = trace.speeds.get(slice.pe as usize).unwrap_or(&normal);
        let mut now = slice.begin;
        for step in &execution.steps {
            match *step {
                Step::Work(work) => now = speeds.finish(now, work),
                Step::Send(message) => sent[message as usize] = Some((slice, now.min(slice.end))),
            }
        }
    }
    let taken = trace.receives(|execution| drawn[execution as usize].map(|slice| slice.begin));
    let both = (0u32..).zip(sent.into_iter().zip(taken));
    both.filter_map(|(message, (sent, taken))| {
        let ((sender, sent), taken) = (sent?, drawn[taken? as usize]?);
        Some(Flight {
            message,
            from: sender.pe,
            to: taken.pe,
            sent,
            taken: taken.begin.max(sent),
            sender: sender.execution,
            execution: taken.execution,
        })
    })
    .collect()
}
