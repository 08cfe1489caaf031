//! Runs from the periphery that decide open choices by trying their consequences.
//!
//! The greedy mapper begins at the centres and never looks beyond the next task. So it misses embeddings without local
//! evidence: a mesh on a hypercube by Gray codes, a mesh on a mesh with the same sides. These runs place tasks only by
//! equation (4), hops beyond the first times messages, which is cheap enough to try continuations.
//!
//! Tasks come in the order of Select_Task. A task with several mapped partners has little choice: it goes where it adds
//! the fewest hops. A task with one mapped partner may go to any neighbor of that partner, and the rest depends on this
//! choice. Each of these PEs is tried: all tasks that then have several mapped partners are placed, and the PE for
//! which they need the fewest hops is taken. So a mesh unfolds onto a hypercube row by row, which is the embedding by
//! Gray codes.
//!
//! The place of the second task has no such consequences: the orientation of a row of tasks along the longer or the
//! shorter side of a grid matters only when the row reaches the end of that side. So there is a run for each
//! orientation.

use super::problem::{NONE, Problem};
use crate::mapping::de_petris_perego::bounds::Bounds;
use crate::mapping::de_petris_perego::tasks::Tasks;

/// The maximum number of PEs that are tried for a task.
const MAX_TRIED: usize = 12;

/// The maximum number of table entries read while trying; after that every task goes where it adds the fewest hops.
const MAX_LOOKS: usize = 60_000_000;

/// The maximum number of tasks that are placed to try a PE.
const MAX_AHEAD: usize = 128;

/// Placements of a program without fixed tasks and with at most one task per PE: the PE of every task. The first task is on
/// the corner. In each run the second task is on another one of [`Problem::next_to_corner`].
pub(super) fn all(problem: &Problem) -> Vec<Vec<u32>> {
    match problem.next_to_corner.as_slice() {
        [] => vec![place(problem, None)],
        pes => pes.iter().map(|&pe| place(problem, Some(pe))).collect(),
    }
}

/// The PE of every task. The second task is on `second` if it is a partner of the first.
fn place(problem: &Problem, mut second: Option<u32>) -> Vec<u32> {
    let mut state = State::new(problem);
    let mut looks = 0;
    state.put(problem.start, problem.corner);
    let mut costs = Vec::new();
    while let Some(task) = state.tasks.next().map(|task| task as u32) {
        let least = state.costs(task, &mut costs);
        let mut tied: Vec<(u64, u64, u32)> = (0..costs.len() as u32)
            .filter(|&pe| costs[pe as usize] == least && !state.is_used[pe as usize])
            .map(|pe| state.rank(task, pe))
            .collect();
        tied.sort_unstable();
        let mut best = tied[0].2;
        if let Some(second) = second.take().filter(|_| state.tasks.mapped_partners(task as usize) == 1) {
            best = second;
        } else if state.tasks.mapped_partners(task as usize) == 1 && tied.len() > 1 && looks < MAX_LOOKS {
            tied.truncate(MAX_TRIED);
            let mut least = (u64::MAX, u64::MAX);
            for &(.., pe) in &tied {
                let (mark, bounds) = (state.order.len(), state.bounds.clone());
                state.put(task, pe);
                let hops = state.place_ahead(&mut costs, &mut looks);
                let score = (hops, state.bounds.volume());
                state.undo(mark, bounds);
                if score < least {
                    (least, best) = (score, pe);
                }
            }
        }
        state.put(task, best);
    }
    problem.pes_of(&state.place)
}

/// A partial placement.
struct State<'a> {
    problem: &'a Problem<'a>,
    /// Whether each task has a place, and the order of the tasks without one.
    tasks: Tasks,
    place: Vec<u32>,
    is_used: Vec<bool>,
    /// By PE: the number of neighbors without a task.
    free_neighbors: Vec<u32>,
    bounds: Bounds,
    /// The tasks with a place, in order.
    order: Vec<u32>,
}

impl<'a> State<'a> {
    fn new(problem: &'a Problem<'a>) -> Self {
        let (tasks, pes) = (problem.partners.len(), problem.neighbors.len());
        State {
            problem,
            tasks: problem.tasks.clone(),
            place: vec![NONE; tasks],
            is_used: vec![false; pes],
            free_neighbors: problem.neighbors.iter().map(|list| list.len() as u32).collect(),
            bounds: problem.no_bounds(),
            order: Vec::with_capacity(tasks),
        }
    }

    fn put(&mut self, task: u32, pe: u32) {
        self.place[task as usize] = pe;
        self.is_used[pe as usize] = true;
        self.order.push(task);
        self.problem.neighbors[pe as usize].iter().for_each(|&it| self.free_neighbors[it as usize] -= 1);
        self.bounds.widen(self.problem.position(pe));
        self.tasks.map(task as usize);
    }

    /// Restores the state in which `mark` tasks had places and `bounds` was the box of used PEs.
    fn undo(&mut self, mark: usize, bounds: Bounds) {
        while self.order.len() > mark {
            let Some(task) = self.order.pop() else { break };
            let pe = std::mem::replace(&mut self.place[task as usize], NONE);
            self.is_used[pe as usize] = false;
            self.problem.neighbors[pe as usize].iter().for_each(|&it| self.free_neighbors[it as usize] += 1);
            self.tasks.unmap(task as usize);
        }
        self.bounds = bounds;
    }

    fn costs(&self, task: u32, costs: &mut Vec<u64>) -> u64 {
        self.problem.costs(task, &self.place, &self.is_used, costs)
    }

    /// The order of PEs of equal cost: by the box of used PEs, then the difference between the number of partners without a
    /// place and the number of free neighbors, then the PE number.
    fn rank(&self, task: u32, pe: u32) -> (u64, u64, u32) {
        let left = self.problem.partners[task as usize].len() - self.tasks.mapped_partners(task as usize);
        let apart = left.abs_diff(self.free_neighbors[pe as usize] as usize) as u64;
        (self.bounds.volume_with(self.problem.position(pe)), apart, pe)
    }

    /// Places the tasks with several mapped partners in turn where each adds the fewest hops. Returns the hops beyond the
    /// first that these tasks and the last task placed before them added.
    fn place_ahead(&mut self, costs: &mut Vec<u64>, looks: &mut usize) -> u64 {
        let hops_of = |state: &Self, task: u32| {
            let row = state.problem.extra_from(state.place[task as usize]);
            let placed = state.problem.partners[task as usize].iter().filter_map(|&(other, messages)| {
                let place = state.place[other as usize];
                (place != NONE).then(|| messages * u64::from(row[place as usize]))
            });
            placed.sum::<u64>()
        };
        let mut hops = self.order.last().map_or(0, |&task| hops_of(self, task));
        for _ in 0..MAX_AHEAD {
            let Some(task) = self.tasks.adjoining(2).map(|task| task as u32) else { break };
            let least = self.costs(task, costs);
            *looks += self.place.len() + costs.len() * (1 + self.tasks.mapped_partners(task as usize));
            let free = |&pe: &usize| costs[pe] == least && !self.is_used[pe];
            let Some(pe) = (0..costs.len()).find(free) else { break };
            hops += least;
            self.put(task, pe as u32);
        }
        hops
    }
}
