//! The state that the PEs of a process share: settings, mailboxes, outcome of the run. Nothing of it belongs to PEs of
//! other processes.

use crate::checkpoint::{CheckpointCost, Next, Saver};
use crate::events::PeEvents;
use crate::events::join::ProcessEvents;
use crate::files::DumpFile;
use crate::inbox::{Bells, Mail};
use crate::lb_history::LbHistory;
use crate::options::Settings;
use crate::order::PeOrder;
use crate::prometheus::Metrics;
use crate::pulse::Pulses;
use crate::quiescence::{Quiescence, Quiet};
use crate::report::{MachineReport, RunError, Traffic, list};
use crate::run_report::RunReport;
use crate::waiting::Waiting;
use equipoise_network::trace::Trace;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

pub(crate) struct Node {
    /// The number of PEs of the run.
    pub(crate) pes: u32,
    /// The first PE of this process; the others follow.
    pub(crate) first: u32,
    pub(crate) settings: Arc<Settings>,
    pub(crate) bells: Bells,
    /// Orders about the run, between threads.
    pub(crate) mail: Mail<(), PeOrder>,
    pub(crate) quiescence: Quiescence,
    /// Saves the checkpoints of this process, if flags ask for them.
    pub(crate) saver: Option<Saver>,
    pub(crate) pulses: Pulses,
    /// What PEs publish of themselves, if a flag asks for it.
    pub(crate) metrics: Option<Metrics>,
    /// The shared part of each array, by id.
    pub(crate) arrays: Mutex<Vec<SharedArray>>,
    /// Values of [`Setup::shared`](crate::Setup::shared), by id.
    pub(crate) shared: Mutex<Vec<Arc<SharedValue>>>,
    stop: AtomicBool,
    /// The time 0 of what PEs record in real time, if they do.
    pub(crate) start: Option<quanta::Instant>,
    pub(crate) outcome: Mutex<Outcome>,
}

/// The shared part of an array, and what the error about different setups says.
#[derive(Clone)]
pub(crate) struct SharedArray {
    /// The first PE that made the array.
    pub(crate) made_by: u32,
    /// Its name and shape.
    pub(crate) name: String,
    /// What the name does not say of the PEs on which its elements begin, as in `, bound to array 1`; often empty.
    pub(crate) begin: String,
    pub(crate) shared: Arc<dyn Any + Send + Sync>,
}

/// A shared value, created by the first PE that reads it.
pub(crate) type SharedValue = OnceLock<Arc<dyn Any + Send + Sync>>;

/// How a run ended, and its results.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The result; in a job of several processes its encoding, as a `Vec<u8>`.
    pub(crate) result: Option<Box<dyn Any + Send>>,
    pub(crate) failure: Option<Failure>,
    /// The PE that ended the run by an exit or a failure.
    pub(crate) ended_by: Option<u32>,
    pub(crate) machine: Option<MachineReport>,
    /// What the PEs of this process recorded in real time.
    pub(crate) events: Vec<PeEvents>,
    /// What the PEs of other processes recorded, on process 0.
    pub(crate) gathered_events: Vec<ProcessEvents>,
    /// The time of the run, without that of making its trace.
    pub(crate) seconds: f64,
    /// The trace of the run, if it is recorded and not only written to a file.
    pub(crate) trace: Option<Trace>,
    /// Why the trace of `--record` could not be written.
    pub(crate) trace_error: Option<String>,
    pub(crate) lb_steps: LbHistory,
    pub(crate) dump: DumpFile,
    pub(crate) run_report: RunReport,
    /// The number of checkpoints that were written, and why the last one was not.
    pub(crate) checkpoints: u64,
    pub(crate) checkpoint_error: Option<String>,
    /// What checkpoints have cost, on process 0.
    pub(crate) checkpoint_cost: Option<CheckpointCost>,
    /// What the PEs wait for at the end of a run that came to rest, or whose time was over. After an exit: the messages
    /// for elements that do not exist.
    pub(crate) waiting: Waiting,
    /// Warnings for the report of a successful run.
    pub(crate) warnings: Vec<String>,
    /// The number of insertions in flight at the end.
    pub(crate) inserts_in_flight: i64,
    pub(crate) traffic: Traffic,
    pub(crate) executions: u64,
    pub(crate) remote_messages: u64,
    pub(crate) migrations: u64,
}

