//! Whether, when and with which strategy to balance: the decisions of the runtime against every fixed policy.
//!
//! A fixed policy runs one strategy at every N-th sync point. The oracle of a case is the fixed policy that turns out to
//! be the fastest, or no load balancing. `--lb-when auto --lb-gate auto --balancer auto` knows nothing in advance.
//!
//! Virtual times are the same in every run: loads are charged, and a strategy takes the time per object that is recorded
//! in [`THINKING`].

use std::fmt::{self, Display};
use std::io::Write as _;
use std::num::NonZeroU32;
use std::sync::Arc;

use cpu_time::ThreadTime;
use equipoise::prelude::*;
use equipoise::{Config, LbGate, LbWhen, Machine, Report, StrategySeconds, reduce};
use equipoise_apps::stencil::{Extent, Rules};
use equipoise_apps::{Failure, amr, kneighbor, leanmd, pic, stencil2d};
use equipoise_model::random::splitmix;
use equipoise_model::{Database, topology};
use equipoise_strategies::registry;
use rayon::prelude::*;
use tempfile::NamedTempFile;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options, on_one_thread};
use crate::recorder::Recorder;
use crate::rows::{Cell, Rows};
use crate::statistics::mean;

/// The figure.
pub(crate) const DECIDE: Figure = Figure {
    name: "decide",
    title: "Whether, when and which to balance: `auto` against every fixed policy, 16 PEs",
    paper: "Equipoise's own",
    paper_shows: "no paper",
    we_show: "the time of six programs on three machines with `auto`, next to the best of 36 fixed policies",
    why: "steps follow the losses, the gate compares gains with migrations, and the portfolio compares predicted periods",
    takes: "about fifteen minutes",
    notes: "A fixed policy is one of five strategies at every 1st, 2nd, 5th, 10th, 20th, 50th or 100th sync point of 200, or no \
            load balancing at all, where elements do not wait for each other at sync points. The oracle of a case is the fastest \
            of these, known only afterwards. Times are virtual, and include those of strategies, as recorded per object. `restless` \
            is a ring of elements whose loads are random in every period, so that the past says nothing of the future. The \
            messages of a PE take 1 microsecond at both ends; links have 1 GB/s and a latency of 1 microsecond.\n",
    run,
};

/// The strategies of fixed policies, and the seconds that each thinks per object: CPU time of one thread, as the median of the cases
/// of this figure, November 2026. They are recorded, since figures whose times depend on the session could not be repeated.
const THINKING: [(&str, f64); 5] = [
    ("RefineLB", 6e-7),
    ("GreedyRefineLB", 2.5e-7),
    ("CommAwareRefineLB", 1.3e-6),
    ("PoiseLB:quality=fast", 2e-5),
    ("PoiseLB", 2.6e-5),
];

/// The distances between steps, in sync points.
const DISTANCES: [u32; 7] = [1, 2, 5, 10, 20, 50, 100];
const SMALL_DISTANCES: [u32; 2] = [1, 10];

/// The machines: a name, and a topology of 16 PEs.
const MACHINES: [[&str; 2]; 3] =
    [["torus", "torus:4x4"], ["fat tree", "fattree:4:4/2e9:1e9"], ["flat", "flat:16"]];

/// A program that runs with a number of sync points.
type Program = (&'static str, fn(Config, u32) -> Outcome);

/// The virtual time of a run in seconds, its load-balancing steps, and its migrations.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    seconds: f64,
    steps: usize,
    migrations: u64,
}

impl<T> From<Report<T>> for Outcome {
    fn from(report: Report<T>) -> Self {
        Outcome {
            seconds: report.machine.map_or(f64::NAN, |machine| machine.seconds),
            steps: report.lb_steps.len(),
            migrations: report.migrations,
        }
    }
}

