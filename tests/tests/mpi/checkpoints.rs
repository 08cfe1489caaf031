//! Runs in several processes that save themselves, are killed, and continue in other numbers of processes or on threads.

use std::thread::sleep;
use std::time::{Duration, Instant};

use equipoise::checkpoint::Checkpoint;
use equipoise_tests::kills::{SAVES, kill};
use equipoise_tests::mpi::{Job, Launcher, program, start_without_launcher};
use equipoise_tests::{ProcessOutput, Sandbox, signal, without_run};
use serde_json::Value;

const LINE: &str = "equipoise run stencil2d --blocks 4 --cells 8 --lb-every 3 --format json";

/// The part of the result of a job that does not depend on PEs and time.
fn result(job: Job) -> Value {
    without_run(job.end().0.document())
}

#[test]
fn a_run_on_four_processes_continues_on_threads_and_back() {
    let Some(launcher) = Launcher::find() else { return };
    let sandbox = Sandbox::new();
    let line = format!("{LINE} --iterations 100");
    let expected = result(start_without_launcher(&sandbox, &format!("{line} --pes 2")));
    let saves = "--checkpoint saved --checkpoint-every 10 --transport mpi --balancer RotateLB";
    assert_eq!(result(launcher.start(&sandbox, &[(4, &format!("{line} {saves}"))])), expected);
    let saved = Checkpoint::open(&sandbox.path().join("saved")).expect("it is whole");
    assert_eq!((saved.pes(), saved.processes()), (4, 4));
    saved.check().expect("it is whole");
    for threads in [
        "--pes 3",
        "--pes 5 --transport simulated",
        "--pes 4 --transport simulated --pes-per-process 2",
        "--pes 4 --transport simulated --topology torus:2x2 --network packet --balancer PoiseLB",
        "--pes 6 --transport simulated --topology fattree:2:3/1:1 --network flow --balancer GreedyLB",
    ] {
        let restart = format!("{line} --restart saved {threads}");
        assert_eq!(result(start_without_launcher(&sandbox, &restart)), expected, "{threads}");
    }
    for (processes, pes) in [(1, 1), (2, 2), (3, 1)] {
        let restart = format!("{line} --restart saved --transport mpi --pes-per-process {pes}");
        assert_eq!(result(launcher.start(&sandbox, &[(processes, &restart)])), expected);
    }
    let on_threads = format!("{line} --pes 3 --checkpoint threads --checkpoint-every 3");
    assert_eq!(result(start_without_launcher(&sandbox, &on_threads)), expected);
    let restart = format!("{line} --restart threads --transport mpi --balancer RandomLB");
    assert_eq!(result(launcher.start(&sandbox, &[(2, &restart)])), expected);
}

/// What is killed.
#[derive(Clone, Copy, PartialEq)]
enum Victim {
    Process,
    /// The launcher and all processes of its group.
    Job,
}

/// Kills jobs, or a process of each, at random times, and continues in other numbers of processes or on threads.
fn kill_jobs(seed: u64, times: usize, victim: Victim) {
    let Some(launcher) = Launcher::find().map(Launcher::in_group) else { return };
    let line = format!("{LINE} --iterations 150");
    let expected = result(start_without_launcher(&Sandbox::new(), &format!("{line} --pes 2")));
    // Without the time in which the job waits for those of other tests.
    let (whole, seconds) =
        launcher.start(&Sandbox::new(), &[(3, &format!("{line} {SAVES} --transport mpi"))]).end();
    assert_eq!(without_run(whole.document()), expected);
    kill(seed, times, seconds, &expected, |sandbox, restart, rng, after| {
        let pes = 1 + rng.below(5);
        let line = format!("{line} {SAVES} {restart}");
        let Some(after) = after.filter(|_| rng.below(8) > 0) else {
            let job = match rng.below(3) {
                0 => start_without_launcher(sandbox, &format!("{line} --pes {pes}")),
                _ => {
                    launcher.start(sandbox, &[(pes, &format!("{line} --transport mpi --balancer RotateLB"))])
                }
            };
            return Some(job.end().0.document());
        };
        let mut job = launcher.start(sandbox, &[(pes, &format!("{line} --transport mpi"))]);
        sleep(after);
        let is_killed = match victim {
            Victim::Process => {
                let processes = job.processes();
                processes.values().nth(rng.below(processes.len())).is_some_and(|&id| signal("KILL", id))
            }
            Victim::Job => job.kill_group(),
        };
        if is_killed {
            job.kill_after(Duration::from_secs(15));
        }
        let (output, _) = job.end();
        if output.code == Some(0) {
            return Some(output.document());
        }
        assert!(is_killed, "{output:?}");
        None
    });
}

#[test]
fn jobs_of_which_processes_are_killed_continue() {
    kill_jobs(1, 4, Victim::Process);
}

#[test]
fn jobs_that_are_killed_as_a_whole_continue() {
    kill_jobs(3, 4, Victim::Job);
}

#[test]
#[ignore = "slow"]
fn jobs_of_which_processes_are_killed_65_times_continue() {
    // This test runs with two MPI libraries.
    kill_jobs(2, 50, Victim::Process);
    kill_jobs(4, 15, Victim::Job);
}

