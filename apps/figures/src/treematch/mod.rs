//! Figures 5 and 9 of the paper on TreeMatch in Charm++: migrations, and the time of strategies.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load balancing
//! in Charm++ with TreeMatch", Cluster 2013, sections VI.A and VI.B, on 64 cores: 8 nodes of 2 sockets with 4
//! cores each. In figure 5 of the paper GreedyLB migrates nearly all of LeanMD's 960 chares, about 680 chares migrate
//! without the matching of groups with cores, and TMLB_MIN_WEIGHT is between GreedyLB and RefineLB. In figure 9 times
//! are linear in the number of chares.

use std::time::Instant;

use equipoise_apps::Failure;
use equipoise_model::{Database, topology};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::workloads;
use rayon::ThreadPoolBuilder;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};
use crate::statistics::exponent;

pub(crate) mod kneighbor;
pub(crate) mod runs;

/// Figure 5.
pub(crate) const TREEMATCH_5: Figure = Figure {
    name: "treematch-5",
    title: "Migrations of LeanMD's 960 chares on 64 cores",
    paper: "Jeannot et al. 2013, figure 5",
    takes: "a second",
    notes: "Without the matching, groups are on cores in tree order, independent of the present placement, so about as many \
            chares migrate as with random cores, 945. This does not explain the 680 of the paper. In the paper the program \
            then takes about 5 % longer; this figure runs no program, so it has no such time.\n",
    run: migrations,
};

