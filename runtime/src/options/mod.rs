//! The flags every program has, and Charm++'s spellings of them. [`Settings`] is the validated form of the
//! flags.

mod available;
mod checkpoint;
mod interleaving;
mod job;
mod machine;
mod pes;
mod records;
mod settings;
mod spellings;

pub use checkpoint::Checkpoints;
pub use machine::{Machine, PeFailure, StrategySeconds, Uncharged};
pub use records::Records;
pub use spellings::translated;

pub(crate) use available::Listed;
pub(crate) use job::Job;
pub(crate) use machine::Simulation;
pub(crate) use records::{of_process, unwritable};
pub(crate) use settings::Settings;
pub(crate) use spellings::{unknown, unsupported};

use clap::ValueEnum;
use equipoise_model::fault::{Classified, Fault};
use equipoise_report::ReportFile;
use equipoise_strategies::Strategy;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::max_moves::MaxMoves;
use equipoise_strategies::predict::Predictor;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// The heading of the flags of load balancing.
const BALANCING: &str = "Load balancing";

/// The heading of the flags that write and replay databases.
const DATABASES: &str = "Load-balancing databases";

// Through `concat!`, because clap shows `///` as the description of every program that flattens `Config`.
#[doc = concat!("How a program runs. From the command line, with [`parse`](crate::parse):

```no_run
use equipoise::{Config, Exit, Setup};

fn setup(pe: &Setup, done: Exit<u32>) {
    pe.main(move |pe| done.exit(pe, 7));
}

let report = equipoise::run(equipoise::parse(), setup);
```

A program with flags of its own flattens it into its clap parser. Or in code:

```
use equipoise::Config;
let config = Config { balancer: vec![\"GreedyRefineLB\".into()], ..Config::threads(4) };
```")]
#[derive(Clone, Debug, clap::Parser)]
#[command(next_help_heading = "Runtime options")]
pub struct Config {
    /// Number of PEs [default: that of --topology, else one per core] [Charm++: +pN]
    #[arg(long, value_name = "N", display_order = 0, allow_negative_numbers = true)]
    pub pes: Option<usize>,

    /// How PEs run and exchange messages
    #[arg(long, value_enum, default_value_t, display_order = 4)]
    pub transport: Transport,

    /// Number of PEs in each process [default with --transport mpi: 1, which also drives the network; all PEs of other
    /// transports are in one process] [Charm++: +ppn]
    #[arg(long, value_name = "N", display_order = 5, allow_negative_numbers = true)]
    pub pes_per_process: Option<usize>,

    /// Initial placement of elements: blocks, roundrobin, random, or a file with one PE per line
    #[arg(long, value_name = "blocks|roundrobin|random|FILE", default_value = "blocks")]
    pub initial: String,

    /// How an element migrates between threads: encoded, or moved in memory
    #[arg(long, value_enum, default_value_t, hide_short_help = true)]
    pub migration: Migration,

    /// The machine that load balancers assume, as in torus:4x4x4; `help` lists all kinds [default: job with
    /// --transport mpi; otherwise the tree of this computer if built with hwloc, else flat]
    #[arg(long, value_name = "SPEC", display_order = 3)]
    pub topology: Option<String>,

    /// Load balancer of all steps; `help` lists all load balancers [default: no balancing] [Charm++: +balancer]
    ///
    /// With --then, the load balancer of the first step. A second --balancer is the same as --then.
    #[arg(long, value_name = "SPEC", allow_hyphen_values = false, display_order = 1)]
    pub balancer: Vec<String>,

    /// Load balancer of all steps after the first
    #[arg(long, value_name = "SPEC", requires = "balancer", display_order = 2)]
    pub then: Option<String>,

    /// File with a load balancer per step: lines `[%]STEP NAME [key=value ..]`
    #[arg(long, value_name = "FILE", conflicts_with = "balancer", help_heading = BALANCING)]
    pub lb_schedule: Option<PathBuf>,

    /// Skip all load-balancing steps [Charm++: +LBOff]
    #[arg(long, help_heading = BALANCING)]
    pub lb_off: bool,

    /// Use only the PEs that this file lists, one per line; the file is read again at every load-balancing step, so that PEs can be
    /// given up and come back
    #[arg(long, value_name = "FILE", help_heading = BALANCING)]
    pub pes_available: Option<PathBuf>,

