//! `equipoise evaluate`: the costs of a mapping.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use equipoise_apps::{Failure, FormatArg, output};
use equipoise_model::Topology;
use equipoise_model::table::{count, percent};
use equipoise_strategies::cost::catalogue::{self, Amount, Entry, Placed, Shown, Subject};
use equipoise_strategies::cost::criterion::Cost;
use equipoise_strategies::cost::mcf_optimal::{Purchase, Purchases, Ways};
use serde::Serialize;

use crate::arguments::{MachineArg, MappingArgs, TaskArgs};
use crate::constraints::{self, ConstraintArgs};
use crate::program::{ModelArgs, Tasks};
use crate::{cost_table, input, progress};

/// The arguments of `equipoise evaluate`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    tasks: TaskArgs,

    #[command(flatten)]
    machine: MachineArg,

    #[command(flatten)]
    mapping: MappingArgs,

    /// Compute only these costs, separated by commas; `help` lists all [default: all but the expensive ones]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',', value_parser = input::cost())]
    cost: Vec<&'static Entry>,

    #[command(flatten)]
    output: FormatArg,

    #[command(flatten)]
    constraints: ConstraintArgs,

    #[command(flatten)]
    assumed: ModelArgs,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let machine = &*self.machine.topology?;
        let mut tasks = Tasks::of(&self.tasks, machine, self.assumed)?;
        let rules = constraints::add(self.constraints.read()?, &mut tasks.database, &tasks.name, machine)?;
        let database = &tasks.database;
        let mapping = self.mapping.placement(database, machine)?;
        if let Some(verdict) = rules.verdict(database, &mapping) {
            return Err(Failure::input(format!("the mapping {verdict}")));
        }
        let placed =
            progress::with_spinner("routing every message", || tasks.placed(database, machine, &mapping));
        let is_requested = |cost: &&Entry| match cost.shown {
            _ if !self.cost.is_empty() => self.cost.iter().any(|requested| requested.name == cost.name),
            Shown::Usually => cost.applies_to(Subject {
                phases: !database.constraints.phases.is_empty(),
                bandwidths: placed.busiest_link_seconds().is_some(),
                ..Subject::WHOLE
            }),
            Shown::OfPrograms => tasks.program.is_some(),
            Shown::OnRequest => false,
        };
        let costs: Vec<&Entry> = catalogue::ALL.iter().filter(is_requested).collect();
        let (amounts, purchases) = progress::with_spinner("computing the costs", || {
            let amounts = costs.iter().map(|cost| (cost.name, cost.of(&placed))).collect();
            (amounts, purchases(&costs, &placed))
        });
        let text = || {
            let (objects, edges) = (database.objects.len() as u64, database.edges.len() as u64);
            let (objects, edges) = (count(objects, "task"), count(edges, "edge"));
            let table = cost_table::table(costs.iter().copied(), tasks.unit, &[("", &placed)]);
            let links = links(&purchases, machine);
            format!("{} on {}: {objects}, {edges}\n\n{table}{links}", tasks.name, machine.spec())
        };
        if self.cost.is_empty() && tasks.program.is_none() {
            return output::show_table(self.output.format, text, &placed.metrics, &[&placed.metrics]);
        }
        for (name, reason) in placed.reasons() {
            equipoise::warn(&format!("{name} is unknown: {reason}"));
        }
        let links_to_buy = purchases.cables.iter().map(|cable| Cable::of(cable, machine)).collect();
        let saved_by_all = purchases.saved_by_all;
        let document = Document { amounts, links_to_buy, saved_by_all };
        output::show_table(self.output.format, text, &document, &[&document])
    }
}

/// The maximum number of cables in the text output.
const MAX_LISTED_CABLES: usize = 10;

/// The JSON document with the requested costs.
#[derive(Serialize)]
struct Document {
    #[serde(flatten)]
    amounts: BTreeMap<&'static str, Amount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links_to_buy: Vec<Cable>,
    /// The fraction of the time saved by 1 % more bandwidth on all links with a shadow price above 0.
    #[serde(rename = "saved_by_all_links", skip_serializing_if = "Option::is_none")]
    saved_by_all: Option<f64>,
}

