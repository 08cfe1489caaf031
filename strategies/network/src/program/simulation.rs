//! Simulations of a program on a machine, by which mappers compare the placements that they found.

use std::fmt;
use std::sync::Arc;

use equipoise_model::Topology;

use super::execute::{PAPER_LINKS, execute};
use super::{Costs, Program};
use crate::models::PreparedWormhole;

/// The approximate number of instructions (or hops of a route) that take as long as the simulation of one message.
const INSTRUCTIONS_PER_MESSAGE: u64 = 32;
const HOPS_PER_MESSAGE: u64 = 1024;

/// A program and a machine, with which a [`Model`](super::Model) can simulate placements.
#[derive(Clone)]
pub struct ProgramSimulation {
    program: Arc<Program>,
    machine: Arc<dyn Topology>,
    costs: Costs,
}

impl ProgramSimulation {
    /// The simulation of a program that has passed [`Program::check`], on a machine with the links of the paper.
    pub fn new(program: &Program, machine: &Arc<dyn Topology>, costs: Costs) -> Self {
        ProgramSimulation { program: Arc::new(program.clone()), machine: Arc::clone(machine), costs }
    }

    /// The cost of a simulation without its messages, in units of one simulated message: every instruction is executed. The
    /// routes between all pairs of PEs, which [`Self::prepare`] follows once, are counted for each simulation, so this is
    /// an upper bound.
    pub fn effort(&self) -> u64 {
        let pes = self.machine.pes() as u64;
        // The mean route length is at most half the diameter.
        let hops = pes.saturating_mul(pes).saturating_mul(u64::from(self.machine.diameter())) / 2;
        let instructions = self.program.steps();
        (instructions / INSTRUCTIONS_PER_MESSAGE).saturating_add(hops / HOPS_PER_MESSAGE)
    }

    /// What all simulations of this program share; `None` if the machine cannot be simulated.
    pub fn prepare(&self) -> Option<PreparedSimulation<'_>> {
        let links = PAPER_LINKS.prepare(&self.machine).ok()?;
        Some(PreparedSimulation { simulation: self, links })
    }
}

/// A program on a machine whose routes are known.
pub struct PreparedSimulation<'a> {
    simulation: &'a ProgramSimulation,
    links: PreparedWormhole,
}

impl PreparedSimulation<'_> {
    /// The cycle in which the program ends with process `i` on PE `placement[i]`; `None` if the machine cannot be
    /// simulated.
    ///
    /// # Panics
    /// As [`super::execute()`].
    pub fn cycles(&self, placement: &[u32]) -> Option<u64> {
        let &ProgramSimulation { ref program, costs, .. } = self.simulation;
        let mut network = self.links.network().ok()?;
        Some(execute(program, &mut *network, placement, costs).cycles)
    }
}

impl fmt::Debug for ProgramSimulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramSimulation")
            .field("tasks", &self.program.tasks())
            .field("machine", &self.machine.spec())
            .field("costs", &self.costs)
            .finish()
    }
}
