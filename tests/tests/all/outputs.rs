//! Outputs of the command: no output replaces an input or another output, limits of moves hold, timelines have the recorded executions.

use equipoise_tests::Sandbox;
use equipoise_tests::perfetto::Timeline;
use serde_json::Value;

/// A folder with inputs of every kind.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run("convert ring:4 tasks.json").result();
    sandbox.put("edges.json", "src,dst,bytes\n0,1,5\n");
    sandbox.put("places.json", "0\n1\n2\n3\n");
    sandbox.put("fixed", "0 0\n");
    let run =
        "run stencil2d --pes 4 --cells 8 --iterations 10 --charge 1e-7 --transport simulated --network flow";
    sandbox.run(&format!("{run} --record run.trace")).result();
    sandbox
}

#[test]
fn no_output_replaces_an_input() {
    let sandbox = sandbox();
    for (line, input) in [
        ("replay tasks.json --topology torus:4 --report tasks.json", "tasks.json"),
        ("replay tasks.json --topology torus:4 --report ./tasks.json", "tasks.json"),
        ("map --graph tasks.json --topology torus:4 --output tasks.json", "tasks.json"),
        ("map --graph ring:4 --topology torus:4 --initial places.json --report places.json", "places.json"),
        ("map --graph ring:4 --topology torus:4 --fixed fixed --launcher mpich=fixed", "fixed"),
        ("map --graph ring:4 --topology mesh:8[@places.json] --output places.json", "places.json"),
        (
            "explain --graph ring:4 --topology torus:4 --mapping places.json --report places.json",
            "places.json",
        ),
        (
            "simulate --messages edges.json --topology torus:4 --network flow --report edges.json",
            "edges.json",
        ),
        ("simulate --events run.trace --perfetto run.trace", "run.trace"),
        ("convert tasks.json tasks.json", "tasks.json"),
        ("convert run.trace ./run.trace", "run.trace"),
        ("launcher mapping=places.json --topology torus:4 --to mpich=places.json", "places.json"),
    ] {
        let content = sandbox.bytes(input);
        let phrase = "would replace an input; give it another path";
        sandbox.run(line).failed(2, &["the output `", input, phrase]);
        assert_eq!(sandbox.bytes(input), content, "{line}");
    }
}

#[test]
fn no_output_replaces_another_output() {
    let sandbox = sandbox();
    for line in [
        "map --graph ring:4 --topology torus:4 --output a.html --report a.html",
        "map --graph ring:4 --topology torus:4 --launcher mpich=a.html --launcher scotch=./a.html",
        "simulate --events run.trace --perfetto a.html --report a.html",
        "launcher mapping=places.json --topology torus:4 --to mpich=a.html --to scotch=a.html",
    ] {
        sandbox
            .run(line)
            .failed(2, &["two outputs have the same path `", "a.html", "give each its own path"]);
        assert!(!sandbox.path().join("a.html").exists(), "{line}");
    }
}

#[test]
fn limits_of_moves_hold() {
    let sandbox = Sandbox::new();
    let map = "map --graph mesh:8x8,bytes=1000 --topology torus:4x4x4 --format json";
    let moves = |flag: &str| {
        let document = sandbox.run(&format!("{map} {flag}")).document();
        document["migrations"].as_u64().expect("a number")
    };
    assert!(moves("") > 6);
    for (flag, most) in
        [("--max-moves 6", 6), ("--max-moves 10%", 6), ("--max-moves 0", 0), ("--max-moves 0%", 0)]
    {
        assert!(moves(flag) <= most, "{flag}: {}", moves(flag));
    }
    assert_eq!(moves("--max-moves 100%"), moves(""));
    let run = "run stencil2d --pes 4 --cells 16 --iterations 20 --imbalance 4 --charge 1e-7 --lb-every 10 --lb-no-background";
    sandbox.run(&format!("{run} --lb-dump s.db")).result();
    let replay = "replay s.db --balancer GreedyLB --balancer RefineLB --format json --max-moves";
    let document = sandbox.run(&format!("{replay} 2,10%,100%")).document();
    let rows: Vec<(&str, u64)> = document["strategies"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| (row["name"].as_str().expect("a name"), row["migrations"].as_u64().expect("a number")))
        .collect();
    assert_eq!(rows.len(), 6, "{rows:?}");
    for limits in rows.chunks(3) {
        let name = limits[0].0.split(' ').next().expect("a name");
        assert!(limits.iter().all(|(row, _)| row.starts_with(name)), "{rows:?}");
        assert!(limits[0].1 <= 2 && limits[1].1 <= 6, "2 and 10 % of 64 objects: {rows:?}");
    }
    for line in [map, "replay s.db"] {
        for value in ["many", "1.5", "101%", "-1%", "NaN%", "%", "1,x"] {
            let refused = sandbox.run(&format!("{line} --max-moves={value}"));
            refused
                .failed(2, &["--max-moves", "expected a number of objects such as 100, or a part of them"]);
        }
    }
    sandbox.run("replay s.db --predict --max-moves 1,2").failed(2, &["more than one limit in --max-moves"]);
}

