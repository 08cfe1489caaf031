//! The exit code and the output of a chare program's process.

use equipoise_tests::{ProcessOutput, Sandbox};

/// Both transports; errors are the same on both.
const TRANSPORTS: [&str; 2] = ["--transport threads", "--transport simulated --seed 5"];

#[test]
fn a_panic_in_an_entry_method_ends_with_1_and_names_element_entry_and_pe() {
    for transport in TRANSPORTS {
        let output = Sandbox::new().failing(&format!("panic --pes 2 {transport}"));
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
        let last = output.stderr.lines().last().unwrap_or_default();
        // The place of `panic!` in the file.
        let sentence = "error: Runner[3] in entry `run` on PE 1 panicked: dropped the baton after 3 laps \
                        (tests/examples/failing.rs:77:27)";
        let again = if transport.contains("seed") { " (simulated: seed 5 repeats it)" } else { "" };
        assert_eq!(last, format!("{sentence}{again}"), "{output:?}");
    }
}

#[test]
fn quiescence_without_an_exit_ends_with_1_and_names_waiting_elements() {
    for transport in TRANSPORTS {
        let output = Sandbox::new().failing(&format!("rest --pes 2 {transport}"));
        output.failed(
            1,
            &["the run came to rest without an exit", "no message is in flight", "\n  PE 0: Runner[1]"],
        );
        assert_eq!(output.stderr.contains("seed 5 repeats it"), transport.contains("seed"), "{output:?}");
    }
}

/// Runs the failing program with each of these words on each transport, at the same time.
fn at_once(lines: &[&str]) -> Vec<(String, ProcessOutput)> {
    let run = |line: String| {
        let output = Sandbox::new().failing(&line);
        (line, output)
    };
    std::thread::scope(|scope| {
        let lines = lines.iter().flat_map(|line| TRANSPORTS.map(|transport| format!("{line} {transport}")));
        let threads: Vec<_> = lines.map(|line| scope.spawn(move || run(line))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a process")).collect()
    })
}

#[test]
fn the_time_limit_ends_a_process_whose_code_never_returns_and_names_the_code() {
    let time = "--pes 2 --time-limit 1";
    let lines = [
        format!("spin {time}"),
        format!("spin-main {time}"),
        format!("spin-setup {time}"),
        format!("spin-after-exit {time}"),
        format!("balance {time} --balancer Spins"),
    ];
    for (line, output) in at_once(&lines.each_ref().map(String::as_str)) {
        let what = match line.split(' ').next().unwrap_or_default() {
            "spin" | "spin-after-exit" => "Runner[3] in entry `run` on PE 1 has run for ",
            "spin-main" => "`main` on PE 0 has run for ",
            "spin-setup" => "the setup of PE 0 has run for ",
            _ => "the load balancer Spins at step 0 on PE 0 has run for ",
        };
        output.failed(1, &["error: the run did not end within --time-limit 1 ", what, "has not returned"]);
        assert_eq!(output.stdout, "", "{line}");
        assert_eq!(output.stderr.contains("simulated with seed 5"), line.contains("seed"), "{output:?}");
    }
}

#[test]
fn the_time_limit_ends_a_process_whose_messages_circulate() {
    let virtual_time = "circle --pes 2 --time-limit 0.3 --network ideal --transport simulated";
    let mut outputs = at_once(&["circle --pes 2 --time-limit 0.3"]);
    outputs.push((virtual_time.into(), Sandbox::new().failing(virtual_time)));
    for (line, output) in outputs {
        output.failed(1, &["error: the run did not end within --time-limit 0.3", "Runner"]);
        // Runner[1] has a message whose guard is false, and one message circulates.
        let guard = "Runner[1] has 1 message for `wait`, whose guard is false";
        assert!(output.stderr.contains(guard), "{line}: {output:?}");
    }
}

#[test]
fn the_watchdog_names_the_code_that_runs_longest_in_every_interval() {
    let watch = "--pes 2 --watchdog 0.2 --time-limit 1.5";
    let lines = [format!("spin {watch}"), format!("spin-main {watch}")];
    for (line, output) in at_once(&lines.each_ref().map(String::as_str)) {
        let what = match line.split(' ').next().unwrap_or_default() {
            "spin" => "Runner[3] in entry `run` on PE 1 has run for ",
            _ => "`main` on PE 0 has run for ",
        };
        let warnings = output.stderr.lines().filter(|line| line.starts_with("warning: --watchdog: ")).count();
        let named = output.stderr.matches(&format!("warning: --watchdog: {what}")).count();
        assert_eq!(output.code, Some(1), "{output:?}");
        assert_eq!(warnings, named, "{line}: {output:?}");
        // Machines under load miss intervals.
        assert!(named >= 3, "{line}: {output:?}");
    }
}

#[test]
fn the_watchdog_does_not_name_an_entry_that_panicked() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.failing("panic-while-busy --pes 2 --record-order order").code, Some(1));
    // In one thread, the panic comes first.
    let output = sandbox.failing("panic-while-busy --replay-order order --watchdog 0.5");
    let sentence = "error: Runner[0] in entry `pause_and_panic` on PE 0 panicked: dropped the baton (";
    assert!(output.code == Some(1) && output.stderr.contains(sentence), "{output:?}");
    let warnings: Vec<&str> = output.stderr.lines().filter(|line| line.contains("--watchdog")).collect();
    // Printing the trace of the panic may take so long that the first warning names it.
    let last = warnings.last().expect("the pause is longer than the interval");
    assert!(last.contains("Runner[3] in entry `pause` on PE 1 has run for "), "{output:?}");
}

