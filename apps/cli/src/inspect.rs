//! `equipoise inspect`: shows the content of a database, a task graph, a program or a checkpoint.

use std::path::Path;

use equipoise_apps::{Failure, FormatArg, output};
use equipoise_model::constraints::Constraints;
use equipoise_model::costs::Costs;
use equipoise_model::database::{Edge, End, Summary, Volumes, charm};
use equipoise_model::quote::quoted;
use equipoise_model::table::{aligned, bytes, count, pairs, percent, seconds};
use equipoise_model::topology::{self, Flat};
use equipoise_model::{Database, Topology};
use equipoise_strategies::cost::Metrics;
use serde::Serialize;

use crate::arguments::ProgramArg;
use crate::cost_table::LoadUnit;
use crate::program::ModelArgs;
use crate::{input, progress};
use distances::{AtDistance, by_distance};

mod checkpoint;
mod constraints;
mod costs;
mod distances;
mod model;
mod partners;

/// The arguments of `equipoise inspect`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
// The options for databases. `ModelArgs` conflicts with the name `graph`: here with this group, elsewhere with --graph.
#[command(group = clap::ArgGroup::new("graph").args(["step"]))]
pub struct Args {
    /// A database, a task graph (a file or a generator), the file of a program (.tcg), or the folder of a checkpoint; `help`
    /// lists all kinds
    #[arg(value_name = "DATABASE|GRAPH", value_parser = input::graph(), group = "what")]
    data: Option<String>,

    #[command(flatten)]
    program: ProgramArg,

    /// Show only this step, in detail
    #[arg(long, value_name = "S", conflicts_with = "program", allow_negative_numbers = true)]
    step: Option<u64>,

    /// Number of heaviest objects and edges (of a program: processes and channels) to list
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true)]
    heaviest: usize,

    #[command(flatten)]
    output: FormatArg,

    #[command(flatten)]
    assumed: ModelArgs,
}

/// The one JSON document.
#[derive(Serialize)]
struct Inspection {
    program: String,
    topology: String,
    steps: Vec<Step>,
}

/// The content of a load-balancing step.
#[derive(Serialize)]
struct Step {
    #[serde(flatten)]
    summary: Summary,
    /// The arrays with objects, in the order of their ids.
    objects_of_arrays: Vec<ArrayObjects>,
    /// Objects whose encoded size is known, and the sum of these sizes.
    sized_objects: usize,
    sized_bytes: u64,
    object_load_seconds: Spread,
    /// The load of a PE, background included.
    pe_load_seconds: Spread,
    /// PEs that are not available.
    unavailable_pes: usize,
    imbalance: f64,
    /// The time of the most loaded PE.
    #[serde(skip)]
    max_load_seconds: f64,
    lower_bound_seconds: f64,
    /// None if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    costs: Option<Costs>,
    #[serde(skip_serializing_if = "Constraints::is_empty")]
    constraints: Constraints,
    heaviest_objects: Vec<HeavyObject>,
    /// None if communication was not recorded.
    #[serde(flatten)]
    communication: Option<Communication>,
}

/// The communication of a step.
#[derive(Serialize)]
struct Communication {
    #[serde(skip)]
    volumes: Volumes,
    /// Edges with a PE at an end.
    pe_edges: usize,
    remote_messages: u64,
    remote_bytes: u64,
    /// Communication partners per object.
    partners: Spread,
    heaviest_edges: Vec<HeavyEdge>,
    /// None if the machine is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_distance: Option<Vec<AtDistance>>,
}

/// The objects of an array.
#[derive(Serialize)]
struct ArrayObjects {
    name: String,
    objects: usize,
}

/// The distribution of values; zeros if there are none.
#[derive(Default, Serialize)]
struct Spread {
    min: f64,
    median: f64,
    mean: f64,
    /// 90 % of the values are at most this.
    percentile_90: f64,
    max: f64,
}

/// An object with a high load.
#[derive(Serialize)]
struct HeavyObject {
    name: String,
    id: u64,
    pe: u32,
    load_seconds: f64,
    bytes: Option<u64>,
}

