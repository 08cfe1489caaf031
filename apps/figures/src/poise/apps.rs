//! Times of a stencil and of LeanMD with `PoiseLB` and other strategies on the simulated machine.
//!
//! A program runs a few iterations before its load-balancing step, and a few after it. The recorded loads and bytes are
//! scaled to a whole period, so that they compare with the bytes of migrations as in a program with one step per
//! period. Each strategy runs once on this record, on one thread, and its time is measured; then the program runs with
//! its assignment. So virtual times are the same in every run, and only the added running times of strategies vary.

use std::fmt::{self, Display};
use std::sync::Arc;

use cpu_time::ThreadTime;
use equipoise::{Config, Machine, Report};
use equipoise_model::{Assignment, Database, Topology, topology};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::registry;
use equipoise_strategies::{Strategy, StrategyError};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::recorder::Recorder;
use crate::rows::{Cell, Rows};
use equipoise_apps::stencil::{Extent, Rules};
use equipoise_apps::{Failure, leanmd, stencil3d};

/// The figure.
pub(crate) const POISE_APPS: Figure = Figure {
    name: "poise-apps",
    title: "A stencil and LeanMD with strategies of all kinds, 512 PEs",
    paper: "Equipoise's own",
    paper_shows: "no paper",
    we_show: "the time of a stencil and LeanMD with strategies of all kinds",
    why: "PoiseLB weighs loads, hops and migrations together",
    takes: "about five minutes",
    notes: "Times are of a load-balancing step and the period after it: 10,000 iterations of the stencil (16x16x16 \
            blocks of 16x16x16 cells, 12 ns each, three times that in the lower corner), 1000 steps of LeanMD (8x8x8 \
            cells with 100 to 250 particles). The iterations before the step and six after it are simulated; the others \
            take the mean time of the last four. The input of strategies is the record before the step, scaled to a period. \
            Messages are packets that queue: on the torus, links of 175 MB/s; on the fat tree, 500 MB/s to a PE, 1 GB/s to a \
            switch of 8 and 4 GB/s to one of 64. A PE takes 0.1 microseconds to send or receive a message. The running time \
            of a strategy is measured once, as CPU time of one thread, and added; all other numbers are the same in every \
            run. `ahead after` is the number of iterations until PoiseLB has made up for its longer running time and \
            migrations. If PoiseLB has the shortest iterations but a longer total time, steps should be rarer. ContentionLB, \
            LeeAggarwalLB, McfLB and SwapLB are left out, because they take minutes for thousands of objects.\n",
    run,
};

/// The strategy that moves nothing.
const DUMMY: &str = "DummyLB";
const POISE: &str = "PoiseLB";

/// The compared strategies: by loads, by bytes, by the machine, and by the present placement.
const STRATEGIES: [&str; 25] = [
    DUMMY,
    "RefineLB",
    "RefineSwapLB",
    "GreedyLB",
    "GreedyRefineLB",
    "DistributedLB",
    "TemperedLB",
    "RefineCommLB",
    "GreedyCommLB",
    "CommAwareRefineLB",
    "MetisLB",
    "RecBipartLB",
    "TopoLB",
    "TopoCentLB",
    "TopoLB+RefineTopoLB",
    "GreedyRefineLB+RefineTopoLB",
    "HierTopoMap",
    "LibTopoMap",
    "TreeMatch",
    "TreeMatchConst",
    "TMLB_MIN_WEIGHT",
    "TMLB_TREEBASED",
    "PoiseLB:quality=fast",
    "PoiseLB:gamma=0",
    POISE,
];

/// The strategies that are not compared: those without a decision of their own, and those that take minutes for thousands of
/// objects.
#[cfg(test)]
const LEFT_OUT: [&str; 9] = [
    "AutoLB",
    "HierLB",
    "FileLB",
    "RandomLB",
    "RotateLB",
    "ContentionLB",
    "LeeAggarwalLB",
    "McfLB",
    "SwapLB",
];

const SMALL: [&str; 4] = [DUMMY, "RefineLB", "GreedyCommLB", POISE];

/// Simulated iterations before the step, and after it in each of two runs; too few for a second step.
const BEFORE: u32 = 6;
const AFTER: [u32; 2] = [2, 6];

/// CPU time of the runtime to send or receive a message between PEs, in seconds. PE 0 receives a message from every PE
/// for each reduction, which would dominate with a much larger overhead.
const OVERHEAD_SECONDS: f64 = 1e-7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Stencil,
    LeanMd,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Stencil => "stencil3d",
            Program::LeanMd => "leanmd",
        }
    }

    /// Iterations between two load-balancing steps.
    fn period(self) -> u32 {
        match self {
            Program::Stencil => 10_000,
            Program::LeanMd => 1000,
        }
    }
}

