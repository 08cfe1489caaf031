//! `equipoise launcher`: checks a launcher's file, and writes the same placement in other formats.

use equipoise_apps::{Failure, FormatArg, output};
use equipoise_model::launcher::{self, LauncherFile, Slots};
use equipoise_model::table::{count, pairs};
use serde::Serialize;

use crate::arguments::{MachineArg, SlotsArg};
use crate::launcher_files;
use crate::paths::Files;

/// The arguments of `equipoise launcher`.
#[derive(clap::Args)]
pub struct Args {
    /// The launcher's file, which places ranks; `help` lists all formats
    #[arg(value_name = "FORMAT=FILE", value_parser = launcher_files::parser())]
    file: LauncherFile,

    #[command(flatten)]
    machine: MachineArg,

    #[command(flatten)]
    slots: SlotsArg,

    /// The expected number of ranks; fail if the file places another number
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ranks: Option<usize>,

    /// Also write the placement to a file in this format; mapping=FILE has one PE per line, in rank order
    #[arg(long, value_name = "FORMAT=FILE", value_parser = launcher_files::parser())]
    to: Vec<LauncherFile>,

    #[command(flatten)]
    output: FormatArg,
}

/// The one JSON document.
#[derive(Serialize)]
struct Document {
    format: &'static str,
    ranks: usize,
    nodes: usize,
    used_nodes: usize,
    /// The least and the largest number of ranks of a node, among nodes with at least 1 rank.
    least_ranks_per_node: u64,
    most_ranks_per_node: u64,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        Files::default()
            .reads([&self.file.path])
            .reads(self.machine.topology.iter().map(|machine| machine.spec()))
            .writes(self.to.iter().map(|file| &file.path))
            .check()?;
        let machine = &*self.machine.topology?;
        let (slots, LauncherFile { format, path }) = (Slots::of(machine, self.slots.slots), &self.file);
        let pe_of = launcher::read(path, format, &slots)?;
        if let Some(ranks) = self.ranks.filter(|&ranks| ranks != pe_of.len()) {
            return Err(Failure::input(format!(
                "the launcher's file `{}` places {}, but --ranks is {ranks}; correct the file or --ranks",
                path.display(),
                count(pe_of.len() as u64, "rank")
            )));
        }
        let written = launcher_files::LauncherTexts::of(&self.to, &slots, &pe_of)?.write(true)?;
        let mut per_node = vec![0u64; slots.nodes()];
        pe_of.iter().for_each(|&pe| per_node[slots.node_of(pe as usize)] += 1);
        let used = || per_node.iter().copied().filter(|&ranks| ranks > 0);
        let document = Document {
            format: format.name,
            ranks: pe_of.len(),
            nodes: slots.nodes(),
            used_nodes: used().count(),
            least_ranks_per_node: used().min().unwrap_or(0),
            most_ranks_per_node: used().max().unwrap_or(0),
        };
        output::show_table(self.output.format, || document.text() + &written, &document, &[&document])
    }
}

impl Document {
    fn text(&self) -> String {
        let per_node = match (self.least_ranks_per_node, self.most_ranks_per_node) {
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        let nodes = count(self.nodes as u64, "node");
        pairs(&[
            ("format", self.format.to_string()),
            ("ranks", format!("{}, one per slot", self.ranks)),
            ("nodes", format!("{} of {nodes}", self.used_nodes)),
            ("ranks per node", per_node),
        ])
    }
}
