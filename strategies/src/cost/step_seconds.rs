//! The predicted time of a period with another placement, from the measured costs of messages.
//!
//! A period is as long as its slowest PE or its busiest link or port, whichever takes longer, plus the part of the
//! shorter one that does not overlap, plus what neither explains (dependencies, latencies):
//!
//! `period = max(pe, link) + overlap * min(pe, link) + rest`
//!
//! - `pe`: the loads of a PE's objects over its speed, plus its background, plus the handling of its messages. The
//!   recorded background contains the handling of messages with the recorded placement, which is subtracted;
//! - `link`: bytes over bandwidth;
//! - `overlap` (0: all, 1: nothing overlaps) and `rest` are those with which the recorded placement takes the recorded
//!   time.

use equipoise_model::costs::{Costs, LinkLimits};
use equipoise_model::{Database, Topology};

use super::load::counted_pes;
use super::{link_loads, ratio};

/// The time of the slowest PE and of the busiest link or port, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Parts {
    pe: f64,
    link: f64,
}

/// The seconds of the recorded period if object `i` had been on PE `placement[i]`. None if the costs, the communication
/// or the time of the period are unknown.
///
/// # Panics
/// As [`Metrics::of`](super::Metrics::of).
pub fn step_seconds(database: &Database, topology: &dyn Topology, placement: &[u32]) -> Option<f64> {
    let costs = database.costs.as_ref().filter(|_| database.communication_recorded)?;
    let period = database.pes.iter().map(|pe| pe.wall_seconds).fold(0.0, f64::max);
    if period <= 0.0 {
        return None;
    }
    let recorded = database.placement();
    let handled = handling(database, costs, &recorded);
    let parts = |placement: &[u32]| Parts {
        pe: slowest(database, &handled, &handling(database, costs, placement), placement),
        link: costs.links.map_or(0.0, |limits| busiest(database, topology, &limits, placement)),
    };
    let (before, after) = (parts(&recorded), parts(placement));
    let left = (period - before.pe.max(before.link)).max(0.0);
    let shorter = before.pe.min(before.link);
    let overlap = ratio(left, shorter, 0.0).min(1.0);
    let rest = left - overlap * shorter;
    Some(after.pe.max(after.link) + overlap * after.pe.min(after.link) + rest)
}

/// The seconds that the migrations from the recorded placement to `placement` take: those of the PE or link that needs
/// the longest. None if the costs are unknown. Objects whose size is unknown count as empty.
///
/// # Panics
/// As [`Metrics::of`](super::Metrics::of).
pub fn migration_seconds(database: &Database, topology: &dyn Topology, placement: &[u32]) -> Option<f64> {
    let costs = database.costs.as_ref()?;
    let mut busy = vec![0.0; database.pes.len()];
    let mut sent = Vec::new();
    for (object, &to) in database.objects.iter().zip(placement) {
        if object.pe != to {
            let bytes = object.bytes.unwrap_or(0);
            busy[object.pe as usize] += costs.migration.sender_seconds(1, bytes);
            busy[to as usize] += costs.migration.receiver_seconds(1, bytes);
            sent.push((object.pe, to, bytes));
        }
    }
    let times = busy.iter().zip(&database.pes).map(|(seconds, pe)| seconds / pe.speed);
    let pes = times.fold(0.0, f64::max);
    let links = costs.links.map_or(0.0, |limits| {
        let mut loads = vec![0u64; topology.links()];
        let mut route = Vec::new();
        for &(from, to, bytes) in &sent {
            route.clear();
            topology.route(from as usize, to as usize, &mut route);
            route.iter().for_each(|&link| loads[link] = loads[link].saturating_add(bytes));
        }
        longest(topology, &limits, &loads, sent.iter().copied())
    });
    Some(f64::max(pes, links))
}

/// The seconds at speed 1 that each PE spends on the messages of its objects.
fn handling(database: &Database, costs: &Costs, placement: &[u32]) -> Vec<f64> {
    let mut seconds = vec![0.0; database.pes.len()];
    for edge in &database.edges {
        let (from, to) = (edge.from.pe(placement), edge.to.pe(placement));
        let ends = costs.between(from, to);
        seconds[from as usize] += ends.sender_seconds(edge.messages, edge.bytes);
        seconds[to as usize] += ends.receiver_seconds(edge.messages, edge.bytes);
    }
    seconds
}

/// The time of the slowest PE. `handled` is the handling of messages that the record contains, `handles` that of the
/// placement.
fn slowest(database: &Database, handled: &[f64], handles: &[f64], placement: &[u32]) -> f64 {
    let mut loads = vec![0.0; database.pes.len()];
    for (object, &pe) in database.objects.iter().zip(placement) {
        loads[pe as usize] += object.load_seconds;
    }
    let counts = counted_pes(database, placement);
    let times = database.pes.iter().enumerate().filter(|&(number, _)| counts[number]).map(|(number, pe)| {
        let own = (pe.background_seconds - handled[number] / pe.speed).max(0.0);
        own + (loads[number] + handles[number]) / pe.speed
    });
    times.fold(0.0, f64::max)
}

/// The time of the busiest link or port.
fn busiest(database: &Database, topology: &dyn Topology, limits: &LinkLimits, placement: &[u32]) -> f64 {
    let sent = database.edges.iter().map(|edge| (edge.from.pe(placement), edge.to.pe(placement), edge.bytes));
    longest(topology, limits, &link_loads(database, topology, placement), sent)
}

/// The longest time of a link with these bytes, or of a port of a PE with these messages (from, to, bytes).
fn longest(
    topology: &dyn Topology,
    limits: &LinkLimits,
    loads: &[u64],
    sent: impl Iterator<Item = (u32, u32, u64)>,
) -> f64 {
    let mut ports = vec![[0u64; 2]; topology.pes()];
    for (from, to, bytes) in sent.filter(|(from, to, _)| from != to) {
        for (pe, port) in [(from, 0), (to, 1)] {
            let sum = &mut ports[pe as usize][port];
            *sum = sum.saturating_add(bytes);
        }
    }
    let of_port = |port: usize, rate: Option<f64>| {
        let most = ports.iter().map(|ports| ports[port]).max().unwrap_or(0);
        rate.map_or(0.0, |rate| most as f64 / rate)
    };
    let of_links = loads.iter().enumerate().filter(|&(_, &bytes)| bytes > 0);
    let of_links = of_links.map(|(link, &bytes)| {
        bytes as f64 / limits.bandwidth.unwrap_or_else(|| topology.link(link).bandwidth)
    });
    of_links.fold(0.0, f64::max).max(of_port(0, limits.injection)).max(of_port(1, limits.ejection))
}
