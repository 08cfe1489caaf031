//! PEs as threads of one process, each with its own scheduler.

use super::worker::{Limits, Worker, recording};
use crate::interleaving::{Event, Interleaved, Interleaving, PeRecording};
use crate::node::{Failure, Node};
use crate::pe::{Carrier, PeCx};
use crate::process;
use crate::scheduler::{Built, build, quiet};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Barrier};

/// Runs the PEs of a process until the run is over.
pub(crate) fn run(node: &Arc<Node>, setup: &(dyn Fn(PeCx) -> Built + Sync)) {
    let barrier = Barrier::new(node.pes as usize);
    // Called before any thread is bound to a core; afterwards it would count only that core.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let limits = Limits::of(node.pes as usize <= cores);
    // No PE begins before all threads have started: the barrier would wait forever for a thread that cannot start.
    let gate = Mutex::new(false);
    std::thread::scope(|scope| {
        let mut complete = gate.lock();
        *complete = true;
        for rank in 0..node.pes {
            let (node, barrier, gate) = (Arc::clone(node), &barrier, &gate);
            let body = {
                let node = Arc::clone(&node);
                move || {
                    let complete = *gate.lock();
                    if complete {
                        pe(&node, rank, limits, barrier, setup);
                    }
                }
            };
            let spawned = std::thread::Builder::new().name(format!("PE {rank}")).spawn_scoped(scope, body);
            if let Err(error) = spawned {
                node.fail(Failure::Program(format!("cannot start PE {rank}: {error}; use fewer PEs")));
                *complete = false;
                break;
            }
        }
        drop(complete);
    });
}

fn pe(
    node: &Arc<Node>,
    rank: u32,
    limits: Limits,
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
        schedule(&mut built, limits);
    }));
    if let Some(recording) = recording(&built.pe) {
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

fn schedule(built: &mut Built, limits: Limits) {
    let node = Arc::clone(&built.pe.out.node);
    let mut worker = Worker::new(Some(built), &node, limits);
    while !node.stopped() {
        if worker.turn(built) {
            continue;
        }
        if worker.idle(built) && node.quiescence.found(&node.bells) {
            worker.found_quiet(&built.pe);
            if let Some(recording) = recording(&built.pe) {
                recording.note(&Event::Quiet);
            }
            quiet(&built.pe);
        }
        worker.wait(built);
    }
}

/// Binds this thread to the core of a PE, if `--bind` asks for it. The PEs of all processes on a computer have cores of
/// their own.
pub(super) fn bind(node: &Node, rank: u32) {
    let settings = &node.settings;
    if !settings.bind {
        return;
    }
    let process = (node.first / settings.local_pes()) as usize;
    let before = settings.hosts[..process].iter().filter(|host| **host == settings.hosts[process]).count();
    let nth = before * settings.local_pes() as usize + (rank - node.first) as usize;
    let cpu = settings.topology.cpu_of(rank as usize).unwrap_or(nth);
    if !core_affinity::set_for_current(core_affinity::CoreId { id: cpu }) {
        process::warn(&format!(
            "--bind: {} cannot be bound to core {cpu}; it runs unbound",
            settings.pe_name(rank)
        ));
    }
}
