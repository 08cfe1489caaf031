//! Tests of several files together: refinement saves what it returns, and the limits of loads, moves and links hold on
//! machines of all kinds.

use equipoise_model::costs::{Costs, EndCosts};
use equipoise_model::database::{Edge, End};
use equipoise_model::random::generator;
use equipoise_model::{Database, graph, topology};
use proptest::prelude::*;

use super::board::Homes;
use super::bound::cost_bound;
use super::machine::Distances;
use super::machine::distance::with_metric;
use super::objective::{MAX_GAMMA, cost, measured_gamma};
use super::one_to_one::tabu;
use super::problem::Problem;
use super::refinement::repair::repair;
use super::refinement::state::State;
use super::refinement::{local, swaps};
use crate::cost::{LoadBound, Metrics, link_loads};
use crate::testing::{assign_on, communication, database, max_per_average, reference};

const SHAPE: Distances = Distances::OfShape { opens_rings: true };

fn edges(count: usize) -> impl Strategy<Value = Vec<(usize, usize, u32)>> {
    prop::collection::vec((any::<usize>(), any::<usize>(), 1..9u32), 0..count)
}

/// A database with these loads on PE `i * 7 % pes`, and these edges between its objects.
fn tasks(pes: usize, loads: &[f64], edges: &[(usize, usize, u32)]) -> Database {
    let objects: Vec<(f64, u32)> =
        loads.iter().zip(0..).map(|(&load, i)| (load, i * 7 % pes as u32)).collect();
    let mut tasks = database(pes, &objects);
    let end = |number: usize| End::Object((number % loads.len()) as u32);
    let edge = |&(a, b, bytes): &(usize, usize, u32)| Edge {
        from: end(a),
        to: end(b),
        messages: 1,
        bytes: bytes.into(),
    };
    tasks.edges = edges.iter().map(edge).collect();
    tasks
}

const MACHINES: &[&str] = &[
    "torus:4x3",
    "mesh:2x2x3",
    "hypercube:4",
    "tree:3:2:2/9:3:1",
    "fattree:4:3",
    "dragonfly:groups=3,routers=2,hosts=2",
    "torus:3x2*tree:2/1",
    "torus:5x5[random:11,seed=3]",
    "graph:random:n=12,degree=3",
    "flat:12",
];

