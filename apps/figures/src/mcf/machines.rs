//! The accuracy of costs: the experiment of Litvinov's table 1 on a 3D torus, a fat-tree and a dragonfly.
//!
//! The method of the paper (D. Litvinov, 2014, section 3) with 64 tasks of SP-MZ class D on machines of 64 PEs, and with
//! its own machine of 16 PEs. Half of the mappings are results of searches that minimise bytes times hops, half of
//! searches that minimise the busiest link, so that neither cost is evaluated only on mappings that it prefers; others are
//! random. A cost misleads about two mappings if the cheaper one takes longer.

use equipoise_apps::Failure;
use equipoise_strategies::cost::qap::Metric;
use equipoise_strategies::mapping::swap_lb::Cost;

use super::data::{SEEDS, Study};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};
use crate::statistics::{mean, misordered, pearson};

/// The experiment on other machines.
pub(crate) const MCF_MACHINES: Figure = Figure {
    name: "mcf-machines",
    title: "How often costs mislead, SP-MZ on networks of supercomputers",
    paper: "ours; the method of Litvinov 2014, table 1",
    paper_shows: "nothing; its machines are small",
    we_show: "how often costs mislead on networks of supercomputers",
    why: "on networks with many paths the busiest link decides less",
    takes: "20 seconds",
    notes: "Numbers are means over 5 seeds (2 in the small version). A cost misleads about two mappings if the cheaper one takes \
            longer; a pair with equal costs counts half, so guessing misleads about half of the pairs. Good mappings are \
            results of searches, half by hops and half by the busiest link. On the grid, and on the fat-tree with equal \
            bandwidth at every level, the busiest link of nearly all good mappings is that of the host whose task sends most, so \
            their costs are equal. The other mappings have times proportional to this cost, so the busiest link correlates more with time, but distances \
            mislead about fewer pairs. Elsewhere distances mislead most on machines with different links (the tapered \
            fat-tree), because they ignore the load of links. If all mappings have equal distances, there is no correlation.",
    run,
};

/// The paper's machine of 16 PEs, and machines of 64 PEs: a torus, a fat-tree with equal bandwidth at every level, a
/// tapered fat-tree, a dragonfly with few global links, and a mesh.
const MACHINES: [(&str, &str); 6] = [
    (GRID, "platform:litvinov-grid"),
    ("3D torus", "torus:4x4x4"),
    (FAT_TREE, "fattree:4:4:4/500e6:250e6:125e6"),
    ("tapered fat-tree", "fattree:4:4:4/125e6:125e6:125e6"),
    ("dragonfly", "dragonfly:groups=8,routers=4,hosts=2"),
    ("2D mesh", "mesh:8x8"),
];

/// The machines on which the links of hosts are the busiest.
const GRID: &str = "grid";
const FAT_TREE: &str = "fat-tree";

/// The costs that are compared, distances first.
const COSTS: [&str; 4] = ["qap:hops", "qap:bandwidth", "qap:rtt", "mcf"];

/// The index of the busiest link in [`COSTS`].
const MCF: usize = 3;

/// The accuracy of a cost: its correlation with time, and the fraction of pairs of mappings that it misleads about.
type Accuracy = [f64; 2];

/// The accuracy of the costs on a machine.
struct MachineResult {
    machine: &'static str,
    which: &'static str,
    /// By seed, by cost.
    accuracy: Vec<[Accuracy; COSTS.len()]>,
    /// The number of mappings of all seeds.
    mappings: usize,
}

impl MachineResult {
    /// The means over the seeds, by cost, without seeds for which the accuracy is undefined.
    fn means(&self) -> [Accuracy; COSTS.len()] {
        let of = |cost: usize, number: usize| {
            let all = self.accuracy.iter().map(|accuracy| accuracy[cost][number]);
            mean(&all.filter(|number| number.is_finite()).collect::<Vec<_>>())
        };
        [0, 1, 2, MCF].map(|cost| [0, 1].map(|number| of(cost, number)))
    }

    /// The number of seeds for which the busiest link misleads more than the best distance.
    fn worse(&self) -> usize {
        self.accuracy.iter().filter(|accuracy| accuracy[MCF][1] > least(accuracy)).count()
    }
}

/// The fraction of pairs that the best distance misleads about.
fn least(accuracy: &[Accuracy; COSTS.len()]) -> f64 {
    accuracy[..MCF].iter().map(|accuracy| accuracy[1]).fold(1.0, f64::min)
}

/// The accuracy of the costs for these mappings.
fn accuracy(study: &Study, mappings: &[Vec<u32>]) -> Result<[Accuracy; COSTS.len()], Failure> {
    let seconds = mappings.iter().map(|places| study.seconds(places)).collect::<Result<Vec<_>, Failure>>()?;
    let mut all = [[0.0; 2]; COSTS.len()];
    for (name, accuracy) in COSTS.iter().zip(&mut all) {
        let cost: Cost = name.parse().map_err(Failure::bug)?;
        let costs = mappings.iter().map(|places| cost.of(&study.tasks, &*study.machine, places));
        let costs = costs.collect::<Result<Vec<f64>, _>>()?;
        let pairs: Vec<(f64, f64)> = costs.into_iter().zip(seconds.iter().copied()).collect();
        *accuracy = [pearson(&pairs), misordered(&pairs)];
    }
    Ok(all)
}

