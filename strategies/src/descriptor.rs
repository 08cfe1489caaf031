//! The registry data of strategies, and chosen strategies.

use std::fmt;
use std::sync::Arc;

use equipoise_model::params::{ParamError, Params};

use crate::Strategy;

/// How to make the strategy of a [`Descriptor`](equipoise_model::descriptor::Descriptor), and which data it reads.
pub struct Recipe {
    /// Whether the strategy reads [`Database::edges`](crate::Database::edges). Without such a strategy, edges need not be
    /// recorded.
    pub needs_communication: bool,
    /// Makes the strategy from its parameters; takes all of them.
    pub make: fn(&mut Params) -> Result<Box<dyn Strategy>, ParamError>,
}

/// A chosen strategy.
#[derive(Clone)]
pub struct Choice {
    /// The spec as written; for a custom strategy, its name.
    pub spec: String,
    /// The strategy itself.
    pub strategy: Arc<dyn Strategy>,
    /// Whether the strategy reads [`Database::edges`](crate::Database::edges).
    pub needs_communication: bool,
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choice")
            .field("spec", &self.spec)
            .field("needs_communication", &self.needs_communication)
            .finish_non_exhaustive()
    }
}
