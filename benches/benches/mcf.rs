//! `cargo bench -p equipoise-benches --bench mcf [-- --small --rounds N --json FILTER]`: the speed of cost updates for
//! swaps, the run time of searches with these costs, and the linear program of the best routes.
//!
//! Swaps are tried on one core, starting from a random mapping; improving swaps are applied. The floor is the number of
//! swaps per second that would be possible if a trial only read the data that the swap may change: four distances for
//! each message of the two tasks (for bytes times distances), or four routes (for the busiest link). A ratio above 1
//! shows that most trials avoid this work, because their tasks do not use the busiest link. Targets are upper bounds of
//! times.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use equipoise_benches::Measurement;
use equipoise_model::{Database, Topology, topology};
use equipoise_strategies::cost::commodities::Commodities;
use equipoise_strategies::cost::mcf::{self, Aim, McfSwaps};
use equipoise_strategies::cost::mcf_optimal::{self, OptimalSwaps, Router, Ways};
use equipoise_strategies::cost::qap::{Distances, Metric, QapSwaps};
use equipoise_strategies::cost::routes::Routes;
use equipoise_strategies::cost::swaps::SwapCost;
use equipoise_strategies::registry;
use equipoise_strategies::workloads;

/// By size: the number of tasks, the task graph and the machine. The first is the case of the paper.
const SIZES: [(&str, &str, &str); 3] = [
    ("16", "npb-mz:benchmark=SP,class=D,processes=16", "platform:litvinov-grid"),
    ("256", "npb-mz:benchmark=SP,class=D,processes=256", "torus:16x16"),
    ("4096", "random:n=4096,degree=6,bytes=1000", "torus:16x16x16"),
];

/// The cost that swaps reduce.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cost {
    Distances,
    Routes,
    Qap,
    Mcf,
    Power,
    Optimal,
}

/// By size: the floors of bytes times distances, and of the busiest link.
const DISTANCES: [&str; 3] = [
    "floor: 4 distances a message, 16 tasks",
    "floor: 4 distances a message, 256 tasks",
    "floor: 4 distances a message, 4096 tasks",
];
const ROUTES: [&str; 3] = [
    "floor: 4 routes a message, 16 tasks",
    "floor: 4 routes a message, 256 tasks",
    "floor: 4 routes a message, 4096 tasks",
];

/// A cost, and by size the names of its measurements and of their floors. Sizes without a name are not measured.
type Case = (Cost, [&'static str; 3], Option<[&'static str; 3]>);

const CASES: [Case; 6] = [
    (Cost::Distances, DISTANCES, None),
    (Cost::Routes, ROUTES, None),
    (
        Cost::Qap,
        [
            "swaps tried, qap:rtt, 16 tasks",
            "swaps tried, qap:rtt, 256 tasks",
            "swaps tried, qap:rtt, 4096 tasks",
        ],
        Some(DISTANCES),
    ),
    (
        Cost::Mcf,
        ["swaps tried, mcf, 16 tasks", "swaps tried, mcf, 256 tasks", "swaps tried, mcf, 4096 tasks"],
        Some(ROUTES),
    ),
    (
        Cost::Power,
        [
            "swaps tried, mcf by 4th powers, 16 tasks",
            "swaps tried, mcf by 4th powers, 256 tasks",
            "swaps tried, mcf by 4th powers, 4096 tasks",
        ],
        Some(ROUTES),
    ),
    // With more tasks, a swap takes seconds.
    (Cost::Optimal, ["swaps tried, mcf:optimal, 16 tasks", "", ""], None),
];

/// Searches with 1000 restarts on 16 tasks.
const SEARCHES: [(&str, &str); 4] = [
    ("1000 restarts on 16 tasks, qap:rtt", "SwapLB:cost=qap:rtt"),
    ("1000 restarts on 16 tasks, qap:hops", "SwapLB:cost=qap:hops"),
    ("1000 restarts on 16 tasks, mcf", "SwapLB:cost=mcf"),
    ("1000 restarts on 16 tasks, McfLB", "McfLB"),
];

