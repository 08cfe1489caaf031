//! Files of other programs: the command reads, writes and checks machines, graphs and placements.

use equipoise_tests::Sandbox;

/// Two leaves of a fat tree with two hosts each.
const TOPOLOGY: &str =
    "SwitchName=spine Switches=leaf[1-2]\nSwitchName=leaf1 Nodes=cx[1-2]\nSwitchName=leaf2 Nodes=cx[3-4]\n";

/// A folder with files of every kind.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.put("topology.conf", TOPOLOGY);
    sandbox.put("broken.conf", "SwitchName=spine Nodes=cx[1-\n");
    sandbox.put("order", "0,1\n2,2\n");
    sandbox.put("hosts", "cx1\ncx1\ncx9\n");
    sandbox.put("broken.grf", "0\n2 2\n0 000\n1 1\n1 7\n");
    sandbox.put("run.0.prof", "I\t0\t1\t500 bytes\t5 msgs sent\n");
    sandbox.put("run.1.prof", "I\t1\t0\t300 bytes\t3 msgs sent\n");
    sandbox
}

#[test]
fn topology_shows_the_hosts_of_a_slurm_machine() {
    let sandbox = sandbox();
    let all = sandbox.run("topology slurm:topology.conf --links").result();
    assert!(all.contains("0 -> switch leaf1") && all.contains("switch leaf2 -> 3"), "{all}");
    let output = sandbox.run("topology slurm:topology.conf --route 0 2").result();
    for phrase in
        ["hosts", "cx1, cx2, cx3, cx4", "0 -> switch leaf1", "switch spine -> switch leaf2", "2 x 2"]
    {
        assert!(output.contains(phrase), "`{output}` does not contain `{phrase}`");
    }
    let json = sandbox.run("topology slurm:topology.conf*flat:2 --format json").result();
    assert!(json.contains("\"cx4\"") && json.contains("\"pes\": 8"), "{json}");
    // The PEs of two nodes take turns.
    let mixed = sandbox.run("topology (slurm:topology.conf*flat:2)[4,0,5,1]").result();
    assert!(mixed.lines().any(|line| line.ends_with("  cx3, cx1")), "{mixed}");
}

#[test]
fn a_mapping_is_written_for_every_launcher_and_checked() {
    let sandbox = sandbox();
    let machine = "slurm:topology.conf*tree:2";
    let formats = ["mpich", "openmpi", "slurm", "flux", "scotch", "json"];
    let wanted: Vec<String> = formats.iter().map(|name| format!("--launcher {name}={name}.out")).collect();
    sandbox
        .run(&format!(
            "map --graph kneighbor:8,2 --topology {machine} --output mapping {} --check",
            wanted.join(" ")
        ))
        .result();
    for name in formats {
        let output = sandbox
            .run(&format!(
                "launcher {name}={name}.out --topology {machine} --ranks 8 --to mapping={name}.again"
            ))
            .result();
        assert!(output.contains("8, one per slot") && output.contains("4 of 4 nodes"), "{output}");
        let costs = |mapping: &str| {
            let line = format!(
                "evaluate --graph kneighbor:8,2 --topology {machine} --mapping {mapping} --cost hop_bytes"
            );
            sandbox.run(&line).result()
        };
        let (first, again) = (costs("mapping"), costs(&format!("{name}.again")));
        let exact = ["mpich", "openmpi", "scotch", "json"].contains(&name);
        assert!(!exact || first == again, "{name}: {first} {again}");
    }
    assert!(sandbox.text("openmpi.out").starts_with("rank 0=cx"));
    assert_eq!(sandbox.text("slurm.out").lines().count(), 8);
    let output = sandbox
        .run("map --graph ring:4 --topology torus:2x2 --launcher fugaku=v --check --format json")
        .result();
    assert!(output.starts_with('{'), "{output}");
    assert!(sandbox.text("v").lines().all(|line| line.starts_with('(')));
}

#[test]
fn files_of_other_programs_are_converted_and_read_back() {
    let sandbox = sandbox();
    for name in ["a.grf", "a.mat", "a.prof", "a.%p.json", "a.%p.json.br"] {
        sandbox.run(&format!("convert kneighbor:8,2,bytes=7 {name} --check")).result();
    }
    for (name, check) in
        [("a.grf", "b.mat"), ("a.mat", "b.grf"), ("a.%p.json", "b.%p.json.br"), ("a.0.json.br", "b.csv")]
    {
        let output = sandbox.run(&format!("convert {name} {check} --check"));
        assert!(output.stderr.contains("cannot represent"), "{}", output.stderr);
        assert!(output.result().contains("which reads back the same"));
    }
    // The file name of one rank reads the files of all ranks.
    let output = sandbox.run("convert run.1.prof both.csv").result();
    assert!(output.contains("2 tasks and 1 pair that communicates"), "{output}");
    assert_eq!(sandbox.text("both.csv"), "src,dst,bytes,messages\n0,1,500,5\n1,0,300,3\n");
}

#[test]
fn errors_have_exit_code_2_for_the_command_line_and_1_for_file_content() {
    let sandbox = sandbox();
    let map = "map --graph ring:8 --topology";
    for (line, phrases) in [
        (
            "map --graph ring:8 --topology slurm:none.conf".to_string(),
            vec!["cannot read the topology `none.conf`"],
        ),
        (
            format!("{map} flat:8 --launcher openmp=x"),
            vec!["no launcher's file `openmp` (did you mean `openmpi`?)"],
        ),
        (
            format!("{map} flat:8 --launcher mpich"),
            vec!["expected FORMAT=FILE such as mpich=MPICH_RANK_ORDER"],
        ),
        (format!("{map} flat:8 --launcher slurm=x"), vec!["slurm: the machine has no host names"]),
        (
            format!("{map} flat:8 --launcher fugaku=x"),
            vec!["fugaku: nodes have no coordinates on this machine"],
        ),
        (format!("{map} flat:4 --launcher json=x"), vec!["has 2 ranks, but only 1 slot; use --slots 2"]),
        (format!("{map} flat:8 --launcher json=no/such/place"), vec!["cannot write the launcher's file"]),
        (format!("{map} flat:8 --slots 2"), vec!["give one with --launcher or --initial"]),
        ("launcher mpich=none --topology flat:4".into(), vec!["cannot read the launcher's file `none`"]),
        ("convert ring:4 a.%p.yaml/x".into(), vec!["a.%p.yaml"]),
    ] {
        sandbox.run(&line).failed(2, &phrases);
    }
    for (line, phrases) in [
        (format!("{map} slurm:broken.conf"), vec!["broken.conf: line 1: there is a `[` that is not closed"]),
        (
            "launcher mpich=order --topology flat:2*flat:2".into(),
            vec!["`order`: line 2: rank 2 already has a place in line 2"],
        ),
        (
            "launcher slurm=hosts --topology slurm:topology.conf*flat:2".into(),
            vec!["`hosts`: line 3: the machine has no host cx9"],
        ),
        ("launcher json=order --topology flat:4".into(), vec!["`order`: line 1: expected a list of PEs"]),
        ("map --graph broken.grf --topology flat:2".into(), vec!["broken.grf:5: there is no vertex 7"]),
    ] {
        sandbox.run(&line).failed(1, &phrases);
    }
    sandbox.run("map --graph ring:4 --topology flat:2 --launcher json=two --slots 2").result();
    sandbox
        .run("launcher json=two --topology flat:2 --slots 2 --ranks 5")
        .failed(1, &["places 4 ranks, but --ranks is 5"]);
}
