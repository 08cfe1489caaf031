//! Figure 5 of the paper on TreeMatch in Charm++: migrations of LeanMD.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load balancing
//! in Charm++ with TreeMatch", Cluster 2013, section VI.A. In the paper GreedyLB migrates nearly all of LeanMD's 960
//! chares, about 680 chares migrate without the matching of groups with cores, which takes about 5 % longer, and
//! TMLB_MIN_WEIGHT is between GreedyLB and RefineLB. The numbers are means over the load-balancing steps of runs.

use equipoise_apps::{Failure, leanmd};
use equipoise_model::{Database, topology};
use equipoise_strategies::cost::Metrics;

use super::{GREEDY, MACHINE, MIN_WEIGHT, REFINE, TREE_BASED, leanmd as database_of};
use crate::axis::Axis;
use crate::balanced::{Plan, TimedStrategy, mixed, round_robin_cores};
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};

/// Figure 5.
pub(crate) const TREEMATCH_5: Figure = Figure {
    name: "treematch-5",
    title: "Migrations of LeanMD's 960 chares on 64 cores, per load-balancing step",
    paper: "Jeannot et al. 2013, figure 5",
    paper_shows: "GreedyLB migrates nearly all chares, RefineLB few, TMLB_MIN_WEIGHT some, and about 680 without matching, 5 % slower",
    we_show: "migrations of four load-balancing steps, and the time of a run",
    why: "the matching finds groups where they were; it cannot at the first step from a scattered start",
    takes: "15 seconds",
    notes: "Four load-balancing steps, each from the placement of the step before. Measured loads vary from step to step; here \
            every load varies by up to 1 %. The 64 cells are pinned, so at most 896 chares migrate. At the first step chares \
            are scattered, and nearly all migrate with any strategy that regroups them; from then on the matching finds most \
            groups where they are. The time of 50 steps is that of the simulated machine of treematch-4, with a \
            load-balancing step every 10 steps.\n",
    run: migrations,
};

const UNMATCHED: &str = "TMLB_MIN_WEIGHT:matching=off";

/// The compared strategies.
const MIGRATING: [&str; 7] =
    [GREEDY, "GreedyCommLB", REFINE, "RefineCommLB", MIN_WEIGHT, UNMATCHED, TREE_BASED];

/// The computes, which can migrate.
const MOVABLE: u64 = 896;

/// The expected migrations of GreedyLB: on 64 cores, a compute stays with probability 1/64.
const EXPECTED_GREEDY: u64 = 882;

/// The approximate number of migrations without the matching of groups with cores, in the paper.
const PAPER_UNMATCHED: u64 = 680;

/// The number of load-balancing steps.
const STEPS: usize = 4;

/// The largest relative variation of a load from step to step.
const VARIATION: f64 = 0.01;

/// Steps of LeanMD between load-balancing steps, and in all, on the simulated machine.
const EVERY: u32 = 10;
const ITERATIONS: u32 = 50;

/// The metrics of LeanMD before and after each load-balancing step with a strategy.
struct Balanced {
    particles: u64,
    strategy: &'static str,
    steps: Vec<(Metrics, Metrics)>,
}

impl Balanced {
    /// The mean number of migrations per step.
    fn migrations(&self) -> f64 {
        self.steps.iter().map(|step| step.1.migrations as f64).sum::<f64>() / self.steps.len() as f64
    }

    fn describe(&self) -> String {
        let each: Vec<String> = self.steps.iter().map(|step| step.1.migrations.to_string()).collect();
        format!("{:.0} ({}) with {} particles per cell", self.migrations(), each.join(", "), self.particles)
    }
}

/// The loads as measured in a period.
fn varied(database: &Database, seed: u64, step: usize) -> Database {
    let mut database = database.clone();
    for (object, number) in database.objects.iter_mut().zip(0u64..) {
        let sample = mixed(mixed(seed.wrapping_mul(1000).wrapping_add(step as u64)) ^ number) >> 11;
        let part = sample as f64 / (1u64 << 53) as f64;
        object.load_seconds *= 1.0 + VARIATION * (2.0 * part - 1.0);
    }
    database
}

