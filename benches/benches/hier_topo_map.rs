//! `cargo bench -p equipoise-benches --bench hier_topo_map [-- --small --rounds N --json FILTER]`: the run time of
//! `HierTopoMap`, and its quality compared with METIS's own order and with TreeMatch.
//!
//! A mapping goes from neighbor lists to a permutation, including the comparison with the rank order, on all threads of
//! the machine. Its floor is METIS alone, which partitions the same processes into one group per node. The targets are
//! seconds on two cores, and those of section 5.2.2 of the paper. The alternative to neighbor joining examines all pairs
//! for every joined pair. The task graphs for the ratios of hop-bytes are outside the repository; without them, and in
//! small mode, a generated mesh is used.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use equipoise_benches::Measurement;
use equipoise_model::graph::Graph;
use equipoise_model::{Database, Topology, topology};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::mapping::hier_topo_map::coordinates::bipartition;
use equipoise_strategies::mapping::hier_topo_map::joining::join;
use equipoise_strategies::mapping::hier_topo_map::{HierTopoMap, Inter, topomap};
use equipoise_strategies::partition::metis;
use equipoise_strategies::registry;
use equipoise_strategies::workloads;

/// A task graph with one process per PE of a machine: both specs, and smaller ones for small mode.
struct Case {
    name: &'static str,
    tasks: (&'static str, &'static str),
    machine: (&'static str, &'static str),
    inter: Inter,
    target_seconds: Option<f64>,
}

/// The workload of tables 5 to 7: a product with a KKT matrix.
const KKT_8192: (&str, &str) = ("spmv:8192,kkt:44", "spmv:64,kkt:6");
const STENCIL_8192: (&str, &str) = ("mesh:32x16x16", "mesh:4x4x4");
const FAT_TREE: (&str, &str) = ("fattree:32:16*tree:2:8", "fattree:2:2*tree:2:8");

const CASES: &[Case] = &[
    Case {
        name: "KKT matrix, 8192 processes, fat tree of 512 nodes",
        tasks: KKT_8192,
        machine: FAT_TREE,
        inter: Inter::Auto,
        target_seconds: Some(0.3),
    },
    Case {
        name: "3D stencil, 8192 processes, fat tree of 512 nodes",
        tasks: STENCIL_8192,
        machine: FAT_TREE,
        inter: Inter::Auto,
        target_seconds: Some(0.3),
    },
    Case {
        name: "KKT matrix, 8192 processes, torus of 2048 nodes, bipart",
        tasks: KKT_8192,
        machine: ("torus:8x16x16*tree:4", "torus:4x2x2*tree:4"),
        inter: Inter::Bipart,
        target_seconds: None,
    },
    Case {
        name: "KKT matrix, 8192 processes, torus of 2048 nodes, tree",
        tasks: KKT_8192,
        machine: ("torus:8x16x16*tree:4", "torus:4x2x2*tree:4"),
        inter: Inter::Tree,
        target_seconds: None,
    },
    Case {
        name: "recursive bipartition, 65,536 nodes of a torus, stencil",
        tasks: ("mesh:64x32x32", "mesh:4x4x4"),
        machine: ("torus:32x32x64", "torus:4x4x4"),
        inter: Inter::Bipart,
        target_seconds: Some(2.0),
    },
];

/// A task graph as neighbor lists (the input of an MPI program) and as a graph.
type Tasks = Arc<(Vec<Vec<(u32, u64)>>, Graph)>;

/// The tasks of a spec, computed once: generating a matrix takes longer than any measurement.
fn tasks(spec: &'static str) -> Tasks {
    static ALL: OnceLock<Mutex<HashMap<&str, Tasks>>> = OnceLock::new();
    let mut all = ALL.get_or_init(Mutex::default).lock().expect("no thread panics while it holds this lock");
    let make = || {
        let database = workloads::load(spec).expect("the spec of a graph");
        let graph = Graph::of(&database);
        let higher = |v: usize| graph.neighbors(v).filter(move |&(u, _)| u > v);
        let lists = (0..graph.vertices()).map(|v| higher(v).map(|(u, bytes)| (u as u32, bytes)).collect());
        Arc::new((lists.collect(), graph))
    };
    Arc::clone(all.entry(spec).or_insert_with(make))
}

fn machine(spec: &str) -> Arc<dyn Topology> {
    topology::parse(spec).expect("the spec of a machine")
}

fn pick(small: bool, (full, little): (&'static str, &'static str)) -> &'static str {
    if small { little } else { full }
}

