//! `LeeAggarwalLB`: a greedy mapping, improved by pairwise exchanges with probabilistic jumps.
//!
//! S. Y. Lee, J. K. Aggarwal, "A mapping strategy for parallel processing", IEEE Transactions on Computers 36(4), 1987: what De
//! Petris and Perego compare their mapper with ([`super::contention_lb`]). Its objective is the communication overhead
//! of the synchronous phases of a program, in each of which everybody waits for the slowest message:
//!
//! OF = sum over phases of the largest w_e d_e of the phase's edges,
//!
//! w_e being the flits of a message and d_e the distance it travels. We know the paper by its abstract and by what
//! others say of it, so the steps are ours where these leave them open: first the task that exchanges most goes to the PE
//! with most neighbors; then, again and again, the task that exchanges most with placed ones goes to the free PE where
//! the sum of w_e d_e to these is least. Then exchanges of what two PEs have, free ones among them, are tried
//! in the order of their numbers, and done where OF, or of equal OF the sum of w_e d_e, gets less, until none does. Then a
//! jump exchanges pairs drawn at random, an eighth of the PEs, and all begins again; the best of all is kept. Ties go to
//! the lowest number.
//!
//! Of a database, all edges are one phase, and groups of objects are placed, one per PE.

use super::topolb::{Ties, best_of};
use super::{answer, hosts, take_count};
use crate::graph::Graph;
use crate::partition::groups::{self, Grouping, Groups};
use crate::program::Model;
use crate::random::{below, generator};
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `LeeAggarwalLB` for the registry.
pub const NAMED: Named = Named {
    name: "LeeAggarwalLB",
    aliases: &[],
    help: "Greedy, then exchanges of pairs with random jumps, for the slowest message of each phase (Lee, Aggarwal 1987). To \
           compare ContentionLB with.",
    params: &[
        groups::GROUPS,
        groups::SIZES,
        groups::IMBALANCE,
        Param { key: "jumps", default: "20", help: "how often it begins again after a jump" },
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let grouping = Grouping::take(params)?;
        Ok(Box::new(LeeAggarwalLb { grouping, jumps: take_count(params, "jumps", MAX_JUMPS)? }))
    },
};

/// The most jumps: more are a slip of the hand.
const MAX_JUMPS: usize = 100_000;

/// How many edges may be looked at in exchanges: on large machines the search ends before it has tried all.
const MAX_LOOKS: u64 = 50_000_000;

/// The mapper of Lee and Aggarwal.
#[derive(Clone, Copy, Debug)]
pub struct LeeAggarwalLb {
    /// How objects are grouped.
    pub grouping: Grouping,
    /// How often it begins again after a jump.
    pub jumps: usize,
}

impl Strategy for LeeAggarwalLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let groups = Groups::of(database, &available, self.grouping, seed)?;
        let place = |graph: &Graph, pes: &[u32]| {
            let edges: Vec<_> = graph.pairs().collect();
            let phases = vec![(0..edges.len() as u32).collect()];
            let graph = PhasedGraph { tasks: graph.vertices() - groups.anchors.len(), edges, phases };
            Ok(place(&graph, &groups.anchors, pes, topology, self.jumps, seed))
        };
        let hosts = hosts(database, &available, groups.count, self.grouping.by);
        let places = best_of(&groups, &hosts, topology, (Ties::First, 1), seed, place)?;
        Ok(answer(database, &groups, self.grouping, available, &places))
    }

    /// Where no process stays and there is a PE for each, the phases of the program count.
    fn assign_program(
        &self,
        model: &Model,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let stays = database.objects.iter().any(|object| !object.migratable);
        if stays || model.tasks.len() > available.len() {
            return self.assign(database, topology, seed);
        }
        let pe_of = place(&PhasedGraph::of(model), &[], &available, topology, self.jumps, seed);
        Ok(Assignment { pe_of, notes: Vec::new() })
    }
}

/// What is placed: tasks, after them anchors that have their PE, and who exchanges how much in which phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhasedGraph {
    /// How many tasks there are.
    pub tasks: usize,
    /// Two different tasks or anchors, and the weight of a message.
    pub edges: Vec<(u32, u32, u64)>,
    /// The edges of each phase.
    pub phases: Vec<Vec<u32>>,
}

impl PhasedGraph {
    /// The channels of a program in its phases, with the flits of a message.
    pub fn of(model: &Model) -> Self {
        let edge = |it: &crate::program::Channel| {
            (it.from, it.to, (it.flit_ticks as u64).div_ceil(Model::TICKS as u64))
        };
        PhasedGraph {
            tasks: model.tasks.len(),
            edges: model.channels.iter().map(edge).collect(),
            phases: model.phases.clone(),
        }
    }
}

/// What is compared: OF, and the sum of all w_e d_e.
type Score = (u128, u128);

