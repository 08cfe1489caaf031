//! `equipoise simulate`: how long the messages of a mapped task graph, a list, a program or a recorded run take on a
//! network.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use equipoise_strategies::network::exchange::{Exchange, Traffic};
use equipoise_strategies::network::{self, Network, batch};
use equipoise_strategies::program::{self, Delivery};
use equipoise_strategies::table::{count, pairs, seconds};
use equipoise_strategies::trace::{Trace, replay};
use equipoise_strategies::{Database, Topology, topology};
use serde::Serialize;

use super::input::Chosen;
use super::program::CostArgs;
use super::{input, output, usage};
use crate::Format;

/// What is simulated.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["graph", "messages", "events", "program"]))]
pub struct Args {
    /// The task graph whose tasks exchange messages, iteration after iteration: a generator such as
    /// mesh:16x16, or a file; `help` lists all kinds. A .csv says who sends what; any other graph sends half
    /// of an edge's bytes each way
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::graph())]
    graph: Option<String>,

    /// Messages that are all sent at once, instead of a task graph: lines src,dst,bytes[,messages] with PEs as
    /// ends
    #[arg(long, value_name = "FILE", conflicts_with_all = ["send_cycles", "receive_cycles"])]
    messages: Option<PathBuf>,

    /// What a run recorded with --record FILE: the same executions and messages, timed anew
    #[arg(long, value_name = "FILE", conflicts_with_all = ["send_cycles", "receive_cycles"])]
    events: Option<PathBuf>,

    /// A program of processes that compute, send and receive: a generator such as ring:n=16, or a file (.tcg);
    /// `help` lists all kinds. A flit is a byte, a cycle that of wormhole, or a nanosecond
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::program(), conflicts_with_all = ["step", "iterations", "compute"])]
    program: Option<String>,

    #[command(flatten)]
    costs: CostArgs,

    /// The machine, as in torus:4x4x4; `help` lists all kinds [default for --events: where they were
    /// recorded]
    #[arg(long, value_name = "SPEC", value_parser = input::machine(), required_unless_present = "events")]
    topology: Option<input::Machine>,

    /// The network on its links, as in flow:bandwidth=154e6; `help` lists all kinds [default for --events:
    /// where they were recorded]
    #[arg(long, value_name = "SPEC", value_parser = input::network(), required_unless_present = "events")]
    network: Option<Chosen>,

    /// The PE of every task: one per line, in task order [default: task i on PE i, where these are as many];
    /// for --events of every element that executed or was sent something, array by array [default: where it was
    /// recorded]
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    mapping: Option<PathBuf>,

    /// The step of a database with several [default: the first]
    #[arg(long, value_name = "S", conflicts_with_all = ["messages", "events"])]
    step: Option<u64>,

    /// How often every task computes and exchanges messages
    #[arg(long, value_name = "I", default_value_t = 1, conflicts_with_all = ["messages", "events"],
          value_parser = clap::value_parser!(u64).range(1..))]
    iterations: u64,

    /// Seconds a task computes in each iteration
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, conflicts_with_all = ["messages", "events"],
          value_parser = crate::command::seconds, allow_negative_numbers = true)]
    compute: f64,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The one JSON document. A list of messages, and a recorded run, is one iteration.
#[derive(Serialize)]
struct Document {
    seconds: f64,
    seconds_per_iteration: f64,
    /// Of task graphs: once iterations repeat themselves the rest is not simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated_iterations: Option<u64>,
    mean_message_latency_seconds: f64,
    /// The bytes that an iteration sends over the busiest link, over its bandwidth.
    max_link_seconds: f64,
    /// Of networks that count in cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<u64>,
}

impl Document {
    /// Of what happens once, in so many seconds.
    fn once(seconds: f64, mean_message_latency_seconds: f64, network: &dyn Network) -> Document {
        Document {
            seconds,
            seconds_per_iteration: seconds,
            simulated_iterations: None,
            mean_message_latency_seconds,
            max_link_seconds: network.wires().busiest().map_or(0.0, |busiest| busiest.1),
            cycles: network.cycle_seconds().map(|cycle| (seconds / cycle).round() as u64),
        }
    }
}