/// The programs. Their sync points are 5 to 10 ms of virtual time apart.
const PROGRAMS: [Program; 6] = [
    ("stencil2d", |config, points| {
        let (imbalance, lb_every, move_every) = (4, 5, 20);
        let iterations = lb_every * points;
        let charge = Some(1e-6);
        let rules = Rules { iterations, lb_every, imbalance, move_every, charge, ..Rules::default() };
        stencil2d::solve(
            config,
            &stencil2d::Options { blocks: Extent([12; 2]), cells: Extent([8; 2]), rules },
        )
        .into()
    }),
    ("pic", |config, points| {
        let (particles, drift, lb_every) = (12, 0.4, 2);
        let rules =
            pic::Rules { particles, drift, iterations: lb_every * points, lb_every, charge: Some(3e-6) };
        pic::simulate(config, &pic::Options { blocks: Extent([12; 2]), cells: Extent([4; 2]), rules }).into()
    }),
    ("amr", |config, points| {
        let (regrid_every, lb_every) = (2, 1);
        let iterations = regrid_every * lb_every * points;
        let options = amr::Options {
            blocks: [4; 2],
            cells: 8,
            levels: 3,
            iterations,
            regrid_every,
            lb_every,
            charge: Some(4e-6),
        };
        amr::simulate(config, &options).into()
    }),
    ("leanmd", |config, points| {
        let options = leanmd::Options {
            cells: [4; 3],
            particles: [60, 180],
            iterations: points,
            lb_every: 1,
            forces: leanmd::Work::Modelled,
            spread: false,
        };
        leanmd::simulate(config, &options).into()
    }),
    ("kneighbor", |config, points| {
        let lb_every = 3;
        let options = kneighbor::Options {
            elements: 96,
            neighbors: 4,
            bytes: 16384,
            iterations: lb_every * points,
            work: 40_000,
            lb_every,
            charge: Some(1e-8),
            ..kneighbor::Options::default()
        };
        kneighbor::exchange(config, &options).into()
    }),
    ("restless", |config, points| restless(config, points).into()),
];

/// An element of a ring. Its load in an iteration is random.
#[derive(Serialize, Deserialize)]
struct Restless {
    iteration: u32,
    iterations: u32,
    done: Exit<()>,
}

/// The seconds of an iteration of a restless element, at most.
const MOST_SECONDS: f64 = 2e-3;

#[chare(index = [i32; 1], sync)]
impl Restless {
    /// Works, and sends a message to the next element of the ring.
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        let ([me], [elements]) = (cx.index(), cx.shape());
        let random = splitmix(u64::from(self.iteration) << 32 | me as u64);
        cx.charge(MOST_SECONDS * (random >> 40) as f64 / f64::from(1 << 24));
        self.iteration += 1;
        cx.peer([(me + 1) % elements]).pass(vec![0; 256]);
    }

    #[entry]
    fn pass(&mut self, cx: &Cx<Self>, _data: Vec<u8>) {
        cx.charge(0.0);
        cx.peers().contribute().all_passed(());
    }

    #[entry(reduce = reduce::nothing)]
    fn all_passed(&mut self, cx: &Cx<Self>, _all: ()) {
        cx.charge(0.0);
        if self.iteration < self.iterations {
            cx.at_sync().step();
        } else if cx.index() == [0] {
            self.done.exit(cx, ());
        }
    }
}

fn restless(config: Config, iterations: u32) -> Report<()> {
    equipoise::run(config, |pe, done| {
        let ring = pe.array([128], |_| Restless { iteration: 0, iterations, done });
        pe.main(move |pe| ring.all(pe).step());
    })
}

/// A program on a machine.
#[derive(Clone, Copy)]
struct Case {
    program: Program,
    machine: [&'static str; 2],
    points: u32,
    seed: u64,
}

impl Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on the {} machine", self.program.0, self.machine[0])
    }
}

/// When a run balances, and with which strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    Never,
    /// A strategy at every N-th sync point.
    Every(&'static str, u32),
    Auto,
}

impl Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Never => f.write_str("never"),
            Policy::Every(strategy, distance) => write!(f, "{strategy} every {distance}"),
            Policy::Auto => f.write_str("auto"),
        }
    }
}

impl Case {
    fn config(&self) -> Config {
        let mut config = Config::on_machine(self.machine[1], "flow:latency=1e-6,bandwidth=1e9");
        config.machine = Machine { overhead: 1e-6, delivery: 2e-7, ..config.machine };
        Config { seed: self.seed, ..config }
    }

    fn run(&self, config: Config) -> Outcome {
        self.program.1(config, self.points)
    }

    /// A record of a period of the program.
    fn record(&self) -> Result<Database, Failure> {
        const NAME: &str = "Recorder";
        let recorder = Arc::new(Recorder::default());
        let every = NonZeroU32::new(self.points.div_ceil(2)).unwrap_or(NonZeroU32::MIN);
        let config = self.config().strategy(NAME, recorder.clone(), true);
        self.run(Config { balancer: vec![NAME.into()], lb_when: LbWhen::Every(every), ..config });
        recorder.take().ok_or_else(|| Failure::bug(format!("{self} had no load-balancing step")))
    }

