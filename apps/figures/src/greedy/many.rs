//! Several processes per PE: the accuracy of the estimate F, and the usage-factor rule.
//!
//! G. De Petris, R. Perego, "A new mapping heuristic for last generation multicomputers" (report C94-09, 1994), sections 4
//! and 5.2. The paper measures F only with one process per PE. It reports that the usage-factor rule gains more than 5 % on
//! 50 random programs.

use equipoise_apps::Failure;
use equipoise_model::topology;
use equipoise_network::program::{Costs, Model, OVERLAP, Waits, generate};
use equipoise_strategies::cost::contention::{Estimate, Speeds};
use equipoise_strategies::mapping::de_petris_perego::{Rules, map};

use super::cycles;
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};
use crate::statistics::pearson;

/// F and simulated completion times.
pub(crate) const GREEDY_MANY: Figure = Figure {
    name: "greedy-many",
    title: "The estimate F and the simulated completion time of programs with several processes per PE",
    paper: "beyond De Petris, Perego 1994",
    paper_shows: "nothing; the paper measures F with one process per PE only",
    we_show: "the rank correlation of F with the time if PEs are shared",
    why: "our F counts a PE as finished when all its processes have worked",
    takes: "10 seconds",
    notes: "Every program has 40 independent random placements. `even`: all PEs are equally likely. `uneven`: from placement to \
            placement, the first PEs become more likely, so that the placements differ in balance, like the candidates of a \
            mapper. A mapper only compares placements, so the criteria are for the rank correlation. The paper's F (`waits added`) adds the idle times of all \
            processes of a PE, although one process works while another waits. The paper's F is up to twice the simulated time, \
            and for even placements its rank correlation is below 0.8. The criteria are for our F (cost::contention). There a PE \
            is finished when all its processes have worked, and each has worked and waited. With one process per PE both \
            versions of F are equal.\n",
    run: many,
};

/// The usage-factor rule.
pub(crate) const GREEDY_USAGE: Figure = Figure {
    name: "greedy-usage",
    title: "Random programs with several processes per PE, with and without the usage-factor rule",
    paper: "De Petris, Perego 1994, section 5.2",
    paper_shows: "the usage-factor rule gains more than 5 % on random programs with shared PEs",
    we_show: "the same with and without the rule",
    why: "our F balances PEs without the rule, which fills the first PEs in order",
    takes: "2 seconds",
    notes: "In the paper the rule gains more than 5 %: used PEs come first while they have fewer tasks than the mean. Here the \
            rule gains on a few programs and loses on most programs with more than 9 PEs: it fills the first PEs with the next \
            tasks in order. Without the rule, F already balances the PEs, because a PE is finished when all its tasks have \
            worked. So the rule is off by default (`usage=on` enables it).\n",
    run: usage,
};

/// The distribution of random placements.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Even,
    Uneven,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Even => "even",
            Kind::Uneven => "uneven",
        }
    }

    /// Random placement `number` of `count`, of `tasks` processes on `pes` PEs.
    fn sample(self, tasks: usize, pes: usize, number: u64, count: u64, seed: u64) -> Vec<u32> {
        let all = 4 * tasks * pes;
        let exponent = match self {
            Kind::Even => 1.0,
            Kind::Uneven => 1.0 + 2.0 * number as f64 / count as f64,
        };
        let pe = |&at: &u32| {
            let part = (f64::from(at) + 0.5) / all as f64;
            (pes as f64 * part.powf(exponent)) as u32
        };
        let samples = generate::permutation(all, seed.wrapping_mul(1000).wrapping_add(number));
        samples[..tasks].iter().map(pe).collect()
    }
}

/// Estimated and simulated completion times of the placements of a program, in cycles.
struct Comparison {
    tasks: usize,
    side: usize,
    kind: Kind,
    /// With our F, and with that of the paper.
    overlapped: Vec<(f64, f64)>,
    added: Vec<(f64, f64)>,
}

