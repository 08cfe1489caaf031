//! Halo exchanges: iterations of tasks, each of which waits only for its own messages.
//!
//! In an iteration, a task posts its receives, computes, posts its sends, and waits until all of its sends
//! and receives are complete; then its next iteration begins. The transfer of a message begins when both its sender
//! and its receiver have posted it, as for large MPI messages (rendezvous). A send is complete when the message has
//! arrived. There is no barrier, so neighbors can be up to one iteration apart. This is the behavior of MPI programs of
//! the form `Irecv, compute, Isend, Waitall`, and of the SimGrid programs of the reference results.
//!
//! Tasks on one PE compute one after the other, in the order in which their iterations begin. Messages between them
//! take no time.

use std::collections::{BTreeMap, VecDeque};

mod steady;

use steady::{Period, PeriodDetector};

use equipoise_model::Database;
use equipoise_model::database::End;
use equipoise_model::graph::Graph;

use super::{Arrival, Events, Message, Network};

/// The messages of one iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The number of tasks.
    pub tasks: usize,
    /// The messages, sorted by sender, then by receiver; at most one per pair of sender and receiver.
    pub messages: Vec<Halo>,
}

/// A message of every iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halo {
    /// The sender.
    pub from: u32,
    /// The receiver, a different task.
    pub to: u32,
    /// The size.
    pub bytes: u64,
}

impl Traffic {
    /// The traffic of a directed graph (`.csv`): one message per ordered pair of tasks that communicate.
    ///
    /// Edges at PEs and edges from a task to itself are ignored. Sums saturate at 2^64-1.
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

    /// The traffic of an undirected graph: each of two tasks sends half of their bytes, whatever the direction of the
    /// edges; an odd byte goes from the lower task to the higher. (An edge without bytes gives no message here, but gives
    /// one in [`Self::directed`].)
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

/// The parameters of a halo exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchange {
    /// The number of iterations.
    pub iterations: u64,
    /// Computation of a task per iteration, in seconds.
    pub compute_seconds: f64,
    /// When a task posts its receives.
    pub receives: Receives,
    /// Whether periodic iterations are extrapolated instead of simulated. Iterations are periodic if the time between an
    /// iteration and the iteration one period earlier is the same for all tasks, and for three periods in a row.
    pub extrapolates: bool,
}

/// When a task posts the receives of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receives {
    /// Before the computation, so that a message can be transferred while its receiver computes.
    #[default]
    BeforeCompute,
    /// After the computation, as in a plain Jacobi iteration.
    AfterCompute,
}

/// The result of a halo exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchanged {
    /// When the last task finished.
    pub seconds: f64,
    /// `seconds` divided by the number of iterations.
    pub seconds_per_iteration: f64,
    /// The mean time from the beginning of the transfer of a message to its arrival; messages within a PE count as 0.
    pub mean_message_latency_seconds: f64,
    /// The number of messages in all iterations.
    pub messages: u64,
    /// The number of simulated iterations; fewer than all if periodic iterations were extrapolated.
    pub simulated_iterations: u64,
    /// The maximum over all links of the bytes per iteration divided by the bandwidth.
    pub max_link_seconds: f64,
}

