//! Which cost tells the time where packets choose their ways: fixed routes or the best ones.
//!
//! Equation 5 of D. Litvinov (On optimization criteria for task assignment in cluster and wide-area computing, 2014)
//! is for a network with fixed routes, and equation 7 for one that routes as well as can be; its section 4 leaves to
//! later what adaptive networks do. Here tasks of SP-MZ exchange their messages on tori and meshes of packets
//! (virtual cut-through), which take the machine's routes, or at each node the link of a shortest way that is free first.

use equipoise_strategies::cost::mcf_optimal::Ways;
use equipoise_strategies::cost::qap::Metric;
use equipoise_strategies::mapping::swap_lb::Cost;

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::mcf_data::{SEEDS, Study, mean, misleads, packets, pearson};
use super::rows::{Cell, Rows};

/// The comparison.
pub(super) const MCF_ADAPTIVE: Figure = Figure {
    name: "mcf-adaptive",
    title: "Fixed and best routes as costs, SP-MZ on networks of packets with fixed and adaptive routing",
    paper: "ours; the future work of Litvinov 2014",
    takes: "half a minute",
    notes: "Packets have 64 KiB; numbers are means over 5 seeds (2 in the small version). Equation 7 may use any way; adaptive \
            packets only take shortest ones. On tori the linear program relieves links by detours around a ring, which no packet \
            makes, so that it takes crowded mappings for good ones; on the mesh detours are few. With f(s, a) = 0 on links that \
            do not lead away from s (`mcf:shortest`) it is the optimum over the ways that packets have.",
    run,
};

/// The machines, of 16 PEs each, with links of 125 MB/s.
const MACHINES: [&str; 3] = ["torus:4x4", "mesh:4x4", "torus:4x2x2"];

/// Both ways to route.
const ROUTINGS: [&str; 2] = ["fixed", "adaptive"];

/// The costs that are compared: equation 5, and equation 7 over all ways and over the shortest ones.
const COSTS: [Cost; 3] = [Cost::Mcf, Cost::Optimal(Ways::Any), Cost::Optimal(Ways::Shortest)];

/// What a cost says about mappings: its correlation with time, and the part of pairs it misleads about.
type Told = [f64; 2];

/// What the costs say about the time of mappings.
struct Judged {
    machine: &'static str,
    routing: &'static str,
    /// By seed, by cost.
    told: Vec<[Told; COSTS.len()]>,
    seconds: Vec<f64>,
    /// (cost, time) by the last.
    points: Vec<(f64, f64)>,
}

/// The means over the seeds of correlations and of parts.
struct Means {
    fixed: Told,
    best: Told,
    shortest: Told,
}

impl Judged {
    fn means(&self) -> Means {
        let of = |cost: usize| {
            [0, 1].map(|number| mean(&self.told.iter().map(|told| told[cost][number]).collect::<Vec<_>>()))
        };
        Means { fixed: of(0), best: of(1), shortest: of(2) }
    }

    fn is_torus(&self) -> bool {
        self.machine.starts_with("torus")
    }
}

/// What the costs say about mappings on a machine, with both ways to route.
fn judged(
    machine: &'static str,
    restarts: usize,
    seeds: impl Iterator<Item = u64>,
) -> anyhow::Result<Vec<Judged>> {
    let studies = ROUTINGS.iter().map(|routing| Study::of(machine, &packets(routing)));
    let studies = studies.collect::<anyhow::Result<Vec<Study>>>()?;
    let none =
        |routing| Judged { machine, routing, told: Vec::new(), seconds: Vec::new(), points: Vec::new() };
    let mut all = ROUTINGS.map(none);
    for seed in seeds {
        // Random mappings, and the ends of searches by hops: what differs in length, and what does not.
        let endings = studies[0].search(Cost::Qap(Metric::Hops), restarts, seed)?;
        let mappings =
            endings.iter().flat_map(|ending| [ending.mappings().swap_remove(0), ending.places.clone()]);
        let mappings: Vec<Vec<u32>> = mappings.collect();
        let mut costs = Vec::new();
        for cost in COSTS {
            let of = |places: &Vec<u32>| cost.of(&studies[0].tasks, &*studies[0].machine, places);
            costs.push(mappings.iter().map(of).collect::<Result<Vec<f64>, _>>()?);
        }
        for (study, judged) in studies.iter().zip(&mut all) {
            let seconds = mappings.iter().map(|places| study.seconds(places));
            let seconds = seconds.collect::<anyhow::Result<Vec<f64>>>()?;
            let pairs =
                |cost: usize| costs[cost].iter().copied().zip(seconds.iter().copied()).collect::<Vec<_>>();
            judged.told.push([0, 1, 2].map(|cost| [pearson(&pairs(cost)), misleads(&pairs(cost))]));
            judged.points.extend(pairs(2));
            judged.seconds.extend(seconds);
        }
    }
    Ok(all.into())
}

