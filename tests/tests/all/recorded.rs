//! `--record`, `--perfetto` and `--metrics` of runs on threads.

use equipoise_network::trace::Trace;
use equipoise_tests::Sandbox;
use equipoise_tests::perfetto::{Kind, Timeline};
use equipoise_tests::prometheus::{samples, sum};

/// The command of a program with guarded messages and migrations.
fn amr(iterations: u32) -> String {
    format!(
        "run amr --pes 2 --blocks 4 --cells 8 --levels 3 --iterations {iterations} --lb-every 10 --balancer RotateLB --format json"
    )
}

#[test]
fn a_timeline_of_a_run_shows_executions_waits_steps_migrations_and_counters() {
    let sandbox = Sandbox::new();
    let line = format!("{} --record run.trace --perfetto run.pftrace", amr(60));
    let document = sandbox.run(&line).document();
    let number = |name: &str| document[name].as_u64().expect("a number") as usize;
    let trace = Trace::read(sandbox.path().join("run.trace")).expect("a trace");
    assert_eq!(
        (trace.pes, &*trace.network, trace.executions.len() > number("executions")),
        (2, "threads", true)
    );
    let timeline = Timeline::read(&sandbox.bytes("run.pftrace"));
    let mut slices = timeline.slices("PE ");
    slices.retain(|name| *name != "runtime");
    // Work after the exit is not shown.
    assert!((number("executions") - 20..=number("executions")).contains(&slices.len()), "{}", slices.len());
    assert!(slices.iter().any(|name| name.contains("[") && name.contains("].")), "{:?}", &slices[..10]);
    let instants = timeline.events.iter().filter(|event| event.kind == Kind::Instant);
    let left = instants.filter(|event| event.name.contains("] leaves for PE ")).count();
    assert_eq!(left, number("migrations"));
    let steps = timeline.slices("load balancing");
    assert_eq!(steps.len(), document["lb_steps"].as_array().expect("a list").len());
    assert!(!steps.is_empty() && steps.iter().all(|name| name.ends_with(": RotateLB")), "{steps:?}");
    for pe in 0..2 {
        let waits = timeline.slices(&format!("waits for guards on PE {pe}"));
        assert!(!waits.is_empty() && waits.iter().all(|name| name.ends_with(" waits for its guard")));
    }
    for counter in ["messages for PE 0", "messages for PE 1", "load: max/avg", "memory"] {
        let values = timeline.on(counter).map(|event| match event.kind {
            Kind::Counter(value) => value,
            other => panic!("{other:?}"),
        });
        assert!(values.fold(0.0, f64::max) > 0.9, "{counter}");
    }
    let flows = timeline.events.iter().map(|event| event.flows.len()).sum::<usize>();
    assert!(flows * 2 > trace.messages.len(), "{flows} of {} messages are flows", trace.messages.len());

    // The same timeline from the trace; without the machine, there are no links.
    sandbox.run("convert run.trace again.pftrace").result();
    let again = Timeline::read(&sandbox.bytes("again.pftrace"));
    assert_eq!(again.slices("").len(), timeline.slices("").len());
    let simulated = |network: &str| {
        let line = format!("simulate --events run.trace --topology mesh:2 --network {network} --format json");
        sandbox.run(&line).document()["seconds"].as_f64().expect("a time")
    };
    let (fast, slow) = (simulated("ideal:latency=1e-9"), simulated("ideal:latency=1e-3"));
    assert!(fast < 1.1 * trace.seconds && slow > fast + 0.01, "{fast}, {slow}, {}", trace.seconds);
}

#[test]
fn files_that_cannot_be_written_and_flags_that_do_not_fit_are_refused_before_the_run() {
    let sandbox = Sandbox::new();
    for (flags, says) in [
        ("--record no/such/place", "--record: cannot write the trace"),
        ("--perfetto no/such/place", "--perfetto: cannot write `no/such/place`"),
        ("--metrics no/such/place", "--metrics: cannot write `no/such/place`"),
        ("--record-limit 64MB", "--record-limit without --record or --perfetto: add one of them"),
        ("--record some --record-limit 64", "2 PEs need at least 512k; give --record-limit 512k"),
        ("--record some --record-limit much", "expected bytes such as 4096, 44M or 1e9"),
        ("--metrics some --metrics-every 0", "--metrics-every 0"),
        ("--metrics-every 1", "--metrics"),
        ("--perfetto some --transport simulated", "without a network there is no time to record"),
        ("--metrics some --transport simulated --network flow", "leave it out"),
    ] {
        sandbox.run(&format!("run kneighbor --pes 2 {flags}")).failed(2, &[says]);
        assert!(!sandbox.path().join("some").exists(), "{flags}");
    }
}

#[test]
fn a_run_that_fails_leaves_what_was_recorded() {
    let sandbox = Sandbox::new();
    for how in ["panic", "rest", "panic-while-busy"] {
        let flags = format!("--record {how}.trace --perfetto {how}.pftrace --metrics {how}.prom");
        let output = sandbox.failing(&format!("{how} --pes 2 {flags}"));
        assert_eq!(output.code, Some(1), "{output:?}");
        let trace = Trace::read(sandbox.path().join(format!("{how}.trace"))).expect("a trace");
        assert_eq!(trace.exit, None);
        let elements = trace.executions.iter().filter(|it| it.object >= trace.pes).count();
        assert!(elements > 0 || how == "panic-while-busy", "{how}");
        let timeline = Timeline::read(&sandbox.bytes(&format!("{how}.pftrace")));
        assert_eq!(timeline.slices("PE ").iter().filter(|name| **name != "runtime").count(), elements);
        samples(&sandbox.text(&format!("{how}.prom")));
    }
}

