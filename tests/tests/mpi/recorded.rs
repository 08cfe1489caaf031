//! Recordings of several processes.

use equipoise_network::trace::{Step, Trace};
use equipoise_tests::Sandbox;
use equipoise_tests::mpi::{Launcher, start_without_launcher};
use equipoise_tests::perfetto::Timeline;
use equipoise_tests::prometheus::{samples, sum};

#[test]
fn processes_write_one_trace_and_state_the_error_of_their_clocks() {
    let Some(launcher) = Launcher::find() else { return };
    for (processes, pes) in [(1, 1), (3, 1), (2, 2)] {
        let sandbox = Sandbox::new();
        let line = format!(
            "equipoise run amr --blocks 4 --cells 8 --levels 3 --iterations 40 --lb-every 10 --balancer RotateLB --time-limit 60 \
             --transport mpi --pes-per-process {pes} --record run.trace --perfetto run.pftrace --metrics run.%p.prom --format json"
        );
        let output = launcher.start(&sandbox, &[(processes, &line)]).end().0;
        let note = format!("the clocks of {processes} processes are aligned within ");
        assert_eq!(output.stderr.contains(&note), processes > 1, "{}", output.stderr);
        let document = output.document();
        let number = |name: &str| document[name].as_u64().expect("a number") as usize;
        let trace = Trace::read(sandbox.path().join("run.trace")).expect("a trace");
        assert_eq!((trace.pes as usize, &*trace.network), (processes * pes, "mpi"));
        let elements = trace.executions.iter().filter(|it| it.object >= trace.pes).count();
        assert_eq!(elements, number("executions"), "{processes} x {pes}");
        assert_eq!(trace.details.migrations.len(), number("migrations"));

        // Nothing arrives earlier than it is sent, up to the errors of two clocks. Threads that share cores answer when they are
        // scheduled: with more of them than cores the error is that of a scheduler.
        let error = trace.details.clock_error_seconds;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let limit = if processes * (pes + 1) <= cores { 1e-3 } else { 1e-2 };
        assert!(error < limit, "{processes} x {pes}: the clocks are off by {error} s");
        let received = trace.receives(|at| Some(trace.executions[at as usize].begin_seconds));
        let (mut between, mut all) = (0, 0);
        for execution in &trace.executions {
            for step in &execution.steps {
                let Step::Send(message) = step else { continue };
                let Some(at) = received[*message as usize] else { continue };
                let receiver = &trace.executions[at as usize];
                all += 1;
                between += u32::from(execution.pe as usize / pes != receiver.pe as usize / pes);
                let early = execution.begin_seconds - receiver.begin_seconds;
                assert!(early <= 2.0 * error + 1e-9, "{processes} x {pes}: {early} s, {error}");
            }
        }
        assert!(all * 100 >= trace.messages.len() * 99, "{all} of {} messages", trace.messages.len());
        assert!(processes == 1 || between > 100, "{between} messages between processes");

        let timeline = Timeline::read(&sandbox.bytes("run.pftrace"));
        assert_eq!(timeline.slices("load balancing").len(), number_of(&document["lb_steps"]));
        let simulate = format!(
            "equipoise simulate --events run.trace --topology mesh:{} --network ideal --format json",
            processes * pes
        );
        let simulated = start_without_launcher(&sandbox, &simulate).end().0.document();
        assert!(simulated["seconds"].as_f64() > Some(0.0), "{simulated}");

        let metrics: Vec<_> =
            (0..processes).map(|at| samples(&sandbox.text(&format!("run.{at}.prom")))).collect();
        let total = |name| metrics.iter().map(|of| sum(of, name)).sum::<f64>();
        assert_eq!(total("equipoise_pe_messages_total"), number("executions") as f64);
        assert_eq!(total("equipoise_pe_migrations_total"), number("migrations") as f64);
    }
}

fn number_of(list: &serde_json::Value) -> usize {
    list.as_array().expect("a list").len()
}

#[test]
fn a_failed_job_leaves_what_was_recorded_and_processes_need_names_of_their_own() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    let line = "failing panic --transport mpi --record run.trace";
    let output = launcher.start(&sandbox, &[(2, line)]).end().0;
    assert!(output.code != Some(0) && output.stderr.contains("dropped the baton"), "{output:?}");
    let trace = Trace::read(sandbox.path().join("run.trace")).expect("a trace");
    assert_eq!((trace.pes, trace.exit), (2, None));
    let line = "equipoise run kneighbor --transport mpi --metrics run.prom";
    let output = launcher.start(&sandbox, &[(2, line)]).end().0;
    assert!(output.stderr.contains("put %p into the name"), "{output:?}");
}

#[test]
#[ignore = "slow"]
fn a_failed_job_keeps_a_recording_that_takes_long_to_write() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    let line = "equipoise run kneighbor --elements 64 --iterations 100000000 --lb-every 0 --bytes 8 --time-limit 8 --transport mpi \
                --record run.trace --record-limit 64M";
    let output = launcher.start(&sandbox, &[(2, line)]).end().0;
    assert!(output.code != Some(0) && output.stderr.contains("--time-limit"), "{output:?}");
    let trace = Trace::read(sandbox.path().join("run.trace")).expect("a trace");
    assert!(trace.executions.len() > 100_000, "{} executions", trace.executions.len());
}
