//! Runs that are killed at random times and continue from their newest checkpoint.

use std::path::{Path, PathBuf};
use std::time::Duration;

use equipoise::checkpoint::Checkpoint;
use serde_json::Value;

use crate::fuzz::Rng;
use crate::{Sandbox, without_run};

/// The flags of a run that saves itself at every sync point.
pub const SAVES: &str = "--checkpoint saved --checkpoint-every 1";

/// Lets `run` kill a program at least `times` times, and until every fourth of these kills has left a checkpoint. Checks
/// that a killed program continues from its newest checkpoint to the result `expected`. `run` starts the program with the
/// given flag in the sandbox, kills it after the given time, and returns its result if it ends before. Without a time it is
/// not killed. `whole` is about the time of a program that is not killed: the times of the kills are spread over it.
///
/// Returns the number of kills in the middle of a checkpoint: each has left a checkpoint without a manifest.
///
/// # Panics
/// If the newest checkpoint is not whole, or the result is another one, or four times as many kills leave too few
/// checkpoints; with the seed, which is also printed.
pub fn kill(
    seed: u64,
    times: usize,
    whole: Duration,
    expected: &Value,
    mut run: impl FnMut(&Sandbox, &str, &mut Rng, Option<Duration>) -> Option<Value>,
) -> usize {
    eprintln!("kills with the seed {seed}");
    let mut rng = Rng(seed);
    let (mut kills, mut restarts, mut results, mut torn) = (0, 0, 0, 0);
    let mut sandbox = Sandbox::new();
    // In this sandbox, the last checkpoint that a kill has left without a manifest.
    let mut last_torn = None;
    // The last run is not killed.
    let mut is_last = false;
    while !is_last {
        is_last = kills >= times && restarts >= times.div_ceil(4);
        assert!(kills < 4 * times || is_last, "seed {seed}: {restarts} restarts after {kills} kills");
        let dir = sandbox.path().join("saved");
        let restart = if let Ok(newest) = Checkpoint::newest(&dir) {
            let checked = Checkpoint::open(&newest).and_then(|checkpoint| checkpoint.check());
            checked.unwrap_or_else(|error| panic!("seed {seed}, kill {kills}: {error}"));
            restarts += 1;
            "--restart saved"
        } else {
            ""
        };
        let is_killed = rng.below(5) > 0 && !is_last;
        let after = is_killed.then(|| whole.mul_f64(rng.below(1 << 20) as f64 / f64::from(1 << 20)));
        match run(&sandbox, restart, &mut rng, after) {
            None => {
                kills += 1;
                let newest = newest_incomplete(&dir);
                if newest > last_torn {
                    (torn, last_torn) = (torn + 1, newest);
                }
                if kills % 20 == 0 {
                    eprintln!(
                        "{kills} kills, {torn} in a checkpoint, {restarts} restarts, {results} results"
                    );
                }
            }
            Some(result) => {
                assert_eq!(without_run(result), *expected, "seed {seed}, kill {kills}");
                results += 1;
                (sandbox, last_torn) = (Sandbox::new(), None);
            }
        }
    }
    eprintln!("{kills} kills, {torn} in a checkpoint, {restarts} restarts, {results} results");
    torn
}

/// The number of the newest checkpoint, if it has no manifest. Older ones without a manifest were being removed.
fn newest_incomplete(dir: &Path) -> Option<u64> {
    let entries = dir.read_dir().ok()?.map(|entry| entry.expect("a folder").path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("checkpoint-")?.parse().ok();
    let newest = entries.max_by_key(number)?;
    if newest.join("manifest.eqcp").exists() { None } else { number(&newest) }
}
