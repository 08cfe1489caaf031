//! Programs of processes on the command line: mapped, evaluated, simulated and converted, and errors in programs.

use equipoise_tests::Sandbox;

/// Two processes that exchange ten messages each way, and an empty process.
const PAIR: &str = "# A pair.\nPROCESS 0 MEMORY 4096\n  REPEAT 10\n    INT_OP 800\n    SEND 1 64\n    RECEIVE 1 64\n  END\nSTOP\n\
                    PROCESS 1 MEMORY 4096\n  REPEAT 10\n    RECEIVE 0 64\n    SEND 0 64\n  END\nSTOP\nPROCESS 2\nSTOP\n";

/// A PICL trace: node 0 sends 64 bytes, and node 1 waits for them.
const PICL: &str = "4 0 100 0 1 7 64\n7 0 40 1 7\n8 0 170 1 0 7 64\n13 0 300 1\n13 0 300 0\n";

/// A folder with programs, good and bad.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.put("pair.tcg", PAIR);
    sandbox.put("pair.map", "0\n3\n1\n");
    sandbox.put("short.map", "0\n3\n");
    sandbox.put("run.trf", PICL);
    sandbox.put("word.tcg", "PROCESS 0\n  SNED 1 4\nSTOP\n");
    sandbox.put("open.tcg", "PROCESS 0\n  REPEAT 2\n    INT_OP 1\nSTOP\n");
    sandbox.put("gap.tcg", "PROCESS 1\nSTOP\n");
    sandbox.put("lost.tcg", "PROCESS 0\n  INT_OP 3\n  SEND 1 4\nSTOP\nPROCESS 1\nSTOP\n");
    sandbox.put(
        "circle.tcg",
        "PROCESS 0\n  RECEIVE 1 1\n  SEND 1 1\nSTOP\nPROCESS 1\n  RECEIVE 0 1\n  SEND 0 1\nSTOP\n",
    );
    sandbox.put("long.tcg", "PROCESS 0\nSTOP\nPROCESS 1\n  REPEAT 4000000000\n    INT_OP 1\n  END\nSTOP\n");
    sandbox.put("latin.tcg", b"PROCESS 0\n\xe9\nSTOP\n");
    sandbox.put("broken.trf", "4 0 100 0 1 7 64\nfoo 1 2 3\n");
    sandbox
}

#[test]
fn a_program_is_mapped_evaluated_and_simulated() {
    let sandbox = sandbox();
    let mapped =
        sandbox.run("map --program pair.tcg --topology mesh:4 --balancer ContentionLB:share=off --output it.map --format json").document();
    assert_eq!(sandbox.text("it.map").lines().count(), 3);
    // One hop apart there is no contention: a round takes 800 cycles of work, and twice a send, 64 flits and a receive.
    assert_eq!(mapped["completion_cycles"], 10 * (800 + 2 * (10 + 64 + 10)));
    assert_eq!(mapped["estimated_cycles"], 10.0 * f64::from(800 + 2 * (10 + 64 + 10)));
    let output =
        sandbox.run("map --program pair.tcg --topology mesh:4 --balancer ContentionLB:share=off").result();
    assert!(output.contains("completion time: 9680 cycles (estimated 9680)"), "{output}");
    // The processes take turns. On one PE no process waits for the network.
    let shared = sandbox.run("map --program pair.tcg --topology mesh:4 --format json").document();
    assert_eq!(shared["completion_cycles"], 10 * (800 + 2 * (10 + 10)));

    // Three hops apart every message takes two more cycles. F charges each process for its ten messages.
    let cost = |line: &str| {
        sandbox.run(&format!("evaluate --program pair.tcg --topology mesh:4 --mapping pair.map --cost contention --format json{line}")).document()["contention"].as_f64().expect("a number")
    };
    let simulated = |line: &str| {
        sandbox.run(&format!("simulate --program pair.tcg --topology mesh:4 --mapping pair.map --network wormhole:ports=off --format json{line}")).document()["cycles"].as_u64().expect("cycles")
    };
    let output = sandbox.run("evaluate --program pair.tcg --topology mesh:4 --mapping pair.map").result();
    assert!(output.contains("estimated end, with contention"), "{output}");
    let line = "evaluate --program pair.tcg --topology mesh:4 --mapping pair.map --format json";
    let document = sandbox.run(line).document();
    assert!((document["contention"].as_f64().expect("a number") - 9700e-9).abs() < 1e-12, "{document}");
    assert_eq!(document["max_dilation"], 3, "{document}");
    assert_eq!(simulated(""), 9680 + 40);
    assert!((cost("") - 9700e-9).abs() < 1e-12, "{}", cost(""));
    // The costs of sends and receives are parameters.
    assert_eq!(simulated(" --send-cycles 0 --receive-cycles 5"), 9720 - 20 * (10 + 5));
    assert!((cost(" --send-cycles 0 --receive-cycles 5") - 9400e-9).abs() < 1e-12);
}

