//! Validates a [`Config`] and turns it into [`Settings`].

use super::job::Job;
use super::machine::{Simulation, StrategySeconds};
use super::{
    Comm, Config, ConfigError, Idle, LbGate, LbLoad, LbWhen, Migration, Records, ReportForm, Transport,
    content, flag, wrong,
};
use crate::checkpoint::{Checkpoint, Plan};
use crate::interleaving::{Interleaving, Replay};
use crate::location::Placement;
use crate::tree::Tree;
use equipoise_model::Topology;
use equipoise_model::assignment::{MappingError, MappingFile};
use equipoise_model::constraints::{Constraints, MaxObjects, PerPe};
use equipoise_model::costs::Costs;
use equipoise_model::database::{Database, Dump, PeRecord};
use equipoise_model::fault::Fault;
use equipoise_report::ReportFile;
use equipoise_strategies::constrained::keep;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::predict::Predictor;
use equipoise_strategies::registry;
use equipoise_strategies::schedule::Schedule;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

impl Config {
    /// Validates the flags, in one process of a job.
    pub(crate) fn resolve(&self, job: &Job) -> Result<Settings, ConfigError> {
        // First, because a signal that arrives before this is lost. MPI, which is initialised, may have handlers of its own.
        let asked = self.checkpoints.asked()?;
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
        if simulation.is_some() && self.lb_load == LbLoad::Cpu {
            return Err(flag(
                "--lb-load cpu on a simulated machine, whose loads are virtual times; leave it out".into(),
            ));
        }
        self.can_write(job)?;
        time("--metrics-every", self.records.metrics_every)?;
        self.check_records(job, pes, pes / local_pes)?;
        self.check_dependent_flags()?;
        self.check_flags_of_balancers()?;
        let schedule = if self.lb_off { Schedule::none() } else { self.schedule()? };
        let constraints = self.checked_constraints(pes, &*topology)?;
        // Only where there are constraints, because under them a strategy without a centre has one.
        let under_constraints = |choice: Choice| if constraints.is_empty() { choice } else { keep(&choice) };
        let schedule = schedule.map(|choice| match self.max_moves {
            Some(most) => under_constraints(most.limit(choice)),
            None => under_constraints(choice.clone()),
        });
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
            constraints,
            lb_load: self.lb_load,
            lb_predict: self.lb_predict,
            lb_when: self.lb_when,
            lb_gate: self.lb_gate,
            costs: self.costs()?,
            report: self.report.clone(),
            records: self.records.clone(),
            dump: self.lb_dump.clone(),
            dump_start: self.lb_dump_start,
            dump_steps: self.lb_dump_steps,
            idle: self.idle,
            bind: self.bind.then(|| job.cores_of_pes(local_pes).to_vec()),
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
        self.checkpoints(&mut settings, asked)?;
        // Last, because it creates a file.
        settings.interleaving = self.interleaving(&settings, replay)?;
        Ok(settings)
    }

    /// The costs of `--cost-model`.
    fn costs(&self) -> Result<Option<Costs>, ConfigError> {
        let read = self.cost_model.as_deref().map(Costs::read).transpose();
        read.map_err(|error| wrong("--cost-model", &error))
    }

    /// The constraints of load-balancing steps.
    pub(crate) fn constraints(&self) -> Result<Constraints, ConfigError> {
        let most = self.max_objects.as_deref().map(MaxObjects::read).transpose();
        let memory =
            self.memory.as_deref().map(|text| PerPe::read("the bytes that PEs have for elements", text));
        Ok(Constraints {
            max_objects: most.map_err(|error| wrong("--max-objects", &error))?,
            memory: memory.transpose().map_err(|error| wrong("--memory", &error))?,
            ..Constraints::default()
        })
    }

