//! The sending part of a PE: queues to itself, mailboxes or packets to other PEs.

use crate::batches::{Origin, Post};
use crate::clock::VirtualClock;
use crate::codec::{self, CodecError};
use crate::events::{self, EventLog};
use crate::inbox::{Bag, Mail};
use crate::interleaving::Interleaved;
use crate::node::{Failure, Node};
use crate::order::PeOrder;
use crate::tracer::Tracer;
use crate::tree::Tree;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// How messages and orders reach other PEs.
pub(crate) enum Carrier {
    /// As values, through mailboxes in shared memory.
    Mailboxes,
    /// Through mailboxes, in an order that is recorded or repeated.
    Interleaved(Interleaved),
    /// As bytes.
    Packets(Rc<dyn PacketCarrier>),
    /// Inside the process through mailboxes, to other processes as batches of bytes.
    Batches(Post),
}

/// A transport of bytes.
pub(crate) trait PacketCarrier {
    /// Sends a packet to its PE.
    fn send(&self, packet: Packet);
    /// Whether the calling PE has no packets; the result may be outdated.
    fn quiet(&self) -> bool;
}

/// An encoded order in flight.
pub(crate) struct Packet {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The time of departure in virtual seconds, on a simulated machine.
    pub(crate) seconds: f64,
    /// Its number in the trace, if there is one.
    pub(crate) number: u32,
    /// The array of the order; none for an order about the run.
    pub(crate) array: Option<u16>,
    /// The priority of the message.
    pub(crate) priority: i64,
    pub(crate) bytes: Vec<u8>,
}

/// The bit of [`Outbox::queued`] that stands for orders about the run; arrays share the others.
pub(crate) const PE_ORDERS: u64 = 1 << 63;

/// The number of bits for arrays; more arrays share bits.
pub(crate) const ARRAY_BITS: usize = 63;

/// The bit of an array.
pub(crate) fn array_bit(id: u16) -> u64 {
    1 << (usize::from(id) % ARRAY_BITS)
}

/// The counts of a PE for the report.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) executions: Cell<u64>,
    pub(crate) remote: Cell<u64>,
    pub(crate) migrations: Cell<u64>,
    /// Insertions that this PE has begun, minus those that have arrived here.
    pub(crate) inserts: Cell<i64>,
}

/// The most buffers that are kept for reuse.
const BUFFERS: usize = 64;

pub(crate) struct Outbox {
    pub(crate) rank: u32,
    /// The number of this PE in its process, from 0: that of its mailboxes and its bell.
    pub(crate) local: u32,
    pub(crate) pes: u32,
    pub(crate) tree: Tree,
    pub(crate) node: Arc<Node>,
    carrier: Carrier,
    /// A bit per array with messages or orders of this PE for itself.
    pub(crate) queued: Cell<u64>,
    /// The bits of expedited arrays.
    pub(crate) expedited: u64,
    /// The bits of arrays whose messages wait by priority.
    pub(crate) prioritized: u64,
    /// The array that has the first turn among those whose first messages have equal priorities.
    pub(crate) next_by_priority: Cell<usize>,
    /// Orders about the run from this PE to itself.
    pub(crate) orders: RefCell<VecDeque<PeOrder>>,
    pub(crate) counts: Counts,
    /// Buffers to encode migrating elements in.
    buffers: RefCell<Vec<Vec<u8>>>,
    /// The clock of this PE, on a simulated machine.
    simulated: Option<Rc<VirtualClock>>,
    /// What this PE does in real time, if it is recorded.
    log: Option<Box<EventLog>>,
}

impl Outbox {
    /// The outbox of one PE, before its arrays are known.
    pub(crate) fn new(
        rank: u32,
        node: Arc<Node>,
        carrier: Carrier,
        simulated: Option<Rc<VirtualClock>>,
    ) -> Self {
        let local = rank - node.first;
        let bytes = node.settings.record_bytes_per_pe();
        let log = bytes.map(|bytes| EventLog::new(rank, local, node.settings.local_pes(), bytes));
        Outbox {
            rank,
            log: log.map(Box::new),
            local,
            pes: node.pes,
            tree: node.settings.tree(),
            node,
            carrier,
            queued: Cell::new(0),
            expedited: 0,
            prioritized: 0,
            next_by_priority: Cell::new(0),
            orders: RefCell::default(),
            counts: Counts::default(),
            buffers: RefCell::default(),
            simulated,
        }
    }

