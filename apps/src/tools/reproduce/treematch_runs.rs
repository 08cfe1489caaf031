//! Figures 4, 6 to 8 and 10 of the paper on TreeMatch in Charm++: programs that balance themselves.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load balancing
//! in Charm++ with TreeMatch", Cluster 2013, section VI: LeanMD, kNeighbor and Stencil3D on 64 cores of
//! PlaFRIM, 8 nodes of 2 sockets with 4 cores each, linked by InfiniBand QDR. Here they run as they are on
//! a simulated machine: 3.2e9 bytes per second and node, 12e9 per socket, 6e9 per core. A strategy takes
//! as long as in the paper, where that is printed.
//!
//! After load balancing every iteration is like the one before. So few are run, and the rest of
//! [`ITERATIONS`] takes what the last ones did.

use equipoise::{Config, Machine, Report};

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::rows::{Cell, Rows};
use crate::stencil::{Extent, Rules};
use crate::{kneighbor, leanmd, stencil3d};

/// Figure 4.
pub(super) const TREEMATCH_4: Figure = Figure {
    name: "treematch-4",
    title: "LeanMD's 960 chares on 64 cores",
    paper: "Jeannot et al. 2013, figure 4",
    takes: "a minute",
    notes: PROGRAMS,
    run: leanmd,
};

/// Figure 6.
pub(super) const TREEMATCH_6: Figure = Figure {
    name: "treematch-6",
    title: "kNeighbor, 64 chares on 64 cores, messages of 1 MB",
    paper: "Jeannot et al. 2013, figure 6",
    takes: "20 seconds",
    notes: PROGRAMS,
    run: |options| kneighbor(options, 64),
};

/// Figure 7.
pub(super) const TREEMATCH_7: Figure = Figure {
    name: "treematch-7",
    title: "kNeighbor, 128 chares on 64 cores, messages of 1 MB",
    paper: "Jeannot et al. 2013, figure 7",
    takes: "40 seconds",
    notes: PROGRAMS,
    run: |options| kneighbor(options, 128),
};

/// Figure 8.
pub(super) const TREEMATCH_8: Figure = Figure {
    name: "treematch-8",
    title: "kNeighbor, 256 chares on 64 cores, messages of 1 MB",
    paper: "Jeannot et al. 2013, figure 8",
    takes: "a minute",
    notes: PROGRAMS,
    run: |options| kneighbor(options, 256),
};

/// Figure 10.
pub(super) const TREEMATCH_10: Figure = Figure {
    name: "treematch-10",
    title: "Stencil3D, 64 chares on 64 cores",
    paper: "Jeannot et al. 2013, figure 10",
    takes: "a minute",
    notes: PROGRAMS,
    run: stencil3d,
};

const PROGRAMS: &str =
    "The times are of 100 iterations, of which a few are run; a strategy takes as long as in the paper.";

/// 8 nodes of 2 sockets with 4 cores, and what carries their messages.
const MACHINE: &str = "fattree:8:2:4/3.2e9:12e9:6e9/1:1:1";
const NETWORK: &str = "flow:latency=0.3e-6";

/// What the runtime of a core takes to send a message to another core, and to receive one, in seconds.
const OVERHEAD_SECONDS: f64 = 2e-6;

/// Seconds a strategy takes, as the paper prints it of LeanMD (section VI.A) and Stencil3D (VI.C): that of a
/// strategy without a number is below a millisecond, or that of one like it.
const STRATEGIES: [(&str, f64); 6] = [
    ("DummyLB", 0.0),
    ("GreedyLB", 0.0145),
    ("GreedyCommLB", 0.0145),
    ("RefineLB", 0.001),
    ("RefineCommLB", 0.0075),
    ("TMLB_TREEBASED", 0.2148),
];
const MIN_WEIGHT: (&str, f64) = ("TMLB_MIN_WEIGHT", 0.233);

/// How many iterations the times are of.
const ITERATIONS: f64 = 100.0;

/// A run of `iterations` with one load-balancing step after `before` of them, on the machine.
struct Plan {
    iterations: u32,
    before: u32,
    initial: &'static str,
    seed: u64,
}

impl Plan {
    /// Seconds of [`ITERATIONS`] with a strategy that takes `thinks` seconds: those before the step as
    /// without one (`plain` seconds for all of the run), the step, and those after it like the ones that were
    /// run.
    fn seconds(&self, all: f64, plain: f64, thinks: f64) -> f64 {
        let (before, after) = (f64::from(self.before), f64::from(self.iterations - self.before));
        let first = plain * before / f64::from(self.iterations);
        let each = (all - first - thinks) / after;
        first + thinks + each * (ITERATIONS - before)
    }

