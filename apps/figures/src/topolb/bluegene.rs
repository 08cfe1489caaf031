//! Table 1 and figures 10 and 11 of the TopoLB paper: the time of Jacobi iterations on BlueGene/L.
//!
//! T. Agarwal, A. Sharma, L. V. Kalé, "Topology-aware task mapping for reducing communication contention
//! on large parallel machines", IPDPS 2006, sections 1 and 5.4. Tasks on a mesh exchange messages with their neighbors.
//! The network model is `flow`. BlueGene's nodes inject 136.5e6 bytes per second (the optimal column of table 1 is
//! 0.18 ms + 6 messages at that rate); a link carries 175e6 (154e6 after the overhead of packets, which figures 10 and 11
//! use).

use equipoise_apps::Failure;
use equipoise_model::table::bytes;
use equipoise_model::topology;

use super::network::{ALL, RANDOM, Run, SIMULATED, median, mesh, numbered};
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
    paper_shows: "on 512 nodes, random mapping takes up to 2.7 times as long as the optimal one",
    we_show: "the time of the same iterations on a model of BlueGene/L",
    why: "injection bounds the optimal mapping, busy links the random one",
    takes: "a minute",
    notes: "Random is a mean of random mappings. BlueGene/L routes adaptively among shortest paths; this network has fixed \
            routes. Iterations are simulated until they repeat exactly, at most 80 of the 200 (40 in the small version).",
    run: table1,
};

/// Figure 10.
pub(crate) const TOPOLB_10: Figure = Figure {
    name: "topolb-10",
    title: "4000 Jacobi iterations of 100 kB messages on BlueGene/L tori",
    paper: "Agarwal, Sharma, Kalé 2006, figure 10",
    paper_shows: "TopoLB and TopoCentLB are faster than random mapping on BlueGene/L tori",
    we_show: "the time of the same iterations on a model of BlueGene/L, with random numberings",
    why: "their messages travel few hops",
    takes: "half a minute",
    notes: BLUEGENE,
    run: |options| bluegene(options, "torus"),
};