/// Figure 9.
pub(crate) const TREEMATCH_9: Figure = Figure {
    name: "treematch-9",
    title: "Time of strategies for kNeighbor on 64 cores",
    paper: "Jeannot et al. 2013, figure 9",
    takes: "10 seconds",
    notes: "The paper prints times only for the 64 chares of Stencil3D, with figure 10: 214.8 ms for \
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

/// The expected migrations of GreedyLB: on 64 cores, a chare stays with probability 1/64.
const EXPECTED_GREEDY: u64 = 945;

/// The approximate number of migrations without the matching of groups with cores, in the paper.
const PAPER_UNMATCHED: u64 = 680;

/// The strategies of figure 5.
const MIGRATING: [&str; 7] =
    [GREEDY, "GreedyCommLB", REFINE, "RefineCommLB", MIN_WEIGHT, UNMATCHED, TREE_BASED];

/// The strategies of figure 9, and TMLB_MIN_WEIGHT, which is not in that figure of the paper.
const TIMED: [&str; 6] = [GREEDY, "GreedyCommLB", REFINE, "RefineCommLB", MIN_WEIGHT, TREE_BASED];

/// The metrics of LeanMD before and after a strategy.
struct Balanced {
    particles: u64,
    strategy: &'static str,
    before: Metrics,
    after: Metrics,
}

/// Figure 5: one load-balancing step, for several mean numbers of particles per cell.
fn migrations(options: &Options) -> Result<FigureResult, Failure> {
    let machine = topology::parse(MACHINE)?;
    let sizes = options.choose(&[250, 500, 1000, 2000, 4000], &[500, 2000]);
    let sweeps = options.sweep(sizes.iter().copied(), |particles| {
        let database = leanmd(particles)?;
        let before = Metrics::of(&database, &*machine, &database.placement());
        let balance = |strategy| {
            let answer = assign(strategy, &database, &*machine, options.seed)?;
            let after = Metrics::of(&database, &*machine, &answer.pe_of);
            Ok(Balanced { particles, strategy, before: before.clone(), after })
        };
        MIGRATING.into_iter().map(balance).collect::<Result<Vec<_>, Failure>>()
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
    Ok(FigureResult { rows, chart, criteria: of_migrations(&all) })
}

/// The criteria for migrations.
fn of_migrations(all: &[Balanced]) -> Vec<Criterion> {
    let of = |strategy: &'static str| all.iter().filter(move |balanced| balanced.strategy == strategy);
    let count = |balanced: &Balanced| balanced.after.migrations as f64;
    let measured = |balanced: &&Balanced| {
        format!("{} with {} particles per cell", balanced.after.migrations, balanced.particles)
    };
    vec![
        Criterion::every("GreedyLB migrates at least 900", of(GREEDY), |b| count(b) - 900.0, measured),
        Criterion::every("RefineLB migrates at most 15 %, 144", of(REFINE), |b| 144.0 - count(b), measured),
        Criterion::every(
            "TMLB_MIN_WEIGHT migrates more than RefineLB and fewer than GreedyLB",
            of(REFINE).zip(of(MIN_WEIGHT)).zip(of(GREEDY)),
            |((refine, tmlb), greedy)| (count(tmlb) - count(refine)).min(count(greedy) - count(tmlb)) - 1.0,
            |((refine, tmlb), greedy)| {
                let [least, most] = [refine, greedy].map(|balanced| balanced.after.migrations);
                format!("{}, between {least} and {most}", measured(tmlb))
            },
        ),
        Criterion::every(
            "TMLB_MIN_WEIGHT migrates fewer than without the matching",
            of(MIN_WEIGHT).zip(of(UNMATCHED)),
            |(with, without)| count(without) - count(with) - 1.0,
            |(with, without)| format!("{}, {} without", measured(with), without.after.migrations),
        ),
        Criterion::every(
            "TMLB_MIN_WEIGHT without the matching migrates 600 to 945",
            of(UNMATCHED),
            |b| (count(b) - 600.0).min(945.0 - count(b)),
            measured,
        ),
    ]
}

/// LeanMD with 4x4x4 cells in its initial placement: cells in blocks, and the computes of a cell one by one on the cores
/// after that of the cell.
///
/// The number of particles rises from cell to cell to 2.5 times that of the first cell, as in LeanMD's default of 100 to
/// 250; the mean is `particles`. With equal cells there would be nothing to balance.
fn leanmd(particles: u64) -> Result<Database, Failure> {
    let (first, last) = (particles * 4 / 7, particles * 10 / 7);
    let mut database = workloads::load(&format!("leanmd:4x4x4,particles={first}-{last}"))?.remap(PES);
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

/// The running time of a strategy.
struct Timed {
    chares: usize,
    strategy: &'static str,
    seconds: f64,
    /// The number of calls that are timed together.
    calls: u32,
}

/// The least time of calls that are timed together, so that clock resolution and single interruptions do not matter.
const BATCH_SECONDS: f64 = 5e-3;

/// The milliseconds in the paper for a strategy and 64 chares of Stencil3D.
fn paper_milliseconds(strategy: &str) -> Option<f64> {
    match strategy {
        TREE_BASED => Some(214.8),
        "RefineCommLB" => Some(7.5),
        MIN_WEIGHT => None,
        _ => Some(1.0),
    }
}

/// The running times of the strategies, each the least of several.
fn timed(options: &Options, sizes: &[usize]) -> Result<Vec<Timed>, Failure> {
    let machine = topology::parse(MACHINE)?;
    let alone = ThreadPoolBuilder::new().num_threads(1).build().map_err(Failure::bug)?;
    let mut databases = Vec::new();
    let mut all = Vec::new();
    for &chares in sizes {
        let mut database = workloads::load(&format!("kneighbor:{chares},7,bytes=1000000"))?.remap(PES);
        for (object, pe) in database.objects.iter_mut().zip((0..PES).cycle()) {
            object.pe = pe;
        }
        databases.push(database);
        all.extend(TIMED.map(|strategy| Timed { chares, strategy, seconds: f64::INFINITY, calls: 1 }));
    }
    // The least time is that without other load on the machine. Other load lasts for a while, so the measurements of one
    // strategy are spread over rounds.
    let rounds = (1..=if options.small { 3 } else { 12 }).map(|round| format!("round {round}"));
    options.sweep(rounds, |_| {
        for (timed, number) in all.iter_mut().zip(0..) {
            let database = &databases[number / TIMED.len()];
            let begin = Instant::now();
            alone.install(|| {
                (0..timed.calls)
                    .try_for_each(|_| assign(timed.strategy, database, &*machine, options.seed).map(drop))
            })?;
            let batch = begin.elapsed().as_secs_f64();
            let seconds = batch / f64::from(timed.calls);
            // A batch that is too short only determines the number of calls of the next batch.
            if batch >= BATCH_SECONDS / 2.0 {
                timed.seconds = timed.seconds.min(seconds);
            }
            timed.calls = (BATCH_SECONDS / seconds).ceil() as u32;
        }
        Ok(())
    })?;
    Ok(all)
}

/// Figure 9: elements on a ring send 1 MB to each of 7 neighbors, round-robin on the cores. Times are those of
/// one thread.
fn times(options: &Options) -> Result<FigureResult, Failure> {
    let sizes = options.choose(&[64, 128, 256, 512, 1024], &[64, 128, 256]);
    let all = timed(options, sizes)?;
    let of = |strategy: &'static str| all.iter().filter(move |timed| timed.strategy == strategy);
    let growth =
        |strategy: &'static str| exponent(of(strategy).map(|timed| (timed.chares as f64, timed.seconds)));
    let mut rows = Rows::new([
        ("strategy", "strategy"),
        ("chares", "chares"),
        ("milliseconds", "ms"),
        ("paper_milliseconds", "paper"),
        ("growth_exponent", "growth exponent"),
    ]);
    for &Timed { chares, strategy, seconds, .. } in &all {
        let growth = Some(growth(strategy)).filter(|_| sizes.last() == Some(&chares));
        let paper = paper_milliseconds(strategy).filter(|_| chares == 64);
        let numbers = [Cell::Number(1e3 * seconds), Cell::maybe(paper), Cell::maybe(growth)];
        rows.push([Cell::Text(strategy.into()), Cell::Count(chares as u64)].into_iter().chain(numbers));
    }
    let milliseconds = |timed: &Timed| (timed.chares as f64, 1e3 * timed.seconds);
    let series = TIMED.map(|strategy| Series::measured(strategy, of(strategy).map(milliseconds)));
    let chart = Chart { x: Axis::log("chares"), y: Axis::log("milliseconds"), series: series.to_vec() };
    let measured = |timed: &Timed| {
        format!("{} {:.3} ms for {} chares", timed.strategy, 1e3 * timed.seconds, timed.chares)
    };
    let steps = TIMED.iter().flat_map(|&strategy| of(strategy).zip(of(strategy).skip(1)));
    let others = all.iter().filter(|timed| ![TREE_BASED, MIN_WEIGHT].contains(&timed.strategy));
    let pairs =
        others.filter_map(|other| Some((of(TREE_BASED).find(|timed| timed.chares == other.chares)?, other)));
    let at = |limit: f64| {
        Criterion::every(
            format!("TMLB_TREEBASED takes at most {limit} ms for 256 chares"),
            of(TREE_BASED).filter(|timed| timed.chares == 256),
            |timed| limit - 1e3 * timed.seconds,
            |timed| measured(timed),
        )
    };
    let criteria = vec![
        Criterion::every(
            "no strategy takes less time for more chares (5 % tolerance for other load on the machine)",
            steps,
            |(fewer, more)| more.seconds / fewer.seconds - 0.95,
            |(fewer, more)| format!("{}, {}", measured(fewer), measured(more)),
        ),
        Criterion::every(
            "TMLB_TREEBASED takes longer than the other strategies of the paper's figure",
            pairs,
            |(tree_based, other)| tree_based.seconds / other.seconds - 1.0,
            |(tree_based, other)| format!("{}, {}", measured(tree_based), measured(other)),
        ),
        at(300.0),
        at(60.0),
    ];
    Ok(FigureResult { rows, chart, criteria })
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
}
