//! What the command `equipoise` does with databases, graphs and machines, without running a program.
//!
//! One file per subcommand; what they share of reading and writing is in `input` and `output`.
//!
//! A process ends with exit code 2 when the remedy is another command line (a flag or a value that is not
//! understood, a file or folder that is not there, flags that do not fit each other), with 1 when the remedy is
//! elsewhere (a file whose content is broken, a strategy that has no answer, a full disk), and with 0
//! otherwise, also when the reader of its output went away.

use std::io;

use clap::error::ErrorKind;
use equipoise_strategies::assignment::MappingError;
use equipoise_strategies::database::DatabaseError;
use equipoise_strategies::graph::GraphError;
use equipoise_strategies::launcher::LauncherError;
use equipoise_strategies::program::ProgramError;
use equipoise_strategies::registry::ParamError;
use equipoise_strategies::replay::ReplayError;
use equipoise_strategies::topology::TopologyError;
use equipoise_strategies::trace::TraceError;

mod convert;
mod evaluate;
mod explain;
mod input;
mod inspect;
mod launcher;
mod map;
mod metrics;
mod model;
mod output;
mod program;
mod replay;
mod reproduce;
mod simulate;
mod topology;

/// The subcommands beside `run`.
#[derive(clap::Subcommand)]
pub enum Tool {
    /// Decides where the tasks of a graph go on a machine
    Map(map::Args),
    /// Says what a mapping costs
    Evaluate(evaluate::Args),
    /// Says what a mapping gains, and what it leaves: distances, heavy edges, hot links
    Explain(explain::Args),
    /// Compares what balancers would have done at recorded load-balancing steps
    Replay(replay::Args),
    /// Shows what is in a database or a task graph
    Inspect(inspect::Args),
    /// Writes a database or a task graph in another form
    Convert(convert::Args),
    /// Checks a file that tells a launcher where ranks go, and writes it in other formats
    Launcher(launcher::Args),
    /// Shows the distances and links of a machine
    Topology(topology::Args),
    /// Says how long a mapped task graph, a list of messages, or a recorded run takes on a network
    Simulate(simulate::Args),
    /// Makes a figure of a paper again, and says whether it is as it should be
    Reproduce(reproduce::Args),
}

/// Does what the command line asks for.
///
/// # Errors
/// If a file or a description cannot be followed; the sentence names the remedy. It is a [`clap::Error`]
/// when the remedy is another command line.
pub fn run(tool: Tool) -> anyhow::Result<()> {
    let done = match tool {
        Tool::Map(args) => args.run(),
        Tool::Evaluate(args) => args.run(),
        Tool::Explain(args) => args.run(),
        Tool::Replay(args) => args.run(),
        Tool::Inspect(args) => args.run(),
        Tool::Convert(args) => args.run(),
        Tool::Launcher(args) => args.run(),
        Tool::Topology(args) => args.run(),
        Tool::Simulate(args) => args.run(),
        Tool::Reproduce(args) => args.run(),
    };
    done.map_err(|error| {
        if error.is::<clap::Error>() || error.is::<io::Error>() {
            // Whether it matters that nobody reads stdout any more is for the caller to say.
            error
        } else if is_usage(&error) {
            usage(sentence(&error))
        } else {
            anyhow::Error::msg(sentence(&error))
        }
    })
}

/// An error and its causes as one sentence; some errors name their cause themselves.
fn sentence(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.contains(&cause) {
        true => said,
        false if said.is_empty() => cause,
        false => format!("{said}: {cause}"),
    })
}

/// An error whose remedy is another command line.
fn usage(sentence: String) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ValueValidation, sentence + "\n").into()
}

/// Whether the remedy of an error of the strategies is another command line.
fn is_usage(error: &anyhow::Error) -> bool {
    if let Some(error) = error.downcast_ref::<DatabaseError>() {
        return error.is_of_the_request();
    }
    if let Some(error) = error.downcast_ref::<GraphError>() {
        return error.is_of_the_request();
    }
    if let Some(error) = error.downcast_ref::<LauncherError>() {
        return error.is_of_the_request();
    }
    if let Some(error) = error.downcast_ref::<MappingError>() {
        return error.is_of_the_request();
    }
    if let Some(error) = error.downcast_ref::<ProgramError>() {
        return error.is_of_the_request();
    }
    if let Some(error) = error.downcast_ref::<ReplayError>() {
        return error.is_of_the_request();
    }
    if let Some(error) = error.downcast_ref::<TopologyError>() {
        return error.is_of_the_request();
    }
    if let Some(error) = error.downcast_ref::<TraceError>() {
        return error.is_of_the_request();
    }
    error.is::<ParamError>()
}
