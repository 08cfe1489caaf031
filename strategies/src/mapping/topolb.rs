//! `TopoLB`: places the group whose place matters most, where it costs least, again and again.
//!
//! T. Agarwal, A. Sharma, L. V. Kalé, "Topology-aware task mapping for reducing communication
//! contention on large parallel machines", IPDPS 2006: algorithm 1 with the second-order estimation
//! function of section 4.3. In each cycle every group `t` that has no place yet has a cost on every PE
//! `p` that is free,
//!
//! ```text
//! f(t, p) = sum over placed neighbors j of t:   c(t, j) * d(p, place of j)
//!         + sum over the other neighbors j:     c(t, j) * mean of d(p, q) over the available PEs q
//! ```
//!
//! (`c` bytes, `d` distance); the group with the largest gain, mean over free `p` of `f` less its
//! minimum, is placed where `f` is least. Objects are grouped first (section 4.1), here by METIS as in
//! the paper, by load alone, or not at all. PEs that their speed, background or objects that stay, of
//! which groups know nothing, take above the allowed imbalance give objects away in the end.
//!
//! That is the second order (`order=2`). In the first, neighbors without a place cost nothing; in the
//! third, the mean is over the PEs that are still free, which changes every cost in every cycle: O(p^3)
//! in all, and no better (section 4.3 publishes results of the second order only, and on tori the third
//! gives more hops per byte).
//!
//! Two things are done otherwise than printed. Algorithm 1 divides the sum over the n-k+1 free PEs by
//! n-k; here it is the mean. And nothing is rounded, because the mapping depends on ties: all costs are
//! multiplied by the number of PEs, which makes them integers, and gains by the number of free ones.
//! Ties go to the lowest group and the lowest PE, or with `ties=random` to the first of both in an
//! order drawn from the seed.
//!
//! The table of section 4.4 is kept only for groups with a placed neighbor. The others have costs in
//! proportion to the same mean distances, so the best of them is known without a table. A placement
//! updates one row per neighbor, O(p |E|) in all; the minimum of another row changes only when it stood
//! in the column that is gone, and is found again from the minima of blocks of columns.

use std::str::FromStr;

use rayon::prelude::*;

use super::volumes::Volumes;
use super::{answer, hop_bytes, hosts, take_count};
use crate::graph::Graph;
use crate::partition::groups::{self, Grouping, Groups};
use crate::random::{generator, shuffle};
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

mod table;
mod third;

use table::Table;

/// `TopoLB` for the registry.
pub const NAMED: Named = Named {
    name: "TopoLB",
    aliases: &[],
    help: "Groups objects, then places groups that communicate close together (Agarwal, Sharma, Kalé 2006). \
           Nearly everything moves once. For communication-bound programs on tori; to a few thousand PEs. \
           Follow it with RefineLB in later steps.",
    params: &[
        groups::GROUPS,
        groups::SIZES,
        groups::IMBALANCE,
        Param {
            key: "order",
            default: "2",
            help: "what neighbors without a place are taken to cost: 1 nothing, 2 the mean distance to all PEs, \
                   3 that to the free ones (slow, and worse on tori)",
        },
        TIES,
        RESTARTS,
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let grouping = Grouping::take(params)?;
        let order = match params.take::<u8>("order")? {
            1 => Order::First,
            2 => Order::Second,
            3 => Order::Third,
            other => return Err(params.bad("order", &other.to_string(), "the order is 1, 2 or 3")),
        };
        let (ties, restarts) = (params.take("ties")?, take_count(params, "restarts", MAX_RESTARTS)?);
        Ok(Box::new(TopoLb { grouping, order, ties, restarts }))
    },
};

/// The key `ties`.
pub(super) const TIES: Param = Param {
    key: "ties",
    default: "first",
    help: "what is chosen among equals: `first` the lowest numbers, `random` the first in an order drawn from \
           the seed",
};

/// The key `restarts`.
pub(super) const RESTARTS: Param = Param {
    key: "restarts",
    default: "1",
    help: "how often to place the groups, all but the first time with random ties; the mapping with the \
           fewest hop-bytes is kept",
};

/// The most restarts: more are a slip of the hand, for hardly any would still be better.
pub(super) const MAX_RESTARTS: usize = 10_000;

/// The strategy that places groups by estimates of their hop-bytes.
#[derive(Clone, Copy, Debug)]
pub struct TopoLb {
    /// How objects are grouped.
    pub grouping: Grouping,
    /// What neighbors without a place are taken to cost.
    pub order: Order,
    /// What is chosen among equals.
    pub ties: Ties,
    /// How often groups are placed, all but the first time with random ties.
    pub restarts: usize,
}

/// The order of the estimation function, section 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Neighbors without a place cost nothing.
    First,
    /// They are at the mean distance to all PEs.
    Second,
    /// They are at the mean distance to the PEs that are free.
    Third,
}

/// What is chosen among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The lowest number.
    First,
    /// The first in an order drawn from the seed.
    Random,
}

impl FromStr for Ties {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "first" => Ok(Ties::First),
            "random" => Ok(Ties::Random),
            _ => Err("ties are `first` or `random`".into()),
        }
    }
}

impl Strategy for TopoLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        check_pes(self.order, available.len())?;
        let groups = Groups::of(database, &available, self.grouping, seed)?;
        let hosts = hosts(database, &available, groups.count, self.grouping.by);
        let distances = Distances::of(&groups.anchors, &hosts, topology);
        let place = |graph: &Graph, pes: &[u32]| {
            place_with(&distances, graph, &groups.anchors, pes, topology, self.order)
        };
        let places = best_of(&groups, &hosts, topology, (self.ties, self.restarts), seed, place)?;
        Ok(answer(database, &groups, self.grouping, available, &places))
    }
}

