//! A strategy that records what strategies see.

use std::sync::{Mutex, MutexGuard, PoisonError};

use equipoise_model::{Assignment, Database, Topology};
use equipoise_strategies::{Strategy, StrategyError};

/// A strategy that keeps its input and moves nothing.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Option<Database>>);

impl Recorder {
    /// The last input.
    pub(crate) fn take(&self) -> Option<Database> {
        self.lock().take()
    }

    /// A poisoned lock is harmless: a run that panicked here has ended.
    fn lock(&self) -> MutexGuard<'_, Option<Database>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Strategy for Recorder {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        *self.lock() = Some(database.clone());
        Ok(Assignment::unchanged(database))
    }
}
