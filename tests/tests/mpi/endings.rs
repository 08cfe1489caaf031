//! How jobs end: with one error, within a short time, without a process that remains.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use equipoise_tests::mpi::{CARRIERS, Carrier, Launcher};
use equipoise_tests::{ProcessOutput, Sandbox, signal};

/// How much longer a failed job may take than a job that exits, from its start.
const SOON: Duration = Duration::from_secs(2);

/// The time in which a failed job of this number of processes ends: that of a job that exits, on this computer, which may be busy,
/// and some time more.
fn limit(launcher: &Launcher, carrier: Carrier, processes: usize, longer: Duration) -> Duration {
    let line = "traffic all --bytes 1 --times 1 --transport mpi";
    let (output, took) = launcher.start_on(carrier, &Sandbox::new(), &[(processes, line)]).end();
    assert_eq!(output.code, Some(0), "{output:?}");
    took + longer
}

/// Runs a job that fails with one of these exit codes and one error with these phrases, and ends in time.
#[track_caller]
fn fails(
    parts: &[(usize, &str)],
    longer: Duration,
    codes: &[i32],
    phrases: &[&str],
) -> Option<ProcessOutput> {
    let launcher = Launcher::find()?;
    let processes = parts.iter().map(|(processes, _)| processes).sum();
    let within = limit(&launcher, Carrier::SharedMemory, processes, longer);
    let (output, took) = launcher.start(&Sandbox::new(), parts).end();
    assert!(output.code.is_some_and(|code| codes.contains(&code)), "{output:?}");
    assert_eq!(errors(&output), 1, "{output:?}");
    for phrase in phrases {
        assert!(output.stderr.contains(phrase), "no `{phrase}` in {output:?}");
    }
    assert!(took < within, "{took:?}: {output:?}");
    Some(output)
}

/// The number of errors.
fn errors(output: &ProcessOutput) -> usize {
    output.stderr.lines().filter(|line| line.starts_with("error: ")).count()
}

/// All causes of failures that processes report, on every carrier, with one PE per process and with two.
#[test]
fn failures_end_all_processes_on_all_carriers_and_shapes() {
    let Some(launcher) = Launcher::find() else { return };
    let causes = [
        ("failing panic", 1, "Runner[3] in entry `run` on PE "),
        ("failing panic-in-main", 1, "`main` on PE 0 panicked: no runner"),
        ("failing panic-in-setup", 1, "the setup of PE 1 panicked: no baton"),
        ("failing panic-in-drop", 1, "a destructor at the end of PE "),
        ("failing rest", 1, "the run came to rest without an exit"),
        ("equipoise run kneighbor --balancer GredyLB", 2, "did you mean `GreedyLB`?"),
    ];
    for (carrier, (processes, pes)) in
        CARRIERS.into_iter().flat_map(|on| [(2, 2), (3, 1)].map(|shape| (on, shape)))
    {
        let within = limit(&launcher, carrier, processes, SOON);
        for (line, code, phrase) in causes {
            let line = format!("{line} --transport mpi --pes-per-process {pes}");
            let (output, took) = launcher.start_on(carrier, &Sandbox::new(), &[(processes, &line)]).end();
            assert_eq!((output.code, errors(&output)), (Some(code), 1), "{carrier:?}: {output:?}");
            assert!(output.stderr.contains(phrase), "{carrier:?}: {output:?}");
            assert!(took < within, "{took:?} on {carrier:?}: {output:?}");
        }
    }
}

/// The launcher of Open MPI then waits for a second or two before it kills processes that have not ended.
#[test]
fn failures_end_all_processes_with_the_settings_of_the_launcher() {
    let Some(launcher) = Launcher::find().map(Launcher::as_installed) else { return };
    for (line, code) in [("failing panic", 1), ("failing rest", 1), ("failing not --balancer GredyLB", 2)] {
        let line = format!("{line} --transport mpi");
        let within = limit(&launcher, Carrier::SharedMemory, 3, 2 * SOON);
        let (output, took) = launcher.start(&Sandbox::new(), &[(3, &line)]).end();
        assert_eq!((output.code, errors(&output)), (Some(code), 1), "{output:?}");
        assert!(took < within, "{took:?}: {output:?}");
        println!("`{line}` took {took:?}");
    }
}