/// The steps of a strategy.
fn balance(particles: u64, strategy: &'static str, options: &Options) -> Result<Balanced, Failure> {
    let machine = topology::parse(MACHINE)?;
    let mut database = database_of(particles)?;
    let mut steps = Vec::new();
    for step in 0..STEPS {
        let measured = varied(&database, options.seed, step);
        let seed = options.seed.wrapping_add(step as u64);
        let answer = assign(strategy, &measured, &*machine, seed)?;
        let before = Metrics::of(&measured, &*machine, &measured.placement());
        steps.push((before, Metrics::of(&measured, &*machine, &answer.pe_of)));
        database = database.placed(&answer.pe_of);
    }
    Ok(Balanced { particles, strategy, steps })
}

/// The seconds of the program with the strategy, on the simulated machine of figure 4; the strategy takes no time.
fn seconds(strategy: &'static str, particles: u32, seed: u64) -> f64 {
    let plan = Plan {
        before: EVERY,
        after: EVERY,
        iterations: ITERATIONS,
        initial: "blocks",
        cores: round_robin_cores(),
        scale: 1.0,
        seed,
    };
    let program = leanmd::Options {
        particles: [particles * 4 / 7, particles * 10 / 7],
        iterations: ITERATIONS,
        lb_every: EVERY,
        forces: leanmd::Work::Modelled,
        spread: true,
        ..leanmd::Options::default()
    };
    let report = leanmd::simulate(plan.config(TimedStrategy::free(strategy)), &program);
    report.machine.map_or(f64::NAN, |machine| machine.seconds)
}

fn migrations(options: &Options) -> Result<FigureResult, Failure> {
    let sizes = options.choose(&[250, 500, 1000, 2000, 4000], &[500, 2000]);
    let sweeps = options.sweep(sizes.iter().copied(), |particles| {
        MIGRATING
            .into_iter()
            .map(|strategy| balance(particles, strategy, options))
            .collect::<Result<Vec<_>, Failure>>()
    })?;
    let all: Vec<Balanced> = sweeps.into_iter().flatten().collect();
    let run = |strategy| seconds(strategy, 2000, options.seed);
    let times = (!options.small).then(|| [run(MIN_WEIGHT), run(UNMATCHED)]);
    let of = |strategy: &'static str| all.iter().filter(move |balanced| balanced.strategy == strategy);
    let mut series: Vec<Series> = MIGRATING
        .into_iter()
        .map(|strategy| {
            let point = |balanced: &Balanced| (balanced.particles as f64, balanced.migrations());
            Series::measured(strategy, of(strategy).map(point))
        })
        .collect();
    let flat = |migrations: u64| sizes.iter().map(move |&particles| (particles as f64, migrations as f64));
    series.push(Series::theory(format!("{GREEDY}, expected"), flat(EXPECTED_GREEDY)));
    series.push(Series::paper(format!("{UNMATCHED} in the paper"), flat(PAPER_UNMATCHED)));
    let chart = Chart { x: Axis::log("particles per cell"), y: Axis::linear("migrations per step"), series };
    Ok(FigureResult { rows: rows(&all, times), chart, criteria: criteria(&all, times) })
}

