//! Runs that are killed at random times and continue from their newest checkpoint.

use std::time::Duration;

use equipoise::checkpoint::Checkpoint;
use serde_json::Value;

use crate::fuzz::Rng;
use crate::{Sandbox, without_run};

/// The flags of a run that saves itself at every sync point.
pub const SAVES: &str = "--checkpoint saved --checkpoint-every 1";

/// Lets `run` kill a program `times` times, and checks that a killed program continues from its newest checkpoint to the
/// result `expected`. `run` starts the program with the given flag in the sandbox, kills it after the given time, and
/// returns its result if it ends before. Without a time it is not killed.
///
/// # Panics
/// If the newest checkpoint is not whole, or the result is another one; with the seed, which is also printed.
pub fn kill(
    seed: u64,
    times: usize,
    latest: Duration,
    expected: &Value,
    mut run: impl FnMut(&Sandbox, &str, &mut Rng, Option<Duration>) -> Option<Value>,
) {
    eprintln!("kills with the seed {seed}");
    let mut rng = Rng(seed);
    let (mut kills, mut restarts, mut results) = (0, 0, 0);
    let mut sandbox = Sandbox::new();
    // The last run is not killed.
    let mut is_last = false;
    while !is_last {
        is_last = kills == times;
        let dir = sandbox.path().join("saved");
        let restart = if let Ok(newest) = Checkpoint::newest(&dir) {
            let whole = Checkpoint::open(&newest).and_then(|checkpoint| checkpoint.check());
            whole.unwrap_or_else(|error| panic!("seed {seed}, kill {kills}: {error}"));
            restarts += 1;
            "--restart saved"
        } else {
            ""
        };
        let is_killed = rng.below(5) > 0 && !is_last;
        let after = is_killed.then(|| latest.mul_f64(rng.below(1 << 20) as f64 / f64::from(1 << 20)));
        match run(&sandbox, restart, &mut rng, after) {
            None => {
                kills += 1;
                if kills % 20 == 0 {
                    eprintln!("{kills} kills, {restarts} restarts, {results} results");
                }
            }
            Some(result) => {
                assert_eq!(without_run(result), *expected, "seed {seed}, kill {kills}");
                results += 1;
                sandbox = Sandbox::new();
            }
        }
    }
    eprintln!("{kills} kills, {restarts} restarts, {results} results");
    assert!(restarts > times / 4, "{restarts} restarts after {kills} kills");
}