/// A linear program: its name, task graph, machine, whether the two directions of an edge have different bytes, and the
/// target in milliseconds.
type Program = (&'static str, &'static str, &'static str, bool, f64);

const RANDOM_16: &str = "random:n=16,degree=4,bytes=1000000";
const RANDOM_64: &str = "random:n=64,degree=8,bytes=1000000";

const PROGRAMS: [Program; 9] = [
    (
        "best routes, 16 nodes, SP-MZ on the grid",
        "npb-mz:benchmark=SP,class=D,processes=16",
        "platform:litvinov-grid",
        false,
        10.0,
    ),
    ("best routes, 16 nodes, 64 messages on torus:4x4", RANDOM_16, "torus:4x4", false, 10.0),
    ("best routes, 16 nodes, 64 unequal messages on torus:4x4", RANDOM_16, "torus:4x4", true, 10.0),
    ("best routes, 64 nodes, 512 messages on torus:8x8", RANDOM_64, "torus:8x8", false, 2000.0),
    ("best routes, 64 nodes, 512 messages on torus:4x4x4", RANDOM_64, "torus:4x4x4", false, 2000.0),
    ("best routes, 64 nodes, 512 messages on hypercube:6", RANDOM_64, "hypercube:6", false, 2000.0),
    ("best routes, 64 nodes, 512 unequal messages on torus:8x8", RANDOM_64, "torus:8x8", true, 2000.0),
    ("best routes, 64 nodes, 512 unequal messages on torus:4x4x4", RANDOM_64, "torus:4x4x4", true, 2000.0),
    (
        "best routes, 64 hosts, 512 messages on a dragonfly",
        RANDOM_64,
        "dragonfly:groups=8,routers=4,hosts=2",
        false,
        2000.0,
    ),
];

const PROGRAM_FLOOR: &str = "floor: the machine's own routes, 64 nodes";

fn load(graph: &str, machine: &str) -> (Database, Arc<dyn Topology>) {
    let machine = topology::parse(machine).expect("the spec of a machine");
    let database = workloads::load(graph).expect("the spec of a graph").remap(machine.pes() as u32);
    (database, machine)
}

/// A random number generator for numbers below `bound` (D. H. Lehmer, 1949).
fn rng(bound: usize) -> impl FnMut() -> usize {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    }
}

/// Swaps tried per second; improving swaps are applied.
fn swaps(cost_kind: Cost, size: usize, tries: usize) -> f64 {
    let (_, graph, machine) = SIZES[size];
    let (database, machine) = load(graph, machine);
    let commodities = Commodities::of(&database);
    let routes = Routes::of(&*machine);
    let seconds = routes.seconds_per_byte();
    let tasks = database.objects.len();
    let mut sample = rng(tasks);
    let mut places: Vec<u32> = (0..tasks as u32).collect();
    (0..tasks).for_each(|task| places.swap(task, sample()));
    let mut pairs = (0..tries).map(|_| [sample(), sample()]).filter(|[a, b]| a != b);
    let takes_distances = matches!(cost_kind, Cost::Distances | Cost::Qap);
    let distances =
        takes_distances.then(|| Distances::of(&routes, Metric::Rtt).expect("the machine is small enough"));
    let router = Router::new(&*machine, Ways::Any).expect("the machine is small enough");
    let mut cost: Box<dyn SwapCost + '_> = match (cost_kind, &distances) {
        (Cost::Distances, Some(distances)) => {
            let start = Instant::now();
            let mut sum = 0.0;
            for pair in pairs {
                for (task, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                    for partner in commodities.partners(task) {
                        let there = places[partner.vertex as usize];
                        for pe in [places[task], places[other]] {
                            sum += distances.between(pe, there) + distances.between(there, pe);
                        }
                    }
                }
            }
            black_box(sum);
            return tries as f64 / start.elapsed().as_secs_f64();
        }
        (Cost::Qap, Some(distances)) => Box::new(QapSwaps::new(&commodities, distances, &places)),
        (Cost::Optimal, _) => Box::new(OptimalSwaps::new(&router, &commodities, &places)),
        (Cost::Mcf, _) => Box::new(McfSwaps::new(&commodities, &routes, &seconds, Aim::Busiest, &places)),
        (Cost::Power, _) => {
            Box::new(McfSwaps::new(&commodities, &routes, &seconds, Aim::PowerThenBusiest(4), &places))
        }
        _ => {
            let (mut sum, mut buffer) = (0, Vec::new());
            let start = Instant::now();
            for pair in pairs {
                for (task, other) in [(pair[0], pair[1]), (pair[1], pair[0])] {
                    for partner in commodities.partners(task) {
                        let there = places[partner.vertex as usize];
                        for pe in [places[task], places[other]] {
                            routes.follow(pe, there, &mut buffer, |link| sum += link);
                            routes.follow(there, pe, &mut buffer, |link| sum += link);
                        }
                    }
                }
            }
            black_box(sum);
            return tries as f64 / start.elapsed().as_secs_f64();
        }
    };
    let start = Instant::now();
    pairs.by_ref().for_each(|[a, b]| {
        let (tasks, pes) = ([Some(a), Some(b)], [places[a], places[b]]);
        if let Some(worth) = cost.try_swap(tasks, pes) {
            cost.keep(tasks, pes, worth);
            places.swap(a, b);
        }
    });
    tries as f64 / start.elapsed().as_secs_f64()
}

