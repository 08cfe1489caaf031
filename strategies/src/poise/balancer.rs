//! `PoiseLB` for the registry.

use super::problem::Problem;
use super::scratch;
use super::settings::Quality;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `PoiseLB` for the registry.
pub const NAMED: Named = Named {
    name: "PoiseLB",
    aliases: &[],
    help: "Cuts the machine and the objects together, half by half, and refines after every cut: few hops at \
           balanced loads.",
    params: &[
        Param {
            key: "quality",
            default: "default",
            help: "how long it may think: `fast`, `default` or `best`",
        },
        Param::imbalance("0.03"),
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        Ok(Box::new(PoiseLb { quality: params.take("quality")?, imbalance: params.take_imbalance()? }))
    },
};

/// The strategy.
#[derive(Clone, Copy, Debug)]
pub struct PoiseLb {
    /// How long it may think.
    pub quality: Quality,
    /// Allowed max/avg - 1.
    pub imbalance: f64,
}

impl Strategy for PoiseLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let problem = Problem::new(database, topology, &available, self.imbalance)?;
        let settings = self.quality.settings();
        let block_of = scratch::map(&problem, &settings, seed);
        Ok(Assignment::new(problem.placement(database, &block_of)))
    }
}
