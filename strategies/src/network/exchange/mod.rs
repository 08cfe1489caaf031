//! Halo exchanges: iterations of tasks that each wait only for their own messages.
//!
//! In an iteration a task posts its receives, computes, posts its sends, and waits until all its own sends
//! and receives are done; then its next iteration begins. A message moves once both its ends have posted
//! it, as a large MPI message does (rendezvous), and a send is done when the message has arrived. There is
//! no barrier, so neighbors drift apart by up to an iteration. This is what MPI programs of the kind
//! `Irecv, compute, Isend, Waitall` do, and what the SimGrid programs of the reference results did.
//!
//! Tasks on one PE compute one after the other, in the order in which their iterations begin; what they
//! send each other takes no time.

use std::collections::{BTreeMap, VecDeque};

mod steady;

use steady::{Period, Steady};

use super::{Arrival, Events, Message, Network};
use crate::Database;
use crate::database::End;
use crate::graph::Graph;

/// Which tasks send what to which in an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// How many tasks there are.
    pub tasks: usize,
    /// What they send, by sender, then by receiver; at most one message for each two tasks and way.
    pub messages: Vec<Halo>,
}

/// A message of every iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halo {
    /// The task that sends it.
    pub from: u32,
    /// The task that receives it, which is another.
    pub to: u32,
    /// Its size.
    pub bytes: u64,
}

impl Traffic {
    /// All that goes each way between two tasks as one message, as a directed graph (`.csv`) says.
    ///
    /// Ends that are PEs do not count, nor what tasks send themselves. Sums stop at 2^64-1.
    pub fn directed(database: &Database) -> Traffic {
        let mut bytes_of = BTreeMap::<(u32, u32), u64>::new();
        for edge in &database.edges {
            if let (End::Object(from), End::Object(to)) = (edge.from, edge.to)
                && from != to
            {
                let bytes = bytes_of.entry((from, to)).or_default();
                *bytes = bytes.saturating_add(edge.bytes);
            }
        }
        let messages = bytes_of.into_iter().map(|((from, to), bytes)| Halo { from, to, bytes });
        Traffic { tasks: database.objects.len(), messages: messages.collect() }
    }

    /// Half of what two tasks exchange each way, the odd byte from the lower to the higher, whichever way
    /// it went: what an undirected graph says. (An edge without bytes is none there, and a message in a
    /// directed one.)
    pub fn undirected(database: &Database) -> Traffic {
        let both_ways = |(low, high, bytes): (u32, u32, u64)| {
            let half = bytes / 2;
            [Halo { from: low, to: high, bytes: bytes - half }, Halo { from: high, to: low, bytes: half }]
        };
        let mut messages: Vec<Halo> = Graph::of(database).pairs().flat_map(both_ways).collect();
        messages.sort_unstable_by_key(|message| (message.from, message.to));
        Traffic { tasks: database.objects.len(), messages }
    }
}

/// How often tasks exchange messages, and what they do in between.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchange {
    /// How many iterations every task does.
    pub iterations: u64,
    /// Seconds a task computes in each.
    pub compute_seconds: f64,
    /// When a task posts its receives.
    pub receives: Receives,
    /// Whether iterations that repeat what came before exactly (every task begins as long after it did one period
    /// ago, three periods in a row) are not simulated.
    pub extrapolates: bool,
}

/// When a task posts the receives of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receives {
    /// Before it computes: a message moves while its receiver computes.
    #[default]
    BeforeCompute,
    /// After it has computed, as a plain Jacobi iteration does.
    AfterCompute,
}

/// What a halo exchange took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchanged {
    /// When the last task was through.
    pub seconds: f64,
    /// The same divided by the iterations.
    pub seconds_per_iteration: f64,
    /// From when both ends had posted a message to when it had arrived, the mean of all messages, of which
    /// those inside a PE count as 0.
    pub mean_message_latency_seconds: f64,
    /// Messages in all iterations.
    pub messages: u64,
    /// Iterations that were simulated: all, unless they repeated themselves.
    pub simulated_iterations: u64,
    /// The bytes of an iteration over a link over its bandwidth, of the link where this is the most.
    pub max_link_seconds: f64,
}