/// The best, by hop-bytes, of so many mappings that `place` makes of the graph of groups and the PEs
/// it is given, in which ties go to the lowest number. Of equals the first.
pub(super) fn best_of(
    groups: &Groups,
    pes: &[u32],
    topology: &dyn Topology,
    (ties, restarts): (Ties, usize),
    seed: u64,
    place: impl Fn(&Graph, &[u32]) -> Result<Vec<u32>, StrategyError> + Sync,
) -> Result<Vec<u32>, StrategyError> {
    let run = |run: usize| {
        if run == 0 && ties == Ties::First {
            return place(&groups.graph, pes);
        }
        // Ties go to the lowest number, so in other numbers they go to others.
        let mut generator = generator(seed, run as u64);
        let mut names: Vec<u32> = (0..groups.graph.vertices() as u32).collect();
        shuffle(&mut generator, &mut names[..groups.count]);
        let mut shuffled_pes = pes.to_vec();
        shuffle(&mut generator, &mut shuffled_pes);
        let rename = |(a, b, bytes): (u32, u32, u64)| (names[a as usize], names[b as usize], bytes);
        let graph = Graph::new(groups.graph.vertices(), groups.graph.pairs().map(rename));
        let places = place(&graph, &shuffled_pes)?;
        Ok(names[..groups.count].iter().map(|&name| places[name as usize]).collect())
    };
    if restarts == 1 {
        return run(0);
    }
    let ranked = |number: usize| {
        let places: Vec<u32> = run(number)?;
        Ok((hop_bytes(&groups.graph, &groups.anchors, &places, topology), number, places))
    };
    // Every thread may have a table of all groups and PEs; where they would be too large together, one
    // thread makes one after the other.
    let tables = groups.count.saturating_mul(8 * pes.len()).saturating_mul(rayon::current_num_threads());
    let at_once = if tables <= MAX_TABLE_BYTES { 1 } else { restarts };
    let runs = (0..restarts).into_par_iter().with_min_len(at_once).map(ranked);
    let best = runs.try_reduce_with(|a, b| Ok(a.min(b)));
    best.expect("groups are placed at least once").map(|(.., places)| places)
}

/// The most PEs: the distances of all pairs of them are added up before the first is chosen.
const MAX_PES: usize = 1 << 16;

/// The most PEs of the third order, whose time grows with the cube of their number and whose table takes
/// 8 bytes for every pair.
const MAX_PES_THIRD: usize = 1 << 13;

/// Whether so many PEs can be compared in a reasonable time.
fn check_pes(order: Order, pes: usize) -> Result<(), StrategyError> {
    let (name, most) = match order {
        Order::First | Order::Second => ("TopoLB", MAX_PES),
        Order::Third => ("TopoLB:order=3", MAX_PES_THIRD),
    };
    if pes <= most {
        return Ok(());
    }
    Err(StrategyError::Request(format!(
        "{name} compares all pairs of PEs, and {pes} PEs are more than the {most} it can; use fewer PEs \
         or a strategy without a table"
    )))
}

/// The most memory the table may take.
const MAX_TABLE_BYTES: usize = 4 << 30;

/// The PE of every task: one of `pes`, each for at most one task.
///
/// The vertices of `graph` are the tasks and, after them, an anchor for each of `anchors`: something
/// that is on that PE already, and stays.
///
/// # Errors
/// When there are more than 2^16 PEs (2^13 in the third order), or the table would not fit into memory.
///
/// # Panics
/// When there are more tasks than PEs.
pub fn place(
    graph: &Graph,
    anchors: &[u32],
    pes: &[u32],
    topology: &dyn Topology,
    order: Order,
) -> Result<Vec<u32>, StrategyError> {
    check_pes(order, pes.len())?;
    place_with(&Distances::of(anchors, pes, topology), graph, anchors, pes, topology, order)
}

/// What is the same however the PEs are ordered.
struct Distances {
    /// By PE: the sum of the distances to those that take tasks; 0 for others.
    sums: Vec<i64>,
    /// The largest distance to one of them.
    farthest: u32,
}

impl Distances {
    fn of(anchors: &[u32], pes: &[u32], topology: &dyn Topology) -> Self {
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

/// As [`place`], with the distances known.
fn place_with(
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
    let task_graph = (graph, tasks);
    if volumes.largest_cost <= i64::from(i32::MAX) {
        let table = Table::<i32>::new(task_graph, pes, topology, volumes, costs, MAX_TABLE_BYTES);
        fill(table, tasks, anchors, pes)
    } else {
        let table = Table::<i64>::new(task_graph, pes, topology, volumes, costs, MAX_TABLE_BYTES);
        fill(table, tasks, anchors, pes)
    }
}

/// Algorithm 1 on a table without rows.
fn fill<C: table::Cell>(
    mut table: Table<C>,
    tasks: usize,
    anchors: &[u32],
    pes: &[u32],
) -> Result<Vec<u32>, StrategyError> {
    for (anchor, &pe) in anchors.iter().enumerate() {
        table.settle(tasks + anchor, pe)?;
    }
    let mut places = vec![0; tasks];
    while let Some(task) = table.most_critical() {
        let column = table.cheapest(task);
        places[task] = pes[column];
        table.take(task, column);
        table.settle(task, pes[column])?;
    }
    Ok(places)
}

#[cfg(test)]
mod tests;