/// The PE of every task, one of `pes` for each and at most one for each PE; anchor `i` is on `anchors[i]`.
///
/// # Panics
/// When there are more tasks than PEs.
pub fn place(
    graph: &PhasedGraph,
    anchors: &[u32],
    pes: &[u32],
    topology: &dyn Topology,
    jumps: usize,
    seed: u64,
) -> Vec<u32> {
    assert!(graph.tasks <= pes.len(), "every task has a PE of its own");
    let mut search = Search::new(graph, anchors, pes, topology);
    let mut dice = generator(seed, 0x1987);
    search.greedy();
    search.descend();
    let (mut best, mut score) = (search.place.clone(), search.score());
    for _ in 0..jumps {
        if pes.len() < 3 || search.looks >= MAX_LOOKS {
            break;
        }
        for _ in 0..(pes.len() / 8).max(1) {
            let a = below(&mut dice, pes.len() as u64) as usize;
            let b = below(&mut dice, pes.len() as u64) as usize;
            search.exchange(a, b);
        }
        search.descend();
        if search.score() < score {
            (best, score) = (search.place.clone(), search.score());
        }
    }
    best.truncate(graph.tasks);
    best
}

const NONE: u32 = u32::MAX;

struct Search<'a> {
    graph: &'a PhasedGraph,
    pes: &'a [u32],
    topology: &'a dyn Topology,
    /// By task or anchor: its PE.
    place: Vec<u32>,
    /// By entry of `pes`: the task there.
    task_at: Vec<u32>,
    edges_of: Vec<Vec<u32>>,
    /// By edge: w d where both ends are now.
    travel: Vec<u128>,
    looks: u64,
}

impl<'a> Search<'a> {
    fn new(graph: &'a PhasedGraph, anchors: &[u32], pes: &'a [u32], topology: &'a dyn Topology) -> Self {
        let mut place = vec![NONE; graph.tasks];
        place.extend(anchors);
        let mut edges_of = vec![Vec::new(); place.len()];
        for (&(a, b, _), edge) in graph.edges.iter().zip(0..) {
            edges_of[a as usize].push(edge);
            edges_of[b as usize].push(edge);
        }
        let (task_at, travel) = (vec![NONE; pes.len()], vec![0; graph.edges.len()]);
        Search { graph, pes, topology, place, task_at, edges_of, travel, looks: 0 }
    }

    fn score(&self) -> Score {
        let slowest =
            |phase: &Vec<u32>| phase.iter().map(|&edge| self.travel[edge as usize]).max().unwrap_or(0);
        (self.graph.phases.iter().map(slowest).sum(), self.travel.iter().sum())
    }

    fn measure(&mut self, task: u32) {
        for &edge in &self.edges_of[task as usize] {
            let (a, b, weight) = self.graph.edges[edge as usize];
            let (from, to) = (self.place[a as usize], self.place[b as usize]);
            let distance = if from == NONE || to == NONE {
                0
            } else {
                self.topology.distance(from as usize, to as usize)
            };
            self.travel[edge as usize] = u128::from(weight) * u128::from(distance);
        }
    }

    /// The other end of each edge of a task, and its weight.
    fn others(&self, task: usize) -> impl Iterator<Item = (usize, u128)> + '_ {
        self.edges_of[task].iter().map(move |&edge| {
            let (a, b, weight) = self.graph.edges[edge as usize];
            (if a as usize == task { b } else { a } as usize, u128::from(weight))
        })
    }

    /// The first mapping: task after task where that costs least.
    fn greedy(&mut self) {
        let tasks = self.graph.tasks;
        let volume = |task| self.others(task).map(|it| it.1).sum();
        let volumes: Vec<u128> = (0..tasks).map(volume).collect();
        let anchored = |task| self.others(task).filter(|it| it.0 >= tasks).map(|it| it.1).sum();
        let mut placed: Vec<u128> = (0..tasks).map(anchored).collect();
        let mut first = None;
        if tasks > 0 && placed.iter().all(|&it| it == 0) {
            let is_beside = |a: u32, b: u32| self.topology.distance(a as usize, b as usize) == 1;
            let degree = |&at: &usize| self.pes.iter().filter(|&&pe| is_beside(self.pes[at], pe)).count();
            first = (0..self.pes.len()).min_by_key(|at| std::cmp::Reverse(degree(at)));
        }
        let mut row = vec![0; self.topology.pes()];
        for _ in 0..tasks {
            let free = (0..tasks).rev().filter(|&task| self.place[task] == NONE);
            let Some(task) = free.max_by_key(|&task| (placed[task], volumes[task])) else { break };
            let at = first.take().unwrap_or_else(|| self.nearest(task, &mut row));
            (self.place[task], self.task_at[at]) = (self.pes[at], task as u32);
            for (end, weight) in self.others(task).filter(|it| it.0 < tasks) {
                placed[end] += weight;
            }
        }
        (0..self.place.len() as u32).for_each(|task| self.measure(task));
    }

    /// The free entry of `pes` with the least sum of w d to the placed partners of a task.
    fn nearest(&self, task: usize, row: &mut [u32]) -> usize {
        let mut costs = vec![0u128; self.pes.len()];
        for (end, weight) in self.others(task).filter(|it| self.place[it.0] != NONE) {
            self.topology.distances_from(self.place[end] as usize, row);
            for (cost, &pe) in costs.iter_mut().zip(self.pes) {
                *cost += weight * u128::from(row[pe as usize]);
            }
        }
        let free = (0..self.pes.len()).filter(|&at| self.task_at[at] == NONE);
        free.min_by_key(|&at| costs[at]).expect("a PE is left for every task")
    }

    /// What two entries of `pes` have changes places.
    fn exchange(&mut self, a: usize, b: usize) {
        self.task_at.swap(a, b);
        for at in [a, b] {
            let task = self.task_at[at];
            if task != NONE {
                self.place[task as usize] = self.pes[at];
            }
        }
        for at in [a, b] {
            if self.task_at[at] != NONE {
                self.measure(self.task_at[at]);
            }
        }
    }

    /// Exchanges pairs until none is for the better.
    fn descend(&mut self) {
        let mut score = self.score();
        loop {
            let before = score;
            for (a, b) in (0..self.pes.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                if self.task_at[a] == NONE && self.task_at[b] == NONE {
                    continue;
                }
                self.looks += self.graph.edges.len() as u64 + 8;
                if self.looks > MAX_LOOKS {
                    return;
                }
                self.exchange(a, b);
                let then = self.score();
                if then < score {
                    score = then;
                } else {
                    self.exchange(a, b);
                }
            }
            if score == before {
                return;
            }
        }
    }
}

