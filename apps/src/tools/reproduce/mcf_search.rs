//! What comes of minimising the one cost and the other: `McfLB` beside `SwapLB`, in simulated seconds.
//!
//! The future work of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing,
//! 2014, section 4. Every search is run from the same number of random mappings, with several seeds, and the steps of SP-MZ
//! are simulated under each mapping at which one ends, on links that share fairly and on links of packets. Computing takes
//! the same time under all of them, so what they differ in is the rest.

use equipoise_strategies::cost::qap::Metric;
use equipoise_strategies::mapping::swap_lb::{Cost, Ending};

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::mcf_data::{PLATFORMS, SEEDS, Study, mean, packets};
use super::rows::{Cell, Rows};

/// The comparison.
pub(super) const MCF_SEARCH: Figure = Figure {
    name: "mcf-search",
    title: "Simulated communication under the mappings of searches, SP-MZ",
    paper: "ours; the future work of Litvinov 2014",
    takes: "2 minutes",
    notes: "Communication is the time of 5 steps less that of computing; all numbers are means over 5 seeds (2 in the small \
            version). Chosen is the mapping with the smallest cost of all restarts, which is what the strategy answers; best is \
            the one with the smallest time. Where a search tries fewer swaps in a restart than McfLB does, it has so many \
            restarts for each of McfLB's (of), of which the best by cost counts; chosen and best are of them all.\n\
            On the grid there is no tenth to gain: all that a task sends leaves over the link of its host, whose time is a \
            bound for every mapping (at least), and on the cluster there is hardly more than one. What McfLB chooses is least \
            by the busiest link, which is not all of the time: of mappings that are about as good by it, those of SwapLB may take \
            a little less.",
    run,
};

/// Where the searches are compared.
struct Case {
    name: &'static str,
    machine: &'static str,
    network: String,
    searches: &'static [&'static str],
    restarts: usize,
}

/// Machines beside the paper's.
const OTHERS: [(&str, &str); 3] = [
    ("torus", "torus:4x2x2"),
    ("fat-tree", "fattree:4:4/250e6:125e6"),
    ("dragonfly", "dragonfly:groups=4,routers=2,hosts=2"),
];

/// Networks of packets: the machine, and how they are routed.
const PACKETS: [(&str, &str, &str); 3] = [
    ("tree on packets", "platform:litvinov-tree", "fixed"),
    ("torus on packets", "torus:4x2x2", "fixed"),
    ("torus, adaptive", "torus:4x2x2", "adaptive"),
];

/// Searches that are compared.
const SEARCHES: [&str; 7] = [
    "SwapLB:cost=qap:hops",
    "SwapLB:cost=qap:bandwidth",
    RTT,
    "SwapLB:cost=mcf",
    "McfLB:norm=2",
    MCF,
    "McfLB:norm=8",
];

/// The searches that criteria are about: by distances, what the paper takes on the grid, and `McfLB` as it is unless told
/// otherwise.
const RTT: &str = "SwapLB:cost=qap:rtt";
const MCF: &str = "McfLB:norm=4";

/// Where packets are followed, which takes long.
const OF_PACKETS: [&str; 2] = [RTT, MCF];

/// All cases, the grid first.
fn cases(options: &Options) -> Vec<Case> {
    let restarts = if options.small { 20 } else { 100 };
    let shared = PLATFORMS.iter().rev().map(|(name, machine, _)| (*name, *machine)).chain(OTHERS);
    let shared = shared.map(|(name, machine)| Case {
        name,
        machine,
        network: "flow".into(),
        searches: &SEARCHES,
        restarts,
    });
    let of_packets = PACKETS.into_iter().map(|(name, machine, routing)| Case {
        name,
        machine,
        network: packets(routing),
        searches: &OF_PACKETS,
        restarts: restarts / 5,
    });
    let all: Vec<Case> = shared.chain(of_packets).collect();
    match options.small {
        true => all.into_iter().filter(|case| ["grid", "tree on packets"].contains(&case.name)).collect(),
        false => all,
    }
}

/// What comes of a search on a machine: seconds of communication, by seed.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// The mean over all restarts.
    mean: Vec<f64>,
    /// Restarts that take as many tries as one of McfLB does, at least; the mean of the best of each so many, by cost.
    equal_restarts: Vec<f64>,
    equal_mean: Vec<f64>,
    /// Of the best by cost of all, which the strategy answers, and the best of all by time.
    chosen: Vec<f64>,
    best: Vec<f64>,
    /// The mean time of the busiest link in a step.
    mcf: Vec<f64>,
    /// Swaps tried in a restart, the mean.
    tried: Vec<f64>,
}

