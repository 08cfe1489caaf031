//! Validates a [`Config`] and turns it into [`Settings`].

use super::job::Job;
use super::machine::Simulation;
use super::{Comm, Config, ConfigError, Migration, ReportForm, Transport, content, flag, wrong};
use crate::checkpoint::{Checkpoint, Plan};
use crate::inbox::Mail;
use crate::interleaving::{Interleaving, Replay};
use crate::location::Placement;
use crate::order::PeOrder;
use crate::tree::Tree;
use equipoise_model::assignment::{MappingError, MappingFile};
use equipoise_model::database::Dump;
use equipoise_model::fault::Fault;
use equipoise_model::memory;
use equipoise_model::table::count;
use equipoise_model::{Topology, topology};
use equipoise_network::trace::Trace;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::registry;
use equipoise_strategies::schedule::Schedule;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

impl Config {
    /// Validates the flags, in one process of a job.
    pub(crate) fn resolve(&self, job: &Job) -> Result<Settings, ConfigError> {
        let replay = self.replay()?;
        let (pes, local_pes) = self.pes_and_local_pes(job, replay.as_deref().map(Replay::pes))?;
        let topology = self.topology(pes, local_pes, job, replay.is_some())?;
        if self.machine.network.is_some() && self.transport != Transport::Simulated {
            return Err(flag(
                "--network without --transport simulated: only simulated messages take the time of a network; add \
                 --transport simulated"
                    .into(),
            ));
        }
        let simulation = self.machine.resolve(&topology)?;
        if let Some(path) = &self.machine.record {
            // A path that cannot be written is reported before the run, not after hours.
            Trace::can_write(path).map_err(|error| wrong("--record", &error))?;
        }
        // Of several processes, the first writes the file.
        if let Some(path) = self.lb_dump.as_ref().filter(|_| job.process == 0) {
            Dump::can_write(path).map_err(|error| wrong("--lb-dump", &error))?;
        }
        if self.then.is_some() && self.balancer.is_empty() {
            return Err(flag(
                "--then without --balancer: name the load balancer of the first step with --balancer".into(),
            ));
        }
        if self.lb_sim.is_some() && self.lb_sim_file.is_none() {
            return Err(flag(
                "--lb-sim without --lb-sim-file: name the database to replay with --lb-sim-file".into(),
            ));
        }
        let schedule = if self.lb_off { Schedule::none() } else { self.schedule()? };
        let mut settings = Settings {
            pes,
            local_pes,
            is_distributed: self.is_distributed(),
            hosts: match self.transport {
                Transport::Simulated => vec!["simulated".into(); pes / local_pes],
                _ => job.hosts.clone(),
            },
            transport: self.transport,
            migration: self.migration,
            initial: self.initial(pes)?,
            schedule,
            topology,
            lb_off: self.lb_off,
            pes_available: self.pes_available.clone(),
            background: !self.lb_no_background,
            lb_report: self.lb_report,
            lb_strict: self.lb_strict,
            lb_comm: self.lb_comm,
            dump: self.lb_dump.clone(),
            dump_start: self.lb_dump_start,
            dump_steps: self.lb_dump_steps,
            bind: self.bind,
            seed: self.seed,
            time_limit: time("--time-limit", self.time_limit)?,
            watchdog: time("--watchdog", self.watchdog)?,
            program: self.program,
            simulation,
            checkpoint: None,
            restart: None,
            interleaving: None,
        };
        self.check_available(&settings)?;
        self.checkpoints(&mut settings)?;
        // Last, because it creates a file.
        settings.interleaving = self.interleaving(&settings, replay)?;
        Ok(settings)
    }

    /// The number of PEs, and of those in each process.
    fn pes_and_local_pes(&self, job: &Job, recorded: Option<usize>) -> Result<(usize, usize), ConfigError> {
        let (pes, local_pes) = match (self.transport, self.pes_per_process) {
            (Transport::Mpi, local) => self.pes_of_job(job, local.unwrap_or(1))?,
            (_, local) => {
                let pes = match (self.pes.or(recorded), self.parsed_topology()?) {
                    (Some(pes), _) => pes,
                    (None, Some(topology)) => topology.pes(),
                    (None, None) => std::thread::available_parallelism().map_or(1, usize::from),
                };
                (pes, local.unwrap_or(pes))
            }
        };
        if self.pes_per_process.is_some() {
            self.check_processes(pes, local_pes)?;
        }
        if !(1..=MOST_PES).contains(&pes) && self.pes_per_process.is_some() {
            return Err(flag(format!("--pes is {pes}; give a number from 1 to {MOST_PES}")));
        }
        let most = if self.has_mailboxes() { MOST_THREADS } else { MOST_PES };
        if !(1..=most).contains(&local_pes) || pes > MOST_PES {
            let name = if self.pes_per_process.is_some() { "--pes-per-process" } else { "--pes" };
            let more = if self.transport == Transport::Threads {
                ", or more with --transport simulated"
            } else {
                ""
            };
            return Err(flag(format!("{name} is {local_pes}; give a number from 1 to {most}{more}")));
        }
        let (bytes, what) = (self.bytes(pes, local_pes), format!("--pes: a run on {pes} PEs"));
        memory::check(bytes, &what, "use fewer PEs").map_err(flag)?;
        Ok((pes, local_pes))
    }

