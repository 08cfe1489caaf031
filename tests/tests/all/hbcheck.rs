//! Hop-bytes, link loads and balance, compared with those of an independent program.

use std::process::Command;

use equipoise_model::testing::{at_full_size, is_chosen};
use equipoise_tests::{Sandbox, reference};
use serde_json::Value;

/// The results of the checker for a mapping in `sandbox`; `None`, with a note on stderr, if the checker cannot run.
fn checked(sandbox: &Sandbox, graph: &str, topology: &str) -> Option<Value> {
    let checker = reference("checker")?.join("hbcheck.py");
    let mut python = Command::new("python3");
    python.arg(checker).args(["--graph", graph, "--topo", topology, "--map", "some.map", "--json"]);
    let output = match python.current_dir(sandbox.path()).output() {
        Ok(output) => output,
        Err(error) => {
            equipoise_tests::skip(&format!("python3 cannot be started ({error})"));
            return None;
        }
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{graph} on {topology}: {stderr}");
    Some(serde_json::from_slice(&output.stdout).expect("a document"))
}

/// Maps `graph` to `topology` and compares the results of both programs for the mapping. The checker's edges have
/// undirected weights, and each edge is a message; loads are the weights of vertices.
fn check(sandbox: &Sandbox, graph: &str, topology: &str, balancer: &str) -> bool {
    check_on(sandbox, graph, [topology; 2], balancer)
}

/// The same for a machine with another name in the checker.
fn check_on(sandbox: &Sandbox, graph: &str, [topology, theirs]: [&str; 2], balancer: &str) -> bool {
    let mapped = sandbox.run(&format!(
        "map --graph {graph} --topology {topology} --balancer {balancer} --output some.map --format json"
    ));
    let mapped = mapped.document();
    let line = format!("evaluate --graph {graph} --topology {topology} --mapping some.map --format json");
    let ours = sandbox.run(&line).document();
    let Some(theirs) = checked(sandbox, graph, theirs) else { return false };
    let name = format!("{graph} on {topology} with {balancer}");
    // A generated edge has 1 byte each way here, and weight 1 in the checker.
    let weight = if graph.contains(':') { 2.0 } else { 1.0 };
    // The checker halves weights; half of an odd weight is not a number of bytes.
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

/// A file of a task graph with even weights: half of each weight goes each way.
const EVEN: &str = "even.graph";

/// Distances between 6 PEs that do not occur in another kind of machine.
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
    let sandbox = Sandbox::new();
    let rows = DISTANCES.map(|row| row.map(|distance| distance.to_string()).join(" ")).join("\n");
    sandbox.put("mine", &rows);
    for (graph, balancer) in [("mesh:4x3", "RandomLB"), ("torus:3x2", "TopoLB"), ("mesh:6x5", "TreeMatch")] {
        // The checker's files begin with the number of PEs; those of `matrix:` do not.
        sandbox.put("theirs", format!("6\n{rows}"));
        if !check_on(&sandbox, graph, ["matrix:mine", "matrix:theirs"], balancer) {
            return;
        }
    }
}

#[test]
fn an_independent_program_finds_the_same_link_loads_for_even_weights() {
    let sandbox = Sandbox::new();
    // A ring of 24 tasks with chords, whose weights differ.
    let weight = |a: usize, b: usize| 2 * (1 + (a.min(b) * 7 + a.max(b) * 5) % 11);
    let line = |v: usize| {
        let neighbors = [1, 5, 19, 23].map(|step| (v + step) % 24);
        neighbors.map(|u| format!("{} {}", u + 1, weight(v, u))).join(" ")
    };
    sandbox.put(EVEN, format!("24 48 1\n{}\n", (0..24).map(line).collect::<Vec<_>>().join("\n")));
    for topology in ["torus:4x3x2", "mesh:6x4", "torus:5x3"] {
        for balancer in ["RandomLB", "TopoLB"] {
            if !check(&sandbox, EVEN, topology, balancer) {
                return;
            }
        }
    }
}

#[test]
fn an_independent_program_finds_the_same_numbers_for_generated_graphs() {
    let sandbox = Sandbox::new();
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
    for (number, topology) in machines.into_iter().enumerate() {
        for (_, (graph, balancer)) in
            runs.into_iter().enumerate().filter(|(run, _)| is_chosen(*run, number, 4))
        {
            if !check(&sandbox, graph, topology, balancer) {
                return;
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn an_independent_program_finds_the_same_numbers_for_all_generated_graphs() {
    at_full_size(&[an_independent_program_finds_the_same_numbers_for_generated_graphs]);
}

#[test]
fn an_independent_program_finds_the_same_numbers_for_graphs_from_files() {
    let Some(folder) = reference("graphs") else { return };
    let sandbox = Sandbox::new();
    for name in ["add20.graph", "cg_size_64.graph", "mesh16x16_shuffled.graph"] {
        sandbox.put(name, std::fs::read(folder.join(name)).expect("a graph"));
        for topology in ["torus:4x4x4", "mesh:16x4", "tree:4:16/3:1"] {
            if !check(&sandbox, name, topology, "RandomLB") {
                return;
            }
        }
    }
}
