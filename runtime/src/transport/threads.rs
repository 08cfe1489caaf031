//! PEs as threads of one process, each with its own scheduler.

use crate::elements::Manager;
use crate::inbox::Bag;
use crate::interleaving::{Event, Interleaved, Interleaving, PeRecording};
use crate::node::{Failure, Node};
use crate::order::PeOrder;
use crate::pe::{Carrier, PeCx, post_delivery};
use crate::process;
use crate::scheduler::{Built, bits, build, execute, flush, quiet, run_queued};
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Barrier};

/// Runs the PEs of a process until the run is over.
pub(crate) fn run(node: &Arc<Node>, setup: &(dyn Fn(PeCx) -> Built + Sync)) {
    let barrier = Barrier::new(node.pes as usize);
    // Called before any thread is bound to a core; afterwards it would count only that core.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let limits = if node.pes as usize <= cores { OWN_CORE } else { SHARED_CORE };
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
    limits: SpinLimits,
    barrier: &Barrier,
    setup: &(dyn Fn(PeCx) -> Built + Sync),
) {
    if node.settings.bind {
        let cpu = node.settings.topology.cpu_of(rank as usize).unwrap_or(rank as usize);
        if !core_affinity::set_for_current(core_affinity::CoreId { id: cpu }) {
            process::warn(&format!("--bind: PE {rank} cannot be bound to core {cpu}; it runs unbound"));
        }
    }
    node.bells.own(rank);
    let built = build(node, PeCx::new(rank, Arc::clone(node), carrier(node, rank), None), setup);
    barrier.wait();
    let Some(mut built) = built.filter(Built::agrees) else { return };
    if let Some(Interleaving::Record(recording)) = &node.settings.interleaving {
        recording.begin(|| built.arrays());
    }
    let ran = catch_unwind(AssertUnwindSafe(|| {
        built.begin();
        schedule(&built.pe, &mut built.managers, limits);
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

/// The recording of the order of deliveries, if there is one.
fn recording(pe: &PeCx) -> Option<&PeRecording> {
    match pe.out.interleaved() {
        Some(Interleaved::Record(recording)) => Some(recording),
        _ => None,
    }
}

/// How often an idle PE checks its bell.
#[derive(Clone, Copy)]
struct SpinLimits {
    /// Checks before it sends what it has collected.
    flush: u32,
    /// Checks before it rests and yields its core.
    rest: u32,
}

/// The limits if every PE has its own core.
const OWN_CORE: SpinLimits = SpinLimits { flush: 64, rest: 4_000 };
/// The limits if there are more PEs than cores.
const SHARED_CORE: SpinLimits = SpinLimits { flush: 2, rest: 4 };
/// How often a resting PE yields its core before it sleeps.
const YIELD: u32 = 16;
/// The number of busy turns after which a PE sends what it has collected.
pub(super) const BUSY: u32 = 256;

/// The mailboxes of a PE.
struct Mailboxes {
    /// Mail and sender by number of the mailbox, precomputed: divisions would cost as much as a lock.
    all: Vec<(usize, u32)>,
    /// Two passes if there are expedited arrays: their mail first.
    passes: &'static [Option<bool>],
    orders: Bag<(), PeOrder>,
}

impl Mailboxes {
    fn new(pe: &PeCx, managers: &[Box<dyn Manager>]) -> Self {
        let pes = pe.out.pes as usize;
        let all = (0..(managers.len() + 1) * pes).map(|mailbox| (mailbox / pes, (mailbox % pes) as u32));
        let passes: &[Option<bool>] =
            if pe.out.expedited == 0 { &[None] } else { &[Some(true), Some(false)] };
        Mailboxes { all: all.collect(), passes, orders: Bag::default() }
    }

    /// Runs the content of the mailboxes that have rung; returns whether there was any.
    #[inline]
    fn run(&mut self, pe: &PeCx, managers: &mut [Box<dyn Manager>], rung: u64) -> bool {
        let expedited = |mail: usize| mail != 0 && pe.infos[mail - 1].expedited;
        let mut took = false;
        for &pass in self.passes {
            for bit in bits(rung) {
                for &(mail, from) in self.all.iter().skip(bit).step_by(64) {
                    match mail {
                        _ if pass.is_some_and(|pass| pass != expedited(mail)) => {}
                        0 => {
                            if pe.out.take(&pe.out.node.mail, from, &mut self.orders) {
                                took = true;
                                for order in self.orders.orders.drain(..) {
                                    execute(pe, order, managers);
                                }
                            }
                        }
                        array => took |= managers[array - 1].mail(pe, from),
                    }
                }
            }
        }
        took
    }
}

fn schedule(pe: &PeCx, managers: &mut [Box<dyn Manager>], limits: SpinLimits) {
    let (node, me) = (&*pe.out.node, pe.out.rank);
    let SpinLimits { flush: flush_at, rest } = limits;
    let mut mailboxes = Mailboxes::new(pe, managers);
    let recording = recording(pe);
    // Whether the PE has sent what it has collected since its last work.
    let mut flushed = false;
    let (mut idle, mut resting, mut idle_since, mut busy) = (0u32, false, 0, 0u32);
    while !node.stopped() {
        let queued = pe.out.queued.take();
        if queued == 0 && node.bells.quiet(me) {
            idle += 1;
            match idle {
                1 if pe.delivery.has(post_delivery::LOAD) => idle_since = pe.clock.now(),
                _ if idle == flush_at => {
                    if let Some(recording) = recording.filter(|_| !flushed) {
                        recording.note_default();
                    }
                    flushed = true;
                    flush(pe);
                }
                _ if idle < rest => std::hint::spin_loop(),
                _ if idle == rest => {
                    node.quiescence.rest(me);
                    resting = true;
                    if node.quiescence.found(&node.bells) {
                        node.quiescence.resume(me);
                        resting = false;
                        if let Some(recording) = recording {
                            recording.note(&Event::Quiet);
                        }
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
            if pe.delivery.has(post_delivery::LOAD) {
                pe.was_idle(idle_since, pe.clock.now());
            }
            if resting {
                node.quiescence.resume(me);
                resting = false;
            }
            idle = 0;
        }
        if let Some(recording) = recording {
            recording.begin_turn();
        }
        let took = mailboxes.run(pe, managers, node.bells.take(me));
        if queued == 0 && !took {
            continue;
        }
        flushed = false;
        if let Some(recording) = recording.filter(|_| !took) {
            recording.note_default();
        }
        run_queued(pe, managers, queued);
        busy = busy.wrapping_add(1);
        if busy % BUSY == 0 {
            // Other PEs may wait for collected messages even if this PE is never idle.
            flush(pe);
        }
    }
}
