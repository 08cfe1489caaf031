//! `equipoise man`: the pages for the command `man`.

use std::fs;
use std::path::PathBuf;

use equipoise_apps::{Failure, output};
use equipoise_model::fault::Classified as _;
use equipoise_model::table::count;

/// The arguments of `equipoise man`.
#[derive(clap::Args)]
pub struct Args {
    /// The folder for the pages; it is created if needed
    ///
    /// `man` finds the pages if the folder is named man1 and MANPATH holds the folder above it.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Args {
    /// Writes a page for `command` and one for each of its subcommands.
    pub(crate) fn run(self, command: clap::Command) -> Result<(), Failure> {
        let folder = self.folder.display();
        let failure = |error: std::io::Error| {
            let sentence = format!("cannot write man pages to `{folder}`: {error}; choose a writable folder");
            Failure::Of(error.fault(), sentence)
        };
        fs::create_dir_all(&self.folder).map_err(failure)?;
        let pages = pages(&command);
        clap_mangen::generate_to(command, &self.folder).map_err(failure)?;
        output::print(&format!("{} in {folder}\n", count(pages, "man page")))
    }
}

/// The number of pages: one for the command, and one for each subcommand that is not hidden.
fn pages(command: &clap::Command) -> u64 {
    let shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    1 + shown.map(pages).sum::<u64>()
}