    /// Checks that no flag is given without the other one that it needs.
    fn check_dependent_flags(&self) -> Result<(), ConfigError> {
        if self.machine.strategy_seconds == Some(StrategySeconds::CostModel) && self.cost_model.is_none() {
            return Err(flag(
                "--strategy-seconds cost-model without --cost-model: name the file with the times of strategies".into(),
            ));
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
        Ok(())
    }

    /// Checks that a load balancer is named where a flag does nothing without one. `--lb-off` may switch the load balancer off.
    fn check_flags_of_balancers(&self) -> Result<(), ConfigError> {
        if !self.balancer.is_empty() || self.lb_schedule.is_some() {
            return Ok(());
        }
        let given = [
            ("--max-objects", self.max_objects.is_some()),
            ("--memory", self.memory.is_some()),
            ("--max-moves", self.max_moves.is_some()),
            ("--lb-predict", self.lb_predict.is_some()),
            ("--lb-gate auto", self.lb_gate == LbGate::Auto),
            ("--pes-available", self.pes_available.is_some()),
        ];
        // Databases and reports are made at load-balancing steps, with or without a load balancer. `--lb-sim` reports a recorded step.
        let has_steps = self.lb_dump.is_some() || self.report.is_some() || self.lb_sim.is_some();
        let of_steps = [
            ("--lb-when auto", !has_steps && self.lb_when == LbWhen::Auto),
            ("--lb-report", !has_steps && self.lb_report.is_some()),
        ];
        let first = |given: &[(&'static str, bool)]| given.iter().find(|it| it.1).map(|it| it.0);
        let (name, why) = match (first(&given), first(&of_steps)) {
            (Some(name), _) => (name, "only a load balancer moves elements"),
            (None, Some(name)) => (name, "there are no load-balancing steps"),
            (None, None) => return Ok(()),
        };
        Err(flag(format!("{name} without --balancer: {why}; name a load balancer with --balancer")))
    }

    /// The constraints for a machine.
    fn checked_constraints(&self, pes: usize, topology: &dyn Topology) -> Result<Constraints, ConfigError> {
        let constraints = self.constraints()?;
        let without_objects = Database { pes: vec![PeRecord::default(); pes], ..Database::default() };
        constraints.rules_of_flags(&without_objects, topology).map_err(|error| flag(error.to_string()))?;
        Ok(constraints)
    }

    /// Checks that files can be written: that is reported before the run, not after hours.
    fn can_write(&self, job: &Job) -> Result<(), ConfigError> {
        // Of several processes, the first writes the file.
        if let Some(file) = self.report.as_ref().filter(|_| job.process == 0) {
            file.can_write().map_err(|error| wrong("--report", &error))?;
        }
        if let Some(path) = self.lb_dump.as_ref().filter(|_| job.process == 0) {
            Dump::can_write(path).map_err(|error| wrong("--lb-dump", &error))?;
        }
        Ok(())
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

/// The validated flags of a run.
pub(crate) struct Settings {
    pub(crate) pes: usize,
    /// The number of PEs in each process.
    local_pes: usize,
    /// Whether PEs are in processes that exchange batches of encoded orders.
    pub(crate) is_distributed: bool,
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
    pub(crate) constraints: Constraints,
    pub(crate) lb_load: LbLoad,
    pub(crate) lb_predict: Option<Predictor>,
    pub(crate) lb_when: LbWhen,
    lb_gate: LbGate,
    /// What messages and migrations cost: as `--cost-model` says, else as `run.rs` finds out.
    pub(crate) costs: Option<Costs>,
    pub(crate) dump: Option<PathBuf>,
    /// What is recorded while the run proceeds.
    pub(crate) records: Records,
    /// The file of `--report`.
    pub(crate) report: Option<ReportFile>,
    pub(crate) dump_start: u64,
    pub(crate) dump_steps: u64,
    /// How threads wait that have nothing to do.
    pub(crate) idle: Idle,
    /// The cores of the PEs of this process, if `--bind` asks for cores.
    pub(crate) bind: Option<Vec<usize>>,
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
        !self.lb_off && (!self.schedule.is_empty() || self.dump.is_some() || self.report.is_some())
    }

    /// Whether PEs say their loads at sync points, because it depends on them which sync points become steps.
    pub(crate) fn weighs(&self) -> bool {
        self.balances() && self.lb_when == LbWhen::Auto
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
            // Without the communication the time of a placement cannot be predicted.
            Comm::Auto => {
                self.schedule.needs_communication()
                    || self.dump.is_some()
                    || self.report.is_some()
                    || self.gates()
            }
        }
    }

    /// Whether an assignment must pay to be applied.
    pub(crate) fn gates(&self) -> bool {
        self.lb_gate == LbGate::Auto
    }

    /// Whether load-balancing steps need the costs of messages and migrations.
    pub(crate) fn needs_costs(&self) -> bool {
        self.balances() && (self.gates() || self.records_communication())
    }

    /// Whether the database of this step is to be written.
    pub(crate) fn dumps(&self, step: u64) -> bool {
        self.dump.is_some() && step >= self.dump_start && step - self.dump_start < self.dump_steps
    }

    /// Whether a trace of the run is recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        self.records.record.is_some() || self.records.perfetto.is_some()
    }

    /// Whether a file is written at the end of the run, which is lost if the process ends earlier.
    pub(crate) fn writes_at_end(&self) -> bool {
        let is_written_meanwhile = self.simulation.is_some() && self.records.perfetto.is_none();
        self.report.is_some() || self.is_recorded() && !is_written_meanwhile
    }

    /// The memory for the events of each PE, if what PEs do in real time is recorded.
    pub(crate) fn record_bytes_per_pe(&self) -> Option<u64> {
        (self.is_recorded() && self.simulation.is_none()).then(|| self.records.limit() / self.pes as u64)
    }

    /// Whether the simulated transport runs: all PEs in one thread.
    pub(crate) fn is_simulated(&self) -> bool {
        self.transport == Transport::Simulated
    }

    /// Whether the order of messages is sampled with the seed.
    pub(crate) fn samples_order(&self) -> bool {
        self.is_simulated() && self.simulation.is_none()
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
