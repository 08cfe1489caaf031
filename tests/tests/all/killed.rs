//! Runs that are killed at any time, and restarted with their last checkpoint; runs that a signal asks for a checkpoint.

#![cfg(unix)]

use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use equipoise::checkpoint::Checkpoint;
use equipoise_tests::fuzz::Rng;
use equipoise_tests::kills::{SAVES, kill};
use equipoise_tests::{Sandbox, signal, without_run};

/// A run with a load-balancing step every third iteration.
const LINE: &str = "run stencil2d --blocks 4 --cells 8 --lb-every 3 --iterations 200 --format json";

/// Kills runs at random times, and restarts each on another number of PEs. Returns the number of kills in the middle of a
/// checkpoint.
fn kill_runs(seed: u64, times: usize) -> usize {
    let expected = without_run(Sandbox::new().run(&format!("{LINE} --pes 2")).document());
    let begin = Instant::now();
    assert_eq!(without_run(Sandbox::new().run(&format!("{LINE} {SAVES} --pes 2")).document()), expected);
    kill(seed, times, begin.elapsed(), &expected, |sandbox, restart, rng, after| {
        let balancer = ["", "--balancer RotateLB"][rng.below(2)];
        let line = format!("{LINE} {SAVES} {restart} --pes {} {balancer}", 1 + rng.below(5));
        if let Some(after) = after {
            let mut run = sandbox.start(&line);
            sleep(after);
            run.kill().expect("it was started");
            if !run.wait().expect("it ends").success() {
                return None;
            }
        }
        // A run that ended before the kill was started without a stdout.
        Some(sandbox.run(&line).document())
    })
}

#[test]
fn killed_runs_continue_on_any_number_of_pes() {
    kill_runs(7, 4);
}

#[test]
#[ignore = "slow"]
fn runs_killed_at_200_times_continue_on_any_number_of_pes() {
    assert!(kill_runs(7, 200) > 0, "no kill was in the middle of a checkpoint");
}

/// A run that is not over before the signal.
const LONG: &str = "run stencil2d --blocks 4 --cells 8 --lb-every 3 --iterations 15000 --format json";