    /// Ignore the time that PEs spend outside elements [Charm++: +LBNoBackground]
    #[arg(long, help_heading = BALANCING, hide_short_help = true)]
    pub lb_no_background: bool,

    /// The largest number of elements that a load-balancing step may move, as in 100 or 5% [default: any number]
    #[arg(long, value_name = "N|P%", help_heading = BALANCING, allow_negative_numbers = true)]
    pub max_moves: Option<MaxMoves>,

    /// The largest number of elements on each PE after a load-balancing step, or a file with a number for each PE, one per line; with
    /// `,exact` each PE has exactly this number [default: any number]
    #[arg(long, value_name = "N|FILE[,exact]", conflicts_with = "max_moves", help_heading = BALANCING)]
    pub max_objects: Option<String>,

    /// The bytes that each PE has for encoded elements after a load-balancing step, as in 80G, or a file with a number for each PE, one per
    /// line [default: any number]
    #[arg(long, value_name = "BYTES|FILE", conflicts_with = "max_moves", help_heading = BALANCING)]
    pub memory: Option<String>,

    /// What counts as the load of elements: the time of their entries (`wall`), or the CPU time, which leaves out time of other
    /// programs, but takes about 0.2 us more per message
    #[arg(long, value_enum, default_value_t, value_name = "TIME", help_heading = BALANCING)]
    pub lb_load: LbLoad,

    /// Loads of the coming period: those of the last one (`last`) or of its last interval between sync points (`interval`), the mean
    /// of K (`mean=K`), a mean in which the last one has the weight A (`ewma=A`), the trend of K (`trend=K`), or what predicted best
    /// so far (`auto`) [default: last, or `auto` with --lb-when auto]
    #[arg(long, value_name = "LOADS", help_heading = BALANCING)]
    pub lb_predict: Option<Predictor>,

    /// Which sync points become load-balancing steps: `every=N`: every N-th; `auto`: when the time lost since the last step
    /// exceeds the cost of a step
    #[arg(long, default_value_t, value_name = "WHEN", help_heading = BALANCING)]
    pub lb_when: LbWhen,

    /// Whether an assignment is applied only if its predicted gain until the next step exceeds the time of its migrations
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", help_heading = BALANCING)]
    pub lb_gate: LbGate,

    /// What messages and migrations cost, as a JSON document [default: measured, or as the simulated machine has it]
    #[arg(long, value_name = "FILE", help_heading = BALANCING, hide_short_help = true)]
    pub cost_model: Option<PathBuf>,

    /// Print a report of every load-balancing step [Charm++: +LBDebug 1]
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", help_heading = BALANCING)]
    pub lb_report: Option<ReportForm>,

    /// End the run with exit code 1 if a load balancer fails at a step [default: skip the step, with a warning]
    #[arg(long, help_heading = BALANCING)]
    pub lb_strict: bool,

    /// Whether the messages and bytes between elements are recorded [Charm++: +LBCommOn]
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", help_heading = BALANCING, hide_short_help = true)]
    pub lb_comm: Comm,

    /// Write a report for people: .html is a page for any browser, .json the numbers of the page
    #[arg(long, value_name = "FILE", help_heading = DATABASES)]
    pub report: Option<ReportFile>,

    /// Write load-balancing databases to this file (.json: as JSON) [Charm++: +LBDumpFile]
    #[arg(long, value_name = "FILE", help_heading = DATABASES)]
    pub lb_dump: Option<PathBuf>,

    /// First step whose database is written [Charm++: +LBDump]
    #[arg(long, value_name = "STEP", default_value_t = 0, requires = "lb_dump", help_heading = DATABASES)]
    pub lb_dump_start: u64,

    /// Number of steps whose databases are written [Charm++: +LBDumpSteps]
    #[arg(long, value_name = "N", default_value_t = 1, requires = "lb_dump", help_heading = DATABASES, allow_negative_numbers = true)]
    pub lb_dump_steps: u64,

    /// Instead of running, replay --lb-sim-file from this step on with each --balancer
    /// [Charm++: +LBSim]
    #[arg(long, value_name = "STEP", requires = "lb_sim_file", help_heading = DATABASES, hide_short_help = true)]
    pub lb_sim: Option<u64>,

