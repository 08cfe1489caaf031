//! PEs in several processes that exchange messages of bytes, by any carrier.
//!
//! A process has a [`Node`] of its own and one or more PEs. Inside the process, PEs exchange values through mailboxes, as
//! threads do. Orders for PEs of other processes are encoded into batches ([`batches`](crate::batches)). The
//! [`Engine`](engine::Engine) of the process sends and receives them, and takes part in what processes do together. It is
//! one more thread with mailboxes, the last of the process.
//!
//! A carrier of bytes implements [`Link`] and [`Wire`], and knows nothing of the above. There are two: MPI
//! ([`mpi`](super::mpi)), and queues in one process ([`simulated`]), which sample what arrives when. ARCHITECTURE.md
//! says what a third one, on sockets, would contain.

mod control;
pub(super) mod engine;
#[cfg(test)]
mod recording;
pub(super) mod simulated;

use super::idle::{Cores, IdleThread, Limits, PollingThread};
use super::threads::{bind, start_thread};
use super::worker::Worker;
use crate::batches::Post;
use crate::desk::Desk;
use crate::node::{Node, SharedArray};
use crate::options::Job;
use crate::order::PeOrder;
use crate::pe::{Carrier, PeCx};
use crate::process;
use crate::scheduler::{Built, build};
use engine::{Engine, Phase};
use equipoise_model::table::count;
use parking_lot::{Condvar, Mutex};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire};

/// A process among those that were started together, and its connection to them.
pub(crate) trait Link {
    /// The processes, and which of them this is.
    fn job(&self) -> &Job;

    /// Calls `turn` again and again until it breaks. All messages that were sent have left when this returns.
    fn drive(&self, turn: &mut dyn FnMut(&mut dyn Wire) -> ControlFlow<()>);

    /// Ends all processes of a job that has failed, or has saved itself (exit code 0). All processes call this. The process that has printed the error
    /// `aborts`, which ends all; the others wait for that, and return if it takes too long. (Where every process ends on its
    /// own, the launcher of Open MPI waits for a second or two.)
    fn end(self: Box<Self>, exit_code: i32, aborts: bool);

    /// The first process that calls this with true, if any does. All processes call this, before the run.
    fn first_with(&self, is_true: bool) -> Option<u32>;
}

/// Sends and receives messages of bytes. Messages from one process to another arrive in the order of their sends; no
/// message is lost or changed.
pub(crate) trait Wire {
    /// Sends a message to another process, without waiting. Returns a buffer that is not needed any more.
    fn send(&mut self, to: u32, message: Vec<u8>) -> Vec<u8>;

    /// The next message that has arrived, with its sender, in a buffer of the desk; none if none has arrived.
    fn receive(&mut self, desk: &Desk) -> Option<(u32, Vec<u8>)>;

    /// Ends all processes with this exit code, without waiting for what they do.
    fn abort(&mut self, exit_code: i32) -> !;
}

/// Runs the PEs of this process until the run is over in all processes.
pub(super) fn run(node: &Arc<Node>, setup: &(dyn Fn(PeCx) -> Built + Sync), link: &dyn Link) {
    let desk = Arc::new(Desk::new(node.settings.processes()));
    let engine = Engine::new(Arc::clone(node), Arc::clone(&desk), link.job().process);
    if node.settings.local_pes() == 1 {
        run_one(node, &desk, engine, setup, link);
    } else {
        run_threads(node, &desk, engine, setup, link);
    }
}

/// The context of a PE of a process.
fn context(node: &Arc<Node>, desk: &Arc<Desk>, rank: u32, drives: bool) -> PeCx {
    let (settings, hosts) = (&node.settings, &node.settings.hosts);
    let here = &hosts[(node.first / settings.local_pes()) as usize];
    let is_far = hosts.iter().map(|host| host != here).collect();
    let post = Post::new(Arc::clone(desk), is_far, settings.local_pes(), drives);
    PeCx::new(rank, Arc::clone(node), Carrier::Batches(post), None)
}

