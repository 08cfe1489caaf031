//! What the tests of this crate share: small databases, and the reference data beside the project.

use std::path::{Path, PathBuf};

use crate::cost::{Communication, LoadBound, Metrics};
use crate::database::{Database, Object, ObjectIndex, PeRecord};
use crate::{Assignment, StrategyError, Topology, registry, topology};

/// A database with normal PEs and an object per entry of `objects`: its load in seconds and its PE.
pub(crate) fn database(pes: usize, objects: &[(f64, u32)]) -> Database {
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

/// Objects of about a quarter of a second, of which the first PEs have four times as many as the others.
pub(crate) fn uneven(pes: usize) -> Database {
    let on = |pe: usize| if pe < pes / 4 { 128 } else { 32 };
    let objects: Vec<(f64, u32)> = (0..pes)
        .flat_map(|pe| (0..on(pe)).map(move |i| (0.25 + (i * 7 % 5) as f64 / 40.0, pe as u32)))
        .collect();
    database(pes, &objects)
}

/// The load of the heaviest PE over the average.
pub(crate) fn max_per_average(database: &Database, placement: &[u32]) -> f64 {
    let max = database.pe_loads(placement).into_iter().fold(0.0, f64::max);
    max / LoadBound::of(database).average_seconds
}

/// What the communication of `database` costs with object `i` on PE `placement[i]`.
pub(crate) fn communication(
    database: &Database,
    topology: &dyn Topology,
    placement: &[u32],
) -> Communication {
    Metrics::of(database, topology, placement).communication.expect("it was recorded")
}

/// What the strategy of `spec` answers on a flat machine, with seed 0.
pub(crate) fn assign(spec: &str, database: &Database) -> Result<Assignment, StrategyError> {
    assign_on(spec, database, &format!("flat:{}", database.pes.len()))
}

/// What the strategy of `spec` answers on the machine `topology`, with seed 0; the answer is possible.
pub(crate) fn assign_on(
    spec: &str,
    database: &Database,
    topology: &str,
) -> Result<Assignment, StrategyError> {
    let strategy = registry::parse(spec, &[]).expect("a test names a strategy that exists").strategy;
    let topology = topology::parse(topology).expect("a test names a topology that exists");
    let answer = strategy.assign(database, &*topology, 0)?;
    assert_eq!(answer.check(database), Ok(()), "{spec}");
    Ok(answer)
}

/// The text of a reference file, or `None`, said aloud, where the reference data is not at hand.
pub(crate) fn reference(path: &str) -> Option<String> {
    let full = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference")).join(path);
    match std::fs::read_to_string(&full) {
        Ok(text) => Some(text),
        Err(error) => {
            eprintln!("skipped: the reference data {path} is not at hand ({error})");
            None
        }
    }
}

/// The LB dumps of Charm++ programs, each with its text form beside it as `NAME.txt`: the one of this
/// crate, and more where they are at hand.
pub(crate) fn charm_dumps() -> Vec<PathBuf> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/leanmd_333_1053.dat.0");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference/charm_dumps");
    let own = PathBuf::from(own);
    let is_another = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "0") && path.file_name() != own.file_name()
    };
    let mut dumps = vec![own.clone()];
    match std::fs::read_dir(folder) {
        Ok(entries) => dumps.extend(entries.flatten().map(|entry| entry.path()).filter(is_another)),
        Err(_) => eprintln!("skipped: there are no more Charm++ dumps in {folder}"),
    }
    dumps
}

/// The text with the letter at a place, counted round and round, replaced by others.
pub(crate) fn mutated(text: &str, at: usize, by: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let at = at % letters.len().max(1);
    letters.iter().take(at).copied().chain(by.chars()).chain(letters.iter().skip(at + 1).copied()).collect()
}