#[test]
fn a_converted_trace_has_the_recorded_executions() {
    let sandbox = sandbox();
    // The same trace as a document, and the executions that began before its end.
    let run =
        "run stencil2d --pes 4 --cells 8 --iterations 10 --charge 1e-7 --transport simulated --network flow";
    sandbox.run(&format!("{run} --record run.json")).result();
    let trace: Value = serde_json::from_str(&sandbox.text("run.json")).expect("a trace");
    let seconds = trace["seconds"].as_f64().expect("a time");
    let executions = trace["executions"].as_array().expect("a list");
    let begun = executions.iter().filter(|it| it["begin_seconds"].as_f64() < Some(seconds)).count();
    let said = sandbox.run("convert run.trace run.pftrace").result();
    assert_eq!(said, format!("{} executions in run.pftrace\n", executions.len()));
    let timeline = Timeline::read(&sandbox.bytes("run.pftrace"));
    let names = timeline.slices("PE ");
    let last = timeline.events.iter().map(|event| event.nanoseconds).max().expect("events");
    // The last executions may wait for others until the end.
    assert!(
        (begun.max(100)..=executions.len()).contains(&names.len()),
        "{begun} executions, {} slices",
        names.len()
    );
    assert!(names.iter().any(|name| name.starts_with("Block[0, 0].")), "{:?}", &names[..10]);
    assert!((last as f64) * 1e-9 <= seconds + 1e-9, "{last} ns are in the run of {seconds} s");
}

#[test]
fn inputs_that_cannot_be_read_are_refused() {
    let sandbox = sandbox();
    sandbox.put("broken.trace", "no trace");
    std::fs::create_dir(sandbox.path().join("folder")).expect("a folder");
    // A file that is not there is another command line, a broken one is not.
    for (line, name, code) in [
        ("convert nothing.trace out.pftrace", "nothing.trace", 2),
        ("convert broken.trace out.pftrace", "broken.trace", 1),
        ("convert folder out.pftrace", "folder", 2),
        ("replay nothing.db --report out.html", "nothing.db", 2),
        ("replay broken.trace --report out.html", "broken.trace", 1),
        ("explain --graph ring:4 --topology torus:4 --mapping nothing --report out.html", "nothing", 2),
        ("simulate --messages folder --topology torus:4 --network flow --report out.html", "folder", 2),
        ("simulate --events broken.trace --report out.html", "broken.trace", 1),
    ] {
        sandbox.run(line).failed(code, &[name]);
        for output in ["out.pftrace", "out.html"] {
            assert!(!sandbox.path().join(output).exists(), "{line}");
        }
    }
    sandbox
        .run("convert run.trace nowhere/out.pftrace")
        .failed(2, &["nowhere/out.pftrace", "choose a writable path"]);
    let line = "simulate --events run.trace --perfetto nowhere/out.pftrace";
    sandbox.run(line).failed(2, &["nowhere/out.pftrace", "choose a writable path"]);
    let document: Value = serde_json::from_str(&sandbox.text("tasks.json")).expect("an input is as it was");
    assert!(document.is_object());
}
