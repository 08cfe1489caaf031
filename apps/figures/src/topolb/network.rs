//! Figures 7 to 9 of the TopoLB paper: the time of Jacobi iterations with different mappings.
//!
//! T. Agarwal, A. Sharma, L. V. Kalé, "Topology-aware task mapping for reducing communication contention
//! on large parallel machines", IPDPS 2006, section 5.3. Tasks on a mesh exchange messages with their neighbors, in the
//! authors' network simulator. Here the network model is `flow`.
//!
//! Iterations are simulated until they repeat exactly. With sharing by latency or random mappings they may not repeat,
//! because neighbors drift apart and together again. In this case a part of the iterations is simulated and their mean
//! time is used; the notes give the number.

use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::database::{Edge, End};
use equipoise_model::{Database, Topology, topology};
use equipoise_network::models;
use equipoise_network::models::exchange::{Exchange, Receives, Traffic};
use equipoise_strategies::workloads;

use super::replay::{COMPUTE_SECONDS, MESSAGE_BYTES, Recorded, Time};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};

/// Figure 7.
pub(crate) const TOPOLB_7: Figure = Figure {
    name: "topolb-7",
    title: "Message latency against link bandwidth, 8x8 mesh on a 4x4x4 torus",
    paper: "Agarwal, Sharma, Kalé 2006, figure 7",
    paper_shows: "messages take longest with random mapping, then TopoCentLB, then TopoLB, most with slow links",
    we_show: "message latencies of the same exchange on a 4x4x4 torus",
    why: "fewer hops load the links less",
    takes: "5 seconds",
    notes: NUMBERING,
    run: |options| latencies(options, &[50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 750.0, 1000.0]),
};

/// Figure 8.
pub(crate) const TOPOLB_8: Figure = Figure {
    name: "topolb-8",
    title: "Message latency without congestion, 8x8 mesh on a 4x4x4 torus",
    paper: "Agarwal, Sharma, Kalé 2006, figure 8",
    paper_shows: "the order is the same with fast links",
    we_show: "the same with fast links",
    why: "as for topolb-7",
    takes: "5 seconds",
    notes: NUMBERING,
    run: |options| latencies(options, &[300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0]),
};

/// Figure 9.
pub(crate) const TOPOLB_9: Figure = Figure {
    name: "topolb-9",
    title: "Time of 2000 iterations against link bandwidth, 8x8 mesh on a 4x4x4 torus",
    paper: "Agarwal, Sharma, Kalé 2006, figure 9",
    paper_shows: "random mapping takes twice as long as TopoLB with slow links, TopoCentLB 10 to 25 % longer",
    we_show: "completion times of the same iterations",
    why: "the busiest link decides with slow links, computation with fast ones",
    takes: "10 seconds",
    notes: NUMBERING,
    run: completion,
};

const NUMBERING: &str = "Medians over random numberings of tasks and processors: with natural numbers TopoLB and TopoCentLB are \
                         perfect on this machine. If iterations do not repeat exactly, 80 are simulated. `replay`: as in the \
                         paper, the events of a recorded run (stencil2d, 20 iterations) on the same networks and placements.";

pub(crate) const RANDOM: &str = "RandomLB:groups=keep";
pub(crate) const TOPOCENTLB: &str = "TopoCentLB";
pub(crate) const TOPOLB: &str = "TopoLB";
pub(crate) const ALL: [&str; 3] = [TOPOLB, TOPOCENTLB, RANDOM];

/// Iterations of a task graph on a machine.
pub(crate) struct Run<'a> {
    pub(crate) machine: &'a Arc<dyn Topology>,
    pub(crate) network: String,
    pub(crate) compute_seconds: f64,
    pub(crate) iterations: u64,
    /// The number of simulated iterations if they do not repeat.
    pub(crate) simulated: u64,
}

impl Run<'_> {
    /// The times with task `i` on PE `placement[i]`.
    pub(crate) fn time(&self, tasks: &Database, placement: &[u32]) -> Result<Time, Failure> {
        let traffic = Traffic::directed(tasks);
        let model = models::parse(&self.network)?;
        let exchange = Exchange {
            iterations: self.simulated.min(self.iterations),
            compute_seconds: self.compute_seconds,
            receives: Receives::AfterCompute,
            extrapolates: true,
        };
        let result = exchange.run(&traffic, placement, &mut *model.on(self.machine)?);
        let seconds = result.seconds_per_iteration * self.iterations as f64;
        Ok(Time { seconds, mean_latency_seconds: result.mean_message_latency_seconds })
    }
}