/// A program on a machine.
#[derive(Clone, Copy, Debug)]
struct Trial {
    program: Program,
    kind: Kind,
    small: bool,
    seed: u64,
}

impl Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on the {}", self.program.name(), self.kind[0])
    }
}

/// A machine: its name, its topology, and its network.
type Kind = [&'static str; 3];

const TORUS: Kind = ["torus", "torus:8x8x8", "packet:bandwidth=175e6"];
const TREE: Kind = ["fat tree", "fattree:8:8:8/4e9:1e9:5e8", "packet"];
const SMALL_TORUS: Kind = ["torus", "torus:4x4x4", "packet:bandwidth=175e6"];
const SMALL_TREE: Kind = ["fat tree", "fattree:4:4:4/1e9:5e8:5e8", "packet"];

/// The result of a run.
struct Run {
    seconds: f64,
    migrations: u64,
}

impl Trial {
    /// Runs the program with a strategy for `iterations` iterations.
    fn run(&self, strategy: Arc<dyn Strategy>, iterations: u32) -> Run {
        const NAME: &str = "Given";
        let [_, machine, network] = self.kind;
        let mut config = Config::on_machine(machine, network).strategy(NAME, strategy, true);
        config.machine = Machine { overhead: OVERHEAD_SECONDS, ..config.machine };
        (config.balancer, config.seed) = (vec![NAME.into()], self.seed);
        fn result<R>(report: Report<R>) -> Run {
            let seconds = report.machine.map_or(f64::NAN, |machine| machine.seconds);
            Run { seconds, migrations: report.migrations }
        }
        let side = if self.small { 8 } else { 16 };
        match self.program {
            Program::Stencil => {
                let rules = Rules {
                    iterations,
                    lb_every: BEFORE,
                    periodic: true,
                    imbalance: 3,
                    charge: Some(12e-9),
                    ..Rules::default()
                };
                let options =
                    stencil3d::Options { blocks: Extent([side; 3]), cells: Extent([side; 3]), rules };
                result(stencil3d::solve(config, &options))
            }
            Program::LeanMd => {
                let options = leanmd::Options {
                    cells: [side / 2; 3],
                    particles: [100, 250],
                    iterations,
                    lb_every: BEFORE,
                    forces: leanmd::Work::Modelled,
                    spread: true,
                };
                result(leanmd::simulate(config, &options))
            }
        }
    }
}

/// A strategy with a given assignment.
struct Given(Vec<u32>);

impl Strategy for Given {
    fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        Ok(Assignment::new(self.0.clone()))
    }
}

/// The assignment of a strategy, and its running time.
struct TimedAssignment {
    strategy: String,
    seconds: f64,
    pe_of: Vec<u32>,
}

/// The times of a program with a strategy.
struct Measured {
    strategy: String,
    metrics: Metrics,
    migrations: u64,
    strategy_seconds: f64,
    /// The time of the step without the strategy: collecting records, sending decisions, migrations.
    step_seconds: f64,
    iteration_seconds: f64,
}

impl Measured {
    /// The time of the step and of `period` iterations.
    fn seconds(&self, period: u32) -> f64 {
        self.strategy_seconds + self.step_seconds + f64::from(period) * self.iteration_seconds
    }

    /// The number of iterations after which shorter iterations compensate for a longer step; `None` if they never do.
    fn ahead_of(&self, other: &Measured) -> Option<f64> {
        let longer = self.seconds(0) - other.seconds(0);
        let saved = other.iteration_seconds - self.iteration_seconds;
        match longer <= 0.0 {
            true if saved >= 0.0 => Some(0.0),
            _ if saved > 0.0 => Some((longer / saved).max(0.0)),
            _ => None,
        }
    }
}

/// The results of all strategies in a trial.
struct Tried {
    trial: Trial,
    all: Vec<Measured>,
    /// Strategies that do not support this program or machine.
    refused: Vec<String>,
}

/// The input of the strategies: the record of the iterations before the step, scaled to a whole period.
fn record(trial: &Trial) -> Result<Database, Failure> {
    let recorder = Arc::new(Recorder::default());
    trial.run(recorder.clone(), BEFORE + AFTER[0]);
    let mut database =
        recorder.take().ok_or_else(|| Failure::bug(format!("{trial} had no load-balancing step")))?;
    let times = trial.program.period().div_ceil(BEFORE);
    let scale = f64::from(times);
    for object in &mut database.objects {
        object.load_seconds *= scale;
    }
    for pe in &mut database.pes {
        pe.wall_seconds *= scale;
        pe.idle_seconds *= scale;
        pe.background_seconds *= scale;
    }
    for edge in &mut database.edges {
        edge.messages *= u64::from(times);
        edge.bytes *= u64::from(times);
    }
    Ok(database)
}

