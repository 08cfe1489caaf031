//! `TopoCentLB`: places the group that exchanges most with placed groups close to them.
//!
//! T. Agarwal, A. Sharma, L. V. Kalé, "Topology-aware task mapping for reducing communication
//! contention on large parallel machines", IPDPS 2006, section 4.4: the first group is the one that
//! exchanges most bytes, on the first PE (unless non-migratable objects exchange bytes with a group).
//! Then, repeatedly, the group that exchanges most bytes with placed groups goes to the free PE with
//! the fewest hop-bytes to them (the first order of TopoLB's estimate). Ties go to the lowest group and
//! the lowest PE. If no group without a place exchanges bytes with a placed one, the lowest is next.
//!
//! The heap's keys only grow. Instead of updating an entry, the algorithm pushes a new one. Entries with an outdated
//! key are discarded when they reach the top: O(|E| log |E|) in all, against O(p |E|) for the costs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use equipoise_model::graph::Graph;
use equipoise_model::params::Params;
use equipoise_model::{Assignment, Database, Topology};

use super::topolb::{MAX_RESTARTS, RESTARTS, TIES, Ties, best_of};
use super::{answer, hosts};
use crate::descriptor::Recipe;
use crate::partition::groups::{self, Grouping, Groups};
use crate::placement::volumes::Volumes;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `TopoCentLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "TopoCentLB",
    form: "",
    help: "Groups objects, then repeatedly places the group that exchanges most with placed groups close to them \
           (Agarwal, Sharma, Kalé 2006). Faster than TopoLB and needs less memory, but gives more hop-bytes.",
    params: &[groups::GROUPS, groups::SIZES, groups::IMBALANCE, TIES, RESTARTS],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            let grouping = Grouping::take(params)?;
            let restarts = params.take_count("restarts", MAX_RESTARTS)?;
            Ok(Box::new(TopoCentLb { grouping, ties: params.take("ties")?, restarts }))
        },
    },
};

/// The strategy `TopoCentLB`.
#[derive(Clone, Copy, Debug)]
pub struct TopoCentLb {
    /// How objects are grouped.
    pub grouping: Grouping,
    /// The tie-breaking rule.
    pub ties: Ties,
    /// The number of mappings made; all but the first break ties at random.
    pub restarts: usize,
}

impl Strategy for TopoCentLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let groups = Groups::of(database, &available, self.grouping, seed)?;
        let hosts = hosts(database, &available, groups.count, self.grouping.by);
        let place = |graph: &Graph, pes: &[u32]| Ok(place(graph, &groups.anchors, pes, topology));
        let places = best_of(&groups, &hosts, topology, (self.ties, self.restarts), seed, place)?;
        Ok(answer(database, topology, &groups, self.grouping, available, &places))
    }
}

/// The PE of every task: one of `pes`, with at most one task per PE.
///
/// The vertices of `graph` are the tasks and, after them, the anchors. Anchor `i` is fixed on PE `anchors[i]`.
///
/// # Panics
/// If there are more tasks than PEs.
pub fn place(graph: &Graph, anchors: &[u32], pes: &[u32], topology: &dyn Topology) -> Vec<u32> {
    const NOWHERE: u32 = u32::MAX;
    let tasks = graph.vertices() - anchors.len();
    assert!(tasks <= pes.len(), "every task has a PE of its own");
    let volumes = Volumes::within(graph, 1, || topology.diameter());
    let mut place_of = vec![NOWHERE; tasks];
    place_of.extend(anchors);
    // The bytes that each task exchanges with placed tasks; `u128` because there may be many anchors.
    let mut keys = vec![0u128; tasks];
    let mut heap: BinaryHeap<(u128, Reverse<u32>)> = (0..tasks as u32).map(|t| (0, Reverse(t))).collect();
    let raise_keys = |vertex: usize, keys: &mut [u128], heap: &mut BinaryHeap<_>, place_of: &[u32]| {
        for (neighbor, bytes) in graph.neighbors(vertex) {
            if neighbor < tasks && place_of[neighbor] == NOWHERE {
                keys[neighbor] += u128::from(bytes);
                heap.push((keys[neighbor], Reverse(neighbor as u32)));
            }
        }
    };
    for vertex in tasks..graph.vertices() {
        raise_keys(vertex, &mut keys, &mut heap, &place_of);
    }
    if keys.iter().all(|&key| key == 0) {
        // No group exchanges bytes with an anchor, so the group that exchanges most is first.
        let heaviest = (0..tasks).max_by_key(|&task| (graph.weight(task), Reverse(task)));
        if let Some(task) = heaviest.filter(|&task| graph.weight(task) > 0) {
            keys[task] = 1;
            heap.push((1, Reverse(task as u32)));
        }
    }
    let mut free = pes.to_vec();
    let mut costs = vec![0i64; pes.len()];
    let mut row = vec![0u32; topology.pes()];
    while let Some((key, Reverse(task))) = heap.pop() {
        let task = task as usize;
        if place_of[task] != NOWHERE || key != keys[task] {
            continue;
        }
        let costs = &mut costs[..free.len()];
        costs.fill(0);
        for (neighbor, bytes) in graph.neighbors(task).filter(|&(neighbor, _)| place_of[neighbor] != NOWHERE)
        {
            let volume = volumes.of(bytes);
            topology.distances_from(place_of[neighbor] as usize, &mut row);
            for (cost, &pe) in costs.iter_mut().zip(&free) {
                *cost += volume * i64::from(row[pe as usize]);
            }
        }
        let (at, _) =
            costs.iter().enumerate().min_by_key(|&(_, cost)| cost).expect("a PE is left for every task");
        place_of[task] = free.remove(at);
        raise_keys(task, &mut keys, &mut heap, &place_of);
    }
    place_of.truncate(tasks);
    place_of
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::graph::load;
    use equipoise_model::topology;

    use super::*;
    use crate::testing::{assign_on, communication};

    fn hops_per_byte(spec: &str, graph: &str, machine: &str) -> f64 {
        let topology = topology::parse(machine).expect("a machine");
        let database = load(graph).expect("a task graph").remap(topology.pes() as u32);
        let answer = assign_on(spec, &database, machine).expect("an assignment");
        communication(&database, &*topology, &answer.pe_of).hops_per_byte
    }

    #[test]
    fn hops_per_byte_equal_those_of_an_independent_implementation() {
        let table = include_str!("../../tests/data/hops_per_byte_ref.csv");
        let mut rows = 0;
        for line in table.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let (tasks, pes, kind, expected) = (cells[1], cells[2], cells[3], cells[9]);
            let found = hops_per_byte("TopoCentLB", &format!("mesh:{tasks}"), &format!("{kind}:{pes}"));
            let expected: f64 = expected.parse().expect("a number");
            assert!((found - expected).abs() <= 6e-5, "{line}: {found}");
            rows += 1;
        }
        assert!(rows > 18, "the table has {rows} rows");
    }

    /// The algorithm without a heap: it computes all keys and costs at every step.
    fn slow(graph: &Graph, anchors: &[u32], pes: &[u32], topology: &dyn Topology) -> Vec<u32> {
        let tasks = graph.vertices() - anchors.len();
        let mut place_of: Vec<Option<u32>> = vec![None; tasks];
        place_of.extend(anchors.iter().map(|&pe| Some(pe)));
        let mut free = pes.to_vec();
        for step in 0..tasks {
            let key = |t: usize| -> u128 {
                let placed = graph.neighbors(t).filter(|&(j, _)| place_of[j].is_some());
                placed.map(|(_, bytes)| u128::from(bytes)).sum()
            };
            let waiting = || (0..tasks).filter(|&t| place_of[t].is_none());
            let is_first = step == 0 && waiting().all(|t| key(t) == 0);
            let key = |t: usize| if is_first { u128::from(graph.weight(t)) } else { key(t) };
            let task = waiting().max_by_key(|&t| (key(t), Reverse(t))).expect("a task is left");
            let cost = |p: u32| -> u128 {
                let hops = |q: u32| topology.distance(p as usize, q as usize);
                let of =
                    |(j, bytes): (usize, u64)| place_of[j].map(|q| u128::from(bytes) * u128::from(hops(q)));
                graph.neighbors(task).filter_map(of).sum()
            };
            let at = (0..free.len()).min_by_key(|&at| cost(free[at])).expect("a PE is free");
            place_of[task] = Some(free.remove(at));
        }
        place_of[..tasks].iter().map(|place| place.expect("all are placed")).collect()
    }

    proptest! {
        #[test]
        fn the_heap_gives_the_same_placement_as_the_direct_algorithm(
            machine in prop::sample::select(vec!["torus:4x3", "mesh:5x3", "tree:2:3:2/9:4:1", "flat:7", "flat:1"]),
            edges in prop::collection::vec((0..14u32, 0..14u32, 0..4u64), 0..40),
            anchors in prop::collection::vec(0..64u32, 0..3),
            unit in prop::sample::select(vec![1u64, 1000, 1 << 33]),
        ) {
            let machine = topology::parse(machine).expect("a machine");
            let pes: Vec<u32> = (0..machine.pes() as u32).collect();
            let anchors: Vec<u32> = anchors.into_iter().map(|pe| pe % pes.len() as u32).collect();
            let tasks = pes.len().min(14 - anchors.len());
            let vertices = (tasks + anchors.len()) as u32;
            let edges = edges.into_iter().map(|(a, b, w)| (a % vertices, b % vertices, w * unit));
            let graph = Graph::new(vertices as usize, edges);
            prop_assert_eq!(place(&graph, &anchors, &pes, &*machine), slow(&graph, &anchors, &pes, &*machine));
        }
    }

    #[test]
    fn an_anchor_without_edges_changes_nothing() {
        let machine = topology::parse("mesh:4").expect("a mesh");
        let edges = [(0, 1, 1), (1, 2, 5), (2, 3, 4)];
        let without = place(&Graph::new(4, edges), &[], &[0, 1, 2, 3], &*machine);
        assert_eq!(place(&Graph::new(5, edges), &[3], &[0, 1, 2, 3], &*machine), without);
    }

    #[test]
    fn more_restarts_never_increase_hops_per_byte() {
        for (graph, machine) in [("mesh:8x8", "torus:8x8"), ("random:n=64,degree=5", "torus:4x4x4")] {
            let once = hops_per_byte("TopoCentLB", graph, machine);
            let often = hops_per_byte("TopoCentLB:restarts=8", graph, machine);
            assert!(often <= once, "{graph} on {machine}: {often} after {once}");
        }
    }
}
