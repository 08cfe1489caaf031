//! Ranks of training jobs on machines of several kinds: rank order, random order, and the mappings of this project.

use std::fmt;
use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::graph::Graph;
use equipoise_model::random::{generator, shuffle};
use equipoise_model::{Database, Topology, topology};
use equipoise_strategies::workloads;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};

/// Mappings of the ranks of training jobs.
pub(crate) const ML_RANKS: Figure = Figure {
    name: "ml-ranks",
    title: "Ranks of training jobs: bytes between nodes and between switches, and hop-bytes",
    paper: "no paper",
    paper_shows: "no paper",
    we_show: "hop-bytes of training jobs in rank order and mapped",
    why: "rank order is good where names follow switches, and poor elsewhere",
    takes: "10 seconds",
    notes: "Volumes are those of the model that the generator `parallel` describes. `between nodes` are the bytes that leave a \
            node, `between switches` those that leave the leaf switch, the pod or the group of a node; a torus has no \
            switches. Random orders are the mean of 5. `hosts by name` are nodes of a fat tree whose names \
            alternate between the leaf switches, as in an allocation that Slurm sorts by name.",
    run,
};

/// The jobs: name and spec. All but one have 256 ranks.
const JOBS: &[(&str, &str)] = &[
    ("dense, tp 8", "parallel:tp=8,pp=4,dp=8"),
    ("long context", "parallel:tp=4,cp=4,pp=2,dp=8,sequence=32768"),
    ("experts", "parallel:tp=2,pp=4,dp=32,ep=16,etp=1,experts=64,hidden=4096,layers=32,sequence=4096"),
    ("tp 4, pp 6", "parallel:tp=4,pp=6,dp=10,layers=48,hidden=8192"),
    ("dp first", "parallel:tp=8,pp=4,dp=8,order=dp-pp-tp"),
];

/// The machines: name and spec. All have 256 GPUs or cores.
const MACHINES: &[(&str, &str)] = &[
    ("rails", "rails:pods=2,nodes=16,gpus=8"),
    ("fat tree", "fattree:4:8*flat:8"),
    ("fat tree, hosts by name", HOSTS_BY_NAME),
    ("dragonfly+", "dragonfly+:groups=4,leaves=4,spines=4,hosts=2*flat:8"),
    ("torus", "torus:4x8x8"),
];

const HOSTS_BY_NAME: &str = "fattree:4:8[0,8,16,24,1,9,17,25,2,10,18,26,3,11,19,27,4,12,20,28,5,13,21,29,6,14,22,30,\
                             7,15,23,31]*flat:8";

/// The small version.
const SMALL_JOBS: &[(&str, &str)] =
    &[("dense, tp 4", "parallel:tp=4,pp=2,dp=4"), ("experts", "parallel:dp=32,ep=8")];
const SMALL_MACHINES: &[(&str, &str)] = &[
    ("rails", "rails:pods=2,nodes=4,gpus=4"),
    ("fat tree, hosts by name", "fattree:2:4[0,4,1,5,2,6,3,7]*flat:4"),
];

/// The strategies.
const STRATEGIES: [&str; 2] = ["PoiseLB", "HierTopoMap"];

/// The number of random orders.
const ORDERS: u64 = 5;

/// What a mapping costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cost {
    between_nodes: f64,
    /// None on a machine without switches.
    between_switches: Option<f64>,
    hop_bytes: f64,
}

impl Cost {
    /// The cost of rank `i` on PE `pe_of[i]`.
    fn of(graph: &Graph, machine: &dyn Topology, pe_of: &[u32]) -> Cost {
        let place = |rank: u32| pe_of[rank as usize] as usize;
        let switch_of = switches(machine);
        let mut cost = Cost { between_switches: switch_of.as_ref().map(|_| 0.0), ..Cost::default() };
        for (a, b, bytes) in graph.pairs() {
            let (a, b, bytes) = (place(a), place(b), bytes as f64);
            cost.hop_bytes += bytes * f64::from(machine.distance(a, b));
            if machine.node_of(a) != machine.node_of(b) {
                cost.between_nodes += bytes;
            }
            if let (Some(sum), Some(switch_of)) = (&mut cost.between_switches, &switch_of)
                && switch_of[a] != switch_of[b]
            {
                *sum += bytes;
            }
        }
        cost
    }
}

/// For each PE, the lowest part above nodes: its leaf switch, or its pod. None if the network is no tree of switches.
fn switches(machine: &dyn Topology) -> Option<Vec<u32>> {
    let tree = machine.hierarchy()?;
    let level = tree.node_level().checked_sub(1).filter(|&level| level > 0)?;
    machine.switch_between(0, machine.pes() - 1)?;
    let mut switch_of = vec![0; machine.pes()];
    for (switch, leaves) in (0..).zip(tree.nodes(level)) {
        tree.leaves()[leaves].iter().for_each(|&pe| switch_of[pe as usize] = switch);
    }
    Some(switch_of)
}

/// A mapping and its cost.
struct Point {
    job: &'static str,
    machine: &'static str,
    mapping: &'static str,
    cost: Cost,
    /// Hop-bytes over those of the rank order.
    ratio: f64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} of the rank order by {}, {} on {}", self.ratio, self.mapping, self.job, self.machine)
    }
}

