//! What `map`, `evaluate` and `simulate` take in place of a task graph: programs.

use std::fmt;
use std::sync::Arc;

use equipoise_strategies::cost::contention::{Estimate, Speeds};
use equipoise_strategies::cost::named::{Named, Placed};
use equipoise_strategies::program::{self, Costs, Model, OVERLAP, Program, Trial};
use equipoise_strategies::{Database, Topology};
use serde::Serialize;

use super::{input, output, usage};

/// The part by which an estimate may be off the simulated end without a warning.
const FAR_OFF: f64 = 0.2;

/// What sends and receives of a program cost.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct CostArgs {
    /// Of --program: cycles that a send keeps its process busy
    #[arg(long, value_name = "CYCLES", default_value_t = Costs::default().send_cycles, conflicts_with = "graph",
          value_parser = clap::value_parser!(u32).range(..=MAX_COST))]
    send_cycles: u32,

    /// Of --program: cycles that a receive keeps its process busy, once the message is there
    #[arg(long, value_name = "CYCLES", default_value_t = Costs::default().receive_cycles, conflicts_with = "graph",
          value_parser = clap::value_parser!(u32).range(..=MAX_COST))]
    receive_cycles: u32,
}

/// The most cycles of a send or a receive.
const MAX_COST: i64 = 1 << 20;

impl ModelArgs {
    /// Whether nothing else was asked for than what is taken if nothing is.
    pub(super) fn is_usual(self) -> bool {
        self.costs.costs() == Costs::default() && self.overlap == OVERLAP
    }

    /// The model of a program, of its run with nothing in its way.
    pub(super) fn model(self, program: &Program) -> anyhow::Result<Model> {
        let run = || Model::of(program, self.costs.costs(), self.overlap);
        Ok(output::watched("running it with nothing in its way", run)?)
    }
}

impl CostArgs {
    pub(super) fn costs(self) -> Costs {
        Costs { send_cycles: self.send_cycles, receive_cycles: self.receive_cycles }
    }
}

/// How a program is modelled.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct ModelArgs {
    #[command(flatten)]
    costs: CostArgs,

    /// Of --program: the part of their latency from which on messages share a communication phase
    #[arg(long, value_name = "PART", default_value_t = OVERLAP, conflicts_with = "graph", value_parser = overlap,
          allow_negative_numbers = true)]
    overlap: f64,
}

/// A part of the latency of messages.
fn overlap(text: &str) -> Result<f64, &'static str> {
    let part = text.parse().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or("expected a number from 0 to 1")
}

/// A task graph or a program, on the PEs of a machine.
pub(super) struct Tasks {
    /// What it is called, for a person.
    pub(super) name: String,
    /// What strategies see of it.
    pub(super) database: Database,
    /// The program and its model, if it is one.
    pub(super) program: Option<(Program, Model)>,
    costs: Costs,
}

impl Tasks {
    /// Those of `program`, or else of `graph`; the command line has one of them.
    pub(super) fn of(
        graph: Option<&str>,
        program: Option<&str>,
        step: Option<u64>,
        machine: &dyn Topology,
        assumed: ModelArgs,
    ) -> anyhow::Result<Tasks> {
        let costs = assumed.costs.costs();
        match (program, graph) {
            (Some(spec), _) => {
                let program = program::load(spec)?;
                let model = assumed.model(&program)?;
                // No machine has more PEs than fit.
                let database = model.database(machine.pes() as u32);
                Ok(Tasks { name: spec.into(), database, program: Some((program, model)), costs })
            }
            (None, Some(graph)) => {
                let database = input::graph_on(graph, step, machine)?;
                Ok(Tasks { name: graph.into(), database, program: None, costs })
            }
            (None, None) => Err(usage("give --graph or --program".into())),
        }
    }

    /// Whether a cost is shown of them though nobody asked for it: of programs, how long they take.
    pub(super) fn shows(&self, cost: &Named) -> bool {
        self.program.is_some() && cost.name == "contention"
    }

    /// These tasks, for strategies that may try them on the machine.
    pub(super) fn on(mut self, machine: &Arc<dyn Topology>) -> Tasks {
        let with_trial = |(program, model): (Program, Model)| {
            let trial = Trial::new(&program, machine, self.costs);
            (program, model.with_trial(trial))
        };
        self.program = self.program.map(with_trial);
        self
    }

    /// A placement of `database`, which are these tasks, with all that costs are taken from.
    pub(super) fn placed<'a>(
        &'a self,
        database: &'a Database,
        machine: &'a dyn Topology,
        pe_of: &'a [u32],
    ) -> Placed<'a> {
        let program = self.program.as_ref().map(|(_, model)| model);
        Placed::new(database, machine, pe_of).with_program(program)
    }

    /// When the program is over on a placement, if it is a program, and the machine can be simulated.
    pub(super) fn times(&self, machine: &Arc<dyn Topology>, pe_of: &[u32]) -> anyhow::Result<Option<Times>> {
        let Some((program, model)) = &self.program else { return Ok(None) };
        let estimated = Estimate::of(model, &**machine, &Speeds::default(), pe_of);
        let run = output::watched("simulating it flit by flit", || {
            program::execute_on(program, machine, pe_of, self.costs)
        });
        match run {
            Ok(run) => {
                let times =
                    Times { estimated_cycles: Model::cycles(estimated), completion_cycles: run.cycles };
                let end = run.cycles as f64;
                // A program that does nothing is over at once.
                let off = (times.estimated_cycles - end).abs() / end.max(1.0);
                if off > FAR_OFF {
                    output::warn(&format!(
                        "the estimate is {:.0} % off the simulated end: it knows little of links that are saturated, and \
                         nothing of hops and contention of messages that a process waits for; compare mappings by their \
                         simulated ends",
                        100.0 * off
                    ));
                }
                Ok(Some(times))
            }
            Err(refusal) => {
                output::warn(&format!("its end cannot be simulated: {refusal}"));
                Ok(None)
            }
        }
    }
}

/// When a program is over, in cycles.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Times {
    /// By the estimate F of the greedy mapper.
    pub(super) estimated_cycles: f64,
    /// By simulation of every message.
    pub(super) completion_cycles: u64,
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Times { estimated_cycles, completion_cycles } = self;
        writeln!(f, "over after {completion_cycles} cycles, estimated {estimated_cycles:.0}")
    }
}
