//! `DummyLB`: moves nothing.
//!
//! Charm++'s strategy of that name. A load-balancing step with DummyLB has all its costs (the barrier, collecting the
//! database) and no effect: a baseline for measurements.

use equipoise_model::{Assignment, Database, Topology};

use crate::descriptor::Recipe;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `DummyLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "DummyLB",
    form: "",
    help: "Moves nothing; measures the cost of a load-balancing step itself.",
    params: &[],
    item: Recipe { needs_communication: false, make: |_| Ok(Box::new(Dummy)) },
};

/// The strategy that leaves every object on its PE.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dummy;

impl Strategy for Dummy {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        Ok(Assignment::unchanged(database))
    }
}
