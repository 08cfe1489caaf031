//! Chare arrays: the handle a program holds, what all PEs of a process share of an array, and what
//! each PE keeps of it for its senders.

use crate::chare::Chare;
use crate::codec;
use crate::context::PeCx;
use crate::index::{Index, show};
use crate::load::Edges;
use crate::location::{self, Directory, Known, Placement, Residents, Route, place};
use crate::order::Order;
use crate::proxy::{Target, Targets};
use crate::transport::Mail;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// A handle to a chare array: plain data, to be captured, stored in elements and sent in messages.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Array<T> {
    pub(crate) id: u16,
    #[serde(skip)]
    pub(crate) of: PhantomData<fn(T)>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T> std::fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array({})", self.id)
    }
}

impl<T: Chare> Array<T> {
    fn port<'a>(&self, pe: &'a PeCx) -> &'a Port<T> {
        let port: &dyn Any = &*pe.ports[usize::from(self.id)];
        port.downcast_ref().expect("an array handle comes from the setup of its own run")
    }

    /// Sends to one element.
    ///
    /// # Panics
    /// If the index is outside the array's shape.
    #[inline]
    pub fn at<'a>(&self, pe: &'a PeCx, index: T::Index) -> T::Proxy<'a> {
        let port = self.port(pe);
        Target::one(pe, port, port.rank(index)).into()
    }

    /// Sends to every element.
    pub fn all<'a>(&self, pe: &'a PeCx) -> T::Proxies<'a> {
        Targets::all(pe, self.port(pe)).into()
    }

    /// Sends to a section: the elements below the array's shape whose index satisfies `member`.
    ///
    /// Every one of them has to exist, now or later, as for a message to one. `member` is asked about
    /// every index of the array at each call; to reach few elements of many, often, use [`at`](Self::at).
    pub fn only<'a>(&self, pe: &'a PeCx, member: impl Fn(T::Index) -> bool) -> T::Proxies<'a> {
        let port = self.port(pe);
        let (shape, count) = (port.shared.shape, port.shared.count);
        let ranks = (0..count).filter(|&rank| member(T::Index::unrank(rank, shape))).collect();
        Targets::section(pe, port, ranks).into()
    }

    /// Creates an element while the program runs, on the PE where the array's placement puts its
    /// index. Messages to it may be sent at once.
    ///
    /// Created by an element of the same array, it takes part in reductions and load-balancing steps
    /// from the ones its creator takes part in next; created by anything else, from the oldest ones
    /// that are not complete. It hears the broadcasts that its creator, if that is of the same array,
    /// hears next, else those that `main` and others on PE 0 send after its creation; where PEs race,
    /// send the broadcast that starts new elements `at_quiescence`.
    ///
    /// Such an element must not exist; it is enough that it has called `destroy`. If it does and is
    /// found at its home, the run ends with an error, else the new one waits for its end.
    ///
    /// # Panics
    /// If the index is outside the array's shape.
    pub fn insert(&self, pe: &PeCx, index: T::Index, chare: T) {
        let port = self.port(pe);
        assert!(!T::Index::PER_PE, "{} has one element on every PE; no other can be inserted", T::NAME);
        port.insert(pe, port.rank(index), chare);
    }
}

/// A message for an element that was in this slot when it was sent.
pub(crate) struct Item<M> {
    pub(crate) rank: u32,
    pub(crate) slot: u32,
    pub(crate) msg: M,
}

/// An element and what the runtime keeps beside it; what few elements need is behind `extra`.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Slot<T: Chare> {
    pub(crate) rank: u32,
    /// The reduction it contributes to next.
    pub(crate) contributions: u32,
    /// The load-balancing barrier it comes to next.
    pub(crate) syncs: u32,
    /// The broadcast it receives next.
    pub(crate) broadcasts: u32,
    /// Measured ticks since the last load-balancing step.
    pub(crate) load: u64,
    pub(crate) extra: Option<Box<Extra<T::Msg>>>,
    pub(crate) chare: T,
}