fn run(options: &Options) -> anyhow::Result<FigureResult> {
    let machines = options.choose(&MACHINES, &MACHINES[..1]);
    let (restarts, seeds) = if options.small { (4, 2) } else { (40, SEEDS) };
    let swept = options.sweep(machines.iter().copied(), |machine| {
        judged(machine, restarts, (0..seeds).map(|more| options.seed.wrapping_add(more)))
    })?;
    let all: Vec<&Judged> = swept.iter().flatten().collect();
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
    for judged in &all {
        let names = [judged.machine, judged.routing].map(|name| Cell::Text(name.into()));
        let Means { fixed, best, shortest } = judged.means();
        let costs = [fixed, best, shortest].into_iter().flat_map(|[r, part]| [r, 100.0 * part]);
        let numbers = [mean(&judged.seconds)].into_iter().chain(costs);
        rows.push(names.into_iter().chain(numbers.map(Cell::Number)));
    }
    let series = all.iter().map(|judged| {
        let largest = judged.points.iter().map(|point| point.0).fold(0.0, f64::max);
        let points = judged.points.iter().map(move |&(cost, seconds)| (cost / largest, seconds));
        Series::dots(format!("{}, {}", judged.machine, judged.routing), points.collect::<Vec<_>>())
    });
    let chart = Chart {
        x: Axis::linear("seconds of the busiest link with the best shortest routes, over the largest"),
        y: Axis::linear("seconds of 5 steps"),
        series: series.collect(),
    };
    Ok(FigureResult { rows, chart, criteria: criteria(&all) })
}

/// What the issue of equations 5 and 7 comes to, in the mean over the seeds.
fn criteria(all: &[&Judged]) -> Vec<Criterion> {
    let of = |routing: &'static str| all.iter().copied().filter(move |judged| judged.routing == routing);
    let told = |judged: &&Judged| {
        let Means { fixed, best, shortest } = judged.means();
        let machine = judged.machine;
        format!("fixed {:.3}, best {:.3}, best shortest {:.3} on {machine}", fixed[0], best[0], shortest[0])
    };
    let misled = |judged: &&Judged| {
        let Means { fixed, shortest, .. } = judged.means();
        let [fixed, shortest] = [fixed[1], shortest[1]].map(|part| 100.0 * part);
        format!("{shortest:.1} % beside {fixed:.1} % on {}", judged.machine)
    };
    // By how much a correlation is larger than another.
    let ahead = |which: fn(&Means) -> [Told; 2]| {
        move |judged: &&Judged| {
            let [more, less] = which(&judged.means());
            more[0] - less[0]
        }
    };
    let mut criteria = vec![Criterion::every(
        "with adaptive routing, time correlates more with equation 7 than with equation 5 on tori",
        of("adaptive").filter(|judged| judged.is_torus()),
        ahead(|means| [means.best, means.fixed]),
        told,
    )];
    if all.iter().any(|judged| !judged.is_torus()) {
        criteria.push(Criterion::every(
            "and on the mesh",
            of("adaptive").filter(|judged| !judged.is_torus()),
            ahead(|means| [means.best, means.fixed]),
            told,
        ));
    }
    criteria.extend([
        Criterion::every(
            "more with equation 7 on the ways packets take than with equation 5, on every machine",
            of("adaptive"),
            ahead(|means| [means.shortest, means.fixed]),
            told,
        ),
        Criterion::every(
            "and on tori, where there are detours, more than with equation 7 on all ways",
            of("adaptive").filter(|judged| judged.is_torus()),
            ahead(|means| [means.shortest, means.best]),
            told,
        ),
        Criterion::every(
            "equation 7 on the ways packets take misleads less often than equation 5, too",
            of("adaptive"),
            |judged| {
                let Means { fixed, shortest, .. } = judged.means();
                fixed[1] - shortest[1]
            },
            misled,
        ),
        Criterion::every(
            "with fixed routes, more with equation 5 than with equation 7",
            of("fixed"),
            ahead(|means| [means.fixed, means.best]),
            told,
        ),
    ]);
    criteria
}
