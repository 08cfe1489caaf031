//! Executions as slices, with the flows of their messages.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use equipoise_network::trace::Step;
use rustc_hash::FxHashMap;

use super::flights::Flight;
use super::packets::{FLOW, Fields, Kind, LAST_OF_FLOW, Packets, nanoseconds};
use super::slices::{Slice, Slices};
use super::{Run, Track};

/// Adds the executions with their messages, and the arrivals of elements on other PEs.
///
/// Perfetto takes events of the same nanosecond in the order of the file, and a flow has to begin before it ends. A sender has
/// a lower number than what it causes. So events are written in the order of time, and at the same time in the order of
/// executions, but always in the order of their PE. A message whose sender comes later all the same has no flow: clocks of several
/// processes differ.
pub(super) fn push(run: &Run, slices: &Slices, flights: &[Flight], packets: &mut Packets) {
    let ends = in_order(slices);
    let mut place = vec![0; run.trace.executions.len()];
    for (at, (slice, is_end)) in (0u64..).zip(&ends) {
        if !is_end {
            place[slice.execution as usize] = at;
        }
    }
    let is_forward = |it: &Flight| place[it.sender as usize] < place[it.execution as usize];
    let shown = Shown::new(run, slices, flights.iter().filter(|flight| is_forward(flight)));
    for (slice, is_end) in ends {
        if is_end {
            packets.event(slice.end, Track::Pe(slice.pe).uuid(), Kind::SliceEnd, Fields::default());
        } else {
            shown.push_begin(slice, packets);
        }
    }
}

/// The begins and ends of all slices, an end with true, in the order of the file.
fn in_order(slices: &Slices) -> Vec<(&Slice, bool)> {
    let of_pes: Vec<&[Slice]> = slices.by_pe().collect();
    let mut ends = Vec::with_capacity(2 * slices.0.len());
    // Each PE with its next event: 2 for the begin of a slice, then 1 for its end.
    let key = |slice: &Slice, is_end: bool| {
        let seconds = if is_end { slice.end } else { slice.begin };
        Reverse((nanoseconds(seconds), slice.execution, is_end))
    };
    let mut next: BinaryHeap<_> =
        of_pes.iter().enumerate().map(|(row, of_pe)| (key(&of_pe[0], false), Reverse((row, 0)))).collect();
    while let Some((Reverse((.., is_end)), Reverse((row, at)))) = next.pop() {
        let slice = &of_pes[row][at];
        ends.push((slice, is_end));
        if !is_end {
            next.push((key(slice, true), Reverse((row, at))));
        } else if let Some(after) = of_pes[row].get(at + 1) {
            next.push((key(after, false), Reverse((row, at + 1))));
        }
    }
    ends
}

struct Shown<'a> {
    run: &'a Run<'a>,
    /// The executions of elements that were on another PE before, each with that PE.
    arrivals: FxHashMap<u32, u32>,
    /// By message: the execution at which its flow ends, if it has a flow.
    flow_ends: Vec<Option<u32>>,
}

impl<'a> Shown<'a> {
    fn new<'f>(run: &'a Run, slices: &Slices, with_flow: impl Iterator<Item = &'f Flight>) -> Self {
        let mut flow_ends = vec![None; run.trace.messages.len()];
        for flight in with_flow {
            flow_ends[flight.message as usize] = Some(flight.execution);
        }
        Shown { run, arrivals: arrivals(run, slices), flow_ends }
    }

    /// Adds the begin of an execution.
    fn push_begin(&self, slice: &Slice, packets: &mut Packets) {
        let Shown { run, arrivals, flow_ends } = self;
        let execution = &run.trace.executions[slice.execution as usize];
        let call = run.trace.details.calls.get(slice.execution as usize).copied().unwrap_or_default();
        let name = run.name(execution.object);
        let track = Track::Pe(slice.pe).uuid();
        if let Some(from) = arrivals.get(&slice.execution) {
            let event = packets.named(&format!("{name} arrived from PE {from}"));
            packets.event(slice.begin, track, Kind::Instant, event);
        }
        let name = name + &run.entry(execution.object, call.entry);
        let mut event = packets.named(&name);
        let (mut work, mut sent_messages, mut sent_bytes) = (0.0, 0, 0u64);
        for step in &execution.steps {
            match *step {
                Step::Work(seconds) => work += seconds,
                Step::Send(message) => {
                    sent_messages += 1;
                    sent_bytes = sent_bytes.saturating_add(run.trace.messages[message as usize].bytes);
                    if flow_ends[message as usize].is_some() {
                        event = event.fixed(FLOW, u64::from(message) + 1);
                    }
                }
            }
        }
        if let Some(cause) = execution.cause {
            event = packets.annotate(event, "received bytes", run.trace.messages[cause as usize].bytes);
            if flow_ends[cause as usize] == Some(slice.execution) {
                event = event.fixed(LAST_OF_FLOW, u64::from(cause) + 1);
            }
        }
        // Where all PEs always have speed 1, the slice shows its work.
        if !run.trace.speeds.is_empty() {
            event = packets.annotate_number(event, "work at speed 1 (s)", work);
        }
        if call.charged_seconds > 0.0 {
            event = packets.annotate_number(event, "charge (s)", call.charged_seconds);
        }
        event = packets.annotate(event, "sent messages", sent_messages);
        event = packets.annotate(event, "sent bytes", sent_bytes);
        packets.event(slice.begin, track, Kind::SliceBegin, event);
    }
}

/// The executions of elements that were on another PE before, each with that PE.
fn arrivals(run: &Run, slices: &Slices) -> FxHashMap<u32, u32> {
    let is_element = |slice: &&Slice| run.trace.executions[slice.execution as usize].object >= run.trace.pes;
    let mut by_time: Vec<&Slice> = slices.0.iter().filter(is_element).collect();
    // Executions of one object are in recorded order in every simulation.
    by_time.sort_by_key(|slice| slice.execution);
    let mut last: FxHashMap<u32, u32> = FxHashMap::default();
    let moved = |slice: &Slice| {
        let before = last.insert(run.trace.executions[slice.execution as usize].object, slice.pe)?;
        (before != slice.pe).then_some((slice.execution, before))
    };
    by_time.into_iter().filter_map(moved).collect()
}
