//! What every strategy is: a pure function from a database and a machine to an assignment.

use crate::{Assignment, Database, Topology};

/// Decides where objects go.
///
/// Pure: the same database, topology and seed give the same answer, on any number of threads. A
/// strategy reads no clock, prints nothing and keeps no state between calls.
pub trait Strategy: Send + Sync {
    /// The PE of every object of `database`, which runs on `topology.pes()` PEs.
    ///
    /// Objects that are not migratable stay on their PE, and no object is given to a PE that is not
    /// available; whoever calls a strategy checks its answer with [`Assignment::check`].
    ///
    /// # Errors
    /// When the database or the topology is one this strategy cannot serve; the message says what
    /// was wrong and the remedy.
    fn assign(&self, database: &Database, topology: &dyn Topology, seed: u64) -> Result<Assignment, StrategyError>;
}

/// Why a strategy gave no answer: a sentence that names what was wrong and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StrategyError(pub String);
