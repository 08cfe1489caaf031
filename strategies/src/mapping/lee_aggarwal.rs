//! `LeeAggarwalLB`: a greedy mapping, improved by pairwise exchanges with probabilistic jumps.
//!
//! S. Y. Lee, J. K. Aggarwal, "A mapping strategy for parallel processing", IEEE Transactions on Computers 36(4), 1987. De
//! Petris and Perego compare their mapper with it ([`super::de_petris_perego`]). The objective is the communication overhead
//! of the synchronous phases of a program, in each of which every task waits for the slowest message:
//!
//! OF = sum over phases of the largest w_e d_e of the phase's edges,
//!
//! where w_e is the number of flits of a message and d_e is its distance. Only the abstract and citations of the paper were
//! available, so the following steps are ours where these leave them open:
//!
//! - First the task that exchanges most goes to the PE with the most neighbors. Then, repeatedly, the task that exchanges
//!   most with placed tasks goes to the free PE where the sum of w_e d_e to these is least.
//! - Exchanges of the tasks of two PEs, free PEs included, are tried in the order of PE numbers. An exchange is kept if OF
//!   decreases, or if OF is equal and the sum of w_e d_e decreases. The search ends when no exchange is kept.
//! - A jump exchanges as many random pairs as an eighth of the PEs, and the search begins again. The best placement of all
//!   searches is kept. Ties go to the lowest number.
//!
//! In a database, all edges form one phase, and groups of objects are placed, one per PE.

use std::collections::BTreeSet;

use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, Params};
use equipoise_model::random::{below, generator};
use equipoise_model::{Assignment, Database, Topology};
use equipoise_network::program::Model;