fn seconds(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

/// The time of a whole mapping in seconds.
fn map(case: &Case, small: bool) -> f64 {
    let (tasks, machine) = (tasks(pick(small, case.tasks)), machine(pick(small, case.machine)));
    let mapper = HierTopoMap { inter: case.inter, ..HierTopoMap::default() };
    seconds(|| {
        black_box(topomap(&tasks.0, &*machine, mapper, 1).expect("HierTopoMap supports this case"));
    })
}

/// The time in seconds in which METIS partitions the same processes into one group per node.
fn partition(case: &Case, small: bool) -> f64 {
    let (tasks, pes) = (tasks(pick(small, case.tasks)), machine(pick(small, case.machine)).pes());
    let parts = pes / if case.machine.0.contains("tree:2:8") { 16 } else { 4 };
    seconds(|| {
        let ones = vec![1; tasks.1.vertices()];
        black_box(metis::partition(&tasks.1, &ones, parts, 0.0, metis::Method::Recursive, 1))
            .expect("METIS supports this graph");
    })
}

/// A 3D torus of `nodes` nodes.
fn torus(nodes: usize) -> Arc<dyn Topology> {
    let sizes = [1, 2, 4, 8, 16].map(|x: usize| (x, nodes / x));
    let (x, rest) = sizes
        .into_iter()
        .rev()
        .find(|(x, rest)| x * x * x <= nodes && nodes % x == 0 && rest >= x)
        .unwrap_or((1, nodes));
    let y = (1..=rest).rev().find(|y| y * y <= rest && rest % y == 0).unwrap_or(1);
    machine(&format!("torus:{x}x{y}x{}", rest / y))
}

fn joining(machine: &dyn Topology) -> f64 {
    seconds(|| {
        black_box(join(machine.pes(), |node, row| machine.distances_from(node, row)))
            .expect("the machine is small enough");
    })
}

/// The time of neighbor joining that examines all pairs for every joined pair: O(n^3).
fn joining_of_all_pairs(machine: &dyn Topology) -> f64 {
    let nodes = machine.pes();
    seconds(|| {
        let mut rows: Vec<Vec<u32>> = vec![vec![0; nodes]; nodes];
        rows.iter_mut().enumerate().for_each(|(node, row)| machine.distances_from(node, row));
        let (mut sizes, mut active) = (vec![1u64; nodes], (0..nodes).collect::<Vec<_>>());
        while active.len() > 1 {
            let pairs =
                active.iter().enumerate().flat_map(|(at, &a)| active[at + 1..].iter().map(move |&b| (a, b)));
            // `rows` holds sums over all pairs of nodes of the two subtrees.
            let mean = |(a, b): (usize, usize)| f64::from(rows[a][b]) / (sizes[a] * sizes[b]) as f64;
            let (a, b) = pairs.min_by(|&p, &q| mean(p).total_cmp(&mean(q))).expect("there are two");
            for &other in &active {
                let sum = rows[a][other] + rows[b][other];
                (rows[a][other], rows[other][a]) = (sum, sum);
            }
            sizes[a] += sizes[b];
            active.retain(|&one| one != b);
        }
        black_box(&sizes);
    })
}

/// The growth exponent of the time of joining: the slope of a fit of log(time) over log(nodes).
fn joining_exponent(small: bool) -> f64 {
    let sizes: &[usize] = if small { &[64, 128] } else { &[256, 512, 1024, 2048] };
    let least = |nodes: usize| (0..3).map(|_| joining(&*torus(nodes))).fold(f64::INFINITY, f64::min);
    let logs: Vec<(f64, f64)> = sizes.iter().map(|&nodes| ((nodes as f64).ln(), least(nodes).ln())).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(|log| log.0), mean(|log| log.1));
    let covariance: f64 = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum();
    covariance / logs.iter().map(|log| (log.0 - x).powi(2)).sum::<f64>()
}

/// The trees, and the names of the task graphs outside the repository.
const TREES: [&str; 2] = ["tree:4:8:4/100:10:1", "tree:16:8:4/100:10:1"];
const MESHES: [&str; 3] = ["4elt", "cti", "delaunay_n15"];

/// By task graph, tree, and whether in small mode: the ratios to METIS's order and to TreeMatch.
type Ratios = HashMap<(&'static str, &'static str, bool), [f64; 2]>;

/// The hop-bytes of `HierTopoMap` divided by those of METIS's groups in their own order, or as TreeMatch places them. The
/// ratio is deterministic, so it is computed only in the first round.
fn ratio(mesh: &'static str, tree: &'static str, other: Other, small: bool) -> f64 {
    static KNOWN: OnceLock<Mutex<Ratios>> = OnceLock::new();
    let mut known =
        KNOWN.get_or_init(Mutex::default).lock().expect("no thread panics while it holds this lock");
    let [metis, treematch] = *known.entry((mesh, tree, small)).or_insert_with(|| ratios(mesh, tree, small));
    match other {
        Other::Metis => metis,
        Other::TreeMatch => treematch,
    }
}

