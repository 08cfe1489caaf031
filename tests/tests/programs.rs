//! Programs on the command line: mapped, evaluated, simulated and converted, and what is said of broken ones.

use equipoise_tests::Place;

/// Two processes that exchange ten messages each way, and one that sees nothing of that.
const PAIR: &str = "# A pair.\nPROCESS 0 MEMORY 4096\n  REPEAT 10\n    INT_OP 800\n    SEND 1 64\n    RECEIVE 1 64\n  END\nSTOP\n\
                    PROCESS 1 MEMORY 4096\n  REPEAT 10\n    RECEIVE 0 64\n    SEND 0 64\n  END\nSTOP\nPROCESS 2\nSTOP\n";

/// A trace of PICL: node 0 sends 64 bytes, which node 1 waits for.
const PICL: &str = "4 0 100 0 1 7 64\n7 0 40 1 7\n8 0 170 1 0 7 64\n13 0 300 1\n13 0 300 0\n";

/// A folder with programs, good and bad.
fn place() -> Place {
    let place = Place::new();
    place.put("pair.tcg", PAIR);
    place.put("pair.map", "0\n3\n1\n");
    place.put("short.map", "0\n3\n");
    place.put("run.trf", PICL);
    place.put("word.tcg", "PROCESS 0\n  SNED 1 4\nSTOP\n");
    place.put("open.tcg", "PROCESS 0\n  REPEAT 2\n    INT_OP 1\nSTOP\n");
    place.put("gap.tcg", "PROCESS 1\nSTOP\n");
    place.put("lost.tcg", "PROCESS 0\n  INT_OP 3\n  SEND 1 4\nSTOP\nPROCESS 1\nSTOP\n");
    place.put(
        "circle.tcg",
        "PROCESS 0\n  RECEIVE 1 1\n  SEND 1 1\nSTOP\nPROCESS 1\n  RECEIVE 0 1\n  SEND 0 1\nSTOP\n",
    );
    place.put("long.tcg", "PROCESS 0\nSTOP\nPROCESS 1\n  REPEAT 4000000000\n    INT_OP 1\n  END\nSTOP\n");
    place.put("latin.tcg", b"PROCESS 0\n\xe9\nSTOP\n");
    place.put("broken.trf", "4 0 100 0 1 7 64\nfoo 1 2 3\n");
    place
}

#[test]
fn a_program_is_mapped_evaluated_and_simulated() {
    let place = place();
    let mapped =
        place.run("map --program pair.tcg --topology mesh:4 --balancer ContentionLB:share=off --output it.map --format json").document();
    assert_eq!(place.text("it.map").lines().count(), 3);
    // One hop apart nothing is in the way: each round takes 800 cycles of work, and twice a send, 64 flits and a receive.
    assert_eq!(mapped["completion_cycles"], 10 * (800 + 2 * (10 + 64 + 10)));
    assert_eq!(mapped["estimated_cycles"], 10.0 * f64::from(800 + 2 * (10 + 64 + 10)));
    let told =
        place.run("map --program pair.tcg --topology mesh:4 --balancer ContentionLB:share=off").result();
    assert!(told.contains("over after 9680 cycles, estimated 9680"), "{told}");
    // They take turns, so that on one PE nobody waits for a message to travel.
    let shared = place.run("map --program pair.tcg --topology mesh:4 --format json").document();
    assert_eq!(shared["completion_cycles"], 10 * (800 + 2 * (10 + 10)));

    // Three hops apart every message takes two cycles more, of which F charges both processes ten times two.
    let cost = |line: &str| {
        place.run(&format!("evaluate --program pair.tcg --topology mesh:4 --mapping pair.map --cost contention --format json{line}")).document()["contention"].as_f64().expect("a number")
    };
    let simulated = |line: &str| {
        place.run(&format!("simulate --program pair.tcg --topology mesh:4 --mapping pair.map --network wormhole:ports=off --format json{line}")).document()["cycles"].as_u64().expect("cycles")
    };
    let told = place.run("evaluate --program pair.tcg --topology mesh:4 --mapping pair.map").result();
    assert!(told.contains("estimated end, with contention"), "{told}");
    let line = "evaluate --program pair.tcg --topology mesh:4 --mapping pair.map --format json";
    let document = place.run(line).document();
    assert!((document["contention"].as_f64().expect("a number") - 9700e-9).abs() < 1e-12, "{document}");
    assert_eq!(document["max_dilation"], 3, "{document}");
    assert_eq!(simulated(""), 9680 + 40);
    assert!((cost("") - 9700e-9).abs() < 1e-12, "{}", cost(""));
    // What sends and receives cost is for the caller to say.
    assert_eq!(simulated(" --send-cycles 0 --receive-cycles 5"), 9720 - 20 * (10 + 5));
    assert!((cost(" --send-cycles 0 --receive-cycles 5") - 9400e-9).abs() < 1e-12);
}

