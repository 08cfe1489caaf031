//! What changes over time: messages that wait, the relative load of the heaviest PE, and the hottest links.

use equipoise_model::Topology;
use equipoise_network::trace::Trace;
use rustc_hash::FxHashMap;

use super::flights::Flight;
use super::slices::Slices;
use crate::windows::{WINDOWS, Windows};

/// The number of links that are shown.
const HOTTEST: usize = 16;

/// The number of messages that are on their way to each PE or wait there: (PE, seconds, messages), by PE and time.
pub(super) fn waiting(flights: &[Flight]) -> Vec<(u32, f64, u64)> {
    let ends = flights.iter().flat_map(|it| [(it.to, it.sent, 1i64), (it.to, it.taken, -1)]);
    let mut changes: Vec<(u32, f64, i64)> = ends.collect();
    changes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut points = Vec::new();
    for of_pe in changes.chunk_by(|a, b| a.0 == b.0) {
        let mut messages = 0;
        for at_once in of_pe.chunk_by(|a, b| a.1 == b.1) {
            messages += at_once.iter().map(|change| change.2).sum::<i64>();
            points.push((at_once[0].0, at_once[0].1, messages as u64));
        }
    }
    points
}

/// By part: the load of the heaviest of `pes` PEs over the average load; none where no PE works.
pub(super) fn max_over_avg(windows: &Windows, slices: &Slices, pes: u32) -> Vec<Option<f64>> {
    let (mut max, mut sum) = ([0.0f64; WINDOWS], [0.0f64; WINDOWS]);
    for of_pe in slices.by_pe() {
        let mut busy = [0.0; WINDOWS];
        for slice in of_pe {
            for (window, seconds) in windows.parts(slice.begin, slice.end) {
                busy[window] += seconds;
            }
        }
        for (window, busy) in busy.into_iter().enumerate() {
            max[window] = max[window].max(busy);
            sum[window] += busy;
        }
    }
    let ratio = |(max, sum)| (sum > 0.0).then(|| max * f64::from(pes) / sum);
    max.into_iter().zip(sum).map(ratio).collect()
}

/// The links that most bytes cross, the busiest relative to its bandwidth first; each with the bytes per second by
/// part. A message comes to all links of its route when it is sent, and each link carries one message after the other at its
/// bandwidth, which is `of_all_links` if this is known.
pub(super) fn hottest(
    windows: &Windows,
    trace: &Trace,
    flights: &[Flight],
    machine: &dyn Topology,
    of_all_links: Option<f64>,
) -> Vec<(String, Vec<f64>)> {
    let mut flights: Vec<&Flight> = flights.iter().filter(|it| it.from != it.to).collect();
    flights.sort_by(|a, b| a.sent.total_cmp(&b.sent));
    let bandwidth = |link: usize| of_all_links.unwrap_or_else(|| machine.link(link).bandwidth);
    let mut route = Vec::new();
    let mut total: FxHashMap<usize, u64> = FxHashMap::default();
    let mut for_each = |visit: &mut dyn FnMut(usize, &Flight)| {
        for flight in &flights {
            route.clear();
            machine.route(flight.from as usize, flight.to as usize, &mut route);
            route.iter().for_each(|&link| visit(link, flight));
        }
    };
    let bytes = |flight: &Flight| trace.messages[flight.message as usize].bytes;
    for_each(&mut |link, flight| {
        let sum = total.entry(link).or_default();
        *sum = sum.saturating_add(bytes(flight));
    });
    let seconds = |(link, bytes): (usize, u64)| (link, bytes as f64 / bandwidth(link));
    let mut hottest: Vec<(usize, f64)> = total.into_iter().map(seconds).collect();
    hottest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hottest.truncate(HOTTEST);
    // By link: its place, its bandwidth, and when it is free.
    let mut places: FxHashMap<usize, (usize, f64, f64)> = FxHashMap::default();
    places.extend(hottest.iter().enumerate().map(|(at, &(link, _))| (link, (at, bandwidth(link), 0.0))));
    let name = |&(link, _): &(usize, f64)| (machine.link(link).name, vec![0.0; WINDOWS]);
    let mut links: Vec<(String, Vec<f64>)> = hottest.iter().map(name).collect();
    for_each(&mut |link, flight| {
        let Some((at, bandwidth, free)) = places.get_mut(&link) else { return };
        let begin = free.max(flight.sent);
        *free = begin + bytes(flight) as f64 / *bandwidth;
        for (window, seconds) in windows.parts(begin, *free) {
            links[*at].1[window] += seconds * *bandwidth / windows.seconds;
        }
    });
    links
}
