//! Figures 4 and 10 of the paper on TreeMatch in Charm++: LeanMD and Stencil3D.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load balancing
//! in Charm++ with TreeMatch", Cluster 2013, sections VI.A and VI.C. Of figure 4 the paper says that
//! TMLB_MIN_WEIGHT takes 30 % off the time without balancing for 2000 particles per cell and more; of
//! figure 10 that TMLB_TREEBASED gains roughly 18 % on the others and that its times deviate less.

use super::axis::Axis;
use super::balanced::{
    Balanced, DUMMY, GREEDY, GREEDY_COMM, GREEDY_LEANMD, MIN_WEIGHT, Plan, REFINE, REFINE_COMM, TREE_BASED,
    Thinker, drawn, in_turn, of,
};
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::rows::{Cell, Rows};
use crate::stencil::{Extent, Rules};
use crate::{leanmd, stencil3d};

/// Figure 4.
pub(super) const TREEMATCH_4: Figure = Figure {
    name: "treematch-4",
    title: "LeanMD's 960 chares on 64 cores",
    paper: "Jeannot et al. 2013, figure 4",
    takes: "two minutes",
    notes: "Times are of 100 steps. The load-balancing step is after 10 of them, which is the program's default; 9 more \
            are simulated, and the rest takes what the last six do. As in figure 5, cells have 100 to 250 particles for \
            175 in the mean, which is LeanMD's default, and put their computes on the cores after their own, one on each; \
            cells stay where they are. A strategy takes as long as the paper says.\n\
            The loads before the step (max/avg 1.45) allow a gain of 31 %, and those after TMLB_MIN_WEIGHT (1.01 to 1.02) \
            nearly all of it. Its steps are the shortest; its own 233 ms are 2 % of the time of 100 steps with 2000 \
            particles, which GreedyLB takes less, and nothing with more.\n\
            Forces are expedited: they go before what waits on the core of their cell, as do the reductions of Charm++'s \
            multicast library, which LeanMD is built on. Where they queue instead behind computes of milliseconds, 27 \
            computes elsewhere wait with the cell: with 2000 particles TMLB_MIN_WEIGHT's steps then take 127 ms in place \
            of 112, and it gains 16 %.\n",
    run: leanmd,
};

/// Figure 10.
pub(super) const TREEMATCH_10: Figure = Figure {
    name: "treematch-10",
    title: "Stencil3D, 64 chares on 64 cores",
    paper: "Jeannot et al. 2013, figure 10",
    takes: "20 seconds",
    notes: "Times are of 10,000 iterations with blocks of 64x64x64 cells, 1.5 ns (4 cycles) each; the paper says \
            neither, and both decide the gain: the larger the blocks or the slower the cells, the less it is. The load-balancing step is after 10 of them; 3 more are simulated, and the rest takes what the \
            last two do. Blocks of 16x16x16 cells cross links of a 16th of the bandwidth, which takes as long. In \
            each of the runs that a deviation is of, PEs are numbered over cores in another order, drawn from \
            the seed, as a launcher does that binds nothing. There is one block per core, and all are alike: strategies \
            that do not know the machine have nothing to gain. Strategies take as long as the paper says.\n",
    run: stencil3d,
};

/// What is compared for figure 4.
const FOR_LEANMD: [Thinker; 6] = [DUMMY, GREEDY_LEANMD, GREEDY_COMM, REFINE, REFINE_COMM, MIN_WEIGHT];

/// What is compared for figure 10.
const FOR_STENCIL: [Thinker; 6] = [DUMMY, GREEDY, GREEDY_COMM, REFINE, REFINE_COMM, TREE_BASED];

/// What the paper says that TMLB_MIN_WEIGHT gains, and TMLB_TREEBASED.
const PAPER_GAINS: [f64; 2] = [0.30, 0.18];

/// The strategies with so many particles per cell in the mean.
struct Sized {
    particles: u32,
    times: Vec<Balanced>,
}

