//! `equipoise simulate`: times that can be computed by hand, and errors.

use std::collections::BTreeSet;

use equipoise_tests::Sandbox;
use serde_json::Value;

/// The fields of every result.
const FIELDS: &[&str] =
    &["seconds", "seconds_per_iteration", "mean_message_latency_seconds", "max_link_seconds"];

/// The result of a simulation: its numbers in the order of [`FIELDS`], and its cycles.
#[track_caller]
fn simulate(sandbox: &Sandbox, line: &str) -> ([f64; 4], Option<u64>) {
    let document: Value = sandbox.run(&format!("simulate {line} --format json")).document();
    let fields: BTreeSet<&str> =
        document.as_object().expect("an object").keys().map(String::as_str).collect();
    let cycles = document.get("cycles").and_then(Value::as_u64);
    let simulated = document.get("simulated_iterations").map(|_| "simulated_iterations");
    assert_eq!(simulated.is_some(), line.contains("--graph"), "{line}");
    let expected = FIELDS.iter().copied().chain(cycles.map(|_| "cycles")).chain(simulated);
    assert_eq!(fields, expected.collect());
    ([0, 1, 2, 3].map(|i| document[FIELDS[i]].as_f64().expect("a number")), cycles)
}

#[track_caller]
fn check(found: [f64; 4], expected: [f64; 4]) {
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs();
    assert!(found.iter().zip(&expected).all(is_close), "{found:?} are not {expected:?}");
}

/// Three messages of ten flits on a line of five PEs: figure 1 of De Petris and Perego (1994).
const FIGURE_1: &str = "src,dst,bytes\n3,4,10\n2,4,10\n1,3,10\n";

#[test]
fn a_list_of_messages_takes_the_time_of_the_network_model() {
    let sandbox = Sandbox::new();
    sandbox.put("list.csv", FIGURE_1);
    let on = |network: &str| {
        simulate(&sandbox, &format!("--messages list.csv --topology mesh:5 --network {network}"))
    };
    let (found, cycles) = on("wormhole:flit=1,cycles_per_hop=1,buffer=1,handoff=0");
    assert_eq!(cycles, Some(29));
    check(found, [29e-9, 29e-9, 59e-9 / 3.0, 20e-9]);
    // A waiting message occupies no link: the last message waits for the second message only.
    let (found, cycles) = on("packet:bandwidth=1,latency=1");
    assert_eq!(cycles, None);
    check(found, [21.0, 21.0, (11.0 + 21.0 + 21.0) / 3.0, 20.0]);
    check(on("ideal:bandwidth=1,hop=1").0, [12.0, 12.0, (11.0 + 12.0 + 12.0) / 3.0, 20.0]);
    // The links 2 -> 3 and 3 -> 4 carry two messages each.
    check(on("flow:bandwidth=1,latency=0").0, [20.0, 20.0, 20.0, 20.0]);
    let text = sandbox.run("simulate --messages list.csv --topology mesh:5 --network wormhole").result();
    assert!(text.starts_with("3 messages of list.csv on mesh:5, wormhole\n"), "{text}");
    assert!(text.contains("\ncycles           29\n") && text.contains("busiest link     2 -> 3, "), "{text}");
    assert!(!text.contains("per iteration"), "{text}");
}

#[test]
fn a_halo_exchange_takes_compute_and_messages() {
    let sandbox = Sandbox::new();
    sandbox.put("apart.map", "0\n2\n1\n3\n");
    sandbox.put("one_way.csv", "0,1,100\n");
    let line = "--topology mesh:4 --network flow:bandwidth=10,latency=0 --compute 2 --iterations 3";
    let graph = "--graph ring:4,bytes=100";
    // Task i on PE i: each pair of neighbors has its own link, the last pair uses all links.
    let (found, _) = simulate(&sandbox, &format!("{graph} {line}"));
    check(found, [3.0 * 22.0, 22.0, 20.0, 20.0]);
    let (apart, _) = simulate(&sandbox, &format!("{graph} {line} --mapping apart.map"));
    assert!(apart[0] > found[0], "{apart:?}");
    // Edges of a .csv are directed; in other graphs half of the bytes go each way.
    let pair = "--topology mesh:2 --network ideal:bandwidth=10,hop=0";
    check(simulate(&sandbox, &format!("--graph one_way.csv {pair}")).0, [10.0, 10.0, 10.0, 10.0]);
    check(simulate(&sandbox, &format!("--graph mesh:2,bytes=50 {pair}")).0, [5.0, 5.0, 5.0, 5.0]);

    let output = sandbox.run(&format!("simulate {graph} {line}"));
    assert!(output.stderr.contains("without --mapping, task i runs on PE i"), "{output:?}");
    let text = output.result();
    assert!(text.starts_with("3 iterations of ring:4,bytes=100: 4 tasks, 24 messages on mesh:4, "), "{text}");
    assert!(text.contains("\nper iteration    22.0 s\n"), "{text}");
    // Repetitions are not simulated.
    let text = sandbox.run(&format!("simulate {graph} {line}000000")).result();
    assert!(
        text.contains(" iterations; the other iterations are repetitions\n")
            && text.contains("per iteration    22.0 s"),
        "{text}"
    );
}

#[test]
fn networks_are_listed_with_their_parameters() {
    let output = Sandbox::new().run("simulate --network help").result();
    for phrase in
        ["\nideal\n", "\nflow\n", "\npacket\n", "\nwormhole\n", "    routing=fixed: ", "    buffer=1: "]
    {
        assert!(output.contains(phrase), "{output}");
    }
}

