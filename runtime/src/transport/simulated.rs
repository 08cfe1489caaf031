//! Any number of PEs in one thread, in an order drawn from a seed.
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
use crate::transport::Carrier;
use crate::transport::schedule::{pass_on, run_queued};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// What is on its way, and the dice.
pub(crate) struct Network {
    dice: Cell<u64>,
    packets: RefCell<Vec<Packet>>,
}

struct Packet {
    to: u32,
    /// The array it is about; none if it is about the run.
    array: Option<u16>,
    bytes: Vec<u8>,
}

impl Network {
    fn new(seed: u64) -> Self {
        Network { dice: Cell::new(splitmix(seed)), packets: RefCell::default() }
    }

    pub(crate) fn send(&self, from: u32, to: u32, array: Option<u16>, bytes: Vec<u8>) {
        debug_assert_ne!(from, to, "a PE keeps what it sends itself");
        self.packets.borrow_mut().push(Packet { to, array, bytes });
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
    let network = Rc::new(Network::new(node.settings.seed));
    let mut pes = Vec::with_capacity(node.pes as usize);
    for rank in 0..node.pes {
        let carrier = Carrier::Simulated(Rc::clone(&network));
        let Some(built) = build(node, PeCx::new(rank, Arc::clone(node), carrier), setup) else { return };
        pes.push(built);
    }
    if !pes.iter().all(Built::agrees) {
        return;
    }
    let running = Cell::new(0);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        pes[0].begin();
        schedule(node, &network, &mut pes, &running);
    }));
    if let Err(payload) = ran {
        node.fail(pes[running.get()].blame(&*payload));
    }
    for built in &mut pes {
        built.leave();
    }
}

fn schedule(node: &Node, network: &Network, pes: &mut [Built], running: &Cell<usize>) {
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
        let packets = network.packets.borrow().len();
        if packets + busy.len() == 0 {
            for at in 0..pes.len() {
                running.set(at);
                let Built { pe, managers, .. } = &mut pes[at];
                pass_on(pe, managers);
                list(pes, at, &mut busy, &mut listed);
            }
            if busy.is_empty() && network.packets.borrow().is_empty() {
                let Some(round) = node.quiescence.round() else { return node.fail(Failure::Quiet) };
                for at in 0..pes.len() {
                    running.set(at);
                    pes[at].pe.found_quiet(round);
                    list(pes, at, &mut busy, &mut listed);
                }
            }
            continue;
        }
        let drawn = network.draw(packets + busy.len());
        let at = if drawn < packets {
            let Packet { to, array, bytes } = network.packets.borrow_mut().swap_remove(drawn);
            running.set(to as usize);
            let Built { pe, managers, .. } = &mut pes[to as usize];
            receive(pe, managers, array, &bytes);
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
            if network.draw(rarely) == 0 {
                pass_on(pe, managers);
            }
            at
        };
        list(pes, at, &mut busy, &mut listed);
    }
}

fn receive(pe: &PeCx, managers: &mut [Box<dyn Manager>], array: Option<u16>, bytes: &[u8]) {
    match array {
        Some(array) => managers[usize::from(array)].packet(pe, bytes),
        None => match crate::codec::decode(bytes) {
            Ok(order) => pe.obey(order, managers),
            Err(error) => pe.fail(format!("an order of the runtime cannot be read back: {error}")),
        },
    }
}