proptest! {
    #[test]
    fn refinement_saves_what_it_returns_and_keeps_capacities(
        edges in edges(150),
        loads in prop::collection::vec(1..5u8, 12..60),
        number in 0..MACHINES.len(),
        leave in 0..40i64,
        seed in any::<u64>(),
    ) {
        let topology = topology::parse(MACHINES[number]).expect("a machine");
        let pes = topology.pes();
        let seconds: Vec<f64> = loads.iter().map(|&load| f64::from(load)).collect();
        let tasks = tasks(pes, &seconds, &edges);
        let problem = Problem::new(&tasks, &*topology, &(0..pes as u32).collect::<Vec<_>>(), 0.2, 0.0, SHAPE).expect("a problem");
        let migration_costs = vec![leave; problem.movable];
        let homes = Homes { home_of: &problem.home_of, migration_costs: &migration_costs };
        let layer = problem.machine.last();
        with_metric!(&layer.distance, metric => {
            let board = problem.board(metric, &problem.capacity, Some(homes), true);
            let mut block_of = problem.home_of.clone();
            let whole = |block_of: &[u32]| {
                let moved = block_of.iter().zip(&problem.home_of).filter(|(block, home)| block != home).count();
                cost(&problem.graph, metric, block_of) + leave * moved as i64
            };
            let mut rng = generator(seed, 0);
            let is_repaired = repair(&mut State::new(&board, &mut block_of), true);
            for step in 0..3 {
                let before = whole(&block_of);
                let mut state = State::new(&board, &mut block_of);
                let saved = match step {
                    0 => local::refine(&mut state, 2, 15, &mut rng),
                    1 => state.greedy(5, &mut rng),
                    _ => swaps::refine(&mut state, 5, &mut rng),
                };
                prop_assert!(saved >= 0);
                let fits = state.loads.iter().zip(&problem.capacity).all(|(load, capacity)| load <= capacity);
                prop_assert!(fits || !is_repaired);
                prop_assert_eq!(before - whole(&block_of), saved);
            }
            if is_repaired {
                prop_assert!(cost_bound(&problem, problem.most_load(&block_of)) <= cost(&problem.graph, metric, &block_of));
            }
        });
    }

    #[test]
    fn tabu_search_solves_small_problems_optimally(edges in edges(30), n in 2..6usize, seed in any::<u64>()) {
        let topology = topology::parse("mesh:3x2").expect("a mesh");
        let tasks = tasks(6, &vec![1.0; n], &edges);
        let problem = Problem::new(&tasks, &*topology, &[0, 1, 2, 3, 4, 5], 0.0, 0.0, SHAPE).expect("a problem");
        let distance = &problem.machine.last().distance;
        let start: Vec<u32> = (0..n as u32).collect();
        let found = tabu::search(&problem.graph, distance, &[0, 1, 2, 3, 4, 5], &start, 2000, &mut generator(seed, 0));
        let mut best = i64::MAX;
        permute(&mut Vec::new(), 6, n, &mut |places| best = best.min(cost(&problem.graph, distance, places)));
        prop_assert_eq!(cost(&problem.graph, distance, &found), best);
    }

    #[test]
    fn light_objects_keep_loads_below_the_limit(
        edges in edges(300),
        loads in prop::collection::vec(1..4u8, 150..250),
        number in 0..MACHINES.len(),
        gamma in prop::sample::select(vec!["0", "1", "0.1", "auto"]),
    ) {
        let topology = topology::parse(MACHINES[number]).expect("a machine");
        let seconds: Vec<f64> = loads.iter().map(|&load| f64::from(load)).collect();
        let tasks = tasks(topology.pes(), &seconds, &edges);
        let answer = assign_on(&format!("PoiseLB:imbalance=0.1,gamma={gamma}"), &tasks, MACHINES[number]);
        let placed = answer.expect("an answer").pe_of;
        // The average is rounded up to whole loads.
        let average = (tasks.load_seconds() / topology.pes() as f64).ceil() / (tasks.load_seconds() / topology.pes() as f64);
        prop_assert!(max_per_average(&tasks, &placed) <= 1.1 * average + 1e-9);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn handles_power_laws_huge_objects_pinned_objects_and_different_speeds(
        ends in prop::collection::vec((any::<u32>(), 1..100u32), 60..160),
        huge in 0..60usize,
        pinned in prop::collection::vec(0..60usize, 0..12),
        slow in 0..8usize,
        number in 0..MACHINES.len(),
        gamma in prop::sample::select(vec!["0", "1"]),
    ) {
        let topology = topology::parse(MACHINES[number]).expect("a machine");
        // The end of an edge is sampled with the cube of a uniform number, so that earlier vertices have more partners.
        let edge = |(from, &(sample, bytes)): (usize, &(u32, u32))| {
            let part = f64::from(sample) / f64::from(u32::MAX);
            (from, (part * part * part * from as f64) as usize, bytes)
        };
        let edges: Vec<(usize, usize, u32)> = ends.iter().enumerate().map(edge).collect();
        let mut loads = vec![1.0; ends.len()];
        loads[huge] = ends.len() as f64;
        let mut tasks = tasks(topology.pes(), &loads, &edges);
        pinned.iter().for_each(|&object| tasks.objects[object].migratable = false);
        tasks.pes[slow].speed = 0.5;
        let answer = assign_on(&format!("PoiseLB:imbalance=0.1,gamma={gamma}"), &tasks, MACHINES[number]);
        let placed = answer.expect("an answer").pe_of;
        for (object, &pe) in tasks.objects.iter().zip(&placed) {
            prop_assert!(object.migratable || object.pe == pe);
        }
        let most = Metrics::of(&tasks, &*topology, &placed).max_load_seconds;
        // The limit is exceeded by at most a load of 1, on the slow PE.
        let bound = 1.1 * LoadBound::of(&tasks).bound_seconds + 2.0;
        prop_assert!(most <= bound, "{} seconds, of {} allowed", most, bound);
    }
}

/// Calls `visit` with every placement of `n` objects on different ones of `places`.
fn permute(chosen: &mut Vec<u32>, places: u32, n: usize, visit: &mut impl FnMut(&[u32])) {
    if chosen.len() == n {
        return visit(chosen);
    }
    for place in 0..places {
        if !chosen.contains(&place) {
            chosen.push(place);
            permute(chosen, places, n, visit);
            chosen.pop();
        }
    }
}

/// Integer loads are rounded up; without load, to 1. Next to the heaviest object there is room for that.
#[test]
fn rounded_loads_do_not_separate_objects_that_fit_together() {
    let star: Vec<(usize, usize, u32)> = (1..10).map(|leaf| (leaf, 0, 1000)).collect();
    let mut weightless = tasks(4, &[4.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], &star[3..]);
    let before = [0, 1, 2, 3, 0, 0, 0, 0, 0, 0];
    weightless.objects.iter_mut().zip(before).for_each(|(object, pe)| object.pe = pe);
    let placed = |tasks: &Database| assign_on("PoiseLB", tasks, "flat:4").expect("an answer").pe_of;
    assert_eq!(placed(&weightless), before);
    // The same next to load that does not move.
    (weightless.objects[0].load_seconds, weightless.pes[0].background_seconds) = (1.0, 9.0);
    weightless.objects[0].migratable = false;
    assert_eq!(placed(&weightless), before);

    let parts = tasks(4, &[0.7, 0.2, 0.5], &[(1, 2, 1000)]);
    let answer = assign_on("PoiseLB:gamma=0", &parts, "flat:4").expect("an answer");
    assert_eq!(answer.pe_of[1], answer.pe_of[2]);
    assert_ne!(answer.pe_of[0], answer.pe_of[1]);
    assert!(answer.notes.iter().all(|note| note.name != "hop-bytes at least" || note.value == 0.0));
}

#[test]
fn gamma_controls_the_number_of_moves() {
    let tasks = tasks(16, &[1.0; 64], &(0..64).map(|i| (i, (i + 1) % 64, 8)).collect::<Vec<_>>());
    let moves = |gamma: &str| {
        let answer = assign_on(&format!("PoiseLB:gamma={gamma}"), &tasks, "torus:4x4").expect("an answer");
        let moves = answer.moves(&tasks).count();
        (
            moves,
            communication(&tasks, &*topology::parse("torus:4x4").expect("a torus"), &answer.pe_of).hop_bytes,
        )
    };
    let curve: Vec<(usize, u128)> = ["0", "0.2", "1", "1000"].into_iter().map(moves).collect();
    assert_eq!(curve[3].0, 0, "the loads are balanced");
    assert!(curve.windows(2).all(|pair| pair[0].0 >= pair[1].0 && pair[0].1 <= pair[1].1), "{curve:?}");
    assert!(curve[0].1 * 3 < curve[3].1, "{curve:?}");
}

#[test]
fn measured_costs_say_what_moves_cost() {
    let machine = topology::parse("flat:2").expect("a machine");
    let mut tasks = tasks(2, &[1.0, 1.0], &[(0, 1, 32)]);
    let gamma = |tasks: &Database| measured_gamma(tasks, &*machine);
    assert_eq!(gamma(&tasks), 0.0, "a task graph");
    tasks.pes.iter_mut().for_each(|pe| pe.wall_seconds = 6.0);
    tasks.objects.iter_mut().for_each(|object| object.bytes = Some(10));
    assert_eq!(gamma(&tasks), 1.0, "no costs");
    // PEs wait for half of 5 s, for 32 bytes. A move takes 1 s, and 0.5 s per byte.
    let migration = EndCosts { send_seconds: 1.0, receive_seconds_per_byte: 0.5, ..EndCosts::default() };
    tasks.costs = Some(Costs { migration, ..Costs::default() });
    let hop_byte_seconds = 2.5 * 2.0 / 32.0;
    assert!((gamma(&tasks) - (1.0 + (0.1 + 0.5) / hop_byte_seconds)).abs() < 1e-9);
    tasks.pes.iter_mut().for_each(|pe| pe.wall_seconds = 1.0);
    assert_eq!(gamma(&tasks), MAX_GAMMA, "no PE waits, so objects move for the loads only");
    tasks.costs = Some(Costs::default());
    assert_eq!(gamma(&tasks), 1.0, "moves take no time");
}

#[test]
fn a_huge_object_gets_its_own_pe() {
    // A hub with 300 leaves, one of them as heavy as all others together.
    let mut loads = vec![1.0; 301];
    loads[7] = 300.0;
    let star: Vec<(usize, usize, u32)> = (1..301).map(|leaf| (0, leaf, 1 + leaf as u32 % 5)).collect();
    let tasks = tasks(16, &loads, &star);
    for gamma in ["0", "1"] {
        let spec = format!("PoiseLB:gamma={gamma}");
        let placed = assign_on(&spec, &tasks, "tree:4:4/10:1").expect("an answer").pe_of;
        let heaviest = tasks.pe_loads(&placed).into_iter().fold(0.0, f64::max);
        assert!(heaviest <= 300.0, "{spec}: {heaviest}");
    }
}

/// A heavy object and three light ones on each PE have exactly the average load. Heavy ones leave PEs with two of them only if full PEs without
/// any give up light ones.
#[test]
fn heavy_objects_are_exchanged_with_light_ones_of_full_pes() {
    let mut tasks = graph::load("mesh:8x8,bytes=1000").expect("a mesh").remap(16);
    for (at, object) in tasks.objects.iter_mut().enumerate() {
        // The heavy ones are in one corner.
        object.load_seconds = if at % 8 < 4 && at / 8 < 4 { 4.0 } else { 1.0 };
    }
    for gamma in ["0", "1"] {
        let spec = format!("PoiseLB:gamma={gamma}");
        let placed = assign_on(&spec, &tasks, "torus:4x4").expect("an answer").pe_of;
        assert_eq!(tasks.pe_loads(&placed), [7.0; 16], "{spec}");
    }
    // On more PEs than are packed again together.
    let mut tasks = graph::load("mesh:16x16x16,bytes=1000").expect("a mesh").remap(1024);
    let mut order: Vec<usize> = (0..4096).collect();
    equipoise_model::random::shuffle(&mut generator(1, 0), &mut order);
    order[..1024].iter().for_each(|&heavy| tasks.objects[heavy].load_seconds = 4.0);
    let placed = assign_on("PoiseLB:gamma=0,quality=fast", &tasks, "torus:8x8x16").expect("an answer").pe_of;
    assert_eq!(max_per_average(&tasks, &placed), 1.0);
}

#[test]
fn pinned_objects_attract_others_and_occupy_capacity() {
    let mut tasks = tasks(4, &[1.0; 12], &(0..11).map(|i| (i, i + 1, 10)).collect::<Vec<_>>());
    for (object, pe) in [(0, 3), (11, 0)] {
        (tasks.objects[object].pe, tasks.objects[object].migratable) = (pe, false);
    }
    let placed = assign_on("PoiseLB:gamma=0,imbalance=0", &tasks, "mesh:4").expect("an answer").pe_of;
    assert_eq!(placed, [3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0]);
    tasks.pes[2].speed = 2.0;
    tasks.pes[1].available = false;
    let placed = assign_on("PoiseLB:gamma=0,imbalance=0", &tasks, "mesh:4").expect("an answer").pe_of;
    assert_eq!(placed, [3, 3, 3, 2, 2, 2, 2, 2, 2, 0, 0, 0]);
}

#[test]
fn links_on_reduces_the_busiest_link_for_few_hop_bytes() {
    let tasks = graph::load("kneighbor:96,7").expect("a ring").remap(12);
    let machine = topology::parse("mesh:4x3").expect("a mesh");
    let place = |links: &str| {
        let answer =
            assign_on(&format!("PoiseLB:gamma=0,links={links}"), &tasks, "mesh:4x3").expect("an answer");
        let most = link_loads(&tasks, &*machine, &answer.pe_of).into_iter().max();
        (most.expect("a mesh has links"), communication(&tasks, &*machine, &answer.pe_of).hop_bytes as f64)
    };
    let (off, on) = (place("off"), place("on"));
    assert!(on.0 <= off.0 && on.1 <= 1.01 * off.1, "{off:?} became {on:?}");
}

/// The links of one dimension need twice as long for a byte, so those with the most bytes are not the busiest ones.
#[test]
fn links_on_counts_bandwidths() {
    let tasks = graph::load("random:n=64,degree=5").expect("a graph").remap(12);
    let spec = "mesh:4x3/2e9:1e9";
    let machine = topology::parse(spec).expect("a mesh");
    let place = |links: &str| {
        let answer = assign_on(&format!("PoiseLB:gamma=0,links={links}"), &tasks, spec).expect("an answer");
        crate::cost::mcf::cost(&tasks, &*machine, &answer.pe_of)
    };
    let (off, on) = (place("off"), place("on"));
    assert!(on < off, "{off} s became {on} s");
}

#[test]
fn mappings_are_near_the_best_known() {
    for (file, spec, limit) in [
        ("graphs/3elt.graph", "torus:4x4x4", None),
        ("graphs/4elt.graph", "torus:4x4x4", Some(3320.0 * 1.2)),
        ("qaplib/nug30_flow.graph", "mesh:6x5", Some(6124.0 * 1.03)),
    ] {
        if reference(file).is_none() {
            continue;
        }
        let path = format!("{}/../../shared/reference/{file}", env!("CARGO_MANIFEST_DIR"));
        let machine = topology::parse(spec).expect(spec);
        let tasks = graph::load(&path).expect(file).remap(machine.pes() as u32);
        let answer = assign_on("PoiseLB:quality=fast", &tasks, spec).expect("an answer");
        let metrics = Metrics::of(&tasks, &*machine, &answer.pe_of);
        let average = (tasks.objects.len() as f64 / machine.pes() as f64).ceil();
        assert!(metrics.max_load_seconds <= (1.03 * average).floor(), "{file}: {}", metrics.max_load_seconds);
        let hop_bytes = metrics.communication.expect("it was recorded").hop_bytes as f64;
        assert!(limit.is_none_or(|limit| hop_bytes <= limit), "{file}: {hop_bytes} hop-bytes");
    }
}

#[test]
fn all_kinds_of_machines_are_mapped_better_than_by_topolb_and_at_random() {
    for spec in ["dragonfly:groups=5,routers=4,hosts=2", "graph:random:n=33,degree=5"] {
        let machine = topology::parse(spec).expect(spec);
        for graph in ["mesh:16x15", "leanmd:3x3x3,particles=100-500", "random:n=200,degree=6"] {
            let tasks = graph::load(graph).expect(graph).remap(machine.pes() as u32);
            let hop_bytes = |placed: &[u32]| communication(&tasks, &*machine, placed).hop_bytes;
            let by = |name: &str| hop_bytes(&assign_on(name, &tasks, spec).expect("an answer").pe_of);
            let poise = by("PoiseLB:gamma=0");
            let topolb = by("TopoLB");
            assert!(poise < topolb, "{graph} on {spec}: {poise} hop-bytes, TopoLB {topolb}");
            let mut rng = generator(1, 0);
            let mut placed: Vec<u32> =
                (0..tasks.objects.len() as u32).map(|i| i % machine.pes() as u32).collect();
            let random = (0..500).map(|_| {
                equipoise_model::random::shuffle(&mut rng, &mut placed);
                hop_bytes(&placed)
            });
            let best = random.min().expect("500 times");
            assert!(4 * poise < 3 * best, "{graph} on {spec}: {poise} hop-bytes, at random {best}");
        }
    }
}

#[test]
fn tori_and_flat_graphs_are_laid_out_without_folds() {
    // In the optimum, neighbors are on adjacent PEs. A folded layout costs at least twice as much.
    for (graph, spec, best) in [("mesh:64x64", "torus:16x16", 3840), ("torus:32x32", "torus:8x8", 1024)] {
        let tasks = graph::load(graph).expect(graph);
        let machine = topology::parse(spec).expect(spec);
        let tasks = tasks.remap(machine.pes() as u32);
        let placed = assign_on("PoiseLB:gamma=0", &tasks, spec).expect("an answer").pe_of;
        let hop_bytes = communication(&tasks, &*machine, &placed).hop_bytes;
        assert!(hop_bytes * 4 <= best * 7, "{graph} on {spec}: {hop_bytes} hop-bytes, {best} are best");
    }
}

#[test]
fn the_best_quality_is_no_worse_than_the_default() {
    // Without the result of the default settings, the best quality had more hop-bytes in each of these.
    for (graph, spec, seed) in [
        ("random:n=300,degree=4", "tree:3:5:2", 1),
        ("random:n=200,degree=8", "torus:4x4x4", 2),
        ("leanmd:3x3x3,particles=100-500", "tree:3:5:2", 2),
    ] {
        let machine = topology::parse(spec).expect(spec);
        let tasks = graph::load(graph).expect(graph).remap(machine.pes() as u32);
        let [default, best] = ["default", "best"].map(|quality| {
            let choice =
                crate::registry::parse(&format!("PoiseLB:gamma=0,quality={quality}"), &[]).expect(quality);
            let answer = choice.strategy.assign(&tasks, &*machine, seed).expect(quality);
            communication(&tasks, &*machine, &answer.pe_of).hop_bytes
        });
        assert!(best <= default, "{graph} on {spec}: {best} and {default} hop-bytes");
    }
}

/// Where the links of two dimensions are slow, the heavy edges of a graph follow the fast one, whatever hops say.
#[test]
fn bandwidths_count_where_links_have_different_ones() {
    let topology = topology::parse("torus:8x8/1e9:50e9").expect("a torus");
    let mut tasks = graph::load("mesh:8x8").expect("a graph").remap(64);
    for edge in &mut tasks.edges {
        let (End::Object(from), End::Object(to)) = (edge.from, edge.to) else { continue };
        // Neighbors in the first dimension, which is that of the slow links in the order of tasks, exchange the most.
        edge.bytes = if from.abs_diff(to) == 1 { 10_000 } else { 100 };
    }
    let answer = assign_on("PoiseLB", &tasks, "torus:8x8/1e9:50e9").expect("an answer");
    let seconds =
        |pe_of: &[u32]| crate::cost::mcf::link_seconds(&tasks, &*topology, pe_of).into_iter().sum::<f64>();
    let turned: Vec<u32> = (0..64).map(|task| task % 8 * 8 + task / 8).collect();
    let (found, best) = (seconds(&answer.pe_of), seconds(&turned));
    assert!(found <= 1.001 * best, "{found} s on all links, {best} s with dimensions exchanged");
    assert!(
        answer
            .sentence
            .is_some_and(|it| it.starts_with("Bytes over bandwidth, summed over all links, fell to "))
    );
}
