//! What comes of minimising the one cost and the other: `McfLB` beside `SwapLB`, in simulated seconds.
//!
//! The future work of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing,
//! 2014, section 4. Every search is run from the same number of random mappings, and the steps of SP-MZ are simulated
//! under each mapping at which one ends. Computing takes the same time under all of them, so what they differ in is
//! the rest.

use equipoise_strategies::cost::qap::Metric;
use equipoise_strategies::mapping::swap_lb::{Cost, Ending};

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::mcf_data::{PLATFORMS, Study};
use super::rows::{Cell, Rows};

/// The comparison.
pub(super) const MCF_SEARCH: Figure = Figure {
    name: "mcf-search",
    title: "Simulated communication under the mappings of searches, SP-MZ",
    paper: "ours; the future work of Litvinov 2014",
    takes: "20 seconds",
    notes: "Communication is the time of 5 steps less that of computing. Chosen is the mapping with the smallest cost of all \
            restarts, which is what the strategy answers; best is the one with the smallest time. McfLB tries two to three \
            times as many swaps in a restart, so SwapLB has so many restarts for each of its (of), of which the best by cost \
            counts; chosen and best are of them all.\n\
            On the grid there is no tenth to gain. All that a task sends leaves over the link of its host; one task sends \
            6.4 MB in a step, and a host has 125 MB/s, so 5 steps take 0.2560 s wherever tasks are. The mean under SwapLB's \
            mappings by qap:rtt is 0.2588 s: 1.08 % more, of which McfLB gains two thirds (0.2570 s). A tenth is gained on the \
            torus (24 %). On the tree it is 4 %, in the mean and in what is chosen: a restart there ends where no swap of two helps, \
            but one of whole switches would; with as many tries, the best of three restarts by qap:rtt is better than a \
            restart of McfLB, and of all restarts McfLB chooses the better one.",
    run,
};

/// Machines beside the paper's.
const OTHERS: [(&str, &str); 3] = [
    ("torus", "torus:4x2x2"),
    ("fat-tree", "fattree:4:4/250e6:125e6"),
    ("dragonfly", "dragonfly:groups=4,routers=2,hosts=2"),
];

/// Searches that are compared.
const SEARCHES: [&str; 7] = [
    "SwapLB:cost=qap:hops",
    "SwapLB:cost=qap:bandwidth",
    "SwapLB:cost=qap:rtt",
    "SwapLB:cost=mcf",
    "McfLB:norm=2",
    "McfLB:norm=4",
    "McfLB:norm=8",
];

/// Where `SwapLB:cost=qap:rtt` and `McfLB` as it is unless told otherwise are among them.
const RTT: usize = 2;
const MCF: usize = 5;

/// What comes of a search on a machine: seconds of communication.
#[derive(Clone, Debug)]
struct Outcome {
    machine: &'static str,
    search: &'static str,
    /// The mean over all restarts.
    mean: f64,
    /// Restarts that take as many tries as one of McfLB does, at least; the mean of the best of each so many, by cost.
    equal_restarts: usize,
    equal_mean: f64,
    /// Of the best by cost of all, which the strategy answers, and the best of all by time.
    chosen: f64,
    best: f64,
    /// What no mapping can go below, as the busiest task has to send all it sends over its host's links.
    bound: f64,
    /// The mean time of the busiest link in a step.
    mcf: f64,
    /// Swaps tried in a restart, the mean.
    tried: f64,
}

fn tried(endings: &[Ending]) -> f64 {
    endings.iter().map(|ending| ending.tried as f64).sum::<f64>() / endings.len() as f64
}

/// The number of the best by cost, the first of several.
fn best_of(endings: &[Ending]) -> Option<usize> {
    let better = |best: usize, next: usize| {
        if endings[next].worth.is_better(endings[best].worth) { next } else { best }
    };
    (0..endings.len()).reduce(better)
}

/// What `endings` are worth: of `restarts` searches, each of `equal` restarts.
fn outcome(
    study: &Study,
    (machine, search): (&'static str, &'static str),
    restarts: usize,
    equal: usize,
    endings: &[Ending],
) -> anyhow::Result<Outcome> {
    let mapped = endings.iter().map(|ending| study.evaluate(Metric::Hops, &ending.places));
    let mapped = mapped.collect::<anyhow::Result<Vec<_>>>()?;
    let seconds: Vec<f64> = mapped.iter().map(|mapped| mapped.seconds - study.compute_seconds()).collect();
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let chunks = endings.chunks(equal).zip(seconds.chunks(equal));
    let of_chunk = chunks.filter_map(|(endings, seconds)| best_of(endings).map(|best| seconds[best]));
    let busiest: Vec<f64> = mapped.iter().map(|mapped| mapped.mcf).collect();
    Ok(Outcome {
        machine,
        search,
        mean: mean(&seconds[..restarts]),
        equal_restarts: equal,
        equal_mean: mean(&of_chunk.collect::<Vec<_>>()),
        chosen: best_of(endings).map_or(f64::NAN, |best| seconds[best]),
        best: seconds.iter().copied().fold(f64::INFINITY, f64::min),
        bound: study.bound_seconds(),
        mcf: mean(&busiest),
        tried: tried(endings),
    })
}

