//! Errors are a sentence and an exit code, never a panic. The exit code is 2 if the command line is at fault, else 1.

use equipoise_tests::{Sandbox, charm_dump_texts};

/// A database of two steps on two PEs.
const DATABASE: &str = r#"{
  "type": "equipoise-lb-database", "version": 1, "program": "pair", "topology": "flat:2",
  "steps": [
    {"step": 0, "pes": [{}, {}], "objects": [{"id": 7, "load_seconds": 0.25, "pe": 0}], "edges": []},
    {"step": 1, "pes": [{}, {}], "objects": [{"id": 7, "load_seconds": 0.5, "pe": 1}], "edges": []}
  ]
}"#;

/// A folder with files of every kind, good and bad.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.put("lb.json", DATABASE);
    sandbox.put("none.json", r#"{"type": "equipoise-lb-database", "version": 1, "steps": [{"pes": [{}]}]}"#);
    sandbox.put("foreign.db", "Dear reader,\n");
    sandbox.put("array.npy", b"\x93NUMPY\x01\0");
    sandbox.put("empty.db", "");
    sandbox.put("wrong.json", DATABASE.replace("\"pe\": 1", "\"pe\": 2"));
    sandbox.put("short.map", "0\n1\n0\n1\n0\n1\n0\n");
    sandbox.put("wild.map", "0\n1\n2\n1\n0\n1\n0\n1\n");
    sandbox.put("words.map", "0\none\n");
    sandbox.put("good.map", "0\n1\n0\n1\n0\n1\n0\n1\n");
    sandbox.put("far.fixed", "8 0\n");
    sandbox.put("cluster.yaml", include_str!("../../../strategies/model/tests/data/topology.yaml"));
    sandbox.put("broken.graph", "3 2\n2\n1 3\n");
    sandbox.put("broken.csv", "src,dst,bytes\n0,1,many\n");
    sandbox.run("convert lb.json lb.db").result();
    let whole = sandbox.bytes("lb.db");
    sandbox.put("truncated.db", &whole[..40]);
    let mut damaged = whole;
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    sandbox.put("damaged.db", damaged);
    sandbox
}

#[track_caller]
fn check(code: i32, cases: &[(&str, &[&str])]) {
    let sandbox = sandbox();
    for (line, phrases) in cases {
        sandbox.run(line).failed(code, phrases);
    }
}

