//! The third order: neighbors without a place are at the mean distance to the PEs that are free.
//!
//! Times the number of free PEs the cost of task `t` on PE `p` is `free * placed(t, p) + open(t) * sum(p)`:
//! what it exchanges with placed neighbors times their distances, what it exchanges with the others, and
//! the sum of the distances from `p` to the free PEs. The last two change in every cycle, so gains are
//! computed anew: O(p^2) a cycle.

use super::super::volumes::Volumes;
use crate::graph::Graph;
use crate::{StrategyError, Topology};

/// Algorithm 1 in the third order; `sums` are the distances from each of `pes` to all of them.
pub(super) fn place(
    (graph, tasks): (&Graph, usize),
    anchors: &[u32],
    pes: &[u32],
    topology: &dyn Topology,
    volumes: Volumes,
    mut sums: Vec<i64>,
) -> Result<Vec<u32>, StrategyError> {
    const NOWHERE: u32 = u32::MAX;
    let mut places = vec![NOWHERE; tasks];
    // Of tasks without a neighbor in its place there is nothing to keep.
    let mut placed: Vec<Option<Vec<i64>>> = vec![None; tasks];
    let mut open: Vec<i64> =
        (0..tasks).map(|t| graph.neighbors(t).map(|(_, bytes)| volumes.of(bytes)).sum()).collect();
    let mut free: Vec<usize> = (0..pes.len()).collect();
    let mut distances = vec![0u32; topology.pes()];
    let mut settle = |vertex: usize, pe: u32, placed: &mut [Option<Vec<i64>>], open: &mut [i64]| {
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
        settle(tasks + anchor, pe, &mut placed, &mut open);
    }
    let mut row = vec![0u32; topology.pes()];
    for _ in 0..tasks {
        let count = free.len() as i64;
        let mut best: Option<(i128, usize, usize)> = None;
        for task in (0..tasks).filter(|&task| places[task] == NOWHERE) {
            let cost = |column: usize| {
                let known = placed[task].as_ref().map_or(0, |row| row[column]);
                count * known + open[task] * sums[column]
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
        settle(task, pes[column], &mut placed, &mut open);
    }
    Ok(places)
}
