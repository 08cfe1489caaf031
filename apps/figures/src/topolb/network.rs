//! Table 1 and figures 7 to 11 of the TopoLB paper: the time of Jacobi iterations with different mappings.
//!
//! T. Agarwal, A. Sharma, L. V. Kalé, "Topology-aware task mapping for reducing communication contention
//! on large parallel machines", IPDPS 2006, sections 1, 5.3 and 5.4. Tasks on a mesh exchange messages
//! with their neighbors; in table 1 and figures 10 and 11 on BlueGene/L, elsewhere in the authors' network
//! simulator. Here the network model is `flow`. BlueGene's nodes inject 136.5e6 bytes per second (the optimal
//! column of table 1 is 0.18 ms + 6 messages at that rate); a link carries 175e6 (154e6 after the overhead of packets,
//! which figures 10 and 11 use).
//!
//! Iterations are simulated until they repeat exactly. With sharing by latency or random mappings they may not repeat,
//! because neighbors drift apart and together again. In this case a part of the iterations is simulated and their mean
//! time is used; the notes give the number.

use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::database::{Edge, End};
use equipoise_model::table::bytes;
use equipoise_model::{Database, Topology, topology};
use equipoise_network::models;
use equipoise_network::models::exchange::{Exchange, Receives, Traffic};
use equipoise_strategies::workloads;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};

/// Table 1.
pub(crate) const TOPOLB_TABLE1: Figure = Figure {
    name: "topolb-table1",
    title: "200 Jacobi iterations on 512 BlueGene/L nodes, optimal and random mapping",
    paper: "Agarwal, Sharma, Kalé 2006, table 1",
    takes: "a minute",
    notes: "Random is a mean of random mappings. BlueGene/L routes adaptively among shortest paths; this network has fixed \
            routes. Iterations are simulated until they repeat exactly.",
    run: table1,
};

/// Figure 7.
pub(crate) const TOPOLB_7: Figure = Figure {
    name: "topolb-7",
    title: "Message latency against link bandwidth, 8x8 mesh on a 4x4x4 torus",
    paper: "Agarwal, Sharma, Kalé 2006, figure 7",
    takes: "5 seconds",
    notes: NUMBERING,
    run: |options| latencies(options, &[50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 750.0, 1000.0]),
};

/// Figure 8.
pub(crate) const TOPOLB_8: Figure = Figure {
    name: "topolb-8",
    title: "Message latency without congestion, 8x8 mesh on a 4x4x4 torus",
    paper: "Agarwal, Sharma, Kalé 2006, figure 8",
    takes: "5 seconds",
    notes: NUMBERING,
    run: |options| latencies(options, &[300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0]),
};

/// Figure 9.
pub(crate) const TOPOLB_9: Figure = Figure {
    name: "topolb-9",
    title: "Time of 2000 iterations against link bandwidth, 8x8 mesh on a 4x4x4 torus",
    paper: "Agarwal, Sharma, Kalé 2006, figure 9",
    takes: "10 seconds",
    notes: NUMBERING,
    run: completion,
};

/// Figure 10.
pub(crate) const TOPOLB_10: Figure = Figure {
    name: "topolb-10",
    title: "4000 Jacobi iterations of 100 kB messages on BlueGene/L tori",
    paper: "Agarwal, Sharma, Kalé 2006, figure 10",
    takes: "20 seconds",
    notes: "If iterations do not repeat exactly, 80 are simulated.",
    run: |options| bluegene(options, "torus"),
};

/// Figure 11.
pub(crate) const TOPOLB_11: Figure = Figure {
    name: "topolb-11",
    title: "4000 Jacobi iterations of 100 kB messages on BlueGene/L meshes",
    paper: "Agarwal, Sharma, Kalé 2006, figure 11",
    takes: "20 seconds",
    notes: "On a mesh TopoLB's estimate prefers the centre, and TopoCentLB may be better; the paper only says that both are \
            better than random mappings. If iterations do not repeat exactly, 80 are simulated.",
    run: |options| bluegene(options, "mesh"),
};

