//! Programs that a signal ends: exit codes, the sentence, the files that are left.

#![cfg(unix)]

use std::time::Duration;

use equipoise_tests::fuzz::Rng;
use equipoise_tests::interrupts::{JOBS, SIGNALS, interrupt};

#[test]
fn signals_leave_whole_files_and_the_earlier_ones() {
    for (number, job) in JOBS.iter().enumerate() {
        let signal = SIGNALS[number % SIGNALS.len()];
        // Tests share the processors with each other.
        interrupt(job, signal, Duration::from_millis(100 + 50 * number as u64), Duration::from_secs(10));
    }
}

#[test]
#[ignore = "slow"]
fn signals_at_200_times_leave_whole_files_and_the_earlier_ones() {
    let mut rng = Rng(1);
    for number in 0..200 {
        let job = &JOBS[number % JOBS.len()];
        let signal = SIGNALS[number % 3];
        interrupt(
            job,
            signal,
            Duration::from_micros(rng.below(1_200_000) as u64),
            Duration::from_millis(500),
        );
    }
}
