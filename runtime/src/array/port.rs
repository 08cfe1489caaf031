//! An array: the part that all PEs of a process share, and the part of each PE.

use super::callback;
use super::chare::Chare;
use super::contribute::Contributions;
use crate::checkpoint::{ArrayHead, Reason, Text};
use crate::codec;
use crate::events::EventLog;
use crate::inbox::Mail;
use crate::index::{Index, show};
use crate::keyed::Keyed;
use crate::location::{self, Directory, Known, Placement, Residents, Route};
use crate::order::{Order, Receivers};
use crate::pe::{AnyPort, Contributor, Outbox, PeCx, Waiter, WaitsForQuiescence, array_bit, post_delivery};
use crate::section::Source;
use crate::slot::{Item, Slot};
use crate::waiting::OpenReduction;
use parking_lot::Mutex;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// An element of a chare.
pub(crate) type ChareSlot<T> = Slot<T, <T as Chare>::Msg, <T as Chare>::Flow>;

/// An order about an array of a chare.
pub(crate) type ChareOrder<T> = Order<<T as Chare>::Msg, ChareSlot<T>>;

/// The mailboxes of an array of a chare.
pub(crate) type ChareMail<T> = Mail<Item<<T as Chare>::Msg>, ChareOrder<T>>;

/// The part of an array that all PEs of a process share.
pub(crate) struct Shared<T: Chare> {
    pub(crate) shape: T::Index,
    /// The number of indices below the shape.
    pub(crate) count: u32,
    pub(crate) placement: Placement,
    pub(crate) residents: OnceLock<Residents>,
    /// The place of every rank; empty where PEs have directories instead.
    pub(crate) places: Box<[AtomicU64]>,
    pub(crate) mail: ChareMail<T>,
    /// In a restarted run with another number of PEs or processes: the elements of `regroup` by rank, until their PE takes them.
    pub(crate) regrouped: Mutex<Option<Vec<Option<ChareSlot<T>>>>>,
}

impl<T: Chare> Shared<T> {
    /// The array as checkpoints describe it.
    pub(crate) fn head(&self, bound_to: Option<u16>) -> ArrayHead {
        ArrayHead {
            name: T::NAME.into(),
            parameters: codec::parameters::<T>().as_str().into(),
            shape: show(self.shape).as_str().into(),
            entries: Text::list(T::ENTRIES),
            fields: Text::list(codec::fields::<T>()),
            waits: Text::list(codec::fields::<T::Flow>()),
            bound_to,
            count: self.count,
        }
    }
}

/// An element that the running element, of the same array, has created.
pub(crate) struct Created<T> {
    /// The PE on which it begins.
    pub(crate) on: u32,
    pub(crate) rank: u32,
    pub(crate) chare: T,
    /// How often the running element had contributed to reductions of the array before, in this entry.
    pub(crate) contributed: usize,
    /// Whether it had called `at_sync` before, in this entry.
    pub(crate) synced: bool,
    /// The number of its first reduction and that of its first load-balancing barrier, if its creator has taken part in them since.
    pub(crate) first: [Option<u32>; 2],
}

/// The part of an array on one PE.
pub(crate) struct Port<T: Chare> {
    pub(crate) id: u16,
    /// The array's bit in [`Outbox::queued`].
    pub(crate) bit: u64,
    pub(crate) shared: Arc<Shared<T>>,
    /// Messages from this PE to its own elements. A vector, because it is only filled until it runs as a whole, and a message is written
    /// into it in place.
    pub(crate) local: RefCell<Vec<Item<T::Msg>>>,
    /// Orders from this PE to itself.
    pub(crate) orders: RefCell<Vec<ChareOrder<T>>>,
    pub(crate) directory: Option<RefCell<Directory>>,
    /// The message of the running element to deliver after load balancing.
    pub(crate) resume: Cell<Option<T::Msg>>,
    /// Elements that the running element, of this array, creates.
    pub(crate) created: RefCell<Vec<Created<T>>>,
    pub(crate) contributions: Contributions<T::Msg>,
    /// Messages that wait for quiescence, oldest first.
    pub(crate) quiet: RefCell<VecDeque<(Receivers, T::Msg)>>,
    /// Messages that wait for a time, by number.
    timed: RefCell<Keyed<(Receivers, T::Msg)>>,
    /// On PE 0: the number of the next broadcast.
    pub(crate) broadcasts: Cell<u32>,
    /// In an array of [`Setup::chares`](crate::Setup::chares): how many indices this PE has used, or skipped after a restart.
    pub(crate) used: Option<Cell<u32>>,
}

