//! The table of section 4.4 for the first and the second order.

use std::ops::{AddAssign, Mul};

use equipoise_model::Topology;
use equipoise_model::graph::Graph;

use crate::StrategyError;
use crate::placement::volumes::Volumes;

/// Number of columns with a common minimum.
const BLOCK: usize = 64;

/// An entry of the table: 4 bytes if all costs fit, else 8.
pub(super) trait Cell: Copy + Ord + Default + Into<i64> + AddAssign + Mul<Output = Self> {
    const MIN: Self;
    const MAX: Self;

    /// Converts a number that fits.
    fn of(number: i64) -> Self;
}

impl Cell for i64 {
    const MIN: i64 = i64::MIN;
    const MAX: i64 = i64::MAX;

    fn of(number: i64) -> i64 {
        number
    }
}

impl Cell for i32 {
    const MIN: i32 = i32::MIN;
    const MAX: i32 = i32::MAX;

    fn of(number: i64) -> i32 {
        number as i32
    }
}

/// The costs `f(t, p)`, multiplied by a factor that makes them integers. Columns are the PEs of `pes`.
pub(super) struct Table<'a, C> {
    graph: &'a Graph,
    topology: &'a dyn Topology,
    pes: &'a [u32],
    volumes: Volumes,
    /// The factor: the number of PEs if mean distances are part of the costs, else 1.
    scale: i64,
    /// Cost on each column of a byte to an unplaced neighbor: in the second order the sum of the distances to all
    /// columns, in the first order 0.
    expected: Vec<i64>,
    /// Columns sorted by `expected`, then by number. Columns before `next_central` are taken.
    central: Vec<u32>,
    next_central: usize,
    /// [`Cell::MIN`] for a free column, [`Cell::MAX`] for a taken column. The minimum over all columns of max(cost,
    /// this value) ignores taken columns.
    taken: Vec<C>,
    free_columns: usize,
    /// Sum of `expected` over the free columns.
    free_expected: i128,
    tasks: Vec<Task>,
    /// Rows of tasks, in no particular order.
    rows: Vec<Row<C>>,
    /// Rows of placed tasks, for reuse.
    spare: Vec<Row<C>>,
    max_rows: usize,
    /// Tasks sorted by weight, heaviest first, then by number. Tasks before `next_by_weight` in this list, and task
    /// numbers below `next_by_number`, are placed or have a row.
    by_weight: Vec<u32>,
    next_by_weight: usize,
    next_by_number: usize,
    /// Change of the cost per byte on each column for neighbors of the task placed last.
    delta: Vec<C>,
    distances: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Task {
    /// Bytes that the task exchanges, in the unit of the volumes.
    weight: i64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No neighbor is placed: the costs are the weight times `expected`.
    Waiting,
    /// The costs are in this row.
    Row(usize),
    Placed,
}

/// The costs of a task.
#[derive(Default)]
struct Row<C> {
    task: u32,
    cells: Vec<C>,
    /// A lower bound of the free cells of each block; exact for the block that contains `min`.
    minima: Vec<C>,
    /// The least free cell.
    min: C,
    /// The sum of the free cells.
    sum: i128,
}

