//! Figure 9 of the paper on TreeMatch in Charm++: the time of strategies.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load balancing
//! in Charm++ with TreeMatch", Cluster 2013, sections VI.A and VI.B, on 64 cores: 8 nodes of 2 sockets with 4
//! cores each. In figure 9 times are linear in the number of chares.

use equipoise_apps::Failure;
use equipoise_model::{Database, topology};
use equipoise_strategies::workloads;

use crate::axis::Axis;
use crate::balanced::LEANMD_SECONDS;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options, Taken, on_one_thread};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};
use crate::statistics::exponent;

pub(crate) mod kneighbor;
pub(crate) mod migrations;
pub(crate) mod runs;

/// Figure 9.
pub(crate) const TREEMATCH_9: Figure = Figure {
    name: "treematch-9",
    title: "CPU time of strategies for kNeighbor and LeanMD on 64 cores",
    paper: "Jeannot et al. 2013, figure 9",
    paper_shows: "the times of strategies grow with the chares; TMLB_TREEBASED takes longest",
    we_show: "CPU times of our strategies",
    why: "it partitions matrices many times; ours takes a hundredth of the paper's time",
    takes: "10 seconds",
    notes: "The paper prints times only for the 64 chares of Stencil3D, with figure 10: 214.8 ms for \
            TMLB_TREEBASED, about 7.5 ms for RefineCommLB, and less than 1 ms (here 1) for the other strategies \
            of Charm++; and those for LeanMD with figure 4. Times are the CPU time of one thread, the least of \
            several, so other programs on the machine hardly matter. `charged` is what treematch-4 charges: this \
            figure's numbers of one session, recorded.\n",
    run: times,
};

const MACHINE: &str = "tree:8:2:4";
const PES: u32 = 64;

const GREEDY: &str = "GreedyLB";
const REFINE: &str = "RefineLB";
const MIN_WEIGHT: &str = "TMLB_MIN_WEIGHT";
const TREE_BASED: &str = "TMLB_TREEBASED";

/// The strategies of figure 9, and TMLB_MIN_WEIGHT, which is not in that figure of the paper.
const TIMED: [&str; 6] = [GREEDY, "GreedyCommLB", REFINE, "RefineCommLB", MIN_WEIGHT, TREE_BASED];

/// LeanMD with 4x4x4 cells in its initial placement: pinned cells in blocks, and the computes of a cell one by one on the cores
/// after that of the cell.
///
/// The number of particles rises from cell to cell to 2.5 times that of the first cell, as in LeanMD's default of 100 to
/// 250; the mean is `particles`. With equal cells there would be nothing to balance.
fn leanmd(particles: u64) -> Result<Database, Failure> {
    let (first, last) = (particles * 4 / 7, particles * 10 / 7);
    let mut database =
        workloads::load(&format!("leanmd:4x4x4,particles={first}-{last},pinned=yes"))?.remap(PES);
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
    program: &'static str,
    chares: usize,
    strategy: &'static str,
    /// CPU time.
    seconds: f64,
    /// The number of calls that are timed together.
    calls: u32,
}

const KNEIGHBOR: &str = "kNeighbor";
const LEANMD: &str = "LeanMD";

/// The least time of calls that are timed together, so that clock resolution and single interruptions do not matter.
const BATCH_SECONDS: f64 = 5e-3;

/// The milliseconds in the paper for a strategy: with 64 chares of Stencil3D, and with LeanMD.
fn paper_milliseconds(program: &str, chares: usize, strategy: &str) -> Option<f64> {
    match (program, chares, strategy) {
        (KNEIGHBOR, 64, TREE_BASED) => Some(214.8),
        (KNEIGHBOR, 64, "RefineCommLB") => Some(7.5),
        (KNEIGHBOR, 64, GREEDY | "GreedyCommLB" | REFINE) => Some(1.0),
        (LEANMD, _, GREEDY) => Some(14.5),
        (LEANMD, _, REFINE) => Some(1.0),
        (LEANMD, _, MIN_WEIGHT) => Some(233.0),
        _ => None,
    }
}

