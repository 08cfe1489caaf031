//! `cargo bench -p equipoise-benches --bench poise [-- --small --json FILTER]`: the quality of the placements of `PoiseLB`
//! and its run time, on one thread unless stated otherwise.
//!
//! Hop-bytes are a ratio to the best known value (geometric mean over task graphs); the targets are those of the design
//! of `PoiseLB`. The load is the largest load divided by the largest allowed load, so at most 1. Times are CPU seconds.
//! Placements are deterministic, so each is computed once, independent of `--rounds`. The reference data is outside the
//! repository. Without the data, and in small mode, generated task graphs are used; their ratio is to their mapping in
//! blocks.

use std::cell::OnceCell;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use cpu_time::ThreadTime;
use equipoise_benches::Measurement;
use equipoise_model::{Database, topology};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::registry;
use equipoise_strategies::workloads;

/// A set of task graphs and machines.
struct Set {
    name: &'static str,
    machines: &'static [&'static str],
    /// Names in the table of best known values.
    graphs: &'static [&'static str],
    /// By quality: the targets of the ratio and of the seconds.
    targets: [(Option<f64>, Option<f64>); 3],
}

const MESHES: &[&str] = &["4elt", "cti", "delaunay15"];

const SETS: &[Set] = &[
    Set {
        name: "trees",
        machines: &["tree:4:8:4/100:10:1", "tree:16:8:4/100:10:1"],
        graphs: MESHES,
        targets: [(Some(1.08), Some(0.3)), (Some(1.04), Some(0.7)), (Some(1.01), Some(4.0))],
    },
    Set {
        name: "few PEs",
        machines: &["torus:4x4x4", "mesh:8x8"],
        graphs: MESHES,
        targets: [(Some(1.05), None), (Some(1.0), None), (Some(0.97), None)],
    },
    Set {
        name: "tori",
        machines: &["torus:16x16", "torus:8x8x8"],
        graphs: MESHES,
        targets: [(Some(1.03), None), (Some(0.96), None), (Some(0.94), None)],
    },
    Set { name: "nug20", machines: &["mesh:5x4"], graphs: &["nug20"], targets: ONE },
    Set { name: "nug30", machines: &["mesh:6x5"], graphs: &["nug30"], targets: ONE },
    Set { name: "sko42", machines: &["mesh:7x6"], graphs: &["sko42"], targets: ONE },
    Set { name: "sko64", machines: &["mesh:8x8"], graphs: &["sko64"], targets: ONE },
    Set {
        name: "ranks",
        machines: &["torus:4x4x4", "mesh:4x4x4"],
        graphs: &["lulesh", "cg"],
        targets: [(Some(1.08), None), (Some(1.03), None), (Some(1.01), Some(1.0))],
    },
];

const ONE: [(Option<f64>, Option<f64>); 3] =
    [(Some(1.03), None), (Some(1.005), None), (Some(1.001), Some(1.0))];

const QUALITIES: [&str; 3] = ["fast", "default", "best"];

/// A generated grid on a large torus.
struct Grid {
    /// The task graph and the machine.
    large: (&'static str, &'static str),
    /// A task graph and a machine of an eighth of these sizes; the exponent of the time is measured between the two
    /// sizes.
    eighth: (&'static str, &'static str),
    /// The cases that replace `large` and `eighth` in small mode.
    small: [(&'static str, &'static str); 2],
    /// The targets of hop-bytes, seconds and megabytes.
    hop_bytes: Option<f64>,
    seconds: f64,
    megabytes: Option<f64>,
}

