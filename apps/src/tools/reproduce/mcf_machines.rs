//! When each cost of a mapping misleads: the experiment of Litvinov's table 1 on a 3D torus, a fat-tree and a
//! dragonfly.
//!
//! The paper's method (D. Litvinov, 2014, section 3) with 64 tasks of SP-MZ class D on machines of 64 PEs, and its own
//! of 16. Mappings are the ends of searches that minimise bytes times hops and of searches that minimise the busiest
//! link, half of each, so that neither cost judges only mappings that are good by its own measure; and some at random. A
//! cost misleads about two mappings when the one that is cheaper takes longer.

use equipoise_strategies::cost::qap::Metric;
use equipoise_strategies::mapping::swap_lb::Cost;

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::mcf_data::{SEEDS, Study, mean, misleads, pearson};
use super::rows::{Cell, Rows};

/// The experiment on other machines.
pub(super) const MCF_MACHINES: Figure = Figure {
    name: "mcf-machines",
    title: "How often costs mislead, SP-MZ on networks of supercomputers",
    paper: "ours; the method of Litvinov 2014, table 1",
    takes: "20 seconds",
    notes: "Numbers are means over 5 seeds (2 in the small version). A cost misleads about two mappings when the one that it says \
            is cheaper takes longer; of two that cost the same it tells nothing, which counts half, so guessing misleads about \
            half of them. Good mappings are those at which searches end, half of them by hops and half by the busiest link. On \
            the grid, and on the fat-tree with as much bandwidth at every level, the busiest link of nearly all good mappings is \
            that of the host whose task sends most, so they cost the same; those that differ lie near the line, so the busiest \
            link correlates more with time, but distances mislead about fewer pairs. Elsewhere distances mislead most where \
            links differ (the tapered fat-tree): they do not see which link is full. Where all mappings have the same distances \
            there is no correlation.",
    run,
};

/// Machines of 64 PEs beside the paper's of 16: a torus, a fat-tree with as much bandwidth at every level and one with a
/// quarter of it at each, a dragonfly with few global links, and a mesh.
const MACHINES: [(&str, &str); 6] = [
    (GRID, "platform:litvinov-grid"),
    ("3D torus", "torus:4x4x4"),
    (FAT_TREE, "fattree:4:4:4/500e6:250e6:125e6"),
    ("tapered fat-tree", "fattree:4:4:4/125e6:125e6:125e6"),
    ("dragonfly", "dragonfly:groups=8,routers=4,hosts=2"),
    ("2D mesh", "mesh:8x8"),
];

/// The paper's machine, and the one with as much bandwidth at every level: there the hosts' own links are the busiest.
const GRID: &str = "grid";
const FAT_TREE: &str = "fat-tree";

/// The costs that are compared, distances first.
const COSTS: [&str; 4] = ["qap:hops", "qap:bandwidth", "qap:rtt", "mcf"];

/// The number of the busiest link among them.
const MCF: usize = 3;

/// What a cost says about mappings: its correlation with time, and the part of pairs it misleads about.
type Told = [f64; 2];

/// What the costs say about mappings on a machine.
struct Judged {
    machine: &'static str,
    which: &'static str,
    /// By seed, by cost.
    told: Vec<[Told; COSTS.len()]>,
    /// How many mappings there are of all seeds.
    mappings: usize,
}

impl Judged {
    /// The means over the seeds, by cost; over those with which mappings differ, in cost for correlations and in time.
    fn means(&self) -> [Told; COSTS.len()] {
        let of = |cost: usize, number: usize| {
            let all = self.told.iter().map(|told| told[cost][number]);
            mean(&all.filter(|number| number.is_finite()).collect::<Vec<_>>())
        };
        [0, 1, 2, MCF].map(|cost| [0, 1].map(|number| of(cost, number)))
    }

    /// With how many seeds the busiest link misleads more than a distance.
    fn worse(&self) -> usize {
        self.told.iter().filter(|told| told[MCF][1] > least(told)).count()
    }
}

/// How often the distance misleads that does so least.
fn least(told: &[Told; COSTS.len()]) -> f64 {
    told[..MCF].iter().map(|told| told[1]).fold(1.0, f64::min)
}