/// The CPU times of the strategies, each the least of several.
fn timed(options: &Options, sizes: &[usize]) -> Result<Vec<Timed>, Failure> {
    let machine = topology::parse(MACHINE)?;
    let mut databases = Vec::new();
    for &chares in sizes {
        let mut database = workloads::load(&format!("kneighbor:{chares},7,bytes=1000000"))?.remap(PES);
        for (object, pe) in database.objects.iter_mut().zip((0..PES).cycle()) {
            object.pe = pe;
        }
        databases.push((KNEIGHBOR, database));
    }
    databases.push((LEANMD, leanmd(2000)?));
    let mut all = Vec::new();
    for (program, database) in &databases {
        let (program, chares) = (*program, database.objects.len());
        all.extend(TIMED.map(|strategy| Timed {
            program,
            chares,
            strategy,
            seconds: f64::INFINITY,
            calls: 1,
        }));
    }
    // Caches are shared with other programs. Their load lasts for a while, so the measurements of one strategy are
    // spread over rounds.
    let rounds = (1..=if options.small { 3 } else { 12 }).map(|round| format!("round {round}"));
    options.sweep(rounds, |_| {
        for (timed, number) in all.iter_mut().zip(0..) {
            let (_, database) = &databases[number / TIMED.len()];
            let (strategy, calls) = (timed.strategy, timed.calls);
            let run = || assign(strategy, database, &*machine, options.seed).map(drop);
            let (batch, done) = on_one_thread(|| Taken::of(|| (0..calls).try_for_each(|_| run())))?;
            done?;
            let seconds = batch.cpu / f64::from(calls);
            // A batch that is too short only determines the number of calls of the next batch.
            if batch.cpu >= BATCH_SECONDS / 2.0 {
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
    let of = |strategy: &'static str| {
        all.iter().filter(move |timed| timed.program == KNEIGHBOR && timed.strategy == strategy)
    };
    let growth =
        |strategy: &'static str| exponent(of(strategy).map(|timed| (timed.chares as f64, timed.seconds)));
    let mut rows = Rows::new([
        ("program", "program"),
        ("strategy", "strategy"),
        ("chares", "chares"),
        ("milliseconds", "ms"),
        ("paper_milliseconds", "paper"),
        ("charged_milliseconds", "charged"),
        ("growth_exponent", "growth exponent"),
    ]);
    for &Timed { program, chares, strategy, seconds, .. } in &all {
        let is_last = program == KNEIGHBOR && sizes.last() == Some(&chares);
        let charged = LEANMD_SECONDS.iter().find(|(name, _)| program == LEANMD && *name == strategy);
        rows.push([
            Cell::Text(program.into()),
            Cell::Text(strategy.into()),
            Cell::Count(chares as u64),
            Cell::Number(1e3 * seconds),
            Cell::maybe(paper_milliseconds(program, chares, strategy)),
            Cell::maybe(charged.map(|(_, seconds)| 1e3 * seconds)),
            Cell::maybe(is_last.then(|| growth(strategy))),
        ]);
    }
    let milliseconds = |timed: &Timed| (timed.chares as f64, 1e3 * timed.seconds);
    let series = TIMED.map(|strategy| Series::measured(strategy, of(strategy).map(milliseconds)));
    let chart = Chart { x: Axis::log("chares"), y: Axis::log("milliseconds"), series: series.to_vec() };
    Ok(FigureResult { rows, chart, criteria: of_times(&all) })
}

/// The criteria for the CPU times of strategies for kNeighbor.
fn of_times(all: &[Timed]) -> Vec<Criterion> {
    let kneighbor = || all.iter().filter(|timed| timed.program == KNEIGHBOR);
    let of = |strategy: &'static str| kneighbor().filter(move |timed| timed.strategy == strategy);
    let measured = |timed: &Timed| {
        format!("{} {:.3} ms for {} chares", timed.strategy, 1e3 * timed.seconds, timed.chares)
    };
    let steps = TIMED.iter().flat_map(|&strategy| of(strategy).zip(of(strategy).skip(1)));
    let others = kneighbor().filter(|timed| ![TREE_BASED, MIN_WEIGHT].contains(&timed.strategy));
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
    vec![
        Criterion::every(
            "no strategy takes less CPU time for more chares (5 % tolerance for caches that others use)",
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
    ]
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
