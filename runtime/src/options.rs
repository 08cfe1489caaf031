//! How to run: the flags every program has, Charm++'s spellings of them, and what they resolve to.

use crate::context::after;
use crate::location::Placement;
use crate::machine::{Machine, Simulation, Uncharged};
use clap::ValueEnum;
use equipoise_strategies::assignment::{MappingError, MappingFile};
use equipoise_strategies::database::Dump;
use equipoise_strategies::registry::{self, Choice};
use equipoise_strategies::schedule::Schedule;
use equipoise_strategies::trace::Trace;
use equipoise_strategies::{Strategy, Topology, topology};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a program runs. From the command line (flatten it into your own clap parser and call
/// [`parse`](crate::parse)), or in code:
///
/// ```
/// use equipoise::Config;
/// let config = Config { balancer: vec!["GreedyRefineLB".into()], ..Config::threads(4) };
/// ```
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Runtime options")]
pub struct Config {
    /// Number of PEs; by default those of --topology, or one per core [Charm++: +pN]
    #[arg(long, value_name = "N")]
    pub pes: Option<usize>,

    /// Who carries messages between PEs
    #[arg(long, value_enum, default_value_t)]
    pub transport: Transport,

    /// Where elements start: blocks, roundrobin, random, or a file with a PE per line
    #[arg(long, value_name = "blocks|roundrobin|random|FILE", default_value = "blocks")]
    pub initial: String,

    /// How an element moves between threads: through its encoding, or as it is
    #[arg(long, value_enum, default_value_t)]
    pub migration: Migration,

    /// The machine the balancers see, as in torus:4x4x4; `help` lists all kinds [default: this
    /// one's tree if built with hwloc, else flat]
    #[arg(long, value_name = "SPEC")]
    pub topology: Option<String>,

    /// Load balancer of the first step, and of all later ones without --then; `help` lists them all.
    /// Given twice, the second is --then [Charm++: +balancer]
    #[arg(long, value_name = "SPEC", allow_hyphen_values = false)]
    pub balancer: Vec<String>,

    /// Load balancer of all steps but the first
    #[arg(long, value_name = "SPEC", requires = "balancer")]
    pub then: Option<String>,

    /// A balancer per step: lines `[%]STEP NAME [key=value ..]`
    #[arg(long, value_name = "FILE", conflicts_with = "balancer")]
    pub lb_schedule: Option<PathBuf>,

    /// No load-balancing steps [Charm++: +LBOff]
    #[arg(long)]
    pub lb_off: bool,

    /// Ignore the time PEs spend outside elements [Charm++: +LBNoBackground]
    #[arg(long)]
    pub lb_no_background: bool,

    /// Show what every load-balancing step did [Charm++: +LBDebug 1]
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, default_missing_value = "text")]
    pub lb_report: Option<ReportForm>,

    /// Record who sends whom how much: auto does so if a balancer or the dump needs it
    /// [Charm++: +LBCommOn]
    #[arg(long, value_enum, default_value_t)]
    pub lb_comm: Comm,

    /// Write the LB databases to this file (.json: as JSON) [Charm++: +LBDumpFile]
    #[arg(long, value_name = "FILE")]
    pub lb_dump: Option<PathBuf>,

    /// The first step whose database is written [Charm++: +LBDump]
    #[arg(long, value_name = "STEP", default_value_t = 0, requires = "lb_dump")]
    pub lb_dump_start: u64,

    /// How many steps' databases are written [Charm++: +LBDumpSteps]
    #[arg(long, value_name = "N", default_value_t = 1, requires = "lb_dump")]
    pub lb_dump_steps: u64,

    /// Instead of running, replay this step of the database --lb-sim-file with each --balancer
    /// [Charm++: +LBSim]
    #[arg(long, value_name = "STEP", requires = "lb_sim_file", hide_short_help = true)]
    pub lb_sim: Option<u64>,

    /// How many steps --lb-sim replays [Charm++: +LBSimSteps]
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    pub lb_sim_steps: u64,

    /// The number of PEs --lb-sim replays for [Charm++: +LBSimProcs]
    #[arg(long, value_name = "P", hide_short_help = true)]
    pub lb_sim_pes: Option<usize>,

    /// The database --lb-sim replays [Charm++: +LBDumpFile]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub lb_sim_file: Option<PathBuf>,

    /// Bind every PE to a core [Charm++: +setcpuaffinity]
    #[arg(long)]
    pub bind: bool,

    /// Everything random comes from this
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// The machine that is simulated, if one is.
    #[command(flatten)]
    pub machine: Machine,

    /// Balancers of your own, found by name like the rest; see [`Config::strategy`].
    #[arg(skip)]
    pub own: Vec<Choice>,

    /// Whether this is a program with a command line: a failed run then ends the process with a
    /// sentence and an exit code, where [`run`](crate::run()) otherwise panics with the sentence.
    #[arg(skip = true)]
    pub program: bool,
}