impl Exchange {
    /// Simulates the exchange on an empty network, with task `i` on PE `placement[i]`.
    ///
    /// # Panics
    /// When the placement does not have one entry per task, or names a PE that the machine does not have.
    pub fn run(&self, traffic: &Traffic, placement: &[u32], network: &mut dyn Network) -> Exchanged {
        assert_eq!(placement.len(), traffic.tasks, "a placement has one PE per task");
        let mut run = Run::new(self, traffic, placement, network);
        run.run_to_end();
        let skipped_periods = (self.iterations - run.iterations) as f64 / run.period.iterations.max(1) as f64;
        let seconds = run.seconds + skipped_periods * run.period.seconds;
        let latency_seconds = run.latency_seconds + skipped_periods * run.period.latency_seconds;
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

/// The state of a simulation.
struct Run<'a> {
    exchange: &'a Exchange,
    messages: &'a [Halo],
    placement: &'a [u32],
    network: &'a mut dyn Network,
    tasks: Vec<Task>,
    processors: Vec<Processor>,
    /// The computing tasks, by the end of their computation.
    computing: Events<u32>,
    /// By message: whether exactly one of sender and receiver has posted it.
    is_posted: Vec<bool>,
    /// By message: when its transfer began.
    sent_seconds: Vec<f64>,
    /// The time of the last event.
    seconds: f64,
    /// The sum over all arrived messages.
    latency_seconds: f64,
    /// The number of iterations to simulate, and the period that all other iterations consist of, once it is found.
    iterations: u64,
    period: Period,
    detector: Option<PeriodDetector>,
}

/// The state of a task.
#[derive(Clone, Default)]
struct Task {
    /// Its messages, as indices into the traffic.
    sends: Vec<u32>,
    receives: Vec<u32>,
    /// The number of begun iterations.
    begun: u64,
    /// The number of incomplete operations of the iteration: the computation, the sends and the receives.
    missing: usize,
}

/// A PE, which computes for one task at a time.
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
            detector: exchange.extrapolates.then(|| PeriodDetector::new(traffic.tasks)),
        }
    }

    /// Handles all events in order; at equal times, arrivals before ends of computations.
    ///
    /// # Panics
    /// When the network loses a message.
    fn run_to_end(&mut self) {
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
        let is_finished = |task: &Task| task.begun == self.iterations && task.missing == 0;
        assert!(self.tasks.iter().all(is_finished), "a network delivers all messages");
    }

    /// The task begins its next iteration, if there is one.
    fn begin(&mut self, now: f64, id: u32) {
        self.seconds = self.seconds.max(now);
        if self.tasks[id as usize].begun == self.iterations {
            return;
        }
        let task = &mut self.tasks[id as usize];
        let number = task.begun;
        task.begun += 1;
        task.missing = 1 + task.sends.len() + task.receives.len();
        if let Some(period) = self.detector.as_mut().and_then(|it| it.iteration_begins(id, number, now)) {
            // All whole periods that no task has begun are skipped.
            let begun = self.tasks.iter().map(|task| task.begun).max().unwrap_or(0);
            self.iterations = begun + (self.iterations - begun) % period.iterations;
            self.period = period;
            self.detector = None;
        }
        if self.exchange.receives == Receives::BeforeCompute {
            self.post_receives(now, id);
        }
        let pe = self.placement[id as usize] as usize;
        self.processors[pe].waiting.push_back(id);
        self.compute(now, pe);
    }

    /// If the PE is idle, it computes for the task that has waited longest.
    fn compute(&mut self, now: f64, pe: usize) {
        let processor = &mut self.processors[pe];
        if !processor.is_busy
            && let Some(task) = processor.waiting.pop_front()
        {
            processor.is_busy = true;
            self.computing.add(now + self.exchange.compute_seconds, task);
        }
    }

    /// The computation of a task has ended: it posts its sends.
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
        self.complete_one(now, id);
    }

    fn post_receives(&mut self, now: f64, id: u32) {
        for receive in 0..self.tasks[id as usize].receives.len() {
            self.post(now, self.tasks[id as usize].receives[receive]);
        }
    }

    /// The sender or receiver posts a message. If both have posted it, its transfer begins.
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

    /// A message has arrived: its send and its receive are complete.
    fn arrive(&mut self, Arrival { token, seconds }: Arrival) {
        let Halo { from, to, .. } = self.messages[token as usize];
        let latency_seconds = seconds - self.sent_seconds[token as usize];
        self.latency_seconds += latency_seconds;
        if let Some(detector) = &mut self.detector {
            detector.message_arrives(self.tasks[from as usize].begun - 1, latency_seconds);
        }
        self.complete_one(seconds, from);
        self.complete_one(seconds, to);
    }

    /// One operation of the task's iteration is complete.
    fn complete_one(&mut self, now: f64, id: u32) {
        let task = &mut self.tasks[id as usize];
        task.missing -= 1;
        if task.missing == 0 {
            self.begin(now, id);
        }
    }
}

#[cfg(test)]
mod tests;
