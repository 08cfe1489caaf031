//! What happened at recorded times in addition to executions: load-balancing steps, migrations, waits of messages for their guards,
//! and the memory of processes.

use std::collections::BTreeMap;

use equipoise_model::table::{count, seconds};
use equipoise_network::trace::Wait;

use super::packets::{Fields, Kind, Packets};
use super::{Run, Track, declare_counter};

/// The most lanes for waits on a PE; of more waits at the same time, the longest are shown.
const LANES: usize = 16;

/// Adds everything that was recorded.
pub(super) fn push(run: &Run, packets: &mut Packets) {
    let begin_seconds = run.trace.details.begins_seconds;
    if begin_seconds > 0.0 {
        let event = packets
            .named(&format!("the recording begins {} after the begin of the run", seconds(begin_seconds)));
        packets.event(0.0, Track::Node(run.node(0)).uuid(), Kind::Instant, event);
    }
    push_steps(run, packets);
    for migration in &run.trace.details.migrations {
        let name = format!("{} leaves for PE {}", run.name(migration.object), migration.to);
        let event = packets.named(&name);
        packets.event(migration.seconds, Track::Pe(migration.from).uuid(), Kind::Instant, event);
    }
    push_waits(run, packets);
    push_memory(run, packets);
}

/// Adds load-balancing steps. They follow one another.
fn push_steps(run: &Run, packets: &mut Packets) {
    let steps = &run.trace.details.steps;
    if steps.is_empty() {
        return;
    }
    let track = Track::Steps.uuid();
    packets.track(track, Fields::default().text(2, "load balancing"));
    let mut before = 0.0f64;
    for step in steps {
        let strategy = if step.strategy.is_empty() { "no strategy" } else { &step.strategy };
        let mut event = packets.named(&format!("step {}: {strategy}", step.number));
        event = packets.annotate(event, "migrations", step.migrations);
        event = packets.annotate_number(event, "max/avg load before", step.max_over_avg[0]);
        event = packets.annotate_number(event, "max/avg load after, as predicted", step.max_over_avg[1]);
        let begin = step.begin_seconds.max(before);
        before = step.end_seconds.max(begin);
        packets.event(begin, track, Kind::SliceBegin, event);
        packets.event(before, track, Kind::SliceEnd, Fields::default());
    }
}

/// Adds waits of messages for their guards: their number on each PE, and the longest as slices. Perfetto shows tracks of the same
/// name as one.
fn push_waits(run: &Run, packets: &mut Packets) {
    let mut waits: Vec<_> = run.trace.details.waits.iter().collect();
    waits.sort_by(|a, b| a.pe.cmp(&b.pe).then(a.begin_seconds.total_cmp(&b.begin_seconds)));
    for of_pe in waits.chunk_by(|a, b| a.pe == b.pe) {
        let pe = of_pe[0].pe;
        let parent = Track::Node(run.node(pe));
        let name = format!("messages on PE {pe} that wait for guards");
        declare_counter(packets, Track::Guards(pe), &name, "messages", Some(parent));
        let mut changes: Vec<(f64, f64)> =
            of_pe.iter().flat_map(|it| [(it.begin_seconds, 1.0), (it.end_seconds, -1.0)]).collect();
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut messages = 0.0;
        for at_once in changes.chunk_by(|a, b| a.0 == b.0) {
            messages += at_once.iter().map(|change| change.1).sum::<f64>();
            packets.counter(at_once[0].0, Track::Guards(pe).uuid(), messages);
        }

        let lanes = lanes(of_pe);
        let shown: usize = lanes.iter().map(Vec::len).sum();
        let name = match of_pe.len() - shown {
            0 => format!("waits for guards on PE {pe}"),
            left => {
                let left = count(left as u64, "shorter one");
                format!("waits for guards on PE {pe}, without {left}")
            }
        };
        for (lane, waits) in lanes.iter().enumerate() {
            let track = Track::Guarded(pe, lane).uuid();
            packets.track(track, Fields::default().text(2, &name).number(5, parent.uuid()));
            for wait in waits {
                let name = run.name(wait.object) + &run.entry(wait.object, Some(wait.entry));
                let event = packets.named(&format!("{name} waits for its guard"));
                packets.event(wait.begin_seconds, track, Kind::SliceBegin, event);
                packets.event(wait.end_seconds, track, Kind::SliceEnd, Fields::default());
            }
        }
    }
}

/// The longest of the waits of a PE in lanes, each in the order of time. Those of a lane do not overlap.
fn lanes<'a>(waits: &[&'a Wait]) -> Vec<Vec<&'a Wait>> {
    let mut longest: Vec<&Wait> = waits.to_vec();
    // Times are at least 0, so their bits have their order.
    let key = |seconds: f64| seconds.max(0.0).to_bits();
    let length = |wait: &Wait| wait.end_seconds - wait.begin_seconds;
    longest.sort_by(|a, b| length(b).total_cmp(&length(a)));
    // By lane: its waits by their begin.
    let mut lanes: Vec<BTreeMap<(u64, usize), &Wait>> = Vec::new();
    for (number, wait) in longest.into_iter().enumerate() {
        let (begin, end) = (wait.begin_seconds, wait.end_seconds);
        let is_free = |lane: &BTreeMap<(u64, usize), &Wait>| {
            let before = lane.range(..(key(begin), usize::MAX)).next_back();
            let after = lane.range((key(begin), 0)..).next();
            before.is_none_or(|(_, before)| before.end_seconds <= begin)
                && after.is_none_or(|(_, after)| end <= after.begin_seconds)
        };
        let lane = lanes.iter().position(is_free).unwrap_or(lanes.len());
        if lane == LANES {
            continue;
        }
        if lane == lanes.len() {
            lanes.push(BTreeMap::new());
        }
        lanes[lane].insert((key(begin), number), wait);
    }
    lanes.into_iter().map(|lane| lane.into_values().collect()).collect()
}

/// Adds the memory of each process.
fn push_memory(run: &Run, packets: &mut Packets) {
    let memory = &run.trace.details.memory;
    let mut pes: Vec<u32> = memory.iter().map(|sample| sample.pe).collect();
    pes.sort_unstable();
    pes.dedup();
    for pe in pes {
        let name = if pe == 0 { "memory".into() } else { format!("memory of the process of PE {pe}") };
        declare_counter(packets, Track::Memory(pe), &name, "B", Some(Track::Node(run.node(pe))));
    }
    for sample in memory {
        packets.counter(sample.seconds, Track::Memory(sample.pe).uuid(), sample.bytes as f64);
    }
}
