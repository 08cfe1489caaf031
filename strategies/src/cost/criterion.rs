//! The costs that searches can minimise, and their value for a placement. (Their names are in [`super::catalogue`].)

use equipoise_model::{Database, Topology};

use super::mcf;
use super::mcf_optimal::{self, Ways};
use super::qap::{self, Metric, TooLarge};
use super::unsolved::Unsolved;
use equipoise_model::fault::{Classified, Fault};

/// A cost that a search minimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Bytes times distances.
    Qap(Metric),
    /// The time of the busiest link.
    Mcf,
    /// The time of the busiest link with the best routes.
    Optimal(Ways),
}

/// Why a cost is unknown.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unknown {
    /// The machine is too large for a table of distances.
    #[error(transparent)]
    Distances(#[from] TooLarge),
    /// The best routes were not found.
    #[error(transparent)]
    Routes(#[from] Unsolved),
}

impl Classified for Unknown {
    fn fault(&self) -> Fault {
        match self {
            Unknown::Distances(error) => error.fault(),
            Unknown::Routes(error) => error.fault(),
        }
    }
}

impl Cost {
    /// The cost of object `i` of `database` on PE `placement[i]`, in byte hops, seconds, or byte seconds, depending on
    /// the cost.
    ///
    /// # Errors
    /// When the machine is too large for that cost, or the best routes cannot be found.
    ///
    /// # Panics
    /// When `placement` is shorter than the objects, or a PE is unknown.
    pub fn of(self, database: &Database, machine: &dyn Topology, placement: &[u32]) -> Result<f64, Unknown> {
        Ok(match self {
            Cost::Qap(metric) => qap::cost(database, machine, placement, metric)?,
            Cost::Mcf => mcf::cost(database, machine, placement),
            Cost::Optimal(ways) => mcf_optimal::solve(database, machine, placement, ways)?.seconds,
        })
    }
}
