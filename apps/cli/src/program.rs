//! The tasks that `map`, `evaluate` and `explain` place: those of a task graph, or the processes of a program.

use std::fmt;
use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::table::count;
use equipoise_model::{Database, Topology};
use equipoise_network::program::{self, Costs, Model, OVERLAP, Program, ProgramSimulation};
use equipoise_report::Between;
use equipoise_strategies::Strategy;
use equipoise_strategies::cost::catalogue::Placed;
use equipoise_strategies::cost::contention::{Estimate, Speeds};
use serde::Serialize;

use crate::arguments::{PROGRAM, TaskArgs};
use crate::cost_table::LoadUnit;
use crate::{input, progress};

/// The largest relative error of the estimated completion time without a warning.
const MAX_ESTIMATE_ERROR: f64 = 0.2;

/// The costs of the sends and receives of a program.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct CostArgs {
    /// CPU cycles per send
    #[arg(long, help_heading = PROGRAM, value_name = "CYCLES", default_value_t = Costs::default().send_cycles,
          conflicts_with = "graph", value_parser = clap::value_parser!(u32).range(..=MAX_COST), allow_negative_numbers = true)]
    send_cycles: u32,

    /// CPU cycles per receive, after the arrival of the message
    #[arg(long, help_heading = PROGRAM, value_name = "CYCLES", default_value_t = Costs::default().receive_cycles,
          conflicts_with = "graph", value_parser = clap::value_parser!(u32).range(..=MAX_COST), allow_negative_numbers = true)]
    receive_cycles: u32,
}

/// The maximum number of cycles of a send or a receive.
const MAX_COST: i64 = 1 << 20;

impl ModelArgs {
    /// Whether all values are the defaults.
    pub(crate) fn is_default(self) -> bool {
        self.costs.costs() == Costs::default() && self.overlap == OVERLAP
    }

    /// The model of a program, from its run on an ideal machine, without contention.
    pub(crate) fn model(self, program: &Program) -> Result<Model, Failure> {
        let run = || Model::of(program, self.costs.costs(), self.overlap);
        Ok(progress::with_spinner("running the program without contention", run)?)
    }
}

impl CostArgs {
    pub(crate) fn costs(self) -> Costs {
        Costs { send_cycles: self.send_cycles, receive_cycles: self.receive_cycles }
    }
}

/// The parameters of the model of a program.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    costs: CostArgs,

    /// Least overlap of messages in the same communication phase, as a fraction of their latency
    #[arg(long, help_heading = PROGRAM, value_name = "FRACTION", default_value_t = OVERLAP,
          conflicts_with = "graph", value_parser = overlap,
          allow_negative_numbers = true)]
    overlap: f64,
}

/// Parses a fraction of the latency of messages.
fn overlap(text: &str) -> Result<f64, &'static str> {
    let part = text.parse().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or("expected a number from 0 to 1")
}

/// A task graph or a program, on the PEs of a machine.
pub(crate) struct Tasks {
    /// The spec.
    pub(crate) name: String,
    /// The tasks as the input of strategies.
    pub(crate) database: Database,
    /// The unit of the loads in text.
    pub(crate) unit: LoadUnit,
    /// The program and its model, unless the tasks are a graph.
    pub(crate) program: Option<(Program, Model)>,
    costs: Costs,
}

impl Tasks {
    /// The tasks that the arguments name.
    pub(crate) fn of(args: &TaskArgs, machine: &dyn Topology, assumed: ModelArgs) -> Result<Tasks, Failure> {
        let costs = assumed.costs.costs();
        match (&args.program.program, &args.graph) {
            (Some(spec), _) => {
                let program = program::load(spec)?;
                let model = assumed.model(&program)?;
                // A machine has fewer than 2^32 PEs.
                let database = model.database(machine.pes() as u32);
                let (name, unit) = (spec.clone(), LoadUnit::Seconds);
                Ok(Tasks { name, database, unit, program: Some((program, model)), costs })
            }
            (None, Some(graph)) => {
                let database = input::graph_on(graph, args.step, machine)?;
                let unit = LoadUnit::of(graph, &database);
                Ok(Tasks { name: graph.clone(), database, unit, program: None, costs })
            }
            (None, None) => Err(Failure::usage("give --graph or --program")),
        }
    }

    /// These tasks with a simulation on the machine, so that strategies can simulate their mappings.
    pub(crate) fn on(mut self, machine: &Arc<dyn Topology>) -> Tasks {
        let with_simulation = |(program, model): (Program, Model)| {
            let simulation = ProgramSimulation::new(&program, machine, self.costs);
            (program, model.with_simulation(simulation))
        };
        self.program = self.program.map(with_simulation);
        self
    }

    /// A placement of these tasks (`database`) with all inputs of costs.
    pub(crate) fn placed<'a>(
        &'a self,
        database: &'a Database,
        machine: &'a dyn Topology,
        pe_of: &'a [u32],
    ) -> Placed<'a> {
        let program = self.program.as_ref().map(|(_, model)| model);
        Placed::new(database, machine, pe_of).with_program(program)
    }

    /// Placements between the one of `database`, which has these tasks, and `pe_of`, which may be the answer of a strategy with a seed. None
    /// if the tasks are not objects of a run, which are somewhere already.
    pub(crate) fn between(
        &self,
        database: &Database,
        machine: &dyn Topology,
        pe_of: &[u32],
        strategy: Option<(&dyn Strategy, u64)>,
    ) -> Result<Vec<Between>, Failure> {
        if self.program.is_some() || input::is_task_graph(&self.name) {
            return Ok(Vec::new());
        }
        Ok(Between::all(database, machine, pe_of, strategy)?)
    }

    /// The completion time of the program; none for a graph, or if the machine cannot be simulated.
    pub(crate) fn times(&self, machine: &Arc<dyn Topology>, pe_of: &[u32]) -> Result<Option<Times>, Failure> {
        let Some((program, model)) = &self.program else { return Ok(None) };
        let estimated = Estimate::of(model, &**machine, &Speeds::default(), pe_of);
        let run = progress::with_spinner("simulating the program", || {
            program::execute_on(program, machine, pe_of, self.costs)
        });
        match run {
            Ok(run) => {
                let times =
                    Times { estimated_cycles: Model::cycles(estimated), completion_cycles: run.cycles };
                let end = run.cycles as f64;
                // An empty program completes after 0 cycles.
                let error = (times.estimated_cycles - end).abs() / end.max(1.0);
                if error > MAX_ESTIMATE_ERROR {
                    equipoise::warn(&format!(
                        "the estimated completion time differs by {:.0} % from the simulated one: the estimate \
                         underestimates saturated links, and ignores hops and contention of messages that a process \
                         waits for; compare mappings by their simulated completion time",
                        100.0 * error
                    ));
                }
                Ok(Some(times))
            }
            Err(refusal) => {
                equipoise::warn(&format!("the completion time cannot be simulated: {refusal}"));
                Ok(None)
            }
        }
    }
}

/// The completion time of a program, in cycles.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Times {
    /// The estimate F of the greedy mapper.
    pub(crate) estimated_cycles: f64,
    /// The simulated time.
    pub(crate) completion_cycles: u64,
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Times { estimated_cycles, completion_cycles } = *self;
        let completion = count(completion_cycles, "cycle");
        writeln!(f, "completion time: {completion} (estimated {estimated_cycles:.0})")
    }
}
