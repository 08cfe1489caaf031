//! Figures 6 to 8 of the paper on TreeMatch in Charm++: kNeighbor with 64, 128 and 256 chares.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load balancing in
//! Charm++ with TreeMatch", Cluster 2013, section VI.B. The paper prints no numbers for these figures. It states:
//! TMLB_TREEBASED is the fastest strategy. No other balancer of Charm++ gains with 64 chares. With 256 chares
//! RefineCommLB is the best of the others, and TMLB_TREEBASED is about 10 % faster. The advantage of TMLB_TREEBASED
//! grows with the number of chares.

use crate::axis::Axis;
use crate::balanced::{
    Balanced, DUMMY, GREEDY, GREEDY_COMM, Plan, REFINE, REFINE_COMM, TREE_BASED, TimedStrategy, of,
    round_robin_cores,
};
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};
use equipoise_apps::{Failure, kneighbor};

/// Figure 6.
pub(crate) const TREEMATCH_6: Figure = Figure {
    name: "treematch-6",
    title: "kNeighbor, 64 chares on 64 cores, messages of 1 MB",
    paper: "Jeannot et al. 2013, figure 6",
    paper_shows: "TMLB_TREEBASED is the fastest for 64 chares, and no balancer of Charm++ gains",
    we_show: "the time of a model of kNeighbor and of the machine",
    why: "the messages across the network decide",
    takes: "15 seconds",
    notes: NOTES,
    run: |options| figure(options, 64),
};

/// Figure 7.
pub(crate) const TREEMATCH_7: Figure = Figure {
    name: "treematch-7",
    title: "kNeighbor, 128 chares on 64 cores, messages of 1 MB",
    paper: "Jeannot et al. 2013, figure 7",
    paper_shows: "TMLB_TREEBASED is the fastest for 128 chares",
    we_show: "the same",
    why: "as for treematch-6",
    takes: "40 seconds",
    notes: NOTES,
    run: |options| figure(options, 128),
};

/// Figure 8.
pub(crate) const TREEMATCH_8: Figure = Figure {
    name: "treematch-8",
    title: "kNeighbor, 256 chares on 64 cores, messages of 1 MB",
    paper: "Jeannot et al. 2013, figure 8",
    paper_shows: "TMLB_TREEBASED is the fastest for 256 chares, RefineCommLB gains and is 10 % behind",
    we_show: "the same",
    why: "no work per chare makes RefineCommLB gain and TMLB_TREEBASED win",
    takes: "a minute",
    notes: NOTES,
    run: |options| figure(options, 256),
};

const NOTES: &str = "Of 100 iterations, those up to the third after the load-balancing step are simulated; the others take the \
    mean time of the last two. Messages of 10 kB cross links of a hundredth of the bandwidth, which takes as long as \
    1 MB. PEs are numbered round-robin over nodes, and in a node over its sockets; chares are placed round-robin on PEs. \
    The criteria are for the load `example`, the work of the kNeighbor example of Charm++, whose chare i of n adds N^2 \
    numbers, N = 100 i^2 / n, 4 at a time at 2.66 GHz; it has no parameter to choose. The load `messages`, which is also \
    shown, is only to copy received bytes at the speed of a core. docs/figures.md shows that no factor of the work meets \
    all claims.\n";

/// Message sizes and bandwidths are a hundredth of those in the paper.
const SCALE: f64 = 100.0;

/// Bytes per second at which a core copies received messages.
const COPIED: f64 = 6e9;

/// Seconds that one addition of Charm++'s example takes.
const ADDITION_SECONDS: f64 = 1.0 / (4.0 * 2.66e9);

/// This number of operations of the example is done as one operation here, and charged.
const TOGETHER: f64 = 1e4;

const STRATEGIES: [TimedStrategy; 6] = [DUMMY, GREEDY, GREEDY_COMM, REFINE, REFINE_COMM, TREE_BASED];

/// The kind of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Messages,
    Example,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Messages => "messages",
            Work::Example => "example",
        }
    }
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The times of all strategies.
fn times(options: &Options, chares: i32, work: Work) -> Vec<Balanced> {
    let plan = Plan {
        before: 3,
        after: 1,
        iterations: 100,
        initial: "roundrobin",
        cores: round_robin_cores(),
        scale: SCALE,
        seed: options.seed,
    };
    let program = |iterations| kneighbor::Options {
        elements: chares,
        neighbors: 7,
        bytes: (1e6 / SCALE) as u32,
        iterations,
        work: if work == Work::Example { last_operations(chares) } else { 0 },
        steep: true,
        lb_every: plan.before,
        charge: Some(ADDITION_SECONDS * TOGETHER),
        charge_byte: SCALE / COPIED,
    };
    plan.times(&STRATEGIES, |config, iterations| kneighbor::exchange(config, &program(iterations)))
}

/// The operations of the last chare in the example, in units of [`TOGETHER`].
fn last_operations(chares: i32) -> u32 {
    let last = f64::from(chares - 1);
    ((100.0 * last * last / f64::from(chares)).powi(2) / TOGETHER) as u32
}

