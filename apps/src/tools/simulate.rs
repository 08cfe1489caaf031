//! `equipoise simulate`: how long the messages of a mapped task graph, or of a list, take on a network.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use equipoise_strategies::network::exchange::{Exchange, Traffic};
use equipoise_strategies::network::{Network, batch};
use equipoise_strategies::table::{count, pairs, seconds};
use equipoise_strategies::{Database, Topology};
use serde::Serialize;

use super::input::Chosen;
use super::{input, output, usage};
use crate::Format;

/// What is simulated.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["graph", "messages"]))]
pub struct Args {
    /// The task graph whose tasks exchange messages, iteration after iteration: a generator such as
    /// mesh:16x16, or a file; `help` lists all kinds. A .csv says who sends what; any other graph sends half
    /// of an edge's bytes each way
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::graph())]
    graph: Option<String>,

    /// Messages that are all sent at once, instead of a task graph: lines src,dst,bytes with PEs as ends
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,

    /// The machine, as in torus:4x4x4; `help` lists all kinds
    #[arg(long, value_name = "SPEC", value_parser = input::machine())]
    topology: Arc<dyn Topology>,

    /// The network on its links, as in flow:bandwidth=154e6; `help` lists all kinds
    #[arg(long, value_name = "SPEC", value_parser = input::network())]
    network: Chosen,

    /// The PE of every task: one per line, in task order [default: task i on PE i, where these are as many]
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    mapping: Option<PathBuf>,

    /// The step of a database with several [default: the first]
    #[arg(long, value_name = "S", conflicts_with = "messages")]
    step: Option<u64>,

    /// How often every task computes and exchanges messages
    #[arg(long, value_name = "I", default_value_t = 1, conflicts_with = "messages",
          value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,

    /// Seconds a task computes in each iteration
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, conflicts_with = "messages",
          value_parser = input::seconds)]
    compute: f64,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The one JSON document. A list of messages is one iteration.
#[derive(Serialize)]
struct Document {
    seconds: f64,
    seconds_per_iteration: f64,
    mean_message_latency_seconds: f64,
    /// The bytes that an iteration sends over the busiest link, over its bandwidth.
    max_link_seconds: f64,
    /// Of networks that count in cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<u64>,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let network = self.network.model.on(&self.topology);
        let mut network = network.map_err(|refusal| usage(format!("{}: {refusal}", self.network.spec)))?;
        let (what, document) = match (&self.graph, &self.messages) {
            (Some(graph), _) => self.exchange(graph, &mut *network)?,
            (None, Some(path)) => self.batch(path, &mut *network)?,
            (None, None) => return Err(usage("give --graph or --messages".into())),
        };
        let text = || {
            let heading = format!("{what} on {}, {}\n\n", self.topology.spec(), self.network.spec);
            heading + &lines(&document, &*network, self.graph.is_some())
        };
        output::show(self.format, text, &document)
    }

    /// The tasks of a graph exchange their messages; what that was, in words and numbers.
    fn exchange(&self, graph: &str, network: &mut dyn Network) -> anyhow::Result<(String, Document)> {
        let database = input::graph_on(graph, self.step, &*self.topology)?;
        let placement = self.placement(graph, &database)?;
        let is_directed = Path::new(graph).extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
        let traffic = if is_directed { Traffic::directed } else { Traffic::undirected }(&database);
        let exchange =
            Exchange { iterations: self.iterations, compute_seconds: self.compute, ..Exchange::default() };
        let iterations = count(self.iterations, "iteration");
        let what = format!("{iterations} of {graph}");
        let told = output::watched(&what, || exchange.run(&traffic, &placement, network));
        let tasks = count(traffic.tasks as u64, "task");
        let what = format!("{what}: {tasks}, {}", count(told.messages, "message"));
        let document = Document {
            seconds: told.seconds,
            seconds_per_iteration: told.seconds_per_iteration,
            mean_message_latency_seconds: told.mean_message_latency_seconds,
            max_link_seconds: told.max_link_seconds,
            cycles: cycles(told.seconds, network),
        };
        Ok((what, document))
    }

    /// The PE of every task.
    fn placement(&self, graph: &str, database: &Database) -> anyhow::Result<Vec<u32>> {
        if let Some(path) = &self.mapping {
            return input::mapping(path, database);
        }
        let (tasks, pes) = (database.objects.len(), self.topology.pes());
        if tasks != pes {
            let (tasks, pes) = (count(tasks as u64, "task"), count(pes as u64, "PE"));
            return Err(usage(format!(
                "{graph} has {tasks} and {} {pes}; give --mapping FILE with the PE of every task, as \
                 `equipoise map` writes it with --output FILE",
                self.topology.spec()
            )));
        }
        output::warn("there is no --mapping; task i runs on PE i");
        Ok((0..pes as u32).collect())
    }

    /// The messages of a list are sent at once; what that was, in words and numbers.
    fn batch(&self, path: &Path, network: &mut dyn Network) -> anyhow::Result<(String, Document)> {
        let name = path.display();
        let list = format!("the messages `{name}`");
        let items = batch::read(&input::text(&list, path)?, self.topology.pes());
        let items = items.map_err(|(line, reason)| anyhow!("{list}: line {line}: {reason}"))?;
        let what = format!("{} of {name}", count(items.len() as u64, "message"));
        let told = output::watched(&what, || batch::run(&items, network));
        let document = Document {
            seconds: told.seconds,
            seconds_per_iteration: told.seconds,
            mean_message_latency_seconds: told.mean_latency_seconds(),
            max_link_seconds: network.wires().busiest().map_or(0.0, |busiest| busiest.1),
            cycles: cycles(told.seconds, network),
        };
        Ok((what, document))
    }
}

/// How many cycles these seconds are, of networks that count in cycles.
fn cycles(seconds: f64, network: &dyn Network) -> Option<u64> {
    network.cycle_seconds().map(|cycle| (seconds / cycle).round() as u64)
}

/// The numbers for a person.
fn lines(document: &Document, network: &dyn Network, has_iterations: bool) -> String {
    let mut lines = vec![("time", seconds(document.seconds))];
    if has_iterations {
        lines.push(("per iteration", seconds(document.seconds_per_iteration)));
    }
    lines.push(("message latency", format!("{} on average", seconds(document.mean_message_latency_seconds))));
    if let Some((link, _)) = network.wires().busiest() {
        let (name, busy) = (network.wires().machine().link(link).name, seconds(document.max_link_seconds));
        let each = if has_iterations { " per iteration" } else { "" };
        lines.push(("busiest link", format!("{name}, {busy}{each} at its bandwidth")));
    }
    if let Some(cycles) = document.cycles {
        lines.push(("cycles", cycles.to_string()));
    }
    pairs(&lines)
}