const NUMBERING: &str = "Medians over random numberings of tasks and processors: with natural numbers TopoLB and TopoCentLB are \
                         perfect on this machine. If iterations do not repeat exactly, 80 are simulated.";

const RANDOM: &str = "RandomLB:groups=keep";
const TOPOCENTLB: &str = "TopoCentLB";
const TOPOLB: &str = "TopoLB";
const ALL: [&str; 3] = [TOPOLB, TOPOCENTLB, RANDOM];

/// The times of iterations.
#[derive(Clone, Copy, Debug)]
struct Time {
    seconds: f64,
    mean_latency_seconds: f64,
}

/// Iterations of a task graph on a machine.
struct Run<'a> {
    machine: &'a Arc<dyn Topology>,
    network: String,
    compute_seconds: f64,
    iterations: u64,
    /// The number of simulated iterations if they do not repeat.
    simulated: u64,
}

impl Run<'_> {
    /// The times with task `i` on PE `placement[i]`.
    fn time(&self, tasks: &Database, placement: &[u32]) -> Result<Time, Failure> {
        let traffic = Traffic::directed(tasks);
        let model = models::parse(&self.network)?;
        let exchange = Exchange {
            iterations: self.simulated.min(self.iterations),
            compute_seconds: self.compute_seconds,
            receives: Receives::AfterCompute,
            extrapolates: true,
        };
        let result = exchange.run(&traffic, placement, &mut *model.on(self.machine)?);
        let seconds = result.seconds_per_iteration * self.iterations as f64;
        Ok(Time { seconds, mean_latency_seconds: result.mean_message_latency_seconds })
    }
}

/// The number of simulated iterations if they do not repeat exactly.
const SIMULATED: u64 = 80;

/// The tasks of a mesh, which send `bytes` bytes to each neighbor.
fn mesh(sizes: &str, bytes: u64, pes: usize) -> Result<Database, Failure> {
    Ok(workloads::load(&format!("mesh:{sizes},bytes={bytes}"))?.remap(pes as u32))
}

/// A random permutation of the numbers below `count`.
///
/// # Errors
/// If `count` is too large.
pub(crate) fn shuffled(count: usize, seed: u64) -> Result<Vec<u32>, Failure> {
    let flat = topology::flat(count);
    let tasks = workloads::load(&format!("ring:{count}"))?.remap(count as u32);
    Ok(assign(RANDOM, &tasks, &*flat, seed)?.pe_of)
}

/// The same tasks with new numbers: task i becomes `order[i]`.
pub(crate) fn renumbered(tasks: &Database, order: &[u32]) -> Database {
    let end = |end| match end {
        End::Object(object) => End::Object(order[object as usize]),
        End::Pe(pe) => End::Pe(pe),
    };
    let mut tasks = tasks.clone();
    for edge in &mut tasks.edges {
        *edge = Edge { from: end(edge.from), to: end(edge.to), ..*edge };
    }
    tasks.edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    tasks
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let half = numbers.len() / 2;
    if numbers.len() % 2 == 1 { numbers[half] } else { 0.5 * (numbers[half - 1] + numbers[half]) }
}

/// The rows of table 1: bytes, seconds of the random and of the optimal mapping.
const PAPER_TABLE1: [(u64, f64, f64); 5] = [
    (1_000, 0.05693, 0.04691),
    (10_000, 0.24364, 0.12456),
    (100_000, 2.24775, 0.91472),
    (500_000, 11.62, 4.44),
    (1_000_000, 23.50, 8.80),
];

/// A row of table 1, here and in the paper.
struct Row {
    bytes: u64,
    random: f64,
    optimal: f64,
    paper_random: f64,
    paper_optimal: f64,
}