/// The value of more bandwidth on a cable. A cable is all links between two vertices.
#[derive(Serialize)]
struct Cable {
    links: Vec<String>,
    /// Its share of the shadow price of all bandwidth: 1 % more bandwidth on this cable saves at most `share` percent
    /// of the time.
    share: f64,
    /// The fraction of the time saved by 1 % more bandwidth on this cable alone, if computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<f64>,
}

impl Cable {
    fn of(cable: &Purchase, machine: &dyn Topology) -> Self {
        let Purchase { ref links, share, saved } = *cable;
        Cable { links: links.iter().map(|&link| machine.link(link).name).collect(), share, saved }
    }

    /// Both ends: `0 <-> 1`, or `0 -> 1` if the cable has only one direction.
    fn name(&self) -> String {
        match &self.links[..] {
            [one] => one.clone(),
            links => links.first().map_or(String::new(), |name| name.replacen(" -> ", " <-> ", 1)),
        }
    }
}

/// The cables on which more bandwidth saves time. Their computation takes long, so the result is empty unless
/// `mcf:optimal` is requested. It is also empty if the best routes are unknown.
fn purchases(costs: &[&Entry], placed: &Placed) -> Purchases {
    if costs.iter().all(|cost| cost.criterion != Some(Cost::Optimal(Ways::Any))) {
        return Purchases::default();
    }
    let Placed { database, topology, pe_of, .. } = *placed;
    let found = placed.best_routes().map(|best| Purchases::of(database, topology, pe_of, best));
    found.and_then(|purchases| purchases).unwrap_or_default()
}

/// The cables on which more bandwidth saves time, as text; empty if there are none.
fn links(purchases: &Purchases, machine: &dyn Topology) -> String {
    let Purchases { cables, others, saved_by_all } = purchases;
    if cables.is_empty() {
        return String::new();
    }
    let mut text =
        String::from("\ncables on which more bandwidth saves time, by their share of the shadow price:\n");
    for purchase in cables.iter().take(MAX_LISTED_CABLES) {
        let cable = Cable::of(purchase, machine);
        let saves = match cable.saved {
            Some(saved) => format!("{:.2} %", 100.0 * saved),
            None => format!("at most {:.2} %", cable.share),
        };
        let (name, share) = (cable.name(), percent(cable.share));
        _ = writeln!(
            text,
            "  {name}: {share} of the shadow price; 1 % more bandwidth saves {saves} of the time"
        );
    }
    if cables.len() > MAX_LISTED_CABLES {
        let left = count((cables.len() - MAX_LISTED_CABLES) as u64, "more cable");
        _ = writeln!(text, "  and {left}, none with a larger share");
    }
    if *others > 0 {
        let others = count(*others as u64, "more cable");
        _ = writeln!(text, "  and {others}, with less than 0.05 % of the shadow price each");
    }
    let all = cables.len() + others;
    match saved_by_all {
        Some(saved) if all > 1 => {
            let saved = 100.0 * saved;
            _ = writeln!(text, "1 % more bandwidth on all {all} cables saves {saved:.2} % of the time");
        }
        Some(_) => (),
        None => text += "1 % more bandwidth on all these cables saves at most 1 % of the time\n",
    }
    text
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;
    use equipoise_strategies::workloads;

    use super::*;

    #[test]
    fn no_linear_program_is_solved_unless_its_cost_is_asked_for() {
        let machine = topology::parse("torus:4x4").expect("a torus");
        let database = workloads::load("random:n=16,degree=4,bytes=1000").expect("a graph").remap(16);
        let places = database.placement();
        let check = |costs: &[&Entry], is_solved: bool| {
            let placed = Placed::new(&database, &*machine, &places);
            let found = purchases(costs, &placed);
            let lines =
                cost_table::table(costs.iter().copied(), cost_table::LoadUnit::None, &[("", &placed)])
                    + &links(&found, &*machine);
            assert_eq!((placed.is_solved(), found.cables.is_empty()), (is_solved, !is_solved), "{lines}");
        };
        check(&catalogue::usual().collect::<Vec<_>>(), false);
        let cost = |name| catalogue::parse(name).expect(name);
        check(&[cost("mcf"), cost("qap:hops"), cost("mcf:cuts")], false);
        check(&[cost("mcf:optimal")], true);
    }
}
