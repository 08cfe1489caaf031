//! The third order: unplaced neighbors are at the mean distance to the free PEs.
//!
//! Multiplied by the number of free PEs, the cost of task `t` on PE `p` is `free * placed(t, p) + open(t) * sum(p)`.
//! `placed` is the sum of bytes times distance over placed neighbors, `open` the bytes exchanged with unplaced neighbors,
//! and `sum` the sum of the distances from `p` to the free PEs. `open` and `sum` change in every cycle, so gains are
//! recomputed: O(p^2) per cycle.

use equipoise_model::Topology;
use equipoise_model::graph::Graph;

use crate::StrategyError;
use crate::placement::volumes::Volumes;

/// Algorithm 1 in the third order; `sums[i]` is the sum of the distances from `pes[i]` to all `pes`.
pub(super) fn place(
    (graph, tasks): (&Graph, usize),
    anchors: &[u32],
    pes: &[u32],
    topology: &dyn Topology,
    volumes: Volumes,
    mut sums: Vec<i64>,
) -> Result<Vec<u32>, StrategyError> {
    const UNPLACED: u32 = u32::MAX;
    let mut places = vec![UNPLACED; tasks];
    // `None` for tasks without a placed neighbor.
    let mut placed: Vec<Option<Vec<i64>>> = vec![None; tasks];
    let mut open: Vec<i64> =
        (0..tasks).map(|t| graph.neighbors(t).map(|(_, bytes)| volumes.of(bytes)).sum()).collect();
    let mut free: Vec<usize> = (0..pes.len()).collect();
    let mut distances = vec![0u32; topology.pes()];
    let mut place = |vertex: usize, pe: u32, placed: &mut [Option<Vec<i64>>], open: &mut [i64]| {
        topology.distances_from(pe as usize, &mut distances);
        for (neighbor, bytes) in graph.neighbors(vertex).filter(|&(neighbor, _)| neighbor < tasks) {
            let volume = volumes.of(bytes);
            open[neighbor] -= volume;
            let row = placed[neighbor].get_or_insert_with(|| vec![0; pes.len()]);
            for (cell, &q) in row.iter_mut().zip(pes) {
                *cell += volume * i64::from(distances[q as usize]);
            }
        }
    };
    for (anchor, &pe) in anchors.iter().enumerate() {
        place(tasks + anchor, pe, &mut placed, &mut open);
    }
    let mut row = vec![0u32; topology.pes()];
    for _ in 0..tasks {
        let count = free.len() as i64;
        let mut best: Option<(i128, usize, usize)> = None;
        for task in (0..tasks).filter(|&task| places[task] == UNPLACED) {
            let cost = |column: usize| {
                let placed_cost = placed[task].as_ref().map_or(0, |row| row[column]);
                count * placed_cost + open[task] * sums[column]
            };
            let (mut sum, mut least) = (0i128, (i64::MAX, 0));
            for &column in &free {
                let cost = cost(column);
                sum += i128::from(cost);
                if cost < least.0 {
                    least = (cost, column);
                }
            }
            let gain = sum - i128::from(count) * i128::from(least.0);
            if best.is_none_or(|(most, ..)| gain > most) {
                best = Some((gain, task, least.1));
            }
        }
        let (_, task, column) = best.expect("a task is left, and a PE for it");
        places[task] = pes[column];
        placed[task] = None;
        free.retain(|&other| other != column);
        topology.distances_from(pes[column] as usize, &mut row);
        for (sum, &q) in sums.iter_mut().zip(pes) {
            *sum -= i64::from(row[q as usize]);
        }
        place(task, pes[column], &mut placed, &mut open);
    }
    Ok(places)
}