/// A machine and a network on its links.
struct Place {
    topology: Arc<dyn Topology>,
    spec: String,
    network: Box<dyn Network>,
}

impl Place {
    fn new(topology: Arc<dyn Topology>, chosen: &Chosen) -> anyhow::Result<Place> {
        let network = chosen.model.on(&topology);
        let network = network.map_err(|refusal| usage(format!("{}: {refusal}", chosen.spec)))?;
        Ok(Place { topology, spec: chosen.spec.clone(), network })
    }
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let given = || -> anyhow::Result<Place> {
            let (Some(topology), Some(network)) = (&self.topology, &self.network) else {
                return Err(usage("give --topology and --network".into()));
            };
            Place::new(topology.clone()?, network)
        };
        let (place, what, document) = match (&self.graph, &self.messages, &self.events, &self.program) {
            (Some(graph), ..) => self.exchange(graph, given()?)?,
            (None, Some(path), ..) => batch(path, given()?)?,
            (None, None, Some(path), _) => self.replay(path)?,
            (None, None, None, Some(program)) => self.execute(program, given()?)?,
            (None, None, None, None) => {
                return Err(usage("give --graph, --messages, --events or --program".into()));
            }
        };
        let text = || {
            let heading = format!("{what} on {}, {}\n\n", place.topology.spec(), place.spec);
            heading + &lines(&document, &*place.network, self.iterations)
        };
        output::show(self.format, text, &document)
    }

    /// The tasks of a graph exchange their messages; what that was, in words and numbers.
    fn exchange(&self, graph: &str, mut place: Place) -> anyhow::Result<(Place, String, Document)> {
        let database = input::graph_on(graph, self.step, &*place.topology)?;
        let placement = self.placement(graph, &database, &*place.topology)?;
        let is_directed = Path::new(graph).extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
        let traffic = if is_directed { Traffic::directed } else { Traffic::undirected }(&database);
        let exchange = Exchange {
            iterations: self.iterations,
            compute_seconds: self.compute,
            extrapolates: true,
            ..Exchange::default()
        };
        let iterations = count(self.iterations, "iteration");
        let what = format!("{iterations} of {graph}");
        let told = output::watched(&what, || exchange.run(&traffic, &placement, &mut *place.network));
        let tasks = count(traffic.tasks as u64, "task");
        let what = format!("{what}: {tasks}, {}", count(told.messages, "message"));
        let document = Document {
            seconds_per_iteration: told.seconds_per_iteration,
            simulated_iterations: Some(told.simulated_iterations),
            max_link_seconds: told.max_link_seconds,
            ..Document::once(told.seconds, told.mean_message_latency_seconds, &*place.network)
        };
        Ok((place, what, document))
    }

    /// The processes of a program run; what that was, in words and numbers.
    fn execute(&self, spec: &str, mut place: Place) -> anyhow::Result<(Place, String, Document)> {
        let program = program::load(spec)?;
        let (tasks, pes) = (program.tasks(), place.topology.pes());
        let placement = match &self.mapping {
            Some(path) => input::places(path, tasks, pes)?,
            None if tasks <= pes => {
                output::warn("there is no --mapping; process i runs on PE i");
                (0..tasks as u32).collect()
            }
            None => {
                return Err(usage(format!(
                    "{spec} has {tasks} processes and there are {pes} PEs; give --mapping FILE"
                )));
            }
        };
        let what = format!("{spec}: {}", count(program.steps(), "instruction"));
        let run = || program::execute(&program, &mut *place.network, &placement, self.costs.costs());
        let told = output::watched(&what, run);
        let cycle_seconds = place.network.cycle_seconds().unwrap_or(1e-9);
        let took = |it: &Delivery| (it.arrived_cycle - it.sent_cycle) as f64;
        // The sum of none would be -0.
        let latency = told.deliveries.iter().map(took).fold(0.0, |sum, one| sum + one)
            / told.deliveries.len().max(1) as f64;
        let seconds = told.cycles as f64 * cycle_seconds;
        let once = Document::once(seconds, latency * cycle_seconds, &*place.network);
        let document = Document { cycles: Some(told.cycles), ..once };
        let what = format!("{what}, {}", count(told.deliveries.len() as u64, "message"));
        Ok((place, what, document))
    }

    /// What was recorded happens again; what that was, in words and numbers.
    fn replay(&self, path: &Path) -> anyhow::Result<(Place, String, Document)> {
        let trace = Trace::read(path)?;
        let name = path.display();
        let recorded = |what: &str, spec: &str, error: String| {
            usage(format!("{name} was recorded on {spec}: {error}; give another with --{what}"))
        };
        let topology = match &self.topology {
            Some(topology) => topology.clone()?,
            None => topology::parse(&trace.topology)
                .map_err(|error| recorded("topology", &trace.topology, error.to_string()))?,
        };
        let mut place = match &self.network {
            Some(network) => Place::new(topology, network)?,
            None => {
                let model = network::parse(&trace.network)
                    .map_err(|error| recorded("network", &trace.network, error.to_string()))?;
                Place::new(topology, &Chosen { spec: trace.network.clone(), model: model.into() })?
            }
        };
        let pes = place.topology.pes();
        if pes < trace.pes as usize {
            return Err(usage(format!(
                "{name} was recorded on {} PEs and {} has {pes}; give a --topology with at least as many",
                trace.pes,
                place.topology.spec()
            )));
        }
        let placement = self.mapping.as_deref().map(|path| input::places(path, trace.objects.len(), pes));
        let placement = placement.transpose()?;
        let what = format!("{} of {name}", count(trace.executions.len() as u64, "execution"));
        let told = output::watched(&what, || replay(&trace, &mut *place.network, placement.as_deref()));
        let document = Document::once(told.seconds, told.mean_message_latency_seconds, &*place.network);
        let what = format!("{what} ({} on {}, {})", seconds(trace.seconds), trace.topology, trace.network);
        Ok((place, what, document))
    }

    /// The PE of every task.
    fn placement(
        &self,
        graph: &str,
        database: &Database,
        topology: &dyn Topology,
    ) -> anyhow::Result<Vec<u32>> {
        if let Some(path) = &self.mapping {
            return input::mapping(path, database);
        }
        let (tasks, pes) = (database.objects.len(), topology.pes());
        if tasks != pes {
            let (tasks, pes) = (count(tasks as u64, "task"), count(pes as u64, "PE"));
            return Err(usage(format!(
                "{graph} has {tasks} and {} {pes}; give --mapping FILE with the PE of every task, as \
                 `equipoise map` writes it with --output FILE",
                topology.spec()
            )));
        }
        output::warn("there is no --mapping; task i runs on PE i");
        Ok((0..pes as u32).collect())
    }
}

/// The messages of a list are sent at once; what that was, in words and numbers.
fn batch(path: &Path, mut place: Place) -> anyhow::Result<(Place, String, Document)> {
    let name = path.display();
    let text = input::text(&format!("the messages `{name}`"), path)?;
    let items = batch::read(&text, place.topology.pes());
    let items = items.map_err(|(line, reason)| anyhow!("{name}:{line}: {reason}"))?;
    let what = format!("{} of {name}", count(items.len() as u64, "message"));
    let told = output::watched(&what, || batch::run(&items, &mut *place.network));
    let document = Document::once(told.seconds, told.mean_latency_seconds(), &*place.network);
    Ok((place, what, document))
}

/// The numbers for a person.
fn lines(document: &Document, network: &dyn Network, iterations: u64) -> String {
    let mut lines = vec![("time", seconds(document.seconds))];
    let has_iterations = document.simulated_iterations.is_some();
    if has_iterations {
        lines.push(("per iteration", seconds(document.seconds_per_iteration)));
    }
    if let Some(simulated) = document.simulated_iterations.filter(|&simulated| simulated < iterations) {
        lines.push(("simulated", format!("{}; the others repeat them", count(simulated, "iteration"))));
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