/// The iterations of figures 7 to 9.
const ITERATIONS: u64 = 2000;

/// The number of simulated iterations if they do not repeat exactly.
pub(crate) const SIMULATED: u64 = 80;

/// The tasks of a mesh, which send `bytes` bytes to each neighbor.
pub(crate) fn mesh(sizes: &str, bytes: u64, pes: usize) -> Result<Database, Failure> {
    Ok(workloads::load(&format!("mesh:{sizes},bytes={bytes}"))?.remap(pes as u32))
}

/// A random permutation of the numbers below `count`.
///
/// # Errors
/// If `count` is too large.
pub(crate) fn shuffled(count: usize, seed: u64) -> Result<Vec<u32>, Failure> {
    let flat = topology::flat(count);
    let tasks = workloads::load(&format!("ring:{count}"))?.remap(count as u32);
    Ok(assign(RANDOM, &tasks, &*flat, seed)?.pe_of)
}

/// The same tasks with new numbers: task i becomes `order[i]`.
pub(crate) fn renumbered(tasks: &Database, order: &[u32]) -> Database {
    let end = |end| match end {
        End::Object(object) => End::Object(order[object as usize]),
        End::Pe(pe) => End::Pe(pe),
    };
    let mut tasks = tasks.clone();
    for edge in &mut tasks.edges {
        *edge = Edge { from: end(edge.from), to: end(edge.to), ..*edge };
    }
    tasks.edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    tasks
}

/// A machine, and a mesh of tasks that send a number of bytes to each neighbor: with natural numbers, or with random
/// numbers of PEs and tasks from a seed.
///
/// # Errors
/// If the specs are invalid.
pub(crate) fn numbered(
    machine: &str,
    (sizes, bytes): (&str, u64),
    seed: Option<u64>,
) -> Result<(Arc<dyn Topology>, Database), Failure> {
    let natural = topology::parse(machine)?;
    let pes = natural.pes();
    let tasks = mesh(sizes, bytes, pes)?;
    let Some(seed) = seed else { return Ok((natural, tasks)) };
    let nodes = shuffled(pes, seed)?.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let order = shuffled(pes, seed.wrapping_add(1))?;
    Ok((topology::parse(&format!("{machine}[{nodes}]"))?, renumbered(&tasks, &order)))
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let half = numbers.len() / 2;
    if numbers.len() % 2 == 1 { numbers[half] } else { 0.5 * (numbers[half - 1] + numbers[half]) }
}

/// The times of an 8x8 mesh of tasks on a 4x4x4 torus with one link bandwidth: for every numbering and each of [`ALL`].
struct Swept {
    megabytes_per_second: f64,
    /// With natural numbers.
    natural: [Time; 3],
    times: Vec<[Time; 3]>,
}

impl Swept {
    fn median(&self, which: usize, of: fn(&Time) -> f64) -> f64 {
        median(self.times.iter().map(|times| of(&times[which])).collect())
    }
}

/// A machine, tasks, the task of each block of the mesh, and the placement of the tasks by each of [`ALL`].
type Mapped = (Arc<dyn Topology>, Database, Vec<u32>, Vec<Vec<u32>>);

