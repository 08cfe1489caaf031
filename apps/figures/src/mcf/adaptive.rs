//! The cost that predicts the time with adaptive routing: fixed routes or best routes.
//!
//! Equation 5 of D. Litvinov (On optimization criteria for task assignment in cluster and wide-area computing, 2014)
//! is for a network with fixed routes, and equation 7 for optimal routes; its section 4 leaves adaptive networks to
//! future work. Here tasks of SP-MZ exchange messages on tori and meshes with packets (virtual cut-through). Packets
//! take the machine's routes, or at each node the first free link on a shortest path.

use equipoise_apps::Failure;
use equipoise_strategies::cost::mcf_optimal::Ways;
use equipoise_strategies::cost::qap::Metric;
use equipoise_strategies::mapping::swap_lb::Cost;

use super::data::{SEEDS, Study, packets};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};
use crate::statistics::{mean, misordered, pearson};

/// The comparison.
pub(crate) const MCF_ADAPTIVE: Figure = Figure {
    name: "mcf-adaptive",
    title: "Fixed and best routes as costs, SP-MZ on networks of packets with fixed and adaptive routing",
    paper: "ours; the future work of Litvinov 2014",
    paper_shows: "nothing; adaptive networks are future work",
    we_show: "correlations of fixed and best routes with time on packets",
    why: "adaptive packets take shortest paths only",
    takes: "half a minute",
    notes: "Packets have 64 KiB; numbers are means over 5 seeds (2 in the small version). Equation 7 may use any path; adaptive \
            packets take only shortest paths. On tori its optimum uses detours around a ring, which no packet takes, so \
            equation 7 underestimates the time of mappings with busy links; on the mesh there are few detours. With f(s, a) = 0 \
            on links that do not lead away from s (`mcf:shortest`), equation 7 gives the optimum over the paths of packets; so \
            this is what equation 7 means here, and what the criteria judge.",
    run,
};

/// The machines, of 16 PEs each, with links of 125 MB/s.
const MACHINES: [&str; 3] = ["torus:4x4", "mesh:4x4", "torus:4x2x2"];

/// Both kinds of routing.
const ROUTINGS: [&str; 2] = ["fixed", "adaptive"];

/// The costs that are compared: equation 5, and equation 7 over all paths and over shortest paths.
const COSTS: [Cost; 3] = [Cost::Mcf, Cost::Optimal(Ways::Any), Cost::Optimal(Ways::Shortest)];

/// The accuracy of a cost: its correlation with time, and the fraction of pairs of mappings that it orders wrongly.
type Accuracy = [f64; 2];

/// The accuracy of the costs on a machine.
struct MachineResult {
    machine: &'static str,
    routing: &'static str,
    /// By seed, by cost.
    accuracy: Vec<[Accuracy; COSTS.len()]>,
    seconds: Vec<f64>,
    /// (cost, time) for the last cost.
    points: Vec<(f64, f64)>,
}

/// The mean accuracy of each cost over the seeds.
struct Means {
    fixed: Accuracy,
    best: Accuracy,
    shortest: Accuracy,
}

impl MachineResult {
    fn means(&self) -> Means {
        let of = |cost: usize| {
            [0, 1].map(|number| {
                mean(&self.accuracy.iter().map(|accuracy| accuracy[cost][number]).collect::<Vec<_>>())
            })
        };
        Means { fixed: of(0), best: of(1), shortest: of(2) }
    }

    fn is_torus(&self) -> bool {
        self.machine.starts_with("torus")
    }
}

/// The accuracy of the costs on a machine, with both kinds of routing.
fn result(
    machine: &'static str,
    restarts: usize,
    seeds: impl Iterator<Item = u64>,
) -> Result<Vec<MachineResult>, Failure> {
    let studies = ROUTINGS.iter().map(|routing| Study::of(machine, &packets(routing)));
    let studies = studies.collect::<Result<Vec<Study>, Failure>>()?;
    let none = |routing| MachineResult {
        machine,
        routing,
        accuracy: Vec::new(),
        seconds: Vec::new(),
        points: Vec::new(),
    };
    let mut all = ROUTINGS.map(none);
    for seed in seeds {
        // Random mappings, which differ in hop-bytes, and the results of searches by hops, which hardly do.
        let endings = studies[0].search(Cost::Qap(Metric::Hops), restarts, seed)?;
        let mappings =
            endings.iter().flat_map(|ending| [ending.mappings().swap_remove(0), ending.places.clone()]);
        let mappings: Vec<Vec<u32>> = mappings.collect();
        let mut costs = Vec::new();
        for cost in COSTS {
            let of = |places: &Vec<u32>| cost.of(&studies[0].tasks, &*studies[0].machine, places);
            costs.push(mappings.iter().map(of).collect::<Result<Vec<f64>, _>>()?);
        }
        for (study, result) in studies.iter().zip(&mut all) {
            let seconds = mappings.iter().map(|places| study.seconds(places));
            let seconds = seconds.collect::<Result<Vec<f64>, Failure>>()?;
            let pairs =
                |cost: usize| costs[cost].iter().copied().zip(seconds.iter().copied()).collect::<Vec<_>>();
            result.accuracy.push([0, 1, 2].map(|cost| [pearson(&pairs(cost)), misordered(&pairs(cost))]));
            result.points.extend(pairs(2));
            result.seconds.extend(seconds);
        }
    }
    Ok(all.into())
}

