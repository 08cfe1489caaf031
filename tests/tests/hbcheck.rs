//! Hop-bytes, link loads and balance as an independent program computes them.

use std::process::Command;

use equipoise_tests::{Place, reference};
use serde_json::Value;

/// What the checker says about a mapping in `place`; `None`, said aloud, if it cannot run here.
fn checked(place: &Place, graph: &str, topology: &str) -> Option<Value> {
    let checker = reference("checker")?.join("hbcheck.py");
    let mut python = Command::new("python3");
    python.arg(checker).args(["--graph", graph, "--topo", topology, "--map", "some.map", "--json"]);
    let output = match python.current_dir(place.path()).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: python3 cannot be started ({error})");
            return None;
        }
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{graph} on {topology}: {told}");
    Some(serde_json::from_slice(&output.stdout).expect("a document"))
}

/// Maps `graph` to `topology` and compares what both say of the mapping. The checker's edges have
/// undirected weights, each a message; loads are the weights of vertices.
fn check(place: &Place, graph: &str, topology: &str, balancer: &str) -> bool {
    check_on(place, graph, [topology; 2], balancer)
}

/// The same for a machine that is called something else there.
fn check_on(place: &Place, graph: &str, [topology, theirs]: [&str; 2], balancer: &str) -> bool {
    let mapped = place.run(&format!(
        "map --graph {graph} --topology {topology} --balancer {balancer} --output some.map --format json"
    ));
    let mapped = mapped.document();
    let line = format!("evaluate --graph {graph} --topology {topology} --mapping some.map --format json");
    let ours = place.run(&line).document();
    let Some(theirs) = checked(place, graph, theirs) else { return false };
    let name = format!("{graph} on {topology} with {balancer}");
    // A generated edge has a byte each way here, and weight 1 there.
    let weight = if graph.contains(':') { 2.0 } else { 1.0 };
    // The checker halves an odd weight, which no byte can be.
    let is_halved = weight == 2.0 || graph == EVEN;
    let same = |field: &str, their_field: &str, factor: f64| {
        let (a, b) = (ours[field].as_f64(), theirs[their_field].as_f64().map(|value| value * factor));
        let (a, b) = (a.expect("a number"), b.expect("a number"));
        assert!((a - b).abs() <= 1e-9 * b.abs(), "{name}: {field} is {a}, and {their_field} is {b}");
    };
    same("objects", "tasks", 1.0);
    same("pes", "pes", 1.0);
    same("hop_bytes", "hop_bytes", weight);
    same("total_bytes", "bytes_total", weight);
    same("remote_bytes", "bytes_inter_pe", weight);
    same("hops_per_byte", "hops_per_byte", 1.0);
    same("hops_per_remote_byte", "hops_per_inter_byte", 1.0);
    same("max_dilation", "max_dilation", 1.0);
    same("max_load_seconds", "max_load", 1.0);
    same("average_load_seconds", "avg_load", 1.0);
    if is_halved && theirs.get("max_link_load").is_some() {
        same("max_link_bytes", "max_link_load", weight);
        same("mean_link_bytes", "avg_link_load", weight);
    }
    assert_eq!(mapped["hop_bytes"], ours["hop_bytes"], "{name}");
    true
}

/// A file of a task graph whose weights are even, so that half of each goes each way.
const EVEN: &str = "even.graph";

/// Distances between 6 PEs that no other machine has.
const DISTANCES: [[u32; 6]; 6] = [
    [0, 3, 7, 2, 9, 4],
    [3, 0, 5, 6, 1, 8],
    [7, 5, 0, 2, 2, 3],
    [2, 6, 2, 0, 5, 1],
    [9, 1, 2, 5, 0, 6],
    [4, 8, 3, 1, 6, 0],
];

#[test]
fn an_independent_program_finds_the_same_numbers_for_a_matrix_of_distances() {
    let place = Place::new();
    let rows = DISTANCES.map(|row| row.map(|distance| distance.to_string()).join(" ")).join("\n");
    place.put("mine", &rows);
    for (graph, balancer) in [("mesh:4x3", "RandomLB"), ("torus:3x2", "TopoLB"), ("mesh:6x5", "TreeMatch")] {
        // The checker's files begin with the number of PEs, and ours do not.
        place.put("theirs", format!("6\n{rows}"));
        if !check_on(&place, graph, ["matrix:mine", "matrix:theirs"], balancer) {
            return;
        }
    }
}

#[test]
fn an_independent_program_finds_the_same_link_loads_for_even_weights() {
    let place = Place::new();
    // A ring of 24 tasks with chords, whose weights differ.
    let weight = |a: usize, b: usize| 2 * (1 + (a.min(b) * 7 + a.max(b) * 5) % 11);
    let line = |v: usize| {
        let neighbors = [1, 5, 19, 23].map(|step| (v + step) % 24);
        neighbors.map(|u| format!("{} {}", u + 1, weight(v, u))).join(" ")
    };
    place.put(EVEN, format!("24 48 1\n{}\n", (0..24).map(line).collect::<Vec<_>>().join("\n")));
    for topology in ["torus:4x3x2", "mesh:6x4", "torus:5x3"] {
        for balancer in ["RandomLB", "TopoLB"] {
            if !check(&place, EVEN, topology, balancer) {
                return;
            }
        }
    }
}

#[test]
fn an_independent_program_finds_the_same_numbers_for_generated_graphs() {
    let place = Place::new();
    let machines = [
        "torus:4x4x4",
        "torus:8x2",
        "torus:5x3",
        "mesh:8x8",
        "mesh:7x3x2",
        "hypercube:5",
        "tree:4:4:4/100:10:1",
    ];
    let runs = [
        ("mesh:8x8", "RandomLB"),
        ("mesh:8x8", "TopoLB"),
        ("mesh:8x8", "TreeMatch"),
        ("torus:6x4x3", "TopoCentLB"),
        ("torus:6x4x3", "RecBipartLB+RefineTopoLB"),
    ];
    for topology in machines {
        for (graph, balancer) in runs {
            if !check(&place, graph, topology, balancer) {
                return;
            }
        }
    }
}

#[test]
fn an_independent_program_finds_the_same_numbers_for_graphs_from_files() {
    let Some(folder) = reference("graphs") else { return };
    let place = Place::new();
    for name in ["add20.graph", "cg_size_64.graph", "mesh16x16_shuffled.graph"] {
        place.put(name, std::fs::read(folder.join(name)).expect("a graph"));
        for topology in ["torus:4x4x4", "mesh:16x4", "tree:4:16/3:1"] {
            if !check(&place, name, topology, "RandomLB") {
                return;
            }
        }
    }
}