/// The times with each bandwidth, of messages between neighbors iteration by iteration, or of the events of a recorded
/// run.
fn sweep(
    options: &Options,
    bandwidths: &[f64],
    permutations: u64,
    recorded: Option<&Recorded>,
) -> Result<Vec<Swept>, Failure> {
    let mut mapped = Vec::new();
    for number in 0..=permutations {
        let seed = options.seed.wrapping_add(2 * number);
        let (machine, tasks) = numbered("torus:4x4x4", ("8x8", MESSAGE_BYTES), (number > 0).then_some(seed))?;
        let place = |spec| Ok(assign(spec, &tasks, &*machine, seed)?.pe_of);
        let placements = ALL.into_iter().map(place).collect::<Result<Vec<_>, Failure>>()?;
        let natural = (0..machine.pes() as u32).collect();
        let order = if number > 0 { shuffled(machine.pes(), seed.wrapping_add(1))? } else { natural };
        mapped.push((machine, tasks, order, placements));
    }
    options.sweep(bandwidths.iter().copied(), |megabytes_per_second| {
        let network = format!("flow:bandwidth={megabytes_per_second}e6,latency=0.5e-6,sharing=latency");
        let times = |(machine, tasks, order, placements): &Mapped| {
            let time = |which: usize| {
                let (placement, network) = (&placements[which], network.clone());
                let Some(recorded) = recorded else {
                    let (compute_seconds, iterations) = (COMPUTE_SECONDS, ITERATIONS);
                    let run = Run { machine, network, compute_seconds, iterations, simulated: SIMULATED };
                    return run.time(tasks, placement);
                };
                let places: Vec<u32> = order.iter().map(|&task| placement[task as usize]).collect();
                recorded.time(machine, &network, &places, ITERATIONS)
            };
            let [a, b, c] = [0, 1, 2].map(time);
            Ok([a?, b?, c?])
        };
        let mut times = mapped.iter().map(times).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Swept { megabytes_per_second, natural: times.remove(0), times })
    })
}

/// The recorded run of figures 7 to 9.
fn replay(options: &Options) -> Result<Recorded, Failure> {
    Recorded::of(if options.small { 5 } else { 20 })
}

