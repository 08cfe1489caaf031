//! When each cost of a mapping misleads: the experiment of Litvinov's table 1 on a 3D torus, a fat-tree and a
//! dragonfly.
//!
//! The paper's method (D. Litvinov, 2014, section 3) with 64 tasks of SP-MZ class D on machines of 64 PEs, and its own
//! of 16. Mappings are the ends of searches that minimise bytes times hops and of searches that minimise the busiest
//! link, half of each, so that neither cost judges only mappings that are good by its own measure; and some at random. A cost misleads about two mappings when the one that is cheaper takes longer.

use equipoise_strategies::cost::qap::Metric;
use equipoise_strategies::mapping::swap_lb::Cost;

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::mcf_data::{Study, misleads, pearson};
use super::rows::{Cell, Rows};

/// The experiment on other machines.
pub(super) const MCF_MACHINES: Figure = Figure {
    name: "mcf-machines",
    title: "How often costs mislead, SP-MZ on networks of supercomputers",
    paper: "ours; the method of Litvinov 2014, table 1",
    takes: "a minute",
    notes: "A cost misleads about two mappings when the one that it says is cheaper takes longer; of two that cost the same it \
            tells nothing, which counts half, so guessing misleads about half of them. Good mappings are those at which \
            searches end, half of them by hops and half by the busiest link. On the grid the busiest link of nearly all good \
            mappings is that of the host whose task sends most, so they cost the same; those that differ lie near the \
            line (correlation 0.91), but distances mislead about fewer pairs. Elsewhere distances mislead most where links \
            differ (fat-trees): they do not see which link is full. Where all mappings have the same distances there is no \
            correlation.",
    run,
};

/// The machines: the paper's grid, a torus whose links are all alike, fat-trees that lose half of the bandwidth and three
/// quarters of it at each level, a dragonfly with few global links, and a mesh.
const MACHINES: [(&str, &str); 6] = [
    ("grid", "platform:litvinov-grid"),
    ("3D torus", "torus:4x4x4"),
    ("fat-tree", "fattree:4:4:4/500e6:250e6:125e6"),
    ("tapered fat-tree", "fattree:4:4:4/125e6:125e6:125e6"),
    ("dragonfly", "dragonfly:groups=8,routers=4,hosts=2"),
    ("2D mesh", "mesh:8x8"),
];

/// The costs that are compared.
const COSTS: [&str; 4] = ["qap:hops", "qap:bandwidth", "qap:rtt", "mcf"];

/// What a cost says about mappings on a machine.
struct Judged {
    machine: &'static str,
    which: &'static str,
    mappings: usize,
    /// By cost: its correlation with time, and the part of pairs it misleads about.
    costs: Vec<(f64, f64)>,
}

/// (cost, time) of mappings, by cost.
fn judged(study: &Study, mappings: &[Vec<u32>]) -> anyhow::Result<Vec<Vec<(f64, f64)>>> {
    let mut costs = vec![Vec::new(); COSTS.len()];
    for places in mappings {
        let seconds = study.seconds(places)?;
        for (name, pairs) in COSTS.iter().zip(&mut costs) {
            let cost: Cost = name.parse().map_err(anyhow::Error::msg)?;
            pairs.push((cost.of(&study.tasks, &*study.machine, places)?, seconds));
        }
    }
    Ok(costs)
}

fn run(options: &Options) -> anyhow::Result<FigureResult> {
    let machines = options.choose(&MACHINES, &MACHINES[..2]);
    let restarts = if options.small { 8 } else { 100 };
    let swept = options.sweep(machines.iter().map(|machine| machine.0), |name| {
        let found = machines.iter().find(|machine| machine.0 == name);
        let &(name, machine) = found.ok_or_else(|| anyhow::anyhow!("there is no machine {name}"))?;
        let study = Study::of(machine, "flow")?;
        let mut random = Vec::new();
        let mut good = Vec::new();
        for cost in [Cost::Qap(Metric::Hops), Cost::Mcf] {
            for ending in study.search(cost, restarts, options.seed)? {
                if random.len() < restarts {
                    random.push(ending.mappings().swap_remove(0));
                }
                good.push(ending.places);
            }
        }
        let of = |which, mappings: &[Vec<u32>]| {
            let costs = judged(&study, mappings)?;
            let costs = costs.iter().map(|pairs| (pearson(pairs), misleads(pairs))).collect();
            Ok::<_, anyhow::Error>(Judged { machine: name, which, mappings: mappings.len(), costs })
        };
        Ok([of("random", &random)?, of("good", &good)?])
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
    for Judged { machine, which, mappings, costs } in &all {
        let names = [*machine, *which].map(|name| Cell::Text(name.into()));
        let numbers = costs.iter().flat_map(|&(r, part)| [Cell::Number(r), Cell::Number(100.0 * part)]);
        rows.push(names.into_iter().chain([Cell::Count(*mappings as u64)]).chain(numbers));
    }
    let good = || all.iter().filter(|judged| judged.which == "good");
    let series = COSTS.iter().enumerate().map(|(number, cost)| {
        let points = good().enumerate().map(|(at, judged)| (at as f64 + 1.0, 100.0 * judged.costs[number].1));
        Series::measured(*cost, points.collect::<Vec<_>>())
    });
    let names: Vec<&str> = machines.iter().map(|machine| machine.0).collect();
    let chart = Chart {
        x: Axis::linear(names.join(", ")),
        y: Axis::linear("% of pairs of good mappings that a cost misleads about"),
        series: series.collect(),
    };
    let best = |judged: &Judged| judged.costs[..3].iter().map(|cost| cost.1).fold(1.0, f64::min);
    let tells = |criterion: &str, is_grid: bool| {
        Criterion::every(
            criterion,
            good().filter(|judged| (judged.machine == "grid") == is_grid && judged.costs[3].1.is_finite()),
            |judged| best(judged) - judged.costs[3].1,
            |judged| {
                let [link, distance] = [judged.costs[3].1, best(judged)].map(|part| 100.0 * part);
                format!("{link:.1} % beside {distance:.1} % on the {}", judged.machine)
            },
        )
    };
    let criteria = vec![
        tells(
            "the busiest link misleads less about good mappings than any distance, on every network of a supercomputer",
            false,
        ),
        tells("and on the paper's grid", true),
    ];
    Ok(FigureResult { rows, chart, criteria })
}
