//! What lies between two placements: others with fewer migrations, which gain less.

use equipoise_model::{Database, Topology};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::max_moves::between;
use equipoise_strategies::{Strategy, StrategyError};
use serde::Serialize;

/// The costs of a placement between two others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Between {
    /// The objects on another PE than before.
    pub migrations: u64,
    /// The largest load of a PE over the average.
    pub max_over_avg: f64,
    /// Bytes times the distance that they cross; none if communication was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_bytes: Option<u128>,
}

impl Between {
    /// The placements between the one of the database and `pe_of`, by migrations; the last one is `pe_of`, and there is none if it moves
    /// no object that may stay. If `pe_of` is the answer of a strategy with a seed, `--max-moves` chooses among the same placements. None
    /// under constraints, which placements between might break.
    ///
    /// # Errors
    /// As [`between`], and those of the strategy.
    pub fn all(
        database: &Database,
        topology: &dyn Topology,
        pe_of: &[u32],
        strategy: Option<(&dyn Strategy, u64)>,
    ) -> Result<Vec<Self>, StrategyError> {
        if !database.constraints.is_empty() {
            return Ok(Vec::new());
        }
        let others = match strategy {
            Some((strategy, seed)) => strategy.alternatives(database, topology, seed, &|_| false)?.others,
            None => Vec::new(),
        };
        let costs = |pe_of: &Vec<u32>| {
            let metrics = Metrics::of(database, topology, pe_of);
            Between {
                migrations: metrics.migrations,
                max_over_avg: 1.0 + metrics.imbalance,
                hop_bytes: metrics.communication.map(|it| it.hop_bytes),
            }
        };
        Ok(between(database, topology, pe_of, others)?.iter().map(costs).collect())
    }
}
