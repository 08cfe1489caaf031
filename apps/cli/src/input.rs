//! The inputs that several subcommands share: machines, task graphs, programs, mappings, balancers, networks.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use equipoise_apps::Failure;
use equipoise_model::assignment::MappingFile;
use equipoise_model::database::Dump;
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::files::{self, Unread};
use equipoise_model::params::ParamError;
use equipoise_model::quote::sentence;
use equipoise_model::topology::{self, TopologyError};
use equipoise_model::{Database, Topology, graph};
use equipoise_network::models::{self, Model};
use equipoise_network::program;
use equipoise_strategies::cost::catalogue;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::registry;
use equipoise_strategies::workloads;

/// A parser that prints a list of all possible values when the value is `help`.
#[derive(Clone)]
pub(crate) struct OrHelp<P> {
    pub(crate) parser: P,
    pub(crate) help: fn() -> String,
}

/// The parser of a task graph. The graph is loaded later, because a broken file is not a usage error.
pub(crate) fn graph() -> impl TypedValueParser<Value = String> {
    OrHelp { parser: StringValueParser::new(), help: workloads::help }
}

/// Whether the file name is that of a program (`.tcg`).
pub(crate) fn is_program(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tcg"))
}

/// The parser of a program. The program is loaded later, because a broken file is not a usage error.
pub(crate) fn program() -> impl TypedValueParser<Value = String> {
    OrHelp { parser: StringValueParser::new(), help: program::help }
}

/// Rejects usage errors at once. An error in the content of a file is kept and reported later, because the command line
/// is correct.
fn reject_usage_errors<T, E: Classified>(parsed: Result<T, E>) -> Result<Result<T, E>, E> {
    match parsed {
        Err(error) if error.fault() == Fault::Usage => Err(error),
        parsed => Ok(parsed),
    }
}

/// A machine, or the error in the content of a file that its spec names.
pub(crate) type Machine = Result<Arc<dyn Topology>, TopologyError>;

/// The parser of a machine.
pub(crate) fn machine() -> impl TypedValueParser<Value = Machine> {
    // The message of clap has the spec already.
    let reason = |error: TopologyError| sentence(&error.reason);
    let parser = move |spec: &str| reject_usage_errors(topology::parse(spec)).map_err(reason);
    OrHelp { parser, help: topology::help }
}

/// The parser of a cost.
pub(crate) fn cost() -> impl TypedValueParser<Value = &'static catalogue::Entry> {
    OrHelp { parser: catalogue::parse, help: catalogue::help }
}

/// A balancer, or the error in the content of a file that its spec names.
pub(crate) type Balancer = Result<Choice, ParamError>;

/// The parser of a balancer.
pub(crate) fn balancer() -> impl TypedValueParser<Value = Balancer> {
    let parser = |spec: &str| {
        reject_usage_errors(registry::parse(spec, &[])).map_err(|error| match error {
            // Only programs have strategies that are not in the registry.
            ParamError::Unknown { what: "strategy", nearest: None, .. } => {
                format!(
                    "{error}; a program replays its own strategies: run it with --lb-sim and --lb-sim-file"
                )
            }
            error => error.to_string(),
        })
    };
    OrHelp { parser, help: registry::help }
}

/// A network model and its spec.
#[derive(Clone)]
pub(crate) struct NetworkModel {
    pub(crate) spec: String,
    pub(crate) model: Arc<dyn Model>,
}

/// The parser of a network.
pub(crate) fn network() -> impl TypedValueParser<Value = NetworkModel> {
    let parser = |spec: &str| {
        models::parse(spec).map(|model| NetworkModel { spec: spec.to_string(), model: Arc::from(model) })
    };
    OrHelp { parser, help: models::help }
}

impl<P: TypedValueParser> TypedValueParser for OrHelp<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, clap::Error> {
        if value == "help" {
            let shown = Command::new("help").override_help((self.help)());
            shown.try_get_matches_from(["help", "--help"])?;
        }
        self.parser.parse_ref(command, arg, value)
    }
}

