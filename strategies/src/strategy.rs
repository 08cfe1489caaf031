//! The trait of strategies: pure functions from a database and a topology to an assignment.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use equipoise_model::assignment::Impossible;
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::table::count;
use equipoise_model::{Assignment, Database, Topology};
use equipoise_network::program::Model;

use crate::decentral::Decentral;
use crate::room::Room;

/// Assigns objects to PEs.
///
/// A strategy is pure: the same database, topology and seed give the same assignment on any number of
/// threads. It reads no clock, prints nothing and keeps no state between calls.
///
/// ```
/// use equipoise_model::{Assignment, Database, Topology, graph, topology};
/// use equipoise_strategies::{Strategy, StrategyError, strategy};
///
/// /// Assigns objects to PEs round-robin.
/// struct RoundLB;
///
/// impl Strategy for RoundLB {
///     fn assign(&self, database: &Database, topology: &dyn Topology, _seed: u64) -> Result<Assignment, StrategyError> {
///         let mut round = strategy::check(database, topology)?.into_iter().cycle();
///         let mut answer = Assignment::unchanged(database);
///         for (pe, object) in answer.pe_of.iter_mut().zip(&database.objects) {
///             if object.migratable {
///                 *pe = round.next().unwrap_or(*pe);
///             }
///         }
///         Ok(answer)
///     }
/// }
///
/// let machine = topology::parse("flat:3")?;
/// let recorded = graph::load("mesh:2x4")?.remap(3);
/// let answer = RoundLB.assign(&recorded, &*machine, 0)?;
/// assert_eq!(answer.pe_of, [0, 1, 2, 0, 1, 2, 0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Strategy: Send + Sync {
    /// Assigns every object of `database` to one of the `topology.pes()` PEs.
    ///
    /// Objects that are not migratable must stay on their PE. No object may be assigned to a PE that is not
    /// available. The caller checks the result with [`Assignment::check`].
    ///
    /// # Errors
    /// If the strategy cannot handle this database or topology. The message says what is wrong and what to do.
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError>;

    /// As [`Self::assign`], under constraints: objects go to PEs with `room` for them. None from strategies that do not know constraints,
    /// and where the strategy finds no such placement. Then, and if the answer breaks a constraint, the caller searches a placement near the answer
    /// of [`Self::assign`].
    ///
    /// In `room`, objects that cannot move have their places, and no other object has one.
    ///
    /// # Errors
    /// Those of [`Self::assign`].
    fn assign_within(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
        room: Room,
    ) -> Result<Option<Assignment>, StrategyError> {
        let _ = (database, topology, seed, room);
        Ok(None)
    }

    /// Assigns every process of a program to a PE. `database` is the input of [`Self::assign`]; `model` adds waits
    /// and phases. Only strategies that use waits or phases implement this method.
    ///
    /// # Errors
    /// Those of [`Self::assign`].
    fn assign_program(
        &self,
        model: &Model,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let _ = model;
        self.assign(database, topology, seed)
    }

    /// The answer of [`Self::assign`], and other placements that move fewer objects, for users who limit moves. They are not searched for
    /// if `is_enough` says so of the answer. Only strategies that find such placements implement this method.
    ///
    /// # Errors
    /// Those of [`Self::assign`].
    fn alternatives(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
        is_enough: &dyn Fn(&Assignment) -> bool,
    ) -> Result<Alternatives, StrategyError> {
        let _ = is_enough;
        let answer = self.assign(database, topology, seed)?;
        Ok(Alternatives { answer, others: Vec::new() })
    }

    /// The strategy as a protocol between PEs, if PEs can carry it out together. A run then collects no database. On a machine whose
    /// PEs are all available, the protocol gives the placement of [`Self::assign`].
    fn decentral(&self) -> Option<&dyn Decentral> {
        None
    }
}