/// Sends a signal to a run with these flags.
fn signalled(sandbox: &Sandbox, flags: &str, name: &str, after: u64) -> (Option<i32>, String) {
    let run = sandbox.start(&format!("{LONG} --pes 2 --checkpoint saved {flags}"));
    // The run makes the folder when it begins, and then looks out for the signal.
    sandbox.wait_for("saved");
    sleep(Duration::from_millis(after));
    assert!(signal(name, run.id()), "the run has not ended");
    let output = run.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
#[ignore = "slow"]
fn a_signal_saves_a_run_that_ends_or_goes_on() {
    for (flag, name) in [("usr2", "USR2"), ("TERM", "TERM"), ("USR1", "USR1")] {
        let sandbox = Sandbox::new();
        let exits = format!("--checkpoint-on {flag} --checkpoint-exit");
        let (code, stderr) = signalled(&sandbox, &exits, name, 250);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(
            stderr.contains("note: saved as checkpoint 1 in `saved`; continue with --restart"),
            "{stderr}"
        );
        let saved = Checkpoint::open(&sandbox.path().join("saved"));
        saved.and_then(|checkpoint| checkpoint.check()).expect("it is whole");
        if name == "USR1" {
            let expected = without_run(sandbox.run(&format!("{LONG} --pes 2")).document());
            let restarted = |pes: u32| {
                without_run(sandbox.run(&format!("{LONG} --pes {pes} --restart saved")).document())
            };
            assert_eq!(restarted(3), expected);
            std::fs::remove_dir_all(sandbox.path().join("saved")).expect("it is there");
            let (code, stderr) = signalled(&sandbox, "--checkpoint-on USR1", name, 250);
            assert_eq!((code, stderr.as_str()), (Some(0), ""));
            assert_eq!(restarted(1), expected);
        }
    }
}

/// A run of the program that works for a second between sync points, to its end.
struct Whole {
    // It is removed when it is dropped.
    _sandbox: Sandbox,
    run: Child,
}

impl Whole {
    fn start() -> Self {
        let sandbox = Sandbox::new();
        let run = sandbox.start_failing("slow --pes 2");
        Whole { _sandbox: sandbox, run }
    }

    fn result(self) -> String {
        let output = self.run.wait_with_output().expect("it ends");
        assert!(output.status.success() && !output.stdout.is_empty(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Sends a signal in the middle of the entry that works for a second, between the first two sync points.
fn signalled_in_entry(sandbox: &Sandbox, flags: &str) -> std::process::Output {
    let run = sandbox.start_failing(&format!("slow --pes 2 --checkpoint saved --checkpoint-on USR1 {flags}"));
    sandbox.wait_for("working-4");
    sleep(Duration::from_millis(300));
    assert!(signal("USR1", run.id()), "the run has not ended");
    run.wait_with_output().expect("it ends")
}

#[test]
#[ignore = "slow"]
fn a_signal_in_the_middle_of_an_entry_saves_the_run_at_the_next_sync_point() {
    let whole = Whole::start();
    // The run ends before the entry of the next step.
    let sandbox = Sandbox::new();
    let output = signalled_in_entry(&sandbox, "--checkpoint-exit");
    let expected = whole.result();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("note: saved as checkpoint 1 in"), "{output:?}");
    assert!(output.stdout.is_empty() && !sandbox.path().join("working-5").exists(), "{output:?}");
    let restarts = ["--pes 1", "--pes 3", "--pes 2 --transport simulated"];
    // They run at the same time, because they mostly sleep.
    for run in restarts.map(|flags| sandbox.start_failing(&format!("slow --restart saved {flags}"))) {
        let output = run.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    }
    assert!(sandbox.path().join("working-5").exists(), "the restarted run begins with the next step");
    // The run goes on.
    let sandbox = Sandbox::new();
    let output = signalled_in_entry(&sandbox, "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{output:?}");
    let saved = Checkpoint::all(&sandbox.path().join("saved")).expect("a folder");
    assert_eq!(saved.len(), 1, "{saved:?}");
    assert_eq!(sandbox.failing("slow --restart saved --pes 4").result(), expected);
}

#[test]
fn runs_save_themselves_again_and_again_after_a_time() {
    let whole = Whole::start();
    let sandbox = Sandbox::new();
    let saves = "--checkpoint saved --checkpoint-seconds 0.5";
    let saved = sandbox.failing(&format!("slow --pes 2 {saves}")).result();
    let expected = whole.result();
    assert_eq!(saved, expected);
    // Every step takes a second; the last one has no sync point behind it.
    let saved = Checkpoint::open(&sandbox.path().join("saved")).expect("there is one");
    assert_eq!(saved.number(), 3);
    assert_eq!(sandbox.failing("slow --pes 3 --restart saved").result(), expected);
}

#[test]
fn what_cannot_be_restarted_is_refused_by_name() {
    let sandbox = Sandbox::new();
    sandbox.run(&format!("{LINE} --pes 2 {SAVES}")).result();
    let refused = |line: &str, code: i32, phrases: &[&str]| {
        let output = sandbox.run(line);
        assert_eq!(output.code, Some(code), "{output:?}");
        for phrase in phrases {
            assert!(output.stderr.contains(phrase), "no `{phrase}` in {output:?}");
        }
    };
    refused(
        "run stencil2d --restart nowhere",
        2,
        &["--restart: the checkpoint folder `nowhere` does not exist; name"],
    );
    sandbox.put("file", "");
    refused("run stencil2d --restart file", 2, &["the checkpoint folder `file` is a file; name"]);
    std::fs::create_dir(sandbox.path().join("empty")).expect("a folder");
    refused("run stencil2d --restart empty", 1, &["`empty` has no complete checkpoint"]);
    let other = [
        "has Block<2> of shape [4, 4] with the entries",
        "as array",
        "and the setup makes Block<2> of shape [8, 8]",
    ];
    refused("run stencil2d --restart saved", 1, &other);
    refused(
        "run kneighbor --restart saved",
        1,
        &["and the setup makes", "restart the program that was saved"],
    );
    refused("run stencil2d --checkpoint-every 2", 2, &["--checkpoint"]);
    refused("run stencil2d --checkpoint x --checkpoint-every 0", 2, &["--checkpoint-every 0: give a number"]);
    refused("run stencil2d --checkpoint file/x", 2, &["--checkpoint file/x: ", "name a folder"]);
    refused("run stencil2d --restart saved --record-order order", 2, &["leave out one of them"]);
}

#[test]
fn runs_that_save_nothing_or_end_before_a_failure_say_so() {
    let sandbox = Sandbox::new();
    let warns = |line: &str, phrase: &str| {
        let output = sandbox.run(line);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stderr.contains(phrase), "no `{phrase}` in {output:?}");
    };
    warns(
        &format!("{LINE} --pes 2 --checkpoint none"),
        "nothing was saved, because without --checkpoint-every",
    );
    let simulated = "run kneighbor --pes 4 --transport simulated --network ideal";
    warns(&format!("{simulated} --fail 3@100s"), "--fail 3@100: the run ended before, after ");
    let output = sandbox.run(&format!("{simulated} --fail 3@1e-6s"));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("as --fail says; no checkpoint was saved before"), "{output:?}");
}

#[test]
fn a_full_disk_costs_checkpoints_and_not_the_run() {
    let sandbox = Sandbox::new();
    let expected = without_run(sandbox.run(&format!("{LINE} --pes 2")).document());
    // A file may have 64 blocks of 512 bytes, fewer than a checkpoint.
    let output = sandbox.run_after("trap '' XFSZ; ulimit -f 16", &format!("{LINE} --pes 2 {SAVES}"));
    assert!(
        output.stderr.contains("warning: --checkpoint saved: a checkpoint cannot be saved: "),
        "{output:?}"
    );
    assert!(output.stderr.contains("free some space or name another folder"), "{output:?}");
    assert_eq!(output.code, Some(0));
    assert_eq!(without_run(output.document()), expected);
    assert!(Checkpoint::newest(&sandbox.path().join("saved")).is_err());
}

const PROGRAMS: [&str; 6] = [
    "stencil2d --blocks 4 --cells 16 --iterations 20",
    "stencil3d --blocks 3 --cells 6 --iterations 12",
    "kneighbor --elements 24 --iterations 15 --bytes 64",
    "leanmd --cells 3x3x3 --particles 4 --iterations 6",
    "pic --blocks 4 --cells 3 --particles 3 --iterations 20",
    "amr --blocks 3 --cells 4 --levels 3 --iterations 20",
];

/// How a run is restarted.
const RESTARTS: [&str; 7] = [
    "--pes 3",
    "--pes 1",
    "--pes 4 --balancer GreedyLB",
    "--pes 5 --transport simulated --balancer RotateLB",
    "--pes 4 --transport simulated --pes-per-process 2 --balancer RandomLB",
    "--pes 4 --transport simulated --network ideal --balancer RefineLB",
    "--pes 6 --transport simulated --topology torus:2x3 --network packet --balancer PoiseLB",
];

/// Lets a PE fail at a random virtual time, so that the newest checkpoint is one of a random step, and restarts the run from
/// each of the last two.
fn restart_at_random_steps(seeds: std::ops::Range<u64>) {
    let mut restarts = 0;
    for seed in seeds {
        let mut rng = Rng(seed);
        for program in PROGRAMS {
            let sandbox = Sandbox::new();
            let line = format!("run {program} --lb-every 1 --seed {seed} --format json");
            let machine =
                "--pes 4 --transport simulated --topology torus:2x2 --network packet --balancer RotateLB";
            let whole = sandbox.run(&format!("{line} {machine}")).document();
            let seconds = whole["machine"]["seconds"].as_f64().expect("a simulated machine");
            let expected = without_run(whole);
            let fails = seconds * (rng.below(1000) as f64 / 1000.0);
            let every = 1 + rng.below(2);
            let fails =
                format!("--fail {}@{fails:e} --checkpoint saved --checkpoint-every {every}", rng.below(4));
            sandbox.run(&format!("{line} {machine} {fails}")).failed(1, &["failed at"]);
            for folder in Checkpoint::all(&sandbox.path().join("saved")).expect("a folder") {
                let how = RESTARTS[rng.below(RESTARTS.len())];
                let restart = format!("{line} --restart {} {how}", folder.display());
                assert_eq!(without_run(sandbox.run(&restart).document()), expected, "{fails}: {restart}");
                restarts += 1;
            }
        }
    }
    assert!(restarts > 0, "no run had a checkpoint");
    eprintln!("{restarts} restarts");
}

#[test]
fn sample_programs_restart_at_random_steps() {
    restart_at_random_steps(0..1);
}

#[test]
#[ignore = "slow"]
fn sample_programs_restart_at_random_steps_with_42_seeds() {
    restart_at_random_steps(1..43);
}