fn try_all(trial: Trial, strategies: &[String]) -> Result<Tried, Failure> {
    let machine = topology::parse(trial.kind[1])?;
    let database = record(&trial)?;
    let alone = ThreadPoolBuilder::new().num_threads(1).build().map_err(Failure::bug)?;
    let (mut assignments, mut refused) = (Vec::new(), Vec::new());
    for strategy in strategies {
        let choice = registry::parse(strategy, &[])?;
        // CPU time, which does not depend on other load of this machine.
        let (answer, seconds) = alone.install(|| {
            let begin = ThreadTime::now();
            let answer = choice.strategy.assign(&database, &*machine, trial.seed);
            (answer, begin.elapsed().as_secs_f64())
        });
        let Ok(answer) = answer else {
            refused.push(strategy.clone());
            continue;
        };
        answer.check(&database).map_err(|error| StrategyError::rejected(strategy, error))?;
        assignments.push(TimedAssignment { strategy: strategy.clone(), seconds, pe_of: answer.pe_of });
    }
    let before = trial.run(Arc::new(Recorder::default()), BEFORE);
    let measure = |assignment: TimedAssignment| {
        let [first, second] =
            AFTER.map(|after| trial.run(Arc::new(Given(assignment.pe_of.clone())), BEFORE + after));
        let [few, many] = AFTER.map(f64::from);
        let iteration_seconds = (second.seconds - first.seconds) / (many - few);
        Measured {
            metrics: Metrics::of(&database, &*machine, &assignment.pe_of),
            strategy: assignment.strategy,
            migrations: first.migrations,
            strategy_seconds: assignment.seconds,
            step_seconds: first.seconds - before.seconds - few * iteration_seconds,
            iteration_seconds,
        }
    };
    let all = assignments.into_par_iter().map(measure).collect();
    Ok(Tried { trial, all, refused })
}

/// The compared strategies.
fn strategies(options: &Options) -> Vec<String> {
    options.choose(&STRATEGIES, &SMALL).iter().map(|&name| name.to_string()).collect()
}

fn run(options: &Options) -> Result<FigureResult, Failure> {
    let (machines, strategies) = if options.small {
        (vec![(Program::Stencil, SMALL_TORUS), (Program::LeanMd, SMALL_TREE)], strategies(options))
    } else {
        let programs = [Program::Stencil, Program::LeanMd];
        let pairs = programs.into_iter().flat_map(|program| [(program, TORUS), (program, TREE)]);
        (pairs.collect(), strategies(options))
    };
    let trials = machines.into_iter().map(|(program, kind)| Trial {
        program,
        kind,
        small: options.small,
        seed: options.seed,
    });
    let all = options.sweep(trials, |trial| try_all(trial, &strategies))?;
    let mut rows = Rows::new([
        ("program", "program"),
        ("machine", "machine"),
        ("strategy", "strategy"),
        ("imbalance", "max/avg"),
        ("hops_per_byte", "hops/byte"),
        ("migrations", "moved"),
        ("iteration_milliseconds", "ms per iteration"),
        ("step_milliseconds", "ms per step"),
        ("strategy_milliseconds", "strategy ms"),
        ("seconds", "s"),
        ("over_poiselb", "over PoiseLB"),
        ("poiselb_ahead_after_iterations", "ahead after"),
    ]);
    for Tried { trial, all, .. } in &all {
        let (poise, period) = (of(all, POISE)?, trial.program.period());
        for measured in all {
            let Metrics { max_load_seconds, average_load_seconds, communication, .. } = measured.metrics;
            rows.push([
                Cell::Text(trial.program.name().into()),
                Cell::Text(trial.kind[0].into()),
                Cell::Text(measured.strategy.clone()),
                Cell::Number(max_load_seconds / average_load_seconds),
                Cell::maybe(communication.map(|cost| cost.hops_per_byte)),
                Cell::Count(measured.migrations),
                Cell::Number(1e3 * measured.iteration_seconds),
                Cell::Number(1e3 * measured.step_seconds),
                Cell::Number(1e3 * measured.strategy_seconds),
                Cell::Number(measured.seconds(period)),
                Cell::Number(measured.seconds(period) / poise.seconds(period)),
                Cell::maybe(poise.ahead_of(measured)),
            ]);
        }
    }
    let series = all.iter().map(|Tried { trial, all, .. }| {
        let seconds = all.iter().map(|measured| measured.seconds(trial.program.period()));
        Series::measured(trial.to_string(), (1..).map(f64::from).zip(seconds).collect::<Vec<_>>())
    });
    let chart = Chart {
        x: Axis::linear("strategy, in the order of the table"),
        y: Axis::log("seconds of a step and a period"),
        series: series.collect(),
    };
    let mut criteria = Vec::new();
    for tried in &all {
        criteria.extend(criteria_of(tried)?);
    }
    Ok(FigureResult { rows, chart, criteria })
}