/// The description of a program and its setup, which must be the same in all processes.
fn description(node: &Node) -> Vec<String> {
    let mut lines = vec![format!("the command `{}`", crate::options::program()), process::program_file()];
    lines.push(format!("the seed {}", node.settings.seed));
    lines.push(format!("{} per process", count(node.settings.local_pes(), "PE")));
    if let Some(saved) = &node.settings.restart {
        // Each process has looked for the newest checkpoint; not all may see the same files.
        lines.push(format!("checkpoint {} with the id {:016x}", saved.number(), saved.id()));
    }
    lines.push(format!("{} in the setup", count(node.shared.lock().len() as u64, "shared value")));
    let arrays = node.arrays.lock();
    for (at, SharedArray { name, begin, .. }) in arrays.iter().enumerate() {
        let entries = node.pulses.entries(at).join(", ");
        lines.push(format!("array {} of the setup, {name} with the entries {entries}{begin}", at + 1));
    }
    lines
}

/// A PE whose thread also drives the connection, where processes share few cores.
struct Single {
    built: Option<Built>,
    worker: Worker,
    limits: Limits,
    has_begun: bool,
    has_finished: bool,
}

impl Single {
    /// Sets up the PE.
    fn new(
        node: &Arc<Node>,
        desk: &Arc<Desk>,
        rank: u32,
        limits: Limits,
        setup: &(dyn Fn(PeCx) -> Built + Sync),
    ) -> Self {
        let built = build(node, context(node, desk, rank, true), setup);
        let worker = Worker::new(built.as_ref(), node);
        Single { built, worker, limits, has_begun: false, has_finished: false }
    }

    /// Compares the setup of the PE with those of all PEs of its process, which are over; ends the run if they differ.
    fn agree(&mut self) {
        self.built = self.built.take().filter(Built::agrees);
    }

    /// Begins the run on the PE, the first time.
    fn begin(&mut self, node: &Node) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.run(node, |_, built| {
                built.begin();
                built.pe.out.dispatch();
            });
        }
    }

    /// Executes an order from another process. A process that began earlier may have sent it in the same turn of the connection
    /// as the start.
    fn receive(&mut self, node: &Node, order: PeOrder) {
        self.begin(node);
        self.run(node, |worker, built| worker.receive(built, order));
    }

    /// Runs user code, unless the run is over. A panic ends the run.
    fn run<T>(&mut self, node: &Node, run: impl FnOnce(&mut Worker, &mut Built) -> T) -> Option<T> {
        let built = self.built.as_mut().filter(|_| !node.stopped())?;
        let ran = catch_unwind(AssertUnwindSafe(|| run(&mut self.worker, built)));
        ran.map_err(|payload| node.fail_on(built.pe.out.rank, built.panic_failure(&*payload))).ok()
    }

    /// Runs the PE as far as the phase of the run allows; returns whether it did anything.
    fn turn(&mut self, node: &Node, phase: Phase) -> bool {
        match phase {
            Phase::Running if !self.has_begun => {
                self.begin(node);
                true
            }
            Phase::Running => {
                let limits = self.limits;
                let turn = |worker: &mut Worker, built: &mut Built| {
                    let worked = worker.turn(built);
                    if !worked {
                        worker.idle(built, limits);
                    }
                    worked
                };
                self.run(node, turn).unwrap_or_default()
            }
            Phase::Stopping | Phase::Finishing | Phase::Over if !self.has_finished => {
                self.has_finished = true;
                self.built.take().map(Built::finish).is_some()
            }
            _ => false,
        }
    }
}