fn table1(options: &Options) -> Result<FigureResult, Failure> {
    let machine = topology::parse("mesh:8x8x8")?;
    let seeds = if options.small { 1 } else { 5 };
    let all = options.sweep_labelled(PAPER_TABLE1.map(|row| (row.0, row)), |row| {
        let (size, paper_random, paper_optimal) = row;
        let tasks = mesh("8x8x8", size, machine.pes())?;
        let network = "flow:bandwidth=175e6,injection=136.5e6".to_string();
        let run =
            Run { machine: &machine, network, compute_seconds: 0.18e-3, iterations: 200, simulated: 200 };
        let optimal = run.time(&tasks, &tasks.placement())?.seconds;
        let mut random = 0.0;
        for seed in 0..seeds {
            let placement = assign(RANDOM, &tasks, &*machine, options.seed.wrapping_add(seed))?.pe_of;
            random += run.time(&tasks, &placement)?.seconds / seeds as f64;
        }
        Ok(Row { bytes: size, random, optimal, paper_random, paper_optimal })
    })?;
    let mut rows = Rows::new([
        ("message_bytes", "message"),
        ("random_seconds", "random s"),
        ("paper_random_seconds", "paper"),
        ("optimal_seconds", "optimal s"),
        ("paper_optimal_seconds", "paper"),
        ("ratio", "ratio"),
        ("paper_ratio", "paper"),
    ]);
    for row in &all {
        rows.push([
            Cell::Count(row.bytes),
            Cell::Number(row.random),
            Cell::Number(row.paper_random),
            Cell::Number(row.optimal),
            Cell::Number(row.paper_optimal),
            Cell::Number(row.random / row.optimal),
            Cell::Number(row.paper_random / row.paper_optimal),
        ]);
    }
    let series = |of: fn(&Row) -> f64| all.iter().map(move |row| (row.bytes as f64, of(row)));
    let chart = Chart {
        x: Axis::log("bytes of a message"),
        y: Axis::log("seconds of 200 iterations"),
        series: vec![
            Series::measured(format!("random (mean of {seeds})"), series(|row| row.random)),
            Series::measured("optimal", series(|row| row.optimal)),
            Series::paper("random in the paper", series(|row| row.paper_random)),
            Series::paper("optimal in the paper", series(|row| row.paper_optimal)),
        ],
    };
    let within = |name: &str, limit: f64, of: fn(&Row) -> f64| {
        Criterion::every(
            format!("{name} is within {:.0} % of the paper", 100.0 * limit),
            &all,
            |row| limit - of(row).abs(),
            |row| format!("{:+.1} % at {}", 100.0 * of(row), bytes(row.bytes)),
        )
    };
    let criteria = vec![
        within("optimal", 0.05, |row| row.optimal / row.paper_optimal - 1.0),
        within("random", 0.15, |row| row.random / row.paper_random - 1.0),
        Criterion::every(
            "longer messages increase the ratio of random to optimal",
            all.windows(2),
            |pair| pair[1].random / pair[1].optimal - pair[0].random / pair[0].optimal,
            |pair| {
                let ratio = |row: &Row| format!("{:.2} at {}", row.random / row.optimal, bytes(row.bytes));
                format!("{}, {}", ratio(&pair[0]), ratio(&pair[1]))
            },
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

/// The times of an 8x8 mesh of tasks on a 4x4x4 torus with one link bandwidth: for every numbering and each of [`ALL`].
struct Swept {
    megabytes_per_second: f64,
    /// With natural numbers.
    natural: [Time; 3],
    times: Vec<[Time; 3]>,
}

impl Swept {
    fn median(&self, which: usize, of: fn(&Time) -> f64) -> f64 {
        median(self.times.iter().map(|times| of(&times[which])).collect())
    }
}

fn sweep(options: &Options, bandwidths: &[f64], permutations: u64) -> Result<Vec<Swept>, Failure> {
    let mut mapped = Vec::new();
    for permutation in 0..=permutations {
        let seed = options.seed.wrapping_add(2 * permutation);
        let natural: Vec<u32> = (0..64).collect();
        let [nodes, tasks] = match permutation {
            0 => [natural.clone(), natural],
            _ => [shuffled(64, seed)?, shuffled(64, seed.wrapping_add(1))?],
        };
        let nodes = nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let machine = topology::parse(&format!("torus:4x4x4[{nodes}]"))?;
        let tasks = renumbered(&mesh("8x8", 10_000, machine.pes())?, &tasks);
        let place = |spec| Ok(assign(spec, &tasks, &*machine, seed)?.pe_of);
        let placements = ALL.into_iter().map(place).collect::<Result<Vec<_>, Failure>>()?;
        mapped.push((machine, tasks, placements));
    }
    options.sweep(bandwidths.iter().copied(), |megabytes_per_second| {
        let network = format!("flow:bandwidth={megabytes_per_second}e6,latency=0.5e-6,sharing=latency");
        let times = |(machine, tasks, placements): &(Arc<dyn Topology>, Database, Vec<Vec<u32>>)| {
            let (network, compute_seconds) = (network.clone(), 20e-6);
            let run = Run { machine, network, compute_seconds, iterations: 2000, simulated: SIMULATED };
            let [a, b, c] = [0, 1, 2].map(|which| run.time(tasks, &placements[which]));
            Ok([a?, b?, c?])
        };
        let mut times = mapped.iter().map(times).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Swept { megabytes_per_second, natural: times.remove(0), times })
    })
}

fn latencies(options: &Options, bandwidths: &[f64]) -> Result<FigureResult, Failure> {
    let ends = [bandwidths[0], bandwidths[bandwidths.len() - 1]];
    let all = sweep(options, options.choose(bandwidths, &ends), if options.small { 2 } else { 8 })?;
    let microseconds = |swept: &Swept, which| 1e6 * swept.median(which, |time| time.mean_latency_seconds);
    let mut rows = Rows::new([
        ("link_megabytes_per_second", "MB/s"),
        ("topolb_latency_microseconds", "TopoLB us"),
        ("topocentlb_latency_microseconds", "TopoCentLB us"),
        ("random_latency_microseconds", "random us"),
        ("topolb_natural_latency_microseconds", "TopoLB, natural numbers"),
    ]);
    let natural = |swept: &Swept, which: usize| 1e6 * swept.natural[which].mean_latency_seconds;
    for swept in &all {
        let numbers = [0, 1, 2].map(|which| Cell::Number(microseconds(swept, which)));
        let all = [Cell::Number(swept.megabytes_per_second)].into_iter().chain(numbers);
        rows.push(all.chain([Cell::Number(natural(swept, 0))]));
    }
    let names = ["TopoLB", "TopoCentLB", "random"];
    let series = names.into_iter().enumerate().map(|(which, name)| {
        let point = |swept: &Swept| (swept.megabytes_per_second, microseconds(swept, which));
        Series::measured(name, all.iter().map(point).collect::<Vec<_>>())
    });
    let points = all.iter().map(|swept| (swept.megabytes_per_second, natural(swept, 0)));
    let perfect = Series::measured("TopoLB, natural numbers", points.collect::<Vec<_>>());
    let chart = Chart {
        x: Axis::linear("MB/s of a link"),
        y: Axis::linear("microseconds a message takes"),
        series: series.chain([perfect]).collect(),
    };
    let measured = |swept: &&Swept| {
        let [a, b, c] = [0, 1, 2].map(|which| microseconds(swept, which));
        format!("{a:.1}, {b:.1} and {c:.1} us at {} MB/s", swept.megabytes_per_second)
    };
    let criteria = vec![
        Criterion::every(
            "TopoLB is at most as slow as TopoCentLB, and TopoCentLB as random, at every bandwidth",
            &all,
            |swept| {
                let [a, b, c] = [0, 1, 2].map(|which| microseconds(swept, which));
                (b - a).min(c - b)
            },
            measured,
        ),
        Criterion::every(
            "random takes at least 2 times TopoLB at every bandwidth, both with natural numbers",
            &all,
            |swept| natural(swept, 2) / natural(swept, 0) - 2.0,
            |swept| {
                let times = natural(swept, 2) / natural(swept, 0);
                format!("{times:.2} times at {} MB/s", swept.megabytes_per_second)
            },
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

fn completion(options: &Options) -> Result<FigureResult, Failure> {
    let bandwidths = [50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 750.0, 1000.0];
    let permutations = if options.small { 3 } else { 12 };
    let all = sweep(options, options.choose(&bandwidths, &[50.0, 200.0]), permutations)?;
    let seconds = |swept: &Swept, which| swept.median(which, |time| time.seconds);
    let ratio = |swept: &Swept, which: usize| {
        median(swept.times.iter().map(|times| times[which].seconds / times[0].seconds).collect())
    };
    let mut rows = Rows::new([
        ("link_megabytes_per_second", "MB/s"),
        ("topolb_seconds", "TopoLB s"),
        ("topocentlb_seconds", "TopoCentLB s"),
        ("random_seconds", "random s"),
        ("topocentlb_per_topolb", "TopoCentLB/TopoLB"),
        ("paper_topocentlb_per_topolb", "paper"),
        ("random_per_topolb", "random/TopoLB"),
        ("paper_random_per_topolb_at_least", "paper, at least"),
    ]);
    for (number, swept) in all.iter().enumerate() {
        let numbers = [0, 1, 2].map(|which| Cell::Number(seconds(swept, which)));
        rows.push([Cell::Number(swept.megabytes_per_second)].into_iter().chain(numbers).chain([
            Cell::Number(ratio(swept, 1)),
            Cell::Text("1.10 to 1.25".into()),
            Cell::Number(ratio(swept, 2)),
            // Printed for small bandwidths.
            if number == 0 { Cell::Number(2.0) } else { Cell::Nothing },
        ]));
    }
    let series = ["TopoLB", "TopoCentLB", "random"].into_iter().enumerate().map(|(which, name)| {
        let point = |swept: &Swept| (swept.megabytes_per_second, seconds(swept, which));
        Series::measured(name, all.iter().map(point).collect::<Vec<_>>())
    });
    let chart = Chart {
        x: Axis::linear("MB/s of a link"),
        y: Axis::linear("seconds of 2000 iterations"),
        series: series.collect(),
    };
    let criteria = vec![
        Criterion::every(
            "random takes at least 2 times TopoLB at the lowest bandwidth, both with natural numbers (paper: possible)",
            all.first(),
            |swept| swept.natural[2].seconds / swept.natural[0].seconds - 2.0,
            |swept| {
                let times = swept.natural[2].seconds / swept.natural[0].seconds;
                format!("{times:.2} times; {:.2} times in the median of other numberings", ratio(swept, 2))
            },
        ),
        Criterion::every(
            format!("TopoCentLB takes 1.0 to 1.6 times TopoLB, median of {permutations} numberings"),
            &all,
            |swept| (ratio(swept, 1) - 1.0).min(1.6 - ratio(swept, 1)),
            |swept| format!("{:.2} times at {} MB/s", ratio(swept, 1), swept.megabytes_per_second),
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

/// Meshes of tasks and the machines of figures 10 and 11.
const SIZES: [(&str, &str); 4] =
    [("8x8", "4x4x4"), ("16x8", "8x4x4"), ("16x16", "8x8x4"), ("16x32", "8x8x8")];

/// The number of PEs, and the seconds of 4000 iterations with each of [`ALL`].
type Jacobi = (usize, [f64; 3]);

/// The times of 4000 iterations with each of [`ALL`] on machines of the kind `torus` or `mesh`.
fn jacobi(options: &Options, kind: &str) -> Result<Vec<Jacobi>, Failure> {
    let cases = options.choose(&SIZES, &SIZES[..2]);
    let seeds = if options.small { 1 } else { 10 };
    options.sweep(cases.iter().map(|(_, nodes)| nodes), |nodes| {
        let machine = topology::parse(&format!("{kind}:{nodes}"))?;
        let (sizes, _) =
            cases.iter().find(|case| case.1 == *nodes).ok_or_else(|| Failure::bug("a case of the figure"))?;
        let tasks = mesh(sizes, 100_000, machine.pes())?;
        let network = "flow:bandwidth=154e6,injection=136.5e6".to_string();
        let (machine, compute_seconds) = (&machine, 0.2e-3);
        let run = Run { machine, network, compute_seconds, iterations: 4000, simulated: SIMULATED };
        let time = |strategy, seed| {
            let placement = assign(strategy, &tasks, &**machine, seed)?.pe_of;
            Ok::<_, Failure>(run.time(&tasks, &placement)?.seconds)
        };
        let mut random = 0.0;
        for seed in 0..seeds {
            random += time(RANDOM, options.seed.wrapping_add(seed))? / seeds as f64;
        }
        Ok((machine.pes(), [time(TOPOLB, options.seed)?, time(TOPOCENTLB, options.seed)?, random]))
    })
}

fn bluegene(options: &Options, kind: &'static str) -> Result<FigureResult, Failure> {
    let all = jacobi(options, kind)?;
    let mut rows = Rows::new([
        ("pes", "p"),
        ("topolb_seconds", "TopoLB s"),
        ("topocentlb_seconds", "TopoCentLB s"),
        ("random_seconds", "random s"),
    ]);
    for (pes, seconds) in &all {
        rows.push([Cell::Count(*pes as u64)].into_iter().chain(seconds.map(Cell::Number)));
    }
    let series = ["TopoLB", "TopoCentLB", "random"].into_iter().enumerate().map(|(which, name)| {
        Series::measured(
            name,
            all.iter().map(|(pes, seconds)| (*pes as f64, seconds[which])).collect::<Vec<_>>(),
        )
    });
    let chart = Chart {
        x: Axis::log("processors"),
        y: Axis::linear("seconds of 4000 iterations"),
        series: series.collect(),
    };
    let measured = |(pes, [a, b, c]): &&Jacobi| format!("{a:.2}, {b:.2} and {c:.2} s at p = {pes}");
    let mut criteria = vec![Criterion::every(
        "TopoLB and TopoCentLB are faster than random everywhere",
        &all,
        |(_, [a, b, c])| c - a.max(*b),
        measured,
    )];
    if kind == "mesh" {
        let tori = jacobi(options, "torus")?;
        let pairs = || all.iter().zip(&tori);
        criteria.push(Criterion::every(
            "TopoLB and random are not faster on the mesh than on the torus (TopoCentLB may be)",
            pairs(),
            |((_, mesh), (_, torus))| (mesh[0] - torus[0]).min(mesh[2] - torus[2]) + 1e-9,
            |(mesh, torus)| format!("mesh {}, torus {}", measured(mesh), measured(torus)),
        ));
        let lost =
            |which: usize| move |((_, mesh), (_, torus)): (&Jacobi, &Jacobi)| mesh[which] / torus[which];
        let small = || pairs().filter(|((pes, _), _)| *pes <= 256);
        let mean = |which| small().map(lost(which)).sum::<f64>() / small().count().max(1) as f64;
        criteria.push(Criterion::new(
            "without wraparound links, random slows down more than TopoLB, on average over p <= 256",
            format!("{:.2} times, TopoLB {:.2} times", mean(2), mean(0)),
            mean(2) > mean(0),
        ));
    }
    Ok(FigureResult { rows, chart, criteria })
}
