//! Figures 6 to 8 of the paper on TreeMatch in Charm++: kNeighbor with 64, 128 and 256 chares.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load balancing
//! in Charm++ with TreeMatch", Cluster 2013, section VI.B. The paper says of these figures, without numbers,
//! that TMLB_TREEBASED is faster than all others; that none of Charm++'s balancers is of use for 64 chares; that
//! RefineCommLB is the best of them for 256, and TMLB_TREEBASED then about 10 % faster; and that its
//! advantage grows with the number of chares.

use super::axis::Axis;
use super::balanced::{
    Balanced, DUMMY, GREEDY, GREEDY_COMM, Plan, REFINE, REFINE_COMM, TREE_BASED, Thinker, in_turn, of,
};
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::rows::{Cell, Rows};
use crate::kneighbor;

/// Figure 6.
pub(super) const TREEMATCH_6: Figure = Figure {
    name: "treematch-6",
    title: "kNeighbor, 64 chares on 64 cores, messages of 1 MB",
    paper: "Jeannot et al. 2013, figure 6",
    takes: "15 seconds",
    notes: NOTES,
    run: |options| figure(options, 64),
};

/// Figure 7.
pub(super) const TREEMATCH_7: Figure = Figure {
    name: "treematch-7",
    title: "kNeighbor, 128 chares on 64 cores, messages of 1 MB",
    paper: "Jeannot et al. 2013, figure 7",
    takes: "40 seconds",
    notes: NOTES,
    run: |options| figure(options, 128),
};

/// Figure 8.
pub(super) const TREEMATCH_8: Figure = Figure {
    name: "treematch-8",
    title: "kNeighbor, 256 chares on 64 cores, messages of 1 MB",
    paper: "Jeannot et al. 2013, figure 8",
    takes: "a minute",
    notes: NOTES,
    run: |options| figure(options, 256),
};

const NOTES: &str = "Of 100 iterations, those up to the third after the load-balancing step are simulated, and the \
    rest takes what the last two do. Messages of 10 kB cross links of a hundredth of the bandwidth, which takes as \
    long as 1 MB. PEs are numbered over nodes in turn, and over the sockets of a node in turn; chares are \
    dealt to PEs round-robin. The load of `messages` is to take in bytes, as fast as a core copies; that of `example` \
    has besides the work of kNeighbor among Charm++'s examples of load balancing, whose chare i of n adds N^2 numbers, \
    N being 100 i^2 / n, 4 at a time at 2.66 GHz. The paper does not say which it ran.\n\
    Where all load is messages every PE has the same, so that no strategy without the machine has anything to do: \
    Refine* move nothing, Greedy* draw lots. TMLB_TREEBASED then is faster than RefineCommLB by much more than the \
    paper's 10 %, since 112 MB per 8 chares cross the network, and after it 32 MB. With the work of the example loads \
    differ, more so with more chares. TMLB_TREEBASED balances in nodes only, so the heaviest node decides, and what is \
    gained shrinks to about the paper's for 256 chares. RefineCommLB moves nothing there either: it takes a MB to \
    cost a PE 8.5 ms, as Charm++ does, beside which a few milliseconds of work are within its 5 %. \
    That number hangs on what is not known: with 256 chares whose additions are twice as slow, an iteration takes \
    257 ms with TMLB_TREEBASED and 187 with RefineLB; with chares in blocks, 239 ms and 138 with GreedyCommLB. Of \
    messages alone in blocks, on nodes that are filled one after the other, it takes 11.5 ms, and 12.5 without \
    balancing; then nothing is gained with 64.\n";

/// Messages are a hundredth of the paper's, and links as well.
const SCALE: f64 = 100.0;

/// Bytes per second at which a core takes in messages.
const COPIED: f64 = 6e9;

/// Seconds that one addition of Charm++'s example takes.
const ADDITION_SECONDS: f64 = 1.0 / (4.0 * 2.66e9);

/// The operations of the example that count as one, because they are done here, and charged.
const TOGETHER: f64 = 1e4;

const STRATEGIES: [Thinker; 6] = [DUMMY, GREEDY, GREEDY_COMM, REFINE, REFINE_COMM, TREE_BASED];

/// What loads are.
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

/// All strategies with so many chares.
fn times(options: &Options, chares: i32, work: Work) -> Vec<Balanced> {
    let plan = Plan {
        before: 3,
        after: 1,
        iterations: 100,
        initial: "roundrobin",
        cores: in_turn(),
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

/// What the last of so many chares does in the example, in units of [`TOGETHER`].
fn last_operations(chares: i32) -> u32 {
    let last = f64::from(chares - 1);
    ((100.0 * last * last / f64::from(chares)).powi(2) / TOGETHER) as u32
}

fn figure(options: &Options, chares: i32) -> anyhow::Result<FigureResult> {
    let chares = if options.small { 64 } else { chares };
    let works = options.choose(&[Work::Messages, Work::Example], &[Work::Messages]);
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
    let mut criteria = Vec::new();
    for (work, times) in &all {
        let (plain, best, refine) = (of(times, DUMMY)?, of(times, TREE_BASED)?, of(times, REFINE_COMM)?);
        let others = || times.iter().filter(|balanced| balanced.strategy != TREE_BASED.name);
        criteria.push(Criterion::every(
            format!("{work}: TMLB_TREEBASED is the fastest"),
            others(),
            |other| other.seconds - best.seconds,
            |other| format!("{best}, {other}"),
        ));
        if chares == 64 {
            criteria.push(Criterion::every(
                format!("{work}: no balancer of Charm++ gains 5 %"),
                others().filter(|other| other.strategy != DUMMY.name),
                |other| 0.05 - other.gain(plain),
                |other| format!("{other}, {plain}"),
            ));
        }
        if chares == 256 {
            let balancers =
                others().filter(|other| ![DUMMY.name, REFINE_COMM.name].contains(&other.strategy));
            criteria.push(Criterion::every(
                format!("{work}: RefineCommLB is second, to 1 %"),
                balancers,
                |other| 1.01 * other.seconds - refine.seconds,
                |other| format!("{refine}, {other}"),
            ));
            let behind = refine.seconds / best.seconds - 1.0;
            criteria.push(Criterion::new(
                format!("{work}: RefineCommLB takes 5 to 20 % more than TMLB_TREEBASED (paper: about 10)"),
                format!("{:.1} %", 100.0 * behind),
                (0.05..=0.2).contains(&behind),
            ));
            let fewer = self::times(options, 64, *work);
            let (before, now) = (of(&fewer, TREE_BASED)?.gain(of(&fewer, DUMMY)?), best.gain(plain));
            criteria.push(Criterion::new(
                format!("{work}: TMLB_TREEBASED gains more than with 64 chares"),
                format!("{:.1} %, {:.1} % with 64", 100.0 * now, 100.0 * before),
                now > before,
            ));
        }
        criteria.push(Criterion::every(
            format!("{work}: iterations repeat, to 2 %"),
            times,
            |balanced| 0.02 - balanced.drift,
            |balanced| format!("{:.3} % with {}", 100.0 * balanced.drift, balanced.strategy),
        ));
    }
    Ok(FigureResult { rows, chart, criteria })
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