/// What comes of every search on a machine, each with about as many tries as McfLB.
fn outcomes(
    study: &Study,
    machine: &'static str,
    restarts: usize,
    seed: u64,
) -> anyhow::Result<Vec<Outcome>> {
    let find = |search: &str, restarts| match search.strip_prefix("SwapLB:cost=") {
        Some(cost) => study.search(cost.parse::<Cost>().map_err(anyhow::Error::msg)?, restarts, seed),
        None => study.relieve(search.trim_start_matches("McfLB:norm=").parse()?, restarts, seed),
    };
    let effort = tried(&find(SEARCHES[MCF], restarts)?);
    let one = |search: &'static str| {
        let first = find(search, restarts)?;
        let is_ours = search.starts_with("McfLB");
        let equal = if is_ours { 1 } else { (effort / tried(&first)).ceil().max(1.0) as usize };
        // Restarts have dice of their own, so the first of more are the same again.
        let endings = if equal == 1 { first } else { find(search, restarts * equal)? };
        outcome(study, (machine, search), restarts, equal, &endings)
    };
    SEARCHES.into_iter().map(one).collect()
}

fn run(options: &Options) -> anyhow::Result<FigureResult> {
    let restarts = if options.small { 20 } else { 100 };
    let own = PLATFORMS.map(|(name, machine, _)| (name, machine));
    let machines: Vec<(&str, &str)> = own.into_iter().rev().chain(OTHERS).collect();
    let machines = options.choose(&machines, &machines[..1]);
    let all = options.sweep(machines.iter().map(|machine| machine.0), |name| {
        let found = machines.iter().find(|machine| machine.0 == name);
        let &(name, machine) = found.ok_or_else(|| anyhow::anyhow!("there is no machine {name}"))?;
        let study = Study::of(machine, "flow")?;
        outcomes(&study, name, restarts, options.seed)
    })?;
    let mut rows = Rows::new([
        ("machine", "machine"),
        ("search", "search"),
        ("mean_communication_seconds", "mean s"),
        ("equal_effort_restarts", "of"),
        ("equal_effort_communication_seconds", "mean of the best s"),
        ("chosen_communication_seconds", "chosen s"),
        ("best_communication_seconds", "best s"),
        ("communication_seconds_at_least", "at least s"),
        ("mean_busiest_link_seconds", "busiest link s"),
        ("mean_tries", "tries"),
    ]);
    for outcome in all.iter().flatten() {
        let names = [outcome.machine, outcome.search].map(|name| Cell::Text(name.into()));
        let Outcome { mean, equal_restarts, equal_mean, chosen, best, bound, mcf, tried, .. } = *outcome;
        let of = [Cell::Number(mean), Cell::Count(equal_restarts as u64)];
        let numbers = [equal_mean, chosen, best, bound, mcf, tried].map(Cell::Number);
        rows.push(names.into_iter().chain(of).chain(numbers));
    }
    let series = SEARCHES.iter().enumerate().map(|(number, search)| {
        let points = all.iter().enumerate().map(move |(at, of)| (at as f64 + 1.0, of[number].mean));
        Series::measured(*search, points.collect::<Vec<_>>())
    });
    let names: Vec<&str> = machines.iter().map(|machine| machine.0).collect();
    let chart = Chart {
        x: Axis::linear(names.join(", ")),
        y: Axis::linear("mean seconds of communication in 5 steps"),
        series: series.collect(),
    };
    // By distances, `qap:rtt` is what the paper takes on the grid, which is the first machine.
    let on = |name: &str| all.iter().find(|of| of[MCF].machine == name).map(|of| (&of[RTT], &of[MCF]));
    let tenth = |name: &str| {
        Criterion::every(
            format!(
                "McfLB communicates at least 10 % less than SwapLB:cost=qap:rtt on the {name}, in the mean"
            ),
            on(name),
            |(swap, mcf)| 0.9 * swap.mean - mcf.mean,
            |(swap, mcf)| {
                let percent = |less: f64| 100.0 * (1.0 - less / swap.mean);
                format!(
                    "{:.4} s beside {:.4} s, {:.2} % less; no mapping is below {:.4} s, {:.2} % less",
                    mcf.mean,
                    swap.mean,
                    percent(mcf.mean),
                    mcf.bound,
                    percent(mcf.bound)
                )
            },
        )
    };
    let mut criteria = vec![
        tenth("grid"),
        Criterion::every(
            "it leaves at most half as much above what no mapping is below, there",
            on("grid"),
            |(swap, mcf)| 0.5 * (swap.mean - swap.bound) - (mcf.mean - mcf.bound),
            |(swap, mcf)| format!("{:.4} s beside {:.4} s", mcf.mean - mcf.bound, swap.mean - swap.bound),
        ),
        Criterion::every(
            "its best mapping there is not worse with as many tries (to 1e-9, for rounding)",
            on("grid"),
            |(swap, mcf)| (1.0 + 1e-9) * swap.best - mcf.best,
            |(swap, mcf)| format!("{:.5} s beside {:.5} s", mcf.best, swap.best),
        ),
    ];
    if !options.small {
        criteria.extend([tenth("torus"), tenth("tree")]);
        criteria.push(Criterion::every(
            "what it chooses is not slower than what SwapLB by qap:rtt chooses with as many tries, on every machine",
            &all,
            |of| (1.0 + 1e-9) * of[RTT].chosen - of[MCF].chosen,
            |of| {
                let [mcf, swap] = [&of[MCF], &of[RTT]];
                format!("{:.4} s beside {:.4} s on the {}", mcf.chosen, swap.chosen, mcf.machine)
            },
        ));
    }
    if !options.small {
        criteria.push(Criterion::every(
            "its mean is not above that of any SwapLB by more than 2 %, on every machine",
            &all,
            |of| of[..=3].iter().map(|swap| 1.02 * swap.mean - of[MCF].mean).fold(f64::INFINITY, f64::min),
            |of| {
                let least = of[..=3].iter().map(|swap| swap.mean).fold(f64::INFINITY, f64::min);
                format!("{:.4} s beside {least:.4} s on the {}", of[MCF].mean, of[MCF].machine)
            },
        ));
    }
    Ok(FigureResult { rows, chart, criteria })
}