impl Comparison {
    fn of(side: usize, each: usize, kind: Kind, count: u64, seed: u64) -> Result<Comparison, Failure> {
        let (pes, tasks) = (side * side, each * side * side);
        let program = generate::known(&format!("random:n={tasks},flits=64,iterations=10,seed={seed}"));
        let machine = topology::parse(&format!("mesh:{side}x{side}"))?;
        let overlapped = Model::of(&program, Costs::default(), OVERLAP)?;
        let added = Model { waits: Waits::Added, ..overlapped.clone() };
        let mut judged = Comparison { tasks, side, kind, overlapped: Vec::new(), added: Vec::new() };
        for number in 0..count {
            let places = kind.sample(tasks, pes, number, count, seed);
            let end = cycles(&program, &machine, &places, Costs::default())? as f64;
            for (model, ends) in [(&overlapped, &mut judged.overlapped), (&added, &mut judged.added)] {
                let ticks = Estimate::of(model, &*machine, &Speeds::default(), &places);
                ends.push((Model::cycles(ticks), end));
            }
        }
        Ok(judged)
    }
}

/// The mean relative excess of estimates over simulated times.
fn bias(ends: &[(f64, f64)]) -> f64 {
    ends.iter().map(|(estimate, end)| estimate / end - 1.0).sum::<f64>() / ends.len() as f64
}

/// The rank correlation (C. Spearman, 1904); equal numbers have the mean of their ranks.
fn spearman(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |of: fn(&(f64, f64)) -> f64| {
        let below = move |it: f64| pairs.iter().filter(|other| of(other) < it).count() as f64;
        let same = move |it: f64| pairs.iter().filter(|other| of(other) == it).count() as f64;
        pairs.iter().map(move |pair| below(of(pair)) + (same(of(pair)) - 1.0) / 2.0)
    };
    pearson(&ranks(|it| it.0).zip(ranks(|it| it.1)).collect::<Vec<_>>())
}

fn many(options: &Options) -> Result<FigureResult, Failure> {
    let all = [(2, 4), (3, 2), (3, 4), (4, 2), (4, 4), (4, 8), (5, 4), (6, 4)];
    let wanted = options.choose(&all, &all[..2]);
    let count = if options.small { 12 } else { 40 };
    let cases: Vec<(usize, Kind)> =
        (0..wanted.len()).flat_map(|at| [Kind::Even, Kind::Uneven].map(|kind| (at, kind))).collect();
    let judged = options.sweep(0..cases.len(), |case| {
        let (at, kind) = cases[case];
        let (side, each) = wanted[at];
        Comparison::of(side, each, kind, count, options.seed.wrapping_add(at as u64))
    })?;
    let mut rows = Rows::new([
        ("tasks", "tasks"),
        ("pes", "PEs"),
        ("placements", "placements"),
        ("rank_correlation", "rank correlation"),
        ("bias", "bias"),
        ("added_rank_correlation", "waits added: rank correlation"),
        ("added_bias", "bias"),
    ]);
    for it in &judged {
        rows.push([
            Cell::Count(it.tasks as u64),
            Cell::Count((it.side * it.side) as u64),
            Cell::Text(it.kind.name().into()),
            Cell::Number(spearman(&it.overlapped)),
            Cell::Number(bias(&it.overlapped)),
            Cell::Number(spearman(&it.added)),
            Cell::Number(bias(&it.added)),
        ]);
    }
    let of_kind = |kind| judged.iter().filter(move |it| it.kind == kind);
    let measured = |it: &&Comparison| {
        format!("{:.3} for {} tasks on {} PEs", spearman(&it.overlapped), it.tasks, it.side * it.side)
    };
    let criteria = [Kind::Even, Kind::Uneven].map(|kind| {
        let name = kind.name();
        Criterion::every(
            format!(
                "{name} placements: for every program, the rank correlation of F with the completion time is at least 0.8"
            ),
            of_kind(kind),
            |it| spearman(&it.overlapped) - 0.8,
            measured,
        )
    });
    let series = [Kind::Even, Kind::Uneven].map(|kind| {
        let points =
            of_kind(kind).flat_map(|it| it.overlapped.iter().map(|&(estimate, end)| (end, estimate)));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series::measured(kind.name(), points)
    });
    let chart =
        Chart { x: Axis::log("completion time, cycles"), y: Axis::log("F, cycles"), series: series.into() };
    Ok(FigureResult { rows, chart, criteria: criteria.into() })
}

/// The completion times of a program without and with the rule.
struct UsageResult {
    tasks: usize,
    pes: usize,
    without_cycles: u64,
    with_cycles: u64,
}