/// The criteria that `PoiseLB` is the best in a trial.
fn criteria_of(Tried { trial, all, refused }: &Tried) -> Result<Vec<Criterion>, Failure> {
    let (poise, period) = (of(all, POISE)?, trial.program.period());
    let describe = |measured: &Measured| {
        let Measured { strategy, strategy_seconds, iteration_seconds, .. } = measured;
        let all = measured.seconds(period);
        format!(
            "{strategy} {all:.3} s ({:.4} ms per iteration, {strategy_seconds:.3} s in the strategy)",
            1e3 * iteration_seconds
        )
    };
    let others = || all.iter().filter(|other| !other.strategy.starts_with(POISE));
    // The number of iterations from which PoiseLB is faster than all others, despite its longer running time.
    let ahead: Option<Vec<f64>> = others().map(|other| poise.ahead_of(other)).collect();
    let from = ahead.map(|ahead| ahead.into_iter().fold(0.0, f64::max));
    let from = from.map_or(String::new(), |iterations| {
        format!("; with {iterations:.0} iterations or more between steps, PoiseLB takes the least time")
    });
    let without = match refused.is_empty() {
        true => String::new(),
        false => format!(" (not supported by {})", refused.join(" ")),
    };
    Ok(vec![
        Criterion::every(
            format!("{trial}: PoiseLB takes the least time, including the time of the strategy{without}"),
            others(),
            |other| other.seconds(period) / poise.seconds(period) - 1.0,
            |other| format!("{}, {}", describe(poise), describe(other)),
        ),
        Criterion::every(
            format!("{trial}: no iteration is shorter than PoiseLB's"),
            others(),
            |other| other.iteration_seconds / poise.iteration_seconds - 1.0,
            |other| format!("{}, {}{from}", describe(poise), describe(other)),
        ),
    ])
}

/// The result of a strategy.
fn of<'a>(all: &'a [Measured], strategy: &str) -> Result<&'a Measured, Failure> {
    let found = all.iter().find(|measured| measured.strategy == strategy);
    found.ok_or_else(|| Failure::bug(format!("{strategy} has no result")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A strategy with these times, in seconds.
    fn measured(strategy_seconds: f64, iteration_seconds: f64) -> Measured {
        let database = Database::default();
        let machine = topology::parse("flat:1").expect("a machine");
        Measured {
            strategy: "A".into(),
            metrics: Metrics::of(&database.remap(1), &*machine, &[]),
            migrations: 0,
            strategy_seconds,
            step_seconds: 0.5,
            iteration_seconds,
        }
    }

    #[test]
    fn every_strategy_is_compared_or_left_out() {
        for named in registry::ALL {
            let is_compared =
                STRATEGIES.iter().any(|spec| spec.split(['+', ':']).any(|name| name == named.name));
            assert_ne!(is_compared, LEFT_OUT.contains(&named.name), "{}", named.name);
        }
    }

    #[test]
    fn a_slower_strategy_is_ahead_after_enough_shorter_iterations() {
        let (quick, slow) = (measured(0.0, 0.02), measured(1.0, 0.01));
        assert_eq!(slow.ahead_of(&quick).map(f64::round), Some(100.0));
        assert_eq!(quick.ahead_of(&slow), None);
        assert_eq!(measured(0.0, 0.01).ahead_of(&slow), Some(0.0));
        assert_eq!(slow.ahead_of(&measured(2.0, 0.02)), Some(0.0));
        assert_eq!(quick.seconds(100), 2.5);
    }

    #[test]
    fn the_record_is_scaled_to_a_period_and_an_assignment_is_applied() {
        let trial = Trial { program: Program::LeanMd, kind: SMALL_TORUS, small: true, seed: 0 };
        let database = record(&trial).expect("there is a step");
        assert_eq!(database.objects.len(), 960);
        // 167 times six steps of a compute for two corner cells with at least 100 particles each.
        let least = 167.0 * 6.0 * 1.1e-9 * 100.0 * 100.0;
        assert!(database.objects.iter().filter(|object| object.array == 1).all(|o| o.load_seconds >= least));
        let mut placement = database.placement();
        let movable = database.objects.iter().position(|object| object.migratable).expect("a compute");
        placement[movable] = (placement[movable] + 1) % 64;
        assert_eq!(trial.run(Arc::new(Given(placement)), BEFORE + 1).migrations, 1);
    }
}
