//! Processes in one thread, in an order sampled with a seed: `--transport simulated --pes-per-process N`.
//!
//! Every process has its own [`Node`] and connection, exactly as with MPI; only the carrier differs. Steps of PEs and
//! of connections, and arrivals of messages, happen in any order, except that messages between two processes keep theirs.
//! So a program shows within a few seeds whether it relies on memory that its processes do not share.

use super::engine::{Engine, Phase};
use super::{Single, Wire, description, give};
use crate::batches;
use crate::desk::Desk;
use crate::node::{Node, Outcome};
use crate::options::Settings;
use crate::pe::PeCx;
use crate::process::Stop;
use crate::recorded;
use crate::scheduler::Built;
use crate::transport::idle::Limits;
use crate::transport::stop_on_signals;
use crate::transport::watcher::Watcher;
use equipoise_model::random::splitmix;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// How many times longer messages of slow pairs of processes are under way.
const SLOW: usize = 16;

/// The messages under way between processes, and the random number generator.
pub(super) struct Network {
    processes: u32,
    rng: Cell<u64>,
    /// By sender and receiver.
    queues: RefCell<Vec<VecDeque<Vec<u8>>>>,
    /// By sender and receiver: whether messages often arrive long after later ones of others, so that waves overtake them.
    is_slow: Vec<bool>,
    /// A fault for tests: the number of the batch that is lost.
    loses: Option<u64>,
    batches: Cell<u64>,
}

impl Network {
    fn new(processes: u32, seed: u64, loses: Option<u64>) -> Self {
        let pairs = processes as usize * processes as usize;
        let mut network = Network {
            processes,
            rng: Cell::new(splitmix(seed)),
            queues: RefCell::new((0..pairs).map(|_| VecDeque::new()).collect()),
            is_slow: Vec::new(),
            loses,
            batches: Cell::new(0),
        };
        network.is_slow = (0..pairs).map(|_| network.sample(4) == 0).collect();
        network
    }

    /// Samples a number below `below`.
    fn sample(&self, below: usize) -> usize {
        let rng = splitmix(self.rng.get());
        self.rng.set(rng);
        ((u128::from(rng) * below as u128) >> 64) as usize
    }

    fn is_empty(&self) -> bool {
        self.queues.borrow().iter().all(VecDeque::is_empty)
    }
}

/// The network from the view of one process.
struct Port<'a> {
    network: &'a Network,
    me: u32,
}

impl Wire for Port<'_> {
    fn send(&mut self, to: u32, message: Vec<u8>) -> Vec<u8> {
        let is_batch = matches!(batches::kind(&message), Some(batches::Kind::Orders(_)));
        let number = self.network.batches.get();
        self.network.batches.set(number + u64::from(is_batch));
        if !is_batch || self.network.loses != Some(number) {
            let at = (self.me * self.network.processes + to) as usize;
            self.network.queues.borrow_mut()[at].push_back(message);
        }
        Vec::new()
    }

    fn receive(&mut self, _: &Desk) -> Option<(u32, Vec<u8>)> {
        // A message that is there may be noticed later.
        let from = self.network.sample(self.network.processes as usize * 2) as u32;
        if from >= self.network.processes {
            return None;
        }
        let at = (from * self.network.processes + self.me) as usize;
        if self.network.is_slow[at] && self.network.sample(SLOW) > 0 {
            return None;
        }
        self.network.queues.borrow_mut()[at].pop_front().map(|message| (from, message))
    }

    fn abort(&mut self, _: i32) -> ! {
        unreachable!("simulated processes are never late")
    }
}

/// A process: its PEs and its connection.
struct Process {
    node: Arc<Node>,
    engine: Engine,
    pes: Vec<Single>,
    _watcher: Option<Watcher>,
    _stop: Option<Arc<Stop>>,
}

impl Process {
    fn new(settings: &Arc<Settings>, process: u32, setup: &(dyn Fn(PeCx) -> Built + Sync)) -> Self {
        let node = Arc::new(Node::new(Arc::clone(settings), process));
        let desk = Arc::new(Desk::new(settings.processes()));
        let (watcher, stop) = (Watcher::start(&node), stop_on_signals(&node));
        let mut pes: Vec<Single> = node
            .local_pes()
            .map(|pe| Single::new(&node, &desk, pe, Limits { flush: 1, rest: 2 }, setup))
            .collect();
        pes.iter_mut().for_each(Single::agree);
        let mut engine = Engine::new(Arc::clone(&node), desk, process);
        engine.is_set_up(description(&node));
        Process { node, engine, pes, _watcher: watcher, _stop: stop }
    }

    /// A turn of a PE, or of the connection if `at` is no PE.
    fn turn(&mut self, at: usize, wire: &mut dyn Wire) {
        match self.pes.get_mut(at) {
            Some(single) => {
                self.node.pulses.running.set(self.node.first as usize + at);
                single.turn(&self.node, self.engine.phase());
                if self.pes.iter().all(|single| single.has_finished) {
                    self.engine.pes_have_stopped();
                }
            }
            None => {
                let Process { node, engine, pes, .. } = self;
                node.pulses.running.set(node.first as usize);
                engine.turn(wire, &mut |to, order| match &mut pes[..] {
                    [single] => single.receive(node, order),
                    _ => give(node, to, order),
                });
            }
        }
    }
}

/// Runs all processes until the run is over; returns the outcome of process 0.
pub(crate) fn run(settings: &Arc<Settings>, setup: &(dyn Fn(PeCx) -> Built + Sync)) -> Outcome {
    run_on(settings, setup, &Network::new(settings.processes(), settings.seed, None))
}

fn run_on(settings: &Arc<Settings>, setup: &(dyn Fn(PeCx) -> Built + Sync), network: &Network) -> Outcome {
    let start = Instant::now();
    let mut processes: Vec<Process> =
        (0..settings.processes()).map(|process| Process::new(settings, process, setup)).collect();
    let mut running = processes.len();
    while running > 0 {
        let at = network.sample(processes.len());
        let process = &mut processes[at];
        if process.engine.phase() == Phase::Over {
            continue;
        }
        let turn = network.sample(process.pes.len() + 1);
        process.turn(turn, &mut Port { network, me: at as u32 });
        if process.engine.phase() == Phase::Over {
            running -= 1;
        }
    }
    // Process 0 last, because it waits for the files of the others.
    processes.iter().rev().for_each(|process| process.node.finish_checkpoints());
    let mut outcome = std::mem::take(&mut *processes[0].node.outcome.lock());
    outcome.seconds = start.elapsed().as_secs_f64();
    recorded::complete(&processes[0].node, &mut outcome);
    // Processes of a failed run do not wait for messages that may be lost.
    let has_all = network.is_empty() || outcome.failure.is_some();
    assert!(has_all, "processes receive all messages before they end");
    outcome
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
