//! Signals at random times while runs and conversions write files: whole files, and the earlier file is kept.

use std::time::Duration;

use equipoise_tests::fuzz::Rng;
use equipoise_tests::interrupts::{JOBS, SIGNALS, interrupt};

use crate::Case;

/// Tests and other processes share the processors with the command, so that it may take longer than on an idle machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// A signal ends a command that writes a file.
pub fn kills(_: &Case, rng: &mut Rng) -> Option<String> {
    let (job, signal) = (&JOBS[rng.below(JOBS.len())], SIGNALS[rng.below(SIGNALS.len())]);
    let after = Duration::from_micros(rng.below(1_200_000) as u64);
    interrupt(job, signal, after, PATIENCE);
    None
}

/// A process of a job of MPI is killed at a random time, also while the job starts: the job ends soon, with an exit code that
/// is not 0, and leaves no process.
#[cfg(feature = "mpi")]
pub fn ranks(_: &Case, rng: &mut Rng) -> Option<String> {
    use equipoise_tests::Sandbox;
    use equipoise_tests::mpi::{CARRIERS, Launcher, SHAPES};
    use std::thread::sleep;
    use std::time::Instant;

    let Some(launcher) = Launcher::find() else { return Some("skipped: there is no launcher of MPI".into()) };
    let ((processes, pes), carrier) =
        (SHAPES[1 + rng.below(SHAPES.len() - 1)], CARRIERS[rng.below(CARRIERS.len())]);
    let program = [
        "stencil2d --blocks 4 --cells 16 --iterations 100000000",
        "leanmd --cells 3x3x3 --particles 4 --iterations 100000000",
        "kneighbor --elements 24 --bytes 65536 --iterations 100000000",
    ][rng.below(3)];
    let line = format!(
        "equipoise run {program} --lb-every 5 --balancer RandomLB --transport mpi --pes-per-process {pes} --time-limit 60"
    );
    let sandbox = Sandbox::new();
    let job = launcher.start_on(carrier, &sandbox, &[(processes, &line)]);
    sleep(Duration::from_micros(rng.below(2_000_000) as u64));
    let running = job.processes();
    let Some((rank, &id)) = running.iter().nth(rng.below(running.len().max(1))) else {
        // No process has started yet; the time limit would end the job.
        job.kill_all();
        job.end();
        return None;
    };
    let begin = Instant::now();
    assert!(equipoise_tests::signal("KILL", id), "process {rank} has not been waited for");
    let (output, _) = job.end();
    assert_ne!(output.code, Some(0), "process {rank} was killed: {output:?}");
    // The launcher takes up to 3 s on an idle computer.
    assert!(begin.elapsed() < PATIENCE, "{:?} after the kill of process {rank}: {output:?}", begin.elapsed());
    None
}
