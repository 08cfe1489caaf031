//! `equipoise explain`: compares a mapping with an earlier one and lists the worst edges and links. For a training job,
//! it also says at which switches its groups of ranks meet.

use std::path::PathBuf;

use equipoise_apps::{Failure, FormatArg, output};
use equipoise_model::graph::parallel;
use equipoise_model::launcher;
use equipoise_model::table::{aligned, bytes, count, percent, seconds};
use equipoise_model::topology::DEFAULT_BANDWIDTH;
use equipoise_model::{Database, Topology};
use equipoise_report::Between;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::cost::catalogue::Placed;
use equipoise_strategies::cost::explain::{Explanation, FarEdge, HotLink, Names, hops_between_objects};
use equipoise_strategies::cost::spans::{Span, Spans};
use serde::Serialize;

use crate::arguments::{MachineArg, MappingArgs, TaskArgs};
use crate::constraints::{self, ConstraintArgs};
use crate::inspect::end_name;
use crate::program::{ModelArgs, Tasks};
use crate::report::{self, ReportArg};
use crate::{cost_table, input, progress};

/// The arguments of `equipoise explain`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    tasks: TaskArgs,

    #[command(flatten)]
    machine: MachineArg,

    #[command(flatten)]
    mapping: MappingArgs,

    /// The mapping to compare with, in the same formats [default: the recorded placement; for a graph task i on PE i,
    /// or tasks in blocks if there are more tasks than PEs]
    #[arg(long, value_name = "FILE")]
    initial: Option<PathBuf>,

    /// Maximum number of edges, and of links, to list
    #[arg(long, value_name = "N", default_value_t = 8, allow_negative_numbers = true)]
    most: usize,

    #[command(flatten)]
    output: FormatArg,

    #[command(flatten)]
    report: ReportArg,

    #[command(flatten)]
    constraints: ConstraintArgs,

    #[command(flatten)]
    assumed: ModelArgs,
}

/// The one JSON document.
#[derive(Serialize)]
struct Document<'a> {
    before: &'a Metrics,
    after: &'a Metrics,
    #[serde(flatten)]
    explanation: &'a Explanation,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'a Groups>,
    /// Placements between, if objects of a run move.
    #[serde(skip_serializing_if = "<[Between]>::is_empty")]
    between: &'a [Between],
    /// The constraints that the mapping breaks, in sentences.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    broken_constraints: &'a [String],
}

/// The table of placements between the two, if there are several.
fn between_table(all: &[Between]) -> String {
    if all.len() < 2 {
        return String::new();
    }
    let mut rows = vec![["moves", "max/avg", "hop-bytes"].map(String::from).to_vec()];
    rows.extend(all.iter().map(|it| {
        let hop_bytes = it.hop_bytes.map_or_else(String::new, |number| number.to_string());
        vec![it.migrations.to_string(), format!("{:.3}", it.max_over_avg), hop_bytes]
    }));
    format!("With fewer moves (--max-moves of `map` and `replay`):\n{}\n", aligned(&rows))
}

/// The groups of ranks of a training job, before and after.
#[derive(Serialize)]
struct Groups {
    before: Vec<Span>,
    after: Vec<Span>,
}

impl Groups {
    /// The groups of the task graph `spec`, if it is that of a training job.
    fn of(spec: Option<&str>, machine: &dyn Topology, before: &[u32], after: &[u32]) -> Option<Self> {
        let layout = parallel::layout_of(spec?)?;
        let spans = Spans::on(machine);
        let roles = layout.roles();
        let all = |pe_of: &[u32]| {
            roles.iter().map(|role| spans.of(role.name, &layout.groups(role), pe_of)).collect()
        };
        Some(Groups { before: all(before), after: all(after) })
    }

    fn text(&self) -> String {
        let mut text = String::from("Groups of ranks:\n");
        for (before, after) in self.before.iter().zip(&self.after) {
            text += &format!("  {after}\n");
            if before != after {
                text += &format!("    before: {}\n", before.places());
            }
        }
        text + "\n"
    }
}