#[test]
fn an_estimate_that_is_far_off_is_said_to_be() {
    let place = Place::new();
    let warned = |program: &str, machine: &str| {
        let line = format!("map --program {program} --topology {machine} --balancer DummyLB");
        place.run(&line).stderr.contains("off the simulated end")
    };
    // In a tree everybody waits for everybody below, over hops that the estimate does not know.
    assert!(warned("tree:n=127,work=1,flits=1", "torus:127"));
    assert!(!warned("random:n=16,iterations=10,flits=64", "mesh:4x4"));
    // Nothing is far from what takes no time.
    place.put("idle.tcg", "PROCESS 0\nSTOP\n");
    assert!(!warned("idle.tcg", "mesh:2"));
}

#[test]
fn flags_that_mean_nothing_to_a_conversion_are_refused_and_lost_messages_are_counted() {
    let place = place();
    place.run("convert pair.tcg x.tcg --cycle 5").failed(2, &["--cycle is for traces"]);
    place.run("convert run.trf x.tcg --step 1").failed(2, &["--step is for databases"]);
    place.run("convert run.trf x.tcg --cycle 1e-30").failed(2, &["make a cycle longer"]);
    place.put("lost.trf", "4 0 100 0 1 7 64\n13 0 200 1\n");
    let told = place.run("convert lost.trf x.tcg");
    assert!(told.stderr.contains("left out: 1 message of which"), "{}", told.stderr);
}

#[test]
fn the_overlap_decides_which_messages_share_a_phase() {
    let place = Place::new();
    let estimated = |overlap: &str| {
        let line = format!(
            "map --program random:n=16,degree=5 --topology mesh:4x4 --overlap {overlap} --balancer DummyLB --format json"
        );
        place.run(&line).document()["estimated_cycles"].as_f64().expect("a number")
    };
    assert!(estimated("0.1") != estimated("1"), "{}", estimated("1"));
    assert_eq!(estimated("0.5"), estimated("0.50"));
}

#[test]
fn programs_and_traces_are_converted_and_read_back() {
    let place = place();
    let told = place.run("convert pair.tcg again.tcg --check").result();
    assert_eq!(told, "a program that executes 72 instructions in again.tcg, which reads back the same\n");
    assert_eq!(place.text("again.tcg"), PAIR.replace("# A pair.\n", ""));
    place.run("convert run.trf run.tcg --check").result();
    // Node 0 is busy from its send, the first that is known of it, until it closes.
    let expected =
        "PROCESS 0\n  SEND 1 64\n  INT_OP 200\nSTOP\nPROCESS 1\n  RECEIVE 0 64\n  INT_OP 130\nSTOP\n";
    assert_eq!(place.text("run.tcg"), expected);
    place.run("convert run.trf finer.tcg --cycle 1e-7").result();
    assert!(place.text("finer.tcg").contains("INT_OP 2000\n"), "{}", place.text("finer.tcg"));
    place.run("convert ring:n=4 ring.tcg --check").result();
    let recorded = "run kneighbor --transport simulated --pes 4 --elements 4 --iterations 3 --topology mesh:2x2 --network ideal";
    place.run(&format!("{recorded} --record kn.trace")).result();
    place.run("convert kn.trace kn.tcg --check").result();
    place.run("map --program kn.tcg --topology mesh:2x2").result();
}

#[test]
fn what_the_mapper_knows_of_a_program_is_shown() {
    let place = place();
    let told = place.run("inspect pair.tcg").result();
    assert!(
        told.starts_with("pair.tcg: 3 tasks, 2 channels, 2 communication phases, 72 instructions\n"),
        "{told}"
    );
    let document = place.run("inspect pair.tcg --format json").document();
    // Process 0 works 800 cycles, sends and receives, ten times, and waits for the answer in between.
    assert_eq!(document["processes"][0]["work_cycles"], 10.0 * 820.0);
    assert_eq!(document["processes"][0]["wait_cycles"], 10.0 * (64.0 + 20.0 + 64.0));
    assert_eq!(document["processes"][1]["memory_bytes"], 4096);
    assert_eq!(document["channels"][0]["messages"], 10);
    assert_eq!(document["channels"][1]["flits"], 64.0);
    assert_eq!(document["phases"], serde_json::json!([[0], [1]]));
    let line = "inspect pair.tcg --send-cycles 0 --receive-cycles 5 --overlap 0.2 --format json";
    assert_eq!(place.run(line).document()["processes"][0]["work_cycles"], 10.0 * 805.0);
    let told = place.run("inspect --program ring:n=4,iterations=1").result();
    assert!(told.starts_with("ring:n=4,iterations=1: 4 tasks, 8 channels,"), "{told}");
    place.run("inspect --program ring:n=4 --step 1").failed(2, &["cannot be used with"]);
    place.run("inspect pair.tcg --step 1").failed(2, &["has no steps; leave it out"]);
    place.run("inspect ring:4 --overlap 0.2").failed(2, &["`ring:4` is no program; leave out"]);
    place.run("inspect lost.tcg").failed(1, &["lost.tcg:3: process 0 sends a message"]);
}