/// An answer of a strategy, and placements that move fewer objects.
#[derive(Clone, Debug)]
pub struct Alternatives {
    /// The answer.
    pub answer: Assignment,
    /// Placements of all objects that move fewer of them, each possible.
    pub others: Vec<Vec<u32>>,
}

/// Why a strategy gave no answer: a sentence that says what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// The strategy cannot be used with these parameters or on this machine. The user must change the request.
    #[error("{0}")]
    Request(String),
    /// No placement keeps the constraints, or none was found. The user must change them, or the file in which they were recorded.
    #[error("{0}")]
    Constraints(String),
    /// The recorded data, or a file that the strategy reads, cannot be used.
    #[error("{0}")]
    Data(String),
    /// A bug in the strategy: its assignment is impossible, or it panicked.
    #[error("{0}")]
    Bug(String),
}

/// What to do about a bug in a strategy.
const REPORT: &str = "please report this bug in the strategy";

impl StrategyError {
    /// The error for an assignment of the strategy `name` that fails [`Assignment::check`].
    pub fn rejected(name: &str, impossible: Impossible) -> StrategyError {
        StrategyError::Bug(format!("the assignment of {name} was rejected: {impossible} ({REPORT})"))
    }

    /// The same error with its sentence replaced by `sentence` of it.
    pub fn map(self, sentence: impl FnOnce(String) -> String) -> StrategyError {
        match self {
            StrategyError::Request(reason) => StrategyError::Request(sentence(reason)),
            StrategyError::Constraints(reason) => StrategyError::Constraints(sentence(reason)),
            StrategyError::Data(reason) => StrategyError::Data(sentence(reason)),
            StrategyError::Bug(reason) => StrategyError::Bug(sentence(reason)),
        }
    }

    /// The same error where all constraints are recorded ones of `file`: then not the request is wrong, but the data.
    #[must_use]
    pub fn of_recorded(self, file: &str) -> StrategyError {
        match self {
            StrategyError::Constraints(reason) => StrategyError::Data(format!(
                "the constraints that `{file}` has recorded cannot be kept: {reason}"
            )),
            other => other,
        }
    }
}

impl Classified for StrategyError {
    fn fault(&self) -> Fault {
        match self {
            StrategyError::Request(_) | StrategyError::Constraints(_) => Fault::Usage,
            StrategyError::Data(_) => Fault::Input,
            StrategyError::Bug(_) => Fault::Bug,
        }
    }
}

/// Runs a strategy in `run` and returns a panic as an error, so that the caller can continue.
///
/// # Errors
/// Those of the strategy, and [`StrategyError::Bug`] if it panics.
pub fn guarded(run: impl FnOnce() -> Result<Assignment, StrategyError>) -> Result<Assignment, StrategyError> {
    // Unwind safe: the database is only read and a strategy keeps no state.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
        let message = panic_message(&*payload);
        Err(StrategyError::Bug(format!("the strategy panicked: {message} ({REPORT})")))
    })
}

/// The message of a panic.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Checks the input of a strategy; returns the available PEs in ascending order.
///
/// # Errors
/// If the database is inconsistent or its number of PEs differs from the topology, or if no PE is available.
pub fn check(database: &Database, topology: &dyn Topology) -> Result<Vec<u32>, StrategyError> {
    database.check().map_err(|error| StrategyError::Data(format!("the database cannot be used: {error}")))?;
    let (recorded, pes) = (database.pes.len(), topology.pes());
    if recorded != pes {
        let (spec, recorded) = (topology.spec(), count(recorded as u64, "PE"));
        return Err(StrategyError::Request(format!(
            "the database has {recorded} and `{spec}` has {pes}; choose a topology of {recorded}, or remap the database to \
             {pes}"
        )));
    }
    let available: Vec<u32> = (0..pes as u32).filter(|&pe| database.pes[pe as usize].available).collect();
    if available.is_empty() {
        return Err(StrategyError::Data(
            "no PE is available for the objects; make at least one PE available".into(),
        ));
    }
    Ok(available)
}