/// The table; `times` are those of a run with and without the matching.
fn rows(all: &[Balanced], times: Option<[f64; 2]>) -> Rows {
    let mut rows = Rows::new([
        ("strategy", "strategy"),
        ("particles_per_cell", "particles/cell"),
        ("migrations", "migrations per step"),
        ("paper_migrations", "paper"),
        ("expected_migrations", "expected"),
        ("migrations_step_1", "step 1"),
        ("migrations_step_2", "2"),
        ("migrations_step_3", "3"),
        ("migrations_step_4", "4"),
        ("imbalance_before", "imbalance before"),
        ("imbalance", "after"),
        ("remote_messages_before", "remote messages before"),
        ("remote_messages", "after"),
        ("seconds", "s of 50 steps"),
    ]);
    let remote = |metrics: &Metrics| {
        metrics.communication.map_or(Cell::Nothing, |cost| Cell::Count(cost.remote_messages))
    };
    for balanced in all {
        let (before, after) = (&balanced.steps[0].0, &balanced.steps[STEPS - 1].1);
        let strategy = balanced.strategy;
        let took = times.filter(|_| balanced.particles == 2000).and_then(|[with, without]| match strategy {
            MIN_WEIGHT => Some(with),
            UNMATCHED => Some(without),
            _ => None,
        });
        let cells = [
            Cell::Text(strategy.into()),
            Cell::Count(balanced.particles),
            Cell::Number(balanced.migrations()),
            if strategy == UNMATCHED { Cell::Count(PAPER_UNMATCHED) } else { Cell::Nothing },
            if strategy == GREEDY { Cell::Count(EXPECTED_GREEDY) } else { Cell::Nothing },
        ];
        let each = balanced.steps.iter().map(|step| Cell::Count(step.1.migrations));
        rows.push(cells.into_iter().chain(each).chain([
            Cell::Number(before.imbalance),
            Cell::Number(after.imbalance),
            remote(before),
            remote(after),
            Cell::maybe(took),
        ]));
    }
    rows
}

/// The criteria for migrations, by means per step.
fn criteria(all: &[Balanced], times: Option<[f64; 2]>) -> Vec<Criterion> {
    let of = |strategy: &'static str| all.iter().filter(move |balanced| balanced.strategy == strategy);
    let measured = |balanced: &&Balanced| balanced.describe();
    let (most, few) = (15 * MOVABLE / 16, 15 * MOVABLE / 100);
    let mut criteria = vec![
        Criterion::every(
            format!("GreedyLB migrates at least {most} of {MOVABLE} per step"),
            of(GREEDY),
            |balanced| balanced.migrations() - most as f64,
            measured,
        )
        .because(
            "loads vary by 1 % only, so about 60 of the heaviest computes are assigned as in the step before",
        ),
        Criterion::every(
            format!("RefineLB migrates at most 15 %, {few}, per step"),
            of(REFINE),
            |balanced| few as f64 - balanced.migrations(),
            measured,
        ),
        Criterion::every(
            "TMLB_MIN_WEIGHT migrates more than RefineLB and fewer than GreedyLB",
            of(REFINE).zip(of(MIN_WEIGHT)).zip(of(GREEDY)),
            |((refine, tmlb), greedy)| {
                let [least, ours, most] = [refine, tmlb, greedy].map(|balanced| balanced.migrations());
                (ours - least).min(most - ours) - f64::MIN_POSITIVE
            },
            |((refine, tmlb), greedy)| {
                format!(
                    "{}, between {:.0} and {:.0}",
                    tmlb.describe(),
                    refine.migrations(),
                    greedy.migrations()
                )
            },
        ),
        Criterion::every(
            "TMLB_MIN_WEIGHT migrates fewer than without the matching",
            of(MIN_WEIGHT).zip(of(UNMATCHED)),
            |(with, without)| without.migrations() - with.migrations() - f64::MIN_POSITIVE,
            |(with, without)| format!("{}, {:.0} without", with.describe(), without.migrations()),
        ),
        Criterion::every(
            "TMLB_MIN_WEIGHT without the matching migrates 600 to 882 per step (paper: 680)",
            of(UNMATCHED),
            |balanced| (balanced.migrations() - 600.0).min(882.0 - balanced.migrations()),
            measured,
        ),
    ];
    if let Some([with, without]) = times {
        let longer = 100.0 * (without / with - 1.0);
        criteria.push(
            Criterion::new(
                "without the matching, 50 steps with 2000 particles take 2 to 10 % longer (paper: about 5)",
                format!("{longer:.2} %: {with:.4} and {without:.4} s"),
                (2.0..=10.0).contains(&longer),
            )
            .because("a migrating compute of this program has no state, so its migration takes little time"),
        );
    }
    criteria
}