fn ratios(mesh: &str, tree: &str, small: bool) -> [f64; 2] {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference/graphs"));
    let path = path.join(format!("{mesh}.graph"));
    let spec = if path.exists() && !small { path.display().to_string() } else { "mesh:60x60".to_string() };
    let machine = machine(tree);
    let pes = machine.pes();
    let mut tasks = workloads::load(&spec).expect("a task graph").remap(pes as u32);
    let hop_bytes = |tasks: &Database, spec: &str| {
        let choice = registry::parse(spec, &[]).expect("the spec of a strategy");
        let answer = choice.strategy.assign(tasks, &*machine, 0).expect("the strategy supports this machine");
        let mut loads = vec![0u32; pes];
        answer.pe_of.iter().for_each(|&pe| loads[pe as usize] += 1);
        let average = tasks.objects.len() as f64 / pes as f64;
        let most = f64::from(loads.into_iter().max().unwrap_or(0));
        assert!(most <= average.ceil().max(1.03 * average), "{spec}: {most} of {average} on average");
        volume(tasks, &*machine, &answer.pe_of)
    };
    let ours = hop_bytes(&tasks, "HierTopoMap");
    let (graph, ones) = (Graph::of(&tasks), vec![1; tasks.objects.len()]);
    let groups = metis::partition(&graph, &ones, pes, 0.03, metis::Method::Recursive, 0)
        .expect("METIS supports this graph");
    tasks.objects.iter_mut().zip(groups).for_each(|(object, group)| object.pe = group);
    let in_order = volume(&tasks, &*machine, &tasks.placement());
    [ours / in_order, ours / hop_bytes(&tasks, "TreeMatch:groups=keep")]
}

/// The placement that `HierTopoMap` is compared with.
#[derive(Clone, Copy)]
enum Other {
    Metis,
    TreeMatch,
}

fn volume(tasks: &Database, machine: &dyn Topology, placement: &[u32]) -> f64 {
    let communication = Metrics::of(tasks, machine, placement).communication;
    communication.expect("task graphs have communication").hop_bytes as f64
}

fn measurements() -> Vec<Measurement> {
    let mut all: Vec<Measurement> = Vec::new();
    let name = |name: String| -> &'static str { Box::leak(name.into_boxed_str()) };
    for case in CASES {
        let floor = name(format!("floor: METIS alone, {}", case.name));
        all.push(Measurement {
            name: floor,
            unit: "s",
            target: None,
            floor: None,
            take: Box::new(|small| partition(case, small)),
        });
        all.push(Measurement {
            name: case.name,
            unit: "s",
            target: case.target_seconds,
            floor: Some(floor),
            take: Box::new(|small| map(case, small)),
        });
    }
    let mut add = |name: &'static str, unit, target, floor, take: Box<dyn Fn(bool) -> f64>| {
        all.push(Measurement { name, unit, target, floor, take });
    };
    let nodes = |small: bool, nodes| torus(if small { 64 } else { nodes });
    let pairs = "second implementation: all pairs, 512 nodes";
    add(pairs, "s", None, None, Box::new(move |small| joining_of_all_pairs(&*nodes(small, 512))));
    add(
        "neighbor joining, 512 nodes",
        "s",
        None,
        Some(pairs),
        Box::new(move |small| joining(&*nodes(small, 512))),
    );
    add(
        "neighbor joining, 2048 nodes",
        "s",
        Some(0.3),
        None,
        Box::new(move |small| joining(&*nodes(small, 2048))),
    );
    add("neighbor joining, exponent, 256 to 2048 nodes", "", Some(2.0), None, Box::new(joining_exponent));
    add(
        "bipartition of 65,536 nodes by coordinates",
        "s",
        None,
        None,
        Box::new(|small| {
            let numbers: Vec<u32> = (0..if small { 64 } else { 1 << 16 }).collect();
            seconds(|| _ = black_box(bipartition(&[32, 32, 64], &numbers)))
        }),
    );
    for tree in TREES {
        for mesh in MESHES {
            for (called, other, target) in [
                ("METIS in its own order", Other::Metis, 1.05),
                ("TreeMatch on the same groups", Other::TreeMatch, 1.0),
            ] {
                let take: Box<dyn Fn(bool) -> f64> = Box::new(move |small| ratio(mesh, tree, other, small));
                let name = name(format!("{mesh}, {tree}: over {called}"));
                all.push(Measurement { name, unit: "", target: Some(target), floor: None, take });
            }
        }
    }
    all
}

fn main() {
    equipoise_benches::run(measurements());
}