/// An edge with many bytes.
#[derive(Serialize)]
struct HeavyEdge {
    from: String,
    to: String,
    messages: u64,
    bytes: u64,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let file = self.data.as_ref().filter(|data| input::is_program(Path::new(data)));
        if let Some(program) = self.program.program.as_ref().or(file) {
            if let Some(step) = self.step {
                let sentence =
                    format!("--step {step}: the program `{program}` has no steps; leave out --step");
                return Err(Failure::usage(sentence));
            }
            self.output.format.refuse_csv("a program, which has processes, channels and phases,")?;
            return model::show(program, self.assumed, self.heaviest, self.output.format);
        }
        let Some(what) = &self.data else { return Err(Failure::usage("give a database or --program")) };
        if !self.assumed.is_default() {
            return Err(Failure::usage(format!(
                "--send-cycles, --receive-cycles and --overlap apply to programs, but `{what}` is not a program; \
                 leave them out"
            )));
        }
        if checkpoint::is_one(what) {
            if self.step.is_some() {
                let sentence = format!("--step: the checkpoint `{what}` has no steps; leave out --step");
                return Err(Failure::usage(sentence));
            }
            return checkpoint::show(what, self.output.format);
        }
        let dump = input::steps(what, self.step)?;
        // A task graph has one step.
        let unit = LoadUnit::of(what, &dump.steps[0]);
        // A machine that names a file may not be readable here.
        let machine = topology::parse(&dump.topology).ok();
        let steps = progress::with_spinner("summing up the steps", || {
            dump.steps
                .iter()
                .map(|database| Step::of(database, machine.as_deref(), self.heaviest))
                .collect::<Result<_, Failure>>()
        })?;
        let inspection = Inspection { program: dump.program, topology: dump.topology, steps };
        output::show_table(self.output.format, || inspection.text(what, unit), &inspection, &inspection.steps)
    }
}

impl Step {
    fn of(database: &Database, machine: Option<&dyn Topology>, heaviest: usize) -> Result<Step, Failure> {
        let placement = database.placement();
        let flat = Flat::new(database.pes.len()).map_err(Failure::input)?;
        let metrics = Metrics::of(database, &flat, &placement);
        let summary = database.summary();
        let communication = summary.communication.zip(metrics.communication);
        let communication = communication.map(|(volumes, cost)| {
            let is_pe = |end| matches!(end, End::Pe(_));
            Communication {
                volumes,
                pe_edges: database.edges.iter().filter(|edge| is_pe(edge.from) || is_pe(edge.to)).count(),
                remote_messages: cost.remote_messages,
                remote_bytes: cost.remote_bytes,
                partners: Spread::of(partners::of_objects(database).into_iter().map(f64::from)),
                heaviest_edges: heaviest_edges(database, heaviest),
                by_distance: machine.and_then(|machine| by_distance(database, machine)),
            }
        });
        let sizes = database.objects.iter().filter_map(|o| o.bytes);
        Ok(Step {
            summary,
            objects_of_arrays: objects_of_arrays(database),
            sized_objects: sizes.clone().count(),
            sized_bytes: sizes.fold(0, u64::saturating_add),
            object_load_seconds: Spread::of(database.objects.iter().map(|o| o.load_seconds)),
            pe_load_seconds: Spread::of(database.pe_loads(&placement)),
            unavailable_pes: database.pes.iter().filter(|pe| !pe.available).count(),
            imbalance: metrics.imbalance,
            max_load_seconds: metrics.max_load_seconds,
            lower_bound_seconds: metrics.lower_bound_seconds,
            costs: database.costs.clone(),
            constraints: database.constraints.clone(),
            heaviest_objects: heaviest_objects(database, heaviest),
            communication,
        })
    }
}

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else { return Spread::default() };
        Spread {
            min,
            median: (values[(count - 1) / 2] + values[count / 2]) / 2.0,
            mean: values.iter().sum::<f64>() / count as f64,
            percentile_90: values[(9 * count).div_ceil(10) - 1],
            max,
        }
    }

    fn show(&self, show: impl Fn(f64) -> String) -> String {
        let [min, median, mean, percentile_90, max] =
            [self.min, self.median, self.mean, self.percentile_90, self.max].map(show);
        format!("min {min}, median {median}, mean {mean}, 90th percentile {percentile_90}, max {max}")
    }
}

fn objects_of_arrays(database: &Database) -> Vec<ArrayObjects> {
    let mut arrays: Vec<u32> = database.objects.iter().map(|o| o.array).collect();
    arrays.sort_unstable();
    let of = |same: &[u32]| ArrayObjects { name: array_name(database, same[0]), objects: same.len() };
    arrays.chunk_by(|a, b| a == b).map(of).collect()
}

fn heaviest_objects(database: &Database, count: usize) -> Vec<HeavyObject> {
    let mut order: Vec<usize> = (0..database.objects.len()).collect();
    let load = |i: &usize| database.objects[*i].load_seconds;
    // The sort is stable: of equal loads the lowest index is first.
    order.sort_by(|a, b| load(b).total_cmp(&load(a)));
    let heavy = |i: usize| {
        let o = &database.objects[i];
        let name = end_name(database, End::Object(i as u32));
        HeavyObject { name, id: o.id, pe: o.pe, load_seconds: o.load_seconds, bytes: o.bytes }
    };
    order.into_iter().take(count).map(heavy).collect()
}

