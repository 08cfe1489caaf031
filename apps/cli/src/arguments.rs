//! The arguments that several subcommands share: each is declared here once.

use std::path::PathBuf;

use clap::ArgGroup;
use equipoise_apps::Failure;
use equipoise_model::{Database, Topology, graph, launcher};

use crate::input;
use crate::paths::Files;

/// The heading of the arguments for programs. It is the last one.
pub(crate) const PROGRAM: &str = "Program options";

/// The heading of the arguments that tell how files are read.
pub(crate) const INPUT: &str = "Input options";

/// The tasks: a task graph, or the processes of a program. Exactly one argument of the group `what` must be given.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("what").required(true))]
pub(crate) struct TaskArgs {
    /// The task graph: a generator such as mesh:16x16, or a file; `help` lists all kinds
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::graph(), group = "what", long_help = graph_help())]
    pub(crate) graph: Option<String>,

    #[command(flatten)]
    pub(crate) program: ProgramArg,

    /// The step of a database with several steps [default: the first]
    #[arg(long, value_name = "S", help_heading = INPUT, conflicts_with = "program", allow_negative_numbers = true)]
    pub(crate) step: Option<u64>,
}

impl TaskArgs {
    /// The files of the tasks.
    pub(crate) fn files(&self) -> Files {
        Files::default().reads(self.graph.iter().chain(&self.program.program))
    }
}

/// The long help of `--graph`.
fn graph_help() -> String {
    let formats: Vec<String> =
        graph::formats().map(|(extension, kind)| format!(".{extension} ({kind})")).collect();
    let (last, others) = formats.split_last().expect("there are formats");
    format!(
        "The task graph: a generator such as mesh:16x16, or a file; `help` lists all kinds\n\nA file is a database, or has \
         one of the extensions {} and {last}.",
        others.join(", ")
    )
}

/// A program of communicating processes.
#[derive(clap::Args)]
pub(crate) struct ProgramArg {
    /// Instead of a task graph, a program: a generator such as ring:n=16, or a .tcg file; `help` lists all kinds
    ///
    /// The processes of a program compute, send and receive.
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::program(), group = "what")]
    pub(crate) program: Option<String>,
}

/// The machine.
#[derive(clap::Args)]
pub(crate) struct MachineArg {
    /// The machine, as in torus:4x4x4; `help` lists all kinds
    #[arg(long, value_name = "SPEC", value_parser = input::machine())]
    pub(crate) topology: input::Machine,
}

/// The seed.
#[derive(clap::Args)]
pub(crate) struct SeedArg {
    /// Seed of the random number generator
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_short_help = true,
        allow_negative_numbers = true
    )]
    pub(crate) seed: u64,
}

/// The slots of launchers' files that are written, or checked.
#[derive(clap::Args)]
pub(crate) struct SlotsArg {
    /// Maximum number of ranks per PE in launchers' files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) slots: u32,
}

/// A mapping that is judged.
#[derive(clap::Args)]
pub(crate) struct MappingArgs {
    /// The mapping: one PE per line, in task order
    ///
    /// FORMAT=FILE names a launcher's file instead; `equipoise launcher help` lists the formats.
    #[arg(long, value_name = "FILE")]
    pub(crate) mapping: PathBuf,

    /// Maximum number of ranks per PE in a launcher's file [default: as few as possible]
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, hide_short_help = true,
          help_heading = INPUT, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) slots: u32,
}

impl MappingArgs {
    /// The PE of every task of `database` on `machine`.
    pub(crate) fn placement(&self, database: &Database, machine: &dyn Topology) -> Result<Vec<u32>, Failure> {
        Ok(launcher::placement(&self.mapping, database, machine, self.slots)?)
    }
}