    /// Number of steps that --lb-sim replays [Charm++: +LBSimSteps]
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = DATABASES, hide_short_help = true, allow_negative_numbers = true)]
    pub lb_sim_steps: u64,

    /// Number of PEs of the replay of --lb-sim [default: that of the database] [Charm++: +LBSimProcs]
    #[arg(long, value_name = "P", help_heading = DATABASES, hide_short_help = true)]
    pub lb_sim_pes: Option<usize>,

    /// Database that --lb-sim replays [Charm++: +LBDumpFile]
    #[arg(long, value_name = "FILE", help_heading = DATABASES, hide_short_help = true)]
    pub lb_sim_file: Option<PathBuf>,

    /// Bind every PE to a core [Charm++: +setcpuaffinity]
    #[arg(long)]
    pub bind: bool,

    /// How a thread waits that has nothing to do
    #[arg(long, value_enum, default_value_t, hide_short_help = true)]
    pub idle: Idle,

    /// Seed of the random number generator
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub seed: u64,

    /// End the run with exit code 1 when it has run for this wall-clock time, and report what every PE runs and waits for
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub time_limit: Option<f64>,

    /// Warn on stderr of an entry method that has run for this wall-clock time without returning, again after each such
    /// time; the warning names the element, the entry and the PE
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub watchdog: Option<f64>,

    /// Record in this file the order in which the PEs of this run deliver messages; --replay-order repeats the run
    #[arg(long, value_name = "FILE", conflicts_with = "replay_order")]
    pub record_order: Option<PathBuf>,

    /// Repeat the run of a file of --record-order, in one thread, with the number of PEs of that run; give all other flags
    /// as in that run
    #[arg(long, value_name = "FILE")]
    pub replay_order: Option<PathBuf>,

    /// What is recorded while the run proceeds.
    #[command(flatten)]
    pub records: Records,

    /// Checkpoints: when they are saved, and with which the run begins.
    #[command(flatten)]
    pub checkpoints: Checkpoints,

    /// The simulated machine, if there is one.
    #[command(flatten)]
    pub machine: Machine,

    /// Load balancers of the program, selected by name like the built-in ones; see [`Config::strategy`].
    #[arg(skip)]
    pub own: Vec<Choice>,

    /// Whether this is a program with a command line: then a failed run ends the process with an error message
    /// and an exit code. Otherwise [`run`](crate::run()) panics with the message.
    #[arg(skip = true)]
    pub program: bool,
}

/// How PEs run and exchange messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Each PE is a thread of this process.
    #[default]
    Threads,
    /// All PEs run in one thread, in an order sampled with the seed, or in virtual time with
    /// --network; messages between PEs are encoded.
    Simulated,
    /// PEs are in processes that MPI starts and connects, as in `mpirun -n 4 PROGRAM --transport mpi`. Needs the
    /// feature `mpi` of the crate `equipoise`.
    Mpi,
}

impl Transport {
    /// Whether a launcher starts the processes of the run, and says how many there are.
    pub(crate) fn has_launcher(self) -> bool {
        self == Transport::Mpi
    }
}

/// How a thread waits that has nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Idle {
    /// Spins for about twice as long as waking it would take, then parks; sooner where others want the core.
    #[default]
    Auto,
    /// Never gives up its core: the fastest where every thread has a core that nothing else uses.
    Spin,
    /// Sleeps at once until a message wakes it.
    Park,
}

/// How an element migrates between threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Migration {
    /// Encoded and decoded; fields that serde skips get their default values.
    #[default]
    Encode,
    /// Moved in memory, without encoding.
    Move,
}

/// Whether communication is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Comm {
    /// If a load balancer or --lb-dump needs the communication.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// What counts as the load of elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LbLoad {
    /// The time from the begin of an entry to its end.
    #[default]
    Wall,
    /// The CPU time of the thread in between.
    Cpu,
}

/// Which sync points become load-balancing steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LbWhen {
    /// Every N-th.
    Every(NonZeroU32),
    /// When the time lost since the last step exceeds the cost of a step.
    Auto,
}

impl Default for LbWhen {
    /// Every sync point.
    fn default() -> Self {
        LbWhen::Every(NonZeroU32::MIN)
    }
}

