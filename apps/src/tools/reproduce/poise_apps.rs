//! How long a stencil and LeanMD take with strategies of all kinds on the simulated machine, `PoiseLB` among them.
//!
//! A program runs a few iterations up to its load-balancing step, and a few after it. What it recorded until then is
//! taken to be of a whole period, so that loads and bytes are weighed against the bytes that moving takes as they are in
//! a program which balances itself once a period. Each strategy is asked once about that record, on one thread, and
//! its time is taken; the program is then run with its answer. So virtual times are the same in every run, and only
//! the seconds that strategies think, which are added to them, are measured.

use std::fmt::{self, Display};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, anyhow};
use cpu_time::ThreadTime;
use equipoise::{Config, Machine, Report};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::registry;
use equipoise_strategies::{Assignment, Database, Strategy, StrategyError, Topology, topology};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::rows::{Cell, Rows};
use crate::stencil::{Extent, Rules};
use crate::{leanmd, stencil3d};

/// The figure.
pub(super) const POISE_APPS: Figure = Figure {
    name: "poise-apps",
    title: "A stencil and LeanMD with strategies of all kinds, 512 PEs",
    paper: "Equipoise's own",
    takes: "five minutes or so",
    notes: "Times are of a load-balancing step and the period after it: 10,000 iterations of the stencil (16x16x16 \
            blocks of 16x16x16 cells, 12 ns each, three times that in the lower corner), 1000 steps of LeanMD (8x8x8 \
            cells with 100 to 250 particles). Its iterations before the step and six after it are simulated, the rest \
            takes what the last four do, and those before stand for a period in what strategies see. Messages are packets \
            that queue: on the torus, links of 175 MB/s; on the fat tree, 500 MB/s to a PE, 1 GB/s to a switch of 8 and \
            4 GB/s to one of 64. A PE takes 0.1 microseconds to send or receive a message. What a strategy thinks is \
            measured here, once, as the time of one processor, and added; all other numbers are the same in every run. `ahead after` \
            is how many iterations it takes until PoiseLB has made up for the time that it thinks and moves longer: where its \
            iterations are the shortest and it takes longer in all, that is what it loses by, and rarer steps are the remedy. \
            Left out are ContentionLB, LeeAggarwalLB, McfLB and SwapLB, which take minutes for thousands of objects.\n",
    run,
};

/// What is known of a strategy that decides nothing.
const DUMMY: &str = "DummyLB";
const POISE: &str = "PoiseLB";

/// What is compared: strategies that look at loads, at bytes, at the machine, and at the present placement.
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

/// What is not: strategies that decide nothing, and those that take minutes for thousands of objects.
#[cfg(test)]
const LEFT_OUT: [&str; 7] =
    ["FileLB", "RandomLB", "RotateLB", "ContentionLB", "LeeAggarwalLB", "McfLB", "SwapLB"];

const SMALL: [&str; 4] = [DUMMY, "RefineLB", "GreedyCommLB", POISE];

/// Iterations before the step, and the two numbers of them after it that are simulated: there is no other step then.
const BEFORE: u32 = 6;
const AFTER: [u32; 2] = [2, 6];

/// What the runtime of a PE takes to send a message to another PE, and to receive one, in seconds. PE 0 takes a part of
/// every reduction from each PE: with much more, nothing else would count.
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

/// What people call a machine, its topology, and its network.
type Kind = [&'static str; 3];

const TORUS: Kind = ["torus", "torus:8x8x8", "packet:bandwidth=175e6"];
const TREE: Kind = ["fat tree", "fattree:8:8:8/4e9:1e9:5e8", "packet"];
const SMALL_TORUS: Kind = ["torus", "torus:4x4x4", "packet:bandwidth=175e6"];
const SMALL_TREE: Kind = ["fat tree", "fattree:4:4:4/1e9:5e8:5e8", "packet"];

/// What is left of a run.
struct Run {
    seconds: f64,
    migrations: u64,
}

impl Trial {
    /// The program with a strategy of our own, up to so many iterations.
    fn run(&self, strategy: Arc<dyn Strategy>, iterations: u32) -> Run {
        const NAME: &str = "Given";
        let [_, machine, network] = self.kind;
        let mut config = Config::on_machine(machine, network).strategy(NAME, strategy, true);
        config.machine = Machine { overhead: OVERHEAD_SECONDS, ..config.machine };
        (config.balancer, config.seed) = (vec![NAME.into()], self.seed);
        fn told<R>(report: Report<R>) -> Run {
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
                told(stencil3d::solve(config, &options))
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
                told(leanmd::simulate(config, &options))
            }
        }
    }
}