/// Why a run failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Failure {
    /// An entry method, `main` or the setup panicked.
    Panic { place: String, message: String },
    /// No message is in flight, and the program has not exited.
    Quiet,
    /// The time of `--time-limit` was over.
    TimeLimit,
    /// A signal asked for the end.
    Interrupted { signal: i32 },
    /// The program broke a rule, or a value could not be encoded.
    Program(String),
    /// A signal asked for the end, and the run has saved itself as the checkpoint of this number.
    Saved { number: u64 },
}

impl Node {
    /// The state of a process of the run.
    pub(crate) fn new(settings: Arc<Settings>, process: u32) -> Self {
        let (first, mailboxes) = (process * settings.local_pes(), settings.mailboxes());
        Node {
            pes: settings.pes as u32,
            first,
            bells: Bells::new(mailboxes),
            mail: Mail::new(0, mailboxes),
            quiescence: Quiescence::new(if mailboxes == 0 { 0 } else { settings.local_pes() }),
            saver: settings.checkpoint.clone().map(|plan| Saver::new(plan, process)),
            pulses: Pulses::new(&settings, first),
            metrics: Metrics::of(&settings, process, first),
            arrays: Mutex::default(),
            shared: Mutex::default(),
            stop: AtomicBool::new(false),
            // Reading this clock for the first time takes a while.
            start: settings.record_bytes_per_pe().map(|_| quanta::Instant::now()),
            outcome: Mutex::default(),
            settings,
        }
    }

    /// The PEs of this process.
    pub(crate) fn local_pes(&self) -> Range<u32> {
        self.first..self.first + self.settings.local_pes()
    }

    /// Whether the run is over.
    #[inline(always)]
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Ends the run on every PE.
    pub(crate) fn halt(&self) {
        self.stop.store(true, Relaxed);
        self.bells.ring_all();
    }

    /// Ends the run with a result, on PE `pe`; the first one counts.
    pub(crate) fn exit(&self, pe: u32, result: Box<dyn Any + Send>) {
        if self.may_end(pe, false) {
            self.end(Some(pe), |outcome| outcome.result = Some(result));
        }
    }

    /// Ends the run as another process has decided, in place of how it may have ended here.
    pub(crate) fn end_as(&self, ending: Result<Vec<u8>, Failure>) {
        {
            let mut outcome = self.outcome.lock();
            if ending.is_ok() {
                // What PEs ran when the time was over here.
                outcome.waiting = Waiting::default();
            }
            (outcome.result, outcome.failure) = match ending {
                Ok(result) => (Some(Box::new(result) as Box<dyn Any + Send>), None),
                Err(failure) => (None, Some(failure)),
            };
        }
        self.halt();
    }

    /// Ends the run as failed on PE `pe`. Only the first failure counts, and only before an exit.
    pub(crate) fn fail_on(&self, pe: u32, failure: Failure) {
        if self.may_end(pe, true) {
            self.end(Some(pe), |outcome| outcome.failure = Some(failure));
        }
    }

    /// Fails a run that is over, with or without a result, unless it has failed before.
    pub(crate) fn fail_after_end(&self, failure: Failure) {
        self.outcome.lock().failure.get_or_insert(failure);
    }

    /// Ends the run as failed, for a reason outside the PEs.
    pub(crate) fn fail(&self, failure: Failure) {
        self.fail_with(failure, Vec::new());
    }

    /// Like [`fail`](Self::fail), with what the PEs run.
    pub(crate) fn fail_with(&self, failure: Failure, running: Vec<String>) {
        self.end(None, |outcome| {
            outcome.failure = Some(failure);
            outcome.waiting.runs(running);
        });
    }

    /// What all PEs do now that nothing is in flight in a run of one process. None if the run cannot
    /// continue; it then ends, on PE `pe` if that is known.
    pub(crate) fn quiet(&self, pe: Option<u32>) -> Option<Quiet> {
        match self.continuation(self.quiescence.waiting()) {
            Ok(Some(quiet)) => Some(quiet),
            Ok(None) => Some(Quiet::Send { round: self.quiescence.begin_round() }),
            Err(failure) => {
                match pe {
                    Some(pe) => self.fail_on(pe, failure),
                    None => self.fail(failure),
                }
                None
            }
        }
    }