const GRIDS: [Grid; 2] = [
    Grid {
        large: ("mesh:64x64x64", "torus:16x16x16"),
        eighth: ("mesh:32x32x32", "torus:8x8x8"),
        small: [("mesh:12x12x12", "torus:4x4x4"), ("mesh:6x6x6", "torus:2x2x2")],
        hop_bytes: Some(250_000.0),
        seconds: 4.0,
        megabytes: None,
    },
    Grid {
        large: ("mesh:100x100x100", "torus:32x32x64"),
        eighth: ("mesh:50x50x50", "torus:16x16x32"),
        small: [("mesh:12x12x12", "torus:4x4x8"), ("mesh:6x6x6", "torus:2x2x4")],
        hop_bytes: None,
        seconds: 25.0,
        megabytes: Some(600.0),
    },
];

/// The target speedup of two threads.
const TWO_THREADS: f64 = 1.4;

/// The allowed relative excess of a load over the average, which is rounded up.
const IMBALANCE: f64 = 0.03;

fn reference(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference")).join(file)
}

/// The file of a task graph.
fn file(graph: &str) -> PathBuf {
    reference(&match graph {
        "delaunay15" => "graphs/delaunay_n15.graph".to_string(),
        "lulesh" | "cg" => format!("graphs/{graph}_size_64.graph"),
        "4elt" | "cti" => format!("graphs/{graph}.graph"),
        _ => format!("qaplib/{graph}_flow.graph"),
    })
}

/// The best known hop-bytes of a task graph on a machine.
fn best_known(graph: &str, machine: &str) -> Option<f64> {
    let table = fs::read_to_string(reference("graphs/best_known.csv")).ok()?;
    let row = table.lines().find_map(|line| line.strip_prefix(&format!("{graph},{machine},")))?;
    row.split(',').next()?.parse().ok()
}

/// The result of a mapping.
struct Placed {
    hop_bytes: f64,
    /// The largest load divided by the largest allowed load.
    load: f64,
    /// CPU time of this thread.
    seconds: f64,
    /// Wall-clock time.
    elapsed_seconds: f64,
    placement: Vec<u32>,
}

fn place(tasks: &Database, machine: &str, quality: &str) -> Placed {
    let machine = topology::parse(machine).expect("the spec of a machine");
    let spec = format!("PoiseLB:gamma=0,quality={quality},imbalance={IMBALANCE}");
    let choice = registry::parse(&spec, &[]).expect("the spec of a strategy");
    let start = Instant::now();
    let own = ThreadTime::now();
    let answer = choice.strategy.assign(tasks, &*machine, 1).expect("PoiseLB supports every machine");
    let seconds = own.elapsed().as_secs_f64();
    let elapsed_seconds = start.elapsed().as_secs_f64();
    let metrics = Metrics::of(tasks, &*machine, &answer.pe_of);
    let allowed = ((1.0 + IMBALANCE) * metrics.average_load_seconds.ceil()).floor();
    Placed {
        hop_bytes: metrics.communication.expect("task graphs have communication").hop_bytes as f64,
        load: metrics.max_load_seconds / allowed.max(metrics.heaviest_object_seconds),
        seconds,
        elapsed_seconds,
        placement: answer.pe_of,
    }
}

/// A task graph, placed in blocks on the PEs of a machine.
fn load(tasks: &str, machine: &str) -> Database {
    let pes = topology::parse(machine).expect("the spec of a machine").pes();
    workloads::load(tasks).expect("a task graph").remap(pes as u32)
}

/// The geometric mean of the ratio over a set, the largest load relative to the allowed load, and the geometric mean of
/// the seconds.
fn measure(set: &Set, quality: &str, small: bool) -> [f64; 3] {
    let (mut ratios, mut times, mut count, mut load_most) = (0.0, 0.0, 0.0, 0.0f64);
    for machine in set.machines {
        for name in set.graphs {
            let known = best_known(name, machine).filter(|_| !small);
            let tasks = match known {
                Some(_) => load(&file(name).display().to_string(), machine),
                None => load("mesh:12x12", machine),
            };
            let known = known.unwrap_or_else(|| {
                let machine = topology::parse(machine).expect("the spec of a machine");
                let blocks = Metrics::of(&tasks, &*machine, &tasks.placement());
                blocks.communication.expect("task graphs have communication").hop_bytes as f64
            });
            let placed = place(&tasks, machine, quality);
            assert!(
                !small || placed.load <= 1.0,
                "{quality} on {machine}: {} of the load allowed",
                placed.load
            );
            ratios += (placed.hop_bytes / known).ln();
            times += placed.seconds.max(1e-4).ln();
            load_most = load_most.max(placed.load);
            count += 1.0;
        }
    }
    [f64::exp(ratios / count), load_most, f64::exp(times / count)]
}