/// Runs a process with one PE, in this thread.
fn run_one(
    node: &Arc<Node>,
    desk: &Arc<Desk>,
    mut engine: Engine,
    setup: &(dyn Fn(PeCx) -> Built + Sync),
    link: &dyn Link,
) {
    let mut idle = PollingThread::new(&Cores::new(node.settings.idle, link.job(), 1));
    bind(node, node.first);
    let mut single = Single::new(node, desk, node.first, Limits { flush: 2, rest: 20 }, setup);
    single.agree();
    engine.is_set_up(description(node));
    link.drive(&mut |wire| {
        let mut worked = single.turn(node, engine.phase());
        if single.has_finished {
            engine.pes_have_stopped();
        }
        worked |= engine.turn(wire, &mut |_, order| single.receive(node, order));
        idle.after(worked, desk);
        if engine.phase() == Phase::Over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
}

/// Gives an order from another process to a PE of this process, through its mailbox.
fn give(node: &Node, to: u32, order: PeOrder) {
    let connection = node.settings.local_pes();
    node.mail.push(connection, to - node.first, &node.bells, |bag| bag.orders.push(order));
}

/// Tells the PEs of a process the phase of the run.
struct Stage {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl Stage {
    fn reach(&self, phase: Phase) {
        let mut current = self.phase.lock();
        if *current < phase {
            *current = phase;
            self.changed.notify_all();
        }
    }

    fn wait_for(&self, phase: Phase) {
        let mut current = self.phase.lock();
        self.changed.wait_while(&mut current, |current| *current < phase);
    }
}

/// The threads of PEs that have not yet done something.
struct Remaining(AtomicU32);

impl Remaining {
    /// The part of one thread. The thread is done when it drops this value, so also if it panics.
    fn part(&self) -> Part<'_> {
        Part(self)
    }

    fn is_zero(&self) -> bool {
        self.0.load(Acquire) == 0
    }
}

/// What one thread has not yet done.
struct Part<'a>(&'a Remaining);

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, AcqRel);
    }
}

/// Runs a process with several PEs as threads. This thread drives the connection.
fn run_threads(
    node: &Arc<Node>,
    desk: &Arc<Desk>,
    mut engine: Engine,
    setup: &(dyn Fn(PeCx) -> Built + Sync),
    link: &dyn Link,
) {
    let local = node.settings.local_pes();
    let stage = Stage { phase: Mutex::new(Phase::SettingUp), changed: Condvar::new() };
    let (setting_up, running) = (Remaining(AtomicU32::new(local)), Remaining(AtomicU32::new(local)));
    let cores = Cores::new(node.settings.idle, link.job(), local as usize + 1);
    std::thread::scope(|scope| {
        for rank in node.local_pes() {
            let (stage, cores) = (&stage, &cores);
            // A thread that cannot start drops them, too.
            let (setting_up, running) = (setting_up.part(), running.part());
            let body = move || {
                let _running = running;
                bind(node, rank);
                node.bells.own(rank - node.first);
                let built = build(node, context(node, desk, rank, false), setup);
                drop(setting_up);
                // All PEs of the process are set up.
                stage.wait_for(Phase::Running);
                let built = built.filter(Built::agrees);
                let finished = built.map(|built| run_thread(node, built, cores));
                stage.wait_for(Phase::Stopping);
                if let Some(built) = finished {
                    built.finish();
                }
            };
            start_thread(scope, node, rank, body);
        }
        let mut idle = PollingThread::new(&cores);
        let mut is_set_up = false;
        link.drive(&mut |wire| {
            if !is_set_up && setting_up.is_zero() {
                is_set_up = true;
                engine.is_set_up(description(node));
            }
            if running.is_zero() {
                engine.pes_have_stopped();
            }
            let worked = engine.turn(wire, &mut |to, order| give(node, to, order));
            stage.reach(engine.phase());
            idle.after(worked, desk);
            if engine.phase() == Phase::Over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    });
}

/// Runs a PE in its thread until the run is over.
fn run_thread(node: &Node, mut built: Built, cores: &Arc<Cores>) -> Built {
    let ran = catch_unwind(AssertUnwindSafe(|| {
        built.begin();
        built.pe.out.dispatch();
        let mut worker = Worker::new(Some(&built), node);
        let mut idle = IdleThread::new(cores);
        while !node.stopped() {
            if !worker.turn(&mut built) {
                worker.idle(&mut built, idle.limits());
                worker.wait(&built.pe, &mut idle);
            }
        }
    }));
    if let Err(payload) = ran {
        node.fail_on(built.pe.out.rank, built.panic_failure(&*payload));
    }
    built
}