    /// Runs all policies.
    fn measure(self, distances: &[u32]) -> Result<Measured, Failure> {
        let mut database = self.record()?;
        let objects = database.objects.len() as f64;
        let mut costs = database.costs.take().ok_or_else(|| Failure::bug(format!("{self} has no costs")))?;
        costs.strategies = THINKING.iter().map(|(spec, each)| ((*spec).into(), each * objects)).collect();
        let mut model = NamedTempFile::new().map_err(Failure::bug)?;
        serde_json::to_writer(&mut model, &costs).map_err(Failure::bug)?;
        model.flush().map_err(Failure::bug)?;
        let run = |policy: Policy| {
            let mut config = self.config();
            config.cost_model = Some(model.path().into());
            config.machine.strategy_seconds = Some(StrategySeconds::CostModel);
            match policy {
                Policy::Never => {}
                Policy::Every(strategy, distance) => {
                    config.balancer = vec![strategy.into()];
                    config.lb_when = LbWhen::Every(NonZeroU32::new(distance).unwrap_or(NonZeroU32::MIN));
                }
                Policy::Auto => {
                    config.balancer = vec!["auto".into()];
                    (config.lb_when, config.lb_gate) = (LbWhen::Auto, LbGate::Auto);
                }
            }
            self.run(config)
        };
        let every = |&(spec, _): &(&'static str, f64)| {
            distances.iter().map(move |&distance| Policy::Every(spec, distance))
        };
        let policies: Vec<Policy> =
            [Policy::Auto, Policy::Never].into_iter().chain(THINKING.iter().flat_map(every)).collect();
        let outcomes: Vec<(Policy, Outcome)> =
            policies.into_par_iter().map(|policy| (policy, run(policy))).collect();
        let thinking =
            THINKING.iter().map(|(spec, _)| seconds_per_object(spec, &database, self.machine[1], self.seed));
        Ok(Measured { case: self, thinking: thinking.collect::<Result<_, _>>()?, outcomes })
    }
}

/// The CPU seconds per object that a strategy thinks on this computer, on one thread.
fn seconds_per_object(spec: &str, database: &Database, machine: &str, seed: u64) -> Result<f64, Failure> {
    let (choice, machine) = (registry::parse(spec, &[])?, topology::parse(machine)?);
    let seconds = on_one_thread(|| {
        let begin = ThreadTime::now();
        choice.strategy.assign(database, &*machine, seed).map(|_| begin.elapsed().as_secs_f64())
    })??;
    Ok(seconds / database.objects.len() as f64)
}

/// The outcomes of all policies in a case, `auto` first and then `never`.
struct Measured {
    case: Case,
    outcomes: Vec<(Policy, Outcome)>,
    /// The seconds per object of the strategies of [`THINKING`] on this computer.
    thinking: Vec<f64>,
}

impl Measured {
    fn auto(&self) -> Outcome {
        self.outcomes[0].1
    }

    fn never(&self) -> Outcome {
        self.outcomes[1].1
    }

    fn fixed(&self) -> &[(Policy, Outcome)] {
        &self.outcomes[1..]
    }

    /// The fastest fixed policy.
    fn oracle(&self) -> (Policy, Outcome) {
        let fastest = self.fixed().iter().min_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds));
        *fastest.unwrap_or(&self.outcomes[1])
    }

    /// The time relative to that of the oracle.
    fn over_oracle(&self, outcome: Outcome) -> f64 {
        outcome.seconds / self.oracle().1.seconds
    }

    fn describe(&self) -> String {
        let (auto, (oracle, best)) = (self.auto(), self.oracle());
        format!(
            "{:.3} on {}: {:.4} s in {} steps; {oracle} {:.4} s, never {:.4} s",
            self.over_oracle(auto),
            self.case,
            auto.seconds,
            auto.steps,
            best.seconds,
            self.never().seconds
        )
    }
}