/// OF of a placement.
pub fn overhead(graph: &PhasedGraph, topology: &dyn Topology, placement: &[u32]) -> u128 {
    let distance =
        |a: u32, b: u32| topology.distance(placement[a as usize] as usize, placement[b as usize] as usize);
    let of = |edge: &u32| {
        let (a, b, weight) = graph.edges[*edge as usize];
        u128::from(weight) * u128::from(distance(a, b))
    };
    graph.phases.iter().map(|phase| phase.iter().map(of).max().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topology;

    /// The least OF of all placements of `tasks` on as many PEs.
    fn least(graph: &PhasedGraph, machine: &dyn Topology) -> u128 {
        fn all(left: &mut Vec<u32>, chosen: &mut Vec<u32>, visit: &mut dyn FnMut(&[u32])) {
            if left.is_empty() {
                return visit(chosen);
            }
            for at in 0..left.len() {
                let pe = left.remove(at);
                chosen.push(pe);
                all(left, chosen, visit);
                chosen.pop();
                left.insert(at, pe);
            }
        }
        let mut least = u128::MAX;
        let mut visit = |places: &[u32]| least = least.min(overhead(graph, machine, places));
        all(&mut (0..machine.pes() as u32).collect(), &mut Vec::new(), &mut visit);
        least
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn exchanges_with_jumps_find_the_best_of_all_placements_of_six_tasks(
            edges in prop::collection::vec((0..6u32, 0..6u32, 1..20u64, 0..2usize), 1..12),
        ) {
            let edges: Vec<_> = edges.into_iter().filter(|edge| edge.0 != edge.1).collect();
            let mut phases = vec![Vec::new(); 2];
            edges.iter().zip(0..).for_each(|(edge, number)| phases[edge.3].push(number));
            let edges = edges.into_iter().map(|(a, b, weight, _)| (a, b, weight)).collect();
            let graph = PhasedGraph { tasks: 6, edges, phases };
            let machine = topology::parse("mesh:3x2").expect("a mesh");
            let places = place(&graph, &[], &[0, 1, 2, 3, 4, 5], &*machine, 60, 1);
            let mut sorted = places.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, [0, 1, 2, 3, 4, 5]);
            prop_assert_eq!(overhead(&graph, &*machine, &places), least(&graph, &*machine));
        }
    }

    #[test]
    fn a_ring_lies_on_a_ring_and_anchors_attract() {
        let machine = topology::parse("torus:6").expect("a ring");
        let edges: Vec<_> = (0..6).map(|i| (i, (i + 1) % 6, 5)).collect();
        let graph = PhasedGraph { tasks: 6, phases: vec![(0..6).collect()], edges };
        let places = place(&graph, &[], &[0, 1, 2, 3, 4, 5], &*machine, 50, 0);
        assert_eq!(overhead(&graph, &*machine, &places), 5);
        let graph = PhasedGraph { tasks: 1, edges: vec![(0, 1, 3)], phases: vec![vec![0]] };
        assert_eq!(place(&graph, &[4], &[0, 2, 3], &*machine, 1, 0), [3]);
    }
}