/// The time of a search in seconds.
fn search(spec: &str, restarts: usize) -> f64 {
    let (_, graph, machine) = SIZES[0];
    let (database, machine) = load(graph, machine);
    let separator = if spec.contains(':') { ',' } else { ':' };
    let spec = format!("{spec}{separator}restarts={restarts},tries=500,start=random");
    let strategy = registry::parse(&spec, &[]).expect("the spec of a strategy").strategy;
    let start = Instant::now();
    black_box(strategy.assign(&database, &*machine, 1).expect("the strategy supports this case"));
    start.elapsed().as_secs_f64()
}

/// The time of the linear program of a mapping in natural order, in milliseconds.
fn program(graph: &str, machine: &str, is_unequal: bool) -> f64 {
    let (mut database, machine) = load(graph, machine);
    if is_unequal {
        database.edges.iter_mut().zip(0..).for_each(|(edge, number)| edge.bytes *= 1 + number % 7);
    }
    let start = Instant::now();
    black_box(
        mcf_optimal::solve(&database, &*machine, &database.placement(), Ways::Any)
            .expect("the problem is small enough"),
    );
    1e3 * start.elapsed().as_secs_f64()
}

fn measurements() -> Vec<Measurement> {
    let mut all = Vec::new();
    for (cost, names, floors) in CASES {
        for size in (0..SIZES.len()).filter(|&size| !names[size].is_empty()) {
            all.push(Measurement {
                name: names[size],
                unit: "swaps/s",
                target: None,
                floor: floors.map(|floors| floors[size]),
                take: Box::new(move |small| match (small, size) {
                    (true, 2) => swaps(cost, 1, 100),
                    (true, _) => swaps(cost, size, 100),
                    (false, _) if cost == Cost::Optimal => swaps(cost, size, 200),
                    (false, 2) => swaps(cost, size, 50_000),
                    (false, _) => swaps(cost, size, 200_000),
                }),
            });
        }
    }
    for (name, spec) in SEARCHES {
        all.push(Measurement {
            name,
            unit: "s",
            target: Some(1.0),
            floor: None,
            take: Box::new(move |small| search(spec, if small { 4 } else { 1000 })),
        });
    }
    let (_, graph, machine, ..) = PROGRAMS[3];
    all.push(Measurement {
        name: PROGRAM_FLOOR,
        unit: "ms",
        target: None,
        floor: None,
        take: Box::new(move |_| {
            let (database, machine) = load(graph, machine);
            let start = Instant::now();
            black_box(mcf::cost(&database, &*machine, &database.placement()));
            1e3 * start.elapsed().as_secs_f64()
        }),
    });
    for (name, graph, machine, is_unequal, target) in PROGRAMS {
        all.push(Measurement {
            name,
            unit: "ms",
            target: Some(target),
            floor: Some(PROGRAM_FLOOR),
            take: Box::new(move |small| match small {
                true => program(PROGRAMS[0].1, PROGRAMS[0].2, is_unequal),
                false => program(graph, machine, is_unequal),
            }),
        });
    }
    all
}

fn main() {
    equipoise_benches::run(measurements());
}