fn heaviest_edges(database: &Database, count: usize) -> Vec<HeavyEdge> {
    let mut order: Vec<&Edge> = database.edges.iter().collect();
    order.sort_by_key(|edge| std::cmp::Reverse(edge.bytes));
    let heavy = |edge: &Edge| HeavyEdge {
        from: end_name(database, edge.from),
        to: end_name(database, edge.to),
        messages: edge.messages,
        bytes: edge.bytes,
    };
    order.into_iter().take(count).map(heavy).collect()
}

fn array_name(database: &Database, array: u32) -> String {
    database.arrays.get(array as usize).cloned().unwrap_or_else(|| format!("array {array}"))
}

/// The name of an end of an edge: `Block[3, 4]`, or with its number in the array if the index is unknown: `array 2#17`.
pub(crate) fn end_name(database: &Database, end: End) -> String {
    match end {
        End::Pe(pe) => format!("PE {pe}"),
        End::Object(object) => {
            let o = &database.objects[object as usize];
            let array = array_name(database, o.array);
            if o.index.coordinates().is_empty() {
                format!("{array}#{}", charm::id_in_array(&array, o.id))
            } else {
                format!("{array}{:?}", o.index)
            }
        }
    }
}

impl Inspection {
    fn text(&self, what: &str, unit: LoadUnit) -> String {
        let known = |text: &str| if text.is_empty() { "unknown".to_string() } else { quoted(text) };
        let numbers: Vec<String> = self.steps.iter().map(|step| step.summary.step.to_string()).collect();
        let head = pairs(&[
            ("database", what.to_string()),
            ("program", known(&self.program)),
            ("topology", known(&self.topology)),
            (if numbers.len() == 1 { "step" } else { "steps" }, numbers.join(", ")),
        ]);
        match self.steps.as_slice() {
            [only] => format!("{head}\n{}", only.text(unit)),
            steps => format!("{head}\n{}\nDetails of a step: --step S\n", overview(steps)),
        }
    }
}

/// A line per step.
fn overview(steps: &[Step]) -> String {
    let header =
        ["step", "PEs", "objects", "load", "max/avg", "edges", "messages", "bytes", "remote", "dangling"];
    let row = |step: &Step| {
        let summary = &step.summary;
        let communication = step.communication.as_ref().map_or_else(
            || [(); 5].map(|()| "-".to_string()),
            |Communication { volumes, remote_bytes, .. }| {
                [
                    volumes.edges.to_string(),
                    volumes.messages.to_string(),
                    bytes(volumes.bytes),
                    part(*remote_bytes, volumes.bytes),
                    volumes.dangling_edges.to_string(),
                ]
            },
        );
        let mut row = vec![
            summary.step.to_string(),
            summary.pes.to_string(),
            summary.objects.to_string(),
            seconds(summary.load_seconds),
            format!("{:.3}", step.imbalance + 1.0),
        ];
        row.extend(communication);
        row
    };
    let header = header.map(String::from).to_vec();
    aligned(&[header].into_iter().chain(steps.iter().map(row)).collect::<Vec<_>>())
}

impl Step {
    /// The fraction of the time of the most loaded PE that another placement may save.
    fn possible_saving(&self) -> f64 {
        let longest = self.max_load_seconds;
        if longest > 0.0 { (1.0 - self.lower_bound_seconds / longest).max(0.0) } else { 0.0 }
    }

