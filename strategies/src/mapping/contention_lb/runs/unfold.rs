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
    while let Some(task) = state.next(0) {
        let least = state.costs(task, &mut costs);
        let mut tied: Vec<(u64, u64, u32)> = (0..costs.len() as u32)
            .filter(|&pe| costs[pe as usize] == least && !state.is_used[pe as usize])
            .map(|pe| state.rank(task, pe))
            .collect();
        tied.sort_unstable();
        let mut best = tied[0].2;
        if let Some(second) = second.take().filter(|_| state.mapped[task as usize] == 1) {
            best = second;
        } else if state.mapped[task as usize] == 1 && tied.len() > 1 && looks < MAX_LOOKS {
            tied.truncate(MAX_TRIED);
            let mut least = (u64::MAX, u64::MAX);
            for &(.., pe) in &tied {
                let (mark, corners) = (state.order.len(), state.corners.clone());
                state.put(task, pe);
                let hops = state.go_ahead(&mut costs, &mut looks);
                let score = (hops, problem.volume(&state.corners, None));
                state.undo(mark, corners);
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
pub(super) struct State<'a> {
    problem: &'a Problem<'a>,
    pub(super) place: Vec<u32>,
    is_used: Vec<bool>,
    /// By task: how many partners have a place, and since when it has one that has.
    mapped: Vec<u32>,
    since: Vec<u32>,
    seen: u32,
    /// By PE: how many of its neighbors have no task.
    free_neighbors: Vec<u32>,
    corners: Vec<(u32, u32)>,
    /// The tasks with a place, in order.
    order: Vec<u32>,
}

impl<'a> State<'a> {
    pub(super) fn new(problem: &'a Problem<'a>) -> Self {
        let (tasks, pes) = (problem.partners.len(), problem.pes());
        State {
            problem,
            place: vec![NONE; tasks],
            is_used: vec![false; pes],
            mapped: vec![0; tasks],
            since: vec![NONE; tasks],
            seen: 0,
            free_neighbors: problem.neighbors.iter().map(|list| list.len() as u32).collect(),
            corners: problem.no_corners(),
            order: Vec::with_capacity(tasks),
        }
    }

    pub(super) fn put(&mut self, task: u32, pe: u32) {
        self.place[task as usize] = pe;
        self.is_used[pe as usize] = true;
        self.order.push(task);
        self.problem.neighbors[pe as usize].iter().for_each(|&it| self.free_neighbors[it as usize] -= 1);
        self.problem.widen(&mut self.corners, pe);
        for &(partner, _) in &self.problem.partners[task as usize] {
            self.mapped[partner as usize] += 1;
            if self.since[partner as usize] == NONE {
                self.since[partner as usize] = self.seen;
                self.seen += 1;
            }
        }
    }

    /// Back to when `mark` tasks had places, and the box of used PEs these corners.
    fn undo(&mut self, mark: usize, corners: Vec<(u32, u32)>) {
        while self.order.len() > mark {
            let Some(task) = self.order.pop() else { break };
            let pe = std::mem::replace(&mut self.place[task as usize], NONE);
            self.is_used[pe as usize] = false;
            self.problem.neighbors[pe as usize].iter().for_each(|&it| self.free_neighbors[it as usize] += 1);
            for &(partner, _) in &self.problem.partners[task as usize] {
                self.mapped[partner as usize] -= 1;
                if self.mapped[partner as usize] == 0 {
                    self.since[partner as usize] = NONE;
                    self.seen -= 1;
                }
            }
        }
        self.corners = corners;
    }

    /// Select_Task among those with at least so many mapped partners.
    pub(super) fn next(&self, least: u32) -> Option<u32> {
        let free = |task: &usize| self.place[*task] == NONE && self.mapped[*task] >= least;
        let key = |&task: &usize| {
            let nearby = self.problem.tasks.nearby(task);
            (u32::MAX - self.mapped[task], u32::MAX - nearby, self.since[task])
        };
        (0..self.place.len()).filter(free).min_by_key(key).map(|task| task as u32)
    }

    fn costs(&self, task: u32, costs: &mut Vec<u64>) -> u64 {
        self.problem.costs(task, &self.place, &self.is_used, costs)
    }

    /// What tells PEs of equal cost apart: the box of used PEs, then the difference between the partners that are left and
    /// the free neighbors, then the lower PE.
    fn rank(&self, task: u32, pe: u32) -> (u64, u64, u32) {
        let left = self.problem.partners[task as usize].len() as u32 - self.mapped[task as usize];
        let apart = left.abs_diff(self.free_neighbors[pe as usize]);
        (self.problem.volume(&self.corners, Some(pe)), u64::from(apart), pe)
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
            let Some(task) = self.next(2) else { break };
            let least = self.costs(task, costs);
            *looks += self.place.len() + costs.len() * (1 + self.mapped[task as usize] as usize);
            let free = |&pe: &usize| costs[pe] == least && !self.is_used[pe];
            let Some(pe) = (0..costs.len()).find(free) else { break };
            hops += least;
            self.put(task, pe as u32);
        }
        hops
    }
}