/// The messages that all PEs have executed.
fn executed(metrics: &str) -> f64 {
    let all = samples(metrics);
    all.iter().filter(|((name, _), _)| name.ends_with("pe_messages_total")).map(|(_, count)| count).sum()
}

#[test]
#[cfg(unix)]
fn a_run_that_a_signal_ends_leaves_what_was_recorded() {
    let simulated = " --transport simulated --topology mesh:2 --network packet";
    for (how, signal, code) in [("", "INT", 130), ("", "TERM", 143), (simulated, "TERM", 143)] {
        let sandbox = Sandbox::new();
        let metrics =
            if how.is_empty() { "--metrics run.prom --metrics-every 0.01" } else { "--record run.trace" };
        let line = format!("{}{how} --perfetto run.pftrace --report run.json {metrics}", amr(10_000_000));
        let child = sandbox.start(&line);
        match how {
            // A busy computer may write the first metrics before much was executed.
            "" => {
                sandbox.wait_for("run.prom");
                while executed(&sandbox.text("run.prom")) < 1000.0 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            _ => std::thread::sleep(std::time::Duration::from_millis(500)),
        }
        assert!(equipoise_tests::signal(signal, child.id()), "it has not been waited for");
        let output = child.wait_with_output().expect("it ends");
        let says = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{says}");
        let note =
            format!("note: SIG{signal}: the run ends and writes its files; a second signal ends it at once");
        assert!(says.contains(&note), "{says}");
        assert!(says.ends_with(&format!("error: interrupted by SIG{signal}\n")), "{says}");
        let timeline = Timeline::read(&sandbox.bytes("run.pftrace"));
        assert!(timeline.slices("PE ").len() > 100);
        let report: serde_json::Value = serde_json::from_str(&sandbox.text("run.json")).expect("a report");
        assert!(report["timeline"].is_object(), "{says}");
    }
}

#[test]
fn outputs_with_the_file_of_another_flag_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.put("there.json", "{}");
    for (flags, says) in [
        ("--report a.html --perfetto ./a.html", "--report and --perfetto name the same file"),
        ("--report there.json --record ./there.json", "--report and --record name the same file"),
        ("--record a.trace --perfetto ./a.trace", "--record and --perfetto name the same file"),
        ("--report a.html --metrics a.html", "--report and --metrics name the same file"),
        ("--lb-dump u.json --report u.json --balancer DummyLB", "--report and --lb-dump name the same file"),
        ("--cost-model there.json --report ./there.json", "--report would replace the file of --cost-model"),
        (
            "--initial there.json --lb-dump there.json --balancer DummyLB",
            "--lb-dump would replace the file of --initial",
        ),
        (
            "--perfetto run.json",
            "the file has Perfetto's format, and `run.json` is the name of another format; name it as in run.pftrace",
        ),
    ] {
        sandbox.run(&format!("run kneighbor --pes 2 {flags}")).failed(2, &[says]);
    }
    // Streams take several outputs.
    sandbox.run("run kneighbor --pes 2 --iterations 5 --record /dev/null --perfetto /dev/null").result();
}

#[test]
fn metrics_are_whole_at_any_time_and_complete_at_the_end() {
    let sandbox = Sandbox::new();
    let line = format!("{} --metrics run.prom --metrics-every 0.02", amr(600));
    let mut child = sandbox.start(&line);
    sandbox.wait_for("run.prom");
    let mut seen = Vec::new();
    while child.try_wait().expect("a child can be waited for").is_none() {
        seen.push(samples(&sandbox.text("run.prom")));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(child.wait().expect("it has ended").success());
    seen.push(samples(&sandbox.text("run.prom")));
    seen.dedup();
    assert!(seen.len() > 3, "the file was written {} times", seen.len());
    for pair in seen.windows(2) {
        for (key, before) in pair[0].iter().filter(|(key, _)| key.0.ends_with("_total")) {
            assert!(pair[1][key] >= *before, "{key:?} decreases: {before}, {}", pair[1][key]);
        }
    }
    let last = seen.last().expect("a file");
    assert!(
        sum(last, "equipoise_resident_memory_bytes") > 1e6 && sum(last, "equipoise_pe_queue_length") >= 0.0
    );
    let run = sum(last, "equipoise_run_seconds_total");
    let pes = sum(last, "equipoise_pe_busy_seconds_total") + sum(last, "equipoise_pe_idle_seconds_total");
    assert!((pes - 2.0 * run).abs() < 0.01 * run, "{pes} s of 2 PEs in a run of {run} s");

    let document = sandbox.run(&format!("{} --metrics short.prom", amr(60))).document();
    let short = samples(&sandbox.text("short.prom"));
    let number = |name: &str| document[name].as_f64().expect("a number");
    assert_eq!(sum(&short, "equipoise_pe_messages_total"), number("executions"));
    assert_eq!(sum(&short, "equipoise_pe_remote_messages_total"), number("remote_messages"));
    assert_eq!(sum(&short, "equipoise_pe_migrations_total"), number("migrations"));
    let steps = document["lb_steps"].as_array().expect("a list").len();
    assert_eq!(sum(&short, "equipoise_lb_steps_total"), steps as f64);
    assert!(sum(&short, "equipoise_lb_step_seconds_total") > 0.0);
}