impl<T: Chare> Port<T> {
    /// The array with this number, if it is an array of this chare.
    #[inline]
    pub(crate) fn of(pe: &PeCx, id: u16) -> Option<&Self> {
        let port = pe.ports.get(usize::from(id)).map(|port| -> &dyn Any { &**port });
        port.and_then(<dyn Any>::downcast_ref)
    }

    pub(crate) fn new(
        id: u16,
        shared: Arc<Shared<T>>,
        directory: Option<Directory>,
        used: Option<u32>,
    ) -> Self {
        Port {
            id,
            bit: array_bit(id),
            shared,
            local: RefCell::default(),
            orders: RefCell::default(),
            directory: directory.map(RefCell::new),
            resume: Cell::new(None),
            created: RefCell::default(),
            contributions: Contributions::default(),
            quiet: RefCell::default(),
            timed: RefCell::default(),
            broadcasts: Cell::new(0),
            used: used.map(Cell::new),
        }
    }

    /// The rank of an index.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn rank(&self, index: T::Index) -> u32 {
        match index.rank(self.shared.shape) {
            Some(rank) => rank,
            None => self.panic_no_index(index),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn panic_no_index(&self, index: T::Index) -> ! {
        let Shared { shape, count, .. } = *self.shared;
        let end = match count {
            0 => "there is no index".into(),
            _ => format!(
                "indices are {} to {}",
                show(T::Index::unrank(0, shape)),
                show(T::Index::unrank(count - 1, shape))
            ),
        };
        panic!("{}{} is outside the array, whose shape is {}; {end}", T::NAME, show(index), show(shape))
    }

    /// The name of an element, for messages to users.
    pub(crate) fn name(&self, rank: u32) -> String {
        format!("{}{}", T::NAME, show(T::Index::unrank(rank, self.shared.shape)))
    }

    /// Sends a message to an element on any PE.
    #[inline(always)]
    pub(crate) fn send(&self, out: &Outbox, rank: u32, msg: T::Msg) {
        self.send_with(out, rank, || msg);
    }

    /// Sends the message that `make` makes to an element on any PE. Only in this function is `make` passed on: what it contains would
    /// be in memory if other code had its address.
    #[inline(always)]
    pub(crate) fn send_with(&self, out: &Outbox, rank: u32, make: impl FnOnce() -> T::Msg) {
        if let Some(at) = self.shared.places.get(rank as usize) {
            let at = at.load(Relaxed);
            if location::pe_of(at) == out.rank {
                return self.enqueue_with(out, || Item { rank, slot: at as u32, msg: make() });
            }
            return self.send_away(out, at, rank, make());
        }
        self.send_by_directory(out, rank, make());
    }

    /// Like [`send`](Self::send), for messages that are not those of a running element: records the message, if what this PE
    /// does in real time is recorded.
    pub(crate) fn send_any(&self, out: &Outbox, rank: u32, msg: T::Msg) {
        match out.log() {
            None => self.send(out, rank, msg),
            Some(log) => {
                let bytes = codec::size(&msg);
                self.send_logged(out, log, rank, msg, bytes);
            }
        }
    }

    /// Sends a message of this encoded size to an element on any PE, and records it.
    pub(crate) fn send_logged(&self, out: &Outbox, log: &EventLog, rank: u32, msg: T::Msg, bytes: u64) {
        let Some(at) = self.shared.places.get(rank as usize) else {
            return self.send_by_directory(out, rank, msg);
        };
        let to = location::pe_of(at.load(Relaxed));
        let item = Item { rank, slot: log.sends(self.id, rank, to, bytes), msg };
        if to == out.rank {
            return self.enqueue(out, item);
        }
        out.sent_away();
        self.shared.mail.push(out.rank, to, &out.node.bells, |bag| bag.add(item));
    }

    /// Queues a message for an element of this PE.
    #[inline(always)]
    pub(crate) fn enqueue(&self, out: &Outbox, item: Item<T::Msg>) {
        self.enqueue_with(out, || item);
    }

    /// Queues the message that `make` makes for an element of this PE.
    #[inline(always)]
    fn enqueue_with(&self, out: &Outbox, make: impl FnOnce() -> Item<T::Msg>) {
        out.queue(self.bit);
        self.local.borrow_mut().push(make());
    }

    /// Queues a message for an element of this PE and records it, if the run is recorded.
    pub(crate) fn enqueue_traced(&self, out: &Outbox, mut item: Item<T::Msg>) {
        out.trace(|tracer| tracer.queues(self.id, self.local.borrow().len()));
        if let Some(log) = out.log().filter(|_| item.slot != location::AFTER_SYNC) {
            item.slot = log.sends(self.id, item.rank, out.rank, codec::size(&item.msg));
        }
        self.enqueue(out, item);
    }

    #[inline(never)]
    fn send_away(&self, out: &Outbox, at: u64, rank: u32, msg: T::Msg) {
        out.sent_away();
        let item = Item { rank, slot: at as u32, msg };
        self.shared.mail.push(out.rank, location::pe_of(at), &out.node.bells, |bag| bag.add(item));
    }

    #[inline(never)]
    fn send_by_directory(&self, out: &Outbox, rank: u32, msg: T::Msg) {
        match self.find(out, rank) {
            Route::Here(slot) => self.enqueue_traced(out, Item { rank, slot, msg }),
            // The message waits on this PE: the element will be created here or is migrating here.
            Route::Hold => self.enqueue_traced(out, Item { rank, slot: location::IN_TRANSIT, msg }),
            Route::There(Known { pe: to, epoch, .. }) => {
                out.sent_away();
                if let Some(log) = out.log() {
                    log.addresses(self.id, rank);
                }
                self.post(out, to, Order::Message { rank, epoch, origin: out.rank, msg });
            }
        }
    }

    /// Sends a message to all its receivers.
    pub(crate) fn send_to(&self, pe: &PeCx, to: &Receivers, msg: T::Msg) {
        match to {
            Receivers::One(rank) => self.send_any(&pe.out, *rank, msg),
            Receivers::All => self.broadcast(&pe.out, msg),
            Receivers::Section(members) => self.send_to_section(pe, members, msg),
        }
    }

    /// Keeps a message until nothing is in flight, and until the run has saved itself if it `saves`.
    pub(super) fn postpone(&self, pe: &PeCx, to: Receivers, msg: T::Msg, saves: bool) {
        self.keep_until_quiet(pe, to, msg, saves);
        if let Some(saver) = pe.out.node.saver.as_ref().filter(|_| saves) {
            saver.want(Reason::Program);
        }
    }

    /// Keeps a message for a time.
    pub(super) fn keep_for(&self, pe: &PeCx, to: Receivers, msg: T::Msg, duration: Duration) {
        let number = pe.waits(self.id, duration);
        self.timed.borrow_mut().get_or_insert(number, (to, msg));
    }

    /// Keeps a message until nothing is in flight.
    pub(crate) fn when_quiet(&self, pe: &PeCx, to: Receivers, msg: T::Msg) {
        self.keep_until_quiet(pe, to, msg, false);
    }

    fn keep_until_quiet(&self, pe: &PeCx, to: Receivers, msg: T::Msg, saves: bool) {
        let asked = pe.out.node.quiescence.wait();
        pe.collectives.quiet.borrow_mut().push(WaitsForQuiescence {
            asked,
            waiter: Waiter::Message(self.id),
            saves,
        });
        self.quiet.borrow_mut().push_back((to, msg));
    }

    /// Sends an order to a PE.
    pub(crate) fn post(&self, out: &Outbox, to: u32, order: ChareOrder<T>) {
        if to == out.rank {
            out.queue(self.bit);
            out.trace(|tracer| tracer.orders(Some(self.id)));
            if let Some(log) = out.log() {
                log.posts(self.id, to, 0);
            }
            return self.orders.borrow_mut().push(order);
        }
        let priority = match &order {
            Order::Message { msg, .. } if out.has_priorities() => T::priority(msg),
            Order::Multicast(multicast) if out.has_priorities() => T::priority(&multicast.1),
            _ => 0,
        };
        out.post(&self.shared.mail, (Some(self.id), priority), to, order, || {
            format!("a message to {}", T::NAME)
        });
    }

    /// Sends a message to every element: PE 0 numbers the broadcast, and every PE delivers it to those of its elements
    /// that have not received it.
    pub(crate) fn broadcast(&self, out: &Outbox, msg: T::Msg) {
        // PE 0 also sends itself an order: elements whose `Admit` order is queued before it receive the broadcast.
        self.post(out, 0, Order::Broadcast(msg));
    }

    /// Numbers a broadcast, on PE 0, and sends it to every PE.
    pub(crate) fn distribute(&self, out: &Outbox, msg: T::Msg) {
        let number = self.broadcasts.get();
        self.broadcasts.set(number.wrapping_add(1));
        for to in out.tree.children(0) {
            self.post(out, to, Order::All { number, msg: T::copy(&msg) });
        }
        self.post(out, 0, Order::All { number, msg });
    }

    /// Forwards a broadcast to the children of this PE. PE 0 has done so in `distribute`.
    pub(crate) fn relay(&self, out: &Outbox, number: u32, msg: &T::Msg) {
        if out.rank != 0 {
            for to in out.tree.children(out.rank) {
                self.post(out, to, Order::All { number, msg: T::copy(msg) });
            }
        }
    }

    /// Creates an element on PE `on`.
    pub(super) fn insert(&self, pe: &PeCx, on: u32, rank: u32, chare: T) {
        pe.out.inserts(1);
        if pe.delivery.running.get().is_some_and(|running| running.array == self.id) {
            // The slot of the creator is in use, so the manager creates the element after the delivery.
            let (contributed, synced) = (pe.delivery.offers.of_array(), pe.delivery.has(post_delivery::SYNC));
            let created = Created { on, rank, chare, contributed, synced, first: [None; 2] };
            self.created.borrow_mut().push(created);
            pe.delivery.later(post_delivery::CREATED);
        } else {
            self.post(&pe.out, 0, Order::Admit { on, slot: Box::new(Slot::new(rank, chare)) });
        }
    }

    /// Decodes a value from another PE.
    pub(crate) fn decoded<V: serde::de::DeserializeOwned>(&self, out: &Outbox, bytes: &[u8]) -> Option<V> {
        match codec::decode(bytes) {
            Ok(value) => Some(value),
            Err(error) => {
                out.fail(codec::not_decoded(
                    &format!("a message to {} or an element of it from another PE", T::NAME),
                    &error,
                ));
                None
            }
        }
    }
}

impl<T: Chare> AnyPort for Port<T> {
    fn contributed(&self, pe: &PeCx, by: Contributor) {
        self.add_contribution(pe, by);
    }