/// Keeps what it is shown, and moves nothing.
#[derive(Default)]
struct Recorder(Mutex<Option<Database>>);

impl Strategy for Recorder {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        // A run that panicked while it kept a record has ended.
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *kept = Some(database.clone());
        Ok(Assignment::unchanged(database))
    }
}

/// Has its answer already.
struct Answered(Vec<u32>);

impl Strategy for Answered {
    fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        Ok(Assignment { pe_of: self.0.clone(), notes: Vec::new() })
    }
}

/// A strategy's answer, and how long it thought.
struct Thought {
    strategy: String,
    seconds: f64,
    answer: Vec<u32>,
}

/// What became of a program with a strategy.
struct Measured {
    strategy: String,
    metrics: Metrics,
    migrations: u64,
    think_seconds: f64,
    /// What the step takes beside: records, decisions and moves.
    step_seconds: f64,
    iteration_seconds: f64,
}

impl Measured {
    /// The step and a period of so many iterations.
    fn seconds(&self, period: u32) -> f64 {
        self.think_seconds + self.step_seconds + f64::from(period) * self.iteration_seconds
    }

    /// After how many iterations it has made up for what its step takes longer; none if it never does.
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

/// All strategies in a trial.
struct Tried {
    trial: Trial,
    all: Vec<Measured>,
    /// Strategies that do not serve this program or machine.
    refused: Vec<String>,
}

/// What the strategies are asked about: the record of the iterations before the step, as of a whole period.
fn record(trial: &Trial) -> anyhow::Result<Database> {
    let recorder = Arc::new(Recorder::default());
    trial.run(recorder.clone(), BEFORE + AFTER[0]);
    let mut kept = recorder.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut database = kept.take().with_context(|| format!("{trial} came to no load-balancing step"))?;
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

fn try_all(trial: Trial, strategies: &[String]) -> anyhow::Result<Tried> {
    let machine = topology::parse(trial.kind[1])?;
    let database = record(&trial)?;
    let alone = ThreadPoolBuilder::new().num_threads(1).build()?;
    let (mut thoughts, mut refused) = (Vec::new(), Vec::new());
    for strategy in strategies {
        let choice = registry::parse(strategy, &[])?;
        // The time of its processor: what else runs on this machine is not what a strategy costs.
        let (answer, seconds) = alone.install(|| {
            let begin = ThreadTime::now();
            let answer = choice.strategy.assign(&database, &*machine, trial.seed);
            (answer, begin.elapsed().as_secs_f64())
        });
        let Ok(answer) = answer else {
            refused.push(strategy.clone());
            continue;
        };
        answer.check(&database).map_err(|impossible| {
            anyhow!("{strategy} gave an impossible answer: {impossible}; this is a mistake in the strategy")
        })?;
        thoughts.push(Thought { strategy: strategy.clone(), seconds, answer: answer.pe_of });
    }
    let before = trial.run(Arc::new(Recorder::default()), BEFORE);
    let measure = |thought: Thought| {
        let [first, second] =
            AFTER.map(|after| trial.run(Arc::new(Answered(thought.answer.clone())), BEFORE + after));
        let [few, many] = AFTER.map(f64::from);
        let iteration_seconds = (second.seconds - first.seconds) / (many - few);
        Measured {
            metrics: Metrics::of(&database, &*machine, &thought.answer),
            strategy: thought.strategy,
            migrations: first.migrations,
            think_seconds: thought.seconds,
            step_seconds: first.seconds - before.seconds - few * iteration_seconds,
            iteration_seconds,
        }
    };
    let all = thoughts.into_par_iter().map(measure).collect();
    Ok(Tried { trial, all, refused })
}

/// What is compared.
fn strategies(options: &Options) -> Vec<String> {
    options.choose(&STRATEGIES, &SMALL).iter().map(|&name| name.to_string()).collect()
}

fn run(options: &Options) -> anyhow::Result<FigureResult> {
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
        ("strategy_milliseconds", "thinking"),
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
                Cell::Number(1e3 * measured.think_seconds),
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
    for Tried { trial, all, refused } in &all {
        let (poise, period) = (of(all, POISE)?, trial.program.period());
        let told = |measured: &Measured| {
            let Measured { strategy, think_seconds, iteration_seconds, .. } = measured;
            let all = measured.seconds(period);
            format!(
                "{strategy} {all:.3} s ({:.4} ms per iteration, {think_seconds:.3} s thinking)",
                1e3 * iteration_seconds
            )
        };
        let others = || all.iter().filter(|other| !other.strategy.starts_with(POISE));
        // What it loses by where it does: others' decisions are made before it has thought.
        let ahead: Option<Vec<f64>> = others().map(|other| poise.ahead_of(other)).collect();
        let from = ahead.map(|ahead| ahead.into_iter().fold(0.0, f64::max));
        let from = from.map_or(String::new(), |iterations| {
            format!("; with {iterations:.0} iterations or more between steps it takes the least time")
        });
        let without = match refused.is_empty() {
            true => String::new(),
            false => format!(" (no answer from {})", refused.join(" ")),
        };
        criteria.push(Criterion::every(
            format!("{trial}: PoiseLB takes the least time, thinking included{without}"),
            others(),
            |other| other.seconds(period) / poise.seconds(period) - 1.0,
            |other| format!("{}, {}", told(poise), told(other)),
        ));
        criteria.push(Criterion::every(
            format!("{trial}: no iteration is shorter than PoiseLB's"),
            others(),
            |other| other.iteration_seconds / poise.iteration_seconds - 1.0,
            |other| format!("{}, {}{from}", told(poise), told(other)),
        ));
    }
    Ok(FigureResult { rows, chart, criteria })
}

/// What is of a strategy.
fn of<'a>(all: &'a [Measured], strategy: &str) -> anyhow::Result<&'a Measured> {
    let found = all.iter().find(|measured| measured.strategy == strategy);
    found.with_context(|| format!("{strategy} had no answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A strategy with these times, in seconds.
    fn measured(think_seconds: f64, iteration_seconds: f64) -> Measured {
        let database = Database::default();
        let machine = topology::parse("flat:1").expect("a machine");
        Measured {
            strategy: "A".into(),
            metrics: Metrics::of(&database.remap(1), &*machine, &[]),
            migrations: 0,
            think_seconds,
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
    fn who_thinks_longer_is_ahead_once_iterations_have_made_up_for_it() {
        let (quick, slow) = (measured(0.0, 0.02), measured(1.0, 0.01));
        assert_eq!(slow.ahead_of(&quick).map(f64::round), Some(100.0));
        assert_eq!(quick.ahead_of(&slow), None);
        assert_eq!(measured(0.0, 0.01).ahead_of(&slow), Some(0.0));
        assert_eq!(slow.ahead_of(&measured(2.0, 0.02)), Some(0.0));
        assert_eq!(quick.seconds(100), 2.5);
    }

    #[test]
    fn what_was_recorded_stands_for_a_period_and_an_answer_is_carried_out() {
        let trial = Trial { program: Program::LeanMd, kind: SMALL_TORUS, small: true, seed: 0 };
        let database = record(&trial).expect("there is a step");
        assert_eq!(database.objects.len(), 960);
        // 167 times six steps of a compute of two corner cells with 100 particles at least.
        let least = 167.0 * 6.0 * 1.1e-9 * 100.0 * 100.0;
        assert!(database.objects.iter().filter(|object| object.array == 1).all(|o| o.load_seconds >= least));
        let mut placement = database.placement();
        let movable = database.objects.iter().position(|object| object.migratable).expect("a compute");
        placement[movable] = (placement[movable] + 1) % 64;
        assert_eq!(trial.run(Arc::new(Answered(placement)), BEFORE + 1).migrations, 1);
    }
}