impl<'a, C: Cell> Table<'a, C> {
    /// A table without rows. `expected` is the cost on each of `pes` of a byte to an unplaced neighbor, times `scale`.
    /// The table takes at most `max_bytes`.
    pub(super) fn new(
        (graph, tasks): (&'a Graph, usize),
        pes: &'a [u32],
        topology: &'a dyn Topology,
        volumes: Volumes,
        (expected, scale): (Vec<i64>, i64),
        max_bytes: usize,
    ) -> Self {
        let columns = pes.len();
        let weight = |t| graph.neighbors(t).map(|(_, bytes)| volumes.of(bytes)).sum();
        let tasks: Vec<Task> =
            (0..tasks).map(|t| Task { weight: weight(t), state: State::Waiting }).collect();
        let mut by_weight: Vec<u32> = (0..tasks.len() as u32).collect();
        by_weight.sort_by_key(|&t| std::cmp::Reverse(tasks[t as usize].weight));
        let mut central: Vec<u32> = (0..columns as u32).collect();
        central.sort_by_key(|&column| expected[column as usize]);
        Table {
            graph,
            topology,
            pes,
            volumes,
            scale,
            free_expected: expected.iter().map(|&cost| i128::from(cost)).sum(),
            expected,
            central,
            next_central: 0,
            taken: vec![C::MIN; columns],
            free_columns: columns,
            tasks,
            rows: Vec::new(),
            spare: Vec::new(),
            max_rows: max_bytes / (size_of::<C>() * columns.max(1)),
            by_weight,
            next_by_weight: 0,
            next_by_number: 0,
            delta: vec![C::default(); columns],
            distances: vec![0; topology.pes()],
        }
    }

    /// The task with the largest gain, the lowest task among equals; `None` if all tasks are placed.
    pub(super) fn most_critical(&mut self) -> Option<usize> {
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
        // All gains are multiplied by the number of free columns (and by the scale).
        let free = self.free_columns as i128;
        let mut best: Option<(i128, usize)> = None;
        if let Some(&heaviest) = self.by_weight.get(self.next_by_weight) {
            let least = self.expected[self.central[self.next_central] as usize];
            let gain = self.free_expected - free * i128::from(least);
            // If all columns are equally central, the gain of every task is 0, whatever its weight.
            let task = if gain > 0 { heaviest as usize } else { self.next_by_number };
            best = Some((gain * i128::from(self.tasks[task].weight), task));
        }
        for row in &self.rows {
            let (gain, task) = (row.sum - free * i128::from(row.min.into()), row.task as usize);
            if best.is_none_or(|(most, first)| gain > most || (gain == most && task < first)) {
                best = Some((gain, task));
            }
        }
        best.map(|(_, task)| task)
    }

    /// The free column where `task` costs least, the lowest column among equals.
    pub(super) fn cheapest(&self, task: usize) -> usize {
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
        self.taken[column] == C::MAX
    }

    /// Assigns `column` to `task` and removes `task` from the table.
    pub(super) fn take(&mut self, task: usize, column: usize) {
        self.taken[column] = C::MAX;
        self.free_columns -= 1;
        self.free_expected -= i128::from(self.expected[column]);
        if let State::Row(row) = std::mem::replace(&mut self.tasks[task].state, State::Placed) {
            self.spare.push(self.rows.swap_remove(row));
            if let Some(moved) = self.rows.get(row) {
                self.tasks[moved.task as usize].state = State::Row(row);
            }
        }
        for row in &mut self.rows {
            let cell = row.cells[column];
            row.sum -= i128::from(cell.into());
            if cell == row.min {
                row.find_min(column / BLOCK, &self.taken);
            }
        }
    }

    /// Updates the costs of the neighbors of `vertex`, which is now on `pe`: the distance to `pe` replaces the mean
    /// distance.
    pub(super) fn place(&mut self, vertex: usize, pe: u32) -> Result<(), StrategyError> {
        self.topology.distances_from(pe as usize, &mut self.distances);
        let mut free_delta = 0;
        for (column, &q) in self.pes.iter().enumerate() {
            let delta = self.scale * i64::from(self.distances[q as usize]) - self.expected[column];
            self.delta[column] = C::of(delta);
            if self.taken[column] == C::MIN {
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
            let volume = self.volumes.of(bytes);
            let row = &mut self.rows[row];
            row.sum += i128::from(volume) * free_delta;
            row.add(C::of(volume), &self.delta, &self.taken);
        }
        Ok(())
    }

    /// Adds a row for a task without one.
    fn add_row(&mut self, task: usize, weight: i64) -> Result<(), StrategyError> {
        if self.rows.len() >= self.max_rows {
            let (pes, rows) = (self.pes.len(), self.rows.len());
            return Err(StrategyError::Request(format!(
                "the table of costs needs more than {rows} rows of {pes} PEs, which do not fit into memory; use fewer \
                 PEs or a strategy without a table"
            )));
        }
        let mut row = self.spare.pop().unwrap_or_default();
        row.task = task as u32;
        row.cells.clear();
        row.cells.extend(self.expected.iter().map(|&cost| C::of(weight * cost)));
        row.minima.resize(self.pes.len().div_ceil(BLOCK), C::default());
        row.sum = i128::from(weight) * self.free_expected;
        self.tasks[task].state = State::Row(self.rows.len());
        self.rows.push(row);
        Ok(())
    }
}

impl<C: Cell> Row<C> {
    /// Adds `volume` times `delta` to all cells.
    fn add(&mut self, volume: C, delta: &[C], taken: &[C]) {
        let blocks = self.cells.chunks_mut(BLOCK).zip(delta.chunks(BLOCK)).zip(taken.chunks(BLOCK));
        for (((cells, delta), taken), minimum) in blocks.zip(&mut self.minima) {
            let mut least = C::MAX;
            for ((cell, &delta), taken) in cells.iter_mut().zip(delta).zip(taken) {
                *cell += volume * delta;
                least = least.min((*cell).max(*taken));
            }
            *minimum = least;
        }
        self.min = self.minima.iter().copied().min().unwrap_or(C::MAX);
    }

    /// Recomputes the minimum after the cell of `block` that contained it was taken.
    fn find_min(&mut self, block: usize, taken: &[C]) {
        let mut next = block;
        loop {
            let bound = self.minima[next];
            let range = next * BLOCK..((next + 1) * BLOCK).min(self.cells.len());
            let cells = self.cells[range.clone()].iter().zip(&taken[range]);
            let least = cells.map(|(cell, taken)| *cell.max(taken)).min().unwrap_or(C::MAX);
            self.minima[next] = least;
            // No cell is below the least bound, so a cell equal to it is the minimum.
            if least == bound {
                self.min = least;
                return;
            }
            let least = self.minima.iter().copied().min().unwrap_or(C::MAX);
            next = self.minima.iter().position(|&bound| bound == least).unwrap_or(block);
        }
    }
}