fn latencies(options: &Options, bandwidths: &[f64]) -> Result<FigureResult, Failure> {
    let ends = [bandwidths[0], bandwidths[bandwidths.len() - 1]];
    let (bandwidths, numberings) = (options.choose(bandwidths, &ends), if options.small { 2 } else { 8 });
    let all = sweep(options, bandwidths, numberings, None)?;
    let replayed = sweep(options, bandwidths, numberings, Some(&replay(options)?))?;
    let microseconds = |swept: &Swept, which| 1e6 * swept.median(which, |time| time.mean_latency_seconds);
    let mut rows = Rows::new([
        ("link_megabytes_per_second", "MB/s"),
        ("topolb_latency_microseconds", "TopoLB us"),
        ("topocentlb_latency_microseconds", "TopoCentLB us"),
        ("random_latency_microseconds", "random us"),
        ("topolb_natural_latency_microseconds", "TopoLB, natural numbers"),
        ("topolb_replay_latency_microseconds", "replay: TopoLB us"),
        ("topocentlb_replay_latency_microseconds", "TopoCentLB us"),
        ("random_replay_latency_microseconds", "random us"),
    ]);
    let natural = |swept: &Swept, which: usize| 1e6 * swept.natural[which].mean_latency_seconds;
    for (swept, replayed) in all.iter().zip(&replayed) {
        let [numbers, replayed] =
            [swept, replayed].map(|it| [0, 1, 2].map(|which| Cell::Number(microseconds(it, which))));
        let all = [Cell::Number(swept.megabytes_per_second)].into_iter().chain(numbers);
        rows.push(all.chain([Cell::Number(natural(swept, 0))]).chain(replayed));
    }
    let names = ["TopoLB", "TopoCentLB", "random"];
    let series = names.into_iter().enumerate().map(|(which, name)| {
        let point = |swept: &Swept| (swept.megabytes_per_second, microseconds(swept, which));
        Series::measured(name, all.iter().map(point).collect::<Vec<_>>())
    });
    let points = all.iter().map(|swept| (swept.megabytes_per_second, natural(swept, 0)));
    let perfect = Series::measured("TopoLB, natural numbers", points.collect::<Vec<_>>());
    let chart = Chart {
        x: Axis::linear("MB/s of a link"),
        y: Axis::linear("microseconds a message takes"),
        series: series.chain([perfect]).collect(),
    };
    let ordered = |how: &str, all: &[Swept]| {
        Criterion::every(
            format!(
                "{how}TopoLB is at most as slow as TopoCentLB, and TopoCentLB as random, at every bandwidth"
            ),
            all,
            |swept| {
                let [a, b, c] = [0, 1, 2].map(|which| microseconds(swept, which));
                (b - a).min(c - b)
            },
            |swept| {
                let [a, b, c] = [0, 1, 2].map(|which| microseconds(swept, which));
                format!("{a:.1}, {b:.1} and {c:.1} us at {} MB/s", swept.megabytes_per_second)
            },
        )
    };
    let criteria = vec![
        ordered("", &all),
        ordered("replay: ", &replayed),
        Criterion::every(
            "random takes at least 2 times TopoLB at every bandwidth, both with natural numbers",
            &all,
            |swept| natural(swept, 2) / natural(swept, 0) - 2.0,
            |swept| {
                let times = natural(swept, 2) / natural(swept, 0);
                format!("{times:.2} times at {} MB/s", swept.megabytes_per_second)
            },
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

fn completion(options: &Options) -> Result<FigureResult, Failure> {
    let bandwidths = [50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 750.0, 1000.0];
    let permutations = if options.small { 3 } else { 12 };
    let bandwidths = options.choose(&bandwidths, &[50.0, 200.0]);
    let all = sweep(options, bandwidths, permutations, None)?;
    let replayed = sweep(options, bandwidths, permutations, Some(&replay(options)?))?;
    let seconds = |swept: &Swept, which| swept.median(which, |time| time.seconds);
    let ratio = |swept: &Swept, which: usize| {
        median(swept.times.iter().map(|times| times[which].seconds / times[0].seconds).collect())
    };
    let mut rows = Rows::new([
        ("link_megabytes_per_second", "MB/s"),
        ("topolb_seconds", "TopoLB s"),
        ("topocentlb_seconds", "TopoCentLB s"),
        ("random_seconds", "random s"),
        ("topocentlb_per_topolb", "TopoCentLB/TopoLB"),
        ("paper_topocentlb_per_topolb", "paper"),
        ("random_per_topolb", "random/TopoLB"),
        ("paper_random_per_topolb_at_least", "paper, at least"),
        ("topolb_replay_seconds", "replay: TopoLB s"),
        ("topocentlb_replay_per_topolb", "TopoCentLB/TopoLB"),
        ("random_replay_per_topolb", "random/TopoLB"),
    ]);
    for (number, (swept, replayed)) in all.iter().zip(&replayed).enumerate() {
        let numbers = [0, 1, 2].map(|which| Cell::Number(seconds(swept, which)));
        rows.push([Cell::Number(swept.megabytes_per_second)].into_iter().chain(numbers).chain([
            Cell::Number(ratio(swept, 1)),
            Cell::Text("1.10 to 1.25".into()),
            Cell::Number(ratio(swept, 2)),
            // Printed for small bandwidths.
            if number == 0 { Cell::Number(2.0) } else { Cell::Nothing },
            Cell::Number(seconds(replayed, 0)),
            Cell::Number(ratio(replayed, 1)),
            Cell::Number(ratio(replayed, 2)),
        ]));
    }
    let series = ["TopoLB", "TopoCentLB", "random"].into_iter().enumerate().map(|(which, name)| {
        let point = |swept: &Swept| (swept.megabytes_per_second, seconds(swept, which));
        Series::measured(name, all.iter().map(point).collect::<Vec<_>>())
    });
    let chart = Chart {
        x: Axis::linear("MB/s of a link"),
        y: Axis::linear("seconds of 2000 iterations"),
        series: series.collect(),
    };
    let criteria = [("", &all), ("replay: ", &replayed)].into_iter().flat_map(|(how, all)| {
        [
            Criterion::every(
                format!(
                    "{how}random takes at least 2 times TopoLB at the lowest bandwidth, both with natural numbers (paper: \
                     possible)"
                ),
                all.first(),
                |swept| swept.natural[2].seconds / swept.natural[0].seconds - 2.0,
                |swept| {
                    let times = swept.natural[2].seconds / swept.natural[0].seconds;
                    format!("{times:.2} times; {:.2} times in the median of other numberings", ratio(swept, 2))
                },
            ),
            Criterion::every(
                format!("{how}TopoCentLB takes 1.0 to 1.6 times TopoLB, median of {permutations} numberings"),
                all,
                |swept| (ratio(swept, 1) - 1.0).min(1.6 - ratio(swept, 1)),
                |swept| format!("{:.2} times at {} MB/s", ratio(swept, 1), swept.megabytes_per_second),
            ),
        ]
    });
    let criteria = criteria.collect();
    Ok(FigureResult { rows, chart, criteria })
}