/// The fixed policy with the least mean time relative to the oracles, and this mean.
fn best_single(all: &[Measured]) -> Option<(Policy, f64)> {
    let count = all.first()?.fixed().len();
    let means = (0..count).map(|at| {
        let over: Vec<f64> = all.iter().map(|it| it.over_oracle(it.fixed()[at].1)).collect();
        (all[0].fixed()[at].0, mean(&over))
    });
    means.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn run(options: &Options) -> Result<FigureResult, Failure> {
    let distances = options.choose(&DISTANCES, &SMALL_DISTANCES);
    let machines = options.choose(&MACHINES, &MACHINES[..1]);
    let (points, seed) = (if options.small { 20 } else { 200 }, options.seed);
    let cases = PROGRAMS
        .into_iter()
        .flat_map(|program| machines.iter().map(move |&machine| Case { program, machine, points, seed }));
    let all = options.sweep(cases, |case| case.measure(distances))?;
    let mut rows = Rows::new([
        ("program", "program"),
        ("machine", "machine"),
        ("never_seconds", "never s"),
        ("oracle", "fastest fixed policy"),
        ("oracle_seconds", "s"),
        ("oracle_steps", "steps"),
        ("oracle_migrations", "moved"),
        ("auto_seconds", "auto s"),
        ("auto_steps", "steps"),
        ("auto_migrations", "moved"),
        ("over_oracle", "over oracle"),
        ("over_never", "over never"),
    ]);
    for it in &all {
        let (auto, never, (policy, best)) = (it.auto(), it.never(), it.oracle());
        rows.push([
            Cell::Text(it.case.program.0.into()),
            Cell::Text(it.case.machine[0].into()),
            Cell::Number(never.seconds),
            Cell::Text(policy.to_string()),
            Cell::Number(best.seconds),
            Cell::Count(best.steps as u64),
            Cell::Count(best.migrations),
            Cell::Number(auto.seconds),
            Cell::Count(auto.steps as u64),
            Cell::Count(auto.migrations),
            Cell::Number(it.over_oracle(auto)),
            Cell::Number(auto.seconds / never.seconds),
        ]);
    }
    let series = |name: &str, of: &dyn Fn(&Measured) -> Outcome| {
        Series::measured(
            name,
            (1..).map(f64::from).zip(all.iter().map(|it| it.over_oracle(of(it)))).collect::<Vec<_>>(),
        )
    };
    let chart = Chart {
        x: Axis::linear("case, in the order of the table"),
        y: Axis::linear("time over that of the fastest fixed policy"),
        series: vec![series("auto", &Measured::auto), series("never", &Measured::never)],
    };
    Ok(FigureResult { criteria: criteria(&all), rows, chart })
}

/// Why `auto` may be slower than a policy that is chosen afterwards.
const LEARNS: &str = "the first steps learn what gains and strategies are worth, and elements wait for each other at every sync point";

fn criteria(all: &[Measured]) -> Vec<Criterion> {
    let over: Vec<f64> = all.iter().map(|it| it.over_oracle(it.auto())).collect();
    let (mean, single) = (mean(&over), best_single(all));
    let thinking = THINKING.iter().enumerate().map(|(at, (spec, charged))| {
        let mut measured: Vec<f64> = all.iter().map(|it| it.thinking[at]).collect();
        measured.sort_by(f64::total_cmp);
        let measured = measured[measured.len() / 2];
        Criterion::new(
            format!("{spec}: the charged time is half to twice the one measured now"),
            format!("{charged:.2e} s per object, {measured:.2e} s now"),
            (0.5..=2.0).contains(&(charged / measured)),
        )
        .because("the times were taken in an optimised build on another computer")
    });
    let decisions = [
        Criterion::every(
            "auto takes at most 1.05 times the time of the fastest fixed policy in every case",
            all,
            |it| 1.05 - it.over_oracle(it.auto()),
            |it| it.describe(),
        )
        .because(LEARNS),
        Criterion::new(
            "auto takes at most 1.02 times this time in the mean",
            format!("{mean:.4}"),
            mean <= 1.02,
        )
        .because(LEARNS),
        Criterion::every(
            "auto takes at most 1.01 times the time without load balancing in every case",
            all,
            |it| 1.01 - it.auto().seconds / it.never().seconds,
            |it| it.describe(),
        )
        .because(LEARNS),
        Criterion::new(
            "auto is faster than any fixed policy that is used for all cases, in the mean over the oracles",
            single.map_or(String::new(), |(policy, single)| format!("{mean:.4}; {policy} {single:.4}")),
            single.is_some_and(|(_, single)| mean < single),
        )
        .because(LEARNS),
    ];
    decisions.into_iter().chain(thinking).collect()
}
