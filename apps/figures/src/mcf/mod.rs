//! Figures 1 to 3 and table 1 of Litvinov's paper: the cost that predicts the time of a mapping.
//!
//! D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing, 2014, section 3.2.
//! Mappings are the results of searches that minimise bytes times distances. Each has this cost, the time of its busiest
//! link, and the simulated time of the program.

use equipoise_apps::Failure;
use equipoise_strategies::mapping::swap_lb::Cost;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};
use crate::statistics::{SAME, pearson};
use data::{Mapped, Named, PLATFORMS, RouterLinks, Study, best_tenth, grid_with, pairs};

pub(crate) mod adaptive;
mod data;
pub(crate) mod machines;
pub(crate) mod search;

/// Figure 1.
pub(crate) const MCF_1: Figure = Figure {
    name: "mcf-1",
    title: "Bytes times distances against the busiest link, SP-MZ on 16 hosts",
    paper: "Litvinov 2014, figure 1",
    paper_shows: "QAP and MCF correlate most on the cluster",
    we_show: "the correlation of both costs over the mappings of searches",
    why: "on a tree of equal links the distances say how busy links are",
    takes: "10 seconds",
    notes: "The criteria are for all points, as in the paper's figure. Results of searches are similar, so a correlation over \
            them alone is lower; it is in brackets. The machines are those of `mcf-2`.",
    run: figure1,
};

/// Figure 2.
pub(crate) const MCF_2: Figure = Figure {
    name: "mcf-2",
    title: "Costs and time along 10 searches, SP-MZ on 16 hosts",
    paper: "Litvinov 2014, figure 2",
    paper_shows: "of 214 swaps QAP is wrong about 44, MCF about 15",
    we_show: "wrong swaps along the same searches",
    why: "the busiest link decides the time",
    takes: "5 seconds",
    notes: "A swap is wrong for a cost if the cost falls and the time rises, or the other way round. Swaps that change only one \
            of the two are not counted. Every swap of a search decreases QAP, so it is wrong for QAP whenever the time rises. \
            The wide-area machines of the paper are from a thesis that does not print their links; ours follow the same \
            description (`equipoise topology help`, platform).",
    run: figure2,
};

/// Figure 3.
pub(crate) const MCF_3: Figure = Figure {
    name: "mcf-3",
    title: "Time against costs relative to their maximum, SP-MZ on 16 hosts",
    paper: "Litvinov 2014, figure 3",
    paper_shows: "time is closer to a linear function of MCF than of QAP",
    we_show: "the same",
    why: "as for mcf-2",
    takes: "10 seconds",
    notes: MACHINES,
    run: figure3,
};

/// Table 1.
pub(crate) const MCF_TABLE1: Figure = Figure {
    name: "mcf-table1",
    title: "Correlations of costs and time, SP-MZ on 16 hosts",
    paper: "Litvinov 2014, table 1",
    paper_shows: "MCF correlates with time by .96 and more, QAP less",
    we_show: "the same, and on grids with slower links",
    why: "the paper's grid is unknown, and the value of QAP depends on its links",
    takes: "10 seconds",
    notes: "The best mappings have a time in the lowest tenth of the range of all times. On the grid QAP correlates less for the \
            final mappings than in the paper: their costs are nearly equal after the searches, and the remaining difference is \
            in the busiest link. QAP correlates more if the random initial mappings are included, as the paper may do \
            (`with random`). The wide-area machines of the paper are from a thesis that does not print their links; ours follow the \
            same description (`equipoise topology help`, platform). On the grid the value of QAP depends on the bandwidth of \
            the links between routers: `grid half` and `grid quarter` have that part of a host's.",
    run: table1,
};

const MACHINES: &str = "The wide-area machines of the paper are from a thesis that does not print their links; ours follow the same \
                        description (`equipoise topology help`, platform).";

/// The number of searches of a figure.
fn restarts(options: &Options) -> usize {
    if options.small { 60 } else { 1000 }
}