    /// What a program takes under each strategy, without balancing first.
    fn times<R>(
        &self,
        strategies: &[(&'static str, f64)],
        run: impl Fn(Config) -> Report<R>,
    ) -> anyhow::Result<Vec<(&'static str, f64)>> {
        let mut plain = None;
        let mut times = Vec::new();
        for &(strategy, thinks) in strategies {
            let machine = Machine {
                network: Some(NETWORK.into()),
                overhead: OVERHEAD_SECONDS,
                strategy_seconds: Some(thinks),
                ..Machine::default()
            };
            let report = run(Config {
                machine,
                initial: self.initial.into(),
                balancer: vec![strategy.into()],
                seed: self.seed,
                ..Config::on_machine(MACHINE, NETWORK)
            });
            let seconds = report.machine.map_or(0.0, |machine| machine.seconds);
            let plain = *plain.get_or_insert(seconds);
            times.push((strategy, self.seconds(seconds, plain, thinks)));
        }
        Ok(times)
    }
}

fn of(times: &[(&'static str, f64)], strategy: &str) -> f64 {
    times.iter().find(|(name, _)| *name == strategy).map_or(f64::NAN, |(_, seconds)| *seconds)
}

/// What a strategy's time is less than that without balancing, as a part of this.
fn gain(times: &[(&'static str, f64)], strategy: &str) -> f64 {
    1.0 - of(times, strategy) / of(times, "DummyLB")
}

fn leanmd(options: &Options) -> anyhow::Result<FigureResult> {
    let sizes: &[u32] = options.choose(&[250, 500, 1000, 2000, 3000, 4000], &[100, 250]);
    let strategies: Vec<(&str, f64)> =
        STRATEGIES.into_iter().filter(|(name, _)| *name != "TMLB_TREEBASED").chain([MIN_WEIGHT]).collect();
    let all = options.sweep(sizes.iter().copied(), |particles| {
        let plan = Plan { iterations: 8, before: 4, initial: "roundrobin", seed: options.seed };
        let program = leanmd::Options {
            cells: [4; 3],
            // As in figure 5: what else would there be to balance?
            particles: [particles * 4 / 7, particles * 10 / 7],
            iterations: plan.iterations,
            lb_every: plan.before,
            forces: leanmd::Work::Modelled,
        };
        Ok((particles, plan.times(&strategies, |config| leanmd::simulate(config, &program))?))
    })?;
    let mut rows = Rows::new([
        ("strategy", "strategy"),
        ("particles_per_cell", "particles/cell"),
        ("seconds", "s"),
        ("gain", "gain"),
        ("paper_gain", "paper"),
    ]);
    for (particles, times) in &all {
        for &(strategy, seconds) in times {
            let printed = strategy == MIN_WEIGHT.0 && *particles >= 2000;
            rows.push([
                Cell::Text(strategy.into()),
                Cell::Count(u64::from(*particles)),
                Cell::Number(seconds),
                Cell::Number(gain(times, strategy)),
                if printed { Cell::Number(0.30) } else { Cell::Nothing },
            ]);
        }
    }
    let series = strategies.iter().map(|(strategy, _)| {
        let point = |(particles, times): &(u32, Vec<_>)| (f64::from(*particles), of(times, strategy));
        Series::measured(*strategy, all.iter().map(point).collect::<Vec<_>>())
    });
    let chart = Chart {
        x: Axis::log("particles per cell"),
        y: Axis::log(format!("seconds of {ITERATIONS} iterations")),
        series: series.collect(),
    };
    let large = || all.iter().filter(|(particles, _)| *particles >= 2000 || options.small);
    let told = |(particles, times): &&(u32, Vec<_>)| {
        format!("{:.1} % with {particles} particles per cell", 100.0 * gain(times, MIN_WEIGHT.0))
    };
    let criteria = vec![
        Criterion::every(
            "TMLB_MIN_WEIGHT gains 20 to 40 % for 2000 particles per cell and more (paper: 30)",
            large(),
            |(_, times)| (gain(times, MIN_WEIGHT.0) - 0.2).min(0.4 - gain(times, MIN_WEIGHT.0)),
            told,
        ),
        Criterion::every(
            "and takes at most 1 % more than GreedyLB and RefineLB there",
            large(),
            |(_, times)| 1.01 * of(times, "GreedyLB").min(of(times, "RefineLB")) - of(times, MIN_WEIGHT.0),
            |(particles, times)| {
                let seconds = [MIN_WEIGHT.0, "GreedyLB", "RefineLB"].map(|strategy| of(times, strategy));
                format!("{:.3}, {:.3} and {:.3} s with {particles}", seconds[0], seconds[1], seconds[2])
            },
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

fn kneighbor(options: &Options, chares: i32) -> anyhow::Result<FigureResult> {
    let plan = Plan { iterations: 6, before: 3, initial: "roundrobin", seed: options.seed };
    let program = kneighbor::Options {
        elements: chares,
        neighbors: 7,
        bytes: if options.small { 20_000 } else { 1_000_000 },
        iterations: plan.iterations,
        lb_every: plan.before,
        charge: Some(1e-9),
        ..kneighbor::Options::default()
    };
    let run = |_: &str| plan.times(&STRATEGIES, |config| kneighbor::exchange(config, &program));
    let times = options.sweep(["all strategies"], run)?.pop().unwrap_or_default();
    let mut rows = Rows::new([("strategy", "strategy"), ("seconds", "s"), ("gain", "gain")]);
    for &(strategy, seconds) in &times {
        rows.push([Cell::Text(strategy.into()), Cell::Number(seconds), Cell::Number(gain(&times, strategy))]);
    }
    let chart = Chart {
        x: Axis::linear("strategy, in the order of the table"),
        y: Axis::linear(format!("seconds of {ITERATIONS} iterations")),
        series: vec![Series::measured(
            "kNeighbor",
            (1..).zip(&times).map(|(at, (_, seconds))| (f64::from(at), *seconds)).collect::<Vec<_>>(),
        )],
    };
    let best = of(&times, "TMLB_TREEBASED");
    let others = times.iter().filter(|(strategy, _)| *strategy != "TMLB_TREEBASED");
    let criteria = vec![Criterion::every(
        "TMLB_TREEBASED is the fastest",
        others,
        |(_, seconds)| seconds - best,
        |(strategy, seconds)| format!("{best:.3} s, {strategy} {seconds:.3} s"),
    )];
    Ok(FigureResult { rows, chart, criteria })
}

fn stencil3d(options: &Options) -> anyhow::Result<FigureResult> {
    let seeds = if options.small { 2 } else { 5 };
    let cells = if options.small { 8 } else { 64 };
    let runs = options.sweep(0..seeds, |seed| {
        let plan =
            Plan { iterations: 20, before: 10, initial: "random", seed: options.seed.wrapping_add(seed) };
        let program = stencil3d::Options {
            blocks: Extent([4; 3]),
            cells: Extent([cells; 3]),
            rules: Rules {
                iterations: plan.iterations,
                lb_every: plan.before,
                periodic: true,
                charge: Some(1e-9),
                ..Rules::default()
            },
        };
        plan.times(&STRATEGIES, |config| stencil3d::solve(config, &program))
    })?;
    let mean = |strategy: &str| runs.iter().map(|times| of(times, strategy)).sum::<f64>() / runs.len() as f64;
    let deviation = |strategy: &str| {
        let mean = mean(strategy);
        let squares = runs.iter().map(|times| (of(times, strategy) - mean).powi(2)).sum::<f64>();
        (squares / runs.len() as f64).sqrt()
    };
    let mut rows = Rows::new([
        ("strategy", "strategy"),
        ("seconds", "s"),
        ("standard_deviation_seconds", "deviation"),
        ("gain", "gain"),
        ("paper_gain", "paper"),
    ]);
    for (strategy, _) in STRATEGIES {
        rows.push([
            Cell::Text(strategy.into()),
            Cell::Number(mean(strategy)),
            Cell::Number(deviation(strategy)),
            Cell::Number(1.0 - mean(strategy) / mean("DummyLB")),
            if strategy == "TMLB_TREEBASED" { Cell::Number(0.18) } else { Cell::Nothing },
        ]);
    }
    let chart = Chart {
        x: Axis::linear("strategy, in the order of the table"),
        y: Axis::linear(format!("seconds of {ITERATIONS} iterations")),
        series: vec![Series::measured(
            "Stencil3D",
            (1..)
                .zip(STRATEGIES)
                .map(|(at, (strategy, _))| (f64::from(at), mean(strategy)))
                .collect::<Vec<_>>(),
        )],
    };
    let best = mean("TMLB_TREEBASED");
    let others = || STRATEGIES.into_iter().filter(|(strategy, _)| *strategy != "TMLB_TREEBASED");
    let second = others().map(|(strategy, _)| mean(strategy)).fold(f64::INFINITY, f64::min);
    let criteria = vec![
        Criterion::new(
            "TMLB_TREEBASED gains 10 to 30 % on the others (paper: about 18)",
            format!("{:.1} % on the next best", 100.0 * (1.0 - best / second)),
            (0.1..=0.3).contains(&(1.0 - best / second)),
        ),
        Criterion::every(
            "and deviates least",
            others(),
            |(strategy, _)| deviation(strategy) - deviation("TMLB_TREEBASED"),
            |(strategy, _)| {
                format!("{:.4} s, {strategy} {:.4} s", deviation("TMLB_TREEBASED"), deviation(strategy))
            },
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}