use super::topolb::{Ties, best_of};
use super::{answer, hosts};
use crate::descriptor::Recipe;
use crate::partition::groups::{self, Grouping, Groups};
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `LeeAggarwalLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "LeeAggarwalLB",
    form: "",
    help: "Greedy, then exchanges of pairs with random jumps, for the slowest message of each phase (Lee, Aggarwal \
           1987). For comparison with ContentionLB.",
    params: &[
        groups::GROUPS,
        groups::SIZES,
        groups::IMBALANCE,
        Param {
            key: "jumps",
            default: "20",
            help: "number of times that the search is repeated after a random jump, 1 to 100000",
        },
    ],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            let grouping = Grouping::take(params)?;
            Ok(Box::new(LeeAggarwalLb { grouping, jumps: params.take_count("jumps", MAX_JUMPS)? }))
        },
    },
};

/// The maximum of `jumps`; values above are rejected.
const MAX_JUMPS: usize = 100_000;

/// The maximum number of edges read in exchanges; on large machines the search ends before all exchanges are tried.
const MAX_LOOKS: u64 = 50_000_000;

/// The maximum number of pairs of PEs whose distance is computed to find the PE with the most neighbors. On larger
/// machines, evenly spaced PEs are compared.
const MAX_PAIRS: usize = 1 << 24;

/// The mapper of Lee and Aggarwal.
#[derive(Clone, Copy, Debug)]
pub struct LeeAggarwalLb {
    /// How objects are grouped.
    pub grouping: Grouping,
    /// The number of times that the search is repeated after a random jump.
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
        Ok(answer(database, topology, &groups, self.grouping, available, &places))
    }

    /// Uses the phases of the program if no process is fixed and there is a PE for each.
    fn assign_program(
        &self,
        model: &Model,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let has_fixed = database.objects.iter().any(|object| !object.migratable);
        if has_fixed || model.tasks.len() > available.len() {
            return self.assign(database, topology, seed);
        }
        let pe_of = place(&PhasedGraph::of(model), &[], &available, topology, self.jumps, seed);
        Ok(Assignment::new(pe_of))
    }
}

/// The tasks to place, after them the anchors, which are fixed, and their edges in each phase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhasedGraph {
    /// The number of tasks.
    pub tasks: usize,
    /// By edge: two different tasks or anchors, and the weight of a message.
    pub edges: Vec<(u32, u32, u64)>,
    /// The edges of each phase.
    pub phases: Vec<Vec<u32>>,
}

impl PhasedGraph {
    /// The channels of a program in its phases, weighted by the flits of a message.
    pub fn of(model: &Model) -> Self {
        let edge = |it: &equipoise_network::program::Channel| {
            (it.from, it.to, (it.flit_ticks as u64).div_ceil(Model::TICKS as u64))
        };
        PhasedGraph {
            tasks: model.tasks.len(),
            edges: model.channels.iter().map(edge).collect(),
            phases: model.phases.clone(),
        }
    }
}

/// OF, and the sum of all w_e d_e.
type Score = (u128, u128);

/// The PE of every task: one of `pes`, with at most one task per PE. Anchor `i` is fixed on PE `anchors[i]`.
///
/// # Panics
/// If there are more tasks than PEs.
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
    let mut rng = generator(seed, 0x1987);
    search.greedy();
    search.descend();
    let (mut best, mut score) = (search.place.clone(), search.score());
    for _ in 0..jumps {
        if pes.len() < 3 || search.looks >= MAX_LOOKS {
            break;
        }
        for _ in 0..(pes.len() / 8).max(1) {
            let a = below(&mut rng, pes.len() as u64) as usize;
            let b = below(&mut rng, pes.len() as u64) as usize;
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
    /// The entries of `pes` with a task.
    occupied: BTreeSet<usize>,
    edges_of: Vec<Vec<u32>>,
    /// By edge: w d at the present places of both ends.
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
        let occupied = BTreeSet::new();
        Search { graph, pes, topology, place, task_at, occupied, edges_of, travel, looks: 0 }
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

    /// Makes the first mapping, which places one task at a time where the cost is least.
    fn greedy(&mut self) {
        let tasks = self.graph.tasks;
        let volume = |task| self.others(task).map(|it| it.1).sum();
        let volumes: Vec<u128> = (0..tasks).map(volume).collect();
        let anchored = |task| self.others(task).filter(|it| it.0 >= tasks).map(|it| it.1).sum();
        let mut placed: Vec<u128> = (0..tasks).map(anchored).collect();
        let mut first = None;
        if tasks > 0 && placed.iter().all(|&it| it == 0) {
            let is_neighbor = |a: u32, b: u32| self.topology.distance(a as usize, b as usize) == 1;
            let degree = |&at: &usize| self.pes.iter().filter(|&&pe| is_neighbor(self.pes[at], pe)).count();
            let step = self.pes.len().pow(2).div_ceil(MAX_PAIRS);
            first = (0..self.pes.len()).step_by(step).min_by_key(|at| std::cmp::Reverse(degree(at)));
        }
        let mut row = vec![0; self.topology.pes()];
        for _ in 0..tasks {
            let free = (0..tasks).rev().filter(|&task| self.place[task] == NONE);
            let Some(task) = free.max_by_key(|&task| (placed[task], volumes[task])) else { break };
            let at = first.take().unwrap_or_else(|| self.nearest(task, &mut row));
            (self.place[task], self.task_at[at]) = (self.pes[at], task as u32);
            self.occupied.insert(at);
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

    /// Exchanges the tasks of two entries of `pes`.
    fn exchange(&mut self, a: usize, b: usize) {
        self.task_at.swap(a, b);
        for at in [a, b] {
            let task = self.task_at[at];
            if task == NONE {
                self.occupied.remove(&at);
            } else {
                self.occupied.insert(at);
                self.place[task as usize] = self.pes[at];
            }
        }
        for at in [a, b] {
            if self.task_at[at] != NONE {
                self.measure(self.task_at[at]);
            }
        }
    }

    /// The first pair `b < a` of entries of `pes` from the given one on, in the order of `a`, then of `b`, of which at
    /// least one has a task.
    fn next_pair(&self, mut a: usize, mut b: usize) -> Option<(usize, usize)> {
        while a < self.pes.len() {
            let is_free = self.task_at[a] == NONE;
            let next = if is_free { self.occupied.range(b..).next().copied() } else { Some(b) };
            if let Some(next) = next.filter(|&next| next < a) {
                return Some((a, next));
            }
            (a, b) = (a + 1, 0);
        }
        None
    }

    /// Exchanges pairs until no exchange is an improvement.
    fn descend(&mut self) {
        let mut score = self.score();
        loop {
            let before = score;
            let mut pair = self.next_pair(1, 0);
            while let Some((a, b)) = pair {
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
                pair = self.next_pair(a, b + 1);
            }
            if score == before {
                return;
            }
        }
    }
}

/// The objective OF of a placement.
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

    use equipoise_model::topology;

    use super::*;

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
        fn exchanges_with_jumps_find_the_best_placement_of_six_tasks(
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
    fn a_ring_is_embedded_in_a_ring_and_anchors_attract() {
        let machine = topology::parse("torus:6").expect("a ring");
        let edges: Vec<_> = (0..6).map(|i| (i, (i + 1) % 6, 5)).collect();
        let graph = PhasedGraph { tasks: 6, phases: vec![(0..6).collect()], edges };
        let places = place(&graph, &[], &[0, 1, 2, 3, 4, 5], &*machine, 50, 0);
        assert_eq!(overhead(&graph, &*machine, &places), 5);
        let graph = PhasedGraph { tasks: 1, edges: vec![(0, 1, 3)], phases: vec![vec![0]] };
        assert_eq!(place(&graph, &[4], &[0, 2, 3], &*machine, 1, 0), [3]);
    }
}