    /// How the run continues when nothing is in flight and this number of sends waits for that: with a checkpoint, which then
    /// has begun, with the sync point that waited for it, or (`None`) with these sends. In process 0, which has the PE of sync points.
    ///
    /// # Errors
    /// How the run ends: nothing waits, or the run has saved itself because of a signal.
    pub(crate) fn continuation(&self, waiting: u64) -> Result<Option<Quiet>, Failure> {
        if waiting == 0 {
            return Err(Failure::Quiet);
        }
        let Some(saver) = &self.saver else { return Ok(None) };
        match saver.at_quiescence() {
            Next::Save(generation) => Ok(Some(Quiet::Save(generation))),
            Next::Continue if self.quiescence.step_waits() => Ok(Some(Quiet::Step)),
            Next::Continue => Ok(None),
            Next::End(number) => Err(Failure::Saved { number }),
        }
    }

    /// Waits until the checkpoints of this process are written, and notes the result. The run is over.
    pub(crate) fn finish_checkpoints(&self) {
        let Some(saver) = &self.saver else { return };
        let failed = self.outcome.lock().result.is_none();
        let (saved, error) = saver.finish(failed);
        let mut outcome = self.outcome.lock();
        let nothing_saved = !failed && saved == 0 && error.is_none();
        if nothing_saved && saver.is_for_program() && self.settings.restart.is_none() {
            outcome.warnings.push(
                "--checkpoint: nothing was saved, because without --checkpoint-every, --checkpoint-seconds and --checkpoint-on a \
                 run saves itself only where the program sends `at_checkpoint`; add one of these flags"
                    .into(),
            );
        } else if nothing_saved && saver.is_due() {
            outcome.warnings.push(
                "--checkpoint: no checkpoint was saved, although one was due; a run saves itself at sync points, and at \
                 quiescence if a message waits for it: call `at_sync`, `at_checkpoint` or `at_quiescence` more often"
                    .into(),
            );
        }
        if saved == 0 {
            outcome.checkpoint_cost = None;
        }
        (outcome.checkpoints, outcome.checkpoint_error) = (saved, error);
    }

    /// Whether the run may end because PE `pe` exits, or fails if `fails`.
    fn may_end(&self, pe: u32, fails: bool) -> bool {
        self.settings.interleaving.as_ref().is_none_or(|order| order.may_end(pe, fails))
    }

    fn end(&self, pe: Option<u32>, set: impl FnOnce(&mut Outcome)) {
        {
            let mut outcome = self.outcome.lock();
            if outcome.failure.is_none() && outcome.result.is_none() {
                set(&mut outcome);
                outcome.ended_by = pe;
            }
        }
        self.halt();
    }
}

impl Outcome {
    /// Whether the run ended without an exit and without a mistake, so that the report says what PEs wait for.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self.failure, Some(Failure::Quiet | Failure::TimeLimit))
    }

    /// Takes the warnings of a run that exited.
    pub(crate) fn warnings(&mut self, settings: &Settings) -> Vec<String> {
        let unreceived = std::mem::take(&mut self.waiting).into_lines(|pe| settings.pe_name(pe));
        // The elements of insertions in flight would receive their messages.
        if !unreceived.is_empty() && self.inserts_in_flight == 0 {
            self.warnings.push(format!(
                "the run ended while messages wait for elements that do not exist; insert the elements, correct the \
                 indices, or send nothing to elements that have called `destroy`{}",
                list(&unreceived)
            ));
        }
        std::mem::take(&mut self.warnings)
    }

    /// Takes the error of a failed run.
    pub(crate) fn error(&mut self, settings: &Settings) -> Option<RunError> {
        let failure = self.failure.take()?;
        let seed = settings.is_simulated().then_some(settings.seed);
        let mut waiting = || std::mem::take(&mut self.waiting).into_lines(|pe| settings.pe_name(pe));
        Some(match failure {
            Failure::Panic { place, message } => RunError::Panic { place, message, seed },
            Failure::Program(sentence) => RunError::Program { sentence, seed },
            Failure::Quiet => RunError::Quiet { waiting: waiting(), seed },
            Failure::Saved { number } => {
                let dir = settings.checkpoint.as_ref().map(|plan| plan.dir.clone());
                RunError::Saved { dir: dir.unwrap_or_default(), number }
            }
            Failure::Interrupted { signal } => RunError::Interrupted { signal },
            Failure::TimeLimit => {
                let seconds = settings.time_limit.unwrap_or_default().as_secs_f64();
                RunError::TimeLimit { seconds, waiting: waiting(), seed }
            }
        })
    }
}