#[test]
fn an_inaccurate_estimate_is_a_warning() {
    let sandbox = Sandbox::new();
    let warned = |program: &str, machine: &str| {
        let line = format!("map --program {program} --topology {machine} --balancer DummyLB");
        sandbox.run(&line).stderr.contains("the estimated completion time differs by")
    };
    // In a tree a process waits for all processes below it, over hops that the estimate ignores.
    assert!(warned("tree:n=127,work=1,flits=1", "torus:127"));
    assert!(!warned("random:n=16,iterations=10,flits=64", "mesh:4x4"));
    // An empty program has no error.
    sandbox.put("idle.tcg", "PROCESS 0\nSTOP\n");
    assert!(!warned("idle.tcg", "mesh:2"));
}

#[test]
fn convert_refuses_flags_that_do_not_apply_and_counts_lost_messages() {
    let sandbox = sandbox();
    sandbox.run("convert pair.tcg x.tcg --cycle 5").failed(2, &["--cycle applies to traces"]);
    sandbox.run("convert run.trf x.tcg --step 1").failed(2, &["--step applies to databases"]);
    sandbox.run("convert run.trf x.tcg --cycle 1e-30").failed(2, &["make a cycle longer"]);
    sandbox.put("lost.trf", "4 0 100 0 1 7 64\n13 0 200 1\n");
    let output = sandbox.run("convert lost.trf x.tcg");
    assert!(output.stderr.contains("left out: 1 message without"), "{}", output.stderr);
}

#[test]
fn the_overlap_decides_which_messages_share_a_phase() {
    let sandbox = Sandbox::new();
    let estimated = |overlap: &str| {
        let line = format!(
            "map --program random:n=16,degree=5 --topology mesh:4x4 --overlap {overlap} --balancer DummyLB --format json"
        );
        sandbox.run(&line).document()["estimated_cycles"].as_f64().expect("a number")
    };
    assert!(estimated("0.1") != estimated("1"), "{}", estimated("1"));
    assert_eq!(estimated("0.5"), estimated("0.50"));
}

#[test]
fn programs_and_traces_are_converted_and_read_back() {
    let sandbox = sandbox();
    let output = sandbox.run("convert pair.tcg again.tcg --check").result();
    assert_eq!(output, "a program that executes 72 instructions in again.tcg, which reads back the same\n");
    assert_eq!(sandbox.text("again.tcg"), PAIR.replace("# A pair.\n", ""));
    sandbox.run("convert run.trf run.tcg --check").result();
    // Node 0 is busy from its first record, a send, until it closes.
    let expected =
        "PROCESS 0\n  SEND 1 64\n  INT_OP 200\nSTOP\nPROCESS 1\n  RECEIVE 0 64\n  INT_OP 130\nSTOP\n";
    assert_eq!(sandbox.text("run.tcg"), expected);
    sandbox.run("convert run.trf finer.tcg --cycle 1e-7").result();
    assert!(sandbox.text("finer.tcg").contains("INT_OP 2000\n"), "{}", sandbox.text("finer.tcg"));
    sandbox.run("convert ring:n=4 ring.tcg --check").result();
    let recorded = "run kneighbor --transport simulated --pes 4 --elements 4 --iterations 3 --topology mesh:2x2 --network ideal";
    sandbox.run(&format!("{recorded} --record kn.trace")).result();
    sandbox.run("convert kn.trace kn.tcg --check").result();
    sandbox.run("map --program kn.tcg --topology mesh:2x2").result();
}

