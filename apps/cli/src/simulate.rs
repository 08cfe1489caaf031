//! `equipoise simulate`: simulates the messages of a mapped task graph, a list, a program or a recorded run on a network.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use equipoise_apps::{Failure, FormatArg, output};
use equipoise_model::database::{Edge, End, Object, ObjectIndex, PeRecord};
use equipoise_model::launcher;
use equipoise_model::table::{count, pairs, seconds};
use equipoise_model::{Database, Topology, topology};
use equipoise_network::models::batch::{self, Item};
use equipoise_network::models::exchange::{Exchange, Traffic};
use equipoise_network::models::{self, Network};
use equipoise_network::program::{self, Delivery, Model, OVERLAP};
use equipoise_network::trace::{self, Trace};
use equipoise_report::data::VERSION;
use equipoise_report::perfetto::Run;
use equipoise_report::{Builder, ReportData};
use equipoise_strategies::cost::Metrics;
use serde::Serialize;

use crate::arguments::TaskArgs;
use crate::cost_table::LoadUnit;
use crate::input::NetworkModel;
use crate::program::CostArgs;
use crate::report::ReportArg;
use crate::{input, perfetto, progress};

/// The arguments of `equipoise simulate`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    tasks: TaskArgs,

    /// Instead of a task graph, a list of messages that are all sent at time 0
    ///
    /// The file has lines src,dst,bytes[,messages], where src and dst are PEs.
    #[arg(long, value_name = "FILE", group = "what", conflicts_with_all = ["send_cycles", "receive_cycles", "step"])]
    messages: Option<PathBuf>,

    /// Instead of a task graph, a run recorded with --record FILE
    ///
    /// The simulation has the same executions and messages, at new times.
    #[arg(long, value_name = "FILE", group = "what", conflicts_with_all = ["send_cycles", "receive_cycles", "step"])]
    events: Option<PathBuf>,

    /// The machine, as in torus:4x4x4; `help` lists all kinds [default for --events: the recorded machine]
    #[arg(long, value_name = "SPEC", value_parser = input::machine(), required_unless_present = "events")]
    topology: Option<input::Machine>,

    /// The network model, as in flow:bandwidth=154e6; `help` lists all kinds [default for --events: the recorded
    /// network]
    #[arg(long, value_name = "SPEC", value_parser = input::network(), required_unless_present = "events")]
    network: Option<NetworkModel>,

    /// The mapping: one PE per line, in task order [default: task i on PE i]
    ///
    /// FORMAT=FILE names a launcher's file instead; `equipoise launcher help` lists the formats.
    ///
    /// For --events: the PE of every element that executed or received a message, array by array [default: the recorded
    /// placement].
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    mapping: Option<PathBuf>,

    /// Write a timeline of the simulated run for Perfetto (ui.perfetto.dev), as in run.pftrace; needs --events
    #[arg(long, value_name = "FILE", requires = "events", conflicts_with_all = ["graph", "messages", "program"])]
    perfetto: Option<PathBuf>,

    #[command(flatten)]
    output: FormatArg,

    #[command(flatten)]
    report: ReportArg,

    /// Number of iterations, in each of which every task computes and exchanges messages
    #[arg(long, value_name = "I", default_value_t = 1, conflicts_with_all = ["messages", "events", "program"],
          help_heading = "Task graph options", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    iterations: u64,

    /// Computation time of a task per iteration, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, conflicts_with_all = ["messages", "events", "program"],
          help_heading = "Task graph options", value_parser = equipoise_apps::seconds, allow_negative_numbers = true)]
    compute: f64,

    #[command(flatten)]
    costs: CostArgs,
}

/// The JSON document. A list of messages, a program and a recorded run are one iteration each.
#[derive(Serialize)]
struct Document {
    seconds: f64,
    seconds_per_iteration: f64,
    /// Only for task graphs: the number of iterations that were simulated before iterations began to repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated_iterations: Option<u64>,
    mean_message_latency_seconds: f64,
    /// The bytes that an iteration sends over the busiest link, divided by the link's bandwidth.
    max_link_seconds: f64,
    /// Only for networks that count time in cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<u64>,
    /// The placement or the timeline, for reports; no part of the document.
    #[serde(skip)]
    report: ReportData,
}

