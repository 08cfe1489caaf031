//! What happened at recorded times beside executions: load-balancing steps, migrations, waits of messages for their guards,
//! and the memory of processes.

use super::packets::{Fields, Kind, NAME, Packets, annotate, annotate_seconds};
use super::{Run, Track, declare_counter};

/// The most lanes for waits on a PE; of more waits at the same time, the rest is not shown.
const LANES: usize = 1024;

/// Adds everything that was recorded.
pub(super) fn push(run: &Run, packets: &mut Packets) {
    push_steps(run, packets);
    for migration in &run.trace.details.migrations {
        let name = format!("{} leaves for PE {}", run.name(migration.object), migration.to);
        let event = Fields::default().text(NAME, &name);
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
        let mut event = Fields::default().text(NAME, &format!("step {}: {strategy}", step.number));
        event = annotate(event, "migrations", step.migrations);
        event = annotate_seconds(event, "max/avg load before", step.max_over_avg[0]);
        event = annotate_seconds(event, "max/avg load after, as predicted", step.max_over_avg[1]);
        let begin = step.begin_seconds.max(before);
        before = step.end_seconds.max(begin);
        packets.event(begin, track, Kind::SliceBegin, event);
        packets.event(before, track, Kind::SliceEnd, Fields::default());
    }
}

/// Adds waits of messages for their guards, in lanes: those of a lane do not overlap. Perfetto shows tracks of the same name as
/// one.
fn push_waits(run: &Run, packets: &mut Packets) {
    let mut waits: Vec<_> = run.trace.details.waits.iter().collect();
    waits.sort_by(|a, b| a.pe.cmp(&b.pe).then(a.begin_seconds.total_cmp(&b.begin_seconds)));
    for of_pe in waits.chunk_by(|a, b| a.pe == b.pe) {
        let pe = of_pe[0].pe;
        // By lane: when its last wait ends.
        let mut ends: Vec<f64> = Vec::new();
        for wait in of_pe {
            let free = ends.iter().position(|&end| end <= wait.begin_seconds);
            let lane = free.unwrap_or(ends.len());
            if lane == LANES {
                continue;
            }
            let track = Track::Guarded(pe, lane).uuid();
            if lane == ends.len() {
                ends.push(0.0);
                let descriptor = Fields::default().text(2, &format!("guarded messages of PE {pe}"));
                packets.track(track, descriptor.number(5, Track::Node(run.node(pe)).uuid()));
            }
            ends[lane] = wait.end_seconds;
            let name = run.name(wait.object) + &run.entry(wait.object, Some(wait.entry));
            let event = Fields::default().text(NAME, &format!("{name} waits for its guard"));
            packets.event(wait.begin_seconds, track, Kind::SliceBegin, event);
            packets.event(wait.end_seconds, track, Kind::SliceEnd, Fields::default());
        }
    }
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
