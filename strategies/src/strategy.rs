//! What every strategy is: a pure function from a database and a machine to an assignment.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::program::Model;
use crate::{Assignment, Database, Topology};

/// Decides where objects go.
///
/// Pure: the same database, topology and seed give the same answer, on any number of threads. A
/// strategy reads no clock, prints nothing and keeps no state between calls.
///
/// ```
/// use equipoise_strategies::{Assignment, Database, Strategy, StrategyError, Topology, graph, strategy, topology};
///
/// /// Objects go round the PEs, in their order.
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
    /// The PE of every object of `database`, which runs on `topology.pes()` PEs.
    ///
    /// Objects that are not migratable stay on their PE, and no object is given to a PE that is not
    /// available; whoever calls a strategy checks its answer with [`Assignment::check`].
    ///
    /// # Errors
    /// When the database or the topology is one this strategy cannot serve; the message says what
    /// was wrong and the remedy.
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError>;

    /// The PE of every process of a program, of which `database` says what [`Self::assign`] goes by and `model` what
    /// else is known: waits and phases. Strategies that make no use of these need not implement it.
    ///
    /// # Errors
    /// As [`Self::assign`].
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
}

/// Why a strategy gave no answer: a sentence that names what was wrong and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyError {
    /// What was asked for does not fit: a parameter, or the machine. Another request is the remedy.
    #[error("{0}")]
    Request(String),
    /// What was recorded, or stands in a file that the strategy reads, cannot be used.
    #[error("{0}")]
    Data(String),
    /// The strategy itself is at fault: it gave an impossible answer, or panicked.
    #[error("{0}")]
    Mistake(String),
}

impl StrategyError {
    /// The same fault, in the sentence that is made of this one.
    pub fn map(self, sentence: impl FnOnce(String) -> String) -> StrategyError {
        match self {
            StrategyError::Request(reason) => StrategyError::Request(sentence(reason)),
            StrategyError::Data(reason) => StrategyError::Data(sentence(reason)),
            StrategyError::Mistake(reason) => StrategyError::Mistake(sentence(reason)),
        }
    }

    /// Whether another request, such as another command line, is the remedy.
    pub fn is_of_the_request(&self) -> bool {
        matches!(self, StrategyError::Request(_))
    }
}

/// The answer of a strategy that is asked in `ask`: if it panics, that is its mistake, and not the end of whoever asks.
///
/// # Errors
/// Those of the strategy, and [`StrategyError::Mistake`] when it panics.
pub fn guarded(ask: impl FnOnce() -> Result<Assignment, StrategyError>) -> Result<Assignment, StrategyError> {
    // The database is only read, and a strategy keeps no state, so nothing half done is seen after a panic.
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|payload| {
        let message = panic_message(&*payload);
        Err(StrategyError::Mistake(format!("it panicked: {message}; this is a mistake in the strategy")))
    })
}

/// What a panic said.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Whether a strategy can work on these at all; gives the PEs that take objects, ascending.
///
/// # Errors
/// When the database is not whole, belongs to a machine of another size, or has no PE left.
pub fn check(database: &Database, topology: &dyn Topology) -> Result<Vec<u32>, StrategyError> {
    database.check().map_err(|error| StrategyError::Data(format!("the database cannot be used: {error}")))?;
    let (recorded, pes) = (database.pes.len(), topology.pes());
    if recorded != pes {
        let spec = topology.spec();
        return Err(StrategyError::Request(format!(
            "the database has {recorded} PEs and `{spec}` has {pes}; choose a topology of {recorded} PEs, \
             or remap the database to {pes}"
        )));
    }
    let available: Vec<u32> = (0..pes as u32).filter(|&pe| database.pes[pe as usize].available).collect();
    if available.is_empty() {
        return Err(StrategyError::Data(
            "no PE is available, so objects have nowhere to go; free at least one".into(),
        ));
    }
    Ok(available)
}
