//! PEs as threads of one process, each with its own scheduler.

use crate::context::{PeCx, after};
use crate::elements::Manager;
use crate::node::{Failure, Node};
use crate::order::PeOrder;
use crate::run::{Built, build};
use crate::transport::schedule::{bits, pass_on, run_queued};
use crate::transport::{Bag, Carrier};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};

/// Runs the PEs of a process until the run is over.
pub(crate) fn run(node: &Arc<Node>, setup: &(dyn Fn(PeCx) -> Built + Sync)) {
    let barrier = Barrier::new(node.pes as usize);
    // Asked before any thread is bound to a core, after which it would see that core only.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let patience = if node.pes as usize <= cores { PATIENT } else { HURRIED };
    // Nobody begins before all are there: the barrier would wait for ever for one that cannot start.
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
                        pe(&node, rank, patience, barrier, setup);
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
    patience: Patience,
    barrier: &Barrier,
    setup: &(dyn Fn(PeCx) -> Built + Sync),
) {
    if node.settings.bind {
        let cpu = node.settings.topology.cpu_of(rank as usize).unwrap_or(rank as usize);
        if !core_affinity::set_for_current(core_affinity::CoreId { id: cpu }) {
            eprintln!("warning: --bind: PE {rank} cannot be bound to core {cpu}");
        }
    }
    node.bells.own(rank);
    let built = build(node, PeCx::new(rank, Arc::clone(node), Carrier::Threads, None), setup);
    barrier.wait();
    let Some(mut built) = built.filter(Built::agrees) else { return };
    let ran = catch_unwind(AssertUnwindSafe(|| {
        built.begin();
        schedule(&built.pe, &mut built.managers, patience);
    }));
    if let Err(payload) = ran {
        node.fail(built.blame(&*payload));
    }
    built.leave();
}

/// How often an idle PE looks at its bell ..
#[derive(Clone, Copy)]
struct Patience {
    /// .. before it passes on what it collected,
    passes_on: u32,
    /// .. and before it says that it rests and lets others run.
    rests: u32,
}

/// Every PE has a core of its own.
const PATIENT: Patience = Patience { passes_on: 64, rests: 4_000 };
/// There are more PEs than cores.
const HURRIED: Patience = Patience { passes_on: 2, rests: 4 };
/// How often it lets others run before it sleeps.
const YIELD: u32 = 16;
/// After how many turns with work a PE passes on what it collected, too.
const BUSY: u32 = 256;

fn schedule(pe: &PeCx, managers: &mut [Box<dyn Manager>], patience: Patience) {
    let (node, me, pes) = (&*pe.node, pe.rank, pe.pes as usize);
    let Patience { passes_on, rests: rest } = patience;
    // Which mail, and from whom, by the number of the mailbox: divisions would cost as much as a lock.
    let mailboxes: Vec<(usize, u32)> =
        (0..(managers.len() + 1) * pes).map(|mailbox| (mailbox / pes, (mailbox % pes) as u32)).collect();
    // Mail of expedited arrays first, where there are such.
    let expedited = |mail: usize| mail != 0 && pe.infos[mail - 1].expedited;
    let passes: &[Option<bool>] = if pe.expedited == 0 { &[None] } else { &[Some(true), Some(false)] };
    let mut orders = Bag::default();
    let (mut idle, mut resting, mut idle_since, mut busy) = (0u32, false, 0, 0u32);
    while !node.stopped() {
        let queued = pe.queued.take();
        if queued == 0 && node.bells.quiet(me) {
            idle += 1;
            match idle {
                1 if pe.after.get() & after::LOAD != 0 => idle_since = pe.ticker.now(),
                _ if idle == passes_on => pass_on(pe, managers),
                _ if idle < rest => std::hint::spin_loop(),
                _ if idle == rest => {
                    node.quiescence.rest(me);
                    resting = true;
                    if node.quiescence.found(&node.bells) {
                        node.quiescence.go_on(me);
                        resting = false;
                        quiet(pe);
                    }
                }
                _ if idle < rest + YIELD => std::thread::yield_now(),
                _ => {
                    node.bells.sleep(me);
                    idle = rest + 1;
                }
            }
            continue;
        }
        if idle != 0 {
            if pe.after.get() & after::LOAD != 0 {
                pe.was_idle(idle_since, pe.ticker.now());
            }
            if resting {
                node.quiescence.go_on(me);
                resting = false;
            }
            idle = 0;
        }
        let rung = node.bells.take(me);
        for &pass in passes {
            for bit in bits(rung) {
                for &(mail, from) in mailboxes.iter().skip(bit).step_by(64) {
                    match mail {
                        _ if pass.is_some_and(|pass| pass != expedited(mail)) => {}
                        0 => {
                            if node.mail.take(from, me, &mut orders) {
                                for order in orders.orders.drain(..) {
                                    pe.obey(order, managers);
                                }
                            }
                        }
                        array => managers[array - 1].mail(pe, from),
                    }
                }
            }
        }
        run_queued(pe, managers, queued);
        busy = busy.wrapping_add(1);
        if busy % BUSY == 0 {
            // Somebody may wait for it though this PE is never idle.
            pass_on(pe, managers);
        }
    }
}

/// Nothing is in flight: sends what waited for that; if nothing did, the run will never end.
fn quiet(pe: &PeCx) {
    let Some(round) = pe.node.quiescence.round() else { return pe.node.fail(Failure::Quiet) };
    for to in 0..pe.pes {
        pe.tell(to, PeOrder::Quiet { round });
    }
}