impl Exchange {
    /// Does the iterations of `traffic` on a network that is new, with task `i` on PE `placement[i]`.
    ///
    /// # Panics
    /// When a task has no place, or is on a PE that the machine does not have.
    pub fn run(&self, traffic: &Traffic, placement: &[u32], network: &mut dyn Network) -> Exchanged {
        assert_eq!(placement.len(), traffic.tasks, "a mapping gives every task one PE");
        let mut run = Run::new(self, traffic, placement, network);
        run.finish();
        let left_out = (self.iterations - run.iterations) as f64 / run.period.iterations.max(1) as f64;
        let seconds = run.seconds + left_out * run.period.seconds;
        let latency_seconds = run.latency_seconds + left_out * run.period.latency_seconds;
        let simulated_iterations = run.iterations;
        let messages = traffic.messages.len() as u64 * self.iterations;
        let link_seconds = network.wires().busiest().map_or(0.0, |(_, seconds)| seconds);
        Exchanged {
            seconds,
            seconds_per_iteration: seconds / self.iterations.max(1) as f64,
            mean_message_latency_seconds: latency_seconds / messages.max(1) as f64,
            messages,
            simulated_iterations,
            max_link_seconds: link_seconds / simulated_iterations.max(1) as f64,
        }
    }
}

/// An exchange under way.
struct Run<'a> {
    exchange: &'a Exchange,
    messages: &'a [Halo],
    placement: &'a [u32],
    network: &'a mut dyn Network,
    tasks: Vec<Task>,
    processors: Vec<Processor>,
    /// The tasks that compute, by when they are through.
    computing: Events<u32>,
    /// By message: whether one of its ends has posted it.
    is_posted: Vec<bool>,
    /// By message: when it began to move.
    sent_seconds: Vec<f64>,
    /// When something last happened.
    seconds: f64,
    /// Of all messages that have arrived.
    latency_seconds: f64,
    /// How many iterations are simulated, and the period of which all but these consist, once one is found.
    iterations: u64,
    period: Period,
    steady: Option<Steady>,
}

/// A task.
#[derive(Clone, Default)]
struct Task {
    /// Its messages, as positions in the traffic.
    sends: Vec<u32>,
    receives: Vec<u32>,
    /// Iterations it has begun.
    begun: u64,
    /// What is missing to the end of this one: the computation, its sends and receives.
    missing: usize,
}

/// A PE: it computes for one task at a time.
#[derive(Clone, Default)]
struct Processor {
    is_busy: bool,
    waiting: VecDeque<u32>,
}

impl<'a> Run<'a> {
    fn new(
        exchange: &'a Exchange,
        traffic: &'a Traffic,
        placement: &'a [u32],
        network: &'a mut dyn Network,
    ) -> Self {
        let mut tasks = vec![Task::default(); traffic.tasks];
        for (message, id) in traffic.messages.iter().zip(0..) {
            tasks[message.from as usize].sends.push(id);
            tasks[message.to as usize].receives.push(id);
        }
        Run {
            exchange,
            messages: &traffic.messages,
            placement,
            tasks,
            processors: vec![Processor::default(); network.wires().machine().pes()],
            network,
            computing: Events::new(),
            is_posted: vec![false; traffic.messages.len()],
            sent_seconds: vec![0.0; traffic.messages.len()],
            seconds: 0.0,
            latency_seconds: 0.0,
            iterations: exchange.iterations,
            period: Period::default(),
            steady: exchange.extrapolates.then(|| Steady::new(traffic.tasks)),
        }
    }

