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