#[test]
fn inspect_shows_the_model_of_a_program() {
    let sandbox = sandbox();
    let output = sandbox.run("inspect pair.tcg").result();
    assert!(
        output.starts_with("pair.tcg: 3 tasks, 2 channels, 2 communication phases, 72 instructions\n"),
        "{output}"
    );
    let document = sandbox.run("inspect pair.tcg --format json").document();
    // Ten times, process 0 works 800 cycles, sends, waits for the reply and receives it.
    assert_eq!(document["processes"][0]["work_cycles"], 10.0 * 820.0);
    assert_eq!(document["processes"][0]["wait_cycles"], 10.0 * (64.0 + 20.0 + 64.0));
    assert_eq!(document["processes"][1]["memory_bytes"], 4096);
    assert_eq!(document["channels"][0]["messages"], 10);
    assert_eq!(document["channels"][1]["flits"], 64.0);
    assert_eq!(document["phases"], serde_json::json!([[0], [1]]));
    let line = "inspect pair.tcg --send-cycles 0 --receive-cycles 5 --overlap 0.2 --format json";
    assert_eq!(sandbox.run(line).document()["processes"][0]["work_cycles"], 10.0 * 805.0);
    let output = sandbox.run("inspect --program ring:n=4,iterations=1").result();
    assert!(output.starts_with("ring:n=4,iterations=1: 4 tasks, 8 channels,"), "{output}");
    sandbox.run("inspect --program ring:n=4 --step 1").failed(2, &["cannot be used with"]);
    sandbox.run("inspect pair.tcg --step 1").failed(2, &["has no steps; leave out --step"]);
    sandbox.run("inspect ring:4 --overlap 0.2").failed(2, &["`ring:4` is not a program; leave"]);
    sandbox.run("inspect lost.tcg").failed(1, &["lost.tcg:3: process 0 sends a message"]);
}

#[test]
fn errors_in_a_program_name_the_line() {
    let sandbox = sandbox();
    for (file, phrases) in [
        ("word.tcg", &["word.tcg:2: there is no instruction `SNED`", "did you mean `SEND`?"][..]),
        ("open.tcg", &["open.tcg:4: the REPEAT of line 2 has no END"]),
        ("gap.tcg", &["gap.tcg:2: there is no process 0; number the processes from 0"]),
        (
            "lost.tcg",
            &[
                "lost.tcg:3: process 0 sends a message of 4 flits to process 1 in line 3, which is never received",
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
            sandbox.run(&line).failed(1, phrases);
        }
    }
    sandbox.run("convert broken.trf out.tcg").failed(1, &["broken.trf:2: there is no record kind `foo`"]);
    let short = "evaluate --program pair.tcg --topology mesh:4 --mapping short.map";
    sandbox.run(short).failed(1, &["short.map"]);
}

#[test]
fn usage_errors_of_programs_end_with_2() {
    let sandbox = sandbox();
    for (line, phrases) in [
        ("map --program rnig:n=4 --topology mesh:4", &["did you mean `ring`?", "known are random"][..]),
        ("map --program ring:n=1 --topology mesh:4", &["n=1: expected 2 to 4096"]),
        ("map --program phased:n=4096,phases=1000,degree=64 --topology mesh:4", &["; choose smaller values"]),
        ("map --program nowhere.tcg --topology mesh:4", &["cannot read the program `nowhere.tcg`"]),
        ("map --topology mesh:4", &["<--graph <SPEC|FILE>|--program <SPEC|FILE>>"]),
        ("map --program ring:n=4 --graph ring:4 --topology mesh:4", &["cannot be used with"]),
        ("map --program ring:n=4 --topology mesh:4 --overlap 2", &["'--overlap <FRACTION>'", "from 0 to 1"]),
        ("map --program ring:n=4 --topology mesh:4 --overlap -1", &["'--overlap <FRACTION>'", "from 0 to 1"]),
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
            &["9 processes and mesh:4 has 4 PEs; give the PE of every process"],
        ),
        ("map --program ring:n=4 --topology mesh:4 --balancer ContentionLB:paper=maybe", &["maybe"]),
        (
            "map --program ring:n=4 --topology mesh:4 --balancer ContentionLB:memory=much",
            &["expected a number of bytes, or `none`"],
        ),
    ] {
        sandbox.run(line).failed(2, phrases);
    }
    // The memory limit is given on the command line, so exceeding it is a usage error.
    let line = "map --program pair.tcg --topology mesh:4 --balancer ContentionLB:memory=4000";
    sandbox.run(line).failed(2, &["needs 4096 bytes, and a PE has 4000; allow more memory"]);
}