#[test]
fn a_strategy_that_panics_skips_its_step_or_ends_a_strict_run() {
    for (line, output) in at_once(&["balance --pes 2 --balancer Panics"]) {
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "3 laps\n"), "{line}: {output:?}");
        let sentence = "warning: load-balancing step 0: Panics failed: the strategy panicked: it fell over";
        assert!(output.stderr.contains(sentence), "{output:?}");
    }
    for (_, output) in at_once(&["balance --pes 2 --balancer Panics --lb-strict"]) {
        let sentence = "error: load-balancing step 0: Panics failed: the strategy panicked: it fell over";
        assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
        assert!(output.stderr.contains(sentence), "{output:?}");
        assert!(output.stderr.contains("; --lb-strict ends the run"), "{output:?}");
    }
}

#[test]
fn a_program_that_succeeds_ends_with_0() {
    for transport in TRANSPORTS {
        assert_eq!(Sandbox::new().failing(&format!("not +p3 {transport}")).result(), "3 laps\n");
    }
}

#[test]
fn invalid_flags_end_with_2_and_name_the_remedy() {
    let sandbox = Sandbox::new();
    for (flags, phrases) in [
        ("--pes 0", &["--pes is 0; give a number from 1 to"][..]),
        ("--pes many", &["invalid value 'many' for '--pes <N>'"]),
        ("--balancr DummyLB", &["unexpected argument '--balancr'", "'--balancer'"]),
        (
            "+unknown",
            &["unknown flag +unknown; the flags of Charm++ that are translated are +pN, +balancer, +LBOff, "],
        ),
        ("--pes 4 --topology torus:3", &["--topology torus:3 has 3 PEs and --pes is 4; make them equal"]),
        ("--topology tours:2x2", &["--topology: ", "did you mean `torus`?"]),
        ("--balancer GredyLB", &["--balancer GredyLB: ", "did you mean `GreedyLB`?"]),
        ("--balancer DummyLB --then RotatLB", &["--then RotatLB: ", "did you mean `RotateLB`?"]),
        ("--then DummyLB", &["--balancer <SPEC>"]),
        ("--lb-schedule none", &["--lb-schedule none: ", "name a file with lines `[%]STEP NAME"]),
        ("--lb-dump-steps 2", &["--lb-dump <FILE>"]),
        (
            "--lb-dump no/such/place",
            &["--lb-dump: cannot write the database `no/such/place`", "name a place"],
        ),
        (
            "--initial none",
            &["--initial: cannot read the list of PEs `none`", "write blocks, roundrobin or random"],
        ),
        ("--lb-sim 0", &["--lb-sim-file <FILE>"]),
        ("--lb-sim 0 --lb-sim-file none", &["cannot read the database `none`"]),
        ("--time-limit 0", &["--time-limit 0: give seconds from 0.001 to 1000000000"]),
        ("--time-limit -1", &["--time-limit -1: give seconds from 0.001 to 1000000000"]),
        ("--time-limit nan", &["--time-limit NaN: give seconds from 0.001 to 1000000000"]),
        ("--watchdog inf", &["--watchdog inf: give seconds from 0.001 to 1000000000"]),
        ("--watchdog soon", &["invalid value 'soon' for '--watchdog <SECONDS>'"]),
        ("--transport pigeons", &["[possible values: threads, simulated, mpi]"]),
    ] {
        sandbox.failing(&format!("not {flags}")).failed(2, phrases);
        sandbox.run(&format!("run kneighbor {flags}")).failed(2, phrases);
    }
}

