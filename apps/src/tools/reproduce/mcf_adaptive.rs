//! Which cost tells the time where packets choose their ways: fixed routes or the best ones.
//!
//! Equation 5 of D. Litvinov (On optimization criteria for task assignment in cluster and wide-area computing, 2014)
//! is for a network with fixed routes, and equation 7 for one that routes as well as can be; its section 4 leaves to
//! later what adaptive networks do. Here tasks of SP-MZ exchange their messages on tori and meshes of packets
//! (virtual cut-through), which take the machine's routes, or at each node the link of a shortest way that is free first.

use anyhow::Context as _;
use equipoise_strategies::cost::mcf;
use equipoise_strategies::cost::mcf_optimal::{self, Ways};
use equipoise_strategies::cost::qap::Metric;
use equipoise_strategies::mapping::swap_lb::Cost;

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::mcf_data::{Study, misleads, pearson};
use super::rows::{Cell, Rows};

/// The comparison.
pub(super) const MCF_ADAPTIVE: Figure = Figure {
    name: "mcf-adaptive",
    title: "Fixed and best routes as costs, SP-MZ on networks of packets with fixed and adaptive routing",
    paper: "ours; the future work of Litvinov 2014",
    takes: "a minute",
    notes: "Packets have 64 KiB. Equation 7 may use any way; adaptive packets only take shortest ones. On tori the linear program \
            relieves links by detours around a ring, which no packet makes, so that it takes crowded mappings for good ones: \
            over all ways its correlation is no better than that of equation 5. With f(s, a) = 0 on links that do not \
            lead away from s (`mcf:shortest`) it is the optimum over the ways that packets have, and tells their time better than \
            equation 5 on all three machines. On the mesh, where detours are few, either form of equation 7 does.",
    run,
};

/// The machines, of 16 PEs each, with links of 125 MB/s.
const MACHINES: [(&str, &str); 3] =
    [("torus:4x4", "torus:4x4"), ("mesh:4x4", "mesh:4x4"), ("torus:4x2x2", "torus:4x2x2")];

/// Both ways to route.
const ROUTINGS: [&str; 2] = ["fixed", "adaptive"];

/// How equation 5 and equation 7 do: correlation with time, and the part of pairs of mappings they mislead about.
struct Judged {
    machine: &'static str,
    routing: &'static str,
    fixed: (f64, f64),
    best: (f64, f64),
    /// Equation 7 on shortest ways only.
    shortest: (f64, f64),
    mean_seconds: f64,
    /// (cost, time) by the last.
    points: Vec<(f64, f64)>,
}

fn run(options: &Options) -> anyhow::Result<FigureResult> {
    let machines = options.choose(&MACHINES, &MACHINES[..1]);
    let restarts = if options.small { 8 } else { 60 };
    let swept = options.sweep(machines.iter().map(|machine| machine.0), |name| {
        let found = machines.iter().find(|machine| machine.0 == name);
        let &(name, machine) = found.ok_or_else(|| anyhow::anyhow!("there is no machine {name}"))?;
        let studies = ROUTINGS.map(|routing| {
            Study::of(machine, &format!("packet:size=65536,bandwidth=125e6,latency=0,routing={routing}"))
        });
        let [fixed, adaptive] = studies;
        let studies = [fixed?, adaptive?];
        // Random mappings, and the ends of searches by hops: what differs in length, and what does not.
        let endings = studies[0].search(Cost::Qap(Metric::Hops), restarts, options.seed)?;
        let mappings =
            endings.iter().flat_map(|ending| [ending.mappings().swap_remove(0), ending.places.clone()]);
        let (mut eq5, mut eq7, mut shortest) = (Vec::new(), Vec::new(), Vec::new());
        let mut times = [Vec::new(), Vec::new()];
        for places in mappings {
            let study = &studies[0];
            let solve = |ways| {
                mcf_optimal::solve(&study.tasks, &*study.machine, &places, ways)
                    .with_context(|| format!("there are no best routes on {name}"))
            };
            eq5.push(mcf::cost(&study.tasks, &*study.machine, &places));
            eq7.push(solve(Ways::Any)?.seconds);
            shortest.push(solve(Ways::Shortest)?.seconds);
            for (study, times) in studies.iter().zip(&mut times) {
                times.push(study.seconds(&places)?);
            }
        }
        let judged = |(routing, times): (&'static str, &Vec<f64>)| {
            let pairs = |costs: &[f64]| costs.iter().copied().zip(times.iter().copied()).collect::<Vec<_>>();
            let told = |costs: &[f64]| (pearson(&pairs(costs)), misleads(&pairs(costs)));
            let mean_seconds = times.iter().sum::<f64>() / times.len() as f64;
            let points = pairs(&shortest);
            let (fixed, best, shortest) = (told(&eq5), told(&eq7), told(&shortest));
            Judged { machine: name, routing, fixed, best, shortest, mean_seconds, points }
        };
        Ok(ROUTINGS.into_iter().zip(&times).map(judged).collect::<Vec<_>>())
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
    for Judged { machine, routing, fixed, best, shortest, mean_seconds, .. } in &all {
        let names = [*machine, *routing].map(|name| Cell::Text(name.into()));
        let percent = |judged: &(f64, f64)| [judged.0, 100.0 * judged.1];
        let costs = [fixed, best, shortest].into_iter().flat_map(percent);
        let numbers = [*mean_seconds].into_iter().chain(costs);
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
    let of = |routing: &'static str| all.iter().filter(move |judged| judged.routing == routing);
    let told = |judged: &&&Judged| {
        let Judged { machine, fixed, best, shortest, .. } = judged;
        format!("fixed {:.3}, best {:.3}, best shortest {:.3} on {machine}", fixed.0, best.0, shortest.0)
    };
    let misled = |judged: &&&Judged| {
        let [fixed, shortest] = [judged.fixed.1, judged.shortest.1].map(|part| 100.0 * part);
        format!("{shortest:.1} % beside {fixed:.1} % on {}", judged.machine)
    };
    let criteria = vec![
        Criterion::every(
            "with adaptive routing, time correlates more with equation 7 on the ways packets take than with equation 5",
            of("adaptive"),
            |judged| judged.shortest.0 - judged.fixed.0,
            told,
        ),
        Criterion::every(
            "and on tori, where there are detours, more than with equation 7 on all ways",
            of("adaptive").filter(|judged| judged.machine.starts_with("torus")),
            |judged| judged.shortest.0 - judged.best.0,
            told,
        ),
        Criterion::every(
            "equation 7 on the ways packets take misleads less often than equation 5, too",
            of("adaptive"),
            |judged| judged.fixed.1 - judged.shortest.1,
            misled,
        ),
        Criterion::every(
            "with fixed routes, more with equation 5",
            of("fixed"),
            |judged| judged.fixed.0 - judged.best.0,
            told,
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}