/// Who carries messages between PEs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// PEs are threads of this process.
    #[default]
    Threads,
    /// All PEs take turns in one thread, in an order drawn from the seed, or in virtual time with
    /// --network; whatever crosses PEs is encoded.
    Simulated,
}

/// How an element moves between threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Migration {
    /// Through its encoding, so that a field that serde skips shows.
    #[default]
    Encode,
    /// As it is.
    Move,
}

/// Whether communication is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Comm {
    /// If a balancer or the dump needs it.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How load-balancing steps are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    /// For people.
    Text,
    /// A line of JSON each.
    Json,
}

impl Default for Config {
    /// One thread per core, no balancer.
    fn default() -> Self {
        Config {
            pes: None,
            transport: Transport::Threads,
            initial: "blocks".into(),
            migration: Migration::Encode,
            topology: None,
            balancer: Vec::new(),
            then: None,
            lb_schedule: None,
            lb_off: false,
            lb_no_background: false,
            lb_report: None,
            lb_comm: Comm::Auto,
            lb_dump: None,
            lb_dump_start: 0,
            lb_dump_steps: 1,
            lb_sim: None,
            lb_sim_steps: 1,
            lb_sim_pes: None,
            lb_sim_file: None,
            bind: false,
            seed: 0,
            machine: Machine::default(),
            own: Vec::new(),
            program: false,
        }
    }
}

impl Config {
    /// So many PEs as threads.
    pub fn threads(pes: usize) -> Self {
        Config { pes: Some(pes), ..Config::default() }
    }

    /// So many PEs in one thread, in an order drawn from `seed`.
    pub fn simulated(pes: usize, seed: u64) -> Self {
        Config { transport: Transport::Simulated, seed, ..Config::threads(pes) }
    }

    /// The machine `topology` in virtual time, with `network` on its links; for example
    /// `Config::on_machine("torus:8x8x8", "flow:bandwidth=175e6")`.
    pub fn on_machine(topology: &str, network: &str) -> Self {
        let machine = Machine { network: Some(network.to_owned()), ..Machine::default() };
        let topology = Some(topology.to_owned());
        Config { transport: Transport::Simulated, topology, machine, ..Config::default() }
    }

    /// Adds a balancer of your own under a name that `--balancer` then knows. It is shown what was
    /// sent if `needs_communication`.
    pub fn strategy(mut self, name: &str, strategy: Arc<dyn Strategy>, needs_communication: bool) -> Self {
        self.own.push(Choice { spec: name.to_owned(), strategy, needs_communication });
        self
    }