fn measure(
    (job, graph_spec): (&'static str, &str),
    (name, machine): (&'static str, &str),
    seed: u64,
) -> Result<Vec<Point>, Failure> {
    let machine: Arc<dyn Topology> = topology::parse(machine)?;
    let machine = &*machine;
    let database = workloads::load(graph_spec)?;
    let ranks = database.objects.len();
    let in_order: Vec<u32> = (0..ranks as u32).collect();
    let database: Database = database.remap(machine.pes() as u32).placed(&in_order);
    let graph = Graph::of(&database);
    let ordered = Cost::of(&graph, machine, &in_order);
    let mut costs = vec![("rank order", ordered)];
    let mut random = Cost { between_switches: ordered.between_switches.map(|_| 0.0), ..Cost::default() };
    for order in 0..ORDERS {
        let mut pes: Vec<u32> = (0..machine.pes() as u32).collect();
        shuffle(&mut generator(seed, order), &mut pes);
        let cost = Cost::of(&graph, machine, &pes[..ranks]);
        random.hop_bytes += cost.hop_bytes / ORDERS as f64;
        random.between_nodes += cost.between_nodes / ORDERS as f64;
        random.between_switches = random
            .between_switches
            .zip(cost.between_switches)
            .map(|(sum, bytes)| sum + bytes / ORDERS as f64);
    }
    costs.push(("random", random));
    for strategy in STRATEGIES {
        let answer = assign(strategy, &database, machine, seed)?;
        let mut used = vec![false; machine.pes()];
        let is_twice = |&&pe: &&u32| std::mem::replace(&mut used[pe as usize], true);
        if let Some(pe) = answer.pe_of.iter().find(is_twice) {
            return Err(Failure::bug(format!("{strategy} places two ranks on PE {pe}, {job} on {name}")));
        }
        costs.push((strategy, Cost::of(&graph, machine, &answer.pe_of)));
    }
    let point = |(mapping, cost): (&'static str, Cost)| {
        let ratio = if ordered.hop_bytes > 0.0 { cost.hop_bytes / ordered.hop_bytes } else { 1.0 };
        Point { job, machine: name, mapping, cost, ratio }
    };
    Ok(costs.into_iter().map(point).collect())
}

fn run(options: &Options) -> Result<FigureResult, Failure> {
    let (jobs, machines) = (options.choose(JOBS, SMALL_JOBS), options.choose(MACHINES, SMALL_MACHINES));
    let cases: Vec<_> = jobs
        .iter()
        .flat_map(|&job| {
            machines.iter().map(move |&machine| (format!("{} on {}", job.0, machine.0), (job, machine)))
        })
        .collect();
    let all: Vec<Point> = options
        .sweep_labelled(cases, |(job, machine)| measure(job, machine, options.seed))?
        .into_iter()
        .flatten()
        .collect();
    let mut rows = Rows::new([
        ("job", "job"),
        ("machine", "machine"),
        ("mapping", "mapping"),
        ("gigabytes_between_nodes", "GB between nodes"),
        ("gigabytes_between_switches", "between switches"),
        ("hop_gigabytes", "hop-GB"),
        ("hop_bytes_ratio", "of rank order"),
    ]);
    for Point { job, machine, mapping, cost, ratio } in &all {
        rows.push([
            Cell::Text(job.replace(',', ";")),
            Cell::Text(machine.replace(',', ";")),
            Cell::Text((*mapping).into()),
            Cell::Number(cost.between_nodes / 1e9),
            Cell::maybe(cost.between_switches.map(|bytes| bytes / 1e9)),
            Cell::Number(cost.hop_bytes / 1e9),
            Cell::Number(*ratio),
        ]);
    }
    let of = |mapping: &str| all.iter().filter(move |point| point.mapping == mapping).collect::<Vec<_>>();
    let series = [&["random"][..], &STRATEGIES].concat().into_iter().map(|mapping| {
        let points =
            of(mapping).into_iter().enumerate().map(|(case, point)| (1.0 + case as f64, point.ratio));
        Series::measured(mapping, points.collect::<Vec<_>>())
    });
    let chart = Chart {
        x: Axis::linear("job and machine, in the order of the table"),
        y: Axis::log("hop-bytes over those of the rank order"),
        series: series.collect(),
    };
    let criteria = STRATEGIES
        .iter()
        .map(|strategy| {
            Criterion::every(
                format!("{strategy}: at most the hop-bytes of the rank order"),
                of(strategy),
                |point| 1.0 + 1e-9 - point.ratio,
                |point| point.to_string(),
            )
        })
        .collect();
    Ok(FigureResult { rows, chart, criteria })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_at_the_borders_they_cross() {
        let machine = topology::parse("tree:2:2*flat:2").expect("a machine");
        let graph = Graph::new(8, [(0, 1, 1), (1, 2, 10), (3, 4, 100), (0, 7, 1000)]);
        let in_order: Vec<u32> = (0..8).collect();
        let cost = Cost::of(&graph, &*machine, &in_order);
        assert_eq!((cost.between_nodes, cost.between_switches), (1110.0, Some(1100.0)));
        // A hop between nodes is 2; nodes of a switch are 2 hops apart, others 4.
        assert_eq!(cost.hop_bytes, 1.0 + 10.0 * 4.0 + 1100.0 * 8.0);
        let torus = topology::parse("torus:8").expect("a machine");
        assert_eq!(Cost::of(&graph, &*torus, &in_order).between_switches, None);
    }
}
