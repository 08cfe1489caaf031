//! `equipoise simulate`: the numbers of networks that can be checked by hand, and what it refuses.

use std::collections::BTreeSet;

use equipoise_tests::Place;
use serde_json::Value;

/// The fields of every result.
const FIELDS: &[&str] =
    &["seconds", "seconds_per_iteration", "mean_message_latency_seconds", "max_link_seconds"];

/// The result of a simulation: its numbers in the order of [`FIELDS`], and its cycles.
#[track_caller]
fn simulate(place: &Place, line: &str) -> ([f64; 4], Option<u64>) {
    let document: Value = place.run(&format!("simulate {line} --format json")).document();
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
fn check(told: [f64; 4], expected: [f64; 4]) {
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs();
    assert!(told.iter().zip(&expected).all(is_close), "{told:?} are not {expected:?}");
}

/// Three messages of ten flits on a line of five PEs: figure 1 of De Petris and Perego (1994).
const FIGURE_1: &str = "src,dst,bytes\n3,4,10\n2,4,10\n1,3,10\n";

#[test]
fn a_list_of_messages_takes_what_the_network_says() {
    let place = Place::new();
    place.put("list.csv", FIGURE_1);
    let on = |network: &str| {
        simulate(&place, &format!("--messages list.csv --topology mesh:5 --network {network}"))
    };
    let (told, cycles) = on("wormhole:flit=1,cycles_per_hop=1,buffer=1,handoff=0");
    assert_eq!(cycles, Some(29));
    check(told, [29e-9, 29e-9, 59e-9 / 3.0, 20e-9]);
    // What waits does so off the links: the last message has to wait for the second one only.
    let (told, cycles) = on("packet:bandwidth=1,latency=1");
    assert_eq!(cycles, None);
    check(told, [21.0, 21.0, (11.0 + 21.0 + 21.0) / 3.0, 20.0]);
    check(on("ideal:bandwidth=1,hop=1").0, [12.0, 12.0, (11.0 + 12.0 + 12.0) / 3.0, 20.0]);
    // The links 2 -> 3 and 3 -> 4 carry two messages each.
    check(on("flow:bandwidth=1,latency=0").0, [20.0, 20.0, 20.0, 20.0]);
    let text = place.run("simulate --messages list.csv --topology mesh:5 --network wormhole").result();
    assert!(text.starts_with("3 messages of list.csv on mesh:5, wormhole\n"), "{text}");
    assert!(text.contains("\ncycles           29\n") && text.contains("busiest link     2 -> 3, "), "{text}");
    assert!(!text.contains("per iteration"), "{text}");
}

#[test]
fn a_halo_exchange_takes_compute_and_messages() {
    let place = Place::new();
    place.put("apart.map", "0\n2\n1\n3\n");
    place.put("one_way.csv", "0,1,100\n");
    let line = "--topology mesh:4 --network flow:bandwidth=10,latency=0 --compute 2 --iterations 3";
    let graph = "--graph ring:4,bytes=100";
    // Tasks in order: all neighbors at once over links of their own, the last pair over all links too.
    let (told, _) = simulate(&place, &format!("{graph} {line}"));
    check(told, [3.0 * 22.0, 22.0, 20.0, 20.0]);
    let (apart, _) = simulate(&place, &format!("{graph} {line} --mapping apart.map"));
    assert!(apart[0] > told[0], "{apart:?}");
    // A .csv says which way bytes go; another graph sends half of them each way.
    let pair = "--topology mesh:2 --network ideal:bandwidth=10,hop=0";
    check(simulate(&place, &format!("--graph one_way.csv {pair}")).0, [10.0, 10.0, 10.0, 10.0]);
    check(simulate(&place, &format!("--graph mesh:2,bytes=50 {pair}")).0, [5.0, 5.0, 5.0, 5.0]);

    let told = place.run(&format!("simulate {graph} {line}"));
    assert!(told.stderr.contains("there is no --mapping; task i runs on PE i"), "{told:?}");
    let text = told.result();
    assert!(text.starts_with("3 iterations of ring:4,bytes=100: 4 tasks, 24 messages on mesh:4, "), "{text}");
    assert!(text.contains("\nper iteration    22.0 s\n"), "{text}");
    // What repeats itself is not simulated a million times.
    let text = place.run(&format!("simulate {graph} {line}000000")).result();
    assert!(
        text.contains(" iterations; the others repeat them\n") && text.contains("per iteration    22.0 s"),
        "{text}"
    );
}

#[test]
fn networks_are_listed_with_their_parameters() {
    let told = Place::new().run("simulate --network help").result();
    for phrase in
        ["\nideal\n", "\nflow\n", "\npacket\n", "\nwormhole\n", "    routing=fixed: ", "    buffer=1: "]
    {
        assert!(told.contains(phrase), "{told}");
    }
}

#[test]
fn what_cannot_be_simulated_is_said_with_a_remedy() {
    let place = Place::new();
    place.put("list.csv", FIGURE_1);
    place.put("short.map", "0\n1\n");
    let graph = "simulate --graph ring:8 --topology mesh:4 --network ideal";
    place.run(graph).failed(2, &["ring:8 has 8 tasks and mesh:4 4 PEs; give --mapping FILE"]);
    place.run(&format!("{graph} --mapping short.map")).failed(1, &["places 2 objects, and there are 8"]);
    place.run(&format!("{graph} --mapping none")).failed(2, &["cannot read the mapping `none`"]);
    place.run(&format!("{graph} --iterations 0")).failed(2, &["--iterations"]);
    place.run(&format!("{graph} --compute -1")).failed(2, &["--compute"]);
    let list = "simulate --messages list.csv --network";
    place.run(&format!("{list} ideal --topology mesh:4")).failed(1, &["list.csv:2: there is no PE 4"]);
    place.run(&format!("{list} ideel --topology mesh:5")).failed(2, &["did you mean `ideal`?"]);
    place.run(&format!("{list} packet:sise=1 --topology mesh:5")).failed(2, &["did you mean `size`?"]);
    place.run(&format!("{list} wormhole --topology torus:32x32x32")).failed(2, &["use `packet` or `flow`"]);
    place
        .run(&format!("{list} ideal --topology mesh:5 --iterations 2"))
        .failed(2, &["--messages", "--iterations"]);
    place.run("simulate --topology mesh:5 --network ideal").failed(2, &["--graph", "--messages"]);
    place
        .run("simulate --messages none --topology mesh:5 --network ideal")
        .failed(2, &["cannot read the messages `none`"]);
}

#[test]
fn a_recorded_run_takes_as_long_again_whatever_moves_and_goes_first() {
    let place = Place::new();
    for program in [
        // Cells are expedited.
        "leanmd --cells 3x3x3 --forces modelled --topology torus:3x3 --network flow:bandwidth=175e6 --balancer RotateLB",
        "stencil3d --topology torus:2x2x2 --network packet --balancer RotateLB --overhead 1e-6 --iterations 60 --lb-every 20",
        "kneighbor --elements 64 --charge 1e-9 --topology mesh:4x4 --network wormhole --balancer GreedyLB --initial random",
    ] {
        let program = format!("run {program} --transport simulated --record some.trace --format json");
        let document = place.run(&program).document();
        let took = document["machine"]["seconds"].as_f64().expect("virtual seconds");
        assert_ne!(document["migrations"], 0, "{program}");
        let ([seconds, ..], _) = simulate(&place, "--events some.trace");
        assert!((seconds / took - 1.0).abs() < 1e-6, "{program}: {seconds} instead of {took}");
    }
}

#[test]
fn a_recorded_run_is_timed_anew() {
    let place = Place::new();
    let program = "run kneighbor --elements 16 --iterations 12 --charge 1e-6 --work 1000 --bytes 100000 \
                   --transport simulated --topology torus:4x4 --network ideal:bandwidth=1e8 --format json";
    let document = place.run(&format!("{program} --record some.trace")).document();
    let took = document["machine"]["seconds"].as_f64().expect("virtual seconds");
    assert_eq!(document, {
        let mut again = place.run(program).document();
        // But for the clock of this machine the run is the same without a record.
        for field in ["seconds", "seconds_per_iteration"] {
            again[field] = document[field].clone();
        }
        again
    });

    let ([seconds, ..], _) = simulate(&place, "--events some.trace");
    assert!((seconds / took - 1.0).abs() < 1e-6, "{seconds} instead of {took}");
    let ([faster, ..], _) = simulate(&place, "--events some.trace --network ideal:bandwidth=1e9");
    assert!(faster < 0.5 * seconds, "{faster} instead of {seconds}");
    place.put("alone.map", "5\n".repeat(16));
    let ([alone, ..], _) = simulate(&place, "--events some.trace --mapping alone.map");
    // Element i of 16 works (i / 15)^2 ms in each iteration.
    let work = 12.0 * (0..16).map(|i| f64::from(1000 * i * i / 225) * 1e-6).sum::<f64>();
    assert!(alone > work && alone < 1.2 * work, "{alone} for {work} of work");
    let text = place.run("simulate --events some.trace --topology torus:8x2").result();
    let told = [
        " executions of some.trace (",
        " on torus:4x4, ideal:bandwidth=1e8) on torus:8x2, ideal:bandwidth=1e8\n",
    ];
    assert!(told.iter().all(|part| text.contains(part)), "{text}");

    place.put("short.map", "5\n".repeat(15));
    place.run("simulate --events some.trace --mapping short.map").failed(1, &["short.map"]);
    place.run("simulate --events none.trace").failed(2, &["cannot read the trace `none.trace`"]);
    place.put("broken.trace", &place.bytes("some.trace")[..100]);
    place.run("simulate --events broken.trace").failed(1, &["the trace `broken.trace` is truncated"]);
    place.run("simulate --events some.trace --topology mesh:2").failed(2, &["recorded on 16 PEs"]);
    place.run("simulate --events some.trace --graph mesh:2").failed(2, &["cannot be used with"]);
    place.run("run kneighbor --network ideal").failed(2, &["--network without --transport simulated"]);
    let bad = "run kneighbor --transport simulated --network ideal --record no/such/place";
    place.run(bad).failed(2, &["--record: cannot write the trace"]);
}
