//! A recorded run as a timeline for Perfetto (ui.perfetto.dev), in its format of track events.
//!
//! A node of the machine is a process and a PE is a thread. An execution is a slice, a message is a flow from the
//! execution that sends it to the first execution that it causes, and the first execution of an element on another PE
//! than before is marked by an instant. Counters show waiting messages by PE, the load of the heaviest PE over the
//! average, and the hottest links. The same run gives the same bytes.
//!
//! Traces have neither names of entries, nor load-balancing steps, nor the times at which messages arrive, nor
//! memory, so timelines have none of them either.

use equipoise_model::Topology;
use equipoise_network::trace::{Step, Timing, Trace};
use rustc_hash::FxHashMap;

mod counters;
mod packets;
mod slices;

use counters::{Windows, flights, waiting};
use packets::{FLOW, Fields, Kind, LAST_OF_FLOW, NAME, Packets, annotate, annotate_seconds};
use slices::{Slice, Slices};

/// A run to draw.
pub struct Run<'a> {
    /// The executions and messages, which have passed [`Trace::check`].
    pub trace: &'a Trace,
    /// Other times than the recorded ones, and the PEs of objects if they were placed.
    pub simulated: Option<(&'a Timing, Option<&'a [u32]>)>,
    /// The machine, if it is known; it has at least the PEs of the run.
    pub machine: Option<&'a dyn Topology>,
}

impl Run<'_> {
    /// The number of PEs.
    fn pes(&self) -> u32 {
        let placed = self.simulated.and_then(|(_, placement)| placement).unwrap_or_default();
        placed.iter().map(|pe| pe + 1).max().unwrap_or(0).max(self.trace.pes)
    }

    /// The PE of an execution.
    fn pe(&self, number: u32) -> u32 {
        let execution = &self.trace.executions[number as usize];
        let placement = self.simulated.and_then(|(_, placement)| placement);
        match (placement, execution.object.checked_sub(self.trace.pes)) {
            (Some(placement), Some(object)) => placement[object as usize],
            _ => execution.pe,
        }
    }

    fn begin_seconds(&self, number: u32) -> f64 {
        match self.simulated {
            Some((timing, _)) => timing.begin_seconds[number as usize],
            None => self.trace.executions[number as usize].begin_seconds,
        }
    }

    /// The node of a PE; all PEs are on one node if the machine is not known.
    fn node(&self, pe: u32) -> usize {
        self.machine.map_or(0, |machine| machine.node_of(pe as usize))
    }

    /// The name of an object, such as `Block[3]`.
    fn name(&self, object: u32) -> String {
        match object.checked_sub(self.trace.pes) {
            None => "runtime".into(),
            Some(at) => {
                let object = self.trace.objects[at as usize];
                format!("{}[{}]", self.trace.arrays[object.array as usize], object.rank)
            }
        }
    }
}

/// The kinds of tracks; the number of a track is the number of its kind and the number within its kind.
#[derive(Clone, Copy)]
enum Track {
    Node(usize),
    Pe(u32),
    Waiting(u32),
    Imbalance,
    Link(usize),
}

impl Track {
    fn uuid(self) -> u64 {
        let (kind, number) = match self {
            Track::Node(node) => (1, node as u64),
            Track::Pe(pe) => (2, pe.into()),
            Track::Waiting(pe) => (3, pe.into()),
            Track::Imbalance => (4, 0),
            Track::Link(at) => (5, at as u64),
        };
        (kind << 40) | number
    }
}

/// Encodes a run as a file that Perfetto opens; its usual extension is `.pftrace`.
pub fn encode(run: &Run) -> Vec<u8> {
    let slices = Slices::new(run);
    let flights = flights(run.trace, &slices);
    let mut packets = Packets::default();
    declare_pes(run, &mut packets);
    push_slices(run, &slices, &mut packets);
    let mut last_pe = None;
    for (pe, seconds, messages) in waiting(&flights) {
        let track = Track::Waiting(pe);
        if last_pe.replace(pe) != Some(pe) {
            declare_counter(
                &mut packets,
                track,
                &format!("messages for PE {pe}"),
                "messages",
                Some(Track::Node(run.node(pe))),
            );
        }
        packets.counter(seconds, track.uuid(), messages as f64);
    }
    let end = slices.0.iter().map(|slice| slice.end).fold(0.0, f64::max);
    let Some(windows) = Windows::new(end) else { return packets.finish() };
    declare_counter(&mut packets, Track::Imbalance, "load: max/avg", "ratio", None);
    let ratios = windows.max_over_avg(&slices, run.pes()).into_iter().map(|ratio| ratio.unwrap_or(0.0));
    push_counter(&mut packets, Track::Imbalance, windows.begins().zip(ratios));
    let links = run.machine.map(|machine| windows.hottest(run.trace, &flights, machine)).unwrap_or_default();
    for (at, (name, bytes)) in links.into_iter().enumerate() {
        declare_counter(&mut packets, Track::Link(at), &format!("link {name}"), "bytes/s", None);
        push_counter(&mut packets, Track::Link(at), windows.begins().zip(bytes).chain([(end, 0.0)]));
    }
    packets.finish()
}