    /// What the flags mean.
    pub(crate) fn resolve(&self) -> Result<Settings, ConfigError> {
        let topology = self.topology.as_deref().map(topology::parse).transpose();
        let topology = topology.map_err(|error| flag(format!("--topology: {error}")))?;
        let pes = match (self.pes, &topology) {
            (Some(pes), _) => pes,
            (None, Some(topology)) => topology.pes(),
            (None, None) => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let most = if self.transport == Transport::Threads { MOST_THREADS } else { MOST_PES };
        if !(1..=most).contains(&pes) {
            let more = if most == MOST_THREADS { ", or more with --transport simulated" } else { "" };
            return Err(flag(format!("--pes is {pes}; give a number from 1 to {most}{more}")));
        }
        let topology = match topology {
            Some(topology) => topology,
            None if self.transport == Transport::Threads => topology::this_machine(pes),
            None => topology::flat(pes),
        };
        if topology.pes() != pes {
            return Err(flag(format!(
                "--topology {} has {} PEs and --pes is {pes}; make them equal",
                topology.spec(),
                topology.pes()
            )));
        }
        if self.machine.network.is_some() && self.transport != Transport::Simulated {
            return Err(flag("--network without --transport simulated: threads have no network".into()));
        }
        let simulation = self.machine.resolve(&topology)?;
        if let Some(path) = &self.machine.record {
            // Found now, not after hours of running.
            Trace::can_write(path).map_err(|error| flag(format!("--record: {error}")))?;
        }
        if let Some(path) = &self.lb_dump {
            // Found now, not after hours of running.
            Dump::can_write(path).map_err(|error| flag(format!("--lb-dump: {error}")))?;
        }
        if self.then.is_some() && self.balancer.is_empty() {
            return Err(flag("--then without --balancer: say what the first step does".into()));
        }
        if self.lb_sim.is_some() && self.lb_sim_file.is_none() {
            return Err(flag("--lb-sim without --lb-sim-file: say which database to replay".into()));
        }
        let schedule = if self.lb_off { Schedule::none() } else { self.schedule()? };
        Ok(Settings {
            pes,
            transport: self.transport,
            migration: self.migration,
            initial: self.initial(pes)?,
            schedule,
            topology,
            lb_off: self.lb_off,
            background: !self.lb_no_background,
            lb_report: self.lb_report,
            lb_comm: self.lb_comm,
            dump: self.lb_dump.clone(),
            dump_start: self.lb_dump_start,
            dump_steps: self.lb_dump_steps,
            bind: self.bind,
            seed: self.seed,
            simulation,
        })
    }

    fn schedule(&self) -> Result<Schedule, ConfigError> {
        if let Some(path) = &self.lb_schedule {
            let name = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| {
                flag(format!(
                    "--lb-schedule {name}: {error}; name a file with lines `[%]STEP NAME [key=value ..]`"
                ))
            })?;
            return Schedule::parse_file(&text, &self.own)
                .map_err(|error| ConfigError::File(format!("--lb-schedule {name}: {error}")));
        }
        let choices = self.choices()?;
        let mut choices = choices.into_iter();
        let Some(first) = choices.next() else { return Ok(Schedule::none()) };
        let then = match &self.then {
            Some(spec) => Some(self.choice("--then", spec)?),
            None => choices.next(),
        };
        if choices.next().is_some() || self.then.is_some() && self.balancer.len() > 1 {
            return Err(flag(
                "more than two balancers: give the first step's with --balancer, the later ones' with --then, \
                 and a balancer per step with --lb-schedule"
                    .into(),
            ));
        }
        Ok(Schedule::first_then(first, then))
    }

    /// The balancers named.
    pub(crate) fn choices(&self) -> Result<Vec<Choice>, ConfigError> {
        self.balancer.iter().map(|spec| self.choice("--balancer", spec)).collect()
    }

    fn choice(&self, name: &str, spec: &str) -> Result<Choice, ConfigError> {
        registry::parse(spec, &self.own).map_err(|error| flag(format!("{name} {spec}: {error}")))
    }

    fn initial(&self, pes: usize) -> Result<Placement, ConfigError> {
        let path = match self.initial.as_str() {
            "blocks" => return Ok(Placement::Blocks),
            "roundrobin" => return Ok(Placement::RoundRobin),
            "random" => return Ok(Placement::Random(self.seed)),
            path => Path::new(path),
        };
        let told = |error: MappingError| {
            if error.is_of_the_request() {
                flag(format!("--initial: {error}; or write blocks, roundrobin or random"))
            } else {
                ConfigError::File(format!("--initial: {error}"))
            }
        };
        let file = MappingFile::read(path).map_err(told)?;
        let list = file.below(pes).map_err(told)?;
        if list.is_empty() {
            let name = path.display();
            return Err(ConfigError::File(format!(
                "--initial: the mapping `{name}` lists no PE; give one per line, in index order"
            )));
        }
        Ok(Placement::Listed(list.into()))
    }
}

