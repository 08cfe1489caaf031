//! All PEs in one thread, in an order sampled with a seed ([`machine`](super::machine) runs them
//! in virtual time instead).
//!
//! Messages between PEs are encoded and decoded, which reveals fields that serde skips. They arrive in any order,
//! which reveals programs that rely on an order within a few seeds. The same seed gives the same run, unless decisions
//! depend on measured time: if a load balancer migrates elements, let them charge their work.

use super::machine;
use crate::node::Node;
use crate::pe::{Carrier, Packet, PacketCarrier, PeCx};
use crate::pulse::RunningPe;
use crate::scheduler::{Built, build, flush, found_quiet, receive, run_queued};
use crate::tracer::Log;
use equipoise_model::random::splitmix;
use equipoise_model::table::count;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// The packets in flight, and the random number generator.
pub(super) struct Mailbag {
    rng: Cell<u64>,
    packets: RefCell<Vec<Packet>>,
}

impl Mailbag {
    pub(super) fn new(seed: u64) -> Self {
        Mailbag { rng: Cell::new(splitmix(seed)), packets: RefCell::default() }
    }

    /// Takes all packets, in the order of their sends.
    pub(super) fn take(&self) -> Vec<Packet> {
        self.packets.take()
    }

    /// Samples a number below `below`.
    fn sample(&self, below: usize) -> usize {
        let rng = splitmix(self.rng.get());
        self.rng.set(rng);
        ((u128::from(rng) * below as u128) >> 64) as usize
    }
}

impl PacketCarrier for Mailbag {
    fn send(&self, packet: Packet) {
        self.packets.borrow_mut().push(packet);
    }

    /// A random result: a PE may or may not notice its packets.
    fn quiet(&self) -> bool {
        self.sample(2) == 0
    }
}

/// Runs all PEs until the run is over.
pub(crate) fn run(node: &Arc<Node>, setup: &(dyn Fn(PeCx) -> Built + Sync)) {
    let bag = Rc::new(Mailbag::new(node.settings.seed));
    let simulation = node.settings.simulation.as_ref();
    let log = node.settings.is_recorded().then(|| {
        let names = Arc::clone(node);
        Rc::new(Log::new(node.pes, Box::new(move |array, rank| names.pulses.element(array, rank))))
    });
    let mut pes = Vec::with_capacity(node.pes as usize);
    for rank in 0..node.pes {
        let carrier = Carrier::Packets(Rc::<Mailbag>::clone(&bag));
        let tracer = log.as_ref().map(|log| log.tracer(rank));
        let Some(built) = build(node, PeCx::new(rank, Arc::clone(node), carrier, tracer), setup) else {
            return;
        };
        pes.push(built);
    }
    if !pes.iter().all(Built::agrees) {
        return;
    }
    let running = &node.pulses.running;
    running.set(0);
    let ran = catch_unwind(AssertUnwindSafe(|| match simulation {
        Some(simulation) => machine::schedule(node, simulation, &bag, log, &mut pes, running),
        None => {
            for (at, built) in pes.iter_mut().enumerate() {
                running.set(at);
                built.begin();
            }
            schedule(node, &bag, &mut pes, running);
        }
    }));
    if let Err(payload) = ran {
        node.fail(pes[running.get()].panic_failure(&*payload));
    }
    pes.into_iter().for_each(Built::finish);
    report_packets(node, &bag);
}

/// Reports the packets in flight, if the run did not finish.
fn report_packets(node: &Node, bag: &Mailbag) {
    let mut packets = BTreeMap::<u32, u64>::new();
    for packet in bag.take() {
        *packets.entry(packet.to).or_default() += 1;
    }
    let mut outcome = node.outcome.lock();
    for (to, packets) in packets.into_iter().filter(|_| outcome.is_unfinished()).collect::<Vec<_>>() {
        let verb = if packets == 1 { "is" } else { "are" };
        let line = format!("{} from other PEs {verb} in flight", count(packets, "message"));
        outcome.waiting.line(Some(to), line);
    }
}

fn schedule(node: &Node, bag: &Mailbag, pes: &mut [Built], running: &RunningPe) {
    // PEs with work in their own queues or something to forward or to flush, in any order, and whether a PE is listed.
    let mut busy: Vec<usize> = Vec::new();
    let mut listed = vec![false; pes.len()];
    // Whether a PE has sent what it has collected since its last work. Others may be busy until they have it.
    let mut flushed = vec![true; pes.len()];
    let list = |pes: &[Built], at: usize, flushed: &[bool], busy: &mut Vec<usize>, listed: &mut [bool]| {
        let pe = &pes[at].pe;
        let has_work = pe.out.queued.get() != 0
            || pe.collectives.forwards.get()
            || pe.timers.count() != 0
            || !flushed[at];
        if has_work && !listed[at] {
            listed[at] = true;
            busy.push(at);
        }
    };
    for at in 0..pes.len() {
        list(pes, at, &flushed, &mut busy, &mut listed);
    }
    while !node.stopped() {
        let packets = bag.packets.borrow().len();
        if packets + busy.len() == 0 {
            for at in 0..pes.len() {
                running.set(at);
                let Built { pe, .. } = &mut pes[at];
                flush(pe);
                flushed[at] = true;
                list(pes, at, &flushed, &mut busy, &mut listed);
            }
            if busy.is_empty() && bag.packets.borrow().is_empty() {
                let Some(quiet) = node.quiet(None) else { return };
                for at in 0..pes.len() {
                    running.set(at);
                    let Built { pe, managers, .. } = &mut pes[at];
                    found_quiet(pe, quiet, managers);
                    list(pes, at, &flushed, &mut busy, &mut listed);
                }
            }
            continue;
        }
        let sampled = bag.sample(packets + busy.len());
        let at = if sampled < packets {
            let packet = bag.packets.borrow_mut().swap_remove(sampled);
            let to = packet.to;
            running.set(to as usize);
            let Built { pe, managers, .. } = &mut pes[to as usize];
            receive(pe, managers, packet.array, &packet.bytes);
            flushed[to as usize] = false;
            to as usize
        } else {
            let at = busy.swap_remove(sampled - packets);
            listed[at] = false;
            running.set(at);
            let Built { pe, managers, .. } = &mut pes[at];
            if pe.timers.count() != 0 && bag.sample(2) == 0 {
                pe.send_first();
            }
            let queued = pe.out.queued.take();
            flushed[at] &= queued == 0;
            run_queued(pe, managers, queued);
            // Flushes early from time to time: this may change the number of messages, but not the result.
            let rarely = if pe.out.queued.get() == 0 { 8 } else { 64 };
            if bag.sample(rarely) == 0 {
                flush(pe);
                flushed[at] = true;
            }
            at
        };
        list(pes, at, &flushed, &mut busy, &mut listed);
    }
}
