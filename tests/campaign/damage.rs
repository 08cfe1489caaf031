//! Damaged files and specs: exit code 0, 1 or 2, and a sentence.

use equipoise_tests::Sandbox;
use equipoise_tests::fuzz::{Reader, Rng, mutate, readers};

use crate::Case;

/// The command reads a damaged file.
pub fn files(_: &Case, rng: &mut Rng) -> Option<String> {
    check(rng, |reader| !reader.file.is_empty())
}

/// The command parses a damaged spec.
pub fn specs(_: &Case, rng: &mut Rng) -> Option<String> {
    check(rng, |reader| reader.file.is_empty())
}

fn check(rng: &mut Rng, is_wanted: fn(&Reader) -> bool) -> Option<String> {
    thread_local!(static READERS: Vec<Reader> = readers());
    READERS.with(|readers| {
        let all: Vec<&Reader> =
            readers.iter().filter(|reader| is_wanted(reader) && !reader.command.is_empty()).collect();
        let reader = all[rng.below(all.len())];
        let mut input = mutate(&reader.golden, rng);
        if rng.below(4) > 0 {
            (reader.repair)(&mut input);
        }
        reader.check_command(&input, &Sandbox::new());
    });
    None
}
