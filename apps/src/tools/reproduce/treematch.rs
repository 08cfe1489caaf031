//! Figures 5 and 9 of the paper on TreeMatch in Charm++: migrations, and the time of strategies.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load balancing
//! in Charm++ with TreeMatch", Cluster 2013, sections VI.A and VI.B, on 64 cores: 8 nodes of 2 sockets with 4
//! cores each. Of figure 5 the paper says that GreedyLB migrates nearly all of LeanMD's 960 chares, and that
//! about 680 migrate where the matching of groups with cores is left out, with TMLB_MIN_WEIGHT between GreedyLB
//! and RefineLB; of figure 9, that times are linear in the number of chares.

use std::time::Instant;

use equipoise_strategies::cost::Metrics;
use equipoise_strategies::{Database, graph, topology};
use rayon::ThreadPoolBuilder;

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::mapping::ask;
use super::rows::{Cell, Rows};

/// Figure 5.
pub(super) const TREEMATCH_5: Figure = Figure {
    name: "treematch-5",
    title: "Migrations of LeanMD's 960 chares on 64 cores",
    paper: "Jeannot et al. 2013, figure 5",
    takes: "a second",
    notes: "Without the matching, our groups are on cores in tree order, which knows nothing of where chares \
            are: about as many migrate as if every group were on a core drawn at random, 945. That the paper has \
            about 680 this does not explain. It says that the program then takes about 5 % longer, a time that \
            this figure, which runs no program, does not have.\n",
    run: migrations,
};

/// Figure 9.
pub(super) const TREEMATCH_9: Figure = Figure {
    name: "treematch-9",
    title: "Time of strategies for kNeighbor on 64 cores",
    paper: "Jeannot et al. 2013, figure 9",
    takes: "10 seconds",
    notes: "The paper prints times for the 64 chares of Stencil3D only, beside figure 10: 214.8 ms for \
            TMLB_TREEBASED, about 7.5 ms for RefineCommLB, and less than 1 ms (here 1) for the other strategies \
            of Charm++.\n",
    run: times,
};

const MACHINE: &str = "tree:8:2:4";
const PES: u32 = 64;

const GREEDY: &str = "GreedyLB";
const REFINE: &str = "RefineLB";
const MIN_WEIGHT: &str = "TMLB_MIN_WEIGHT";
const UNMATCHED: &str = "TMLB_MIN_WEIGHT:matching=off";
const TREE_BASED: &str = "TMLB_TREEBASED";

/// The migrations of GreedyLB to be expected: of 64 places, one is where a chare is.
const EXPECTED_GREEDY: u64 = 945;

/// About how many chares the paper says migrate without the matching of groups with cores.
const PAPER_UNMATCHED: u64 = 680;

/// What figure 5 compares.
const MIGRATING: [&str; 7] =
    [GREEDY, "GreedyCommLB", REFINE, "RefineCommLB", MIN_WEIGHT, UNMATCHED, TREE_BASED];

/// What is compared for figure 9; the paper has TMLB_MIN_WEIGHT, which is for other programs, elsewhere.
const THINKING: [&str; 6] = [GREEDY, "GreedyCommLB", REFINE, "RefineCommLB", MIN_WEIGHT, TREE_BASED];

/// What a strategy made of LeanMD.
struct Balanced {
    particles: u64,
    strategy: &'static str,
    before: Metrics,
    after: Metrics,
}