    /// The number of PEs of a job of MPI, with `local` PEs in each process.
    fn pes_of_job(&self, job: &Job, local: usize) -> Result<(usize, usize), ConfigError> {
        let processes = job.hosts.len();
        let pes = processes.saturating_mul(local);
        match self.pes.filter(|&given| given != pes) {
            None => Ok((pes, local)),
            Some(given) => Err(flag(format!(
                "--pes is {given}, and the job has {} with {} each; leave out --pes, or start another number of \
                 processes",
                count(processes as u64, "process"),
                count(local as u64, "PE"),
            ))),
        }
    }

    /// Checks `--pes-per-process`.
    fn check_processes(&self, pes: usize, local: usize) -> Result<(), ConfigError> {
        let refused = match self.transport {
            Transport::Mpi => return Ok(()),
            Transport::Threads => {
                "--pes-per-process with --transport threads: all threads are PEs of one process; give \
                                   their number with --pes, or add --transport mpi"
                    .into()
            }
            Transport::Simulated if self.machine.network.is_some() => {
                "--pes-per-process with --network: the PEs of a simulated machine share no memory; leave out \
                 --pes-per-process"
                    .into()
            }
            Transport::Simulated if pes > 0 && (local == 0 || pes % local != 0) => format!(
                "--pes-per-process is {local}, and {} cannot be divided into processes of that size; give a divisor of \
                 the number of PEs",
                count(pes as u64, "PE")
            ),
            Transport::Simulated => return Ok(()),
        };
        Err(flag(refused))
    }

    /// Whether PEs are in processes that exchange batches of encoded orders.
    fn is_distributed(&self) -> bool {
        self.transport == Transport::Mpi || self.pes_per_process.is_some()
    }

    /// Whether the PEs of a process exchange values through mailboxes.
    fn has_mailboxes(&self) -> bool {
        self.transport == Transport::Threads || self.is_distributed()
    }

    /// The bytes of memory that the PEs of this process need at least, in a program with one array.
    fn bytes(&self, pes: usize, local_pes: usize) -> u64 {
        // The mailboxes of the run, and those of the array, which are as large or larger.
        let mailboxes = |threads| 2 * Mail::<(), PeOrder>::bytes(threads as u32);
        let simulated = BYTES_PER_SIMULATED_PE * pes as u64;
        match self.transport {
            Transport::Threads => mailboxes(pes),
            Transport::Mpi => mailboxes(local_pes + 1),
            Transport::Simulated if self.is_distributed() => {
                simulated + (pes / local_pes) as u64 * mailboxes(local_pes + 1)
            }
            Transport::Simulated => simulated,
        }
    }

    fn parsed_topology(&self) -> Result<Option<Arc<dyn Topology>>, ConfigError> {
        let topology = self.topology.as_deref().map(topology::parse).transpose();
        topology.map_err(|error| wrong("--topology", &error))
    }

    /// The machine that load balancers assume.
    fn topology(
        &self,
        pes: usize,
        local_pes: usize,
        job: &Job,
        is_replay: bool,
    ) -> Result<Arc<dyn Topology>, ConfigError> {
        if self.transport == Transport::Mpi {
            return self.topology_of_job(pes, local_pes, job);
        }
        let topology = match self.parsed_topology()? {
            Some(topology) => topology,
            None if self.transport != Transport::Threads || is_replay => topology::flat(pes),
            None => topology::this_machine(pes),
        };
        if topology.pes() != pes {
            return Err(flag(format!(
                "--topology {} has {} and --pes is {pes}; make them equal",
                topology.spec(),
                count(topology.pes() as u64, "PE")
            )));
        }
        Ok(topology)
    }

    /// The machine on which MPI has started the processes.
    fn topology_of_job(
        &self,
        pes: usize,
        local_pes: usize,
        job: &Job,
    ) -> Result<Arc<dyn Topology>, ConfigError> {
        let spec = self.topology.as_deref().unwrap_or("job");
        let topology = topology::job(spec, &job.hosts, local_pes);
        let topology = topology.map_err(|error| wrong("--topology", &error))?;
        if topology.pes() != pes {
            return Err(flag(format!(
                "--topology {} has {} and the job has {pes}; write `job`, or a machine with as many PEs",
                topology.spec(),
                count(topology.pes() as u64, "PE"),
            )));
        }
        Ok(topology)
    }

