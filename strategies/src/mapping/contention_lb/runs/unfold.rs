//! A run from the periphery in which open choices are decided by what follows of them.
//!
//! Tasks come in the order of Select_Task. One with several mapped partners goes where that adds the fewest hops: it has
//! little choice. One with a single mapped partner may go to any neighbor of that, and everything depends on it: each
//! of these PEs is tried by placing, after it, all tasks that then have several mapped partners, and the one after
//! which these need the fewest hops is taken. So a mesh unfolds onto a hypercube row after row, and finds the Gray code
//! without being told.
//!
//! Nothing follows of the place of the second task yet: whether a row of tasks lies along the longer or the shorter side of a
//! grid shows only when a side is at its end. So there is a run for every way it may lie.

use super::super::bounds::Bounds;
use super::super::tasks::Tasks;
use super::{NONE, Problem};

/// How many PEs are tried for a task.
const MAX_TRIED: usize = 12;

/// How many entries of tables may be looked at while trying; then every task goes where it adds the fewest hops.
const MAX_LOOKS: usize = 60_000_000;

/// The most tasks that are placed to try a PE.
const MAX_AHEAD: usize = 128;

/// The PE of every task, of which that one is placed first, in the corner: with the second on each PE beside it.
pub(super) fn all(problem: &Problem, start: u32) -> Vec<Vec<u32>> {
    match problem.beside_corner.as_slice() {
        [] => vec![place(problem, start, None)],
        beside => beside.iter().map(|&pe| place(problem, start, Some(pe))).collect(),
    }
}

/// The same with the second task, if the first is its partner, on that PE.
fn place(problem: &Problem, start: u32, mut second: Option<u32>) -> Vec<u32> {
    let mut state = State::new(problem);
    let mut looks = 0;
    state.put(start, problem.corner);
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
                let hops = state.go_ahead(&mut costs, &mut looks);
                let score = (hops, state.bounds.volume());
                state.undo(mark, bounds);
                if score < least {
                    (least, best) = (score, pe);
                }
            }
        }
        state.put(task, best);
    }
    state.place
}

/// A partial placement.
struct State<'a> {
    problem: &'a Problem<'a>,
    /// Which of them have a place, and which is next.
    tasks: Tasks,
    place: Vec<u32>,
    is_used: Vec<bool>,
    /// By PE: how many of its neighbors have no task.
    free_neighbors: Vec<u32>,
    bounds: Bounds,
    /// The tasks with a place, in order.
    order: Vec<u32>,
}

impl<'a> State<'a> {
    fn new(problem: &'a Problem<'a>) -> Self {
        let (tasks, pes) = (problem.partners.len(), problem.pes());
        State {
            problem,
            tasks: problem.tasks.clone(),
            place: vec![NONE; tasks],
            is_used: vec![false; pes],
            free_neighbors: problem.neighbors.iter().map(|list| list.len() as u32).collect(),
            bounds: problem.host.no_bounds(),
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

    /// Back to when `mark` tasks had places, and used PEs were in that box.
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

    /// What tells PEs of equal cost apart: the box of used PEs, then the difference between the partners that are left and
    /// the free neighbors, then the lower PE.
    fn rank(&self, task: u32, pe: u32) -> (u64, u64, u32) {
        let left = self.problem.partners[task as usize].len() - self.tasks.mapped_partners(task as usize);
        let apart = left.abs_diff(self.free_neighbors[pe as usize] as usize) as u64;
        (self.bounds.volume_with(self.problem.position(pe)), apart, pe)
    }

    /// Places the tasks with several mapped partners, one after the other, where each adds the fewest hops; returns all
    /// hops beyond the first that this and the last task before it added.
    fn go_ahead(&mut self, costs: &mut Vec<u64>, looks: &mut usize) -> u64 {
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
