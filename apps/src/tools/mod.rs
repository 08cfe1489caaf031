//! What the command `equipoise` does with databases, graphs and machines, without running a program.

/// The subcommands beside `run`.
#[derive(Debug, clap::Subcommand)]
pub enum Tool {}

/// Does what the command line asks for.
///
/// # Errors
/// If a file or a description cannot be followed; the sentence names the remedy.
pub fn run(tool: Tool) -> anyhow::Result<()> {
    match tool {}
}