impl Document {
    /// The document of one iteration.
    fn once(seconds: f64, mean_message_latency_seconds: f64, network: &dyn Network) -> Document {
        Document {
            seconds,
            seconds_per_iteration: seconds,
            simulated_iterations: None,
            mean_message_latency_seconds,
            max_link_seconds: network.wires().busiest().map_or(0.0, |busiest| busiest.1),
            cycles: network.cycle_seconds().map(|cycle| (seconds / cycle).round() as u64),
            report: ReportData::default(),
        }
    }
}

/// A machine and a network on its links.
struct Platform {
    topology: Arc<dyn Topology>,
    spec: String,
    network: Box<dyn Network>,
    /// The bandwidth of all links, if the network gives them another one than the machine.
    bandwidth: Option<f64>,
}

impl Platform {
    fn new(topology: Arc<dyn Topology>, chosen: &NetworkModel) -> Result<Platform, Failure> {
        let network = chosen.model.on(&topology);
        let network = network.map_err(|refusal| Failure::usage(format!("{}: {refusal}", chosen.spec)))?;
        let bandwidth = chosen.model.limits().and_then(|limits| limits.bandwidth);
        Ok(Platform { topology, spec: chosen.spec.clone(), network, bandwidth })
    }
}

/// The trace as it was simulated: other times, and other PEs of objects that were placed.
fn simulated(mut trace: Trace, timing: &trace::Timing, placement: Option<&[u32]>) -> Trace {
    trace.seconds = timing.seconds;
    // They are of the recorded run.
    trace.details = trace::Details::default();
    for (execution, &begin_seconds) in trace.executions.iter_mut().zip(&timing.begin_seconds) {
        execution.begin_seconds = begin_seconds;
        let object = execution.object.checked_sub(trace.pes);
        if let Some((placement, object)) = placement.zip(object) {
            execution.pe = placement[object as usize];
        }
    }
    trace
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.tasks
            .files()
            .reads(self.messages.iter().chain(&self.events).chain(&self.mapping))
            .reads(self.topology.iter().flatten().map(|machine| machine.spec()))
            .writes(&self.perfetto)
            .writes(self.report.path())
            .check()?;
        self.report.check()?;
        let given = || -> Result<Platform, Failure> {
            let (Some(topology), Some(network)) = (&self.topology, &self.network) else {
                return Err(Failure::usage("give --topology and --network"));
            };
            Platform::new(topology.clone()?, network)
        };
        let (platform, what, mut document) =
            match (&self.tasks.graph, &self.messages, &self.events, &self.tasks.program.program) {
                (Some(graph), ..) => self.exchange(graph, given()?)?,
                (None, Some(path), ..) => self.batch(path, given()?)?,
                (None, None, Some(path), _) => self.trace(path)?,
                (None, None, None, Some(program)) => self.execute(program, given()?)?,
                (None, None, None, None) => {
                    return Err(Failure::usage("give --graph, --messages, --events or --program"));
                }
            };
        let mut shown = std::mem::take(&mut document.report);
        self.report.write(|| {
            shown.version = VERSION;
            shown.title = format!("{what} on {}", platform.topology.spec());
            shown.topology = platform.topology.spec();
            // What is said of a trace follows.
            shown.sentences.splice(0..0, sentences(&document, &*platform.network, &platform.spec));
            Ok(shown)
        })?;
        let text = || {
            let heading = format!("{what} on {}, {}\n\n", platform.topology.spec(), platform.spec);
            heading + &lines(&document, &*platform.network, self.iterations)
        };
        output::show_table(self.output.format, text, &document, &[&document])
    }

    /// Simulates the messages of a task graph; returns the platform, a description and the results.
    fn exchange(&self, graph: &str, mut platform: Platform) -> Result<(Platform, String, Document), Failure> {
        let database = input::graph_on(graph, self.tasks.step, &*platform.topology)?;
        let placement = self.placement(graph, &database, &*platform.topology)?;
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
        let result =
            progress::with_spinner(&what, || exchange.run(&traffic, &placement, &mut *platform.network));
        let tasks = count(traffic.tasks as u64, "task");
        let what = format!("{what}: {tasks}, {}", count(result.messages, "message"));
        let weights = LoadUnit::of(graph, &database) == LoadUnit::None;
        let report = self.placed("mapping", &platform, || Ok(database.placed(&placement)))?;
        let report = ReportData { weights, ..report };
        let document = Document {
            report,
            seconds_per_iteration: result.seconds_per_iteration,
            simulated_iterations: Some(result.simulated_iterations),
            max_link_seconds: result.max_link_seconds,
            ..Document::once(result.seconds, result.mean_message_latency_seconds, &*platform.network)
        };
        Ok((platform, what, document))
    }

    /// Simulates a program; returns the platform, a description and the results.
    fn execute(&self, spec: &str, mut platform: Platform) -> Result<(Platform, String, Document), Failure> {
        let program = program::load(spec)?;
        let (tasks, pes) = (program.tasks(), platform.topology.pes());
        let placement = match &self.mapping {
            Some(path) => input::places(path, tasks, pes)?,
            None if tasks <= pes => {
                equipoise::warn("without --mapping, process i runs on PE i");
                (0..tasks as u32).collect()
            }
            None => {
                return Err(Failure::usage(format!(
                    "{spec} has {} and {} has {}; give the PE of every process with --mapping FILE",
                    count(tasks as u64, "process"),
                    platform.topology.spec(),
                    count(pes as u64, "PE")
                )));
            }
        };
        let what = format!("{spec}: {}", count(program.steps(), "instruction"));
        let run = || program::execute(&program, &mut *platform.network, &placement, self.costs.costs());
        let result = progress::with_spinner(&what, run);
        let cycle_seconds = platform.network.cycle_seconds().unwrap_or(1e-9);
        let took = |it: &Delivery| (it.arrived_cycle - it.sent_cycle) as f64;
        // `sum` of an empty iterator is -0.
        let latency = result.deliveries.iter().map(took).fold(0.0, |sum, one| sum + one)
            / result.deliveries.len().max(1) as f64;
        let seconds = result.cycles as f64 * cycle_seconds;
        let once = Document::once(seconds, latency * cycle_seconds, &*platform.network);
        let report = self.placed("mapping", &platform, || {
            let model = Model::of(&program, self.costs.costs(), OVERLAP)?;
            // A machine has fewer than 2^32 PEs.
            Ok(model.database(pes as u32).placed(&placement))
        })?;
        let document = Document { cycles: Some(result.cycles), report, ..once };
        let what = format!("{what}, {}", count(result.deliveries.len() as u64, "message"));
        Ok((platform, what, document))
    }

    /// Simulates a recorded run; returns the platform, a description and the results.
    fn trace(&self, path: &Path) -> Result<(Platform, String, Document), Failure> {
        let trace = Trace::read(path)?;
        let name = path.display();
        input::warn_ignored(&name.to_string(), &trace.warnings);
        let recorded = |what: &str, spec: &str, error: String| {
            Failure::usage(format!(
                "{name} was recorded on {spec}: {error}; choose another {what} with --{what}"
            ))
        };
        let topology = match &self.topology {
            Some(topology) => topology.clone()?,
            None => topology::parse(&trace.topology)
                .map_err(|error| recorded("topology", &trace.topology, error.to_string()))?,
        };
        let mut platform = match &self.network {
            Some(network) => Platform::new(topology, network)?,
            None if trace.is_of_real_run() => {
                return Err(Failure::usage(format!(
                    "{name} was recorded in real time, without a network; choose one with --network, as in --network packet"
                )));
            }
            None => {
                let model = models::parse(&trace.network)
                    .map_err(|error| recorded("network", &trace.network, error.to_string()))?;
                Platform::new(topology, &NetworkModel { spec: trace.network.clone(), model: model.into() })?
            }
        };
        let pes = platform.topology.pes();
        if pes < trace.pes as usize {
            return Err(Failure::usage(format!(
                "{name} was recorded on {} and {} has {pes}; give a --topology with at least as many PEs",
                count(u64::from(trace.pes), "PE"),
                platform.topology.spec()
            )));
        }
        let placement = self.mapping.as_deref().map(|path| input::places(path, trace.objects.len(), pes));
        let placement = placement.transpose()?;
        let what = format!("{} of {name}", count(trace.executions.len() as u64, "execution"));
        let result = progress::with_spinner(&what, || {
            trace::simulate(&trace, &mut *platform.network, placement.as_deref())
        });
        if let Some(path) = &self.perfetto {
            let simulated = Some((&result, placement.as_deref()));
            let (machine, bandwidth) = (Some(&*platform.topology), platform.bandwidth);
            perfetto::write(path, &Run { trace: &trace, simulated, machine, bandwidth })?;
        }
        let once = Document::once(result.seconds, result.mean_message_latency_seconds, &*platform.network);
        let report = match &self.report.report {
            Some(_) => self.traced(&trace, &result, placement.as_deref(), &platform)?,
            None => ReportData::default(),
        };
        let document = Document { report, ..once };
        let what = format!("{what} ({} on {}, {})", seconds(trace.seconds), trace.topology, trace.network);
        Ok((platform, what, document))
    }

    /// The report of a simulated trace: its messages between PEs, and its timelines.
    fn traced(
        &self,
        trace: &Trace,
        timing: &trace::Timing,
        placement: Option<&[u32]>,
        platform: &Platform,
    ) -> Result<ReportData, Failure> {
        let simulated = simulated(trace.clone(), timing, placement);
        let messages = messages(&simulated, placement);
        let report = self.placed("messages", platform, || Ok(senders_and_receivers(&messages, platform)))?;
        let details = &trace.details;
        let is_partial = details.dropped_events > 0;
        let begin = is_partial.then(|| {
            format!("The recording begins {} after the begin of the run.", seconds(details.begins_seconds))
        });
        Ok(ReportData {
            sentences: trace
                .warnings
                .iter()
                .map(|warning| format!("The trace {warning}."))
                .chain(begin)
                .collect(),
            timeline: equipoise_report::timeline::timeline(&simulated),
            recorded_timeline: equipoise_report::timeline::timeline(trace),
            timeline_steps: equipoise_report::timeline::steps(trace),
            ..report
        })
    }

    /// Simulates a list of messages that are sent at once; returns the platform, a description and the results.
    fn batch(&self, path: &Path, mut platform: Platform) -> Result<(Platform, String, Document), Failure> {
        let name = path.display();
        let text = input::text(&format!("the messages `{name}`"), path)?;
        let items = batch::read(&text, platform.topology.pes());
        let items = items.map_err(|(line, reason)| Failure::input(format!("{name}:{line}: {reason}")))?;
        let what = format!("{} of {name}", count(items.len() as u64, "message"));
        let result = progress::with_spinner(&what, || batch::run(&items, &mut *platform.network));
        let report = self.placed("messages", &platform, || Ok(senders_and_receivers(&items, &platform)))?;
        let once = Document::once(result.seconds, result.mean_latency_seconds(), &*platform.network);
        Ok((platform, what, Document { report, ..once }))
    }

    /// The report of the placement of a database, if a report was asked for; `database` makes the database.
    fn placed(
        &self,
        name: &str,
        platform: &Platform,
        database: impl FnOnce() -> Result<Database, Failure>,
    ) -> Result<ReportData, Failure> {
        if self.report.report.is_none() {
            return Ok(ReportData::default());
        }
        let (database, topology) = (database()?, &*platform.topology);
        let placement = database.placement();
        let metrics = Metrics::full(&database, topology, &placement);
        let mut data = Builder::new(String::new(), &database, topology, placement, metrics).data;
        data.placements.iter_mut().for_each(|placement| placement.name = name.into());
        Ok(data)
    }

    /// The PE of every task.
    fn placement(
        &self,
        graph: &str,
        database: &Database,
        topology: &dyn Topology,
    ) -> Result<Vec<u32>, Failure> {
        if let Some(path) = &self.mapping {
            return Ok(launcher::placement(path, database, topology, 1)?);
        }
        let (tasks, pes) = (database.objects.len(), topology.pes());
        if tasks != pes {
            let (tasks, pes) = (count(tasks as u64, "task"), count(pes as u64, "PE"));
            return Err(Failure::usage(format!(
                "{graph} has {tasks} and {} has {pes}; give the PE of every task with --mapping FILE (`equipoise map \
                 --output FILE` writes it)",
                topology.spec()
            )));
        }
        equipoise::warn("without --mapping, task i runs on PE i");
        Ok((0..pes as u32).collect())
    }
}