/// What all elements of an array do together; what is kept for each is in arrays of this order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Collective {
    /// They contribute.
    Reduction,
    /// They come to a load-balancing step.
    Barrier,
}

/// What few elements need.
#[derive(Serialize, Deserialize)]
pub(crate) struct Extra<M> {
    /// Messages whose guard did not let them in yet, oldest first.
    pub(crate) pending: VecDeque<M>,
    /// Broadcasts it missed on its way and has still to hear, by number.
    pub(crate) missed: BTreeMap<u32, M>,
    /// What is delivered after load balancing.
    pub(crate) resume: Option<M>,
    /// Whom it sent how much.
    pub(crate) edges: Option<Box<Edges>>,
    /// Seconds of work it charged instead of being measured.
    pub(crate) charged: f64,
    /// Its load this period, if it said so itself.
    pub(crate) declared: Option<f64>,
    /// Whether it was pinned by [`Cx::pin`](crate::Cx::pin).
    pub(crate) pinned: bool,
    /// Elements it created since it last contributed, and since it last came to a barrier.
    pub(crate) created: [u32; 2],
    /// Whether it has yet to contribute, and to come to a barrier, for the first time, having been
    /// created by an element.
    pub(crate) fresh: [bool; 2],
}

impl<M> Default for Extra<M> {
    fn default() -> Self {
        Extra {
            pending: VecDeque::new(),
            missed: BTreeMap::new(),
            resume: None,
            edges: None,
            charged: 0.0,
            declared: None,
            pinned: false,
            created: [0; 2],
            fresh: [false; 2],
        }
    }
}

impl<T: Chare> Slot<T> {
    pub(crate) fn new(rank: u32, chare: T) -> Self {
        Slot { rank, contributions: 0, syncs: 0, broadcasts: 0, load: 0, extra: None, chare }
    }

    pub(crate) fn extra(&mut self) -> &mut Extra<T::Msg> {
        self.extra.get_or_insert_with(Box::default)
    }

    /// The first broadcast that it neither had nor carries with it.
    pub(crate) fn missing(&self) -> u32 {
        let carried = self.extra.as_ref().map_or(0, |extra| extra.missed.len() as u32);
        self.broadcasts.wrapping_add(carried)
    }
}

/// What all PEs of a process share of an array.
pub(crate) struct Shared<T: Chare> {
    pub(crate) shape: T::Index,
    /// Ranks below the shape.
    pub(crate) count: u32,
    pub(crate) placement: Placement,
    pub(crate) residents: OnceLock<Residents>,
    /// The place of every rank; empty where PEs have directories instead.
    pub(crate) places: Box<[AtomicU64]>,
    pub(crate) mail: Mail<Item<T::Msg>, Order<T>>,
}

/// An array as one PE's senders see it.
pub(crate) struct Port<T: Chare> {
    pub(crate) id: u16,
    /// The array's bit in [`PeCx::queued`].
    pub(crate) bit: u64,
    pub(crate) shared: Arc<Shared<T>>,
    /// Messages from this PE to its own elements.
    pub(crate) local: RefCell<VecDeque<Item<T::Msg>>>,
    /// Orders from this PE to itself.
    pub(crate) orders: RefCell<VecDeque<Order<T>>>,
    pub(crate) directory: Option<RefCell<Directory>>,
    /// What the element that runs wants to be told after load balancing.
    pub(crate) resume: Cell<Option<T::Msg>>,
    /// Elements the element that runs, of this very array, creates.
    pub(crate) created: RefCell<Vec<(u32, T)>>,
    pub(crate) contributions: crate::contribute::Contributions<T::Msg>,
    /// The number of the next broadcast; PE 0 counts.
    pub(crate) broadcasts: Cell<u32>,
}

/// To how many PEs each relays a broadcast; Charm++'s spanning trees branch as often.
const BRANCHES: u64 = 4;

