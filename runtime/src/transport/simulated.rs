//! Any number of PEs in one thread, in an order drawn from a seed ([`machine`](super::machine) runs them
//! in virtual time instead).
//!
//! Whatever crosses PEs is encoded, travels as bytes, and is decoded, so a field that does not survive
//! serde shows at once; it arrives in any order, so a program (and the runtime) that counts on one
//! shows within a few seeds. The same seed gives the same run, as long as the program's decisions do not
//! hang on measured time: where a balancer moves elements, let them charge their work.

use crate::context::PeCx;
use crate::elements::Manager;
use crate::location::splitmix;
use crate::node::{Failure, Node};
use crate::run::{Built, build};
use crate::tracer::Log;
use crate::transport::Carrier;
use crate::transport::machine;
use crate::transport::schedule::{pass_on, run_queued};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// What was sent and is still to be delivered, and the dice.
pub(crate) struct Mailbag {
    dice: Cell<u64>,
    packets: RefCell<Vec<Packet>>,
}

pub(super) struct Packet {
    pub(super) from: u32,
    pub(super) to: u32,
    /// When it was sent, in virtual seconds.
    pub(super) seconds: f64,
    /// Its number in the trace, if there is one.
    pub(super) number: u32,
    /// The array it is about; none if it is about the run.
    pub(super) array: Option<u16>,
    pub(super) bytes: Vec<u8>,
}

impl Mailbag {
    pub(super) fn new(seed: u64) -> Self {
        Mailbag { dice: Cell::new(splitmix(seed)), packets: RefCell::default() }
    }

    pub(super) fn add(&self, pe: &PeCx, to: u32, array: Option<u16>, bytes: Vec<u8>) {
        debug_assert_ne!(pe.rank, to, "a PE keeps what it sends itself");
        let seconds = pe.packet_leaves();
        let number = pe.tracer().map_or(0, |tracer| tracer.packs(to, bytes.len() as u64));
        self.packets.borrow_mut().push(Packet { from: pe.rank, to, seconds, number, array, bytes });
    }

    /// All that is in it, in the order in which it was sent.
    pub(super) fn take(&self) -> Vec<Packet> {
        self.packets.take()
    }

    /// A number below `below`.
    fn draw(&self, below: usize) -> usize {
        let dice = splitmix(self.dice.get());
        self.dice.set(dice);
        ((u128::from(dice) * below as u128) >> 64) as usize
    }

    /// Heads or tails.
    pub(crate) fn coin(&self) -> bool {
        self.draw(2) == 0
    }
}

/// Runs all PEs until the run is over.
pub(crate) fn run(node: &Arc<Node>, setup: &(dyn Fn(PeCx) -> Built + Sync)) {
    let bag = Rc::new(Mailbag::new(node.settings.seed));
    let simulation = node.settings.simulation.as_ref();
    let log = simulation.and_then(|it| it.record.as_ref()).map(|_| Rc::new(Log::default()));
    let mut pes = Vec::with_capacity(node.pes as usize);
    for rank in 0..node.pes {
        let carrier = Carrier::Simulated(Rc::clone(&bag));
        let tracer = log.as_ref().map(|log| log.tracer(rank));
        let Some(built) = build(node, PeCx::new(rank, Arc::clone(node), carrier, tracer), setup) else {
            return;
        };
        pes.push(built);
    }
    if !pes.iter().all(Built::agrees) {
        return;
    }
    let running = Cell::new(0);
    let ran = catch_unwind(AssertUnwindSafe(|| match simulation {
        Some(simulation) => machine::schedule(node, simulation, &bag, log, &mut pes, &running),
        None => {
            pes[0].begin();
            schedule(node, &bag, &mut pes, &running);
        }
    }));
    if let Err(payload) = ran {
        node.fail(pes[running.get()].blame(&*payload));
    }
    for built in &mut pes {
        built.leave();
    }
}

fn schedule(node: &Node, bag: &Mailbag, pes: &mut [Built], running: &Cell<usize>) {
    // PEs with something for themselves, in any order, and whether a PE is among them.
    let mut busy: Vec<usize> = Vec::new();
    let mut listed = vec![false; pes.len()];
    let list = |pes: &[Built], at: usize, busy: &mut Vec<usize>, listed: &mut [bool]| {
        if pes[at].pe.queued.get() != 0 && !listed[at] {
            listed[at] = true;
            busy.push(at);
        }
    };
    list(pes, 0, &mut busy, &mut listed);
    while !node.stopped() {
        let packets = bag.packets.borrow().len();
        if packets + busy.len() == 0 {
            for at in 0..pes.len() {
                running.set(at);
                let Built { pe, managers, .. } = &mut pes[at];
                pass_on(pe, managers);
                list(pes, at, &mut busy, &mut listed);
            }
            if busy.is_empty() && bag.packets.borrow().is_empty() {
                let Some(round) = node.quiescence.round() else { return node.fail(Failure::Quiet) };
                for at in 0..pes.len() {
                    running.set(at);
                    pes[at].pe.found_quiet(round);
                    list(pes, at, &mut busy, &mut listed);
                }
            }
            continue;
        }
        let drawn = bag.draw(packets + busy.len());
        let at = if drawn < packets {
            let packet = bag.packets.borrow_mut().swap_remove(drawn);
            let to = packet.to;
            running.set(to as usize);
            let Built { pe, managers, .. } = &mut pes[to as usize];
            receive(pe, managers, &packet);
            to as usize
        } else {
            let at = busy.swap_remove(drawn - packets);
            listed[at] = false;
            running.set(at);
            let Built { pe, managers, .. } = &mut pes[at];
            let queued = pe.queued.take();
            run_queued(pe, managers, queued);
            // Passing on early what was collected costs messages, never correctness: sometimes.
            let rarely = if pe.queued.get() == 0 { 8 } else { 64 };
            if bag.draw(rarely) == 0 {
                pass_on(pe, managers);
            }
            at
        };
        list(pes, at, &mut busy, &mut listed);
    }
}

/// Takes in what another PE sent.
pub(super) fn receive(pe: &PeCx, managers: &mut [Box<dyn Manager>], packet: &Packet) {
    match packet.array {
        Some(array) => managers[usize::from(array)].packet(pe, &packet.bytes),
        None => match crate::codec::decode(&packet.bytes) {
            Ok(order) => pe.obey(order, managers),
            Err(error) => pe.fail(format!("an order of the runtime cannot be read back: {error}")),
        },
    }
}
