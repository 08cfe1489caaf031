//! What goes wrong is said in a sentence: exit code 2 when the remedy is another command line, 1 when it
//! is elsewhere, never a panic.

use equipoise_tests::{Place, charm_dump_texts};

/// A database of two steps on two PEs.
const DATABASE: &str = r#"{
  "type": "equipoise-lb-database", "version": 1, "program": "pair", "topology": "flat:2",
  "steps": [
    {"step": 0, "pes": [{}, {}], "objects": [{"id": 7, "load_seconds": 0.25, "pe": 0}], "edges": []},
    {"step": 1, "pes": [{}, {}], "objects": [{"id": 7, "load_seconds": 0.5, "pe": 1}], "edges": []}
  ]
}"#;

/// A folder with files of every kind, good and bad.
fn place() -> Place {
    let place = Place::new();
    place.put("lb.json", DATABASE);
    place.put("foreign.db", "Dear reader,\n");
    place.put("empty.db", "");
    place.put("wrong.json", DATABASE.replace("\"pe\": 1", "\"pe\": 2"));
    place.put("short.map", "0\n1\n0\n1\n0\n1\n0\n");
    place.put("wild.map", "0\n1\n2\n1\n0\n1\n0\n1\n");
    place.put("words.map", "0\none\n");
    place.put("good.map", "0\n1\n0\n1\n0\n1\n0\n1\n");
    place.put("far.fixed", "8 0\n");
    place.put("broken.graph", "3 2\n2\n1 3\n");
    place.put("broken.csv", "src,dst,bytes\n0,1,many\n");
    place.run("convert lb.json lb.db").result();
    let whole = place.bytes("lb.db");
    place.put("truncated.db", &whole[..whole.len() - 9]);
    let mut damaged = whole;
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    place.put("damaged.db", damaged);
    place
}

#[track_caller]
fn check(code: i32, cases: &[(&str, &[&str])]) {
    let place = place();
    for (line, phrases) in cases {
        place.run(line).failed(code, phrases);
    }
}