#[test]
fn unknown_arguments_and_values_end_with_2() {
    check(
        2,
        &[
            ("frobnicate", &["there is no command 'frobnicate'; choose one of run, launch, replay"]),
            ("map --graph ring:8", &["--topology <SPEC>"]),
            ("map --graph ring:8 --topology flat:2 --seed x", &["invalid value 'x' for '--seed <N>'"]),
            ("map --graph ring:8 --topology tours:2x2", &["did you mean `torus`?", "known are flat:N"]),
            ("map --graph rink:8 --topology flat:2", &["did you mean `ring`?", "kneighbor:64,7"]),
            (
                "map --graph ring:8 --topology flat:2 --balancer TreeLB",
                &["the strategy `TreeLB` of Charm++ is not available; use GreedyRefineLB"],
            ),
            (
                "run stencil2d +balancer TreeLB",
                &["--balancer TreeLB: the strategy `TreeLB` of Charm++ is not available; use GreedyRefineLB"],
            ),
            (
                "run stencil2d --format csv",
                &["--format csv: the result of a program cannot be shown as one table"],
            ),
            ("inspect --program ring:n=4 --format csv", &["--format csv: a program, which has processes,"]),
            ("topology torus:4 --distances --format csv", &["--format csv: this result cannot be shown"]),
            (
                "map --graph ring:8 --topology flat:2 --balancer GredyLB",
                &["'--balancer <SPEC>'", "no strategy `GredyLB` (did you mean `GreedyLB`?); known are "],
            ),
            (
                "map --graph ring:8 --topology flat:2 --balancer RefineLB:imblance=1",
                &["RefineLB has no parameter `imblance` (did you mean `imbalance`?)"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --balancer RefineLB:imbalance=much",
                &["RefineLB:imbalance=much is not understood"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --balancer GreedyLB --imbalance 0.1",
                &["--imbalance 0.1: GreedyLB has no parameter `imbalance`; leave out --imbalance"],
            ),
            (
                "evaluate --graph ring:8 --topology flat:2 --mapping good.map --cost hops",
                &["'--cost <NAME>...'", "there is no cost `hops`", "known are max_load_seconds, "],
            ),
            ("replay lb.json --balancer FileLB", &["FileLB: `path=` must be given"]),
            ("replay lb.json --balancer", &["'--balancer <SPEC>'"]),
            ("replay lb.json --pes 0", &["on 0 PEs; give a number from 1 to"]),
            ("replay lb.json --format yaml", &["possible values: text, json"]),
            ("topology torus:4x", &["expected sizes such as 8x8x4m"]),
            ("topology torus:4x4 --route 0", &["--route <A> <B>"]),
            ("topology torus:4x4 --route 0 -1", &["invalid value '-1' for '--route <A> <B>'"]),
            (
                "replay lb.json --predict --horizon 7",
                &["--horizon is for recommendations", "leave one of them out"],
            ),
            ("topology torus:4x4 --route 0 16", &["there is no PE 16; torus:4x4 has PEs 0 to 15"]),
            (
                "topology torus:128x128 --distances",
                &["16384 PEs are too many; use a machine with at most 4096 PEs"],
            ),
            ("inspect ring:4 --step 1", &["`ring:4` has no steps; leave out --step"]),
        ],
    );
}

#[test]
fn missing_files_and_steps_end_with_2() {
    check(
        2,
        &[
            ("replay nothing.db", &["cannot read the database `nothing.db`", "no such file"]),
            ("inspect nothing.db", &["cannot read the database `nothing.db`"]),
            ("inspect nothing.graph", &["cannot read the task graph `nothing.graph`", "check its name"]),
            ("convert nothing.csv x.mtx", &["cannot read the task graph `nothing.csv`"]),
            (
                "evaluate --graph ring:8 --topology flat:2 --mapping nothing.map",
                &["cannot read the list of PEs `nothing.map`", "check its name"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --initial nothing.map",
                &["cannot read the list of PEs `nothing.map`"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --fixed nothing",
                &["cannot read the list of fixed tasks `nothing`"],
            ),
            ("replay lb.json --balancer FileLB:path=nothing", &["FileLB:path=nothing", "No such file"]),
            ("replay lb.json --step 9", &["`lb.json` has no step 9; choose from steps 0 to 1"]),
            ("replay lb.json --step 1 --steps 9", &["has only 1 of the 9 requested steps"]),
            (
                "replay lb.json --topology flat:3",
                &["recorded on 2 PEs and the topology `flat:3` has 3", "--pes 3"],
            ),
            ("convert lb.json lb.graph", &["`lb.json` holds steps 0, 1; choose", "--step"]),
            ("inspect lb.json --step 2", &["has no step 2"]),
            ("map --graph lb.json --topology flat:2 --step 2", &["has no step 2"]),
            ("map --graph ring:8 --topology flat:2 --step 2", &["`ring:8` has no steps; leave out --step"]),
            ("replay .", &["cannot read the database `.`: it is a folder; check its name"]),
            ("convert lb.json no/such/place.db", &["cannot write the database `no/such/place.db`"]),
            ("convert ring:4 no/such/place.csv", &["cannot write the task graph `no/such/place.csv`"]),
            (
                "map --graph ring:8 --topology flat:2 --output no/such/place",
                &["cannot write the mapping `no/such/place`", "name a place that exists"],
            ),
            ("map --graph ring:8 --topology flat:2 --output .", &["cannot write the mapping `.`"]),
            (
                "map --graph ring:8 --topology flat:2 --balancer RefineLB --imbalance -1",
                &["--imbalance -1: RefineLB:imbalance=-1 is not understood"],
            ),
            ("topology matrix:nothing", &["cannot read the distances `nothing`", "check its name"]),
            ("topology torus:4[@nothing]", &["cannot read the nodes `nothing`", "check its name"]),
            (
                "topology slurm:cluster.yaml#fabrik",
                &["no topology `fabrik` (did you mean `fabric`?); known are racks, fabric, cloud"],
            ),
        ],
    );
}

#[test]
fn the_cause_of_an_error_is_shown_once() {
    let output = sandbox().run("replay nothing.db");
    assert_eq!(output.stderr.matches("no such file").count(), 1, "{}", output.stderr);
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
}

#[test]
fn errors_in_the_content_of_files_end_with_1() {
    check(
        1,
        &[
            (
                "replay foreign.db",
                &["`foreign.db` is not a database in a known format", "Charm++ 8.x and 6.10"],
            ),
            (
                "map --topology flat:2 --graph array.npy",
                &["`array.npy` is an array of NumPy", "in a file `.mat`"],
            ),
            ("inspect empty.db", &["`empty.db` is empty; have the program dump it again"]),
            ("replay truncated.db", &["`truncated.db` is truncated: it has 40 bytes", "copy it again"]),
            ("convert damaged.db x.json", &["`damaged.db`", "copy it again"]),
            ("replay wrong.json", &["`wrong.json`", "object 0 is on PE 2, but there are 2 PEs (0 and 1)"]),
            (
                "inspect broken.graph",
                &["broken.graph:1: the header says 3 vertices, but the file has lines for 2"],
            ),
            (
                "convert none.json x.graph",
                &[
                    "`none.json` has no object, and a task graph has at least one task; convert a step with objects",
                ],
            ),
            ("convert broken.csv x.mtx", &["broken.csv:2: expected `src,dst,bytes`"]),
            (
                "evaluate --graph ring:8 --topology flat:2 --mapping short.map",
                &["`short.map` places 7 objects, not 8; give one PE per line"],
            ),
            (
                "evaluate --graph ring:8 --topology flat:2 --mapping wild.map",
                &["`wild.map`: line 3: there is no PE 2; PEs are 0 to 1"],
            ),
            (
                "evaluate --graph ring:8 --topology flat:2 --mapping words.map",
                &["`words.map`: line 2: expected one PE number, found `one`"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --fixed far.fixed",
                &["there is no object 8 among 8 objects"],
            ),
            (
                "topology matrix:wild.map",
                &[
                    "`matrix:wild.map` is not a topology: wild.map: line 2: there are more lines than the first line has distances (1)",
                ],
            ),
            ("topology graph:broken.graph", &["broken.graph:1: the header says 3 vertices"]),
            ("topology torus:2x2[@words.map]", &["words.map: line 2: expected a node, found `one`"]),
            (
                "map --graph ring:8 --topology flat:2*torus:2x2[@words.map]",
                &["words.map: line 2: expected a node, found `one` (in `torus:2x2[@words.map]`)"],
            ),
        ],
    );
}

#[test]
fn files_that_are_not_text_end_with_1_and_name_the_line() {
    let sandbox = sandbox();
    let garbage = b"0\n1\n\xff\xfe\x00\n";
    for name in ["garbage.graph", "garbage.mtx", "garbage.csv", "garbage"] {
        sandbox.put(name, garbage);
    }
    for line in [
        "inspect garbage.graph",
        "map --graph garbage.mtx --topology flat:2",
        "convert garbage.csv x.mtx",
        "evaluate --graph ring:3 --topology flat:2 --mapping garbage",
        "map --graph ring:3 --topology flat:2 --fixed garbage",
        "topology matrix:garbage",
        "topology graph:garbage.csv",
        "topology torus:4[@garbage]",
    ] {
        sandbox.run(line).failed(1, &["garbage", "3: this is not text in UTF-8; give another file"]);
    }
}

#[test]
fn nothing_is_written_if_one_of_several_files_cannot_be_written() {
    let sandbox = sandbox();
    sandbox
        .run("map --graph ring:4 --topology flat:4 --output a --launcher json=b --launcher mpich=none/c")
        .failed(2, &["cannot write", "none/c"]);
    for name in ["a", "b"] {
        assert!(!sandbox.path().join(name).exists(), "{name} was written");
    }
}

#[test]
fn parameters_that_a_strategy_cannot_use_end_with_2() {
    let error = "HierTopoMap:inter=bipart needs coordinates";
    check(
        2,
        &[
            ("map --graph ring:8 --topology tree:2:4 --balancer HierTopoMap:inter=bipart", &[error]),
            ("replay lb.json --topology tree:2 --pes 2 --balancer HierTopoMap:inter=bipart", &[error]),
        ],
    );
}

#[test]
fn strategies_and_outputs_that_fail_end_with_1() {
    check(
        1,
        &[
            (
                "replay lb.json --balancer FileLB:path=good.map",
                &["FileLB:path=good.map gave no answer for step 0", "`good.map` places 8 objects, not 1;"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --balancer FileLB:path=words.map",
                &["FileLB:path=words.map cannot be used", "line 2: expected one PE number, found `one`"],
            ),
            ("replay lb.json --balancer FileLB:path=words.map", &["FileLB:path=words.map cannot be used"]),
            (
                "map --graph ring:8 --topology flat:2 --balancer FileLB:path=wild.map",
                &["FileLB:path=wild.map gave no answer", "line 3: there is no PE 2"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --output /dev/full",
                &["cannot write the mapping `/dev/full`"],
            ),
        ],
    );
}

#[test]
fn a_charm_dump_truncated_anywhere_is_refused() {
    let sandbox = Sandbox::new();
    let whole = std::fs::read(charm_dump_texts()[0].with_extension("")).expect("a sample");
    for bytes in [5, 17, 40, 1000, whole.len() / 2, whole.len() - 1] {
        sandbox.put("cut.0", &whole[..bytes]);
        sandbox.run("replay cut.0").failed(1, &["the database `cut.0`", "dump"]);
    }
    let mut longer = whole;
    longer.push(0);
    sandbox.put("cut.0", longer);
    sandbox.run("inspect cut.0").failed(1, &["its end is followed by 1 byte"]);
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let sandbox = sandbox();
    // More output than the buffer of a pipe holds.
    let output = sandbox.run_and_leave("topology torus:32x32 --distances");
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
}

#[test]
fn help_goes_to_stdout() {
    let sandbox = sandbox();
    let help = |line: &str, expected: &[&str]| {
        let text = sandbox.run(line).result();
        for phrase in expected {
            assert!(text.contains(phrase), "`{line}` does not say `{phrase}`: {text}");
        }
    };
    help(
        "--help",
        &["Usage: equipoise", "map", "evaluate", "replay", "inspect", "convert", "topology", "run"],
    );
    help("map --help", &["--graph", "--topology", "--balancer", "--imbalance", "--initial", "--fixed"]);
    help("replay --balancer help", &["GreedyRefineLB", "imbalance=", "TopoLB"]);
    help("topology help", &["torus:8x8x8", "tree:16:8:4/100:10:1"]);
    for command in ["map", "evaluate", "replay"] {
        help(&format!("{command} --topology help"), &["torus:8x8x8"]);
    }
    help("evaluate --cost help", &["hop_bytes", "max_link_bytes"]);
    help("inspect help", &["kneighbor:64,7", "FILE.mtx"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_stderr_changes_no_exit_code() {
    let sandbox = sandbox();
    for (line, code) in [
        ("equipoise replay nothing", 2),
        ("equipoise map --graf ring:8", 2),
        ("equipoise map --graph ring:8\u{1b} --topology flat:2", 2),
        ("failing panic --pes 2", 1),
        ("failing rest --pes 2 --transport simulated", 1),
        ("failing spin --pes 2 --watchdog 0.1 --time-limit 0.3", 1),
        // A warning: the load balancer panics.
        ("failing balance --pes 2 --balancer Panics", 0),
        ("equipoise simulate --graph ring:8 --topology flat:8 --network ideal", 0),
    ] {
        let output = sandbox.run_with_full_stderr(line);
        assert_eq!(output.code, Some(code), "{line}: {output:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_ends_with_1() {
    let sandbox = sandbox();
    for line in ["--help", "map --help", "map --graph help", "--version"] {
        sandbox
            .run_into_full_device(line)
            .failed(1, &["error: cannot write the help: No space left on device"]);
    }
    for line in
        ["map --graph ring:8 --topology flat:2", "completions bash", "run stencil2d --iterations 1 --pes 1"]
    {
        let output = sandbox.run_into_full_device(line);
        output.failed(1, &["error: cannot write the result: No space left on device"]);
    }
    for line in ["--help", "completions bash"] {
        let output = sandbox.run_and_leave(line);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{line}");
    }
}
