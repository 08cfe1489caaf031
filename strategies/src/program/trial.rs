//! A program on a machine, for mappers that try what they found before they choose.

use std::fmt;
use std::sync::Arc;

use super::{Costs, Program, execute_on};
use crate::Topology;

/// How many instructions are executed, and how many hops of routes are walked, in the time that simulating a message takes,
/// about.
const INSTRUCTIONS_PER_MESSAGE: u64 = 32;
const HOPS_PER_MESSAGE: u64 = 1024;

/// What a [`Model`](super::Model) knows where its program can be executed: the program itself, and a machine.
#[derive(Clone)]
pub struct Trial {
    program: Arc<Program>,
    machine: Arc<dyn Topology>,
    costs: Costs,
}

impl Trial {
    /// A program that has passed [`Program::check`], on a machine with the links of the paper.
    pub fn new(program: &Program, machine: &Arc<dyn Topology>, costs: Costs) -> Self {
        Trial { program: Arc::new(program.clone()), machine: Arc::clone(machine), costs }
    }

    /// About how long [`Self::cycles`] takes beside simulating the messages of the program, as the number of messages that are
    /// simulated in that time: every instruction is executed, and the routes between all pairs of PEs are walked before.
    pub fn effort(&self) -> u64 {
        let pes = self.machine.pes() as u64;
        // Routes are half the longest on average or less.
        let walked = pes.saturating_mul(pes).saturating_mul(u64::from(self.machine.diameter())) / 2;
        let instructions = self.program.steps();
        (instructions / INSTRUCTIONS_PER_MESSAGE).saturating_add(walked / HOPS_PER_MESSAGE)
    }

    /// When the program is over with process `i` on PE `placement[i]`, in cycles; none where the machine cannot be
    /// simulated.
    ///
    /// # Panics
    /// As [`super::execute()`].
    pub fn cycles(&self, placement: &[u32]) -> Option<u64> {
        Some(execute_on(&self.program, &self.machine, placement, self.costs).ok()?.cycles)
    }
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trial")
            .field("tasks", &self.program.tasks())
            .field("machine", &self.machine.spec())
            .field("costs", &self.costs)
            .finish()
    }
}