#[test]
fn what_is_wrong_with_a_program_is_said_with_its_line() {
    let place = place();
    for (file, phrases) in [
        ("word.tcg", &["word.tcg:2: there is no instruction `SNED`", "did you mean `SEND`?"][..]),
        ("open.tcg", &["open.tcg:4: the REPEAT of line 2 is not over"]),
        ("gap.tcg", &["gap.tcg:2: there is no process 0; number them from 0"]),
        (
            "lost.tcg",
            &[
                "lost.tcg:3: process 0 sends a message of 4 flits to process 1 in line 3, which never receives it",
            ],
        ),
        (
            "circle.tcg",
            &["circle.tcg:2: deadlock: process 0 waits in line 2 for process 1, process 1 waits in line 6"],
        ),
        ("long.tcg", &["long.tcg:3: the program executes", "repeat less"]),
        ("latin.tcg", &["latin.tcg:2: "]),
    ] {
        for line in [
            format!("map --program {file} --topology mesh:4"),
            format!("evaluate --program {file} --topology mesh:4 --mapping pair.map"),
            format!("simulate --program {file} --topology mesh:4 --network wormhole"),
            format!("convert {file} out.tcg"),
        ] {
            place.run(&line).failed(1, phrases);
        }
    }
    place.run("convert broken.trf out.tcg").failed(1, &["broken.trf:2: there is no kind `foo` of records"]);
    let short = "evaluate --program pair.tcg --topology mesh:4 --mapping short.map";
    place.run(short).failed(1, &["short.map"]);
}

#[test]
fn a_request_for_a_program_that_is_not_understood_ends_with_2() {
    let place = place();
    for (line, phrases) in [
        ("map --program rnig:n=4 --topology mesh:4", &["did you mean `ring`?", "known are random"][..]),
        ("map --program ring:n=1 --topology mesh:4", &["n=1: expected 2 to 4096"]),
        (
            "map --program phased:n=4096,phases=1000,degree=64 --topology mesh:4",
            &["are generated; ask for less"],
        ),
        ("map --program nowhere.tcg --topology mesh:4", &["cannot read the program `nowhere.tcg`"]),
        ("map --topology mesh:4", &["<--graph <SPEC|FILE>|--program <SPEC|FILE>>"]),
        ("map --program ring:n=4 --graph ring:4 --topology mesh:4", &["cannot be used with"]),
        ("map --program ring:n=4 --topology mesh:4 --overlap 2", &["'--overlap <PART>'", "from 0 to 1"]),
        ("map --program ring:n=4 --topology mesh:4 --overlap -1", &["'--overlap <PART>'", "from 0 to 1"]),
        ("map --graph ring:4 --topology mesh:4 --overlap 0.5", &["cannot be used with"]),
        ("map --program ring:n=4 --topology mesh:4 --send-cycles x", &["'--send-cycles <CYCLES>'"]),
        (
            "map --program ring:n=4 --topology mesh:4 --receive-cycles 9999999",
            &["'--receive-cycles <CYCLES>'"],
        ),
        (
            "simulate --graph ring:4 --topology mesh:4 --network ideal --send-cycles 1",
            &["cannot be used with"],
        ),
        (
            "simulate --program ring:n=9 --topology mesh:4 --network ideal",
            &["9 processes and there are 4 PEs; give --mapping"],
        ),
        ("map --program ring:n=4 --topology mesh:4 --balancer ContentionLB:paper=maybe", &["maybe"]),
        (
            "map --program ring:n=4 --topology mesh:4 --balancer ContentionLB:memory=much",
            &["expected a number of bytes, or `none`"],
        ),
    ] {
        place.run(line).failed(2, phrases);
    }
    // The memory is asked for on the command line.
    let line = "map --program pair.tcg --topology mesh:4 --balancer ContentionLB:memory=4000";
    place.run(line).failed(2, &["needs 4096 bytes, and a PE has 4000; allow more memory"]);
}