/// Figure 11.
pub(crate) const TOPOLB_11: Figure = Figure {
    name: "topolb-11",
    title: "4000 Jacobi iterations of 100 kB messages on BlueGene/L meshes",
    paper: "Agarwal, Sharma, Kalé 2006, figure 11",
    paper_shows: "times are longer on meshes, most for random mapping",
    we_show: "the same on meshes, next to tori",
    why: "the busiest link decides, and on meshes TopoLB has one",
    takes: "a minute",
    notes: BLUEGENE,
    run: |options| bluegene(options, "mesh"),
};

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
    let (seeds, simulated) = if options.small { (1, SIMULATED / 2) } else { (5, SIMULATED) };
    let all = options.sweep_labelled(PAPER_TABLE1.map(|row| (row.0, row)), |row| {
        let (size, paper_random, paper_optimal) = row;
        let tasks = mesh("8x8x8", size, machine.pes())?;
        let network = "flow:bandwidth=175e6,injection=136.5e6".to_string();
        let run = Run { machine: &machine, network, compute_seconds: 0.18e-3, iterations: 200, simulated };
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

const BLUEGENE: &str = "Medians over 11 random numberings of tasks and PEs (3 in the small version): TopoLB and TopoCentLB break ties \
                        by numbers, which on these machines decides between perfect and poor mappings. `natural` has the times \
                        with natural numbers, for random the median too. If iterations do not repeat exactly, 80 are \
                        simulated.";

/// Meshes of tasks and the machines of figures 10 and 11.
const SIZES: [(&str, &str); 4] =
    [("8x8", "4x4x4"), ("16x8", "8x4x4"), ("16x16", "8x8x4"), ("16x32", "8x8x8")];

/// The seconds of 4000 iterations on a machine with each of [`ALL`].
struct Jacobi {
    pes: usize,
    /// With natural numbers; for random mappings the median.
    natural: [f64; 3],
    /// Medians over random numberings.
    median: [f64; 3],
}

/// The times on machines of the kind `torus` or `mesh`.
fn jacobi(options: &Options, kind: &str) -> Result<Vec<Jacobi>, Failure> {
    let cases = options.choose(&SIZES, &SIZES[..2]);
    let numberings = if options.small { 3 } else { 11 };
    options.sweep_labelled(cases.iter().map(|case| (case.1, case)), |(sizes, nodes)| {
        let machine = format!("{kind}:{nodes}");
        let times = |seed: Option<u64>| -> Result<[f64; 3], Failure> {
            let (machine, tasks) = numbered(&machine, (sizes, 100_000), seed)?;
            let network = "flow:bandwidth=154e6,injection=136.5e6".to_string();
            let (machine, compute_seconds) = (&machine, 0.2e-3);
            let run = Run { machine, network, compute_seconds, iterations: 4000, simulated: SIMULATED };
            let mut seconds = [0.0; 3];
            for (seconds, strategy) in seconds.iter_mut().zip(ALL) {
                let placement = assign(strategy, &tasks, &**machine, seed.unwrap_or(options.seed))?.pe_of;
                *seconds = run.time(&tasks, &placement)?.seconds;
            }
            Ok(seconds)
        };
        let each = (0..numberings).map(|number| times(Some(options.seed.wrapping_add(2 * number))));
        let each = each.collect::<Result<Vec<_>, Failure>>()?;
        let median = [0, 1, 2].map(|which| median(each.iter().map(|times| times[which]).collect()));
        let [topolb, topocentlb, _] = times(None)?;
        let pes = topology::parse(&machine)?.pes();
        Ok(Jacobi { pes, natural: [topolb, topocentlb, median[2]], median })
    })
}

fn bluegene(options: &Options, kind: &'static str) -> Result<FigureResult, Failure> {
    let all = jacobi(options, kind)?;
    let mut rows = Rows::new([
        ("pes", "p"),
        ("topolb_seconds", "TopoLB s"),
        ("topocentlb_seconds", "TopoCentLB s"),
        ("random_seconds", "random s"),
        ("topolb_natural_seconds", "natural: TopoLB s"),
        ("topocentlb_natural_seconds", "TopoCentLB s"),
    ]);
    for Jacobi { pes, natural, median } in &all {
        let times = median.iter().chain(&natural[..2]).map(|seconds| Cell::Number(*seconds));
        rows.push([Cell::Count(*pes as u64)].into_iter().chain(times));
    }
    let series = NAMES.into_iter().enumerate().map(|(which, name)| {
        Series::measured(name, all.iter().map(|it| (it.pes as f64, it.median[which])).collect::<Vec<_>>())
    });
    let chart = Chart {
        x: Axis::log("processors"),
        y: Axis::linear("seconds of 4000 iterations"),
        series: series.collect(),
    };
    let tori = if kind == "mesh" { Some(jacobi(options, "torus")?) } else { None };
    let mut criteria = Vec::new();
    for (numbers, of) in [MEDIANS, NATURAL] {
        let ahead = Criterion::every(
            format!("{numbers}: TopoLB and TopoCentLB are faster than random for every p"),
            &all,
            |it| of(it)[2] - of(it)[0].max(of(it)[1]),
            |it| describe(it, of),
        );
        criteria.push(ahead);
        if let Some(tori) = &tori {
            criteria.extend(of_both(&all, tori, numbers, of));
        }
    }
    Ok(FigureResult { rows, chart, criteria })
}

/// The names of [`ALL`].
const NAMES: [&str; 3] = ["TopoLB", "TopoCentLB", "random"];

/// Times with a kind of numbers.
type Times = fn(&Jacobi) -> [f64; 3];

const MEDIANS: (&str, Times) = ("medians", |it| it.median);
const NATURAL: (&str, Times) = ("natural numbers", |it| it.natural);

fn describe(it: &Jacobi, of: Times) -> String {
    let [a, b, c] = of(it);
    format!("{a:.2}, {b:.2} and {c:.2} s at p = {}", it.pes)
}

/// The criteria that compare meshes with tori.
fn of_both(meshes: &[Jacobi], tori: &[Jacobi], numbers: &str, of: Times) -> [Criterion; 2] {
    let pairs = || meshes.iter().zip(tori);
    let lost = |mesh: &Jacobi, torus: &Jacobi| [0, 1, 2].map(|which| of(mesh)[which] / of(torus)[which]);
    [
        Criterion::every(
            format!("{numbers}: no mapping is faster on the mesh than on the torus, for every p"),
            pairs(),
            |(mesh, torus)| lost(mesh, torus).into_iter().fold(f64::INFINITY, f64::min) - 1.0 + 1e-9,
            |(mesh, torus)| format!("mesh {}, torus {}", describe(mesh, of), describe(torus, of)),
        )
        .because("ties are broken by numbers, and with natural numbers TopoCentLB is lucky on meshes of 64 and 128 PEs"),
        Criterion::every(
            format!(
                "{numbers}: without wraparound links, random slows down more than TopoLB and TopoCentLB, for every p"
            ),
            pairs(),
            |(mesh, torus)| {
                let [topolb, topocentlb, random] = lost(mesh, torus);
                random - topolb.max(topocentlb)
            },
            |(mesh, torus)| {
                let [topolb, topocentlb, random] = lost(mesh, torus);
                format!(
                    "random {random:.3} times, TopoLB {topolb:.3}, TopoCentLB {topocentlb:.3} at p = {}",
                    mesh.pes
                )
            },
        )
        .because(
            "on tori TopoLB's time is nearly that of sending its messages, the least possible, so it has more to lose; on meshes \
             its busiest link carries 5 to 8 messages",
        ),
    ]
}
