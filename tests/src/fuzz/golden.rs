//! Golden inputs that no writer of the project makes: files of other programs, and rarely used parts of our formats.

/// A folder with small files of other programs.
pub const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../strategies/model/tests/data");

/// A database in JSON, as a person writes it.
pub const DATABASE: &str = r#"{
  "type": "equipoise-lb-database", "version": 2, "program": "pair --seed 1", "topology": "flat:2",
  "steps": [
    {"step": 0, "arrays": ["blocks", "cells"], "dangling_edges": 1, "communication_recorded": true,
      "pes": [{"speed": 1.5, "wall_seconds": 0.5, "idle_seconds": 0.1, "available": true}, {"background_seconds": 0.25}],
      "objects": [
        {"id": 7, "array": 0, "index": [0, 1], "load_seconds": 0.25, "bytes": 4096, "pe": 0, "migratable": true},
        {"id": 9, "array": 1, "index": [], "load_seconds": 1e-3, "pe": 1, "migratable": false}],
      "edges": [
        {"from": {"object": 0}, "to": {"object": 1}, "messages": 10, "bytes": 64000},
        {"from": {"pe": 0}, "to": {"object": 0}, "messages": 1, "bytes": 8}]},
    {"step": 3, "pes": [{}, {}], "objects": [{"id": 7, "load_seconds": 0.5, "pe": 1}], "edges": []}
  ]
}
"#;

/// A trace in JSON.
pub const TRACE: &str = r#"{
  "topology": "mesh:4", "network": "ideal:hop=0.5,bandwidth=100", "seed": 7, "pes": 4, "seconds": 6.0, "exit": 2,
  "speeds": [[], [[0.5, 2.0]], [], []], "arrays": ["Some"],
  "objects": [{"array": 0, "rank": 0}, {"array": 0, "rank": 9}],
  "messages": [{"to": 5, "pe": 1, "bytes": 100}, {"to": 0, "pe": 0, "bytes": 50}],
  "executions": [
    {"object": 4, "pe": 0, "begin_seconds": 0.0, "cause": null, "after": [], "steps": [{"Work": 1.0}, {"Send": 0}]},
    {"object": 5, "pe": 1, "begin_seconds": 2.5, "cause": 0, "after": [], "steps": [{"Work": 2.0}, {"Send": 1}]},
    {"object": 0, "pe": 0, "begin_seconds": 5.5, "cause": 1, "after": [0], "steps": [{"Work": 0.5}]}
  ]
}
"#;

/// A program of processes.
pub const PROGRAM: &str = "# A pair.\nPROCESS 0 MEMORY 4096\n  REPEAT 10\n    INT_OP 800\n    SEND 1 64\n    RECEIVE 1 64\n  END\n\
                           STOP\nPROCESS 1\n  REPEAT 10\n    RECEIVE 0 64\n    SEND 0 64\n  END\nSTOP\n";

/// A trace of PICL, with numbers only.
pub const PICL: &str =
    "1 0 0 0 0 0 0\n1 0 0 1 0 0 0\n4 0 100 0 1 7 64\n7 0 40 1 7\n8 0 170 1 0 7 64\n13 0 300 1\n13 0 300 0\n";

/// A trace of PICL, with words.
pub const PICL_WORDS: &str = "trace_start clock 0 0 node 0 event 0\nsend clock 0 100 node 0 to 1 type 7 lth 64\n\
                              recv_waking clock 0 170 node 1 from 0 type 7 lth 64\nclose clock 0 300 node 1\n";

/// A list of messages.
pub const MESSAGES: &str = "src,dst,bytes,messages\n# a comment\n3,4,10,2\n\"2\",\"4\",\"1e3\",1\n1,3,10,0\n";

/// A schedule of strategies.
pub const SCHEDULE: &str = "0 GreedyLB\n%10 RefineLB imbalance=0.03 # often\n20 NoLB\n%1 MetisLB\n";

