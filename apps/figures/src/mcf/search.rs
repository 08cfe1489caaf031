//! Minimising different costs: `McfLB` and `SwapLB`, compared by simulated seconds.
//!
//! The future work of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing,
//! 2014, section 4. Every search starts from the same number of random mappings, with several seeds. The steps of SP-MZ
//! are simulated with each final mapping, on links with fair sharing and on links with packets. The time of computation
//! is the same for all mappings, so only the communication time differs.

use equipoise_apps::Failure;
use equipoise_strategies::cost::qap::Metric;
use equipoise_strategies::mapping::swap_lb::{Cost, Ending, Goal};

use super::data::{PLATFORMS, RouterLinks, SEEDS, Study, grid_with, packets};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};
use crate::statistics::mean;

/// The comparison.
pub(crate) const MCF_SEARCH: Figure = Figure {
    name: "mcf-search",
    title: "Simulated communication under the mappings of searches, SP-MZ",
    paper: "ours; the future work of Litvinov 2014",
    paper_shows: "nothing; searches by MCF are future work",
    we_show: "communication time under the mappings of searches",
    why: "where links between routers are slow, mappings matter; where hosts' links are, they cannot",
    takes: "2 minutes",
    notes: "Communication is the time of 5 steps minus that of computation; all numbers are means over 5 seeds (2 in the small \
            version). `chosen` is the mapping with the smallest cost of all restarts, the result of the strategy; `best` is the \
            mapping with the smallest time. If a search tries fewer swaps per restart than McfLB, it has several restarts for \
            each restart of McfLB (column `of`), and the best of these by cost counts; `chosen` and `best` are over all.\n\
            On the grid a gain of 10 % is impossible: all messages of a task leave over the link of its host, whose time is a \
            lower bound for every mapping (`at least`); so there is no criterion for it. On the cluster the possible gain is \
            hardly more than 10 %. `grid half`, `quarter` and `random` have slower links between routers. McfLB \
            minimises the busiest link, which is only part of the time: of mappings with similar busiest links, those of SwapLB \
            may take slightly less time.",
    run,
};