/// Figure 5: a program with so many particles per cell in the mean, balanced once.
fn migrations(options: &Options) -> anyhow::Result<FigureResult> {
    let machine = topology::parse(MACHINE)?;
    let sizes = options.choose(&[250, 500, 1000, 2000, 4000], &[500, 2000]);
    let sweeps = options.sweep(sizes.iter().copied(), |particles| {
        let database = leanmd(particles)?;
        let before = Metrics::of(&database, &*machine, &database.placement());
        let balance = |strategy| {
            let answer = ask(strategy, &database, &*machine, options.seed)?;
            let after = Metrics::of(&database, &*machine, &answer.pe_of);
            Ok(Balanced { particles, strategy, before: before.clone(), after })
        };
        MIGRATING.into_iter().map(balance).collect::<anyhow::Result<Vec<_>>>()
    })?;
    let all: Vec<Balanced> = sweeps.into_iter().flatten().collect();
    let mut rows = Rows::new([
        ("strategy", "strategy"),
        ("particles_per_cell", "particles/cell"),
        ("migrations", "migrations"),
        ("paper_migrations", "paper"),
        ("expected_migrations", "expected"),
        ("imbalance_before", "imbalance before"),
        ("imbalance", "after"),
        ("remote_messages_before", "remote messages before"),
        ("remote_messages", "after"),
    ]);
    let remote = |metrics: &Metrics| {
        metrics.communication.map_or(Cell::Nothing, |cost| Cell::Count(cost.remote_messages))
    };
    for Balanced { particles, strategy, before, after } in &all {
        rows.push([
            Cell::Text((*strategy).into()),
            Cell::Count(*particles),
            Cell::Count(after.migrations),
            if *strategy == UNMATCHED { Cell::Count(PAPER_UNMATCHED) } else { Cell::Nothing },
            if *strategy == GREEDY { Cell::Count(EXPECTED_GREEDY) } else { Cell::Nothing },
            Cell::Number(before.imbalance),
            Cell::Number(after.imbalance),
            remote(before),
            remote(after),
        ]);
    }
    let of = |strategy: &'static str| all.iter().filter(move |balanced| balanced.strategy == strategy);
    let mut series: Vec<Series> = MIGRATING
        .into_iter()
        .map(|strategy| {
            let point = |balanced: &Balanced| (balanced.particles as f64, balanced.after.migrations as f64);
            Series::measured(strategy, of(strategy).map(point))
        })
        .collect();
    let flat = |migrations: u64| sizes.iter().map(move |&particles| (particles as f64, migrations as f64));
    series.push(Series::theory(format!("{GREEDY}, expected"), flat(EXPECTED_GREEDY)));
    series.push(Series::paper(format!("{UNMATCHED} in the paper"), flat(PAPER_UNMATCHED)));
    let chart = Chart { x: Axis::log("particles per cell"), y: Axis::linear("migrations"), series };
    let count = |balanced: &Balanced| balanced.after.migrations as f64;
    let told = |balanced: &&Balanced| {
        format!("{} with {} particles per cell", balanced.after.migrations, balanced.particles)
    };
    let criteria = vec![
        Criterion::every("GreedyLB migrates at least 900", of(GREEDY), |b| count(b) - 900.0, told),
        Criterion::every("RefineLB migrates at most 15 %, 144", of(REFINE), |b| 144.0 - count(b), told),
        Criterion::every(
            "TMLB_MIN_WEIGHT migrates more than RefineLB and fewer than GreedyLB",
            of(REFINE).zip(of(MIN_WEIGHT)).zip(of(GREEDY)),
            |((refine, tmlb), greedy)| (count(tmlb) - count(refine)).min(count(greedy) - count(tmlb)) - 1.0,
            |((refine, tmlb), greedy)| {
                let [least, most] = [refine, greedy].map(|balanced| balanced.after.migrations);
                format!("{}, between {least} and {most}", told(tmlb))
            },
        ),
        Criterion::every(
            "TMLB_MIN_WEIGHT migrates fewer than without the matching",
            of(MIN_WEIGHT).zip(of(UNMATCHED)),
            |(with, without)| count(without) - count(with) - 1.0,
            |(with, without)| format!("{}, {} without", told(with), without.after.migrations),
        ),
        Criterion::every(
            "TMLB_MIN_WEIGHT without the matching migrates 600 to 945",
            of(UNMATCHED),
            |b| (count(b) - 600.0).min(945.0 - count(b)),
            told,
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

/// LeanMD with 4x4x4 cells on the cores, where the program puts its chares: cells in blocks, and the
/// computes that a cell makes one by one on the cores after its own.
///
/// The numbers of particles rise from cell to cell to 2.5 times the first, as 100 to 250, which is LeanMD's
/// default, and are `particles` in the mean: what else would there be to balance?
fn leanmd(particles: u64) -> anyhow::Result<Database> {
    let (first, last) = (particles * 4 / 7, particles * 10 / 7);
    let mut database = graph::load(&format!("leanmd:4x4x4,particles={first}-{last}"))?.remap(PES);
    let cells = database.objects.iter().filter(|object| object.array == 0).count();
    let computes_per_cell = (database.objects.len() - cells) / cells;
    for (id, object) in database.objects.iter_mut().enumerate() {
        let core = |cell: usize| cell * PES as usize / cells;
        let place = match id.checked_sub(cells) {
            None => core(id),
            Some(compute) => core(compute / computes_per_cell) + 1 + compute % computes_per_cell,
        };
        object.pe = (place % PES as usize) as u32;
    }
    Ok(database)
}

/// How long a strategy took for so many chares.
struct Timed {
    chares: usize,
    strategy: &'static str,
    seconds: f64,
    /// How many calls are timed together.
    calls: u32,
}

/// Calls that are timed together take at least this, so that neither the clock nor one interruption decides.
const BATCH_SECONDS: f64 = 5e-3;

/// The milliseconds that the paper prints for a strategy and 64 chares of Stencil3D.
fn paper_milliseconds(strategy: &str) -> Option<f64> {
    match strategy {
        TREE_BASED => Some(214.8),
        "RefineCommLB" => Some(7.5),
        MIN_WEIGHT => None,
        _ => Some(1.0),
    }
}

/// Figure 9: elements on a ring send 1 MB to each of 7 neighbors, round-robin on the cores. Times are those of
/// one thread.
fn times(options: &Options) -> anyhow::Result<FigureResult> {
    let machine = topology::parse(MACHINE)?;
    let alone = ThreadPoolBuilder::new().num_threads(1).build()?;
    let sizes = options.choose(&[64, 128, 256, 512, 1024], &[64, 128, 256]);
    let mut databases = Vec::new();
    let mut all = Vec::new();
    for &chares in sizes {
        let mut database = graph::load(&format!("kneighbor:{chares},7,bytes=1000000"))?.remap(PES);
        for (object, pe) in database.objects.iter_mut().zip((0..PES).cycle()) {
            object.pe = pe;
        }
        databases.push(database);
        all.extend(THINKING.map(|strategy| Timed { chares, strategy, seconds: f64::INFINITY, calls: 1 }));
    }
    // The least of several times is the one that nothing else took part in, and what goes on beside lasts:
    // the times of one strategy are not taken one after the other.
    let rounds = (1..=if options.small { 3 } else { 12 }).map(|round| format!("round {round}"));
    options.sweep(rounds, |_| {
        for (timed, number) in all.iter_mut().zip(0..) {
            let database = &databases[number / THINKING.len()];
            let begin = Instant::now();
            alone.install(|| {
                (0..timed.calls)
                    .try_for_each(|_| ask(timed.strategy, database, &*machine, options.seed).map(drop))
            })?;
            let batch = begin.elapsed().as_secs_f64();
            let seconds = batch / f64::from(timed.calls);
            // The first call says how many take long enough.
            if batch >= BATCH_SECONDS / 2.0 {
                timed.seconds = timed.seconds.min(seconds);
            }
            timed.calls = (BATCH_SECONDS / seconds).ceil() as u32;
        }
        Ok(())
    })?;
    let of = |strategy: &'static str| all.iter().filter(move |timed| timed.strategy == strategy);
    let growth = |strategy: &'static str| {
        let points: Vec<(f64, f64)> =
            of(strategy).map(|timed| (timed.chares as f64, timed.seconds)).collect();
        exponent(&points)
    };
    let mut rows = Rows::new([
        ("strategy", "strategy"),
        ("chares", "chares"),
        ("milliseconds", "ms"),
        ("paper_milliseconds", "paper"),
        ("growth_exponent", "time grows as chares to the"),
    ]);
    for &Timed { chares, strategy, seconds, .. } in &all {
        let growth = Some(growth(strategy)).filter(|_| sizes.last() == Some(&chares));
        let paper = paper_milliseconds(strategy).filter(|_| chares == 64);
        let numbers = [Cell::Number(1e3 * seconds), Cell::maybe(paper), Cell::maybe(growth)];
        rows.push([Cell::Text(strategy.into()), Cell::Count(chares as u64)].into_iter().chain(numbers));
    }
    let milliseconds = |timed: &Timed| (timed.chares as f64, 1e3 * timed.seconds);
    let series = THINKING.map(|strategy| Series::measured(strategy, of(strategy).map(milliseconds)));
    let chart = Chart { x: Axis::log("chares"), y: Axis::log("milliseconds"), series: series.to_vec() };
    let told = |timed: &Timed| {
        format!("{} {:.3} ms for {} chares", timed.strategy, 1e3 * timed.seconds, timed.chares)
    };
    let steps = THINKING.iter().flat_map(|&strategy| of(strategy).zip(of(strategy).skip(1)));
    let others = all.iter().filter(|timed| ![TREE_BASED, MIN_WEIGHT].contains(&timed.strategy));
    let beside =
        others.filter_map(|other| Some((of(TREE_BASED).find(|timed| timed.chares == other.chares)?, other)));
    let at = |limit: f64| {
        Criterion::every(
            format!("TMLB_TREEBASED takes at most {limit} ms for 256 chares"),
            of(TREE_BASED).filter(|timed| timed.chares == 256),
            |timed| limit - 1e3 * timed.seconds,
            |timed| told(timed),
        )
    };
    let criteria = vec![
        Criterion::every(
            "no strategy takes less time for more chares (to 5 %, for what else runs)",
            steps,
            |(fewer, more)| more.seconds / fewer.seconds - 0.95,
            |(fewer, more)| format!("{}, {}", told(fewer), told(more)),
        ),
        Criterion::every(
            "TMLB_TREEBASED takes longest of those in the paper's figure",
            beside,
            |(tree_based, other)| tree_based.seconds / other.seconds - 1.0,
            |(tree_based, other)| format!("{}, {}", told(tree_based), told(other)),
        ),
        at(300.0),
        at(60.0),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

/// The exponent of the power of x that y grows as: the slope of a line through the logarithms, by least
/// squares.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let (x, y) = logs.iter().fold((0.0, 0.0), |(x, y), log| (x + log.0 / count, y + log.1 / count));
    let of = |f: fn(f64, f64) -> f64| logs.iter().map(|log| f(log.0 - x, log.1 - y)).sum::<f64>();
    of(|x, y| x * y) / of(|x, _| x * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chares_start_where_leanmd_puts_them() {
        let database = leanmd(1000).expect("a box");
        assert_eq!(database.objects.len(), 960);
        let places = |ids: std::ops::Range<usize>| -> Vec<u32> { database.placement()[ids].to_vec() };
        assert_eq!(places(0..64), Vec::from_iter(0..64));
        assert_eq!(places(64..78), Vec::from_iter(1..15));
        assert_eq!(places(946..960), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
        let on = |pe| database.objects.iter().filter(|object| object.pe == pe).count();
        assert!((0..PES).all(|pe| on(pe) == 15));
    }

    #[test]
    fn growth_is_the_exponent_of_a_power() {
        let power = |e: f64| [1.0, 2.0, 4.0, 10.0].map(|x: f64| (x, 3.0 * x.powf(e)));
        for e in [0.0, 1.0, 2.5] {
            assert!((exponent(&power(e)) - e).abs() < 1e-12, "{e}");
        }
    }
}