/// A row of CSV: a mapping and its costs.
#[derive(Serialize)]
struct Row<'a> {
    mapping: &'a str,
    #[serde(flatten)]
    metrics: &'a Metrics,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.tasks
            .files()
            .reads(self.machine.topology.iter().map(|machine| machine.spec()))
            .reads(self.initial.iter().chain([&self.mapping.mapping]))
            .reads(self.constraints.files())
            .writes(self.report.path())
            .check()?;
        self.report.check()?;
        let machine = &*self.machine.topology?;
        // A file with this name is not the generator.
        let graph = self.tasks.graph.clone().filter(|spec| input::is_generated(spec));
        let mut tasks = Tasks::of(&self.tasks, machine, self.assumed)?;
        let rules = constraints::add(self.constraints.read()?, &mut tasks.database, &tasks.name, machine)?;
        let after = self.mapping.placement(&tasks.database, machine)?;
        let before = match &self.initial {
            Some(path) => launcher::placement(path, &tasks.database, machine, self.mapping.slots)?,
            None => tasks.database.placement(),
        };
        // Metrics count migrations from the placement of the database, so it becomes the one to compare with.
        tasks.database = std::mem::take(&mut tasks.database).placed(&before);
        let database = &tasks.database;
        let (then, now, explanation) = progress::with_spinner("routing every message", || {
            let explanation = Explanation::of(database, machine, &before, &after, self.most);
            let placed = |pe_of| tasks.placed(database, machine, pe_of);
            (placed(&before), placed(&after), explanation)
        });
        let between = tasks.between(database, machine, &after, None)?;
        let broken: Vec<String> = rules.broken(database, &after).map(|broken| broken.0).collect();
        let summary = summary(&then, &now);
        let verdict = rules.verdict(database, &after);
        let verdict = verdict.map(|verdict| format!("Warning: the mapping {verdict}."));
        self.report.write(|| {
            let words = [summary.clone()].into_iter().chain(verdict.clone()).collect();
            let placed = ("mapping", after.as_slice(), &now.metrics);
            let before = (before.as_slice(), &then.metrics);
            Ok(report::of_mapping(&tasks, (database, machine), before, placed, between.clone(), words))
        })?;
        let groups = Groups::of(graph.as_deref(), machine, &before, &after);
        let text = || {
            let count = count(database.objects.len() as u64, "task");
            let heading = format!("{} on {}: {count}", tasks.name, machine.spec());
            let columns = [("before", &then), ("after", &now)];
            let table = cost_table::informative_costs(database, tasks.unit, &columns);
            let verdict = verdict.as_ref().map_or_else(String::new, |sentence| format!("{sentence}\n\n"));
            let groups = groups.as_ref().map_or_else(String::new, Groups::text);
            let between = between_table(&between);
            let is_assumed = now.busiest_link_seconds().is_none()
                && machine.links() > 0
                && machine.link(0).bandwidth == DEFAULT_BANDWIDTH;
            let lists = lists(&explanation, database, machine, is_assumed);
            format!("{heading}\n\n{summary}\n\n{verdict}{table}\n{groups}{between}{lists}")
        };
        let document = Document {
            before: &then.metrics,
            after: &now.metrics,
            explanation: &explanation,
            groups: groups.as_ref(),
            between: &between,
            broken_constraints: &broken,
        };
        let row = |mapping, metrics| Row { mapping, metrics };
        let rows = [row("before", &then.metrics), row("after", &now.metrics)];
        output::show_table(self.output.format, text, &document, &rows)
    }
}

/// The summary mentions the largest load if it changes by more than this factor.
const REPORTED_LOAD_CHANGE: f64 = 1.01;

