//! The command `equipoise`: runs the sample programs, and works on databases, graphs and machines.

use clap::{Parser, Subcommand};
use equipoise_apps::Program;
use equipoise_apps::tools::{self, Tool};
use std::io;
use std::process::ExitCode;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ABOUT: &str =
    "Runs chare programs that balance themselves, and works on databases, graphs and machines";

#[derive(Parser)]
#[command(name = "equipoise", version, about = ABOUT, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a sample program
    #[command(subcommand)]
    Run(Box<Program>),
    #[command(flatten)]
    Tool(Box<Tool>),
}

fn main() -> ExitCode {
    let told = match equipoise::parse::<Cli>().command {
        Command::Run(program) => program.run().map_err(anyhow::Error::from),
        Command::Tool(tool) => tools::run(*tool).map(|()| ExitCode::SUCCESS),
    };
    let error = match told {
        Ok(code) => return code,
        Err(error) => error,
    };
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        usage.exit();
    }
    // Whoever reads stdout may stop early, as `head` does.
    let broken = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<io::Error>().is_some_and(broken) {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