/// Every pair of threads has mailboxes of its own, so there must not be too many; simulated PEs have none.
const MOST_THREADS: usize = 512;
/// More simulated PEs than this are, too.
const MOST_PES: usize = 1 << 20;

/// Why a configuration cannot be followed: a sentence with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The remedy is another flag or value.
    #[error("{0}")]
    Flag(String),
    /// The remedy is in a file that a flag names.
    #[error("{0}")]
    File(String),
}

fn flag(sentence: String) -> ConfigError {
    ConfigError::Flag(sentence)
}

/// What the flags mean.
pub(crate) struct Settings {
    pub(crate) pes: usize,
    transport: Transport,
    migration: Migration,
    pub(crate) initial: Placement,
    pub(crate) schedule: Schedule,
    pub(crate) topology: Arc<dyn Topology>,
    lb_off: bool,
    pub(crate) background: bool,
    pub(crate) lb_report: Option<ReportForm>,
    lb_comm: Comm,
    pub(crate) dump: Option<PathBuf>,
    pub(crate) dump_start: u64,
    pub(crate) dump_steps: u64,
    pub(crate) bind: bool,
    pub(crate) seed: u64,
    /// The machine in virtual time, if that is what is simulated.
    pub(crate) simulation: Option<Simulation>,
}

impl Settings {
    /// Whether there are load-balancing steps.
    pub(crate) fn balances(&self) -> bool {
        !self.lb_off && (!self.schedule.is_empty() || self.dump.is_some())
    }

    /// What is recorded, as bits of [`after`].
    pub(crate) fn recording(&self) -> u16 {
        let measured = match self.balances() {
            true if self.records_communication() => after::LOAD | after::COMM,
            true => after::LOAD,
            false => 0,
        };
        measured | self.told()
    }

    /// Of these bits, those that a simulated machine needs whatever is measured.
    pub(crate) fn told(&self) -> u16 {
        let Some(simulation) = &self.simulation else { return 0 };
        let timed = if simulation.uncharged == Uncharged::Measured { after::TIMED } else { 0 };
        timed | if simulation.record.is_some() { after::TRACED } else { 0 }
    }

    /// Whether it is recorded who sends whom how much, if anything is.
    pub(crate) fn records_communication(&self) -> bool {
        match self.lb_comm {
            Comm::On => true,
            Comm::Off => false,
            Comm::Auto => self.schedule.needs_communication() || self.dump.is_some(),
        }
    }

    /// Whether the database of this step is to be written.
    pub(crate) fn dumps(&self, step: u64) -> bool {
        self.dump.is_some() && step >= self.dump_start && step - self.dump_start < self.dump_steps
    }

    /// Whether PEs take turns in one thread.
    pub(crate) fn is_simulated(&self) -> bool {
        self.transport == Transport::Simulated
    }

    /// Whether an element that moves between threads is encoded; in the simulated transport
    /// everything is, by the carrier.
    pub(crate) fn encodes_migrations(&self) -> bool {
        self.migration == Migration::Encode && !self.is_simulated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(config: Config, sentence: &str) {
        let error = config.resolve().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(sentence), "{error:?} does not say {sentence:?}");
    }

    #[test]
    fn what_cannot_be_followed_is_refused_with_the_remedy() {
        refused(Config::threads(0), "give a number from 1 to");
        refused(Config { topology: Some("torus:2x2".into()), ..Config::threads(3) }, "make them equal");
        refused(Config { topology: Some("thorus:2x2".into()), ..Config::threads(4) }, "--topology");
        refused(Config { balancer: vec!["GredyLB".into()], ..Config::threads(2) }, "GreedyLB");
        refused(Config { balancer: vec!["GreedyLB".into(); 3], ..Config::threads(2) }, "--lb-schedule");
        refused(Config { initial: "/nowhere/at/all".into(), ..Config::threads(2) }, "cannot read");
    }
}
