//! `equipoise completions`: the script that completes the command line in a shell.

use clap_complete::Shell;
use equipoise_apps::{Failure, output};

/// The arguments of `equipoise completions`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    ///
    /// bash loads the script with `source <(equipoise completions bash)`.
    #[arg(value_enum)]
    shell: Shell,
}

impl Args {
    /// Prints the script for the flags of `command`.
    pub(crate) fn run(self, mut command: clap::Command) -> Result<(), Failure> {
        let (name, mut script) = (command.get_name().to_owned(), Vec::new());
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        output::print(&String::from_utf8_lossy(&script))
    }
}
