//! A recorded run as a timeline for Perfetto (ui.perfetto.dev), in its format of track events.
//!
//! A node of the machine is a process and a PE is a thread. An execution is a slice, a message is a flow from the
//! execution that sends it to the first execution that it causes, and the first execution of an element on another PE
//! than before is marked by an instant. Load-balancing steps and the longest waits of messages for their guards are slices of
//! their own tracks. Counters show messages on their way to each PE, messages that wait for guards, the load of the heaviest PE over the
//! average, the memory of processes, and the hottest links. The same run gives the same bytes.
//!
//! Waits, migrations, load-balancing steps and memory have recorded times, so timelines of simulations have none of them.

use std::path::Path;

use equipoise_model::Topology;
use equipoise_network::trace::{Timing, Trace};

mod counters;
mod executions;
mod flights;
mod marks;
mod packets;
mod slices;

use counters::{hottest, max_over_avg, waiting};
use flights::flights;
use packets::{Fields, Packets};
use slices::Slices;

use crate::windows::Windows;

/// A run to draw.
pub struct Run<'a> {
    /// The executions and messages, which have passed [`Trace::check`].
    pub trace: &'a Trace,
    /// Other times than the recorded ones, and the PEs of objects if they were placed.
    pub simulated: Option<(&'a Timing, Option<&'a [u32]>)>,
    /// The machine, if it is known; it has at least the PEs of the run.
    pub machine: Option<&'a dyn Topology>,
    /// The bandwidth of all links in bytes per second, if the network gave them another one than the machine.
    pub bandwidth: Option<f64>,
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
                let array = &self.trace.arrays[object.array as usize];
                match self.trace.details.indices.get(at as usize) {
                    Some(index) => format!("{array}{index}"),
                    None => format!("{array}[{}]", object.rank),
                }
            }
        }
    }

    /// The name of an entry of an object with a dot, such as `.step`; nothing if it is not known.
    fn entry(&self, object: u32, entry: Option<u16>) -> String {
        let at = object.checked_sub(self.trace.pes);
        let array = at.map(|at| self.trace.objects[at as usize].array as usize);
        let names = array.and_then(|array| self.trace.details.entries.get(array));
        let name = names.zip(entry).and_then(|(names, entry)| names.get(usize::from(entry)));
        name.map(|name| format!(".{name}")).unwrap_or_default()
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
    Steps,
    /// The number of messages on a PE that wait for their guards.
    Guards(u32),
    /// A lane of waits of messages on a PE for their guards.
    Guarded(u32, usize),
    /// The memory of the process whose first PE this is.
    Memory(u32),
}

impl Track {
    fn uuid(self) -> u64 {
        let (kind, number) = match self {
            Track::Node(node) => (1, node as u64),
            Track::Pe(pe) => (2, pe.into()),
            Track::Waiting(pe) => (3, pe.into()),
            Track::Imbalance => (4, 0),
            Track::Link(at) => (5, at as u64),
            Track::Steps => (6, 0),
            Track::Memory(pe) => (7, pe.into()),
            Track::Guards(pe) => (8, pe.into()),
            Track::Guarded(pe, lane) => (9 + lane as u64, pe.into()),
        };
        (kind << 40) | number
    }
}

/// Checks the name of a file for a timeline.
///
/// # Errors
/// If it is the name of a file in another format.
pub fn check_name(path: &Path) -> Result<(), String> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_other = ["json", "html", "trace", "db"].contains(&extension.as_str());
    if is_other {
        let name = path.display();
        return Err(format!(
            "the file has Perfetto's format, and `{name}` is the name of another format; name it as in run.pftrace"
        ));
    }
    Ok(())
}

/// Encodes a run as a file that Perfetto opens; its usual extension is `.pftrace`.
pub fn encode(run: &Run) -> Vec<u8> {
    let slices = Slices::new(run);
    let flights = flights(run, &slices);
    let begin_seconds = if run.simulated.is_none() { run.trace.details.begins_seconds } else { 0.0 };
    let mut packets = Packets::new(begin_seconds);
    declare_pes(run, &mut packets);
    executions::push(run, &slices, &flights, &mut packets);
    if run.simulated.is_none() {
        marks::push(run, &mut packets);
    }
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
    let ratios = max_over_avg(&windows, &slices, run.pes()).into_iter().map(|ratio| ratio.unwrap_or(0.0));
    push_counter(&mut packets, Track::Imbalance, windows.begins().zip(ratios));
    // Threads without a description of their machine have no links.
    let is_unknown =
        |machine: &&dyn Topology| run.trace.is_of_real_run() && machine.spec().starts_with("flat:");
    let machine = run.machine.filter(|machine| run.simulated.is_some() || !is_unknown(machine));
    let links = machine
        .map(|machine| hottest(&windows, run.trace, &flights, machine, run.bandwidth))
        .unwrap_or_default();
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

#[cfg(test)]
mod tests;