/// Task graphs, by extension: parts of the formats that our writers do not use.
pub const GRAPHS: &[(&str, &str)] = &[
    ("graph", "% a comment\n4 2 011 2\n5 6 2 7\n1 1 1 7 3 4\n2 2 2 4\n0 0\n"),
    ("mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n% c\n3 3 2\n2 1\n3 2\n"),
    ("mtx", "%%MatrixMarket matrix array real general\n2 2\n0\n1e3\n5\n0\n"),
    ("csv", "\"src\",\"dst\",\"bytes\"\n0,1,100\n# c\n\n1,2,1.5e3\n"),
    ("grf", "0\n3 4\n0 111\n10 5 1 7 20\n20 2 2 7 10 4 30\n30 0 1\n4 20\n"),
    ("mat", "# bytes\n1 2 3e1\n0,4.0,5\n\n6 0 0\n"),
    (
        "prof",
        "# POINT TO POINT\nI\t0\t1\t4096 bytes\t8 msgs sent\t0,0,8\nR\t2\t1\t20 bytes\t2 msgs sent\nD\tMPI_COMM_WORLD\n",
    ),
];

/// Machines, by kind and file name.
pub const MACHINES: &[(&str, &str, &str)] = &[
    ("graph", "links.csv", "0,1,10\n1,2,20\n0,2,40\n"),
    ("matrix", "distances.txt", "# three\n3\n0 4,7\n4 0  1\n\n7, 1, 0\n"),
    ("platform", "platform.json", include_str!("../../../strategies/model/tests/data/platform.json")),
    ("slurm", "topology.conf", include_str!("../../../strategies/model/tests/data/topology.conf")),
    ("slurm", "blocks.conf", include_str!("../../../strategies/model/tests/data/blocks.conf")),
    ("slurm", "topology.yaml", include_str!("../../../strategies/model/tests/data/topology.yaml")),
    ("hwloc", "machine-v1.xml", include_str!("../../../strategies/model/tests/data/machine-v1.xml")),
    ("hwloc", "machine-v2.xml", include_str!("../../../strategies/model/tests/data/machine-v2.xml")),
    ("scotch", "tree.tgt", "tleaf 2 4 10 2 1\n"),
    ("scotch", "labels.tgt", "ltleaf 2 2 10 3 1 3 2 0 1\n"),
    ("scotch", "torus.tgt", "torus2D 4 4\n"),
    ("scotch", "raw.tgt", "deco\n0 3 5\n2 1 4\n0 1 5\n1 1 3\n1\n2 3\n"),
    (
        "scotch",
        "compiled.tgt",
        "deco\n1\n3\t5\n0\t3\t3\n0\t2\t2\n1\t1\t1\n2\t1\t1\n0\t1\t1\n1 2 2 2 1 2 1 3 1 1\n",
    ),
    (
        "switches",
        "switches.json",
        "{\"n1\": \"s1\", \"n2\": [\"s2\"],\n \"n3\": \"s1\", \"n4\": [\"s3\", \"s4\"], \"n5\": \"s4.s5.n5\"}\n",
    ),
    (
        "switches",
        "addresses.txt",
        "# host address\nn1 top.s1.n1\nn1 top.s1.n1\nn2 top.s2.n2\nn3 top.s[3-4].n3\n",
    ),
    (
        "nvidia-smi",
        "topo.txt",
        "\t\u{1b}[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tGPU NUMA ID\u{1b}[0m\nGPU0\t X \tNV4\tSYS\tPIX\t0-31\tN/A\n\
         GPU1\tNV4\t X \tSYS\tPXB\t0-31\tN/A\nGPU2\tSYS\tSYS\t X \tSYS\t32-63\tN/A\nNIC0\tPIX\tPXB\tSYS\t X \n\n\
         Legend:\n\n  X    = Self\n",
    ),
    (
        "degraded",
        "slow.txt",
        "# slow\nmachine torus:4x2*flat:2\n0.5 node 0 -> node 1\n0.25 node 1 <-> node 2\n",
    ),
    (
        "topograph",
        "instances.json",
        r#"{"instances": [
  {"id": "I21", "network_layers": ["leaf-a", "spine"], "labels": {"accelerator.topograph.run/domain": "nvl-1"}},
  {"id": "I25", "network_layers": ["leaf-b", "spine"], "attributes": {"nvlink": "nvl-2"}},
  {"id": "I24", "network_layers": ["leaf-a", "spine"]}
]}
"#,
    ),
];
