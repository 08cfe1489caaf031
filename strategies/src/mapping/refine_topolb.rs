//! `RefineTopoLB`: swaps groups if that saves hop-bytes.
//!
//! T. Agarwal, A. Sharma, L. V. Kalé, "Topology-aware task mapping for reducing communication contention on large
//! parallel machines", IPDPS 2006, section 5.2.3, which refers to the strategy of that name in Charm++ (6.10). There is
//! one round per PE. A round selects the group with the most hop-bytes that was not selected before. It is swapped with
//! the other group for which this saves most hop-bytes, if it saves any. A PE without objects counts as a group, so a
//! group can also move to it. Ties go to the lowest numbers. Hop-bytes never increase, and no PE gets heavier than the
//! heaviest PE was before: where PEs differ in speed, background load or non-migratable objects, such swaps are not
//! made.
//!
//! Swapping groups `a` and `b` on PEs `p` and `q` saves
//!
//! ```text
//! cost(a, p) - cost(a, q) + cost(b, q) - cost(b, p) - 2 c(a, b) d(p, q)
//! ```
//!
//! where `cost(t, x)` are the hop-bytes of `t` on `x` with all other groups in place. The last term corrects for the
//! edge between `a` and `b`, whose distance does not change. `cost(a, .)` needs a row of distances per neighbor of `a`,
//! `cost(b, q)` is stored, and `cost(b, p)` needs one distance per neighbor of `b` from the row of `p`: O(p deg(a) +
//! |E|) per round and O(p |E|) in all, compared to O(p^3) and more in Charm++. Empty PEs have no hop-bytes, so their
//! rounds are the last.

use equipoise_model::graph::Graph;
use equipoise_model::params::Params;
use equipoise_model::{Assignment, Database, Topology};

