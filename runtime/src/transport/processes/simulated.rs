//! Processes in one thread, in an order sampled with a seed: `--transport simulated --pes-per-process N`.
//!
//! Every process has its own [`Node`] and connection, exactly as with MPI; only the carrier differs. Steps of PEs and
//! of connections, and arrivals of messages, happen in any order, except that messages between two processes keep theirs.
//! So a program shows within a few seeds whether it relies on memory that its processes do not share.

use super::engine::{Engine, Phase};
use super::{Single, Wire, description, give};
use crate::batches;
use crate::desk::Desk;
use crate::location::splitmix;
use crate::node::{Node, Outcome};
use crate::options::Settings;
use crate::pe::PeCx;
use crate::scheduler::Built;
use crate::transport::watcher::Watcher;
use crate::transport::worker::Limits;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

/// The messages under way between processes, and the random number generator.
pub(super) struct Network {
    processes: u32,
    rng: Cell<u64>,
    /// By sender and receiver.
    queues: RefCell<Vec<VecDeque<Vec<u8>>>>,
    /// A fault for tests: the number of the batch that is lost.
    loses: Option<u64>,
    batches: Cell<u64>,
}

impl Network {
    fn new(processes: u32, seed: u64, loses: Option<u64>) -> Self {
        let pairs = processes as usize * processes as usize;
        Network {
            processes,
            rng: Cell::new(splitmix(seed)),
            queues: RefCell::new((0..pairs).map(|_| VecDeque::new()).collect()),
            loses,
            batches: Cell::new(0),
        }
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
}

impl Process {
    fn new(settings: &Arc<Settings>, process: u32, setup: &(dyn Fn(PeCx) -> Built + Sync)) -> Self {
        let node = Arc::new(Node::new(Arc::clone(settings), process));
        let desk = Arc::new(Desk::new(settings.processes()));
        let watcher = Watcher::start(&node);
        let pes: Vec<Single> = node
            .local_pes()
            .map(|pe| Single::new(&node, &desk, pe, Limits { flush: 1, rest: 2 }, setup))
            .collect();
        let mut engine = Engine::new(Arc::clone(&node), desk, process);
        engine.is_set_up(description(&node));
        Process { node, engine, pes, _watcher: watcher }
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
                let node = &self.node;
                self.engine.turn(wire, &mut |to, order| give(node, to, order));
            }
        }
    }
}

/// Runs all processes until the run is over; returns the outcome of process 0.
pub(crate) fn run(settings: &Arc<Settings>, setup: &(dyn Fn(PeCx) -> Built + Sync)) -> Outcome {
    run_on(settings, setup, &Network::new(settings.processes(), settings.seed, None))
}

fn run_on(settings: &Arc<Settings>, setup: &(dyn Fn(PeCx) -> Built + Sync), network: &Network) -> Outcome {
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
    let outcome = std::mem::take(&mut *processes[0].node.outcome.lock());
    // Processes of a failed run do not wait for messages that may be lost.
    let has_all = network.is_empty() || outcome.failure.is_some();
    assert!(has_all, "processes receive all messages before they end");
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::{Post, orders};
    use crate::node::Failure;
    use crate::options::{Config, Job};
    use crate::order::PeOrder;

    /// A process whose PE passes tokens on to others until they have no hops left.
    struct Toy {
        node: Arc<Node>,
        engine: Engine,
        post: Post,
        /// The hops of the tokens that are here.
        tokens: Vec<u32>,
        rests: bool,
    }

    impl Toy {
        fn new(settings: &Arc<Settings>, process: u32) -> Self {
            let node = Arc::new(Node::new(Arc::clone(settings), process));
            let desk = Arc::new(Desk::new(settings.processes()));
            let mut engine = Engine::new(Arc::clone(&node), Arc::clone(&desk), process);
            engine.is_set_up(vec!["a toy".into()]);
            let post = Post::new(desk, vec![false; settings.pes].into(), 1, false);
            Toy { node, engine, post, tokens: Vec::new(), rests: false }
        }

        /// Passes a token on, or rests if none is here. A hasty PE sometimes rests long before it sends its batch.
        fn step(&mut self, network: &Network, alive: &Cell<u32>, is_hasty: bool) {
            if self.rests && !self.tokens.is_empty() {
                self.node.quiescence.resume(0);
                self.rests = false;
            }
            let Some(hops) = self.tokens.pop() else {
                if !is_hasty || network.sample(500) == 0 {
                    self.post.dispatch();
                }
                if !std::mem::replace(&mut self.rests, true) {
                    self.node.quiescence.rest(0);
                }
                return;
            };
            if hops == 0 {
                return alive.set(alive.get() - 1);
            }
            let others = network.processes as usize - 1;
            let to = (self.node.first + 1 + network.sample(others) as u32) % network.processes;
            self.post.add(to, None, &(hops - 1)).expect("a number can be encoded");
            if is_hasty && self.tokens.is_empty() && network.sample(4) == 0 {
                self.rests = true;
                return self.node.quiescence.rest(0);
            }
            self.post.dispatch();
        }
    }

    /// How a run of toys ends.
    #[derive(Debug, PartialEq)]
    enum End {
        /// Quiescence was found while this number of tokens had hops left.
        Quiet(u32),
        Failed(String),
    }

    /// Sends tokens between processes until one waits for quiescence and it is found.
    fn run(seed: u64, loses: Option<u64>, is_hasty: bool) -> End {
        let processes = 2 + seed as usize % 7;
        let config = Config { pes_per_process: Some(1), ..Config::simulated(processes, seed) };
        let settings = Arc::new(config.resolve(&Job::default()).expect("the flags are valid"));
        let network = Network::new(settings.processes(), seed, loses);
        let mut toys: Vec<Toy> = (0..settings.processes()).map(|at| Toy::new(&settings, at)).collect();
        let alive = Cell::new(4);
        toys[seed as usize % processes].tokens = (0..4).map(|_| 1 + network.sample(30) as u32).collect();
        toys[0].node.quiescence.wait();
        loop {
            let at = network.sample(processes);
            let Toy { node, engine, post, tokens, .. } = &mut toys[at];
            if let Some(Failure::Program(sentence)) = &node.outcome.lock().failure {
                return End::Failed(sentence.clone());
            }
            let mut quiet = false;
            let mut give = |_: u32, order: PeOrder| match order {
                PeOrder::Batch { from_process, bytes } => {
                    let hops =
                        orders(&bytes).map(|(_, token)| crate::codec::decode::<u32>(token).expect("a token"));
                    tokens.extend(hops);
                    post.desk().executed(from_process, bytes);
                }
                _ => quiet = true,
            };
            engine.turn(&mut Port { network: &network, me: at as u32 }, &mut give);
            if quiet {
                return End::Quiet(alive.get());
            }
            if engine.phase() == Phase::Running {
                toys[at].step(&network, &alive, is_hasty);
            }
        }
    }

    #[test]
    fn quiescence_is_found_when_no_message_is_in_flight() {
        for seed in 0..300 {
            assert_eq!(run(seed, None, false), End::Quiet(0), "seed {seed}");
        }
    }

    #[test]
    fn a_lost_batch_is_noticed() {
        for seed in 0..100 {
            let End::Failed(sentence) = run(seed, Some(seed % 4), false) else { panic!("seed {seed}") };
            assert!(sentence.starts_with("1 batch of messages between processes was lost"), "{sentence}");
        }
    }

    #[test]
    fn a_pe_that_rests_with_a_message_in_hand_shows_as_false_quiescence() {
        assert!((0..100).any(|seed| matches!(run(seed, None, true), End::Quiet(1..))));
    }
}
