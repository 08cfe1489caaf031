//! The command `equipoise`: runs the sample programs, and works on databases, graphs and machines.

use clap::{Parser, Subcommand};
use equipoise_apps::tools::{self, Tool};

#[derive(Parser)]
#[command(name = "equipoise", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Tool(Tool),
}

fn main() -> anyhow::Result<()> {
    match equipoise::parse::<Cli>().command {
        Command::Tool(tool) => tools::run(tool),
    }
}