/// The task graph of a spec or file, on the PEs of `machine`.
///
/// A database recorded on the same number of PEs keeps its placement. Task i of a graph is on PE i, as launchers place
/// ranks, if there are enough PEs. Otherwise tasks are in blocks. `step` selects the step of a database; without it the
/// first step is used, with a warning if there are others.
pub(crate) fn graph_on(spec: &str, step: Option<u64>, machine: &dyn Topology) -> Result<Database, Failure> {
    let mut steps = steps(spec, step)?.steps;
    // A dump has at least one step.
    let database = steps.swap_remove(0);
    if !steps.is_empty() {
        let (all, first) = (steps.len() + 1, database.step);
        equipoise::warn(&format!(
            "`{spec}` holds {all} steps; using the first, step {first}; choose another with --step S"
        ));
    }
    let tasks = database.objects.len();
    // A machine has fewer than 2^32 PEs.
    let database = database.remap(machine.pes() as u32);
    if is_task_graph(spec) && tasks <= machine.pes() {
        return Ok(database.placed(&(0..tasks as u32).collect::<Vec<_>>()));
    }
    Ok(database)
}

/// Whether a spec that was loaded is a task graph, not a database.
pub(crate) fn is_task_graph(spec: &str) -> bool {
    graph::is_graph_file(Path::new(spec)) || is_generated(spec)
}

/// The steps of a database, or the only step of a task graph; with `step`, only that step. Prints a warning if the reader
/// ignored something.
pub(crate) fn steps(spec: &str, step: Option<u64>) -> Result<Dump, Failure> {
    if let Some(step) = step.filter(|_| is_task_graph(spec)) {
        return Err(Failure::usage(format!(
            "--step {step}: the task graph `{spec}` has no steps; leave out --step"
        )));
    }
    let dump = match step {
        None => workloads::load_steps(spec)?,
        Some(step) => Dump::read_steps(spec, Some(step), Some(1))?,
    };
    warn_ignored(spec, &dump.warnings);
    Ok(dump)
}

/// Prints what the reader of a file ignored.
pub(crate) fn warn_ignored(file: &str, warnings: &[String]) {
    warnings.iter().for_each(|warning| equipoise::warn(&format!("`{file}` {warning}")));
}

/// Whether a spec that was loaded names a generator, not a file.
pub(crate) fn is_generated(spec: &str) -> bool {
    spec.contains(':') && !Path::new(spec).exists()
}

/// The mapping in a file: the PE of each of `objects` objects on a machine with `pes` PEs.
pub(crate) fn places(path: &Path, objects: usize, pes: usize) -> Result<Vec<u32>, Failure> {
    Ok(MappingFile::read(path)?.of(objects, pes)?.to_vec())
}

/// The text of the file at `path`; errors call it `what`.
pub(crate) fn text(what: &str, path: &Path) -> Result<String, Failure> {
    files::text(path).map_err(|unread| {
        let sentence = match &unread {
            Unread::System(_) => format!("cannot read {what}: {unread}"),
            Unread::Content(_) => format!("{what}: {unread}"),
        };
        Failure::Of(unread.fault(), sentence)
    })
}

/// The balancer with `imbalance` in every strategy that has this parameter and does not set it.
pub(crate) fn allow_imbalance(choice: &Choice, imbalance: f64) -> Result<Choice, Failure> {
    let Some(spec) = registry::with_default(&choice.spec, "imbalance", imbalance) else {
        let spec = &choice.spec;
        return Err(Failure::usage(format!(
            "--imbalance {imbalance}: {spec} has no parameter `imbalance`; leave out --imbalance"
        )));
    };
    registry::parse(&spec, &[])
        .map_err(|error| Failure::from(error).about(format_args!("--imbalance {imbalance}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowed_imbalance_is_added_to_every_strategy_with_this_parameter() {
        for (spec, expected) in [
            ("RefineLB", "RefineLB:imbalance=0.1"),
            ("GreedyLB+RefineLB", "GreedyLB+RefineLB:imbalance=0.1"),
            ("RefineLB:imbalance=0.3+RefineLB", "RefineLB:imbalance=0.3+RefineLB:imbalance=0.1"),
            ("TopoLB:groups=greedy", "TopoLB:groups=greedy,imbalance=0.1"),
        ] {
            let choice = registry::parse(spec, &[]).expect(spec);
            assert_eq!(allow_imbalance(&choice, 0.1).expect(spec).spec, expected);
        }
    }

    #[test]
    fn refuses_an_allowed_imbalance_without_a_strategy_that_has_the_parameter() {
        let check = |spec, imbalance, expected: &str| {
            let choice = registry::parse(spec, &[]).expect(spec);
            let error = format!("{:#}", allow_imbalance(&choice, imbalance).expect_err(expected));
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        };
        check("GreedyLB", 0.1, "--imbalance 0.1: GreedyLB has no parameter `imbalance`");
        check("RefineLB", -1.0, "--imbalance -1: RefineLB:imbalance=-1 is not understood");
    }
}
