//! `cargo bench -p equipoise-benches --bench poise [-- --small --rounds N --json FILTER]`: how good the placements of
//! `PoiseLB` are, and how long it thinks, on one thread.
//!
//! Hop-bytes are given as a ratio to the best known, geometric means over task graphs; the targets are those of its
//! design. Seconds are those of the processor where the system tells them. The reference data lies beside the project;
//! where it is not at hand, and in small mode, generated task graphs stand in, whose ratio is to their own mapping in
//! blocks.

use std::path::PathBuf;
use std::time::Instant;

use equipoise_benches::Measurement;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::{Database, graph, registry, topology};

/// Task graphs on machines.
struct Set {
    name: &'static str,
    machines: &'static [&'static str],
    /// As the table of the best known calls them.
    graphs: &'static [&'static str],
    /// By quality: the ratio and the seconds aimed at.
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

/// Generated grids on large tori: the task graph, the machine, a smaller machine for small mode, and the hop-bytes and
/// seconds aimed at.
const GRIDS: &[(&str, &str, &str, Option<f64>, f64)] = &[
    ("mesh:64x64x64", "torus:16x16x16", "torus:4x4x4", Some(250_000.0), 4.0),
    ("mesh:100x100x100", "torus:32x32x64", "torus:4x4x8", None, 25.0),
];

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

/// The fewest hop-bytes known of a task graph on a machine.
fn best_known(graph: &str, machine: &str) -> Option<f64> {
    let table = std::fs::read_to_string(reference("graphs/best_known.csv")).ok()?;
    let row = table.lines().find_map(|line| line.strip_prefix(&format!("{graph},{machine},")))?;
    row.split(',').next()?.parse().ok()
}

/// Seconds this thread has had a processor, or those of the clock where the system does not say.
fn processor_seconds(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = text.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds * 1e-9)
}

/// The hop-bytes and seconds of a mapping.
fn place(tasks: &Database, machine: &str, quality: &str) -> (f64, f64) {
    let machine = topology::parse(machine).expect("the spec of a machine");
    let spec = format!("PoiseLB:gamma=0,quality={quality}");
    let choice = registry::parse(&spec, &[]).expect("the spec of a strategy");
    let start = Instant::now();
    let before = processor_seconds(start);
    let answer = choice.strategy.assign(tasks, &*machine, 1).expect("it serves every machine");
    let seconds = processor_seconds(start) - before;
    (hop_bytes(tasks, &*machine, &answer.pe_of), seconds)
}

fn hop_bytes(tasks: &Database, machine: &dyn topology::Topology, placement: &[u32]) -> f64 {
    let communication = Metrics::of(tasks, machine, placement).communication;
    communication.expect("task graphs have communication").hop_bytes as f64
}

/// The geometric means of the ratio and the seconds over a set.
fn measure(set: &Set, quality: &str, small: bool) -> (f64, f64) {
    let (mut ratios, mut times, mut count) = (0.0, 0.0, 0.0);
    for machine in set.machines {
        let pes = topology::parse(machine).expect("the spec of a machine").pes();
        for name in set.graphs {
            let known = best_known(name, machine).filter(|_| !small);
            let tasks = match known {
                Some(_) => {
                    graph::load(&file(name).display().to_string()).expect("a task graph").remap(pes as u32)
                }
                None => graph::load("mesh:12x12").expect("a mesh").remap(pes as u32),
            };
            let machine_of = topology::parse(machine).expect("the spec of a machine");
            let known = known.unwrap_or_else(|| hop_bytes(&tasks, &*machine_of, &tasks.placement()));
            let (hop_bytes, seconds) = place(&tasks, machine, quality);
            ratios += (hop_bytes / known).ln();
            times += seconds.max(1e-4).ln();
            count += 1.0;
        }
    }
    (f64::exp(ratios / count), f64::exp(times / count))
}

fn measurements() -> Vec<Measurement> {
    let mut all = Vec::new();
    let mut add = |name: String, unit, target, take: Box<dyn Fn(bool) -> f64>| {
        all.push(Measurement { name: Box::leak(name.into_boxed_str()), unit, target, floor: None, take });
    };
    for set in SETS {
        for (quality, (ratio, seconds)) in QUALITIES.into_iter().zip(set.targets) {
            add(
                format!("{}, {quality}: hop-bytes", set.name),
                "of the best known",
                ratio,
                Box::new(move |small| measure(set, quality, small).0),
            );
            add(
                format!("{}, {quality}: time", set.name),
                "s",
                seconds,
                Box::new(move |small| measure(set, quality, small).1),
            );
        }
    }
    for &(tasks, machine, little, hop_bytes, seconds) in GRIDS {
        let run = move |small: bool| {
            let (tasks, machine) = if small { ("mesh:12x12x12", little) } else { (tasks, machine) };
            let pes = topology::parse(machine).expect("the spec of a machine").pes();
            place(&graph::load(tasks).expect("a grid").remap(pes as u32), machine, "fast")
        };
        // An edge of a generated grid carries a byte each way.
        let take: Box<dyn Fn(bool) -> f64> = Box::new(move |small| run(small).0 / 2.0);
        add(format!("{tasks} on {machine}, fast: hop-bytes of edges of weight 1"), "", hop_bytes, take);
        add(
            format!("{tasks} on {machine}, fast: time"),
            "s",
            Some(seconds),
            Box::new(move |small| run(small).1),
        );
    }
    all
}

fn main() {
    // The figures it is compared with are of one thread.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    // On the thread of the pool, so that what the system says of this thread is all there was to do.
    pool.install(|| equipoise_benches::run(measurements()));
}
