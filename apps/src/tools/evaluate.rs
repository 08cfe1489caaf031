//! `equipoise evaluate`: what a mapping costs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use equipoise_strategies::Topology;
use equipoise_strategies::cost::mcf_optimal::{Purchase, Purchases};
use equipoise_strategies::cost::named::{self, Amount, Named, Placed};
use equipoise_strategies::table::{count, percent};
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

    /// How many ranks run on a PE, in a launcher's file [default: as few as all ranks take]
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    slots: u32,

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
        let mapping = input::placement(&self.mapping, database, machine, self.slots)?;
        let placed = output::watched("following every message", || tasks.placed(database, machine, &mapping));
        let is_asked_for = |cost: &&Named| {
            self.cost.iter().any(|asked| asked.name == cost.name)
                || (self.cost.is_empty() && (!cost.on_request || tasks.shows(cost)))
        };
        let costs: Vec<&Named> = named::ALL.iter().filter(is_asked_for).collect();
        let (amounts, purchases) = output::watched("looking for what it costs", || {
            let amounts = costs.iter().map(|cost| (cost.name, (cost.of)(&placed))).collect();
            (amounts, purchases(&costs, &placed))
        });
        let text = || {
            let (objects, edges) = (database.objects.len() as u64, database.edges.len() as u64);
            let (objects, edges) = (count(objects, "task"), count(edges, "edge"));
            let table = metrics::table(costs.iter().copied(), &[("", &placed)]);
            let links = links(&purchases, machine);
            format!("{} on {}: {objects}, {edges}\n\n{table}{links}", tasks.name, machine.spec())
        };
        if self.cost.is_empty() && tasks.program.is_none() {
            return output::show(self.format, text, &placed.metrics);
        }
        for (name, reason) in placed.reasons() {
            output::warn(&format!("{name} is unknown: {reason}"));
        }
        let links_to_buy = purchases.cables.iter().map(|cable| Cable::of(cable, machine)).collect();
        let saved_by_all = purchases.saved_by_all;
        output::show(self.format, text, &Document { amounts, links_to_buy, saved_by_all })
    }
}

/// How many cables are shown to people.
const SHOWN: usize = 10;

/// The document of the costs that were asked for.
#[derive(Serialize)]
struct Document {
    #[serde(flatten)]
    amounts: BTreeMap<&'static str, Amount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links_to_buy: Vec<Cable>,
    /// The part of the time that a percent more of all links with a price saves.
    #[serde(rename = "saved_by_all_links", skip_serializing_if = "Option::is_none")]
    saved_by_all: Option<f64>,
}

/// What it is worth to buy more of a cable, which is all links between two vertices.
#[derive(Serialize)]
struct Cable {
    links: Vec<String>,
    /// Its part of the price: a percent more of it saves at most so much of a percent.
    share: f64,
    /// The part of the time that a percent more of it alone saves, where that was computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<f64>,
}

impl Cable {
    fn of(cable: &Purchase, machine: &dyn Topology) -> Self {
        let Purchase { ref links, share, saved } = *cable;
        Cable { links: links.iter().map(|&link| machine.link(link).name).collect(), share, saved }
    }

    /// Both its ends: `0 <-> 1`, or `0 -> 1` where there is one way only.
    fn name(&self) -> String {
        match &self.links[..] {
            [one] => one.clone(),
            links => links.first().map_or(String::new(), |name| name.replacen(" -> ", " <-> ", 1)),
        }
    }
}

/// What is known of the links to buy: nothing where the best routes are unknown, or nobody asked for them. Only this cost
/// says more than a number, and it takes long.
fn purchases(costs: &[&Named], placed: &Placed) -> Purchases {
    if costs.iter().all(|cost| cost.name != "mcf:optimal") {
        return Purchases::default();
    }
    let Placed { database, topology, pe_of, .. } = *placed;
    let found = placed.best_routes().map(|best| Purchases::of(database, topology, pe_of, best));
    found.and_then(|purchases| purchases).unwrap_or_default()
}

/// The links to buy, for people; empty where none is known.
fn links(purchases: &Purchases, machine: &dyn Topology) -> String {
    let Purchases { cables, others, saved_by_all } = purchases;
    if cables.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nlinks to buy, by their share of the price of bandwidth:\n");
    for purchase in cables.iter().take(SHOWN) {
        let cable = Cable::of(purchase, machine);
        // A percent more saves at most the share of a percent.
        let saves = match cable.saved {
            Some(saved) => format!("{:.2} %", 100.0 * saved),
            None => format!("at most {:.2} %", cable.share),
        };
        let (name, share) = (cable.name(), percent(cable.share));
        _ = writeln!(text, "  {name}: {share} of the price; 1 % more of it alone saves {saves}");
    }
    if cables.len() > SHOWN {
        let left = cables.len() - SHOWN;
        _ = writeln!(text, "  and {left} more, none with a larger share");
    }
    if *others > 0 {
        _ = writeln!(text, "  and {others} more with less than 0.05 % of the price");
    }
    let all = cables.len() + others;
    match saved_by_all {
        Some(saved) if all > 1 => {
            _ = writeln!(text, "1 % more of all {all} together saves {:.2} %", 100.0 * saved);
        }
        Some(_) => (),
        None => text += "1 % more of all of them together saves at most 1 %\n",
    }
    text
}

#[cfg(test)]
mod tests {
    use equipoise_strategies::{graph, topology};

    use super::*;

    #[test]
    fn no_linear_program_is_solved_unless_its_cost_is_asked_for() {
        let machine = topology::parse("torus:4x4").expect("a torus");
        let database = graph::load("random:n=16,degree=4,bytes=1000").expect("a graph").remap(16);
        let places = database.placement();
        let check = |costs: &[&Named], is_solved: bool| {
            let placed = Placed::new(&database, &*machine, &places);
            let found = purchases(costs, &placed);
            let lines = metrics::table(costs.iter().copied(), &[("", &placed)]) + &links(&found, &*machine);
            assert_eq!((placed.is_solved(), found.cables.is_empty()), (is_solved, !is_solved), "{lines}");
        };
        check(&named::usual().collect::<Vec<_>>(), false);
        let cost = |name| named::parse(name).expect(name);
        check(&[cost("mcf"), cost("qap:hops"), cost("mcf:cuts")], false);
        check(&[cost("mcf:optimal")], true);
    }
}