impl UsageResult {
    fn of(graph: u64, options: &Options) -> Result<UsageResult, Failure> {
        let side = [3, 4, 5][graph as usize % 3];
        let tasks = side * side * [2, 3, 4, 6][graph as usize % 4] + graph as usize % 5;
        let seed = options.seed.wrapping_add(graph);
        let program =
            generate::known(&format!("random:n={tasks},degree=5.5,flits=64,iterations=5,seed={seed}"));
        let machine = topology::parse(&format!("mesh:{side}x{side}"))?;
        let model = Model::of(&program, Costs::default(), OVERLAP)?;
        let all: Vec<u32> = (0..machine.pes() as u32).collect();
        let end = |usage| {
            let rules = Rules { usage, ..Rules::default() };
            let mapped = map(&model, &*machine, &Speeds::default(), &all, &rules, options.seed)?;
            cycles(&program, &machine, &mapped.places, Costs::default())
        };
        Ok(UsageResult { tasks, pes: side * side, without_cycles: end(false)?, with_cycles: end(true)? })
    }

    fn ratio(&self) -> f64 {
        self.with_cycles as f64 / self.without_cycles as f64
    }
}

fn usage(options: &Options) -> Result<FigureResult, Failure> {
    let graphs = if options.small { 3 } else { 50 };
    let all = options.sweep(0..graphs, |graph| UsageResult::of(graph, options))?;
    let mut rows = Rows::new([
        ("tasks", "tasks"),
        ("pes", "PEs"),
        ("without_cycles", "without"),
        ("with_cycles", "with"),
        ("ratio", "ratio"),
    ]);
    for it in &all {
        rows.push([
            Cell::Count(it.tasks as u64),
            Cell::Count(it.pes as u64),
            Cell::Count(it.without_cycles),
            Cell::Count(it.with_cycles),
            Cell::Number(it.ratio()),
        ]);
    }
    let mean = all.iter().map(|it| 1.0 - it.ratio()).sum::<f64>() / all.len() as f64;
    let better = all.iter().filter(|it| it.ratio() < 1.0).count();
    let criterion = Criterion::new(
        "the rule makes programs shorter on average (paper: by more than 5 %)",
        format!("{:.1} % on average, {better} of {} are shorter", 100.0 * mean, all.len()),
        mean > 0.0,
    );
    let why = "F balances PEs without the rule, which fills the first PEs with the next tasks in order";
    let criteria = vec![criterion.because(why)];
    let points = |of: fn(&UsageResult) -> u64| {
        (1..).map(f64::from).zip(all.iter().map(|it| of(it) as f64)).collect::<Vec<_>>()
    };
    let chart = Chart {
        x: Axis::linear("program"),
        y: Axis::linear("cycles"),
        series: vec![
            Series::measured("without the rule", points(|it| it.without_cycles)),
            Series::measured("with the rule", points(|it| it.with_cycles)),
        ],
    };
    Ok(FigureResult { rows, chart, criteria })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_correlation_depends_only_on_ranks() {
        assert_eq!(spearman(&[(1.0, 10.0), (2.0, 1000.0), (3.0, 1001.0)]), 1.0);
        assert_eq!(spearman(&[(1.0, 3.0), (2.0, 2.0), (3.0, -50.0)]), -1.0);
        // Ranks 0.5, 0.5, 2 and 0, 1, 2.
        let tied = spearman(&[(1.0, 0.0), (1.0, 1.0), (5.0, 2.0)]);
        assert!((tied - 0.75_f64.sqrt()).abs() < 1e-12, "{tied}");
    }

    #[test]
    fn uneven_placements_prefer_some_pes() {
        let counts = |kind: Kind, number| {
            let mut counts = [0; 4];
            kind.sample(400, 4, number, 40, 1).iter().for_each(|&pe| counts[pe as usize] += 1);
            counts
        };
        assert!(counts(Kind::Even, 39).iter().all(|count| (70..130).contains(count)));
        assert!(counts(Kind::Uneven, 39)[0] > 200, "{:?}", counts(Kind::Uneven, 39));
        assert_ne!(Kind::Even.sample(40, 4, 0, 40, 1), Kind::Even.sample(40, 4, 1, 40, 1));
    }
}