/// Declares a process for every node and a thread for every PE.
fn declare_pes(run: &Run, packets: &mut Packets) {
    let nodes = (0..run.pes()).map(|pe| run.node(pe) + 1).max().unwrap_or(0);
    let mut declared = vec![false; nodes];
    for pe in 0..run.pes() {
        let node = run.node(pe);
        // Perfetto has a process 0 of its own, and a thread with the number of a process is its main thread.
        let pid = node as u64 + 1;
        if !std::mem::replace(&mut declared[node], true) {
            let process = Fields::default().number(1, pid).text(6, &format!("node {node}"));
            packets.track(Track::Node(node).uuid(), Fields::default().fields(3, process));
        }
        let tid = (nodes as u64 + 1) + u64::from(pe);
        let thread = Fields::default().number(1, pid).number(2, tid).text(5, &format!("PE {pe}"));
        packets.track(Track::Pe(pe).uuid(), Fields::default().fields(4, thread));
    }
}

fn declare_counter(packets: &mut Packets, track: Track, name: &str, unit: &str, parent: Option<Track>) {
    let counter = Fields::default().text(2, name).fields(8, Fields::default().text(6, unit));
    let counter = match parent {
        Some(parent) => counter.number(5, parent.uuid()),
        None => counter,
    };
    packets.track(track.uuid(), counter);
}

/// Adds the points where a counter changes.
fn push_counter(packets: &mut Packets, track: Track, points: impl Iterator<Item = (f64, f64)>) {
    let mut last = None;
    for (seconds, value) in points {
        if last.replace(value) != Some(value) {
            packets.counter(seconds, track.uuid(), value);
        }
    }
}

/// Adds the executions with their messages, and the arrivals of elements on other PEs.
fn push_slices(run: &Run, slices: &Slices, packets: &mut Packets) {
    let arrivals = arrivals(run, slices);
    let mut is_ended = vec![false; run.trace.messages.len()];
    let mut starts: Vec<&Slice> = slices.0.iter().collect();
    // A flow ends at the first execution that its message causes.
    starts.sort_by(|a, b| a.begin.total_cmp(&b.begin).then(a.execution.cmp(&b.execution)));
    let mut ends_flow = vec![false; run.trace.executions.len()];
    for slice in starts {
        if let Some(cause) = run.trace.executions[slice.execution as usize].cause {
            ends_flow[slice.execution as usize] = !std::mem::replace(&mut is_ended[cause as usize], true);
        }
    }
    for slice in &slices.0 {
        let execution = &run.trace.executions[slice.execution as usize];
        let name = run.name(execution.object);
        let track = Track::Pe(slice.pe).uuid();
        if let Some(from) = arrivals.get(&slice.execution) {
            let event = Fields::default().text(NAME, &format!("{name} arrived from PE {from}"));
            packets.event(slice.begin, track, Kind::Instant, event);
        }
        let mut event = Fields::default().text(NAME, &name);
        let (mut work, mut sent_messages, mut sent_bytes) = (0.0, 0, 0u64);
        for step in &execution.steps {
            match *step {
                Step::Work(seconds) => work += seconds,
                Step::Send(message) => {
                    sent_messages += 1;
                    sent_bytes = sent_bytes.saturating_add(run.trace.messages[message as usize].bytes);
                    if is_ended[message as usize] {
                        event = event.fixed(FLOW, u64::from(message) + 1);
                    }
                }
            }
        }
        if let Some(cause) = execution.cause {
            event = annotate(event, "received bytes", run.trace.messages[cause as usize].bytes);
            if ends_flow[slice.execution as usize] {
                event = event.fixed(LAST_OF_FLOW, u64::from(cause) + 1);
            }
        }
        event = annotate_seconds(event, "work at speed 1 (s)", work);
        event = annotate(annotate(event, "sent messages", sent_messages), "sent bytes", sent_bytes);
        packets.event(slice.begin, track, Kind::SliceBegin, event);
        packets.event(slice.end, track, Kind::SliceEnd, Fields::default());
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

#[cfg(test)]
mod tests;
