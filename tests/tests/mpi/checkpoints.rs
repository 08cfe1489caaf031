//! Runs in several processes that save themselves, are killed, and continue in other numbers of processes or on threads.

use std::thread::sleep;
use std::time::Duration;

use equipoise::checkpoint::Checkpoint;
use equipoise_tests::mpi::{Launcher, start_without_launcher};
use equipoise_tests::{ProcessOutput, Sandbox};
use serde_json::Value;

const LINE: &str = "equipoise run stencil2d --blocks 4 --cells 8 --lb-every 3 --format json";

/// The part of a result that does not depend on time.
fn heat(output: ProcessOutput) -> Value {
    let document = output.document();
    Value::Array(["iterations", "heat", "residual"].map(|name| document[name].clone()).into())
}

#[test]
fn a_run_on_four_processes_continues_on_threads_and_back() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    let line = format!("{LINE} --iterations 100");
    let expected = heat(start_without_launcher(&sandbox, &format!("{line} --pes 2")).end().0);
    let saves = "--checkpoint saved --checkpoint-every 10 --transport mpi --balancer RotateLB";
    let whole = launcher.start(&sandbox, &[(4, &format!("{line} {saves}"))]).end().0;
    assert_eq!(heat(whole), expected);
    let saved = Checkpoint::open(&sandbox.path().join("saved")).expect("it is whole");
    assert_eq!((saved.pes(), saved.processes()), (4, 4));
    saved.check().expect("it is whole");
    for threads in
        ["--pes 3", "--pes 5 --transport simulated", "--pes 4 --transport simulated --pes-per-process 2"]
    {
        let restart = format!("{line} --restart saved {threads}");
        assert_eq!(heat(start_without_launcher(&sandbox, &restart).end().0), expected, "{threads}");
    }
    for (processes, pes) in [(1, 1), (2, 2), (3, 1)] {
        let restart = format!("{line} --restart saved --transport mpi --pes-per-process {pes}");
        assert_eq!(heat(launcher.start(&sandbox, &[(processes, &restart)]).end().0), expected);
    }
    let on_threads = format!("{line} --pes 3 --checkpoint threads --checkpoint-every 3");
    assert_eq!(heat(start_without_launcher(&sandbox, &on_threads).end().0), expected);
    let restart = format!("{line} --restart threads --transport mpi --balancer RandomLB");
    assert_eq!(heat(launcher.start(&sandbox, &[(2, &restart)]).end().0), expected);
}

/// Kills a process of a job again and again, and lets the run continue.
fn kill(times: u64) {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    let line = format!("{LINE} --iterations 20000");
    let expected = heat(start_without_launcher(&sandbox, &format!("{line} --pes 2")).end().0);
    let (dir, mut restarts) = (sandbox.path().join("saved"), 0);
    for at in 0..times {
        let restart = match Checkpoint::open(&dir) {
            Ok(saved) => {
                saved.check().expect("the newest one is whole");
                restarts += 1;
                "--restart saved"
            }
            Err(_) => "",
        };
        let line = format!("{line} --checkpoint saved --checkpoint-every 1 --transport mpi {restart}");
        let job = launcher.start(&sandbox, &[(2 + at as usize % 3, &line)]);
        sleep(Duration::from_millis(700 + 130 * (at * 7 % 5)));
        if let Some((_, &id)) = job.processes().iter().nth(at as usize % 2) {
            job.kill(id);
        }
        job.end();
    }
    assert!(restarts > 0, "no job was killed after a checkpoint");
    let last = format!("{line} --restart saved --transport mpi");
    assert_eq!(heat(launcher.start(&sandbox, &[(3, &last)]).end().0), expected);
}

#[test]
fn a_job_of_which_a_process_is_killed_continues() {
    kill(3);
}

#[test]
#[ignore = "slow"]
fn jobs_of_which_processes_are_killed_20_times_continue() {
    kill(20);
}

#[test]
fn a_signal_to_one_process_saves_all() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    let line = format!("{LINE} --iterations 200000 --transport mpi");
    let saves = "--checkpoint saved --checkpoint-on USR1 --checkpoint-exit";
    let job = launcher.start(&sandbox, &[(3, &format!("{line} {saves}"))]);
    sleep(Duration::from_millis(1500));
    let kill = std::process::Command::new("kill").args(["-USR1", &job.processes()[&2].to_string()]).status();
    assert!(kill.expect("there is a `kill`").success());
    let (output, _) = job.end();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stderr.matches("note: saved as checkpoint 1").count(), 1, "{output:?}");
    Checkpoint::open(&sandbox.path().join("saved")).and_then(|saved| saved.check()).expect("it is whole");
}

#[test]
fn a_checkpoint_of_fewer_files_than_processes_is_refused() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    let line = format!("{LINE} --iterations 30 --transport mpi");
    launcher
        .start(&sandbox, &[(3, &format!("{line} --checkpoint saved --checkpoint-every 5"))])
        .end()
        .0
        .result();
    let newest = Checkpoint::newest(&sandbox.path().join("saved")).expect("there is one");
    std::fs::remove_file(newest.join("process-2.eqcp")).expect("it is there");
    let (output, _) = launcher.start(&sandbox, &[(2, &format!("{line} --restart saved"))]).end();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("process-2.eqcp` cannot be read"), "{output:?}");
    assert_eq!(output.stderr.matches("error: ").count(), 1, "{output:?}");
}
