//! PEs as threads of one process, each with its own scheduler.

use super::idle::{Cores, IdleThread};
use super::worker::{Worker, recording};
use crate::interleaving::{Event, Interleaved, Interleaving, PeRecording};
use crate::node::{Failure, Node};
use crate::options::Job;
use crate::pe::{Carrier, PeCx};
use crate::process;
use crate::scheduler::{Built, build, quiet};
use core_affinity::CoreId;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Barrier};
use std::thread::{self, Scope};

/// Runs the PEs of a process until the run is over.
pub(crate) fn run(node: &Arc<Node>, setup: &(dyn Fn(PeCx) -> Built + Sync)) {
    let barrier = Barrier::new(node.pes as usize);
    // Called before any thread is bound to a core; afterwards it would count only that core.
    let cores = Cores::new(node.settings.idle, &Job::default(), node.pes as usize);
    // No PE begins before all threads have started: the barrier would wait forever for a thread that cannot start.
    let gate = Mutex::new(false);
    thread::scope(|scope| {
        let mut complete = gate.lock();
        *complete = true;
        for rank in 0..node.pes {
            let (barrier, gate, cores) = (&barrier, &gate, &cores);
            let body = move || {
                let complete = *gate.lock();
                if complete {
                    pe(node, rank, cores, barrier, setup);
                }
            };
            if !start_thread(scope, node, rank, body) {
                *complete = false;
                break;
            }
        }
        drop(complete);
    });
}

/// Starts the thread of a PE of a process. If it cannot start, the run fails, and this returns false.
pub(super) fn start_thread<'scope>(
    scope: &'scope Scope<'scope, '_>,
    node: &Node,
    rank: u32,
    body: impl FnOnce() + Send + 'scope,
) -> bool {
    let spawned = thread::Builder::new().name(format!("PE {rank}")).spawn_scoped(scope, body);
    if let Err(error) = &spawned {
        let per_process = if node.settings.is_distributed { " per process" } else { "" };
        let sentence = format!("cannot start PE {rank}: {error}; use fewer PEs{per_process}");
        node.fail(Failure::Program(sentence));
    }
    spawned.is_ok()
}

fn pe(
    node: &Arc<Node>,
    rank: u32,
    cores: &Arc<Cores>,
    barrier: &Barrier,
    setup: &(dyn Fn(PeCx) -> Built + Sync),
) {
    bind(node, rank);
    node.bells.own(rank);
    let built = build(node, PeCx::new(rank, Arc::clone(node), carrier(node, rank), None), setup);
    barrier.wait();
    let Some(mut built) = built.filter(Built::agrees) else { return };
    if let Some(Interleaving::Record(recording)) = &node.settings.interleaving {
        recording.begin(|| built.arrays());
    }
    let ran = catch_unwind(AssertUnwindSafe(|| {
        built.begin();
        schedule(&mut built, cores);
    }));
    if let Some(recording) = recording(&built.pe.out) {
        recording.end(ran.is_err());
    }
    if let Err(payload) = ran {
        node.fail_on(rank, built.panic_failure(&*payload));
    }
    built.finish();
}

fn carrier(node: &Node, rank: u32) -> Carrier {
    match &node.settings.interleaving {
        Some(Interleaving::Record(recording)) => {
            Carrier::Interleaved(Interleaved::Record(Rc::new(PeRecording::new(recording, rank))))
        }
        _ => Carrier::Mailboxes,
    }
}

fn schedule(built: &mut Built, cores: &Arc<Cores>) {
    let node = Arc::clone(&built.pe.out.node);
    let mut worker = Worker::new(Some(built), &node);
    let mut idle = IdleThread::new(cores);
    while !node.stopped() {
        if worker.turn(built) {
            continue;
        }
        if worker.idle(built, idle.limits()) && node.quiescence.found(&node.bells) {
            worker.found_quiet(&built.pe.out);
            if let Some(recording) = recording(&built.pe.out) {
                recording.note(&Event::Quiet);
            }
            quiet(&built.pe.out);
        }
        worker.wait(&built.pe, &mut idle);
    }
}

/// Binds this thread to the core of a PE, if `--bind` asks for it. The PEs of all processes on a computer have cores of
/// their own.
pub(super) fn bind(node: &Node, rank: u32) {
    let settings = &node.settings;
    let Some(cores) = &settings.bind else { return };
    let core = settings.topology.cpu_of(rank as usize).or(cores.get((rank - node.first) as usize).copied());
    if core.is_none_or(|id| !core_affinity::set_for_current(CoreId { id })) {
        let core = core.map_or("a core of its own".into(), |core| format!("core {core}"));
        let pe = settings.pe_name(rank);
        process::warn(&format!("--bind: {pe} cannot be bound to {core}; it runs unbound"));
    }
}