#[test]
fn the_watchdog_names_the_pe_of_an_entry_that_does_not_return() {
    let Some(launcher) = Launcher::find() else { return };
    for (processes, pes, pe) in [(3, 1, 2), (2, 2, 3)] {
        let line =
            format!("failing spin --transport mpi --pes-per-process {pes} --watchdog 0.5 --time-limit 2");
        let output = launcher.start(&Sandbox::new(), &[(processes, &line)]).end().0;
        let warns = |line: &str| {
            line.starts_with("warning: ") && line.contains(&format!("Runner[3] in entry `run` on PE {pe} "))
        };
        assert!(output.stderr.lines().any(warns), "{output:?}");
    }
}

#[test]
fn a_panic_ends_all_processes() {
    let entry = "error: Runner[3] in entry `run` on PE 2 panicked: dropped the baton after 3 laps (";
    fails(&[(3, "failing panic --transport mpi")], SOON, &[1], &[entry]);
    fails(
        &[(2, "failing panic --transport mpi --pes-per-process 2")],
        SOON,
        &[1],
        &["on PE 3 panicked: dropped"],
    );
    fails(&[(3, "failing panic-in-main --transport mpi")], SOON, &[1], &["`main`", "no runner"]);
    fails(&[(3, "failing panic-in-setup --transport mpi")], SOON, &[1], &["setup", "PE 1", "no baton"]);
}

#[test]
fn a_run_at_rest_names_what_waits_in_all_processes() {
    let phrases = [
        "error: the run came to rest without an exit",
        "\n  PE 0: Runner[1] has 1 message for `wait`, whose guard is false",
        "\n  PE 2: Runner[3] has 1 message for `wait`, whose guard is false",
    ];
    fails(&[(3, "failing rest --transport mpi")], SOON, &[1], &phrases);
}

#[test]
fn wrong_flags_and_files_end_all_processes() {
    let run = |flags: &str| format!("equipoise run kneighbor --transport mpi {flags}");
    for (flags, phrase) in [
        ("--balancer GredyLB", "did you mean `GreedyLB`?"),
        ("--pes 5", "--pes is 5, and the job has 3 processes with 1 PE each; leave out --pes"),
        ("--initial none", "--initial: cannot read the list of PEs `none`"),
        ("--record-order order", "one process can be recorded; leave out --transport"),
        ("--lb-dump no/such/place", "--lb-dump: cannot write the database `no/such/place`"),
    ] {
        fails(&[(3, &run(flags))], SOON, &[2], &[phrase]);
    }
    let seeds = [1, 2].map(|seed| run(&format!("--seed {seed}")));
    let phrases = ["error: processes do not run the same program: process 0 has", "--seed 1", "--seed 2"];
    fails(&[(1, &seeds[0]), (1, &seeds[1])], SOON, &[1], &phrases);
}

/// A process finds an unknown flag before its run, in which the others may already be.
#[test]
fn an_unknown_flag_of_any_process_ends_all() {
    let right = "equipoise run kneighbor --transport mpi";
    let unknown = "equipoise run kneighbor --transport=mpi --balancr DummyLB";
    let of_charm = "equipoise run kneighbor --transport mpi +LBPeriod 1";
    for parts in [vec![(3, unknown)], vec![(1, unknown), (3, right)], vec![(1, right), (3, unknown)]] {
        fails(&parts, SOON, &[2], &["error: unexpected argument '--balancr'"]);
    }
    fails(
        &[(1, of_charm), (2, right)],
        SOON,
        &[2],
        &["error: the flag +LBPeriod of Charm++ is not supported"],
    );
}