impl FromStr for LbWhen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let every = || text.strip_prefix("every=")?.parse().ok().map(LbWhen::Every);
        let when = if text == "auto" { Some(LbWhen::Auto) } else { every() };
        when.ok_or("write `every=N` with N from 1 on, as in every=5, or `auto`")
    }
}

impl std::fmt::Display for LbWhen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LbWhen::Every(every) => write!(f, "every={every}"),
            LbWhen::Auto => f.write_str("auto"),
        }
    }
}

/// When assignments are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LbGate {
    /// Always.
    #[default]
    Off,
    /// If the predicted gain until the next step exceeds the predicted time of the migrations.
    Auto,
}

/// How load-balancing steps are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    /// As text.
    Text,
    /// As one line of JSON per step.
    Json,
}

impl Default for Config {
    /// One thread per core, no balancer.
    fn default() -> Self {
        Config {
            pes: None,
            pes_per_process: None,
            transport: Transport::Threads,
            initial: "blocks".into(),
            migration: Migration::Encode,
            topology: None,
            balancer: Vec::new(),
            then: None,
            lb_schedule: None,
            lb_off: false,
            pes_available: None,
            lb_no_background: false,
            max_moves: None,
            max_objects: None,
            memory: None,
            lb_load: LbLoad::Wall,
            lb_predict: None,
            lb_when: LbWhen::default(),
            lb_gate: LbGate::Off,
            cost_model: None,
            lb_report: None,
            lb_strict: false,
            lb_comm: Comm::Auto,
            report: None,
            lb_dump: None,
            lb_dump_start: 0,
            lb_dump_steps: 1,
            lb_sim: None,
            lb_sim_steps: 1,
            lb_sim_pes: None,
            lb_sim_file: None,
            bind: false,
            idle: Idle::Auto,
            seed: 0,
            time_limit: None,
            watchdog: None,
            record_order: None,
            replay_order: None,
            records: Records::default(),
            checkpoints: Checkpoints::default(),
            machine: Machine::default(),
            own: Vec::new(),
            program: false,
        }
    }
}

impl Config {
    /// Runs `pes` PEs as threads.
    pub fn threads(pes: usize) -> Self {
        Config { pes: Some(pes), ..Config::default() }
    }

    /// Runs `pes` PEs in one thread, in an order sampled with `seed`.
    pub fn simulated(pes: usize, seed: u64) -> Self {
        Config { transport: Transport::Simulated, seed, ..Config::threads(pes) }
    }

    /// Simulates the machine `topology` in virtual time, with `network` on its links; for example
    /// `Config::on_machine("torus:8x8x8", "flow:bandwidth=175e6")`.
    pub fn on_machine(topology: &str, network: &str) -> Self {
        let machine = Machine { network: Some(network.to_owned()), ..Machine::default() };
        let topology = Some(topology.to_owned());
        Config { transport: Transport::Simulated, topology, machine, ..Config::default() }
    }

    /// Adds a load balancer under a name that `--balancer` accepts. Communication is recorded for it if
    /// `needs_communication`.
    pub fn strategy(mut self, name: &str, strategy: Arc<dyn Strategy>, needs_communication: bool) -> Self {
        self.own.push(Choice { spec: name.to_owned(), strategy, needs_communication });
        self
    }
}

/// Why a configuration is invalid: a sentence with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub(crate) struct ConfigError {
    pub(crate) fault: Fault,
    pub(crate) sentence: String,
}

impl Classified for ConfigError {
    fn fault(&self) -> Fault {
        self.fault
    }
}

/// The command line, with the program's path shortened to its name.
pub(crate) fn program() -> String {
    let mut args = std::env::args_os();
    let path = PathBuf::from(args.next().unwrap_or_default());
    let name = path.file_name().map(ToOwned::to_owned);
    let words = name.into_iter().chain(args).map(|arg| arg.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join(" ")
}

/// A flag or its value is wrong.
fn flag(sentence: String) -> ConfigError {
    ConfigError { fault: Fault::Usage, sentence }
}

/// The content of a file that a flag names is wrong.
fn content(sentence: String) -> ConfigError {
    ConfigError { fault: Fault::Input, sentence }
}

/// The error in the value of a flag.
pub(crate) fn wrong(flag: &str, error: &impl Classified) -> ConfigError {
    ConfigError { fault: error.fault(), sentence: format!("{flag}: {error}") }
}