    fn text(&self, unit: LoadUnit) -> String {
        let show = |load: f64| unit.show(load);
        let summary = &self.summary;
        let arrays: Vec<String> = self
            .objects_of_arrays
            .iter()
            .map(|array| format!("{} ({})", quoted(&array.name), array.objects))
            .collect();
        let sizes = match self.sized_objects {
            0 => "sizes unknown".into(),
            known => {
                format!("{} in {} of known size", bytes(self.sized_bytes), count(known as u64, "object"))
            }
        };
        let saving = percent(self.possible_saving());
        let pes = match self.unavailable_pes {
            0 => summary.pes.to_string(),
            unavailable => format!("{}, {unavailable} not available", summary.pes),
        };
        let mut lines = vec![
            ("PEs", pes),
            ("arrays", arrays.join(", ")),
            ("objects", format!("{}, {} migratable; {sizes}", summary.objects, summary.migratable_objects)),
            ("load", show(summary.load_seconds)),
            ("load per object", self.object_load_seconds.show(show)),
            ("background", show(summary.background_seconds)),
            ("load per PE", self.pe_load_seconds.show(show)),
            (
                "max/avg",
                format!("{:.3}; another placement may save up to {saving} of the time", self.imbalance + 1.0),
            ),
        ];
        match &self.communication {
            Some(communication) => lines.extend(communication.lines(summary.pes)),
            None => lines.push(("edges", "unknown: communication was not recorded (--lb-comm on)".into())),
        }
        lines.extend(self.costs.iter().flat_map(costs::lines));
        if !self.constraints.is_empty() {
            lines.push(("constraints", constraints::clauses(&self.constraints)));
        }
        if summary.pes == 1 {
            // A task graph, or a run on one PE: balance has no meaning.
            lines.retain(|(name, _)| !matches!(*name, "background" | "load per PE" | "max/avg"));
        }
        let mut text = pairs(&lines);
        if !self.heaviest_objects.is_empty() {
            let header =
                ["heaviest objects", "id", "PE", "load", "of all", "size"].map(String::from).to_vec();
            let row = |o: &HeavyObject| {
                let size = o.bytes.map_or_else(|| "unknown".into(), bytes);
                let share = percent(o.load_seconds / summary.load_seconds.max(f64::MIN_POSITIVE));
                vec![o.name.clone(), o.id.to_string(), o.pe.to_string(), show(o.load_seconds), share, size]
            };
            text += "\n";
            text += &aligned(
                &[header].into_iter().chain(self.heaviest_objects.iter().map(row)).collect::<Vec<_>>(),
            );
        }
        if let Some(communication) = self.communication.as_ref().filter(|it| !it.heaviest_edges.is_empty()) {
            text += "\n";
            text += &communication.table();
        }
        text
    }
}

impl Communication {
    /// The lines of the table for a step on `pes` PEs.
    fn lines(&self, pes: usize) -> Vec<(&'static str, String)> {
        let Volumes { edges, dangling_edges, messages, bytes: volume } = self.volumes;
        let mut lines = vec![
            ("edges", format!("{edges}, {} with a PE at an end, {dangling_edges} dangling", self.pe_edges)),
            ("partners", self.partners.show(|partners| format!("{partners:.1}"))),
            ("messages", messages.to_string()),
            ("bytes", bytes(volume)),
        ];
        if pes > 1 {
            let (messages, bytes) = (part(self.remote_messages, messages), part(self.remote_bytes, volume));
            lines.push(("between PEs", format!("{messages} of the messages, {bytes} of the bytes")));
            let distances = self.by_distance.as_deref().filter(|all| all.iter().any(|at| at.distance > 1));
            lines.extend(distances.and_then(distances::line).map(|line| ("by distance", line)));
        }
        lines
    }

    /// The heaviest edges.
    fn table(&self) -> String {
        let header = ["heaviest edges", "messages", "bytes", "of all"].map(String::from).to_vec();
        let row = |edge: &HeavyEdge| {
            let (messages, share) = (edge.messages.to_string(), part(edge.bytes, self.volumes.bytes));
            vec![format!("{} -> {}", edge.from, edge.to), messages, bytes(edge.bytes), share]
        };
        aligned(&[header].into_iter().chain(self.heaviest_edges.iter().map(row)).collect::<Vec<_>>())
    }
}

fn part(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { percent(part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use equipoise_strategies::workloads;

    use super::*;

    #[test]
    fn an_optimal_placement_can_save_nothing() {
        let check = |loads: [f64; 2], expected: &str| {
            let mut database = workloads::load("mesh:2").expect("a generator").remap(2);
            database.objects.iter_mut().zip(loads).for_each(|(o, load)| o.load_seconds = load);
            let text = Step::of(&database, None, 1).expect("two PEs").text(LoadUnit::Seconds);
            assert!(text.contains(&format!("may save up to {expected} % of the time")), "{text}");
        };
        check([0.0, 0.0], "0.0");
        check([0.1, 0.1], "0.0");
        check([1.0, 3.0], "0.0");
    }

    #[test]
    fn the_distribution_does_not_depend_on_the_order_of_the_values() {
        let five = Spread::of([5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(
            (five.min, five.median, five.mean, five.percentile_90, five.max),
            (1.0, 3.0, 3.0, 5.0, 5.0)
        );
        let twenty = Spread::of((1..=20).map(f64::from));
        assert_eq!((twenty.median, twenty.percentile_90), (10.5, 18.0));
        assert_eq!(Spread::of([]).max, 0.0);
    }
}