/// The accuracy of the costs for random and for good mappings on a machine.
fn result(
    (name, machine): (&'static str, &str),
    restarts: usize,
    seeds: impl Iterator<Item = u64>,
) -> Result<[MachineResult; 2], Failure> {
    let study = Study::of(machine, "flow")?;
    let mut both = ["random", "good"].map(|which| MachineResult {
        machine: name,
        which,
        accuracy: Vec::new(),
        mappings: 0,
    });
    for seed in seeds {
        let (mut random, mut good) = (Vec::new(), Vec::new());
        for cost in [Cost::Qap(Metric::Hops), Cost::Mcf] {
            for ending in study.search(cost, restarts, seed)? {
                if random.len() < restarts {
                    random.push(ending.mappings().swap_remove(0));
                }
                good.push(ending.places);
            }
        }
        for (result, mappings) in both.iter_mut().zip([random, good]) {
            result.accuracy.push(accuracy(&study, &mappings)?);
            result.mappings += mappings.len();
        }
    }
    Ok(both)
}

fn run(options: &Options) -> Result<FigureResult, Failure> {
    let machines = options.choose(&MACHINES, &MACHINES[..2]);
    let (restarts, seeds) = if options.small { (8, 2) } else { (50, SEEDS) };
    let swept = options.sweep_labelled(machines.iter().map(|machine| (machine.0, *machine)), |machine| {
        result(machine, restarts, (0..seeds).map(|more| options.seed.wrapping_add(more)))
    })?;
    let all: Vec<&MachineResult> = swept.iter().flatten().collect();
    let mut columns = vec![
        ("machine".to_string(), "machine".to_string()),
        ("mappings".to_string(), "mappings".to_string()),
        ("count".to_string(), "count".to_string()),
    ];
    for cost in COSTS {
        let name = cost.replace(':', "_");
        columns.push((format!("{name}_correlation"), format!("{cost} r")));
        columns.push((format!("{name}_misleads_percent"), "misleads %".to_string()));
    }
    let mut rows = Rows::new(columns);
    for result in &all {
        let names = [result.machine, result.which].map(|name| Cell::Text(name.into()));
        let numbers = result.means().into_iter().flat_map(|[r, part]| [r, 100.0 * part].map(Cell::Number));
        rows.push(names.into_iter().chain([Cell::Count(result.mappings as u64)]).chain(numbers));
    }
    let good = || all.iter().filter(|result| result.which == "good" && result.means()[MCF][1].is_finite());
    let series = COSTS.iter().enumerate().map(|(number, cost)| {
        let part = |result: &&MachineResult| 100.0 * result.means()[number][1];
        let points = good().enumerate().map(|(at, result)| (at as f64 + 1.0, part(result)));
        Series::measured(*cost, points.collect::<Vec<_>>())
    });
    let names: Vec<&str> = machines.iter().map(|machine| machine.0).collect();
    let chart = Chart {
        x: Axis::linear(names.join(", ")),
        y: Axis::linear("% of pairs of good mappings that a cost misleads about"),
        series: series.collect(),
    };
    Ok(FigureResult { rows, chart, criteria: criteria(&all) })
}

/// The criteria.
fn criteria(all: &[&MachineResult]) -> Vec<Criterion> {
    let good = || all.iter().filter(|result| result.which == "good" && result.means()[MCF][1].is_finite());
    let measured = |result: &&&MachineResult| {
        let means = result.means();
        let [link, distance] = [means[MCF][1], least(&means)].map(|part| 100.0 * part);
        let (worse, seeds, machine) = (result.worse(), result.accuracy.len(), result.machine);
        format!("{link:.1} %, distance {distance:.1} % on the {machine}, more with {worse} of {seeds} seeds")
    };
    let slack = |result: &&&MachineResult| {
        let means = result.means();
        least(&means) - means[MCF][1]
    };
    let is_full = |result: &&&MachineResult| [GRID, FAT_TREE].contains(&result.machine);
    vec![
        Criterion::every(
            "time correlates more with the busiest link than with any distance, over random and over good mappings",
            all,
            |result| {
                let means = result.means();
                let others = means[..MCF].iter().map(|accuracy| accuracy[0]).filter(|r| r.is_finite());
                means[MCF][0] - others.fold(-1.0, f64::max)
            },
            |result| {
                let [hops, bandwidth, rtt, link] = result.means().map(|accuracy| accuracy[0]);
                let (machine, which) = (result.machine, result.which);
                format!(
                    "{link:.3}, distances {hops:.3}, {bandwidth:.3} and {rtt:.3} on the {machine}, {which}"
                )
            },
        ),
        Criterion::every(
            "the busiest link misleads less about good mappings than any distance, except where hosts' links are the busiest",
            good().filter(|result| !is_full(result)),
            slack,
            measured,
        ),
        Criterion::every(
            "the same holds with every seed",
            good().filter(|result| !is_full(result)),
            |result| -(result.worse() as f64),
            measured,
        ),
        Criterion::every(
            "the same holds on the fat-tree and the paper's grid, on average over the seeds",
            good().filter(is_full),
            slack,
            measured,
        )
        .because("there the hosts' own links are the busiest for every good mapping, so the cost hardly tells them apart"),
    ]
}