/// What the costs say about these mappings.
fn told(study: &Study, mappings: &[Vec<u32>]) -> anyhow::Result<[Told; COSTS.len()]> {
    let seconds = mappings.iter().map(|places| study.seconds(places)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut all = [[0.0; 2]; COSTS.len()];
    for (name, told) in COSTS.iter().zip(&mut all) {
        let cost: Cost = name.parse().map_err(anyhow::Error::msg)?;
        let costs = mappings.iter().map(|places| cost.of(&study.tasks, &*study.machine, places));
        let costs = costs.collect::<Result<Vec<f64>, _>>()?;
        let pairs: Vec<(f64, f64)> = costs.into_iter().zip(seconds.iter().copied()).collect();
        *told = [pearson(&pairs), misleads(&pairs)];
    }
    Ok(all)
}

/// What the costs say about random and about good mappings on a machine.
fn judged(
    (name, machine): (&'static str, &str),
    restarts: usize,
    seeds: impl Iterator<Item = u64>,
) -> anyhow::Result<[Judged; 2]> {
    let study = Study::of(machine, "flow")?;
    let mut both =
        ["random", "good"].map(|which| Judged { machine: name, which, told: Vec::new(), mappings: 0 });
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
        for (judged, mappings) in both.iter_mut().zip([random, good]) {
            judged.told.push(told(&study, &mappings)?);
            judged.mappings += mappings.len();
        }
    }
    Ok(both)
}

fn run(options: &Options) -> anyhow::Result<FigureResult> {
    let machines = options.choose(&MACHINES, &MACHINES[..2]);
    let (restarts, seeds) = if options.small { (8, 2) } else { (50, SEEDS) };
    let swept = options.sweep_labelled(machines.iter().map(|machine| (machine.0, *machine)), |machine| {
        judged(machine, restarts, (0..seeds).map(|more| options.seed.wrapping_add(more)))
    })?;
    let all: Vec<&Judged> = swept.iter().flatten().collect();
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
    for judged in &all {
        let names = [judged.machine, judged.which].map(|name| Cell::Text(name.into()));
        let numbers = judged.means().into_iter().flat_map(|[r, part]| [r, 100.0 * part].map(Cell::Number));
        rows.push(names.into_iter().chain([Cell::Count(judged.mappings as u64)]).chain(numbers));
    }
    let good = || all.iter().filter(|judged| judged.which == "good" && judged.means()[MCF][1].is_finite());
    let series = COSTS.iter().enumerate().map(|(number, cost)| {
        let part = |judged: &&Judged| 100.0 * judged.means()[number][1];
        let points = good().enumerate().map(|(at, judged)| (at as f64 + 1.0, part(judged)));
        Series::measured(*cost, points.collect::<Vec<_>>())
    });
    let names: Vec<&str> = machines.iter().map(|machine| machine.0).collect();
    let chart = Chart {
        x: Axis::linear(names.join(", ")),
        y: Axis::linear("% of pairs of good mappings that a cost misleads about"),
        series: series.collect(),
    };
    let measured = |judged: &&&Judged| {
        let means = judged.means();
        let [link, distance] = [means[MCF][1], least(&means)].map(|part| 100.0 * part);
        let (worse, seeds, machine) = (judged.worse(), judged.told.len(), judged.machine);
        format!("{link:.1} % beside {distance:.1} % on the {machine}, more with {worse} of {seeds} seeds")
    };
    let slack = |judged: &&&Judged| {
        let means = judged.means();
        least(&means) - means[MCF][1]
    };
    let is_full = |judged: &&&Judged| [GRID, FAT_TREE].contains(&judged.machine);
    let criteria = vec![
        Criterion::every(
            "time correlates more with the busiest link than with any distance, over random and over good mappings",
            &all,
            |judged| {
                let means = judged.means();
                let others = means[..MCF].iter().map(|told| told[0]).filter(|r| r.is_finite());
                means[MCF][0] - others.fold(-1.0, f64::max)
            },
            |judged| {
                let [hops, bandwidth, rtt, link] = judged.means().map(|told| told[0]);
                let (machine, which) = (judged.machine, judged.which);
                format!("{link:.3} beside {hops:.3}, {bandwidth:.3} and {rtt:.3} on the {machine}, {which}")
            },
        ),
        Criterion::every(
            "it misleads less about good mappings than any distance in the mean, where hosts' links are not the busiest",
            good().filter(|judged| !is_full(judged)),
            slack,
            measured,
        ),
        Criterion::every(
            "with every seed",
            good().filter(|judged| !is_full(judged)),
            |judged| -(judged.worse() as f64),
            measured,
        ),
        Criterion::every(
            "and on the fat-tree and the paper's grid, in the mean",
            good().filter(is_full),
            slack,
            measured,
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}