/// What comes of all searches of a case.
struct Compared {
    name: &'static str,
    /// What no mapping can go below, as the busiest task has to send all it sends over its host's links.
    bound: f64,
    outcomes: Vec<(&'static str, Outcome)>,
}

impl Compared {
    /// Of `SwapLB` by distances, and of `McfLB`.
    fn both(&self) -> Option<[&Outcome; 2]> {
        let of = |name| self.outcomes.iter().find(|(search, _)| *search == name).map(|(_, outcome)| outcome);
        Some([of(RTT)?, of(MCF)?])
    }
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

impl Outcome {
    /// Adds what `endings` are worth: of `restarts` searches, each of `equal` restarts.
    fn add(
        &mut self,
        study: &Study,
        restarts: usize,
        equal: usize,
        endings: &[Ending],
    ) -> anyhow::Result<()> {
        let mapped = endings.iter().map(|ending| study.evaluate(Metric::Hops, &ending.places));
        let mapped = mapped.collect::<anyhow::Result<Vec<_>>>()?;
        let seconds: Vec<f64> =
            mapped.iter().map(|mapped| mapped.seconds - study.compute_seconds()).collect();
        let chunks = endings.chunks(equal).zip(seconds.chunks(equal));
        let of_chunk = chunks.filter_map(|(endings, seconds)| best_of(endings).map(|best| seconds[best]));
        let busiest: Vec<f64> = mapped.iter().map(|mapped| mapped.mcf).collect();
        self.mean.push(mean(&seconds[..restarts]));
        self.equal_restarts.push(equal as f64);
        self.equal_mean.push(mean(&of_chunk.collect::<Vec<_>>()));
        self.chosen.push(best_of(endings).map_or(f64::NAN, |best| seconds[best]));
        self.best.push(seconds.iter().copied().fold(f64::INFINITY, f64::min));
        self.mcf.push(mean(&busiest));
        self.tried.push(tried(endings));
        Ok(())
    }
}

/// What comes of every search of a case, each with about as many tries as McfLB, with seeds from `seed` on.
fn compared(case: &Case, seed: u64, seeds: u64) -> anyhow::Result<Compared> {
    let study = Study::of(case.machine, &case.network)?;
    let mut outcomes: Vec<_> = case.searches.iter().map(|search| (*search, Outcome::default())).collect();
    for seed in (0..seeds).map(|more| seed.wrapping_add(more)) {
        let find = |search: &str, restarts| match search.strip_prefix("SwapLB:cost=") {
            Some(cost) => study.search(cost.parse::<Cost>().map_err(anyhow::Error::msg)?, restarts, seed),
            None => study.relieve(search.trim_start_matches("McfLB:norm=").parse()?, restarts, seed),
        };
        let effort = tried(&find(MCF, case.restarts)?);
        for (search, outcome) in &mut outcomes {
            let first = find(search, case.restarts)?;
            let is_ours = search.starts_with("McfLB");
            let equal = if is_ours { 1 } else { (effort / tried(&first)).ceil().max(1.0) as usize };
            // Restarts have dice of their own, so the first of more are the same again.
            let endings = if equal == 1 { first } else { find(search, case.restarts * equal)? };
            outcome.add(&study, case.restarts, equal, &endings)?;
        }
    }
    Ok(Compared { name: case.name, bound: study.bound_seconds()?, outcomes })
}

fn run(options: &Options) -> anyhow::Result<FigureResult> {
    let cases = cases(options);
    let seeds = if options.small { 2 } else { SEEDS };
    let items = cases.iter().map(|case| (case.name, case));
    let all = options.sweep_labelled(items, |case| compared(case, options.seed, seeds))?;
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
    for Compared { name, bound, outcomes } in &all {
        for (search, of) in outcomes {
            let names = [*name, *search].map(|name| Cell::Text(name.into()));
            let Outcome { mean: all, equal_restarts, equal_mean, chosen, best, mcf, tried } = of;
            let [all, equal_restarts, equal_mean, chosen, best, mcf, tried] =
                [all, equal_restarts, equal_mean, chosen, best, mcf, tried].map(|numbers| mean(numbers));
            let numbers = [all, equal_restarts, equal_mean, chosen, best, *bound, mcf, tried];
            rows.push(names.into_iter().chain(numbers.map(Cell::Number)));
        }
    }
    let series = SEARCHES.iter().map(|search| {
        let of = |(at, compared): (usize, &Compared)| {
            let found = compared.outcomes.iter().find(|(name, _)| name == search);
            found.map(|(_, outcome)| (at as f64 + 1.0, mean(&outcome.mean)))
        };
        Series::measured(*search, all.iter().enumerate().filter_map(of).collect::<Vec<_>>())
    });
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    let chart = Chart {
        x: Axis::linear(names.join("; ")),
        y: Axis::linear("mean seconds of communication in 5 steps"),
        series: series.collect(),
    };
    Ok(FigureResult { rows, chart, criteria: criteria(&all, options.small) })
}

/// What `McfLB` is to reach beside `SwapLB` by distances, in the mean over the seeds.
fn criteria(all: &[Compared], is_small: bool) -> Vec<Criterion> {
    let on = |name: &str| {
        let compared = all.iter().find(|compared| compared.name == name);
        compared.and_then(|compared| Some((compared.bound, compared.both()?)))
    };
    let tenth = |name: &str| {
        Criterion::every(
            format!(
                "McfLB communicates at least 10 % less than {RTT} on the {name}, in the mean over all restarts"
            ),
            on(name),
            |(_, [swap, mcf])| 0.9 * mean(&swap.mean) - mean(&mcf.mean),
            |(bound, [swap, mcf])| {
                let [swap, mcf] = [mean(&swap.mean), mean(&mcf.mean)];
                let percent = |less: f64| 100.0 * (1.0 - less / swap);
                format!(
                    "{mcf:.4} s beside {swap:.4} s, {:.2} % less; no mapping is below {bound:.4} s, {:.2} % less",
                    percent(mcf),
                    percent(*bound)
                )
            },
        )
    };
    /// That a number is not larger, by a part of it, anywhere.
    fn nowhere_above(
        criterion: &str,
        all: &[Compared],
        of: fn(&Outcome) -> &Vec<f64>,
        allowed: f64,
    ) -> Criterion {
        Criterion::every(
            criterion,
            all.iter().filter_map(|compared| Some((compared.name, compared.both()?))),
            |(_, [swap, mcf])| (1.0 + allowed) * mean(of(swap)) - mean(of(mcf)),
            |(name, [swap, mcf])| {
                let more =
                    of(mcf).iter().zip(of(swap)).filter(|(mcf, swap)| **mcf > (1.0 + allowed) * **swap);
                let (more, seeds) = (more.count(), of(mcf).len());
                let [swap, mcf] = [swap, mcf].map(|outcome| mean(of(outcome)));
                format!("{mcf:.5} s beside {swap:.5} s on the {name}, more with {more} of {seeds} seeds")
            },
        )
    }
    // Rounding is allowed.
    let allowed = 1e-9;
    let mut criteria = vec![
        tenth("grid"),
        Criterion::every(
            "it leaves at most half as much above what no mapping is below, there",
            on("grid"),
            |(bound, [swap, mcf])| 0.5 * (mean(&swap.mean) - bound) - (mean(&mcf.mean) - bound),
            |(bound, [swap, mcf])| {
                format!("{:.4} s beside {:.4} s", mean(&mcf.mean) - bound, mean(&swap.mean) - bound)
            },
        ),
        nowhere_above(
            "its mean over all restarts is nowhere above that of SwapLB by qap:rtt",
            all,
            |outcome| &outcome.mean,
            allowed,
        ),
        nowhere_above(
            "nor where SwapLB has as many tries, and the best by cost of so many restarts counts",
            all,
            |outcome| &outcome.equal_mean,
            allowed,
        ),
        nowhere_above(
            "what it chooses of all restarts is nowhere slower, with as many tries",
            all,
            |outcome| &outcome.chosen,
            allowed,
        ),
        nowhere_above("nor is the best of all, by time", all, |outcome| &outcome.best, allowed),
    ];
    if !is_small {
        criteria.extend(["torus", "tree", "cluster", "torus on packets"].map(tenth));
        criteria.push(Criterion::every(
            "its mean is not above that of any SwapLB by more than 2 %, on every machine",
            all.iter().filter(|compared| compared.outcomes.len() > 2),
            |compared| 1.02 * least(compared) - compared.both().map_or(f64::NAN, |[_, mcf]| mean(&mcf.mean)),
            |compared| {
                let ours = compared.both().map_or(f64::NAN, |[_, mcf]| mean(&mcf.mean));
                format!("{ours:.4} s beside {:.4} s on the {}", least(compared), compared.name)
            },
        ));
    }
    criteria
}

/// The least mean of all that `SwapLB` makes smaller.
fn least(compared: &Compared) -> f64 {
    let swaps = compared.outcomes.iter().filter(|(search, _)| search.starts_with("SwapLB"));
    swaps.map(|(_, outcome)| mean(&outcome.mean)).fold(f64::INFINITY, f64::min)
}