#[test]
fn errors_of_simulate_name_a_remedy() {
    let sandbox = Sandbox::new();
    sandbox.put("list.csv", FIGURE_1);
    sandbox.put("short.map", "0\n1\n");
    let graph = "simulate --graph ring:8 --topology mesh:4 --network ideal";
    sandbox.run(graph).failed(2, &["ring:8 has 8 tasks and mesh:4 has 4 PEs; give the PE of every task"]);
    sandbox.run(&format!("{graph} --mapping short.map")).failed(1, &["places 2 objects, not 8"]);
    sandbox.run(&format!("{graph} --mapping none")).failed(2, &["cannot read the list of PEs `none`"]);
    sandbox.run(&format!("{graph} --iterations 0")).failed(2, &["--iterations"]);
    sandbox.run(&format!("{graph} --compute -1")).failed(2, &["--compute"]);
    let list = "simulate --messages list.csv --network";
    sandbox.run(&format!("{list} ideal --topology mesh:4")).failed(1, &["list.csv:2: there is no PE 4"]);
    sandbox.run(&format!("{list} ideel --topology mesh:5")).failed(2, &["did you mean `ideal`?"]);
    sandbox.run(&format!("{list} packet:sise=1 --topology mesh:5")).failed(2, &["did you mean `size`?"]);
    sandbox.run(&format!("{list} wormhole --topology torus:32x32x32")).failed(2, &["use `packet` or `flow`"]);
    sandbox
        .run(&format!("{list} ideal --topology mesh:5 --iterations 2"))
        .failed(2, &["--messages", "--iterations"]);
    sandbox.run("simulate --topology mesh:5 --network ideal").failed(2, &["--graph", "--messages"]);
    sandbox
        .run("simulate --messages none --topology mesh:5 --network ideal")
        .failed(2, &["cannot read the messages `none`"]);
}

#[test]
fn a_recorded_run_takes_the_same_time_with_migrations_and_expedited_messages() {
    let sandbox = Sandbox::new();
    for program in [
        // Cells are expedited.
        "leanmd --cells 3x3x3 --forces modelled --topology torus:3x3 --network flow:bandwidth=175e6 --balancer RotateLB",
        "stencil3d --topology torus:2x2x2 --network packet --balancer RotateLB --overhead 1e-6 --iterations 60 --lb-every 20",
        "kneighbor --elements 64 --charge 1e-9 --topology mesh:4x4 --network wormhole --balancer GreedyLB --initial random",
    ] {
        let program = format!("run {program} --transport simulated --record some.trace --format json");
        let document = sandbox.run(&program).document();
        let took = document["machine"]["seconds"].as_f64().expect("virtual seconds");
        assert_ne!(document["migrations"], 0, "{program}");
        let ([seconds, ..], _) = simulate(&sandbox, "--events some.trace");
        assert!((seconds / took - 1.0).abs() < 1e-6, "{program}: {seconds} instead of {took}");
    }
}

#[test]
fn a_recorded_run_has_new_times_on_another_network_and_mapping() {
    let sandbox = Sandbox::new();
    let program = "run kneighbor --elements 16 --iterations 12 --charge 1e-6 --work 1000 --bytes 100000 \
                   --transport simulated --topology torus:4x4 --network ideal:bandwidth=1e8 --format json";
    let document = sandbox.run(&format!("{program} --record some.trace")).document();
    let took = document["machine"]["seconds"].as_f64().expect("virtual seconds");
    assert_eq!(document, {
        let mut again = sandbox.run(program).document();
        // Only the wall-clock times differ without --record.
        for field in ["seconds", "seconds_per_iteration"] {
            again[field] = document[field].clone();
        }
        again
    });

    let ([seconds, ..], _) = simulate(&sandbox, "--events some.trace");
    assert!((seconds / took - 1.0).abs() < 1e-6, "{seconds} instead of {took}");
    let ([faster, ..], _) = simulate(&sandbox, "--events some.trace --network ideal:bandwidth=1e9");
    assert!(faster < 0.5 * seconds, "{faster} instead of {seconds}");
    sandbox.put("alone.map", "5\n".repeat(16));
    let ([alone, ..], _) = simulate(&sandbox, "--events some.trace --mapping alone.map");
    // Element i of 16 works (i / 15)^2 ms in each iteration.
    let work = 12.0 * (0..16).map(|i| f64::from(1000 * i * i / 225) * 1e-6).sum::<f64>();
    assert!(alone > work && alone < 1.2 * work, "{alone} for {work} of work");
    let text = sandbox.run("simulate --events some.trace --topology torus:8x2").result();
    let phrases = [
        " executions of some.trace (",
        " on torus:4x4, ideal:bandwidth=1e8) on torus:8x2, ideal:bandwidth=1e8\n",
    ];
    assert!(phrases.iter().all(|part| text.contains(part)), "{text}");

    sandbox.put("short.map", "5\n".repeat(15));
    sandbox.run("simulate --events some.trace --mapping short.map").failed(1, &["short.map"]);
    sandbox.run("simulate --events none.trace").failed(2, &["cannot read the trace `none.trace`"]);
    sandbox.put("broken.trace", &sandbox.bytes("some.trace")[..100]);
    sandbox.run("simulate --events broken.trace").failed(1, &["the trace `broken.trace` is truncated"]);
    sandbox.run("simulate --events some.trace --topology mesh:2").failed(2, &["recorded on 16 PEs"]);
    sandbox.run("simulate --events some.trace --graph mesh:2").failed(2, &["cannot be used with"]);
    sandbox.run("run kneighbor --network ideal").failed(2, &["--network without --transport simulated"]);
    let bad = "run kneighbor --transport simulated --network ideal --record no/such/place";
    sandbox.run(bad).failed(2, &["--record: cannot write the trace"]);
}
