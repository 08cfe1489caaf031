//! Runs that are killed at any time, and restarted with their last checkpoint; runs that a signal asks for a checkpoint.

#![cfg(unix)]

use std::thread::sleep;
use std::time::Duration;

use equipoise::checkpoint::Checkpoint;
use equipoise_tests::fuzz::Rng;
use equipoise_tests::{ProcessOutput, Sandbox, without_run};
use serde_json::Value;

/// A run with a load-balancing step every third iteration.
const LINE: &str = "run stencil2d --blocks 4 --cells 8 --lb-every 3 --iterations 1200 --format json";
/// A checkpoint at every step.
const SAVES: &str = "--checkpoint saved --checkpoint-every 1";

/// The part of a result that does not depend on time.
fn heat(output: ProcessOutput) -> Value {
    let document = output.document();
    let of = |name: &str| document[name].clone();
    Value::Array(vec![of("iterations"), of("heat"), of("residual")])
}

/// Kills runs at random times, and restarts each on another number of PEs.
fn kill(times: usize) {
    let expected = heat(Sandbox::new().run(&format!("{LINE} --pes 2")));
    let mut rng = Rng(7);
    let mut restarts = 0;
    let mut sandbox = Sandbox::new();
    for _ in 0..times {
        // Of a run that was killed before, if it had a checkpoint.
        let dir = sandbox.path().join("saved");
        let has_checkpoint = Checkpoint::newest(&dir).is_ok();
        if has_checkpoint {
            Checkpoint::open(&dir)
                .and_then(|checkpoint| checkpoint.check())
                .expect("the newest one is whole");
            restarts += 1;
        }
        let restart = if has_checkpoint { "--restart saved" } else { "" };
        let balancer = ["", "--balancer RotateLB"][rng.below(2)];
        let line = format!("{LINE} {SAVES} {restart} --pes {} {balancer}", 1 + rng.below(5));
        if rng.below(3) == 0 {
            assert_eq!(heat(sandbox.run(&line)), expected, "{line}");
            sandbox = Sandbox::new();
            continue;
        }
        let mut run = sandbox.start(&line);
        sleep(Duration::from_millis(rng.below(700) as u64));
        run.kill().expect("it was started");
        run.wait().expect("it ends");
    }
    assert!(restarts > times / 4, "{restarts} restarts of {times} runs");
}

#[test]
fn killed_runs_continue_on_any_number_of_pes() {
    kill(12);
}

#[test]
#[ignore = "slow"]
fn runs_killed_at_200_times_continue_on_any_number_of_pes() {
    kill(200);
}

/// A run that is not over before the signal.
const LONG: &str = "run stencil2d --blocks 4 --cells 8 --lb-every 3 --iterations 15000 --format json";

/// Sends a signal to a run with these flags.
fn signalled(sandbox: &Sandbox, flags: &str, signal: &str, after: u64) -> (Option<i32>, String) {
    let run = sandbox.start(&format!("{LONG} --pes 2 --checkpoint saved {flags}"));
    // The run makes the folder when it begins, and then looks out for the signal.
    while !sandbox.path().join("saved").exists() {
        sleep(Duration::from_millis(5));
    }
    sleep(Duration::from_millis(after));
    let kill = std::process::Command::new("kill").args([signal, &run.id().to_string()]).status();
    assert!(kill.expect("there is a `kill`").success());
    let output = run.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_signal_saves_a_run_that_ends_or_goes_on() {
    for (name, signal) in [("usr2", "-USR2"), ("TERM", "-TERM"), ("USR1", "-USR1")] {
        let sandbox = Sandbox::new();
        let exits = format!("--checkpoint-on {name} --checkpoint-exit");
        let (code, stderr) = signalled(&sandbox, &exits, signal, 250);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(
            stderr.contains("note: saved as checkpoint 1 in `saved`; continue with --restart"),
            "{stderr}"
        );
        let saved = Checkpoint::open(&sandbox.path().join("saved"));
        saved.and_then(|checkpoint| checkpoint.check()).expect("it is whole");
        if name == "USR1" {
            let expected = heat(sandbox.run(&format!("{LONG} --pes 2")));
            assert_eq!(heat(sandbox.run(&format!("{LONG} --pes 3 --restart saved"))), expected);
            std::fs::remove_dir_all(sandbox.path().join("saved")).expect("it is there");
            let (code, stderr) = signalled(&sandbox, "--checkpoint-on USR1", signal, 250);
            assert_eq!((code, stderr.as_str()), (Some(0), ""));
            assert_eq!(heat(sandbox.run(&format!("{LONG} --pes 1 --restart saved"))), expected);
        }
    }
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
        1,
        &["--restart: the checkpoint file `nowhere` is not a folder; name"],
    );
    sandbox.put("file", "");
    refused("run stencil2d --restart file", 1, &["`file` is not a folder"]);
    std::fs::create_dir(sandbox.path().join("empty")).expect("a folder");
    refused("run stencil2d --restart empty", 1, &["`empty` has no complete checkpoint"]);
    let other = [
        "has Block of shape [4, 4] with the entries",
        "as array",
        "and the setup makes Block of shape [8, 8]",
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
fn a_full_disk_costs_checkpoints_and_not_the_run() {
    let sandbox = Sandbox::new();
    let expected = heat(sandbox.run(&format!("{LINE} --pes 2")));
    // A file may have 64 blocks of 512 bytes, fewer than a checkpoint.
    let output = sandbox.run_after("trap '' XFSZ; ulimit -f 16", &format!("{LINE} --pes 2 {SAVES}"));
    assert!(
        output.stderr.contains("warning: --checkpoint saved: a checkpoint cannot be saved: "),
        "{output:?}"
    );
    assert!(output.stderr.contains("free some space or name another folder"), "{output:?}");
    assert_eq!(output.code, Some(0));
    assert_eq!(serde_json::from_str::<Value>(&output.stdout).expect("a result")["heat"], expected[1]);
    assert!(Checkpoint::newest(&sandbox.path().join("saved")).is_err());
}

const PROGRAMS: [&str; 4] = [
    "stencil2d --blocks 4 --cells 16 --iterations 20",
    "stencil3d --blocks 3 --cells 6 --iterations 12",
    "kneighbor --elements 24 --iterations 15 --bytes 64",
    "leanmd --cells 3x3x3 --particles 4 --iterations 6",
];

#[test]
fn sample_programs_restart_at_any_step() {
    for (at, program) in PROGRAMS.iter().enumerate() {
        let line = format!("run {program} --lb-every 1 --seed 3 --format json");
        let expected = without_run(Sandbox::new().run(&format!("{line} --pes 2")).document());
        for every in 1..4 {
            let sandbox = Sandbox::new();
            let saves =
                format!("--transport simulated --pes 3 --checkpoint saved --checkpoint-every {every}");
            let whole = sandbox.run(&format!("{line} {saves} --balancer RandomLB")).document();
            assert_eq!(without_run(whole), expected, "{program}");
            let mut folders: Vec<_> = sandbox
                .path()
                .join("saved")
                .read_dir()
                .expect("there")
                .map(|it| it.expect("there").path())
                .collect();
            folders.sort();
            for folder in folders {
                let how = ["--pes 3", "--pes 5 --transport simulated --balancer RotateLB", "--pes 1"]
                    [(at + every) % 3];
                let restart = format!("{line} --restart {} {how}", folder.display());
                assert_eq!(without_run(sandbox.run(&restart).document()), expected, "{restart}");
            }
        }
    }
}
