//! Tests that cross the files of this room: what refinement says it saves is what it saves, and what is promised of
//! loads, moves and links holds on machines of every kind.

use proptest::prelude::*;

use super::balancer::sentence;
use super::bisect::{Effort, Halves, bisect};
use super::bound::cost_bound;
use super::csr::{Csr, Half};
use super::distance::with_metric;
use super::kway::{Homes, State};
use super::problem::Problem;
use super::repair::repair;
use super::scratch::cost;
use super::tools::{bisect_exactly, repaired, swapped};
use super::{local, swaps, tabu, two_way};
use crate::cost::{LoadBound, Metrics, link_loads};
use crate::database::{Edge, End};
use crate::random::generator;
use crate::testing::{assign_on, communication, database, max_per_average, reference};
use crate::{Database, graph, topology};

/// A graph of these loads and edges.
fn csr(loads: &[i64], edges: &[(usize, usize, u32)]) -> Csr {
    let pairs =
        edges.iter().map(|&(a, b, w)| ((a % loads.len()) as u32, (b % loads.len()) as u32, u64::from(w)));
    let graph = graph::Graph::new(loads.len(), pairs);
    let mut csr = Csr::with_capacity(loads.len());
    for (v, &load) in loads.iter().enumerate() {
        csr.push(load, graph.neighbors(v).map(|(to, weight)| Half { to: to as u32, weight: weight as u32 }));
    }
    csr
}

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
    fn a_bisection_keeps_exact_sizes(edges in edges(200), n in 1..150usize, part in 0.0..1.0f64, seed in any::<u64>()) {
        let graph = csr(&vec![1; n], &edges);
        let first = (n as f64 * part) as i64;
        let sides = bisect(&Halves::exact(&graph, first), &Effort::THOROUGH, &mut generator(seed, 0));
        prop_assert_eq!(sides.iter().filter(|&&side| side == 0).count() as i64, first);
    }

    #[test]
    fn refining_a_bisection_never_makes_it_worse(
        edges in edges(100),
        vertices in prop::collection::vec((1..6i64, -20..20i64, 0..2u8), 1..40),
        capacity in [0..80i64, 0..80i64],
    ) {
        let loads: Vec<i64> = vertices.iter().map(|vertex| vertex.0).collect();
        let bias: Vec<i64> = vertices.iter().map(|vertex| vertex.1).collect();
        let mut sides: Vec<u8> = vertices.iter().map(|vertex| vertex.2).collect();
        let graph = csr(&loads, &edges);
        let halves = Halves { graph: &graph, edge_cost: 3, bias: &bias, capacity, target: capacity[0] };
        let before = halves.grade(&sides);
        two_way::refine(&halves, &mut sides);
        prop_assert!(halves.grade(&sides) <= before);
    }

    #[test]
    fn refinement_saves_what_it_says_and_keeps_capacities(
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
        let problem = Problem::new(&tasks, &*topology, &(0..pes as u32).collect::<Vec<_>>(), 0.2).expect("a problem");
        let leave_costs = vec![leave; problem.movable];
        let homes = Homes { home_of: &problem.home_of, leave_costs: &leave_costs };
        let layer = problem.machine.last();
        with_metric!(&layer.distance, metric => {
            let board = problem.board(metric, &problem.capacity, Some(homes), true);
            let mut block_of = problem.home_of.clone();
            let whole = |block_of: &[u32]| {
                let moved = block_of.iter().zip(&problem.home_of).filter(|(block, home)| block != home).count();
                cost(&problem.graph, metric, block_of) + leave * moved as i64
            };
            let mut dice = generator(seed, 0);
            let is_repaired = repair(&mut State::new(&board, &mut block_of), true);
            for step in 0..3 {
                let before = whole(&block_of);
                let mut state = State::new(&board, &mut block_of);
                let saved = match step {
                    0 => local::refine(&mut state, 2, 15, &mut dice),
                    1 => state.greedy(5, &mut dice),
                    _ => swaps::refine(&mut state, 5, &mut dice),
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
    fn tabu_search_finds_the_best_of_few(edges in edges(30), n in 2..6usize, seed in any::<u64>()) {
        let topology = topology::parse("mesh:3x2").expect("a mesh");
        let tasks = tasks(6, &vec![1.0; n], &edges);
        let problem = Problem::new(&tasks, &*topology, &[0, 1, 2, 3, 4, 5], 0.0).expect("a problem");
        let distance = &problem.machine.last().distance;
        let start: Vec<u32> = (0..n as u32).collect();
        let found = tabu::search(&problem.graph, distance, &[0, 1, 2, 3, 4, 5], &start, 2000, &mut generator(seed, 0));
        let mut best = i64::MAX;
        permute(&mut Vec::new(), 6, n, &mut |places| best = best.min(cost(&problem.graph, distance, places)));
        prop_assert_eq!(cost(&problem.graph, distance, &found), best);
    }

    #[test]
    fn loads_stay_below_the_limit_wherever_objects_are_light(
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
    fn a_power_law_a_huge_object_what_stays_and_speeds_are_served(
        ends in prop::collection::vec((any::<u32>(), 1..100u32), 60..160),
        huge in 0..60usize,
        pinned in prop::collection::vec(0..60usize, 0..12),
        slow in 0..8usize,
        number in 0..MACHINES.len(),
        gamma in prop::sample::select(vec!["0", "1"]),
    ) {
        let topology = topology::parse(MACHINES[number]).expect("a machine");
        // Whoever came early has most partners: the end of an edge is drawn with the cube of a uniform number.
        let edge = |(from, &(drawn, bytes)): (usize, &(u32, u32))| {
            let part = f64::from(drawn) / f64::from(u32::MAX);
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
        // A load of 1 more than is allowed, on the slow PE.
        let bound = 1.1 * LoadBound::of(&tasks).bound_seconds + 2.0;
        prop_assert!(most <= bound, "{} seconds, of {} allowed", most, bound);
    }
}

/// Tells of every way to put `n` objects on different ones of `places`.
fn permute(chosen: &mut Vec<u32>, places: u32, n: usize, tell: &mut impl FnMut(&[u32])) {
    if chosen.len() == n {
        return tell(chosen);
    }
    for place in 0..places {
        if !chosen.contains(&place) {
            chosen.push(place);
            permute(chosen, places, n, tell);
            chosen.pop();
        }
    }
}

#[test]
fn a_grid_is_cut_where_it_is_narrowest() {
    let tasks = graph::load("mesh:16x8").expect("a mesh").remap(2);
    let machine = topology::parse("flat:2").expect("two PEs");
    let problem = Problem::new(&tasks, &*machine, &[0, 1], 0.0).expect("a problem");
    let sides = bisect(&Halves::exact(&problem.graph, 64), &Effort::THOROUGH, &mut generator(1, 0));
    let blocks: Vec<u32> = sides.iter().map(|&side| side.into()).collect();
    // Edges of a generated mesh carry a byte each way, which is the unit.
    assert_eq!(cost(&problem.graph, &problem.machine.last().distance, &blocks), 16);
}

#[test]
fn what_a_move_is_worth_decides_how_much_moves() {
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
fn a_huge_object_has_a_pe_for_itself_and_stars_are_spread() {
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

#[test]
fn what_stays_pulls_at_the_rest_and_takes_room() {
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
fn the_busiest_link_is_relieved_for_hardly_any_hop_bytes() {
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
fn machines_of_any_kind_are_mapped_better_than_by_topolb_and_by_chance() {
    for spec in ["dragonfly:groups=5,routers=4,hosts=2", "graph:random:n=33,degree=5"] {
        let machine = topology::parse(spec).expect(spec);
        for graph in ["mesh:16x15", "leanmd:3x3x3,particles=100-500", "random:n=200,degree=6"] {
            let tasks = graph::load(graph).expect(graph).remap(machine.pes() as u32);
            let hop_bytes = |placed: &[u32]| communication(&tasks, &*machine, placed).hop_bytes;
            let by = |name: &str| hop_bytes(&assign_on(name, &tasks, spec).expect("an answer").pe_of);
            let poise = by("PoiseLB:gamma=0");
            let topolb = by("TopoLB");
            assert!(poise < topolb, "{graph} on {spec}: {poise} hop-bytes, TopoLB {topolb}");
            let mut dice = generator(1, 0);
            let mut placed: Vec<u32> =
                (0..tasks.objects.len() as u32).map(|i| i % machine.pes() as u32).collect();
            let by_chance = (0..500).map(|_| {
                crate::random::shuffle(&mut dice, &mut placed);
                hop_bytes(&placed)
            });
            let best = by_chance.min().expect("500 times");
            assert!(4 * poise < 3 * best, "{graph} on {spec}: {poise} hop-bytes, by chance {best}");
        }
    }
}

#[test]
fn rings_without_ends_and_flat_graphs_are_both_laid_out_straight() {
    // Neighbors next to each other, and the best there is; folded wrongly it is twice as much and more.
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
fn more_work_does_not_end_with_less() {
    // Without what the default finds, the best had more in each of these.
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

#[test]
fn a_sentence_says_what_was_gained_and_what_could_be() {
    let machine = topology::parse("mesh:2").expect("a machine");
    let tasks = graph::load("mesh:4,bytes=10").expect("a mesh").remap(2);
    let (stays, moves) =
        (Metrics::of(&tasks, &*machine, &[0, 0, 1, 1]), Metrics::full(&tasks, &*machine, &[0, 0, 0, 1]));
    let say = |before, after, least, metrics| {
        let notes = [("hop-bytes before", before), ("hop-bytes after", after), ("hop-bytes at least", least)];
        sentence(&notes.map(|(name, value)| (name.to_string(), value)), metrics)
            .expect("they are of this strategy")
    };
    assert_eq!(
        say(100.0, 54.0, 31.0, &moves),
        "Hop-bytes fell to 54.0 % of what they were, for moving 1 object; no placement with balanced loads gets below 31.0 %."
    );
    assert!(
        say(100.0, 120.0, 31.0, &stays)
            .starts_with("Hop-bytes rose to 120.0 % of what they were, without moving anything;")
    );
    assert!(say(1e6, 1e6 + 1.0, 0.0, &stays).starts_with("Hop-bytes are about what they were, without"));
    assert!(say(100.0, 90.0, 0.0, &stays).ends_with("; what is possible is not known."));
    assert_eq!(say(0.0, 0.0, 0.0, &stays), "Nothing travels, without moving anything.");
    assert_eq!(sentence(&[("groups".to_string(), 2.0)], &stays), None);
    let of_a_stage = ["before", "after", "at least"].map(|name| (format!("PoiseLB hop-bytes {name}"), 1.0));
    assert_eq!(sentence(&of_a_stage, &stays), None);
}

#[test]
fn tools_serve_others() {
    let mesh = graph::load("mesh:8x8").expect("a mesh");
    let sides = bisect_exactly(&graph::Graph::of(&mesh), 16, 1);
    assert_eq!(sides.iter().filter(|&&side| side == 0).count(), 16);
    let tasks = mesh.remap(8);
    let machine = topology::parse("torus:4x2").expect("a torus");
    let heavy: Vec<u32> = (0..64).map(|i| if i < 20 { 0 } else { i / 8 }).collect();
    let tasks = tasks.placed(&heavy);
    let hop_bytes = |placement: &[u32]| communication(&tasks, &*machine, placement).hop_bytes;
    let repaired = repaired(&tasks, &*machine, 0.0).expect("it fits");
    let swapped = swapped(&tasks, &*machine, 0.0, 1).expect("it fits");
    for placement in [&repaired, &swapped] {
        assert_eq!(max_per_average(&tasks, placement), 1.0);
    }
    assert!(hop_bytes(&swapped) <= hop_bytes(&repaired));
}
