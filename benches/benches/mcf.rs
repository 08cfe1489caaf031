//! `cargo bench -p equipoise-benches --bench mcf [-- --small --rounds N --json FILTER]`: how fast the costs of contention
//! follow swaps, how long the searches that use them take, and the linear program of the best routes.
//!
//! Swaps are tried on one core, from a random mapping on, and those that are better are made. The floor beside them is
//! how many could be tried if one only looked at what a swap may change: for bytes times distances, four distances for
//! each message of two tasks; for the busiest link, four routes. A ratio above 1 is what is saved by not looking, at most
//! swaps of tasks that do not use the busiest link. Targets are seconds or milliseconds, not to be exceeded.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use equipoise_benches::Measurement;
use equipoise_strategies::cost::commodities::Commodities;
use equipoise_strategies::cost::mcf::{self, Aim, McfSwaps};
use equipoise_strategies::cost::mcf_optimal::{self, OptimalSwaps, Router, Ways};
use equipoise_strategies::cost::qap::{Distances, Metric, QapSwaps};
use equipoise_strategies::cost::routes::Routes;
use equipoise_strategies::cost::swaps::SwapCost;
use equipoise_strategies::{Database, Topology, graph, registry, topology};

/// Task graphs and machines: the paper's, SP-MZ on a torus, and random neighbors on a large torus.
const SIZES: [(&str, &str, &str); 3] = [
    ("16", "npb-mz:benchmark=SP,class=D,processes=16", "platform:litvinov-grid"),
    ("256", "npb-mz:benchmark=SP,class=D,processes=256", "torus:16x16"),
    ("4096", "random:n=4096,degree=6,bytes=1000", "torus:16x16x16"),
];

/// What a swap is tried on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Distances,
    Routes,
    Qap,
    Mcf,
    Power,
    Optimal,
}

/// The floors of bytes times distances, and of the busiest link, by size.
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

/// What is measured at every size: its names, and those of its floors.
type Case = (What, [&'static str; 3], Option<[&'static str; 3]>);

const CASES: [Case; 6] = [
    (What::Distances, DISTANCES, None),
    (What::Routes, ROUTES, None),
    (
        What::Qap,
        [
            "swaps tried, qap:rtt, 16 tasks",
            "swaps tried, qap:rtt, 256 tasks",
            "swaps tried, qap:rtt, 4096 tasks",
        ],
        Some(DISTANCES),
    ),
    (
        What::Mcf,
        ["swaps tried, mcf, 16 tasks", "swaps tried, mcf, 256 tasks", "swaps tried, mcf, 4096 tasks"],
        Some(ROUTES),
    ),
    (
        What::Power,
        [
            "swaps tried, mcf by 4th powers, 16 tasks",
            "swaps tried, mcf by 4th powers, 256 tasks",
            "swaps tried, mcf by 4th powers, 4096 tasks",
        ],
        Some(ROUTES),
    ),
    // Where there are more tasks, a swap is a matter of seconds.
    (What::Optimal, ["swaps tried, mcf:optimal, 16 tasks", "", ""], None),
];

/// Searches of a thousand restarts on 16 tasks.
const SEARCHES: [(&str, &str); 4] = [
    ("1000 restarts on 16 tasks, qap:rtt", "SwapLB:cost=qap:rtt"),
    ("1000 restarts on 16 tasks, qap:hops", "SwapLB:cost=qap:hops"),
    ("1000 restarts on 16 tasks, mcf", "SwapLB:cost=mcf"),
    ("1000 restarts on 16 tasks, McfLB", "McfLB"),
];

/// A linear program: its name, task graph, machine, whether what comes back is not as much as what goes, and the
/// milliseconds aimed at.
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
    let database = graph::load(graph).expect("the spec of a graph").remap(machine.pes() as u32);
    (database, machine)
}

/// Numbers below `bound` (D. H. Lehmer, 1949).
fn dice(bound: usize) -> impl FnMut() -> usize {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    }
}

/// Swaps tried in a second, with carrying out those that are better.
fn swaps(what: What, size: usize, tries: usize) -> f64 {
    let (_, graph, machine) = SIZES[size];
    let (database, machine) = load(graph, machine);
    let commodities = Commodities::of(&database);
    let routes = Routes::of(&*machine);
    let seconds = routes.seconds_per_byte();
    let tasks = database.objects.len();
    let mut draw = dice(tasks);
    let mut places: Vec<u32> = (0..tasks as u32).collect();
    (0..tasks).for_each(|task| places.swap(task, draw()));
    let mut pairs = (0..tries).map(|_| [draw(), draw()]).filter(|[a, b]| a != b);
    let takes_distances = what == What::Distances || what == What::Qap;
    let distances =
        takes_distances.then(|| Distances::of(&routes, Metric::Rtt).expect("the machine is small enough"));
    let router = Router::new(&*machine, Ways::Any).expect("the machine is small enough");
    let mut cost: Box<dyn SwapCost + '_> = match (what, &distances) {
        (What::Distances, Some(distances)) => {
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
        (What::Qap, Some(distances)) => Box::new(QapSwaps::new(&commodities, distances, &places)),
        (What::Optimal, _) => Box::new(OptimalSwaps::new(&router, &commodities, &places)),
        (What::Mcf, _) => Box::new(McfSwaps::new(&commodities, &routes, &seconds, Aim::Busiest, &places)),
        (What::Power, _) => {
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

/// Seconds of a search.
fn search(spec: &str, restarts: usize) -> f64 {
    let (_, graph, machine) = SIZES[0];
    let (database, machine) = load(graph, machine);
    let separator = if spec.contains(':') { ',' } else { ':' };
    let spec = format!("{spec}{separator}restarts={restarts},tries=500,start=random");
    let strategy = registry::parse(&spec, &[]).expect("the spec of a strategy").strategy;
    let start = Instant::now();
    black_box(strategy.assign(&database, &*machine, 1).expect("it answers"));
    start.elapsed().as_secs_f64()
}

/// Milliseconds of the linear program of a mapping in natural order.
fn program(graph: &str, machine: &str, is_unequal: bool) -> f64 {
    let (mut database, machine) = load(graph, machine);
    if is_unequal {
        database.edges.iter_mut().zip(0..).for_each(|(edge, number)| edge.bytes *= 1 + number % 7);
    }
    let start = Instant::now();
    black_box(
        mcf_optimal::solve(&database, &*machine, &database.placement(), Ways::Any)
            .expect("it is small enough"),
    );
    1e3 * start.elapsed().as_secs_f64()
}

fn measurements() -> Vec<Measurement> {
    let mut all = Vec::new();
    for (what, names, floors) in CASES {
        for size in (0..SIZES.len()).filter(|&size| !names[size].is_empty()) {
            all.push(Measurement {
                name: names[size],
                unit: "swaps/s",
                target: None,
                floor: floors.map(|floors| floors[size]),
                take: Box::new(move |small| match (small, size) {
                    (true, 2) => swaps(what, 1, 100),
                    (true, _) => swaps(what, size, 100),
                    (false, _) if what == What::Optimal => swaps(what, size, 200),
                    (false, 2) => swaps(what, size, 50_000),
                    (false, _) => swaps(what, size, 200_000),
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