use super::hop_bytes;
use crate::balance::load::Work;
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::groups::{By, Grouping, Groups};
use crate::placement::volumes::Volumes;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `RefineTopoLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "RefineTopoLB",
    form: "",
    help: "Swaps all objects of one PE with those of another if that saves hop-bytes (Agarwal, Sharma, Kalé 2006); \
           never raises the maximum load. After another strategy, as in GreedyRefineLB+RefineTopoLB.",
    params: &[],
    item: Recipe { needs_communication: true, make: |_: &mut Params| Ok(Box::new(OnPart(RefineTopoLb))) },
};

/// The strategy `RefineTopoLB`.
#[derive(Clone, Copy, Debug)]
pub struct RefineTopoLb;

impl Strategy for RefineTopoLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let kept = Grouping { by: By::Keep, equal: false, imbalance: 0.0 };
        let groups = Groups::of(database, &available, kept, seed)?;
        let mut places = present(database, &groups, &available);
        let loads_seconds = groups.loads_seconds(database);
        let work = Work::new(database, available);
        // The load of a PE with a group; a group past the last is empty.
        let seconds = |group: usize, pe: u32| {
            let load_seconds = loads_seconds.get(group).copied().unwrap_or(0.0);
            work.fixed_seconds[pe as usize] + load_seconds / work.speed(pe)
        };
        let empty = work.fixed_seconds.iter().zip(&database.pes).filter(|(_, pe)| pe.available);
        let most = empty.map(|(&seconds, _)| seconds).fold(0.0, f64::max);
        let limit_seconds = (0..).zip(&places).map(|(group, &pe)| seconds(group, pe)).fold(most, f64::max);
        let fits = |group: usize, pe: u32| seconds(group, pe) <= limit_seconds;
        refine(&groups.graph, &groups.anchors, &work.available, topology, &fits, &mut places);
        Ok(Assignment::new(groups.placement(database, &places)))
    }
}

/// The present PE of each group, or, if that PE is not available, the lowest free one.
fn present(database: &Database, groups: &Groups, available: &[u32]) -> Vec<u32> {
    let mut places = vec![None; groups.count];
    let mut is_free: Vec<bool> = database.pes.iter().map(|pe| pe.available).collect();
    for (group, object) in groups.group_of.iter().zip(&database.objects) {
        if let Some(group) = group
            && database.pes[object.pe as usize].available
        {
            places[*group as usize] = Some(object.pe);
            is_free[object.pe as usize] = false;
        }
    }
    let mut free = available.iter().copied().filter(|&pe| is_free[pe as usize]);
    let place =
        |place: Option<u32>| place.or_else(|| free.next()).expect("there are at most as many groups as PEs");
    places.into_iter().map(place).collect()
}

/// Whether a task may be on a PE; tasks past the last are empty tasks, which stand for free PEs.
type Fits<'a> = &'a dyn Fn(usize, u32) -> bool;

/// Swaps the places of tasks, and of empty tasks on free PEs, if that saves hop-bytes and both `fits`: one round per PE.
///
/// The vertices of `graph` are the tasks and, after them, the anchors. Anchor `i` is fixed on PE `anchors[i]`.
///
/// # Panics
/// If two tasks have the same place, or a place is not among `pes`.
fn refine(
    graph: &Graph,
    anchors: &[u32],
    pes: &[u32],
    topology: &dyn Topology,
    fits: Fits,
    places: &mut Vec<u32>,
) {
    let tasks = places.len();
    // Free PEs are empty tasks, which exchange nothing.
    let mut is_free = vec![false; topology.pes()];
    pes.iter().for_each(|&pe| is_free[pe as usize] = true);
    for &pe in places.iter() {
        assert!(std::mem::take(&mut is_free[pe as usize]), "every task has a PE of its own");
    }
    let before = places.clone();
    places.extend(pes.iter().copied().filter(|&pe| is_free[pe as usize]));
    // A gain is the sum of four costs.
    let volumes = Volumes::within(graph, 4, || topology.diameter());
    let mut state = State::new(graph, anchors, tasks, topology, &volumes, fits, places);
    let mut is_done = vec![false; tasks];
    for _ in 0..tasks {
        let waiting = (0..tasks).filter(|&task| !is_done[task]);
        let Some(selected) = waiting.max_by_key(|&task| (state.costs[task], std::cmp::Reverse(task))) else {
            break;
        };
        is_done[selected] = true;
        if let Some(partner) = state.best_partner(selected) {
            state.swap(selected, partner);
        }
    }
    for free in tasks..state.places.len() {
        if let Some(partner) = state.best_to_move(free) {
            state.swap(partner, free);
        }
    }
    places.truncate(tasks);
    // If volumes are rounded, an apparent gain may be a loss.
    let cost = |places: &[u32]| hop_bytes(graph, anchors, places, topology);
    if !volumes.is_exact() && cost(places) > cost(&before) {
        *places = before;
    }
}

/// The neighbors of a task with the volumes exchanged.
fn neighbors<'a>(
    graph: &'a Graph,
    volumes: &'a [i64],
    task: usize,
) -> impl Iterator<Item = (usize, i64)> + use<'a> {
    let (offsets, targets, _) = graph.rows();
    let range = offsets[task]..offsets[task + 1];
    let targets = targets[range.clone()].iter().map(|&target| target as usize);
    targets.zip(volumes[range].iter().copied())
}

struct State<'a> {
    graph: &'a Graph,
    tasks: usize,
    topology: &'a dyn Topology,
    fits: Fits<'a>,
    /// The volume of every entry of the graph's rows, computed once because division is slow.
    volumes: Vec<i64>,
    /// The PE of every task, then the free PEs.
    places: &'a mut Vec<u32>,
    /// The PE of every vertex.
    place_of: Vec<u32>,
    /// The cost of every task at its present place.
    costs: Vec<i64>,
    /// The cost of the selected task on every PE.
    elsewhere: Vec<i64>,
    row: Vec<u32>,
    /// The distance from a free PE to every vertex.
    near: Vec<u32>,
}

impl<'a> State<'a> {
    fn new(
        graph: &'a Graph,
        anchors: &'a [u32],
        tasks: usize,
        topology: &'a dyn Topology,
        volumes: &Volumes,
        fits: Fits<'a>,
        places: &'a mut Vec<u32>,
    ) -> Self {
        let mut state = State {
            graph,
            tasks,
            topology,
            fits,
            volumes: graph.rows().2.iter().map(|&bytes| volumes.of(bytes)).collect(),
            place_of: places[..tasks].iter().chain(anchors).copied().collect(),
            places,
            costs: vec![0; tasks],
            elsewhere: vec![0; topology.pes()],
            row: vec![0; topology.pes()],
            near: vec![0; graph.vertices()],
        };
        for task in 0..tasks {
            state.costs[task] = state.cost(task);
        }
        state
    }

    /// The cost of a task at its present place.
    fn cost(&self, task: usize) -> i64 {
        let here = self.places[task] as usize;
        let distance = |other: usize| i64::from(self.topology.distance(here, self.place_of[other] as usize));
        neighbors(self.graph, &self.volumes, task).map(|(other, volume)| volume * distance(other)).sum()
    }

    /// The task whose swap with `selected` saves most; `None` if no swap saves anything.
    fn best_partner(&mut self, selected: usize) -> Option<usize> {
        let mut elsewhere = std::mem::take(&mut self.elsewhere);
        let mut row = std::mem::take(&mut self.row);
        elsewhere.fill(0);
        for (neighbor, volume) in neighbors(self.graph, &self.volumes, selected) {
            self.topology.distances_from(self.place_of[neighbor] as usize, &mut row);
            for (cost, &distance) in elsewhere.iter_mut().zip(&row) {
                *cost += volume * i64::from(distance);
            }
        }
        self.topology.distances_from(self.places[selected] as usize, &mut row);
        let (leaving, here) = (self.costs[selected], self.places[selected]);
        let mut best: Option<(i64, usize)> = None;
        for (partner, &there) in self.places.iter().enumerate() {
            let most = best.map_or(0, |(most, _)| most);
            let mut gain = leaving - elsewhere[there as usize];
            if partner < self.tasks {
                gain += self.costs[partner];
                // A swap saves at most the present cost of the partner.
                if partner == selected || gain <= most {
                    continue;
                }
                for (neighbor, volume) in neighbors(self.graph, &self.volumes, partner) {
                    gain -= if neighbor == selected {
                        2 * volume * i64::from(row[there as usize])
                    } else {
                        volume * i64::from(row[self.place_of[neighbor] as usize])
                    };
                }
            }
            // `fits` is checked last, because few partners are better than the best so far.
            if gain > most && (self.fits)(selected, there) && (self.fits)(partner, here) {
                best = Some((gain, partner));
            }
        }
        (self.elsewhere, self.row) = (elsewhere, row);
        best.map(|(_, partner)| partner)
    }

    /// The task whose move to the PE of `free` saves most; `None` if no move saves anything.
    fn best_to_move(&mut self, free: usize) -> Option<usize> {
        let here = self.places[free];
        self.topology.distances_to(here as usize, &self.place_of, &mut self.near);
        let may = |&task: &usize| (self.fits)(task, here) && (self.fits)(free, self.places[task]);
        let gain = |task: usize| {
            let cost = |(other, volume): (usize, i64)| volume * i64::from(self.near[other]);
            self.costs[task] - neighbors(self.graph, &self.volumes, task).map(cost).sum::<i64>()
        };
        let gains = (0..self.tasks).filter(may).map(|task| (gain(task), std::cmp::Reverse(task)));
        gains.max().filter(|&(gain, _)| gain > 0).map(|(_, std::cmp::Reverse(task))| task)
    }

    fn swap(&mut self, a: usize, b: usize) {
        let (p, q) = (self.places[a], self.places[b]);
        self.places.swap(a, b);
        let moved = [(a, p, q), (b, q, p)];
        for &(task, ..) in moved.iter().filter(|(task, ..)| *task < self.tasks) {
            self.place_of[task] = self.places[task];
        }
        for (task, from, to) in moved.into_iter().filter(|(task, ..)| *task < self.tasks) {
            self.costs[task] = self.cost(task);
            // The distance to each neighbor changes, except that between the two swapped tasks.
            for (neighbor, volume) in neighbors(self.graph, &self.volumes, task) {
                if neighbor < self.tasks && neighbor != a && neighbor != b {
                    let there = self.places[neighbor] as usize;
                    let distance = |pe: u32| i64::from(self.topology.distance(pe as usize, there));
                    self.costs[neighbor] += volume * (distance(to) - distance(from));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::database::{Edge, End};
    use equipoise_model::graph::load;
    use equipoise_model::topology;

    use super::*;
    use crate::cost::Metrics;
    use crate::mapping::hop_bytes;
    use crate::testing::{assign_on, database};

    /// The same algorithm, which computes all hop-bytes again for each possible swap.
    fn slow(
        graph: &Graph,
        anchors: &[u32],
        pes: &[u32],
        topology: &dyn Topology,
        fits: Fits,
        places: &mut [u32],
    ) {
        let own = |task: usize, places: &[u32]| -> u128 {
            let place =
                |v: usize| places.get(v).copied().unwrap_or_else(|| anchors[v - places.len()]) as usize;
            let cost = |(v, bytes): (usize, u64)| {
                u128::from(bytes) * u128::from(topology.distance(place(task), place(v)))
            };
            graph.neighbors(task).map(cost).sum()
        };
        // The places of tasks, then the free PEs.
        let tasks = places.len();
        let mut all = places.to_vec();
        all.extend(pes.iter().filter(|pe| !places.contains(pe)));
        let mut is_done = vec![false; all.len()];
        for _ in 0..all.len() {
            let waiting = (0..all.len()).filter(|&task| !is_done[task]);
            let cost = |task: usize| if task < tasks { own(task, &all[..tasks]) } else { 0 };
            let selected = waiting.max_by_key(|&task| (cost(task), std::cmp::Reverse(task)));
            let selected = selected.expect("one waits");
            is_done[selected] = true;
            let swapped = |partner: usize| {
                let mut swapped = all.clone();
                swapped.swap(selected, partner);
                swapped
            };
            let cost = |all: &[u32]| hop_bytes(graph, anchors, &all[..tasks], topology);
            let fitting =
                (0..all.len()).map(swapped).filter(|swapped| (0..).zip(swapped).all(|(t, &pe)| fits(t, pe)));
            let best = fitting.min_by_key(|swapped| cost(swapped));
            if let Some(best) = best.filter(|best| cost(best) < cost(&all)) {
                all = best;
            }
        }
        places.copy_from_slice(&all[..tasks]);
    }

    proptest! {
        #[test]
        fn swaps_equal_those_of_the_slow_algorithm_and_hop_bytes_never_increase(
            machine in prop::sample::select(vec!["torus:4x3", "mesh:5x3", "tree:2:3:2/9:4:1", "flat:7", "flat:1"]),
            edges in prop::collection::vec((0..14u32, 0..14u32, 0..4u64), 0..40),
            anchors in prop::collection::vec(0..64u32, 0..3),
            count in 1..15usize,
            unit in prop::sample::select(vec![1u64, 1000, 1 << 33]),
            forbidden in prop::collection::vec((0..15usize, 0..15u32), 0..24),
        ) {
            let machine = topology::parse(machine).expect("a machine");
            let pes: Vec<u32> = (0..machine.pes() as u32).collect();
            let anchors: Vec<u32> = anchors.into_iter().map(|pe| pe % pes.len() as u32).collect();
            let tasks = pes.len().min(count);
            let vertices = (tasks + anchors.len()) as u32;
            let edges = edges.into_iter().map(|(a, b, w)| (a % vertices, b % vertices, w * unit));
            let graph = Graph::new(vertices as usize, edges);
            let before: Vec<u32> = (0..tasks as u32).rev().collect();
            let (mut fast, mut expected) = (before.clone(), before.clone());
            // A task fits its present place, and an empty task fits a free PE.
            let fits = |task: usize, pe: u32| match before.get(task) {
                Some(&home) => home == pe || !forbidden.contains(&(task, pe)),
                None => !before.contains(&pe) || !forbidden.contains(&(14, pe)),
            };
            let fits: Fits = if unit == 1 { &|_, _| true } else { &fits };
            refine(&graph, &anchors, &pes, &*machine, fits, &mut fast);
            slow(&graph, &anchors, &pes, &*machine, fits, &mut expected);
            let cost = |places: &[u32]| hop_bytes(&graph, &anchors, places, &*machine);
            prop_assert!(cost(&fast) <= cost(&before));
            prop_assert_eq!(fast, expected);
        }
    }

    #[test]
    fn after_greedylb_it_saves_hop_bytes_at_equal_balance() {
        let machine = topology::parse("torus:8x8").expect("a torus");
        let mut database = load("mesh:32x32").expect("a mesh").remap(64);
        for (object, n) in database.objects.iter_mut().zip(0..) {
            object.load_seconds = 1.0 + f64::from(n % 7);
        }
        let metrics = |spec| {
            let answer = assign_on(spec, &database, "torus:8x8").expect("an assignment");
            Metrics::of(&database, &*machine, &answer.pe_of)
        };
        let (greedy, refined) = (metrics("GreedyLB"), metrics("GreedyLB+RefineTopoLB"));
        assert_eq!(greedy.imbalance, refined.imbalance);
        let [refined, greedy] = [refined, greedy].map(|of| of.communication.expect("edges").hop_bytes);
        assert!(refined < greedy, "{refined} {greedy}");
    }

    #[test]
    fn a_task_moves_to_a_free_pe_in_the_round_of_that_pe() {
        let machine = topology::parse("mesh:7").expect("a mesh");
        let graph = Graph::new(4, [(1, 0, 9), (2, 0, 3), (2, 1, 1), (3, 2, 6)]);
        let mut places = vec![5, 6, 2, 0];
        refine(&graph, &[], &[0, 1, 2, 3, 4, 5, 6], &*machine, &|_, _| true, &mut places);
        assert_eq!(hop_bytes(&graph, &[], &places, &*machine), 24);
    }

    #[test]
    fn objects_that_communicate_with_a_pe_stay_near_it() {
        let mut database = database(4, &[(1.0, 0), (1.0, 3)]);
        let edge = |to, bytes| Edge { from: End::Object(0), to, messages: 1, bytes };
        database.edges = vec![edge(End::Pe(0), 100), edge(End::Object(1), 1)];
        let answer = assign_on("RefineTopoLB", &database, "mesh:4").expect("an assignment");
        assert_eq!(answer.pe_of, [0, 1]);
    }

    #[test]
    fn the_heaviest_pe_gets_no_heavier() {
        // Two light and two heavy objects; light ones communicate with heavy ones.
        let mut database = database(4, &[(10.0, 0), (10.0, 1), (1.0, 2), (1.0, 3)]);
        let edge = |a, b| Edge { from: End::Object(a), to: End::Object(b), messages: 1, bytes: 1 };
        database.edges = vec![edge(0, 3), edge(1, 2), edge(0, 2)];
        let moved = |database: &Database| {
            let answer = assign_on("RefineTopoLB", database, "mesh:4").expect("an assignment");
            let max = database.pe_loads(&answer.pe_of).into_iter().fold(0.0, f64::max);
            (answer.moves(database).count() > 0, max)
        };
        assert_eq!(moved(&database), (true, 10.0));
        database.pes[2].background_seconds = 9.0;
        database.pes[3].background_seconds = 9.0;
        let (_, max) = moved(&database);
        assert_eq!(max, 10.0, "a heavy object on PE 2 would take 19 seconds");
        database.pes[0].speed = 2.0;
        assert_eq!(moved(&database).1, 10.0);
    }

    #[test]
    fn objects_of_an_unavailable_pe_go_to_a_free_one() {
        let mut database = database(3, &[(1.0, 0), (1.0, 1), (1.0, 1)]);
        database.pes[1].available = false;
        let answer = assign_on("RefineTopoLB", &database, "mesh:3").expect("an assignment");
        assert_eq!(answer.pe_of, [0, 2, 2]);
    }
}