    fn call_back(
        &self,
        pe: &PeCx,
        entry: u16,
        to: &Receivers,
        argument: &mut dyn Any,
        contributes: bool,
    ) -> Result<(), String> {
        callback::receive(self, pe, entry, to, argument, contributes)
    }

    fn complete(&self, pe: &PeCx, source: u16) -> bool {
        self.complete_reductions(pe, source)
    }

    fn is_reducing(&self, source: Source, round: u32) -> bool {
        self.has_total(source, round)
    }

    fn flush(&self, pe: &PeCx) {
        self.flush_contributions(pe);
    }

    fn found_quiet(&self, pe: &PeCx) {
        let next = self.quiet.borrow_mut().pop_front();
        if let Some((to, msg)) = next {
            self.send_to(pe, &to, msg);
        }
    }

    fn is_due(&self, pe: &PeCx, number: u64) {
        let due = self.timed.borrow_mut().remove(number);
        if let Some((to, msg)) = due {
            self.send_to(pe, &to, msg);
        }
    }

    fn next_broadcast(&self) -> u32 {
        self.broadcasts.get()
    }

    fn head(&self, bound_to: Option<u16>) -> ArrayHead {
        self.shared.head(bound_to)
    }

    fn meet(&self, out: &Outbox, rank: u32) {
        self.post(out, out.rank, Order::Met(rank));
    }

    fn open_reductions(&self, pe: &PeCx) -> Vec<OpenReduction> {
        self.incomplete_reductions(pe)
    }
}
