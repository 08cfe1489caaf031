//! The costs that searches make smaller, by name, and the number of a placement.

use std::str::FromStr;

use super::mcf;
use super::mcf_optimal::{self, Unsolved, Ways};
use super::qap::{self, Metric, TooLarge};
use crate::{Database, Topology};

/// What a search makes smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Bytes times distances.
    Qap(Metric),
    /// The time of the busiest link.
    Mcf,
    /// The same with the best routes.
    Optimal(Ways),
}

/// Why a cost is not known.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Unknown {
    /// The machine is too large for its distances.
    #[error(transparent)]
    Distances(#[from] TooLarge),
    /// The best routes were not found.
    #[error(transparent)]
    Routes(#[from] Unsolved),
}

/// What can be made smaller.
const COSTS: &str =
    "costs are `qap:hops`, `qap:bandwidth`, `qap:rtt`, `mcf`, `mcf:optimal` or `mcf:shortest`";

impl Cost {
    /// What it costs to have object `i` of `database` on PE `placement[i]`: byte hops, seconds, or byte seconds, by the
    /// cost.
    ///
    /// # Errors
    /// On machines that are too large for that cost, and where the best routes cannot be found.
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

impl FromStr for Cost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let metric = text.strip_prefix("qap:").and_then(|metric| metric.parse().ok());
        match (text, metric) {
            ("mcf", _) => Ok(Cost::Mcf),
            ("mcf:optimal", _) => Ok(Cost::Optimal(Ways::Any)),
            ("mcf:shortest", _) => Ok(Cost::Optimal(Ways::Shortest)),
            (_, Some(metric)) => Ok(Cost::Qap(metric)),
            ("mcf:cuts", _) => Err(format!("{COSTS}; `mcf:cuts` is a bound of what mappings cost")),
            _ => Err(COSTS.into()),
        }
    }
}