/// The messages of a simulated trace, from PE to PE.
fn messages(trace: &Trace, placement: Option<&[u32]>) -> Vec<Item> {
    let receiver = |message: &trace::TraceMessage| match (placement, message.to.checked_sub(trace.pes)) {
        (Some(placement), Some(object)) => placement[object as usize],
        _ => message.pe,
    };
    let sends = trace.executions.iter().flat_map(|execution| {
        execution.steps.iter().filter_map(|step| match *step {
            trace::Step::Send(message) => Some((execution.pe, &trace.messages[message as usize])),
            trace::Step::Work(_) => None,
        })
    });
    sends.map(|(from, message)| Item { from, to: receiver(message), bytes: message.bytes }).collect()
}

/// The PEs of a list of messages as objects that send the messages.
fn senders_and_receivers(items: &[Item], platform: &Platform) -> Database {
    let mut numbers: BTreeMap<u32, u32> =
        items.iter().flat_map(|item| [(item.from, 0), (item.to, 0)]).collect();
    for (number, at) in numbers.values_mut().zip(0..) {
        *number = at;
    }
    let object = |&pe: &u32| Object {
        id: u64::from(pe),
        array: 0,
        index: ObjectIndex::new(&[pe as i32]),
        load_seconds: 0.0,
        bytes: None,
        pe,
        migratable: false,
    };
    let edge = |item: &Item| Edge {
        from: End::Object(numbers[&item.from]),
        to: End::Object(numbers[&item.to]),
        messages: 1,
        bytes: item.bytes,
    };
    Database {
        arrays: vec!["PE".into()],
        pes: vec![PeRecord::default(); platform.topology.pes()],
        objects: numbers.keys().map(object).collect(),
        communication_recorded: true,
        edges: items.iter().map(edge).collect(),
        ..Database::default()
    }
}