    fn schedule(&self) -> Result<Schedule, ConfigError> {
        if let Some(path) = &self.lb_schedule {
            let name = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| {
                flag(format!(
                    "--lb-schedule {name}: {error}; name a file with lines `[%]STEP NAME [key=value ..]`"
                ))
            })?;
            let refused = |reason: String| content(format!("--lb-schedule {name}: {reason}"));
            let schedule =
                Schedule::parse_file(&text, &self.own).map_err(|error| refused(error.to_string()))?;
            if schedule.has_no_rules() {
                return Err(refused(
                    "the file has no rule; write lines `[%]STEP NAME [key=value ..]`, or leave out --lb-schedule"
                        .into(),
                ));
            }
            return Ok(schedule);
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
                "more than two load balancers: name one for the first step with --balancer and one for later \
                 steps with --then, or one per step with --lb-schedule"
                    .into(),
            ));
        }
        Ok(Schedule::first_then(first, then))
    }

    /// The strategies that `--balancer` names.
    pub(crate) fn choices(&self) -> Result<Vec<Choice>, ConfigError> {
        self.balancer.iter().map(|spec| self.choice("--balancer", spec)).collect()
    }

    fn choice(&self, name: &str, spec: &str) -> Result<Choice, ConfigError> {
        registry::parse(spec, &self.own).map_err(|error| wrong(&format!("{name} {spec}"), &error))
    }

    fn initial(&self, pes: usize) -> Result<Placement, ConfigError> {
        let path = match self.initial.as_str() {
            "blocks" => return Ok(Placement::Blocks),
            "roundrobin" => return Ok(Placement::RoundRobin),
            "random" => return Ok(Placement::Random(self.seed)),
            path => Path::new(path),
        };
        let with_remedy = |error: MappingError| match wrong("--initial", &error) {
            ConfigError { fault: Fault::Usage, sentence } => {
                flag(sentence + "; or write blocks, roundrobin or random")
            }
            of_file => of_file,
        };
        let file = MappingFile::read(path).map_err(with_remedy)?;
        let list = file.below(pes).map_err(with_remedy)?;
        if list.is_empty() {
            let name = path.display();
            return Err(content(format!(
                "--initial: the mapping `{name}` lists no PE; give one per line, in index order"
            )));
        }
        Ok(Placement::Listed(list.into()))
    }
}

/// Valid times of `--time-limit` and `--watchdog`, in seconds: from a millisecond to about 30 years.
const TIMES: std::ops::RangeInclusive<f64> = 1e-3..=1e9;

/// The time of a flag.
pub(super) fn time(name: &str, seconds: Option<f64>) -> Result<Option<Duration>, ConfigError> {
    match seconds {
        Some(seconds) if !TIMES.contains(&seconds) => {
            Err(flag(format!("{name} {seconds}: give seconds from {} to {}", TIMES.start(), TIMES.end())))
        }
        seconds => Ok(seconds.map(Duration::from_secs_f64)),
    }
}

/// The most PEs as threads. Every pair of threads has its own mailboxes, so their memory is quadratic.
const MOST_THREADS: usize = 512;
/// The most simulated PEs.
const MOST_PES: usize = 1 << 20;
/// Bytes of memory of a simulated PE. (Measured: 10,000, with an element.)
const BYTES_PER_SIMULATED_PE: u64 = 12_000;

/// The validated flags of a run.
pub(crate) struct Settings {
    pub(crate) pes: usize,
    /// The number of PEs in each process.
    local_pes: usize,
    is_distributed: bool,
    /// The name of the computer of each process.
    pub(crate) hosts: Vec<String>,
    transport: Transport,
    pub(super) migration: Migration,
    pub(crate) initial: Placement,
    pub(crate) schedule: Schedule,
    pub(crate) topology: Arc<dyn Topology>,
    lb_off: bool,
    /// The file that lists the available PEs.
    pub(super) pes_available: Option<PathBuf>,
    pub(crate) background: bool,
    pub(crate) lb_report: Option<ReportForm>,
    pub(crate) lb_strict: bool,
    lb_comm: Comm,
    pub(crate) dump: Option<PathBuf>,
    pub(crate) dump_start: u64,
    pub(crate) dump_steps: u64,
    pub(crate) bind: bool,
    pub(crate) seed: u64,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) watchdog: Option<Duration>,
    /// Whether the process may be ended if the run fails.
    pub(crate) program: bool,
    /// The machine that is simulated in virtual time, if there is one.
    pub(crate) simulation: Option<Simulation>,
    /// The checkpoints to save, if there are any.
    pub(crate) checkpoint: Option<Plan>,
    /// The checkpoint with which the run begins, if it is a restart.
    pub(crate) restart: Option<Arc<Checkpoint>>,
    /// The order of deliveries, if it is recorded or repeated.
    pub(crate) interleaving: Option<Interleaving>,
}