#[test]
fn launch_starts_a_job_again_on_fewer_processes_when_one_is_killed() {
    let Some(launcher) = Launcher::find() else { return };
    let line = format!("{LINE} --iterations 900");
    let expected = result(start_without_launcher(&Sandbox::new(), &format!("{line} --pes 2")));
    let sandbox = Sandbox::new();
    let (_, words) = line.split_once(' ').expect("a program and its words");
    let job = format!(
        "{} -n {{processes}} {} {words} --transport mpi",
        launcher.words(),
        program("equipoise").display()
    );
    let job = start_without_launcher(&sandbox, &format!("equipoise launch --processes 3 -- {job} {SAVES}"));
    // Before the first checkpoint, and after one.
    while job.processes().len() < 3 {
        sleep(Duration::from_millis(2));
    }
    assert!(signal("KILL", job.processes()[&1]));
    // Older checkpoints are removed meanwhile.
    let (saved, begin) = (sandbox.path().join("saved"), Instant::now());
    while Checkpoint::newest(&saved).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the second start saves nothing");
        sleep(Duration::from_millis(2));
    }
    assert!(signal("KILL", job.processes()[&0]));
    let (mut output, _) = job.end();
    // The launcher of MPICH prints the end of the first processes, too.
    output.stdout.drain(..output.stdout.find('{').unwrap_or_default());
    let (first, second) =
        output.stderr.split_once("it starts again on 2 processes from the beginning").expect(&output.stderr);
    assert!(first.contains("warning: the program ended with exit code"), "{output:?}");
    assert!(second.contains("it starts again on 2 processes from `saved/checkpoint-"), "{output:?}");
    assert_eq!(without_run(output.document()), expected);
}

/// Starts a job whose last process is in an entry that works for a second, and waits until this entry has begun.
fn job_in_entry<'a>(launcher: &Launcher, sandbox: &'a Sandbox, flags: &str) -> Job<'a> {
    let line = format!("failing slow --transport mpi --checkpoint saved {flags}");
    let job = launcher.start(sandbox, &[(2, &line)]);
    sandbox.wait_for("working-4");
    sleep(Duration::from_millis(300));
    job
}

#[test]
fn a_signal_in_the_middle_of_an_entry_saves_the_job_at_the_next_sync_point() {
    let Some(launcher) = Launcher::find() else { return };
    let expected = start_without_launcher(&Sandbox::new(), "failing slow --pes 2").end().0.result();
    // To the process in the entry, and to the other one.
    for (rank, name) in [(1, "USR1"), (0, "USR1"), (1, "TERM"), (0, "USR2")] {
        let sandbox = Sandbox::new();
        let job = job_in_entry(&launcher, &sandbox, &format!("--checkpoint-on {name} --checkpoint-exit"));
        assert!(signal(name, job.processes()[&rank]));
        has_ended(&sandbox, job.end().0, &expected);
    }
    let sandbox = Sandbox::new();
    let job = job_in_entry(&launcher, &sandbox, "--checkpoint-on USR1");
    assert!(signal("USR1", job.processes()[&1]));
    // Each process prints the result.
    assert_eq!(job.end().0.result(), expected.repeat(2), "the run goes on");
    let restart = "failing slow --pes 3 --restart saved/checkpoint-1";
    assert_eq!(start_without_launcher(&sandbox, restart).end().0.result(), expected);
}

/// Checks that a job has saved itself and ended with exit code 0, and continues.
fn has_ended(sandbox: &Sandbox, output: ProcessOutput, expected: &str) {
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stderr.matches("note: saved as checkpoint 1").count(), 1, "{output:?}");
    assert!(!sandbox.path().join("working-5").exists(), "{output:?}");
    Checkpoint::open(&sandbox.path().join("saved")).and_then(|saved| saved.check()).expect("it is whole");
    let restarted = start_without_launcher(sandbox, "failing slow --pes 3 --restart saved").end().0;
    assert_eq!(restarted.result(), expected);
}

#[test]
fn a_signal_to_the_launcher_reaches_the_processes() {
    let Some(launcher) = Launcher::find() else { return };
    let expected = start_without_launcher(&Sandbox::new(), "failing slow --pes 2").end().0.result();
    let sandbox = Sandbox::new();
    let job = job_in_entry(&launcher, &sandbox, "--checkpoint-on USR1 --checkpoint-exit");
    assert!(signal("USR1", job.launcher()));
    has_ended(&sandbox, job.end().0, &expected);
    // SIGTERM ends the job; whether it saves itself before depends on the launcher. What is saved is whole.
    let sandbox = Sandbox::new();
    let job = job_in_entry(&launcher, &sandbox, "--checkpoint-on TERM --checkpoint-exit");
    assert!(signal("TERM", job.launcher()));
    job.end();
    let restart = match Checkpoint::open(&sandbox.path().join("saved")) {
        Ok(saved) => saved.check().map(|()| "--restart saved").expect("it is whole"),
        Err(_) => "",
    };
    let restarted = start_without_launcher(&sandbox, &format!("failing slow --pes 3 {restart}")).end().0;
    assert_eq!(restarted.result(), expected);
}

#[test]
fn a_run_that_a_signal_ends_waits_for_a_process_that_writes_late() {
    let Some(launcher) = Launcher::find() else { return };
    for _ in 0..20 {
        let sandbox = Sandbox::new();
        let job = job_in_entry(&launcher, &sandbox, "--checkpoint-on USR1 --checkpoint-exit");
        let id = job.processes()[&1];
        assert!(signal("USR1", id));
        sandbox.wait_for("saved/checkpoint-1");
        let is_stopped =
            signal("STOP", id) && !sandbox.path().join("saved/checkpoint-1/manifest.eqcp").exists();
        if is_stopped {
            // Longer than a failed run waits for its processes.
            sleep(Duration::from_millis(3500));
        }
        // A process that was faster than this test has ended.
        signal("CONT", id);
        let (output, _) = job.end();
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stderr.contains("note: saved as checkpoint 1"), "{output:?}");
        Checkpoint::open(&sandbox.path().join("saved")).and_then(|saved| saved.check()).expect("it is whole");
        if is_stopped {
            return;
        }
    }
    panic!("the process always ended before it could be stopped");
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
