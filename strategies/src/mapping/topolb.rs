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
//! the paper, by load alone, or not at all.
//!
//! Two things are done otherwise than printed. Algorithm 1 divides the sum over the n-k+1 free PEs by
//! n-k; here it is the mean. And nothing is rounded, because the mapping depends on ties: all costs are
//! multiplied by the number of PEs, which makes them integers, and gains by the number of free ones.
//! Ties go to the lowest group and the lowest PE.
//!
//! The table of section 4.4 is kept only for groups with a placed neighbor. The others have costs in
//! proportion to the same mean distances, so the best of them is known without a table. A placement
//! updates one row per neighbor, O(p |E|) in all; the minimum of another row changes only when it stood
//! in the column that is gone, and is found again from the minima of blocks of columns.

use rayon::prelude::*;

use crate::graph::Graph;
use crate::partition::groups::{Grouping, Groups};
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `TopoLB` for the registry.
pub const NAMED: Named = Named {
    name: "TopoLB",
    aliases: &[],
    help: "Groups objects, then places groups that communicate close together (Agarwal, Sharma, Kalé 2006). \
           Nearly everything moves once. For communication-bound programs on tori; to a few thousand PEs. \
           Follow it with RefineLB in later steps.",
    params: &[
        Param {
            key: "groups",
            default: "metis",
            help: "who stays together: `metis` (few bytes between groups, balanced), `greedy` (balanced only), \
                   `keep` (the objects of a PE change places as they are)",
        },
        Param { key: "imbalance", default: "0.05", help: "allowed max/avg - 1 of the groups of METIS" },
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let (groups, imbalance) = (params.take("groups")?, params.take_imbalance()?);
        Ok(Box::new(TopoLb { groups, imbalance }))
    },
};

/// The strategy that places groups by second-order estimates of their hop-bytes.
#[derive(Clone, Copy, Debug)]
pub struct TopoLb {
    /// How objects are grouped.
    pub groups: Grouping,
    /// How far above the average METIS may load a group: max/avg - 1.
    pub imbalance: f64,
}

impl Strategy for TopoLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        check_pes(available.len())?;
        let groups = Groups::of(database, &available, self.groups, self.imbalance, seed)?;
        let places = place(&groups.graph, &groups.anchors, &available, topology)?;
        Ok(Assignment {
            pe_of: groups.placement(database, &places),
            notes: vec![("groups".into(), groups.count as f64)],
        })
    }
}

/// The most PEs: the distances of all pairs of them are added up before the first is chosen.
const MAX_PES: usize = 1 << 16;

/// Whether so many PEs can be compared in a reasonable time.
fn check_pes(pes: usize) -> Result<(), StrategyError> {
    if pes <= MAX_PES {
        return Ok(());
    }
    Err(StrategyError(format!(
        "TopoLB compares all pairs of PEs, and {pes} PEs are more than the {MAX_PES} it can; use fewer PEs \
         or a strategy without a table"
    )))
}

/// The most memory the table may take.
const MAX_TABLE_BYTES: usize = 4 << 30;