impl Settings {
    /// Whether there are load-balancing steps.
    pub(crate) fn balances(&self) -> bool {
        !self.lb_off && (!self.schedule.is_empty() || self.dump.is_some())
    }

    /// Whether elements that call `at_sync` wait for each other: for load balancing, for checkpoints, or because the run that was
    /// saved did so.
    pub(crate) fn has_barriers(&self) -> bool {
        self.balances() || self.checkpoint.is_some() || self.restart.is_some()
    }

    /// Whether communication is recorded if load is recorded.
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

    /// Whether the simulated transport runs: all PEs in one thread.
    pub(crate) fn is_simulated(&self) -> bool {
        self.transport == Transport::Simulated
    }

    /// Whether PEs are in processes that exchange batches of encoded orders.
    pub(crate) fn is_distributed(&self) -> bool {
        self.is_distributed
    }

    /// The number of processes.
    pub(crate) fn processes(&self) -> u32 {
        (self.pes / self.local_pes) as u32
    }

    /// A PE in messages to users, as in `PE 3`; if there are several computers `PE 3 (node7)`.
    pub(crate) fn pe_name(&self, pe: u32) -> String {
        match self.hosts.get((pe / self.local_pes()) as usize) {
            Some(host) if self.hosts.iter().any(|other| other != host) => format!("PE {pe} ({host})"),
            _ => format!("PE {pe}"),
        }
    }

    /// The number of PEs in each process.
    pub(crate) fn local_pes(&self) -> u32 {
        self.local_pes as u32
    }

    /// The spanning tree of the PEs. Simulated PEs in one process share no memory, so each counts as a process.
    pub(crate) fn tree(&self) -> Tree {
        if self.is_simulated() && !self.is_distributed {
            Tree::new(self.pes as u32, 1)
        } else {
            Tree::new(self.processes(), self.local_pes())
        }
    }

    /// Whether PEs share tables of places. Otherwise they have directories. Entries of a table are read in an order that
    /// cannot be repeated.
    pub(crate) fn has_places(&self) -> bool {
        self.transport == Transport::Threads && self.interleaving.is_none()
    }

    /// The number of PEs in the memory of this process, which each have a directory.
    pub(crate) fn directories(&self) -> u64 {
        u64::from(if self.is_simulated() { self.pes as u32 } else { self.local_pes() })
    }

    /// The number of threads of a process that have mailboxes: its PEs, and in a job of several processes the connection
    /// to the other processes, which is the last.
    pub(crate) fn mailboxes(&self) -> u32 {
        match self.transport {
            _ if self.is_distributed => self.local_pes() + 1,
            Transport::Simulated => 0,
            _ => self.local_pes(),
        }
    }

    /// Whether an element that migrates between PEs of a process is encoded. Between processes everything is encoded.
    pub(crate) fn encodes_migrations(&self) -> bool {
        self.migration == Migration::Encode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(config: Config, sentence: &str) {
        let error = config.resolve(&Job::default()).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(sentence), "{error:?} does not say {sentence:?}");
    }

    #[test]
    fn the_memory_of_pes_counts_the_mailboxes_of_every_pair() {
        // A mailbox begins a pair of cache lines.
        assert_eq!(Config::threads(512).bytes(512, 512), 2 * 512 * 512 * 128);
        assert_eq!(Config::simulated(1 << 20, 0).bytes(1 << 20, 1 << 20), 12_000 << 20);
    }

    #[test]
    fn pes_are_named_with_their_computers_if_there_are_several() {
        let mut settings = Config::threads(2).resolve(&Job::default()).expect("valid flags");
        assert_eq!(settings.pe_name(1), "PE 1");
        (settings.hosts, settings.local_pes) = (vec!["a".into(), "b".into()], 1);
        assert_eq!(settings.pe_name(1), "PE 1 (b)");
    }

    #[test]
    fn refuses_invalid_settings_with_the_remedy() {
        refused(Config::threads(0), "give a number from 1 to");
        refused(Config { topology: Some("torus:2x2".into()), ..Config::threads(3) }, "make them equal");
        refused(Config { topology: Some("thorus:2x2".into()), ..Config::threads(4) }, "--topology");
        refused(Config { balancer: vec!["GredyLB".into()], ..Config::threads(2) }, "GreedyLB");
        refused(Config { balancer: vec!["GreedyLB".into(); 3], ..Config::threads(2) }, "--lb-schedule");
        refused(Config { initial: "/nowhere/at/all".into(), ..Config::threads(2) }, "cannot read");
    }
}
