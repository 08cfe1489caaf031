//! Helpers of the tests of this crate: compute a cost or run a strategy in one call.

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
