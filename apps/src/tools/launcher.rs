//! `equipoise launcher`: whether a launcher's file is whole, and the same placement in other formats.

use anyhow::bail;
use equipoise_strategies::launcher::{self, Slots};
use equipoise_strategies::table::{count, pairs};
use serde::Serialize;

use super::{input, output};
use crate::Format;

/// Which file is read, and what it becomes.
#[derive(clap::Args)]
pub struct Args {
    /// The file that places ranks; `help` lists all formats
    #[arg(value_name = "FORMAT=FILE", value_parser = input::launcher())]
    file: input::LauncherFile,

    /// The machine it is for, as in slurm:topology.conf*tree:2:8; `help` lists all kinds
    #[arg(long, value_name = "SPEC", value_parser = input::machine())]
    topology: input::Machine,

    /// How many ranks run on a PE
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    slots: u32,

    /// How many ranks it must place [default: as many as it does]
    #[arg(long, value_name = "N")]
    ranks: Option<usize>,

    /// Write the same placement in another format; mapping=FILE is one PE per line, in rank order
    #[arg(long, value_name = "FORMAT=FILE", value_parser = input::launcher())]
    to: Vec<input::LauncherFile>,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The one JSON document.
#[derive(Serialize)]
struct Document {
    format: &'static str,
    ranks: usize,
    nodes: usize,
    used_nodes: usize,
    /// Ranks of a node that has any.
    least_ranks_per_node: u64,
    most_ranks_per_node: u64,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let machine = &*self.topology?;
        let (slots, input::LauncherFile { format, path }) = (Slots::of(machine, self.slots), &self.file);
        let pe_of = launcher::read(path, format, &slots)?;
        if let Some(ranks) = self.ranks.filter(|&ranks| ranks != pe_of.len()) {
            bail!(
                "the launcher's file `{}` places {} ranks, and there are {ranks}",
                path.display(),
                pe_of.len()
            );
        }
        let written = output::LauncherTexts::of(&self.to, &slots, &pe_of)?.write(true)?;
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
        output::show(self.format, || document.text() + &written, &document)
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
            ("ranks", format!("{}, each with a slot of its own", self.ranks)),
            ("nodes", format!("{} of {nodes}", self.used_nodes)),
            ("ranks per node", per_node),
        ])
    }
}