/// The other processes run without MPI, so the one that refuses its flags cannot be connected to them. It ends while MPI waits for
/// them, which the launcher of MPICH may report as exit code 1. If the others end first, the launcher of Open MPI may end this process
/// before it prints its error, and says that only some processes have called MPI.
#[test]
fn an_unknown_flag_ends_its_process_if_the_others_do_not_call_mpi() {
    let Some(launcher) = Launcher::find() else { return };
    let parts = [(1, "failing not --transport mpi --balancr DummyLB"), (2, "failing not")];
    let output = launcher.start(&Sandbox::new(), &parts).end().0;
    let is_explained = errors(&output) == 1 || output.stderr.contains("did not call \"init\"");
    assert!(matches!(output.code, Some(1 | 2)) && is_explained, "{output:?}");
}

#[test]
fn the_help_is_printed_once() {
    let Some(launcher) = Launcher::find() else { return };
    for line in [
        "failing --help",
        "failing --help --transport mpi",
        "equipoise --version",
        "failing not --balancer help",
    ] {
        let text = launcher.start(&Sandbox::new(), &[(3, line)]).end().0.result();
        let first = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
        assert!(
            !first.is_empty() && text.lines().filter(|line| *line == first).count() == 1,
            "`{line}`: {text}"
        );
    }
}

/// After the time, PEs have 2 s to return. Then their process ends itself with exit code 1; the launcher of MPICH kills the
/// others, and reports that as 9.
#[test]
fn the_time_limit_ends_code_that_never_returns() {
    let longer = Duration::from_secs(6);
    for (how, phrase) in [
        ("spin", "Runner[3] in entry `run` on PE 2 has run for "),
        ("spin-main", "`main` on PE 0 has run for "),
        ("spin-setup", "the setup of PE 0 has run for "),
        ("circle", "Runner[1] has 1 message for `wait`, whose guard is false"),
    ] {
        let phrases = ["error: the run did not end within --time-limit 1 ", phrase];
        fails(&[(3, &format!("failing {how} --transport mpi --time-limit 1"))], longer, &[1, 9], &phrases);
    }
}

#[test]
fn a_killed_process_ends_the_others() {
    let Some(launcher) = Launcher::find() else { return };
    let line = "equipoise run kneighbor --transport mpi --iterations 100000000 --lb-every 0";
    for rank in [0, 2] {
        let sandbox = Sandbox::new();
        let job = launcher.start(&sandbox, &[(3, line)]);
        sleep(Duration::from_secs(1));
        let processes = job.processes();
        assert_eq!(processes.len(), 3, "{processes:?}");
        let killed = Instant::now();
        assert!(signal("KILL", processes[&rank]), "it runs");
        let (output, _) = job.end();
        assert_ne!(output.code, Some(0), "{output:?}");
        assert!(killed.elapsed() < Duration::from_secs(3), "{:?}: {output:?}", killed.elapsed());
    }
}

/// Starts and ends short runs.
fn short_runs(number: usize) {
    let Some(launcher) = Launcher::find() else { return };
    let line = "equipoise run kneighbor --transport mpi --elements 8 --iterations 2 --format json";
    for at in 0..number {
        let processes = 1 + at % 4;
        let output = launcher.start(&Sandbox::new(), &[(processes, line)]).end().0;
        assert_eq!(errors(&output), 0, "{output:?}");
        assert_eq!(output.document()["pes"], processes);
    }
}

#[test]
fn short_runs_end() {
    short_runs(20);
}

#[test]
#[ignore = "slow"]
fn a_hundred_short_runs_end() {
    short_runs(100);
}

/// The processor time of a process in seconds; there are 100 ticks per second.
fn processor_time(id: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).expect("the process runs");
    let (_, fields) = text.rsplit_once(')').expect("the name is in parentheses");
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
}

#[test]
#[ignore = "slow"]
fn idle_processes_leave_the_processor_to_others() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    let job = launcher.start(&sandbox, &[(4, "failing compute --transport mpi --time-limit 8")]);
    sleep(Duration::from_secs(2));
    let used = || job.processes().into_values().map(processor_time).collect::<Vec<_>>();
    let before = used();
    sleep(Duration::from_secs(4));
    let times: Vec<f64> = used().iter().zip(&before).map(|(after, before)| after - before).collect();
    job.end();
    // The last one is busy.
    let idle = times[..3].iter().sum::<f64>() / 4.0;
    assert!(times[3] > 1.0 && idle <= 0.1, "{times:?} s of 4 s");
}
