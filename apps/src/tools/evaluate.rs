//! `equipoise evaluate`: what a mapping costs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use equipoise_strategies::cost::named::{self, Amount, Named, Placed};
use equipoise_strategies::table::count;
use serde::Serialize;

use super::program::{ModelArgs, Tasks};
use super::{input, metrics, output};
use crate::Format;

/// What is evaluated.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["graph", "program"]))]
pub struct Args {
    /// The task graph: a generator such as mesh:16x16, or a file (.graph, .mtx, .csv, .grf, .mat, .prof, or a
    /// database); `help` lists all kinds
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::graph())]
    graph: Option<String>,

    /// Instead of a task graph, a program of processes that compute, send and receive: a generator such as
    /// ring:n=16, or a file in the language of the greedy mapper (.tcg); `help` lists all kinds
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::program(), conflicts_with = "step")]
    program: Option<String>,

    #[command(flatten)]
    assumed: ModelArgs,

    /// The machine, as in torus:4x4x4; `help` lists all kinds
    #[arg(long, value_name = "SPEC", value_parser = input::machine())]
    topology: input::Machine,

    /// The PE of every task: one per line, in task order; or FORMAT=FILE, a launcher's file (`launcher help`)
    #[arg(long, value_name = "FILE")]
    mapping: PathBuf,

    /// The step of a database with several [default: the first]
    #[arg(long, value_name = "S")]
    step: Option<u64>,

    /// Only these costs; `help` lists them [default: all but those on request]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', value_parser = input::cost())]
    cost: Vec<&'static Named>,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let machine = &*self.topology.clone()?;
        let tasks =
            Tasks::of(self.graph.as_deref(), self.program.as_deref(), self.step, machine, self.assumed)?;
        let database = &tasks.database;
        let mapping = input::placement(&self.mapping, database, machine)?;
        let placed = output::watched("following every message", || tasks.placed(database, machine, &mapping));
        let is_asked_for = |cost: &&Named| {
            self.cost.iter().any(|asked| asked.name == cost.name)
                || (self.cost.is_empty() && (!cost.on_request || tasks.shows(cost)))
        };
        let costs: Vec<&Named> = named::ALL.iter().filter(is_asked_for).collect();
        // Only one cost says more than a number.
        let is_optimal = costs.iter().any(|cost| cost.name == "mcf:optimal");
        let shares = if is_optimal { shares(&placed) } else { Vec::new() };
        if let Some(unsolved) = placed.best_routes().err().filter(|_| is_optimal) {
            output::warn(&format!("mcf:optimal is unknown: {unsolved}"));
        }
        let text = || {
            let (objects, edges) = (database.objects.len() as u64, database.edges.len() as u64);
            let (objects, edges) = (count(objects, "task"), count(edges, "edge"));
            let table = metrics::table(costs.iter().copied(), &[("", &placed)]);
            let links: String = shares.iter().take(SHOWN).map(Share::line).collect();
            let links = if links.is_empty() { links } else { format!("\nlinks to buy:\n{links}") };
            format!("{} on {}: {objects}, {edges}\n\n{table}{links}", tasks.name, machine.spec())
        };
        if self.cost.is_empty() && tasks.program.is_none() {
            return output::show(self.format, text, &placed.metrics);
        }
        let amounts = costs.iter().map(|cost| (cost.name, (cost.of)(&placed))).collect();
        output::show(self.format, text, &Document { amounts, links_to_buy: &shares })
    }
}

/// How many links are shown to people.
const SHOWN: usize = 10;

/// The document of the costs that were asked for.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    amounts: BTreeMap<&'static str, Amount>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    links_to_buy: &'a [Share],
}

/// What it is worth to buy more of a link: by how many percent the time of the best routes falls when its bandwidth
/// rises by one.
#[derive(Serialize)]
struct Share {
    link: String,
    share: f64,
}

impl Share {
    fn line(&self) -> String {
        format!("  {}: 1 % more of it saves {:.2} %\n", self.link, self.share)
    }
}

/// The links that are worth something, the best first.
fn shares(placed: &Placed) -> Vec<Share> {
    let all = placed.best_routes().map_or(&[][..], |best| &best.shares);
    let worth = all.iter().enumerate().filter(|(_, share)| **share >= 5e-4);
    let mut worth: Vec<Share> =
        worth.map(|(link, &share)| Share { link: placed.topology.link(link).name, share }).collect();
    worth.sort_by(|a, b| b.share.total_cmp(&a.share));
    worth
}