/// The PE of every task: one of `pes` (ascending), each for at most one task.
///
/// The vertices of `graph` are the tasks and, after them, an anchor for each of `anchors`: something
/// that is on that PE already, and stays.
///
/// # Errors
/// When there are more than 2^16 PEs, or the table would not fit into memory.
///
/// # Panics
/// When there are more tasks than PEs.
pub fn place(
    graph: &Graph,
    anchors: &[u32],
    pes: &[u32],
    topology: &dyn Topology,
) -> Result<Vec<u32>, StrategyError> {
    check_pes(pes.len())?;
    let tasks = graph.vertices() - anchors.len();
    assert!(tasks <= pes.len(), "every task has a PE of its own");
    let mut table = Table::new(graph, anchors, pes, topology, MAX_TABLE_BYTES);
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

/// Columns whose minimum is kept together.
const BLOCK: usize = 64;

/// The costs `f(t, p)` times the number of PEs; a column is a PE of `pes`.
struct Table<'a> {
    graph: &'a Graph,
    topology: &'a dyn Topology,
    pes: &'a [u32],
    /// Byte volumes are divided by this and shifted right by that, so that costs fit 62 bits: by their
    /// greatest common divisor, and not at all unless a group has more than 2^62 / (PEs * distance).
    unit: u64,
    shift: u32,
    /// Sum of the distances from each column to all.
    distance_sums: Vec<i64>,
    /// Columns by that sum, then by number; those before `next_central` are taken.
    central: Vec<u32>,
    next_central: usize,
    /// `i64::MIN` for a column that is free and `i64::MAX` for one that is taken: the maximum of this and
    /// a cost leaves taken columns out of a minimum.
    taken: Vec<i64>,
    free_columns: usize,
    /// Sum of `distance_sums` over the free columns.
    free_distance_sum: i128,
    tasks: Vec<Task>,
    /// Tasks with a row, in no order.
    rows: Vec<Row>,
    /// Rows of tasks that have a place now, to be used again.
    spare: Vec<Row>,
    max_rows: usize,
    /// Tasks without a row by weight, heaviest first, then by number, and by number alone; those before
    /// the counter need no longer be looked at.
    by_weight: Vec<u32>,
    next_by_weight: usize,
    next_by_number: usize,
    /// What a task next to the one placed last costs more on each column, per byte.
    delta: Vec<i64>,
    distances: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Task {
    /// Bytes it exchanges, in units.
    weight: i64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No neighbor has a place: the costs are the weight times the distance sums.
    Waiting,
    /// The costs are in the row of that number.
    Row(usize),
    Placed,
}

/// The costs of a task.
#[derive(Default)]
struct Row {
    task: u32,
    cells: Vec<i64>,
    /// A lower bound of the free cells of each block, exact for the block that has `min`.
    minima: Vec<i64>,
    /// The least free cell.
    min: i64,
    /// The sum of the free cells.
    sum: i128,
}

impl<'a> Table<'a> {
    fn new(
        graph: &'a Graph,
        anchors: &[u32],
        pes: &'a [u32],
        topology: &'a dyn Topology,
        max_bytes: usize,
    ) -> Self {
        let (columns, all) = (pes.len(), topology.pes());
        let measure = |row: &mut Vec<u32>, &pe: &u32| {
            topology.distances_from(pe as usize, row);
            let distances = pes.iter().map(|&q| row[q as usize]);
            (distances.clone().map(i64::from).sum::<i64>(), distances.max().unwrap_or(0))
        };
        let (distance_sums, far): (Vec<i64>, Vec<u32>) =
            pes.par_iter().map_init(|| vec![0; all], measure).unzip();
        let mut distances = vec![0; all];
        let farthest = anchors.iter().map(|pe| measure(&mut distances, pe).1).chain(far).max().unwrap_or(0);

        let (_, _, bytes) = graph.rows();
        let unit = bytes.iter().fold(0, |unit, &bytes| gcd(unit, bytes)).max(1);
        let heaviest = (0..graph.vertices()).map(|v| graph.weight(v) / unit).max().unwrap_or(0);
        let largest = u128::from(heaviest) * columns as u128 * u128::from(farthest);
        let shift = (u128::BITS - largest.leading_zeros()).saturating_sub(62);
        let scale = |bytes: u64| ((bytes / unit) >> shift) as i64;
        let tasks: Vec<Task> = (0..graph.vertices() - anchors.len())
            .map(|t| Task { weight: graph.neighbors(t).map(|(_, b)| scale(b)).sum(), state: State::Waiting })
            .collect();
        let mut by_weight: Vec<u32> = (0..tasks.len() as u32).collect();
        by_weight.sort_by_key(|&t| std::cmp::Reverse(tasks[t as usize].weight));
        let mut central: Vec<u32> = (0..columns as u32).collect();
        central.sort_by_key(|&column| distance_sums[column as usize]);
        Table {
            graph,
            topology,
            pes,
            unit,
            shift,
            free_distance_sum: distance_sums.iter().map(|&sum| i128::from(sum)).sum(),
            distance_sums,
            central,
            next_central: 0,
            taken: vec![i64::MIN; columns],
            free_columns: columns,
            tasks,
            rows: Vec::new(),
            spare: Vec::new(),
            max_rows: max_bytes / (size_of::<i64>() * columns.max(1)),
            by_weight,
            next_by_weight: 0,
            next_by_number: 0,
            delta: vec![0; columns],
            distances,
        }
    }

    /// The task with the largest gain, the lowest of equals; `None` if all are placed.
    fn most_critical(&mut self) -> Option<usize> {
        let is_waiting = |task: usize| self.tasks[task].state == State::Waiting;
        while self.by_weight.get(self.next_by_weight).is_some_and(|&task| !is_waiting(task as usize)) {
            self.next_by_weight += 1;
        }
        while self.next_by_number < self.tasks.len() && !is_waiting(self.next_by_number) {
            self.next_by_number += 1;
        }
        while self.central.get(self.next_central).is_some_and(|&column| self.is_taken(column as usize)) {
            self.next_central += 1;
        }
        // All gains here are times the number of free columns (and of PEs).
        let free = self.free_columns as i128;
        let mut best: Option<(i128, usize)> = None;
        if let Some(&heaviest) = self.by_weight.get(self.next_by_weight) {
            let least = self.distance_sums[self.central[self.next_central] as usize];
            let gain = self.free_distance_sum - free * i128::from(least);
            // Where all columns are equally central every task gains nothing, whatever its weight.
            let task = if gain > 0 { heaviest as usize } else { self.next_by_number };
            best = Some((gain * i128::from(self.tasks[task].weight), task));
        }
        for row in &self.rows {
            let (gain, task) = (row.sum - free * i128::from(row.min), row.task as usize);
            if best.is_none_or(|(most, first)| gain > most || (gain == most && task < first)) {
                best = Some((gain, task));
            }
        }
        best.map(|(_, task)| task)
    }

    /// The free column where `task` costs least, the lowest of equals.
    fn cheapest(&self, task: usize) -> usize {
        let Task { weight, state } = self.tasks[task];
        let least = match state {
            State::Row(row) => {
                let Row { cells, min, .. } = &self.rows[row];
                (0..cells.len()).find(|&column| cells[column] == *min && !self.is_taken(column))
            }
            _ if weight == 0 => (0..self.taken.len()).find(|&column| !self.is_taken(column)),
            _ => Some(self.central[self.next_central] as usize),
        };
        least.expect("a task without a place leaves a column free")
    }

    fn is_taken(&self, column: usize) -> bool {
        self.taken[column] == i64::MAX
    }

    /// Gives `column` to `task`, which leaves the table.
    fn take(&mut self, task: usize, column: usize) {
        self.taken[column] = i64::MAX;
        self.free_columns -= 1;
        self.free_distance_sum -= i128::from(self.distance_sums[column]);
        if let State::Row(row) = std::mem::replace(&mut self.tasks[task].state, State::Placed) {
            self.spare.push(self.rows.swap_remove(row));
            if let Some(moved) = self.rows.get(row) {
                self.tasks[moved.task as usize].state = State::Row(row);
            }
        }
        for row in &mut self.rows {
            let cell = row.cells[column];
            row.sum -= i128::from(cell);
            if cell == row.min {
                row.find_min(column / BLOCK, &self.taken);
            }
        }
    }

    /// Tells the neighbors of `vertex` that it is on `pe`: what they exchange now costs that distance
    /// instead of the mean.
    fn settle(&mut self, vertex: usize, pe: u32) -> Result<(), StrategyError> {
        self.topology.distances_from(pe as usize, &mut self.distances);
        let columns = self.pes.len() as i64;
        let mut free_delta = 0;
        for (column, &q) in self.pes.iter().enumerate() {
            let delta = columns * i64::from(self.distances[q as usize]) - self.distance_sums[column];
            self.delta[column] = delta;
            if self.taken[column] == i64::MIN {
                free_delta += i128::from(delta);
            }
        }
        for (neighbor, bytes) in self.graph.neighbors(vertex) {
            let Some(&Task { weight, state }) = self.tasks.get(neighbor) else { continue };
            let row = match state {
                State::Placed => continue,
                State::Row(row) => row,
                State::Waiting => {
                    self.add_row(neighbor, weight)?;
                    self.rows.len() - 1
                }
            };
            let bytes = ((bytes / self.unit) >> self.shift) as i64;
            let row = &mut self.rows[row];
            row.sum += i128::from(bytes) * free_delta;
            row.add(bytes, &self.delta, &self.taken);
        }
        Ok(())
    }

    /// Gives a row to a task that had none.
    fn add_row(&mut self, task: usize, weight: i64) -> Result<(), StrategyError> {
        if self.rows.len() >= self.max_rows {
            let (pes, rows) = (self.pes.len(), self.rows.len());
            return Err(StrategyError(format!(
                "TopoLB's table has more than {rows} rows of {pes} PEs and does not fit into memory; use fewer \
                 PEs or a strategy without a table"
            )));
        }
        let mut row = self.spare.pop().unwrap_or_default();
        row.task = task as u32;
        row.cells.clear();
        row.cells.extend(self.distance_sums.iter().map(|sum| weight * sum));
        row.minima.resize(self.pes.len().div_ceil(BLOCK), 0);
        row.sum = i128::from(weight) * self.free_distance_sum;
        self.tasks[task].state = State::Row(self.rows.len());
        self.rows.push(row);
        Ok(())
    }
}

impl Row {
    /// Adds `bytes` times `delta` to all cells.
    fn add(&mut self, bytes: i64, delta: &[i64], taken: &[i64]) {
        let blocks = self.cells.chunks_mut(BLOCK).zip(delta.chunks(BLOCK)).zip(taken.chunks(BLOCK));
        for (((cells, delta), taken), minimum) in blocks.zip(&mut self.minima) {
            let mut least = i64::MAX;
            for ((cell, delta), taken) in cells.iter_mut().zip(delta).zip(taken) {
                *cell += bytes * delta;
                least = least.min((*cell).max(*taken));
            }
            *minimum = least;
        }
        self.min = self.minima.iter().copied().min().unwrap_or(i64::MAX);
    }

    /// Finds the minimum again after a cell of `block` that had it was taken.
    fn find_min(&mut self, block: usize, taken: &[i64]) {
        let mut next = block;
        loop {
            let bound = self.minima[next];
            let range = next * BLOCK..((next + 1) * BLOCK).min(self.cells.len());
            let cells = self.cells[range.clone()].iter().zip(&taken[range]);
            let least = cells.map(|(cell, taken)| *cell.max(taken)).min().unwrap_or(i64::MAX);
            self.minima[next] = least;
            // No cell is below the least bound, so one that reaches it is the minimum.
            if least == bound {
                self.min = least;
                return;
            }
            let least = self.minima.iter().copied().min().unwrap_or(i64::MAX);
            next = self.minima.iter().position(|&bound| bound == least).unwrap_or(block);
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests;