/// What the runtime asks of a port whose chare it does not know.
pub(crate) trait AnyPort: Any {
    /// The element of array `source` that ran has contributed to this array.
    fn contributed(&self, pe: &PeCx, by: crate::contribute::Contributor);
    /// Whether reductions of array `source` to this one are complete now; PE 0 asks.
    fn complete(&self, pe: &PeCx, source: u16) -> bool;
    /// Sends what this PE has collected to PE 0.
    fn flush(&self, pe: &PeCx);
    /// What reductions wait here, for a person.
    fn waiting(&self) -> Vec<String>;
}

impl<T: Chare> Port<T> {
    /// The rank of an index.
    #[inline(always)]
    pub(crate) fn rank(&self, index: T::Index) -> u32 {
        match index.rank(self.shared.shape) {
            Some(rank) => rank,
            None => self.no_such(index),
        }
    }

    #[cold]
    #[inline(never)]
    fn no_such(&self, index: T::Index) -> ! {
        let shape = show(self.shared.shape);
        panic!(
            "{}{} does not exist, its array has the shape {shape}; elements are not created by sending to them",
            T::NAME,
            show(index)
        )
    }

    /// The name of an element, for people.
    pub(crate) fn name(&self, rank: u32) -> String {
        format!("{}{}", T::NAME, show(T::Index::unrank(rank, self.shared.shape)))
    }

    /// The PE where the element is (or would be) created.
    #[inline]
    pub(crate) fn home(&self, pe: &PeCx, rank: u32) -> u32 {
        self.shared.placement.pe(rank, self.shared.count, pe.pes)
    }

    /// Sends a message to an element, wherever it is.
    #[inline(always)]
    pub(crate) fn send(&self, pe: &PeCx, rank: u32, msg: T::Msg) {
        if let Some(at) = self.shared.places.get(rank as usize) {
            let at = at.load(Relaxed);
            if location::pe_of(at) == pe.rank {
                return self.enqueue(pe, Item { rank, slot: at as u32, msg });
            }
            return self.send_away(pe, at, rank, msg);
        }
        self.send_by_directory(pe, rank, msg);
    }

    /// Queues a message for an element of this PE.
    #[inline(always)]
    pub(crate) fn enqueue(&self, pe: &PeCx, item: Item<T::Msg>) {
        pe.queued.set(pe.queued.get() | self.bit);
        self.local.borrow_mut().push_back(item);
    }

    /// The same, where it may be recorded.
    pub(crate) fn keep(&self, pe: &PeCx, item: Item<T::Msg>) {
        if let Some(tracer) = pe.tracer() {
            tracer.queues(self.id, self.local.borrow().len());
        }
        self.enqueue(pe, item);
    }

    #[inline(never)]
    fn send_away(&self, pe: &PeCx, at: u64, rank: u32, msg: T::Msg) {
        pe.counts.remote.set(pe.counts.remote.get() + 1);
        let item = Item { rank, slot: at as u32, msg };
        self.shared.mail.push(pe.rank, location::pe_of(at), &pe.node.bells, |bag| bag.add(item));
    }

    #[inline(never)]
    fn send_by_directory(&self, pe: &PeCx, rank: u32, msg: T::Msg) {
        let directory = self.directory.as_ref().expect("an array has places or a directory");
        let route = directory.borrow().find(rank, self.home(pe, rank));
        match route {
            Route::Here(slot) => self.keep(pe, Item { rank, slot, msg }),
            // The message waits here, at its home or where the element comes next.
            Route::Hold => self.keep(pe, Item { rank, slot: location::IN_TRANSIT, msg }),
            Route::There(Known { pe: to, epoch, .. }) => {
                pe.counts.remote.set(pe.counts.remote.get() + 1);
                self.post(pe, to, Order::Message { rank, epoch, origin: pe.rank, msg });
            }
        }
    }