    /// Lets everything happen in its order; what arrives before what is computed by then.
    ///
    /// # Panics
    /// When the network loses a message.
    fn finish(&mut self) {
        for task in 0..self.tasks.len() as u32 {
            self.begin(0.0, task);
        }
        let mut arrivals = Vec::new();
        while let Some(now) = self.computing.next_with(self.network) {
            self.network.advance(now, &mut arrivals);
            for arrival in arrivals.drain(..) {
                self.arrive(arrival);
            }
            while let Some((_, task)) = self.computing.pop(now) {
                self.computed(now, task);
            }
        }
        let is_through = |task: &Task| task.begun == self.iterations && task.missing == 0;
        assert!(self.tasks.iter().all(is_through), "a network delivers what it is given");
    }

    /// The task begins an iteration, unless it has done all.
    fn begin(&mut self, now: f64, id: u32) {
        self.seconds = self.seconds.max(now);
        if self.tasks[id as usize].begun == self.iterations {
            return;
        }
        let task = &mut self.tasks[id as usize];
        let number = task.begun;
        task.begun += 1;
        task.missing = 1 + task.sends.len() + task.receives.len();
        if let Some(period) = self.steady.as_mut().and_then(|steady| steady.begins(id, number, now)) {
            // All whole periods are left out that no task has begun.
            let begun = self.tasks.iter().map(|task| task.begun).max().unwrap_or(0);
            self.iterations = begun + (self.iterations - begun) % period.iterations;
            self.period = period;
            self.steady = None;
        }
        if self.exchange.receives == Receives::BeforeCompute {
            self.post_receives(now, id);
        }
        let pe = self.placement[id as usize] as usize;
        self.processors[pe].waiting.push_back(id);
        self.compute(now, pe);
    }

    /// The PE computes for the task that waits the longest, if it is free and one does.
    fn compute(&mut self, now: f64, pe: usize) {
        let processor = &mut self.processors[pe];
        if !processor.is_busy
            && let Some(task) = processor.waiting.pop_front()
        {
            processor.is_busy = true;
            self.computing.add(now + self.exchange.compute_seconds, task);
        }
    }

    /// The task has computed: it posts its sends.
    fn computed(&mut self, now: f64, id: u32) {
        let pe = self.placement[id as usize] as usize;
        self.processors[pe].is_busy = false;
        self.compute(now, pe);
        if self.exchange.receives == Receives::AfterCompute {
            self.post_receives(now, id);
        }
        for send in 0..self.tasks[id as usize].sends.len() {
            self.post(now, self.tasks[id as usize].sends[send]);
        }
        self.finish_one(now, id);
    }

    fn post_receives(&mut self, now: f64, id: u32) {
        for receive in 0..self.tasks[id as usize].receives.len() {
            self.post(now, self.tasks[id as usize].receives[receive]);
        }
    }

    /// An end of a message posts it; if the other had, it moves.
    fn post(&mut self, now: f64, id: u32) {
        let is_posted = &mut self.is_posted[id as usize];
        *is_posted = !*is_posted;
        if *is_posted {
            return;
        }
        let Halo { from, to, bytes } = self.messages[id as usize];
        self.sent_seconds[id as usize] = now;
        let [from, to] = [from, to].map(|task| self.placement[task as usize]);
        self.network.send(now, Message { token: u64::from(id), from, to, bytes });
    }

    /// A message has arrived: its send and its receive are done.
    fn arrive(&mut self, Arrival { token, seconds }: Arrival) {
        let Halo { from, to, .. } = self.messages[token as usize];
        let latency_seconds = seconds - self.sent_seconds[token as usize];
        self.latency_seconds += latency_seconds;
        if let Some(steady) = &mut self.steady {
            steady.arrives(self.tasks[from as usize].begun - 1, latency_seconds);
        }
        self.finish_one(seconds, from);
        self.finish_one(seconds, to);
    }

    /// One thing less is missing to the end of the task's iteration.
    fn finish_one(&mut self, now: f64, id: u32) {
        let task = &mut self.tasks[id as usize];
        task.missing -= 1;
        if task.missing == 0 {
            self.begin(now, id);
        }
    }
}

#[cfg(test)]
mod tests;