/// A search: the spec by which it is shown, and its goal.
type Search = (&'static str, Goal);

/// A comparison of searches on a machine and a network.
struct Case {
    name: &'static str,
    machine: Machine,
    network: String,
    searches: &'static [Search],
    restarts: usize,
}

/// A machine: a spec, or the grid with other links between routers.
#[derive(Clone, Copy, Debug)]
enum Machine {
    Spec(&'static str),
    Grid(RouterLinks),
}

/// The grid with other links between routers: there, mappings matter.
const GRIDS: [(&str, RouterLinks); 3] = [
    ("grid half", RouterLinks::Of(0.5)),
    ("grid quarter", RouterLinks::Of(0.25)),
    ("grid random", RouterLinks::Random),
];

/// Machines that are not in the paper.
const OTHERS: [(&str, &str); 3] = [
    ("torus", "torus:4x2x2"),
    ("fat-tree", "fattree:4:4/250e6:125e6"),
    ("dragonfly", "dragonfly:groups=4,routers=2,hosts=2"),
];

/// Networks with packets: name, machine, routing.
const PACKETS: [(&str, &str, &str); 3] = [
    ("tree on packets", "platform:litvinov-tree", "fixed"),
    ("torus on packets", "torus:4x2x2", "fixed"),
    ("torus, adaptive", "torus:4x2x2", "adaptive"),
];

/// The searches that are compared.
const SEARCHES: [Search; 7] = [
    ("SwapLB:cost=qap:hops", Goal::Cost(Cost::Qap(Metric::Hops))),
    ("SwapLB:cost=qap:bandwidth", Goal::Cost(Cost::Qap(Metric::Bandwidth))),
    RTT,
    ("SwapLB:cost=mcf", Goal::Cost(Cost::Mcf)),
    ("McfLB:norm=2", Goal::BusiestLink { norm: 2 }),
    MCF,
    ("McfLB:norm=8", Goal::BusiestLink { norm: 8 }),
];

/// The searches of the criteria: by the distances that the paper uses on the grid, and `McfLB` with its default norm.
const RTT: Search = ("SwapLB:cost=qap:rtt", Goal::Cost(Cost::Qap(Metric::Rtt)));
const MCF: Search = ("McfLB:norm=4", Goal::BusiestLink { norm: 4 });

/// The searches on networks with packets, whose simulation takes long.
const OF_PACKETS: [Search; 2] = [RTT, MCF];

/// All cases, the grid first.
fn cases(options: &Options) -> Vec<Case> {
    let restarts = if options.small { 20 } else { 100 };
    let shared = PLATFORMS.iter().rev().map(|(name, machine, _)| (*name, *machine)).chain(OTHERS);
    let shared = shared.map(|(name, spec)| (name, Machine::Spec(spec)));
    let grids = GRIDS.map(|(name, links)| (name, Machine::Grid(links)));
    let shared = shared.chain(grids).map(|(name, machine)| Case {
        name,
        machine,
        network: "flow".into(),
        searches: &SEARCHES,
        restarts,
    });
    let of_packets = PACKETS.into_iter().map(|(name, spec, routing)| Case {
        name,
        machine: Machine::Spec(spec),
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

/// The results of a search on a machine: seconds of communication, by seed.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// The mean over all restarts.
    mean: Vec<f64>,
    /// The number of restarts that together have at least as many tries as one restart of McfLB.
    equal_restarts: Vec<f64>,
    /// The restarts are divided into groups of `equal_restarts`. This is the mean over the groups of the time of the
    /// restart with the least cost.
    equal_mean: Vec<f64>,
    /// The time of the restart with the least cost, which is the result of the strategy, and the time of the fastest
    /// restart.
    chosen: Vec<f64>,
    best: Vec<f64>,
    /// The mean time of the busiest link in a step.
    mcf: Vec<f64>,
    /// The mean number of tried swaps per restart.
    tried: Vec<f64>,
}

/// The results of all searches of a case.
struct Compared {
    name: &'static str,
    /// A lower bound for every mapping: the busiest task sends all its messages over the links of its host.
    bound: f64,
    outcomes: Vec<(Search, Outcome)>,
}

impl Compared {
    /// The results of `SwapLB` by distances, and of `McfLB`.
    fn both(&self) -> Option<[&Outcome; 2]> {
        let of = |of| self.outcomes.iter().find(|(search, _)| *search == of).map(|(_, outcome)| outcome);
        Some([of(RTT)?, of(MCF)?])
    }
}

fn tried(endings: &[Ending]) -> f64 {
    endings.iter().map(|ending| ending.tried as f64).sum::<f64>() / endings.len() as f64
}

/// The index of the result with the least cost; the first of equals.
fn best_of(endings: &[Ending]) -> Option<usize> {
    let better = |best: usize, next: usize| {
        if endings[next].worth.is_better(endings[best].worth) { next } else { best }
    };
    (0..endings.len()).reduce(better)
}

impl Outcome {
    /// Adds the results `endings` of a seed: those of `restarts` groups of `equal` restarts each.
    fn add(
        &mut self,
        study: &Study,
        restarts: usize,
        equal: usize,
        endings: &[Ending],
    ) -> Result<(), Failure> {
        let mapped = endings.iter().map(|ending| study.evaluate(Metric::Hops, &ending.places));
        let mapped = mapped.collect::<Result<Vec<_>, Failure>>()?;
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

/// The results of every search of a case, each with about as many tries as McfLB, with seeds from `seed` on.
fn compared(case: &Case, seed: u64, seeds: u64) -> Result<Compared, Failure> {
    let study = match case.machine {
        Machine::Spec(spec) => Study::of(spec, &case.network)?,
        Machine::Grid(links) => Study::on(grid_with(links, seed)?, &case.network)?,
    };
    let mut outcomes: Vec<_> = case.searches.iter().map(|search| (*search, Outcome::default())).collect();
    for seed in (0..seeds).map(|more| seed.wrapping_add(more)) {
        let effort = tried(&study.endings(MCF.1, case.restarts, seed)?);
        for ((_, goal), outcome) in &mut outcomes {
            let first = study.endings(*goal, case.restarts, seed)?;
            let is_ours = matches!(goal, Goal::BusiestLink { .. });
            let equal = if is_ours { 1 } else { (effort / tried(&first)).ceil().max(1.0) as usize };
            // Each restart has its own random number generator, so the first restarts are repeated identically.
            let endings =
                if equal == 1 { first } else { study.endings(*goal, case.restarts * equal, seed)? };
            outcome.add(&study, case.restarts, equal, &endings)?;
        }
    }
    Ok(Compared { name: case.name, bound: study.bound_seconds()?, outcomes })
}

fn run(options: &Options) -> Result<FigureResult, Failure> {
    let cases = cases(options);
    let seeds = if options.small { 2 } else { SEEDS };
    let items = cases.iter().map(|case| (case.name, case));
    let all = options.sweep_labelled(items, |case| compared(case, options.seed, seeds))?;
    let mut rows = Rows::new([
        ("machine", "machine"),
        ("search", "search"),
        ("mean_communication_seconds", "mean s"),
        ("equal_effort_restarts", "restarts per group"),
        ("equal_effort_communication_seconds", "mean of group bests s"),
        ("chosen_communication_seconds", "chosen s"),
        ("best_communication_seconds", "best s"),
        ("communication_seconds_at_least", "at least s"),
        ("mean_busiest_link_seconds", "busiest link s"),
        ("mean_tries", "tries"),
    ]);
    for Compared { name, bound, outcomes } in &all {
        for ((search, _), of) in outcomes {
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
            let found = compared.outcomes.iter().find(|(other, _)| other == search);
            found.map(|(_, outcome)| (at as f64 + 1.0, mean(&outcome.mean)))
        };
        Series::measured(search.0, all.iter().enumerate().filter_map(of).collect::<Vec<_>>())
    });
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    let chart = Chart {
        x: Axis::linear(names.join("; ")),
        y: Axis::linear("mean seconds of communication in 5 steps"),
        series: series.collect(),
    };
    Ok(FigureResult { rows, chart, criteria: criteria(&all, options.small) })
}

/// The criteria for `McfLB` relative to `SwapLB` by distances, by means over the seeds.
fn criteria(all: &[Compared], is_small: bool) -> Vec<Criterion> {
    let tenth = |name: &str| tenth(all, name);
    // The allowed excess due to rounding.
    let allowed = 1e-9;
    let mut criteria = vec![
        Criterion::every(
            "McfLB on the grid: the excess over the lower bound is at most half of that of SwapLB:cost=qap:rtt",
            on(all, "grid"),
            |(bound, [swap, mcf])| 0.5 * (mean(&swap.mean) - bound) - (mean(&mcf.mean) - bound),
            |(bound, [swap, mcf])| {
                format!("{:.4} s, SwapLB {:.4} s", mean(&mcf.mean) - bound, mean(&swap.mean) - bound)
            },
        ),
        nowhere_above(
            "McfLB on every machine: the mean time over all restarts is at most that of SwapLB:cost=qap:rtt",
            all,
            |outcome| &outcome.mean,
            allowed,
        ),
        nowhere_above(
            "McfLB on every machine: the same holds if SwapLB gets as many tries, and its restart with the least cost counts",
            all,
            |outcome| &outcome.equal_mean,
            allowed,
        ),
        nowhere_above(
            "McfLB on every machine: the restart with the least cost is not slower than that of SwapLB:cost=qap:rtt",
            all,
            |outcome| &outcome.chosen,
            allowed,
        ),
        nowhere_above(
            "McfLB on every machine: the fastest restart is not slower than that of SwapLB:cost=qap:rtt",
            all,
            |outcome| &outcome.best,
            allowed,
        ),
    ];
    if !is_small {
        let grids = GRIDS.map(|(name, _)| name);
        criteria.extend(["torus", "tree", "cluster", "torus on packets"].into_iter().chain(grids).map(tenth));
        criteria.push(Criterion::every(
            "McfLB on every machine: the mean time is at most 2 % above that of the best SwapLB search",
            all.iter().filter(|compared| compared.outcomes.len() > 2),
            |compared| 1.02 * least(compared) - compared.both().map_or(f64::NAN, |[_, mcf]| mean(&mcf.mean)),
            |compared| {
                let ours = compared.both().map_or(f64::NAN, |[_, mcf]| mean(&mcf.mean));
                format!("{ours:.4} s, SwapLB {:.4} s on the {}", least(compared), compared.name)
            },
        ));
    }
    criteria
}

/// The results of both searches on a machine, with the lower bound.
fn on<'a>(all: &'a [Compared], name: &str) -> Option<(f64, [&'a Outcome; 2])> {
    let compared = all.iter().find(|compared| compared.name == name);
    compared.and_then(|compared| Some((compared.bound, compared.both()?)))
}

/// The criterion that communication takes 10 % less time with `McfLB` on a machine.
fn tenth(all: &[Compared], name: &str) -> Criterion {
    Criterion::every(
        format!(
            "McfLB on the {name}: communication takes at least 10 % less time than with {}, on average",
            RTT.0
        ),
        on(all, name),
        |(_, [swap, mcf])| 0.9 * mean(&swap.mean) - mean(&mcf.mean),
        |(bound, [swap, mcf])| {
            let [swap, mcf] = [mean(&swap.mean), mean(&mcf.mean)];
            let percent = |less: f64| 100.0 * (1.0 - less / swap);
            format!(
                "{mcf:.4} s, SwapLB {swap:.4} s, {:.2} % less; the lower bound is {bound:.4} s, {:.2} % less",
                percent(mcf),
                percent(*bound)
            )
        },
    )
    .because("the busiest link, which McfLB minimises, is only a part of the time of communication")
}

/// The criterion that on every machine the time with `McfLB` exceeds that with `SwapLB` by at most the fraction
/// `allowed`.
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
            let more = of(mcf).iter().zip(of(swap)).filter(|(mcf, swap)| **mcf > (1.0 + allowed) * **swap);
            let (more, seeds) = (more.count(), of(mcf).len());
            let [swap, mcf] = [swap, mcf].map(|outcome| mean(of(outcome)));
            format!("{mcf:.5} s, SwapLB {swap:.5} s on the {name}, more with {more} of {seeds} seeds")
        },
    )
    .because("of mappings with similar busiest links, those of SwapLB may take slightly less time")
}

/// The least mean of all `SwapLB` searches.
fn least(compared: &Compared) -> f64 {
    let swaps = compared.outcomes.iter().filter(|((_, goal), _)| matches!(goal, Goal::Cost(_)));
    swaps.map(|(_, outcome)| mean(&outcome.mean)).fold(f64::INFINITY, f64::min)
}