/// The results as sentences of a report.
fn sentences(document: &Document, network: &dyn Network, spec: &str) -> Vec<String> {
    let time = seconds(document.seconds);
    let latency = seconds(document.mean_message_latency_seconds);
    let mut sentences =
        vec![format!("The simulated time on {spec} is {time}; a message takes {latency} on average.")];
    if let Some((link, _)) = network.wires().busiest() {
        let (name, busy) = (network.wires().machine().link(link).name, seconds(document.max_link_seconds));
        sentences
            .push(format!("The busiest link of the simulation, {name}, needs {busy} at full bandwidth."));
    }
    sentences
}

/// The results as text.
fn lines(document: &Document, network: &dyn Network, iterations: u64) -> String {
    let mut lines = vec![("time", seconds(document.seconds))];
    let has_iterations = document.simulated_iterations.is_some();
    if has_iterations {
        lines.push(("per iteration", seconds(document.seconds_per_iteration)));
    }
    if let Some(simulated) = document.simulated_iterations.filter(|&simulated| simulated < iterations) {
        lines.push((
            "simulated",
            format!("{}; the other iterations are repetitions", count(simulated, "iteration")),
        ));
    }
    lines.push(("message latency", format!("{} on average", seconds(document.mean_message_latency_seconds))));
    if let Some((link, _)) = network.wires().busiest() {
        let (name, busy) = (network.wires().machine().link(link).name, seconds(document.max_link_seconds));
        let each = if has_iterations { " per iteration" } else { "" };
        lines.push(("busiest link", format!("{name}, {busy}{each} at full bandwidth")));
    }
    if let Some(cycles) = document.cycles {
        lines.push(("cycles", cycles.to_string()));
    }
    pairs(&lines)
}