/// The changes from one mapping to the other, in a few sentences.
pub(crate) fn summary(placed_before: &Placed, placed_after: &Placed) -> String {
    let [before, after] = [placed_before, placed_after].map(|placed| &placed.metrics);
    // Below 1 where objects are on PEs that are not available: the average is that of the others.
    let ratio = |metrics: &Metrics| match metrics.average_load_seconds > 0.0 {
        true => metrics.max_load_seconds / metrics.average_load_seconds,
        false => 1.0,
    };
    let [load, was] = [after, before].map(ratio);
    let loads = match load.max(was) > load.min(was) * REPORTED_LOAD_CHANGE {
        true => format!(" The most loaded PE has {load:.2} times the average load (before: {was:.2} times)."),
        false => String::new(),
    };
    let (Some(then), Some(now)) = (&before.communication, &after.communication) else {
        return format!("Communication was not recorded; only loads are compared.{loads}");
    };
    let change = |what: &str, then: f64, now: f64| match now / then {
        _ if then == now => format!("{what} are unchanged"),
        part if part < 1.0 => format!("{what} fall by {}", percent(1.0 - part)),
        part if part < 2.0 => format!("{what} grow by {}", percent(part - 1.0)),
        part if part.is_finite() => format!("{what} are {part:.1} times those before"),
        _ => format!("{what} were 0 before"),
    };
    let hops = |placed: &Placed| hops_between_objects(placed.database, placed.topology, placed.pe_of);
    let mut summary = match then.hop_bytes + now.hop_bytes {
        0 => "No message crosses a link.".into(),
        _ => format!(
            "{}: a byte between tasks crosses {:.2} hops on average (before: {:.2}).",
            change("Hop-bytes", then.hop_bytes as f64, now.hop_bytes as f64),
            hops(placed_after),
            hops(placed_before),
        ),
    };
    summary += &loads;
    let of_links = [placed_before, placed_after].map(Placed::busiest_link_seconds);
    if let [Some(then), Some(now)] = of_links {
        summary += &format!(" The busiest link takes {} (before: {}).", seconds(now), seconds(then));
    } else if let (Some(then), Some(now)) = (then.max_link_bytes, now.max_link_bytes) {
        summary += &format!(" {}.", change("Bytes over the busiest link", then as f64, now as f64));
    }
    if let Some(bound) = now.hop_bytes_lower_bound.filter(|&bound| bound > 0) {
        let above = now.hop_bytes as f64 / bound as f64;
        let most = count(fullest(placed_after), "object");
        summary += &format!(
            " The hop-bytes are {above:.2} times the lower bound of {bound} for mappings with at most {most} on a PE.",
        );
    }
    summary
}

/// The largest number of objects on a PE.
fn fullest(placed: &Placed) -> u64 {
    let mut objects = vec![0; placed.topology.pes()];
    placed.pe_of.iter().for_each(|&pe| objects[pe as usize] += 1);
    objects.into_iter().max().unwrap_or(0)
}

/// The tables below the sentences. `is_assumed`: whether all links have the default bandwidth.
fn lists(explanation: &Explanation, database: &Database, machine: &dyn Topology, is_assumed: bool) -> String {
    let Explanation { distances, levels, far, hot_before, hot_after } = explanation;
    let mut text = String::new();
    let mut rows = vec![["distance".to_string(), "bytes before".into(), "after".into()].to_vec()];
    rows.extend(distances.iter().map(|at| {
        let distance = if at.distance == 0 { "inside a PE".into() } else { at.distance.to_string() };
        vec![distance, bytes(at.bytes_before), bytes(at.bytes_after)]
    }));
    text += &(aligned(&rows) + "\n");
    if !levels.is_empty() {
        let mut rows = vec![["communication".to_string(), "bytes before".into(), "after".into()].to_vec()];
        rows.extend(
            levels.iter().map(|at| vec![at.name.clone(), bytes(at.bytes_before), bytes(at.bytes_after)]),
        );
        text += &(aligned(&rows) + "\n");
    }
    if !far.is_empty() {
        let mut rows = vec![
            ["heavy distant edges", "bytes", "PEs", "distance before", "after"].map(String::from).to_vec(),
        ];
        let (name, names) = (|end| end_name(database, end), Names::of(machine));
        rows.extend(far.iter().map(
            |&FarEdge { ends: [a, b], bytes: volume, pes, distance_before, distance_after }| {
                vec![
                    format!("{} - {}", name(a), name(b)),
                    bytes(volume),
                    format!("{} - {}", names.pe(pes[0]), names.pe(pes[1])),
                    distance_before.to_string(),
                    distance_after.to_string(),
                ]
            },
        ));
        text += &(aligned(&rows) + "\n");
    }
    for (when, links) in [("before", hot_before), ("after", hot_after)] {
        if !links.is_empty() {
            let time = match is_assumed {
                true => format!("time at {}/s (assumed)", bytes(DEFAULT_BANDWIDTH as u64)),
                false => "time at full bandwidth".into(),
            };
            let mut rows = vec![vec![format!("busiest links {when}"), "bytes".into(), time]];
            let row = |link: &HotLink| vec![link.name.clone(), bytes(link.bytes), seconds(link.seconds)];
            rows.extend(links.iter().map(row));
            text += &(aligned(&rows) + "\n");
        }
    }
    text
}