const QAP: fn(&Mapped) -> f64 = |mapped| mapped.qap;
const MCF: fn(&Mapped) -> f64 = |mapped| mapped.mcf;

fn figure1(options: &Options) -> Result<FigureResult, Failure> {
    let mut rows = Rows::new([
        ("platform", "platform"),
        ("mappings", "mappings"),
        ("qap", "bytes times distance"),
        ("mcf_seconds", "busiest link s"),
    ]);
    let samples = options.sweep_labelled(by_name(&PLATFORMS), |&(_, machine, metric)| {
        Study::of(machine, "flow")?.sample(metric, restarts(options), options.seed)
    })?;
    let mut series = Vec::new();
    // Correlations over all mappings, and over the final ones, by platform.
    let (mut of_all, mut of_finals) = (Vec::new(), Vec::new());
    for ((name, ..), [starts, ends]) in PLATFORMS.iter().zip(&samples) {
        for (kind, mapped) in [("random", starts), ("final", ends)] {
            for Mapped { qap, mcf, .. } in mapped {
                let [name, kind] = [*name, kind].map(|text| Cell::Text(text.into()));
                rows.push([name, kind, Cell::Number(*qap), Cell::Number(*mcf)]);
            }
        }
        let point = |mapped: &Mapped| (mapped.mcf, mapped.qap);
        let all: Vec<(f64, f64)> = starts.iter().chain(ends).map(point).collect();
        let largest = all.iter().map(|point| point.1).fold(0.0, f64::max);
        of_all.push(pearson(&all));
        of_finals.push(pearson(&ends.iter().map(point).collect::<Vec<_>>()));
        series.push(Series::dots(*name, all.into_iter().map(move |(mcf, qap)| (mcf, qap / largest))));
    }
    let chart = Chart {
        x: Axis::linear("seconds of the busiest link in a step"),
        y: Axis::linear("bytes times distance, relative to the largest value"),
        series,
    };
    let ([cluster, tree, grid], [of_cluster, of_tree, of_grid]) =
        ([0, 1, 2].map(|platform| of_all[platform]), [0, 1, 2].map(|platform| of_finals[platform]));
    let criteria = vec![
        Criterion::new(
            "the costs correlate by at least 0.95 on the cluster",
            format!("{cluster:.3} (final mappings alone {of_cluster:.3})"),
            cluster >= 0.95,
        ),
        Criterion::new(
            "they correlate more on the cluster than on the tree and the grid",
            format!(
                "{cluster:.3}, {tree:.3}, {grid:.3} (final mappings alone {of_cluster:.3}, {of_tree:.3}, {of_grid:.3})"
            ),
            cluster > tree && cluster > grid,
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

/// Platforms with their names, for the progress bar.
fn by_name(platforms: &[Named]) -> impl Iterator<Item = (&'static str, &Named)> {
    platforms.iter().map(|platform| (platform.0, platform))
}

/// Runs of figure 2.
const RUNS: usize = 10;

/// The mappings along searches, the number of swaps, and the number of swaps that are wrong for each cost.
struct Trails {
    platform: &'static str,
    /// By run, by swap.
    mapped: Vec<Vec<Mapped>>,
    swaps: usize,
    qap: usize,
    mcf: usize,
}

fn trails(options: &Options, (name, machine, metric): Named, seed: u64) -> Result<Trails, Failure> {
    let study = Study::of(machine, "flow")?;
    let runs = if options.small { 3 } else { RUNS };
    let mut mapped = Vec::new();
    for ending in study.search(Cost::Qap(metric), runs, seed)? {
        let all = ending.mappings().into_iter().map(|places| study.evaluate(metric, &places));
        mapped.push(all.collect::<Result<Vec<Mapped>, Failure>>()?);
    }
    let steps = || mapped.iter().flat_map(|run| run.windows(2));
    let wrong = |cost: fn(&Mapped) -> f64| {
        steps()
            .filter(|pair| opposite([&pair[0], &pair[1]].map(|mapped| (cost(mapped), mapped.seconds))))
            .count()
    };
    let (swaps, qap, mcf) = (steps().count(), wrong(QAP), wrong(MCF));
    Ok(Trails { platform: name, mapped, swaps, qap, mcf })
}

/// Whether the cost and the time change in opposite directions, each by more than rounding.
fn opposite([before, after]: [(f64, f64); 2]) -> bool {
    let change = |a: f64, b: f64| if (b - a).abs() > SAME * a.abs().max(b.abs()) { b - a } else { 0.0 };
    change(before.0, after.0) * change(before.1, after.1) < 0.0
}

fn figure2(options: &Options) -> Result<FigureResult, Failure> {
    let mut rows = Rows::new([
        ("platform", "platform"),
        ("seed", "seed"),
        ("swaps", "swaps"),
        ("qap_wrong", "QAP wrong"),
        ("mcf_wrong", "MCF wrong"),
        ("paper_swaps", "paper"),
        ("paper_qap_wrong", "QAP wrong"),
        ("paper_mcf_wrong", "MCF wrong"),
    ]);
    let [_, tree, grid] = PLATFORMS;
    let cases = [(grid, 0), (grid, 1), (tree, 0), (tree, 1)];
    let cases = options.choose(&cases, &cases[..2]).iter().copied();
    let cases = cases.map(|(platform, seed)| (format!("{} {seed}", platform.0), (platform, seed)));
    let all = options.sweep_labelled(cases, |(platform, seed)| {
        Ok((seed, trails(options, platform, options.seed.wrapping_add(seed))?))
    })?;
    for (seed, Trails { platform, swaps, qap, mcf, .. }) in &all {
        let is_printed = *platform == "grid" && *seed == 0;
        let paper = [214, 44, 15].map(|count| if is_printed { Cell::Count(count) } else { Cell::Nothing });
        let counts = [*swaps, *qap, *mcf].map(|count| Cell::Count(count as u64));
        let case = [Cell::Text((*platform).into()), Cell::Count(*seed)];
        rows.push(case.into_iter().chain(counts).chain(paper));
    }
    let shown: Vec<&Mapped> =
        all.first().into_iter().flat_map(|(_, trails)| trails.mapped.iter().flatten()).collect();
    let line = |name: &str, of: fn(&Mapped) -> f64| {
        let largest = shown.iter().map(|mapped| of(mapped)).fold(0.0, f64::max);
        let points = shown.iter().enumerate().map(|(at, mapped)| (at as f64, of(mapped) / largest));
        Series::measured(name, points.collect::<Vec<_>>())
    };
    let chart = Chart {
        x: Axis::linear("mappings of the searches on the grid, in sequence"),
        y: Axis::linear("relative to the largest value"),
        series: vec![line("QAP", QAP), line("MCF", MCF), line("time", |mapped| mapped.seconds)],
    };
    let criteria = vec![Criterion::every(
        "MCF is wrong about less than half as many swaps as QAP",
        &all,
        |(_, trails)| 0.5 * trails.qap as f64 - trails.mcf as f64 - f64::MIN_POSITIVE,
        |(seed, Trails { platform, qap, mcf, .. })| {
            format!("MCF {mcf}, QAP {qap} on the {platform}, seed {seed}")
        },
    )];
    Ok(FigureResult { rows, chart, criteria })
}

/// A platform, and the initial and final mappings of searches.
type Sample = (&'static str, [Vec<Mapped>; 2]);

/// Samples on the tree and on the grid.
fn samples(options: &Options) -> Result<Vec<Sample>, Failure> {
    options.sweep_labelled(by_name(&PLATFORMS[1..]), |&(name, machine, metric)| {
        Ok((name, Study::of(machine, "flow")?.sample(metric, restarts(options), options.seed)?))
    })
}

fn figure3(options: &Options) -> Result<FigureResult, Failure> {
    let all = samples(options)?;
    let all: Vec<(&str, Vec<Mapped>)> = all.into_iter().map(|(name, [_, ends])| (name, ends)).collect();
    let mut rows = Rows::new([
        ("platform", "platform"),
        ("qap", "bytes times distance"),
        ("mcf_seconds", "busiest link s"),
        ("seconds", "time s"),
    ]);
    let mut series = Vec::new();
    for (name, mapped) in &all {
        for Mapped { qap, mcf, seconds, .. } in mapped {
            rows.push(
                [Cell::Text((*name).into())].into_iter().chain([*qap, *mcf, *seconds].map(Cell::Number)),
            );
        }
        for (cost, of) in [("QAP", QAP), ("MCF", MCF)] {
            let points = pairs(mapped, of);
            let largest = points.iter().map(|point| point.0).fold(0.0, f64::max);
            let points = points.into_iter().map(move |(cost, seconds)| (cost / largest, seconds));
            series.push(Series::dots(format!("{cost}, {name}"), points));
        }
    }
    let chart = Chart {
        x: Axis::linear("cost relative to the largest value"),
        y: Axis::linear("seconds of 5 steps"),
        series,
    };
    let criteria = vec![Criterion::every(
        "time is closer to a linear function of MCF than of QAP",
        &all,
        |(_, mapped)| pearson(&pairs(mapped, MCF)) - pearson(&pairs(mapped, QAP)),
        |(name, mapped)| {
            let [mcf, qap] = [MCF, QAP].map(|cost| pearson(&pairs(mapped, cost)));
            format!("MCF {mcf:.3}, QAP {qap:.3} on the {name}")
        },
    )];
    Ok(FigureResult { rows, chart, criteria })
}

/// The correlations printed in table 1, by platform: (QAP, MCF) for all mappings, and for the best.
const PAPER: [[[f64; 2]; 2]; 2] = [[[0.91, 0.97], [0.38, 0.66]], [[0.86, 0.96], [0.36, 0.55]]];

/// A row of table 1: platform, kind and number of mappings, and the correlations of QAP and MCF.
struct Correlated {
    platform: &'static str,
    which: &'static str,
    mappings: usize,
    ours: [f64; 2],
    paper: Option<[f64; 2]>,
}

/// The kinds of mappings in table 1, and `with random`, which is not in the paper.
const FINALS: &str = "all";
const BEST: &str = "best 10 %";
const WITH_RANDOM: &str = "with random";

fn correlated(options: &Options) -> Result<Vec<Correlated>, Failure> {
    let mut all = Vec::new();
    for ((platform, [starts, ends]), [of_all, of_best]) in samples(options)?.into_iter().zip(PAPER) {
        let best = best_tenth(&ends);
        let with_random = [&ends[..], &starts].concat();
        for (which, mapped, paper) in
            [(FINALS, ends, Some(of_all)), (BEST, best, Some(of_best)), (WITH_RANDOM, with_random, None)]
        {
            let ours = [QAP, MCF].map(|cost| pearson(&pairs(&mapped, cost)));
            all.push(Correlated { platform, which, mappings: mapped.len(), ours, paper });
        }
    }
    let metric = PLATFORMS[2].2;
    for (platform, part) in [("grid half", 0.5), ("grid quarter", 0.25)] {
        let study = Study::on(grid_with(RouterLinks::Of(part), options.seed)?, "flow")?;
        let [_, ends] = study.sample(metric, restarts(options), options.seed)?;
        let ours = [QAP, MCF].map(|cost| pearson(&pairs(&ends, cost)));
        all.push(Correlated { platform, which: FINALS, mappings: ends.len(), ours, paper: None });
    }
    Ok(all)
}

fn table1(options: &Options) -> Result<FigureResult, Failure> {
    let all = correlated(options)?;
    let mut rows = Rows::new([
        ("platform", "platform"),
        ("mappings", "mappings"),
        ("count", "count"),
        ("qap_correlation", "QAP"),
        ("paper_qap_correlation", "paper"),
        ("mcf_correlation", "MCF"),
        ("paper_mcf_correlation", "paper"),
    ]);
    for Correlated { platform, which, mappings, ours, paper } in &all {
        let paper = |cost: usize| Cell::maybe(paper.map(|paper| paper[cost]));
        let numbers = [Cell::Number(ours[0]), paper(0), Cell::Number(ours[1]), paper(1)];
        let names = [platform, which].map(|name| Cell::Text((*name).into()));
        rows.push(names.into_iter().chain([Cell::Count(*mappings as u64)]).chain(numbers));
    }
    let of = |which: fn(&Correlated) -> Option<f64>| {
        let points = all.iter().enumerate();
        points.filter_map(move |(at, row)| Some((at as f64 + 1.0, which(row)?))).collect::<Vec<_>>()
    };
    let chart = Chart {
        x: Axis::linear("tree: all, best 10 %, with random; grid: the same; grid half; grid quarter"),
        y: Axis::linear("correlation with the time"),
        series: vec![
            Series::measured("QAP", of(|row| Some(row.ours[0]))),
            Series::measured("MCF", of(|row| Some(row.ours[1]))),
            Series::paper("QAP in the paper", of(|row| Some(row.paper?[0]))),
            Series::paper("MCF in the paper", of(|row| Some(row.paper?[1]))),
        ],
    };
    Ok(FigureResult { rows, chart, criteria: of_table1(&all) })
}

/// The criteria of table 1.
fn of_table1(all: &[Correlated]) -> Vec<Criterion> {
    let of = |platform: &'static str, which: &'static str| {
        all.iter().filter(move |row| row.platform == platform && row.which == which)
    };
    let measured = |row: &&Correlated| {
        let Correlated { platform, which, ours: [qap, mcf], .. } = row;
        format!("QAP {qap:.3}, MCF {mcf:.3} on the {platform}, {which}")
    };
    let apart = |row: &Correlated, cost: usize| {
        row.paper.map_or(f64::NAN, |paper| (row.ours[cost] - paper[cost]).abs())
    };
    let far = |row: &&Correlated| apart(row, 0).max(apart(row, 1));
    vec![
        Criterion::every(
            "MCF correlates more than QAP in all four cells",
            all.iter().filter(|row| row.paper.is_some()),
            |row| row.ours[1] - row.ours[0],
            measured,
        ),
        Criterion::every(
            "all on the tree are within 0.05 of the paper",
            of("tree", FINALS),
            |row| 0.05 - far(row),
            measured,
        ),
        Criterion::every(
            "the best on the tree are within 0.15 of the paper",
            of("tree", BEST),
            |row| 0.15 - far(row),
            measured,
        ),
        Criterion::every(
            "MCF correlates by at least 0.90 on the grid",
            of("grid", FINALS),
            |row| row.ours[1] - 0.90,
            measured,
        ),
        Criterion::every(
            "MCF on the grid is within 0.05 of the paper",
            of("grid", FINALS),
            |row| 0.05 - apart(row, 1),
            |row| format!("{}; the paper has 0.96", measured(row)),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_wrong_swaps_are_those_of_the_reference() {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/simgrid/fig2_search_tree.csv");
        let Ok(text) = std::fs::read_to_string(file) else {
            equipoise_model::testing::skip(&format!("there is no {file}"));
            return;
        };
        let numbers = |line: &str| -> Vec<f64> {
            line.split(',').map(|cell| cell.parse().expect("a number")).collect()
        };
        let rows: Vec<Vec<f64>> = text.lines().skip(1).map(numbers).collect();
        let of_a_run = rows.windows(2).filter(|pair| pair[0][0] == pair[1][0]);
        let wrong = |at: usize| {
            let count = |pair: &&[Vec<f64>]| opposite([0, 1].map(|of| (pair[of][at], pair[of][4])));
            of_a_run.clone().filter(count).count()
        };
        assert_eq!([wrong(2), wrong(3)], [42, 14]);
    }
}