fn figure(options: &Options, chares: i32) -> Result<FigureResult, Failure> {
    let chares = if options.small { 64 } else { chares };
    let works = options.choose(&[Work::Messages, Work::Example], &[Work::Example]);
    let all = options.sweep(works.iter().copied(), |work| Ok((work, times(options, chares, work))))?;
    let mut rows = Rows::new([
        ("work", "work"),
        ("strategy", "strategy"),
        ("seconds", "s"),
        ("iteration_milliseconds", "ms per iteration"),
        ("migrations", "migrations"),
        ("gain", "gain"),
        ("treebased_gain", "gain of TMLB_TREEBASED"),
        ("paper_treebased_gain", "paper"),
    ]);
    for (work, times) in &all {
        let (plain, best) = (of(times, DUMMY)?, of(times, TREE_BASED)?);
        for balanced in times {
            let printed = chares == 256 && balanced.strategy == REFINE_COMM.name;
            rows.push([
                Cell::Text(work.name().into()),
                Cell::Text(balanced.strategy.into()),
                Cell::Number(balanced.seconds),
                Cell::Number(1e3 * balanced.iteration_seconds),
                Cell::Count(balanced.migrations),
                Cell::Number(balanced.gain(plain)),
                Cell::Number(best.gain(balanced)),
                if printed { Cell::Number(0.1) } else { Cell::Nothing },
            ]);
        }
    }
    let series = all.iter().map(|(work, times)| {
        let points = (1..).map(f64::from).zip(times.iter().map(|balanced| balanced.seconds));
        Series::measured(format!("load: {work}"), points.collect::<Vec<_>>())
    });
    let chart = Chart {
        x: Axis::linear("strategy, in the order of the table"),
        y: Axis::linear("seconds of 100 iterations"),
        series: series.collect(),
    };
    let example = all.iter().find(|(work, _)| *work == Work::Example);
    let (_, example) = example.ok_or_else(|| Failure::bug("the load of the criteria"))?;
    let criteria = criteria(options, chares, example)?;
    Ok(FigureResult { rows, chart, criteria })
}

/// The gain from which an improvement is not noise.
const INTERESTING: f64 = 0.02;

/// The criteria for the times with a number of chares and the load of the example.
fn criteria(options: &Options, chares: i32, times: &[Balanced]) -> Result<Vec<Criterion>, Failure> {
    let (plain, best, refine) = (of(times, DUMMY)?, of(times, TREE_BASED)?, of(times, REFINE_COMM)?);
    let others = || times.iter().filter(|balanced| balanced.strategy != TREE_BASED.name);
    let mut criteria = vec![Criterion::every(
        "TMLB_TREEBASED is the fastest",
        others(),
        |other| other.seconds - best.seconds,
        |other| format!("{best}, {other}"),
    )];
    if chares == 64 {
        criteria.push(Criterion::every(
            "all other balancers of Charm++ gain less than 5 %",
            others().filter(|other| other.strategy != DUMMY.name),
            |other| 0.05 - other.gain(plain),
            |other| format!("{other}, {plain}"),
        ));
    }
    if chares == 256 {
        let why = "as in Charm++, RefineCommLB counts 8.5 ms per MB of messages as load, so the work is within its tolerance and \
                   it moves nothing";
        criteria.push(
            Criterion::new(
                format!("RefineCommLB gains at least {:.0} % on DummyLB", 100.0 * INTERESTING),
                format!("{:.2} %, {} migrations", 100.0 * refine.gain(plain), refine.migrations),
                refine.gain(plain) >= INTERESTING,
            )
            .because(why),
        );
        criteria.push(
            Criterion::every(
                "RefineCommLB is the fastest of the others",
                others().filter(|other| other.strategy != REFINE_COMM.name),
                |other| other.seconds - refine.seconds,
                |other| format!("{refine}, {other}"),
            )
            .because(why),
        );
        let behind = refine.seconds / best.seconds - 1.0;
        criteria.push(Criterion::new(
            "RefineCommLB takes 5 to 20 % more than TMLB_TREEBASED (paper: about 10)",
            format!("{:.1} %", 100.0 * behind),
            (0.05..=0.2).contains(&behind),
        ));
        let fewer = self::times(options, 64, Work::Example);
        let (before, now) = (of(&fewer, TREE_BASED)?.gain(of(&fewer, DUMMY)?), best.gain(plain));
        criteria.push(
            Criterion::new(
                "TMLB_TREEBASED gains more than with 64 chares",
                format!("{:.1} %, {:.1} % with 64", 100.0 * now, 100.0 * before),
                now > before,
            )
            .because(
                "TMLB_TREEBASED balances only inside nodes, and the work of the heaviest node grows faster than the bytes",
            ),
        );
    }
    criteria.push(Criterion::every(
        "the times of iterations differ by at most 2 %",
        times,
        |balanced| 0.02 - balanced.drift,
        |balanced| format!("{:.3} % with {}", 100.0 * balanced.drift, balanced.strategy),
    ));
    Ok(criteria)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_chare_of_the_example_adds_most() {
        // N is 100 * 255^2 / 256 = 25400.4: 645 million additions, 61 ms.
        assert_eq!(last_operations(256), 64517);
        let seconds = f64::from(last_operations(256)) * TOGETHER * ADDITION_SECONDS;
        assert!((0.060..0.061).contains(&seconds), "{seconds}");
    }
}
