//! The command `equipoise`: runs the sample programs, and maps task graphs to machines.
//!
//! One file per subcommand; `arguments` has the arguments that several of them share, and `input` parses them.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use equipoise_apps::{Failure, Program};

mod arguments;
mod completions;
mod constraints;
mod convert;
mod cost_table;
mod evaluate;
mod experts;
mod explain;
mod input;
mod inspect;
mod launch;
mod launcher;
mod launcher_files;
mod man;
mod map;
mod paths;
mod perfetto;
mod program;
mod progress;
mod replay;
mod report;
mod simulate;
mod topology;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ABOUT: &str =
    "Runs sample programs with dynamic load balancing, and maps task graphs and programs to machines";

#[derive(Parser)]
#[command(name = "equipoise", version, about = ABOUT, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// In the order of the help: what users run first, then what looks at files and machines, then setup.
#[derive(Subcommand)]
enum Command {
    /// Runs a sample program
    #[command(subcommand)]
    Run(Box<Program>),
    /// Starts a program again from its newest checkpoint when it dies
    Launch(launch::Args),
    /// Compares balancers on recorded load-balancing steps
    Replay(replay::Args),
    /// Maps the tasks of a graph, or the processes of a program, to the PEs of a machine
    Map(map::Args),
    /// Computes the costs of a mapping
    Evaluate(evaluate::Args),
    /// Compares a mapping with an earlier one: distances, heavy edges, busiest links
    Explain(explain::Args),
    /// Places replicas of the experts of a model, or judges a plan
    Experts(experts::Args),
    /// Checks a launcher's file, which places ranks, and converts it to other formats
    Launcher(launcher::Args),
    /// Simulates a task graph, a list of messages, a program or a recorded run on a network
    ///
    /// Edges of a .csv file are directed; in other task graphs each end of an edge sends half of the bytes. In a program a
    /// flit is 1 byte, and a cycle is that of the network, or 1 ns if the network has none.
    Simulate(simulate::Args),
    /// Shows the content of a database, a task graph, a program or a checkpoint
    ///
    /// Of a program it shows the processes, channels and communication phases, as in the model of the greedy mapper.
    Inspect(inspect::Args),
    /// Shows the distances and links of a machine
    Topology(topology::Args),
    /// Writes a database, a task graph or a program in another format; verifies checkpoints
    Convert(convert::Args),
    /// Prints the script that completes the command line in a shell
    Completions(completions::Args),
    /// Writes manual pages for the command `man`, one for each subcommand
    Man(man::Args),
    /// Reports which program makes figures
    #[command(hide = true, disable_help_flag = true)]
    Reproduce {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

impl Command {
    fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Command::Run(program) => return program.run(),
            Command::Launch(args) => return args.run(),
            Command::Map(args) => args.run(),
            Command::Evaluate(args) => args.run(),
            Command::Explain(args) => args.run(),
            Command::Experts(args) => args.run(),
            Command::Replay(args) => args.run(),
            Command::Inspect(args) => args.run(),
            Command::Convert(args) => args.run(),
            Command::Launcher(args) => args.run(),
            Command::Topology(args) => args.run(),
            Command::Simulate(args) => args.run(),
            Command::Completions(args) => args.run(Cli::command()),
            Command::Man(args) => args.run(Cli::command()),
            Command::Reproduce { words } => Err(figures_moved(&words)),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The error for `equipoise reproduce WORDS..`, which names the command that replaces it.
fn figures_moved(words: &[OsString]) -> Failure {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let words = if words.is_empty() { "NAME".into() } else { words.join(" ") };
    Failure::usage(format!(
        "`equipoise reproduce` was removed; run `cargo run --release -p equipoise-figures -- {words}`"
    ))
}

/// Starts the threads of parallel computations. They would start by themselves, but end the process if they cannot.
fn start_threads() -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new().build_global().map_err(|error| {
        Failure::input(format!(
            "cannot start the threads of parallel computations: {error}; allow more memory or processes, or set \
             RAYON_NUM_THREADS=1"
        ))
    })
}

fn main() -> ExitCode {
    let run = || {
        start_threads()?;
        let Cli { command } = equipoise::parse();
        equipoise::end_on_signals();
        command.run()
    };
    Failure::exit_code(run())
}