/// The measurements of a grid: hop-bytes for edges of weight 1, the largest load relative to the allowed load, seconds,
/// megabytes, the speedup of two threads, and the time exponent.
fn measure_grid(grid: &Grid, small: bool) -> [f64; 6] {
    let [(tasks, machine), (fewer, part)] = if small { grid.small } else { [grid.large, grid.eighth] };
    let little = place(&load(fewer, part), part, "fast");
    let database = load(tasks, machine);
    reset_peak_memory();
    let one = place(&database, machine, "fast");
    let megabytes = peak_megabytes();
    let pair = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    let two = pair.install(|| place(&database, machine, "fast"));
    assert_eq!(one.placement, two.placement, "{tasks} on {machine}: two threads give a different placement");
    let exponent = (one.seconds / little.seconds).log(8.0);
    // An edge of a generated grid carries one byte in each direction.
    let speedup = one.elapsed_seconds / two.elapsed_seconds;
    [one.hop_bytes / 2.0, one.load, one.seconds, megabytes, speedup, exponent]
}

/// Resets the peak memory of this process, where the operating system supports it.
fn reset_peak_memory() {
    // On other systems, the peak includes earlier measurements.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The peak memory of this process; NaN if the operating system does not report it.
fn peak_megabytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.map_or(f64::NAN, |kibibytes| kibibytes * 1024e-6)
}

fn measurements() -> Vec<Measurement> {
    let mut all = Vec::new();
    let mut add = |name: String, unit, target, take: Box<dyn Fn(bool) -> f64>| {
        all.push(Measurement { name: Box::leak(name.into_boxed_str()), unit, target, floor: None, take });
    };
    // The grids come first, so that their memory does not include memory of other measurements.
    for grid in &GRIDS {
        let once = Rc::new(OnceCell::new());
        let rows = [
            ("hop-bytes, edges of 1", "", grid.hop_bytes),
            ("load", "of allowed", Some(1.0)),
            ("time", "s", Some(grid.seconds)),
            ("most memory", "MB", grid.megabytes),
            ("two threads, at least", "as fast", Some(TWO_THREADS)),
            ("exponent from an eighth", "", None),
        ];
        for (number, (row, unit, target)) in rows.into_iter().enumerate() {
            let once = once.clone();
            let take = move |small| once.get_or_init(|| measure_grid(grid, small))[number];
            let (tasks, machine) = grid.large;
            add(format!("{tasks} on {machine}: {row}"), unit, target, Box::new(take));
        }
    }
    for set in SETS {
        for (quality, (ratio, seconds)) in QUALITIES.into_iter().zip(set.targets) {
            let once = Rc::new(OnceCell::new());
            let rows = [
                ("hop-bytes", "of the best", ratio),
                ("load", "of allowed", Some(1.0)),
                ("time", "s", seconds),
            ];
            for (number, (row, unit, target)) in rows.into_iter().enumerate() {
                let once = once.clone();
                let take = move |small| once.get_or_init(|| measure(set, quality, small))[number];
                add(format!("{}, {quality}: {row}", set.name), unit, target, Box::new(take));
            }
        }
    }
    all
}

fn main() {
    // The values for comparison are for one thread.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    // Everything runs on the thread of the pool, so that its CPU time covers all work.
    pool.install(|| equipoise_benches::run(measurements()));
}
