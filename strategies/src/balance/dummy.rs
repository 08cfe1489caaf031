//! `DummyLB`: moves nothing.
//!
//! After Charm++'s strategy of that name: a load-balancing step with all its costs (collecting the
//! database, the barrier) and no effect, to be measured against.

use crate::registry::Named;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `DummyLB` for the registry.
pub const NAMED: Named = Named {
    name: "DummyLB",
    aliases: &[],
    help: "Moves nothing; shows what a load-balancing step itself costs.",
    params: &[],
    needs_communication: false,
    make: |_| Ok(Box::new(Dummy)),
};

/// The strategy that leaves every object where it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dummy;

impl Strategy for Dummy {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        Ok(Assignment::unchanged(database))
    }
}