fn leanmd(options: &Options) -> anyhow::Result<FigureResult> {
    let sizes = options.choose(&[1000, 2000, 4000], &[100, 250]);
    let (before, after) = if options.small { (3, 1) } else { (10, 3) };
    let all = options.sweep(sizes.iter().copied(), |particles| {
        let plan = Plan {
            before,
            after,
            iterations: 100,
            initial: "blocks",
            cores: in_turn(),
            scale: 1.0,
            seed: options.seed,
        };
        let program = |iterations| leanmd::Options {
            particles: [particles * 4 / 7, particles * 10 / 7],
            iterations,
            lb_every: plan.before,
            forces: leanmd::Work::Modelled,
            spread: true,
            ..leanmd::Options::default()
        };
        let run = |config, iterations| leanmd::simulate(config, &program(iterations));
        Ok(Sized { particles, times: plan.times(&FOR_LEANMD, run) })
    })?;
    let mut rows = Rows::new([
        ("strategy", "strategy"),
        ("particles_per_cell", "particles/cell"),
        ("seconds", "s"),
        ("iteration_milliseconds", "ms per step"),
        ("migrations", "migrations"),
        ("gain", "gain"),
        ("paper_gain", "paper"),
    ]);
    for Sized { particles, times } in &all {
        let plain = of(times, DUMMY)?;
        for balanced in times {
            let printed = balanced.strategy == MIN_WEIGHT.name && *particles >= 2000;
            rows.push([
                Cell::Text(balanced.strategy.into()),
                Cell::Count(u64::from(*particles)),
                Cell::Number(balanced.seconds),
                Cell::Number(1e3 * balanced.iteration_seconds),
                Cell::Count(balanced.migrations),
                Cell::Number(balanced.gain(plain)),
                if printed { Cell::Number(PAPER_GAINS[0]) } else { Cell::Nothing },
            ]);
        }
    }
    let mut series = Vec::new();
    for thinker in FOR_LEANMD {
        let point = |sized: &Sized| Ok((f64::from(sized.particles), of(&sized.times, thinker)?.seconds));
        let points = all.iter().map(point).collect::<anyhow::Result<Vec<_>>>()?;
        series.push(Series::measured(thinker.name, points));
    }
    let chart = Chart { x: Axis::log("particles per cell"), y: Axis::log("seconds of 100 steps"), series };
    let mut large = Vec::new();
    for Sized { particles, times } in all.iter().filter(|sized| sized.particles >= 2000 || options.small) {
        let [plain, tmlb, greedy, refine] =
            [of(times, DUMMY)?, of(times, MIN_WEIGHT)?, of(times, GREEDY_LEANMD)?, of(times, REFINE)?];
        large.push((particles, tmlb.gain(plain), [tmlb, greedy, refine]));
    }
    let largest = large.last();
    let criteria = vec![
        Criterion::every(
            "TMLB_MIN_WEIGHT gains 20 to 40 % for 2000 particles per cell and more (paper: 30)",
            &large,
            |(_, gain, _)| (gain - 0.2).min(0.4 - gain),
            |(particles, gain, _)| format!("{:.1} % with {particles}", 100.0 * gain),
        ),
        Criterion::every(
            "its steps take no longer than those of GreedyLB and RefineLB there",
            &large,
            |(_, _, [tmlb, greedy, refine])| {
                greedy.iteration_seconds.min(refine.iteration_seconds) - tmlb.iteration_seconds
            },
            |(particles, _, all)| {
                let [tmlb, greedy, refine] = all.map(|balanced| 1e3 * balanced.iteration_seconds);
                format!("{tmlb:.1} ms, GreedyLB {greedy:.1}, RefineLB {refine:.1} with {particles}")
            },
        ),
        Criterion::every(
            "with most particles it takes no longer than GreedyLB and RefineLB, to 1 %, its own time included",
            largest,
            |(_, _, [tmlb, greedy, refine])| 1.01 * greedy.seconds.min(refine.seconds) - tmlb.seconds,
            |(particles, _, [tmlb, greedy, refine])| format!("{tmlb}, {greedy}, {refine} with {particles}"),
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

/// The times of a strategy in several runs.
struct Runs {
    mean: f64,
    deviation: f64,
    iteration_seconds: f64,
}

impl Runs {
    fn of(all: &[Vec<Balanced>], thinker: Thinker) -> anyhow::Result<Runs> {
        let times = all.iter().map(|times| of(times, thinker)).collect::<anyhow::Result<Vec<_>>>()?;
        let count = times.len() as f64;
        let mean = times.iter().map(|balanced| balanced.seconds).sum::<f64>() / count;
        let squares = times.iter().map(|balanced| (balanced.seconds - mean).powi(2)).sum::<f64>();
        let iteration_seconds = times.iter().map(|balanced| balanced.iteration_seconds).sum::<f64>() / count;
        Ok(Runs { mean, deviation: (squares / count).sqrt(), iteration_seconds })
    }
}

/// Cells of a block along each dimension, as they are simulated, and how many times as many there are.
const CELLS: i32 = 16;
const TIMES_AS_MANY: i32 = 4;

/// Seconds that updating a cell takes.
const CELL_SECONDS: f64 = 1.5e-9;

fn stencil3d(options: &Options) -> anyhow::Result<FigureResult> {
    let runs = if options.small { 2 } else { 5 };
    let all = options.sweep(0..runs, |run| {
        let seed = options.seed.wrapping_add(run);
        let plan = Plan {
            before: 10,
            after: 1,
            iterations: 10_000,
            initial: "blocks",
            cores: drawn(seed),
            scale: f64::from(TIMES_AS_MANY.pow(2)),
            seed,
        };
        let program = |iterations| stencil3d::Options {
            blocks: Extent([4; 3]),
            cells: Extent([CELLS; 3]),
            rules: Rules {
                iterations,
                lb_every: plan.before,
                periodic: true,
                charge: Some(CELL_SECONDS * f64::from(TIMES_AS_MANY.pow(3))),
                ..Rules::default()
            },
        };
        let run = |config, iterations| stencil3d::solve(config, &program(iterations));
        Ok(plan.times(&FOR_STENCIL, run))
    })?;
    let best = Runs::of(&all, TREE_BASED)?;
    let mut rows = Rows::new([
        ("strategy", "strategy"),
        ("seconds", "s"),
        ("standard_deviation_seconds", "deviation"),
        ("iteration_milliseconds", "ms per iteration"),
        ("treebased_gain", "gain of TMLB_TREEBASED"),
        ("paper_treebased_gain", "paper"),
    ]);
    let mut others = Vec::new();
    let mut points = Vec::new();
    for (thinker, number) in FOR_STENCIL.into_iter().zip(1..) {
        let measured = Runs::of(&all, thinker)?;
        let gain = 1.0 - best.mean / measured.mean;
        let is_other = thinker.name != TREE_BASED.name;
        rows.push([
            Cell::Text(thinker.name.into()),
            Cell::Number(measured.mean),
            Cell::Number(measured.deviation),
            Cell::Number(1e3 * measured.iteration_seconds),
            Cell::Number(gain),
            if is_other { Cell::Number(PAPER_GAINS[1]) } else { Cell::Nothing },
        ]);
        points.push((f64::from(number), measured.mean));
        if is_other {
            others.push((thinker, gain, measured.deviation));
        }
    }
    let chart = Chart {
        x: Axis::linear("strategy, in the order of the table"),
        y: Axis::linear("seconds of 10,000 iterations"),
        series: vec![Series::measured(format!("Stencil3D, mean of {runs} runs"), points)],
    };
    let criteria = vec![
        Criterion::every(
            "TMLB_TREEBASED gains 10 to 30 % on each of the others (paper: roughly 18)",
            &others,
            |(_, gain, _)| (gain - 0.1).min(0.3 - gain),
            |(thinker, gain, _)| format!("{:.1} % on {thinker}", 100.0 * gain),
        ),
        Criterion::every(
            "and deviates least",
            &others,
            |(_, _, deviation)| deviation - best.deviation,
            |(thinker, _, deviation)| format!("{:.4} s, {thinker} {deviation:.4} s", best.deviation),
        ),
        Criterion::every(
            "iterations repeat, to 2 %",
            all.iter().flatten(),
            |balanced| 0.02 - balanced.drift,
            |balanced| format!("{:.3} % with {}", 100.0 * balanced.drift, balanced.strategy),
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}
