//! `equipoise explain`: what a mapping gains, and what it leaves.

use std::path::PathBuf;

use equipoise_strategies::cost::Metrics;
use equipoise_strategies::cost::explain::{Explanation, FarEdge, HotLink, Names};
use equipoise_strategies::cost::named::Placed;
use equipoise_strategies::table::{aligned, bytes, count, percent, seconds};
use equipoise_strategies::{Database, Topology};
use serde::Serialize;

use super::inspect::end_name;
use super::{input, metrics, output};
use crate::Format;

/// What is explained.
#[derive(clap::Args)]
pub struct Args {
    /// The task graph: a generator such as mesh:16x16, or a file; `help` lists all kinds
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::graph())]
    graph: String,

    /// The machine, as in torus:4x4x4; `help` lists all kinds
    #[arg(long, value_name = "SPEC", value_parser = input::machine())]
    topology: input::Machine,

    /// The PE of every task: one per line, in task order; or FORMAT=FILE, a launcher's file (`launcher help`)
    #[arg(long, value_name = "FILE")]
    mapping: PathBuf,

    /// What it is compared with, given alike [default: where tasks were recorded; those of a graph on a PE each, one
    /// after the other, or in blocks if there are more tasks than PEs]
    #[arg(long, value_name = "FILE")]
    initial: Option<PathBuf>,

    /// How many ranks run on a PE, in a launcher's file [default: as few as all ranks take]
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    slots: u32,

    /// The step of a database with several [default: the first]
    #[arg(long, value_name = "S")]
    step: Option<u64>,

    /// How many edges and links are listed
    #[arg(long, value_name = "N", default_value_t = 8)]
    most: usize,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The one JSON document.
#[derive(Serialize)]
struct Document<'a> {
    before: &'a Metrics,
    after: &'a Metrics,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let machine = &*self.topology.clone()?;
        let database = input::graph_on(&self.graph, self.step, machine)?;
        let after = input::placement(&self.mapping, &database, machine, self.slots)?;
        let before = match &self.initial {
            Some(path) => input::placement(path, &database, machine, self.slots)?,
            None => database.placement(),
        };
        let (then, now, explanation) = output::watched("following every message", || {
            let placed = |pe_of| Placed::new(&database, machine, pe_of);
            let told = Explanation::of(&database, machine, &before, &after, self.most);
            (placed(&before), placed(&after), told)
        });
        let text = || {
            let tasks = count(database.objects.len() as u64, "task");
            let heading = format!("{} on {}: {tasks}", self.graph, machine.spec());
            let table = metrics::telling(&database, &[("before", &then), ("after", &now)]);
            let told = told(&then.metrics, &now.metrics);
            format!("{heading}\n\n{told}\n\n{table}\n{}", lists(&explanation, &database, machine))
        };
        let document = Document { before: &then.metrics, after: &now.metrics, explanation: &explanation };
        output::show(self.format, text, &document)
    }
}

/// How much more the largest load may be before it is told.
const UNEVEN: f64 = 1.01;

/// What the mapping gains, in a few sentences.
fn told(before: &Metrics, after: &Metrics) -> String {
    let (Some(then), Some(now)) = (&before.communication, &after.communication) else {
        return "Communication was not recorded, so nothing can be said of it.".into();
    };
    let change = |what: &str, then: f64, now: f64| match now / then {
        _ if then == now => format!("{what} stay as they were"),
        part if part < 1.0 => format!("{what} fall by {}", percent(1.0 - part)),
        part if part.is_finite() => format!("{what} grow by {}", percent(part - 1.0)),
        _ => format!("{what} were none before"),
    };
    let mut told = match then.hop_bytes + now.hop_bytes {
        0 => "Nothing travels.".into(),
        _ => format!(
            "{}: a byte that leaves its task crosses {:.2} hops in place of {:.2}.",
            change("Hop-bytes", then.hop_bytes as f64, now.hop_bytes as f64),
            now.hops_per_byte,
            then.hops_per_byte,
        ),
    };
    let [load, was] = [after, before].map(|metrics| 1.0 + metrics.imbalance);
    if load > was * UNEVEN {
        told += &format!(" The most loaded PE has {load:.2} times the average load, in place of {was:.2}.");
    }
    if let (Some(then), Some(now)) = (then.max_link_bytes, now.max_link_bytes) {
        told += &format!(" {}.", change("Bytes over the busiest link", then as f64, now as f64));
    }
    if let Some(bound) = now.hop_bytes_lower_bound.filter(|&bound| bound > 0) {
        let above = now.hop_bytes as f64 / bound as f64;
        told += &format!(
            " No mapping as even has fewer than {bound} hop-bytes, of which these are {above:.2} times.",
        );
    }
    told
}

/// The tables below the sentences.
fn lists(explanation: &Explanation, database: &Database, machine: &dyn Topology) -> String {
    let Explanation { distances, levels, far, hot_before, hot_after } = explanation;
    let mut text = String::new();
    let mut rows = vec![["distance".to_string(), "bytes before".into(), "after".into()].to_vec()];
    rows.extend(distances.iter().map(|at| {
        let distance = if at.distance == 0 { "inside a PE".into() } else { at.distance.to_string() };
        vec![distance, bytes(at.bytes_before), bytes(at.bytes_after)]
    }));
    text += &(aligned(&rows) + "\n");
    if !levels.is_empty() {
        let mut rows = vec![["meet".to_string(), "bytes before".into(), "after".into()].to_vec()];
        rows.extend(
            levels.iter().map(|at| vec![at.name.clone(), bytes(at.bytes_before), bytes(at.bytes_after)]),
        );
        text += &(aligned(&rows) + "\n");
    }
    if !far.is_empty() {
        let mut rows =
            vec![["heavy and apart", "bytes", "PEs", "distance before", "after"].map(String::from).to_vec()];
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
            let mut rows =
                vec![vec![format!("hottest links {when}"), "bytes".into(), "at its bandwidth".into()]];
            let row = |link: &HotLink| vec![link.name.clone(), bytes(link.bytes), seconds(link.seconds)];
            rows.extend(links.iter().map(row));
            text += &(aligned(&rows) + "\n");
        }
    }
    text
}
