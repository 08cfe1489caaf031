//! Helpers shared by the tests of this crate and its dependents: the size of tests, small databases, and the reference data
//! of the project.

use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::database::{Database, Object, ObjectIndex, PeRecord};

thread_local! {
    static FULL: Cell<bool> = const { Cell::new(false) };
}

/// From here on this thread runs tests at full size.
pub fn set_full_size() {
    FULL.set(true);
}

/// Runs `tests` at full size, for the slow group.
pub fn at_full_size(tests: &[fn()]) {
    set_full_size();
    tests.iter().for_each(|test| test());
}

/// Whether tests of this thread are to run at full size. By default they run a few of their cases.
pub fn is_full_size() -> bool {
    FULL.get()
}

/// How many of `all` cases a test runs: all of them in the slow group, and by default a sixteenth, but at least 4.
pub fn some_of(all: u32) -> u32 {
    if is_full_size() { all } else { all.min((all / 16).max(4)) }
}

/// The seeds of a test that has `all` of them: as many as [`some_of`] says. Configurations follow from seeds by their remainders, so the seeds of a
/// small run have different ones, modulo 4 and 6, and other tests have other seeds.
pub fn seeds(all: u32) -> impl Iterator<Item = u64> {
    let count = some_of(all);
    let step = (all / count - 1) / 12 * 12 + 1;
    let first = all - 1 - (count - 1) * step;
    (0..count).map(move |nth| u64::from(first + nth * step))
}

/// Whether a case with this number belongs to a part, out of `parts`; at full size, each part has all cases.
pub fn is_chosen(number: usize, part: usize, parts: usize) -> bool {
    is_full_size() || number % parts == part % parts
}

/// A database with default PEs and one object per entry of `objects`: (load in seconds, PE).
pub fn database(pes: usize, objects: &[(f64, u32)]) -> Database {
    let object = |(id, &(load_seconds, pe)): (usize, &(f64, u32))| Object {
        id: id as u64,
        array: 0,
        index: ObjectIndex::new(&[id as i32]),
        load_seconds,
        bytes: None,
        pe,
        migratable: true,
    };
    Database {
        pes: vec![PeRecord::default(); pes],
        objects: objects.iter().enumerate().map(object).collect(),
        ..Database::default()
    }
}

/// Objects of about a quarter of a second; each PE of the first quarter has four times as many as any other PE.
pub fn uneven(pes: usize) -> Database {
    let on = |pe: usize| if pe < pes / 4 { 128 } else { 32 };
    let objects: Vec<(f64, u32)> = (0..pes)
        .flat_map(|pe| (0..on(pe)).map(move |i| (0.25 + (i * 7 % 5) as f64 / 40.0, pe as u32)))
        .collect();
    database(pes, &objects)
}

/// Says on stderr what a test skips, and why; a test that passes would not show what `eprintln!` writes.
pub fn skip(sentence: &str) {
    _ = writeln!(std::io::stderr(), "skipped: {sentence}");
}

/// The text of a reference file; prints a note and returns `None` if the reference data is not available.
pub fn reference(path: &str) -> Option<String> {
    let full = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference")).join(path);
    match std::fs::read_to_string(&full) {
        Ok(text) => Some(text),
        Err(error) => {
            skip(&format!("the reference data {path} is not available ({error})"));
            None
        }
    }
}

/// LB dumps of Charm++ programs, each with its text form in `NAME.txt` in the same folder: the dump of this crate, and
/// those of the reference data if available.
pub fn charm_dumps() -> Vec<PathBuf> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/leanmd_333_1053.dat.0");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/charm_dumps");
    let own = PathBuf::from(own);
    let is_another = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "0") && path.file_name() != own.file_name()
    };
    let mut dumps = vec![own.clone()];
    match std::fs::read_dir(folder) {
        Ok(entries) => dumps.extend(entries.flatten().map(|entry| entry.path()).filter(is_another)),
        Err(_) => skip(&format!("no other Charm++ dumps are available in {folder}")),
    }
    dumps
}

/// The text with the character at position `at` (modulo the length) replaced by `by`.
pub fn mutated(text: &str, at: usize, by: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let at = at % letters.len().max(1);
    letters.iter().take(at).copied().chain(by.chars()).chain(letters.iter().skip(at + 1).copied()).collect()
}