    /// Marks that this PE has work in its own queues.
    #[inline(always)]
    pub(crate) fn queue(&self, bit: u64) {
        self.queued.set(self.queued.get() | bit);
    }

    /// Sends an order about the run to a PE.
    pub(crate) fn tell(&self, to: u32, order: PeOrder) {
        if to == self.rank {
            self.queue(PE_ORDERS);
            self.trace(|tracer| tracer.orders(None));
            if let Some(log) = &self.log {
                log.posts(events::RUN, to, 0);
            }
            return self.orders.borrow_mut().push_back(order);
        }
        self.post(&self.node.mail, (None, 0), to, order, || "an order of the runtime".into());
    }

    /// Sends an order to every PE, from PE 0. Every other PE that receives it calls [`relay`](Self::relay).
    pub(crate) fn tell_all(&self, order: impl Fn() -> PeOrder) {
        self.tree.children(0).for_each(|child| self.tell(child, order()));
        self.tell(0, order());
    }

    /// Forwards an order for every PE to the children of this PE. PE 0 has done so before it receives the order.
    pub(crate) fn relay(&self, order: impl Fn() -> PeOrder) {
        if self.rank != 0 {
            self.tree.children(self.rank).for_each(|child| self.tell(child, order()));
        }
    }

    /// Sends an order about `array` (`None`: about the run) to another PE: through a mailbox, or as a packet with this priority.
    pub(crate) fn post<M, O: Serialize>(
        &self,
        mail: &Mail<M, O>,
        (array, priority): (Option<u16>, i64),
        to: u32,
        order: O,
        what: impl FnOnce() -> String,
    ) {
        match &self.carrier {
            Carrier::Mailboxes | Carrier::Interleaved(_) => {
                self.log_order(array.unwrap_or(events::RUN), to, &order);
                mail.push(self.rank, to, &self.node.bells, |bag| bag.orders.push(order));
            }
            Carrier::Batches(_) if self.shares_memory_with(to) => {
                self.log_order(array.unwrap_or(events::RUN), to, &order);
                let to = to - self.node.first;
                mail.push(self.local, to, &self.node.bells, |bag| bag.orders.push(order));
            }
            Carrier::Batches(post) => {
                let number = self.log_order(events::BATCHES, to, &order);
                let origin = number.map(|number| Origin { pe: self.rank, number });
                if let Err(error) = post.add(to, array, &order, origin) {
                    self.cannot_send(&what(), &error);
                }
            }
            Carrier::Packets(carrier) => {
                debug_assert_ne!(self.rank, to, "an order of a PE to itself is not sent");
                let bytes = self.encoded(&order, what);
                let (mut seconds, mut number) = (0.0, 0);
                if let Some(clock) = &self.simulated {
                    (seconds, number) = clock.packet_leaves(to, bytes.len() as u64);
                }
                carrier.send(Packet { from: self.rank, to, seconds, number, array, priority, bytes });
            }
        }
    }

    /// Whether a PE and this one share memory, so that values for it need no encoding.
    pub(crate) fn shares_memory_with(&self, to: u32) -> bool {
        match &self.carrier {
            Carrier::Mailboxes | Carrier::Interleaved(_) => true,
            Carrier::Packets(_) => false,
            Carrier::Batches(_) => self.node.local_pes().contains(&to),
        }
    }

    /// The batches for other processes, if there are other processes.
    #[inline]
    pub(crate) fn batches(&self) -> Option<&Post> {
        match &self.carrier {
            Carrier::Batches(post) => Some(post),
            _ => None,
        }
    }

    /// Sends the batches for other processes, at the end of a turn.
    #[inline]
    pub(crate) fn dispatch(&self) {
        if let Carrier::Batches(post) = &self.carrier {
            post.dispatch();
        }
    }