#[test]
fn files_with_broken_content_end_with_1_and_name_the_remedy() {
    let sandbox = Sandbox::new();
    sandbox.put("short.map", "0\n1\n0\n");
    sandbox.put("wild.map", "0\n7\n");
    sandbox.put("broken.schedule", "0 DummyLB\nthen RotateLB\n");
    sandbox.put("empty.schedule", "# nothing\n");
    sandbox.put("foreign.db", "Dear reader,\n");
    sandbox.put("words.map", "0\none\n");
    sandbox.put("matrix", "0 1\n1 0 2\n");
    for (flags, phrases) in [
        ("--pes 2 --initial wild.map", &["--initial: the mapping `wild.map`: line 2: there is no PE 7"][..]),
        (
            "--pes 2 --initial short.map",
            &["--initial lists 3 PEs, and no array has 3 elements (", "write a line for each element"],
        ),
        (
            "--lb-schedule broken.schedule",
            &["--lb-schedule broken.schedule: line 2: expected a step such as"],
        ),
        (
            "--lb-schedule empty.schedule",
            &["--lb-schedule empty.schedule: the file has no rule; write lines"],
        ),
        ("--lb-sim 0 --lb-sim-file foreign.db", &["`foreign.db` is not a database"]),
        (
            "--balancer FileLB:path=words.map",
            &["--balancer FileLB:path=words.map: ", "line 2: expected one PE"],
        ),
        ("--topology matrix:matrix", &["--topology: `matrix:matrix` is not a topology: matrix: line 2: "]),
    ] {
        sandbox.failing(&format!("not {flags}")).failed(1, phrases);
        sandbox.run(&format!("run kneighbor {flags}")).failed(1, phrases);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_result_is_shown_even_if_databases_cannot_be_written() {
    let line = "run kneighbor --pes 2 --iterations 6 --lb-every 3 --lb-dump /dev/full";
    for (format, expected) in [("text", "messages      4608"), ("json", "\"messages\": 4608")] {
        let output = Sandbox::new().run(&format!("{line} --format {format}"));
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stdout.contains(expected), "{output:?}");
        assert!(output.stderr.starts_with("error: cannot write the database `/dev/full`: "), "{output:?}");
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    }
}

#[test]
fn fewer_steps_than_requested_are_a_warning() {
    let sandbox = Sandbox::new();
    let output =
        sandbox.run("run kneighbor --pes 2 --iterations 9 --lb-every 3 --lb-dump lb.db --lb-dump-steps 9");
    let expected = "warning: --lb-dump lb.db: 2 of 9 databases written from step 0 on; the run had no more \
                    load-balancing steps\n";
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), expected), "{output:?}");
}