fn run(options: &Options) -> Result<FigureResult, Failure> {
    let machines = options.choose(&MACHINES, &MACHINES[..1]);
    let (restarts, seeds) = if options.small { (4, 2) } else { (40, SEEDS) };
    let swept = options.sweep(machines.iter().copied(), |machine| {
        result(machine, restarts, (0..seeds).map(|more| options.seed.wrapping_add(more)))
    })?;
    let all: Vec<&MachineResult> = swept.iter().flatten().collect();
    let mut rows = Rows::new([
        ("machine", "machine"),
        ("routing", "routing"),
        ("mean_seconds", "mean s"),
        ("fixed_correlation", "fixed routes r"),
        ("fixed_misleads_percent", "misleads %"),
        ("optimal_correlation", "best routes r"),
        ("optimal_misleads_percent", "misleads %"),
        ("shortest_correlation", "best shortest r"),
        ("shortest_misleads_percent", "misleads %"),
    ]);
    for result in &all {
        let names = [result.machine, result.routing].map(|name| Cell::Text(name.into()));
        let Means { fixed, best, shortest } = result.means();
        let costs = [fixed, best, shortest].into_iter().flat_map(|[r, part]| [r, 100.0 * part]);
        let numbers = [mean(&result.seconds)].into_iter().chain(costs);
        rows.push(names.into_iter().chain(numbers.map(Cell::Number)));
    }
    let series = all.iter().map(|result| {
        let largest = result.points.iter().map(|point| point.0).fold(0.0, f64::max);
        let points = result.points.iter().map(move |&(cost, seconds)| (cost / largest, seconds));
        Series::dots(format!("{}, {}", result.machine, result.routing), points.collect::<Vec<_>>())
    });
    let chart = Chart {
        x: Axis::linear(
            "seconds of the busiest link with the best shortest routes, relative to the largest value",
        ),
        y: Axis::linear("seconds of 5 steps"),
        series: series.collect(),
    };
    Ok(FigureResult { rows, chart, criteria: criteria(&all) })
}

/// The criteria that compare equations 5 and 7, by means over the seeds.
fn criteria(all: &[&MachineResult]) -> Vec<Criterion> {
    let of = |routing: &'static str| all.iter().copied().filter(move |result| result.routing == routing);
    let measured = |result: &&MachineResult| {
        let Means { fixed, best, shortest } = result.means();
        let machine = result.machine;
        format!("fixed {:.3}, best {:.3}, best shortest {:.3} on {machine}", fixed[0], best[0], shortest[0])
    };
    let measured_order = |result: &&MachineResult| {
        let Means { fixed, shortest, .. } = result.means();
        let [fixed, shortest] = [fixed[1], shortest[1]].map(|part| 100.0 * part);
        format!("equation 7 {shortest:.1} %, equation 5 {fixed:.1} % on {}", result.machine)
    };
    // The difference between two correlations.
    let ahead = |which: fn(&Means) -> [Accuracy; 2]| {
        move |result: &&MachineResult| {
            let [more, less] = which(&result.means());
            more[0] - less[0]
        }
    };
    vec![
        Criterion::every(
            "with adaptive routing, time correlates more with equation 7 over shortest paths than with equation 5",
            of("adaptive"),
            ahead(|means| [means.shortest, means.fixed]),
            measured,
        ),
        Criterion::every(
            "with adaptive routing, time correlates more with equation 7 over shortest than over all paths on tori",
            of("adaptive").filter(|result| result.is_torus()),
            ahead(|means| [means.shortest, means.best]),
            measured,
        ),
        Criterion::every(
            "with adaptive routing, equation 7 over shortest paths misleads less often than equation 5",
            of("adaptive"),
            |result| {
                let Means { fixed, shortest, .. } = result.means();
                fixed[1] - shortest[1]
            },
            measured_order,
        ),
        Criterion::every(
            "with fixed routes, time correlates more with equation 5 than with equation 7",
            of("fixed"),
            ahead(|means| [means.fixed, means.best]),
            measured,
        ),
    ]
}
