//! TopoLB's placement: repeatedly places the most critical group on the PE where it costs least.
//!
//! T. Agarwal, A. Sharma, L. V. Kalé, "Topology-aware task mapping for reducing communication
//! contention on large parallel machines", IPDPS 2006: algorithm 1 with the second-order estimation
//! function of section 4.3. In each cycle every unplaced group `t` has a cost on every free PE `p`,
//!
//! ```text
//! f(t, p) = sum over placed neighbors j of t:   c(t, j) * d(p, place of j)
//!         + sum over the other neighbors j:     c(t, j) * mean of d(p, q) over the available PEs q
//! ```
//!
//! (`c` bytes, `d` distance). The gain of a group is the mean of `f` over the free PEs minus its minimum. The group with
//! the largest gain is placed on the PE where its `f` is least.
//!
//! This is the second order. In the first order, unplaced neighbors cost nothing. In the third order, the mean is over
//! the free PEs, which changes every cost in every cycle: O(p^3) in total, without better results (section 4.3
//! publishes results of the second order only, and on tori the third order gives more hops per byte).
//!
//! There are two deviations from the printed algorithm. Algorithm 1 divides the sum over the n-k+1 free PEs by n-k; here
//! it is the mean. Costs are not rounded, because the mapping depends on ties: costs are multiplied by the number of
//! PEs, which makes them integers, and gains by the number of free PEs. Ties go to the lowest group and the lowest PE.
//!
//! The table of section 4.4 is kept only for groups with a placed neighbor. The costs of all other groups are
//! proportional to the same mean distances, so the best of these groups is found without a table. A placement updates
//! one row per neighbor, O(p |E|) in total. The minimum of any other row changes only if it was in the column of the
//! placed group; it is then recomputed from the minima of blocks of columns.

use equipoise_model::graph::Graph;
use equipoise_model::{Topology, memory};
use rayon::prelude::*;

use super::volumes::Volumes;
use crate::StrategyError;

mod table;
mod third;

use table::Table;

/// The order of the estimation function, section 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Unplaced neighbors cost nothing.
    First,
    /// Unplaced neighbors are at the mean distance to all PEs.
    Second,
    /// Unplaced neighbors are at the mean distance to the free PEs.
    Third,
}

/// Maximum number of PEs; the distances of all pairs are summed before the first placement.
const MAX_PES: usize = 1 << 16;

/// Maximum number of PEs of the third order. Its time is cubic in the number of PEs, and its table takes 8 bytes for
/// every pair.
const MAX_PES_THIRD: usize = 1 << 13;

/// Checks that the number of PEs is within the limit of `order`.
pub(crate) fn check_pes(order: Order, pes: usize) -> Result<(), StrategyError> {
    let (number, most) = match order {
        Order::First => (1, MAX_PES),
        Order::Second => (2, MAX_PES),
        Order::Third => (3, MAX_PES_THIRD),
    };
    if pes <= most {
        return Ok(());
    }
    Err(StrategyError::Request(format!(
        "placement with estimates of order {number} compares all pairs of PEs and supports at most {most} PEs, not {pes}; \
         use fewer PEs or a strategy without a table"
    )))
}

/// Maximum memory of the table, in bytes.
pub(crate) const MAX_TABLE_BYTES: usize = 4 << 30;

/// The PE of every task: a different one of `pes` for each task.
///
/// The vertices of `graph` are the tasks and, after them, one fixed vertex for each entry of `anchors`, which is its PE.
///
/// # Errors
/// When there are more than 2^16 PEs (2^13 in the third order), or the table would not fit into memory.
///
/// # Panics
/// When there are more tasks than PEs.
pub(crate) fn place(
    graph: &Graph,
    anchors: &[u32],
    pes: &[u32],
    topology: &dyn Topology,
    order: Order,
) -> Result<Vec<u32>, StrategyError> {
    check_pes(order, pes.len())?;
    place_with(&Distances::of(anchors, pes, topology), graph, anchors, pes, topology, order)
}

/// The distances between PEs that do not depend on the order of the PEs.
pub(crate) struct Distances {
    /// For each PE that receives tasks, the sum of its distances to all such PEs; 0 for other PEs.
    sums: Vec<i64>,
    /// The largest distance to a PE that receives tasks.
    farthest: u32,
}

impl Distances {
    pub(crate) fn of(anchors: &[u32], pes: &[u32], topology: &dyn Topology) -> Self {
        let measure = |row: &mut Vec<u32>, &pe: &u32| {
            topology.distances_from(pe as usize, row);
            let distances = pes.iter().map(|&q| row[q as usize]);
            (distances.clone().map(i64::from).sum::<i64>(), distances.max().unwrap_or(0))
        };
        let row = || vec![0; topology.pes()];
        let (found, far): (Vec<i64>, Vec<u32>) = pes.par_iter().map_init(row, measure).unzip();
        let mut row = row();
        let far = anchors.iter().map(|pe| measure(&mut row, pe).1).chain(far);
        let farthest = far.max().unwrap_or(0);
        let mut sums = vec![0; topology.pes()];
        pes.iter().zip(found).for_each(|(&pe, sum)| sums[pe as usize] = sum);
        Distances { sums, farthest }
    }
}

/// As [`place`], with precomputed distances.
pub(crate) fn place_with(
    distances: &Distances,
    graph: &Graph,
    anchors: &[u32],
    pes: &[u32],
    topology: &dyn Topology,
    order: Order,
) -> Result<Vec<u32>, StrategyError> {
    let tasks = graph.vertices() - anchors.len();
    assert!(tasks <= pes.len(), "every task has a PE of its own");
    let (expected, scale) = match order {
        Order::First => (vec![0; pes.len()], 1),
        Order::Second | Order::Third => {
            (pes.iter().map(|&pe| distances.sums[pe as usize]).collect(), pes.len() as i64)
        }
    };
    let volumes = Volumes::new(graph, scale as u128 * u128::from(distances.farthest));
    if order == Order::Third {
        return third::place((graph, tasks), anchors, pes, topology, volumes, expected);
    }
    let costs = (expected, scale);
    // The other half is for all else.
    let half = memory::available().map_or(usize::MAX, |bytes| (bytes / 2) as usize);
    let max_bytes = MAX_TABLE_BYTES.min(half);
    let task_graph = (graph, tasks);
    if volumes.largest_cost <= i64::from(i32::MAX) {
        let table = Table::<i32>::new(task_graph, pes, topology, volumes, costs, max_bytes);
        fill(table, tasks, anchors, pes)
    } else {
        let table = Table::<i64>::new(task_graph, pes, topology, volumes, costs, max_bytes);
        fill(table, tasks, anchors, pes)
    }
}

/// Algorithm 1, starting with a table without rows.
fn fill<C: table::Cell>(
    mut table: Table<C>,
    tasks: usize,
    anchors: &[u32],
    pes: &[u32],
) -> Result<Vec<u32>, StrategyError> {
    for (anchor, &pe) in anchors.iter().enumerate() {
        table.place(tasks + anchor, pe)?;
    }
    let mut places = vec![0; tasks];
    while let Some(task) = table.most_critical() {
        let column = table.cheapest(task);
        places[task] = pes[column];
        table.take(task, column);
        table.place(task, pes[column])?;
    }
    Ok(places)
}

#[cfg(test)]
mod tests;