#[test]
fn a_command_line_that_is_not_understood_ends_with_2() {
    check(
        2,
        &[
            ("frobnicate", &["unrecognized subcommand 'frobnicate'"]),
            ("map --graph ring:8", &["--topology <SPEC>"]),
            ("map --graph ring:8 --topology flat:2 --seed x", &["invalid value 'x' for '--seed <N>'"]),
            ("map --graph ring:8 --topology tours:2x2", &["did you mean `torus`?", "known are flat:N"]),
            ("map --graph rink:8 --topology flat:2", &["did you mean `ring`?", "kneighbor:64,7"]),
            (
                "map --graph ring:8 --topology flat:2 --balancer GredyLB",
                &["'--balancer <SPEC>'", "no strategy `GredyLB` (did you mean `GreedyLB`?); known are "],
            ),
            (
                "map --graph ring:8 --topology flat:2 --balancer RefineLB:imblance=1",
                &["RefineLB takes no `imblance` (did you mean `imbalance`?)"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --balancer RefineLB:imbalance=much",
                &["RefineLB:imbalance=much is not understood"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --balancer GreedyLB --imbalance 0.1",
                &["--imbalance 0.1: GreedyLB has no allowed imbalance; leave it out"],
            ),
            (
                "evaluate --graph ring:8 --topology flat:2 --mapping good.map --cost hops",
                &["'--cost <NAME>...'", "there is no cost `hops`", "known are max_load_seconds, "],
            ),
            ("replay lb.json --balancer FileLB", &["FileLB:path=", "a value must be given"]),
            ("replay lb.json --balancer", &["'--balancer <SPEC>'"]),
            ("replay lb.json --pes 0", &["on 0 PEs; give a number from 1 to"]),
            ("replay lb.json --format yaml", &["possible values: text, json"]),
            ("topology torus:4x", &["expected sizes such as 8x8x4m"]),
            ("topology torus:4x4 --route 0", &["--route <A> <B>"]),
            ("topology torus:4x4 --route 0 16", &["there is no PE 16; torus:4x4 has PEs 0 to 15"]),
            ("topology torus:128x128 --distances", &["16384 PEs are too many to list"]),
            ("inspect ring:4 --step 1", &["`ring:4` has no steps; leave it out"]),
        ],
    );
}

#[test]
fn flags_that_do_not_fit_what_they_name_end_with_2() {
    check(
        2,
        &[
            ("replay nothing.db", &["cannot read the database `nothing.db`", "no such file"]),
            ("inspect nothing.db", &["cannot read the database `nothing.db`"]),
            ("inspect nothing.graph", &["cannot read the task graph `nothing.graph`", "check its name"]),
            ("convert nothing.csv x.mtx", &["cannot read the task graph `nothing.csv`"]),
            (
                "evaluate --graph ring:8 --topology flat:2 --mapping nothing.map",
                &["cannot read the mapping `nothing.map`", "check its name"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --initial nothing.map",
                &["cannot read the mapping `nothing.map`"],
            ),
            (
                "map --graph ring:8 --topology flat:2 --fixed nothing",
                &["cannot read the list of fixed tasks `nothing`"],
            ),
            ("replay lb.json --balancer FileLB:path=nothing", &["FileLB:path=nothing", "No such file"]),
            ("replay lb.json --step 9", &["`lb.json` has no step 9; choose among steps 0 to 1"]),
            ("replay lb.json --step 1 --steps 9", &["has only 1 of the 9 steps asked for"]),
            (
                "replay lb.json --topology flat:3",
                &["recorded on 2 PEs and the topology `flat:3` has 3", "--pes 3"],
            ),
            ("convert lb.json lb.graph", &["`lb.json` holds steps 0, 1; choose", "--step"]),
            ("inspect lb.json --step 2", &["has no step 2"]),
            ("map --graph lb.json --topology flat:2 --step 2", &["has no step 2"]),
            ("map --graph ring:8 --topology flat:2 --step 2", &["`ring:8` has no steps; leave it out"]),
            (
                "replay .",
                &["cannot read the database `.`: it is a folder, and there is no file of that name"],
            ),
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
        ],
    );
}

#[test]
fn a_cause_is_said_once() {
    let told = place().run("replay nothing.db");
    assert_eq!(told.stderr.matches("no such file").count(), 1, "{}", told.stderr);
    assert_eq!(told.stderr.lines().count(), 1, "{}", told.stderr);
}

#[test]
fn files_whose_content_is_broken_end_with_1() {
    check(
        1,
        &[
            ("replay foreign.db", &["`foreign.db` is not a database: readable are", "Charm++ 8.x and 6.10"]),
            ("inspect empty.db", &["`empty.db` is empty; have the program dump it again"]),
            ("replay truncated.db", &["`truncated.db` is truncated: it has ", "copy it again"]),
            ("convert damaged.db x.json", &["`damaged.db`", "copy it again"]),
            ("replay wrong.json", &["`wrong.json`", "object 0 is on PE 2, and there are only 2"]),
            (
                "inspect broken.graph",
                &["broken.graph:1: the header says 3 vertices, and there are lines for 2"],
            ),
            ("convert broken.csv x.mtx", &["broken.csv:2: expected `src,dst,bytes`"]),
            (
                "evaluate --graph ring:8 --topology flat:2 --mapping short.map",
                &["`short.map` places 7 objects, and there are 8; give one PE per line"],
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
                &["`far.fixed`: line 1: there is no task 8; the graph has 8, counted from 0"],
            ),
            (
                "topology matrix:wild.map",
                &["`matrix:wild.map` is not a topology: wild.map: line 2: the lines have 1"],
            ),
            ("topology graph:broken.graph", &["broken.graph:1: the header says 3 vertices"]),
            ("topology torus:2x2[@words.map]", &["words.map: line 2: expected a node, found `one`"]),
            (
                "map --graph ring:8 --topology flat:2*torus:2x2[@words.map]",
                &["in `torus:2x2[@words.map]`: words.map: line 2: expected a node"],
            ),
        ],
    );
}

#[test]
fn files_that_are_not_text_end_with_1_and_say_where() {
    let place = place();
    let garbage = b"0\n1\n\xff\xfe\x00\n";
    for name in ["garbage.graph", "garbage.mtx", "garbage.csv", "garbage"] {
        place.put(name, garbage);
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
        place.run(line).failed(1, &["garbage", "3: this is not text in UTF-8; give another file"]);
    }
}

#[test]
fn nothing_is_written_where_one_of_several_files_cannot_be() {
    let place = place();
    place
        .run("map --graph ring:4 --topology flat:4 --output a --launcher json=b --launcher mpich=none/c")
        .failed(2, &["cannot write", "none/c"]);
    for name in ["a", "b"] {
        assert!(!place.path().join(name).exists(), "{name} was written");
    }
}

#[test]
fn what_a_strategy_cannot_do_as_asked_ends_with_2() {
    let told = "HierTopoMap:inter=bipart needs coordinates";
    check(
        2,
        &[
            ("map --graph ring:8 --topology tree:2:4 --balancer HierTopoMap:inter=bipart", &[told]),
            ("replay lb.json --topology tree:2 --pes 2 --balancer HierTopoMap:inter=bipart", &[told]),
        ],
    );
}

#[test]
fn what_cannot_be_carried_out_ends_with_1() {
    check(
        1,
        &[
            (
                "replay lb.json --balancer FileLB:path=good.map",
                &[
                    "FileLB:path=good.map gave no answer for step 0",
                    "`good.map` places 8 objects, and there are 1",
                ],
            ),
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
fn a_truncated_charm_dump_is_refused_wherever_it_ends() {
    let place = Place::new();
    let whole = std::fs::read(charm_dump_texts()[0].with_extension("")).expect("a sample");
    for bytes in [5, 17, 40, 1000, whole.len() / 2, whole.len() - 1] {
        place.put("cut.0", &whole[..bytes]);
        place.run("replay cut.0").failed(1, &["the database `cut.0`", "dump"]);
    }
    let mut longer = whole;
    longer.push(0);
    place.put("cut.0", longer);
    place.run("inspect cut.0").failed(1, &["1 bytes follow its end"]);
}

#[test]
fn a_reader_may_leave_early() {
    let place = place();
    // More than a pipe holds.
    let told = place.run_and_leave("topology torus:32x32 --distances");
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
}

#[test]
fn help_is_a_result() {
    let place = place();
    let help = |line: &str, expected: &[&str]| {
        let text = place.run(line).result();
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
