//! Why a step was not replayed.

use equipoise_model::database::{DatabaseError, Inconsistent};
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::rules::UnfitFlag;
use equipoise_model::table::count;
use equipoise_model::topology::MAX_PES;

use crate::StrategyError;

/// Why a step was not replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read or does not hold the step.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// An invalid number of PEs.
    #[error("the step cannot be replayed on {pes} PEs; give a number from 1 to {MAX_PES}")]
    NumberOfPes {
        /// The requested number of PEs.
        pes: usize,
    },
    /// The recorded topology cannot be used.
    #[error(
        "the database was recorded on `{spec}`, which cannot be used: {reason}; \
         give another topology with --topology"
    )]
    Topology {
        /// The spec in the database.
        spec: String,
        /// What is wrong with the spec.
        reason: String,
    },
    /// The database is inconsistent.
    #[error("step {step} of the database is inconsistent: {inconsistent}")]
    Inconsistent {
        /// The step.
        step: u64,
        /// What is wrong with the record.
        inconsistent: Inconsistent,
    },
    /// The given constraints are not about this database and machine.
    #[error(transparent)]
    Constraints(#[from] UnfitFlag),
    /// The recorded constraints are not about this machine.
    #[error(transparent)]
    Recorded(#[from] StrategyError),
    /// The topology has another number of PEs than the database.
    #[error(
        "the database was recorded on {recorded} and the topology `{topology}` has {pes}; give a topology of {recorded}, \
         or replay on {on} with --pes {pes} (in programs: --lb-sim-pes {pes})",
        recorded = count(*.recorded as u64, "PE"), on = count(*.pes as u64, "PE")
    )]
    Pes {
        /// PEs of the database.
        recorded: usize,
        /// The spec of the machine.
        topology: String,
        /// PEs of the machine.
        pes: usize,
    },
    /// The topology has another number of PEs than was asked for.
    #[error(
        "the replay is to have {pes} and the topology `{topology}` has {others}; give both the same number, or leave one out",
        pes = count(*.pes as u64, "PE")
    )]
    OtherPes {
        /// The requested number of PEs.
        pes: usize,
        /// The spec of the machine.
        topology: String,
        /// PEs of the machine.
        others: usize,
    },
    /// There is no later step with which a prediction could be compared.
    #[error(
        "predictions of one step are compared with the loads of the next, and only one step was read; leave out --step, give \
         --steps a larger number, or give a database with several steps"
    )]
    NoLaterStep,
    /// No strategy gave an answer; this is the error of the first strategy.
    #[error("{name} gave no answer for step {step}: {error}")]
    Strategy {
        /// The strategy.
        name: String,
        /// The step.
        step: u64,
        /// The reason.
        error: StrategyError,
    },
    /// An assignment that cannot be applied.
    #[error("step {step}: {error}")]
    Rejected {
        /// The step.
        step: u64,
        /// The strategy, and why its assignment is impossible.
        error: StrategyError,
    },
}

impl Classified for ReplayError {
    fn fault(&self) -> Fault {
        match self {
            ReplayError::Database(error) => error.fault(),
            ReplayError::NumberOfPes { .. }
            | ReplayError::Topology { .. }
            | ReplayError::Pes { .. }
            | ReplayError::OtherPes { .. } => Fault::Usage,
            ReplayError::Strategy { error, .. } | ReplayError::Rejected { error, .. } => error.fault(),
            ReplayError::Constraints(error) => error.fault(),
            ReplayError::Recorded(error) => error.fault(),
            ReplayError::Inconsistent { .. } | ReplayError::NoLaterStep => Fault::Input,
        }
    }
}