    /// Gives an order to a PE.
    pub(crate) fn post(&self, pe: &PeCx, to: u32, order: Order<T>) {
        if to == pe.rank {
            pe.queued.set(pe.queued.get() | self.bit);
            pe.ordered(Some(self.id));
            return self.orders.borrow_mut().push_back(order);
        }
        pe.post(&self.shared.mail, Some(self.id), to, order, || format!("a message to {}", T::NAME));
    }

    /// Sends a message to every element: PE 0 numbers it, every PE delivers it to its elements that have
    /// not had it.
    pub(crate) fn broadcast(&self, pe: &PeCx, msg: T::Msg) {
        // PE 0 tells itself, too: elements it admitted before hear it.
        self.post(pe, 0, Order::Broadcast { msg });
    }

    /// Numbers a broadcast, on PE 0, and sends it to every PE.
    pub(crate) fn spread(&self, pe: &PeCx, msg: T::Msg) {
        let number = self.broadcasts.get();
        self.broadcasts.set(number.wrapping_add(1));
        if pe.shares_memory() {
            for to in 1..pe.pes {
                self.post(pe, to, Order::All { number, msg: T::copy(&msg) });
            }
        }
        self.post(pe, 0, Order::All { number, msg });
    }

    /// Relays a broadcast, where PEs share no memory, to those after this one in a tree whose root is PE 0.
    pub(crate) fn relay(&self, pe: &PeCx, number: u32, msg: &T::Msg) {
        if pe.shares_memory() {
            return;
        }
        let first = u64::from(pe.rank) * BRANCHES + 1;
        for to in (first..first + BRANCHES).take_while(|&to| to < u64::from(pe.pes)) {
            self.post(pe, to as u32, Order::All { number, msg: T::copy(msg) });
        }
    }

    fn insert(&self, pe: &PeCx, rank: u32, chare: T) {
        if pe.running.get().is_some_and(|running| running.array == self.id) {
            // Its creator's slot is in use: the manager takes over after the delivery.
            self.created.borrow_mut().push((rank, chare));
            pe.after.set(pe.after.get() | crate::context::after::CREATED);
        } else {
            self.post(pe, 0, Order::Admit { slot: Box::new(Slot::new(rank, chare)) });
        }
    }

    /// Notes that an element is in this slot of this PE.
    pub(crate) fn settle(&self, pe: &PeCx, rank: u32, slot: u32, epoch: u32) {
        match &self.directory {
            None => self.shared.places[rank as usize].store(place(pe.rank, slot), Relaxed),
            Some(directory) => directory.borrow_mut().arrived(rank, slot, epoch),
        }
    }

    /// Notes that an element of this PE has another slot.
    pub(crate) fn shift(&self, pe: &PeCx, rank: u32, slot: u32) {
        match &self.directory {
            None => self.shared.places[rank as usize].store(place(pe.rank, slot), Relaxed),
            Some(directory) => directory.borrow_mut().shifted(rank, slot),
        }
    }

    /// Notes that an element leaves this PE for another, or ends and `to` is its home; returns which of
    /// its moves that is.
    pub(crate) fn unsettle(&self, rank: u32, to: u32, gone: bool) -> u32 {
        match &self.directory {
            None => {
                let slot = if gone { location::NOBODY } else { location::IN_TRANSIT };
                self.shared.places[rank as usize].store(place(to, slot), Relaxed);
                0
            }
            Some(directory) => directory.borrow_mut().left(rank, to, gone),
        }
    }

    /// A value in bytes that another PE encoded.
    pub(crate) fn decoded<V: serde::de::DeserializeOwned>(&self, pe: &PeCx, bytes: &[u8]) -> Option<V> {
        match codec::decode(bytes) {
            Ok(value) => Some(value),
            Err(error) => {
                pe.fail(format!("{} was sent between PEs and cannot be read back: {error}", T::NAME));
                None
            }
        }
    }
}