    /// Whether no other PE has sent work to this PE; the result may be outdated.
    #[inline(always)]
    pub(crate) fn quiet_outside(&self) -> bool {
        let no_mail = || self.node.bells.quiet(self.local) && !self.node.stopped();
        match &self.carrier {
            Carrier::Mailboxes => no_mail(),
            Carrier::Packets(carrier) => carrier.quiet() && !self.node.stopped(),
            Carrier::Interleaved(order) => order.quiet(no_mail),
            Carrier::Batches(post) => post.may_continue() && no_mail(),
        }
    }

    /// Swaps the mailbox from another thread of this process with an empty bag; false if there is nothing to take.
    #[inline]
    pub(crate) fn take<M, O>(&self, mail: &Mail<M, O>, from: u32, bag: &mut Bag<M, O>) -> bool {
        match &self.carrier {
            Carrier::Interleaved(order) => order.take(mail, from, self.rank, bag),
            _ => mail.take(from, self.local, bag),
        }
    }

    /// The order of deliveries, if it is recorded or repeated.
    #[inline]
    pub(crate) fn interleaved(&self) -> Option<&Interleaved> {
        match &self.carrier {
            Carrier::Interleaved(order) => Some(order),
            _ => None,
        }
    }

    /// Counts messages taken for delivery.
    #[inline]
    pub(crate) fn executed(&self, messages: u64) {
        self.counts.executions.set(self.counts.executions.get().wrapping_add(messages));
    }

    /// Subtracts a message that was kept or forwarded, because it is counted again later. The count may wrap below
    /// zero until the batch of the message is added.
    pub(crate) fn not_executed(&self) {
        self.counts.executions.set(self.counts.executions.get().wrapping_sub(1));
    }

    /// Counts a message to another PE.
    pub(crate) fn sent_away(&self) {
        self.counts.remote.set(self.counts.remote.get() + 1);
    }

    /// Counts an element that leaves.
    pub(crate) fn migrated(&self) {
        self.counts.migrations.set(self.counts.migrations.get() + 1);
    }

    /// Whether an entry of any array has a priority.
    #[inline(always)]
    pub(crate) fn has_priorities(&self) -> bool {
        self.prioritized != 0
    }

    /// Counts an insertion that begins here (1), or has arrived here (-1).
    pub(crate) fn inserts(&self, change: i64) {
        self.counts.inserts.set(self.counts.inserts.get() + change);
    }

    /// The encoding of a value for another PE. An encoding error ends the run.
    pub(crate) fn encoded<V: Serialize>(&self, value: &V, what: impl FnOnce() -> String) -> Vec<u8> {
        codec::encode(value).unwrap_or_else(|error| {
            self.cannot_send(&what(), &error);
            Vec::new()
        })
    }

    #[cold]
    fn cannot_send(&self, what: &str, error: &CodecError) {
        self.fail(format!("cannot send {what} to another PE: {error}"));
    }

    /// A buffer to encode in.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Keeps a buffer for reuse.
    pub(crate) fn return_buffer(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffer.capacity() > 0 && buffers.len() < BUFFERS {
            buffer.clear();
            buffers.push(buffer);
        }
    }

    /// The tracer of this PE, if there is a trace.
    #[inline]
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.simulated.as_ref()?.tracer()
    }

    /// The log of this PE, if what it does in real time is recorded.
    #[inline(always)]
    pub(crate) fn log(&self) -> Option<&EventLog> {
        self.log.as_deref()
    }

    /// Records an order that is sent; returns its number.
    fn log_order<O: Serialize>(&self, channel: u16, to: u32, order: &O) -> Option<u32> {
        self.log.as_ref().map(|log| log.posts(channel, to, codec::size_of(order)))
    }

    /// Executes an order that PE `from` has sent on a channel; `number` if it is known.
    #[inline]
    pub(crate) fn during_order(&self, channel: u16, from: u32, number: Option<u32>, run: impl FnOnce()) {
        match &self.log {
            None => run(),
            Some(log) => {
                log.takes_order(channel, from, number);
                run();
                log.ends_order();
            }
        }
    }

    /// Calls `record` with the tracer, if there is one.
    #[inline]
    pub(crate) fn trace(&self, record: impl FnOnce(&Tracer)) {
        if let Some(tracer) = self.tracer() {
            record(tracer);
        }
    }

    /// Ends the run as failed.
    pub(crate) fn fail(&self, sentence: String) {
        self.node.fail_on(self.rank, Failure::Program(sentence));
    }
}
