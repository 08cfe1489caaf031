//! Helpers of the tests of this crate: compute a cost or run a strategy in one call.

use equipoise_model::database::{Edge, End};
pub(crate) use equipoise_model::testing::*;
use equipoise_model::topology;

use crate::cost::{Communication, LoadBound, Metrics};
use crate::{Assignment, Database, StrategyError, Topology, registry};

/// The largest load of a PE divided by the average load.
pub(crate) fn max_per_average(database: &Database, placement: &[u32]) -> f64 {
    let max = database.pe_loads(placement).into_iter().fold(0.0, f64::max);
    max / LoadBound::of(database).average_seconds
}

/// The cost of the communication of `database` with object `i` on PE `placement[i]`.
pub(crate) fn communication(
    database: &Database,
    topology: &dyn Topology,
    placement: &[u32],
) -> Communication {
    Metrics::of(database, topology, placement).communication.expect("communication was recorded")
}

/// The assignment of the strategy `spec` on a flat machine, with seed 0.
pub(crate) fn assign(spec: &str, database: &Database) -> Result<Assignment, StrategyError> {
    assign_on(spec, database, &format!("flat:{}", database.pes.len()))
}

/// The assignment of the strategy `spec` on the machine `topology`, with seed 0; checks that it can be applied.
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

/// Checks the assignment of the strategy `spec` on a flat machine, for objects given as (load, PE) that exchange bytes, given as
/// (from, to, bytes), after a change of the database.
#[track_caller]
pub(crate) fn check_assignment(
    spec: &str,
    pes: usize,
    objects: &[(f64, u32)],
    edges: &[(u32, u32, u64)],
    change: impl FnOnce(&mut Database),
    expected: &[u32],
) {
    let mut database = database(pes, objects);
    let edge = |&(a, b, bytes)| Edge { from: End::Object(a), to: End::Object(b), messages: 1, bytes };
    database.edges = edges.iter().map(edge).collect();
    change(&mut database);
    let answer = assign(spec, &database).map(|answer| answer.pe_of);
    assert_eq!(answer, Ok(expected.to_vec()), "{spec}: {objects:?} {edges:?}");
}
