//! What all PEs of a process share: the settings, the mailboxes, how the run ended.

use crate::balancer::LbStep;
use crate::options::Settings;
use crate::order::PeOrder;
use crate::quiescence::Quiescence;
use crate::report::MachineReport;
use crate::transport::{Bells, Mail};
use equipoise_strategies::Database;
use equipoise_strategies::trace::Trace;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

pub(crate) struct Node {
    pub(crate) pes: u32,
    pub(crate) settings: Arc<Settings>,
    pub(crate) bells: Bells,
    /// Orders about the run, between threads.
    pub(crate) mail: Mail<(), PeOrder>,
    pub(crate) quiescence: Quiescence,
    /// What the PEs' setups share of each array, by id.
    pub(crate) arrays: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    /// Values of [`Setup::shared`](crate::Setup::shared), by id.
    pub(crate) shared: Mutex<Vec<Arc<SharedValue>>>,
    stop: AtomicBool,
    pub(crate) outcome: Mutex<Outcome>,
}

/// A value that the first PE to need it makes.
pub(crate) type SharedValue = OnceLock<Arc<dyn Any + Send + Sync>>;

/// How a run ended, and what it leaves behind.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) result: Option<Box<dyn Any + Send>>,
    pub(crate) failure: Option<Failure>,
    pub(crate) machine: Option<MachineReport>,
    pub(crate) trace: Option<Trace>,
    pub(crate) lb_steps: Vec<LbStep>,
    pub(crate) databases: Vec<Database>,
    /// What the PEs wait for, where nothing moves any more.
    pub(crate) waiting: Vec<String>,
    pub(crate) executions: u64,
    pub(crate) remote_messages: u64,
    pub(crate) migrations: u64,
}

/// Why a run failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An entry method, `main` or the setup panicked: where, and the panic's own message.
    Panic { place: String, message: String },
    /// Nothing is in flight and nobody exited.
    Quiet,
    /// The program broke a rule, or something could not be encoded or written.
    Program(String),
}

impl Node {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        let pes = settings.pes as u32;
        let boxes = if settings.is_simulated() { 0 } else { pes };
        Node {
            pes,
            bells: Bells::new(boxes),
            mail: Mail::new(0, boxes),
            quiescence: Quiescence::new(boxes),
            arrays: Mutex::default(),
            shared: Mutex::default(),
            stop: AtomicBool::new(false),
            outcome: Mutex::default(),
            settings,
        }
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

    /// Ends the run with a result; the first one counts.
    pub(crate) fn exit(&self, result: Box<dyn Any + Send>) {
        {
            let mut outcome = self.outcome.lock();
            if outcome.result.is_none() {
                outcome.result = Some(result);
            }
        }
        self.halt();
    }

    /// Ends the run as failed; the first failure counts, and none after an exit.
    pub(crate) fn fail(&self, failure: Failure) {
        {
            let mut outcome = self.outcome.lock();
            if outcome.failure.is_none() && outcome.result.is_none() {
                outcome.failure = Some(failure);
            }
        }
        self.halt();
    }
}
