//! What code sees of the runtime: [`PeCx`] on a PE, [`Cx`] inside an entry method.

use crate::array::{AnyPort, Array, Port};
use crate::chare::{Chare, Synced};
use crate::clock::{Ticker, VirtualClock};
use crate::codec;
use crate::index::{Index, Pe};
use crate::load::{Edges, element_key};
use crate::machine::Uncharged;
use crate::node::{Failure, Node};
use crate::order::PeOrder;
use crate::proxy::{Target, Targets};
use crate::reduction::Ledger;
use crate::reply::{Parked, Reply};
use crate::sync::Steps;
use crate::tracer::Tracer;
use crate::transport::Carrier;
use serde::{Serialize, de::DeserializeOwned};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

/// What there is to do after a delivery, a bit each; the first two stand for what is recorded, and
/// are there as long as it is.
pub(crate) mod after {
    pub(crate) const LOAD: u16 = 1;
    pub(crate) const COMM: u16 = 1 << 1;
    pub(crate) const CONTRIBUTED: u16 = 1 << 2;
    pub(crate) const CREATED: u16 = 1 << 3;
    pub(crate) const SYNC: u16 = 1 << 4;
    pub(crate) const MIGRATES: u16 = 1 << 5;
    pub(crate) const ENDS: u16 = 1 << 6;
    pub(crate) const PIN: u16 = 1 << 7;
    pub(crate) const CHARGED: u16 = 1 << 8;
    pub(crate) const DECLARED: u16 = 1 << 9;
    pub(crate) const MEASURE: u16 = 1 << 10;
    /// A trace is told of executions and sends.
    pub(crate) const TRACED: u16 = 1 << 11;
    /// The clock of a simulated PE moves by what a delivery took here.
    pub(crate) const TIMED: u16 = 1 << 12;
    /// What a simulated machine is told, whatever is measured.
    pub(crate) const TOLD: u16 = TRACED | TIMED;
    /// Whatever is not recording.
    pub(crate) const WORK: u16 = !(LOAD | COMM | TOLD);
}

/// The bit of [`PeCx::queued`] that stands for orders about the run; arrays share the others.
pub(crate) const PE_ORDERS: u64 = 1 << 63;

/// How many arrays have a bit of their own; with more, they share.
pub(crate) const ARRAY_BITS: usize = 63;

/// The bit of an array.
pub(crate) fn array_bit(id: u16) -> u64 {
    1 << (usize::from(id) % ARRAY_BITS)
}

/// The element that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) array: u16,
    pub(crate) entry: u16,
    pub(crate) rank: u32,
}

/// Nobody runs; packed like [`Running`].
const NOBODY: u64 = u64::MAX;

/// The element that runs, in one word.
pub(crate) struct RunningCell(Cell<u64>);

impl RunningCell {
    #[inline(always)]
    pub(crate) fn set(&self, array: u16, entry: u16, rank: u32) {
        self.0.set(u64::from(array) << 48 | u64::from(entry) << 32 | u64::from(rank));
    }

    pub(crate) fn nobody(&self) {
        self.0.set(NOBODY);
    }

    pub(crate) fn get(&self) -> Option<Running> {
        let word = self.0.get();
        (word != NOBODY).then_some(Running {
            array: (word >> 48) as u16,
            entry: (word >> 32) as u16,
            rank: word as u32,
        })
    }
}

/// Who takes part in the collectives of an array; PE 0 knows.
#[derive(Debug, Default)]
pub(crate) struct Roll {
    pub(crate) reductions: Ledger,
    pub(crate) syncs: Ledger,
}

/// What a PE counts for the report.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) executions: Cell<u64>,
    pub(crate) remote: Cell<u64>,
    pub(crate) migrations: Cell<u64>,
}

/// A PE as the code that runs on it sees it: what sends need, and what there is to know of the run.
///
/// `main` and parked closures get one; inside an entry method [`Cx`] dereferences to it.
pub struct PeCx {
    pub(crate) rank: u32,
    pub(crate) pes: u32,
    pub(crate) node: Arc<Node>,
    pub(crate) carrier: Carrier,
    pub(crate) ports: Vec<Rc<dyn AnyPort>>,
    pub(crate) infos: Vec<ArrayInfo>,
    /// Values of [`Setup::shared`](crate::Setup::shared), by id.
    pub(crate) shared: Vec<Option<Arc<dyn Any + Send + Sync>>>,
    /// What there is to do after the delivery in progress.
    pub(crate) after: Cell<u16>,
    /// What [`after`] goes back to.
    pub(crate) recording: Cell<u16>,
    pub(crate) running: RunningCell,
    /// A bit per array with messages or orders of this PE for itself.
    pub(crate) queued: Cell<u64>,
    /// The bits of those among them that come first.
    pub(crate) expedited: u64,
    pub(crate) orders: RefCell<VecDeque<PeOrder>>,
    pub(crate) contributed: crate::contribute::Offers,
    /// Whom the element that runs sent how much; taken from its slot meanwhile.
    pub(crate) edges: Cell<Option<Box<Edges>>>,
    /// Whom this PE itself sent how much.
    pub(crate) own_edges: RefCell<Edges>,
    pub(crate) move_to: Cell<u32>,
    pub(crate) pin: Cell<bool>,
    pub(crate) seconds: Cell<f64>,
    pub(crate) ticker: Ticker,
    pub(crate) steps: Steps,
    pub(crate) parked: RefCell<Parked>,
    /// Sends that wait for quiescence, with the number of quiescences that had been found before.
    pub(crate) quiet: RefCell<Vec<(u64, Task)>>,
    pub(crate) rolls: RefCell<Vec<Roll>>,
    pub(crate) counts: Counts,
    /// Buffers to encode migrating elements in.
    pub(crate) buffers: RefCell<Vec<Vec<u8>>>,
}

/// What is known of an array without knowing its chare.
#[derive(Clone, Debug)]
pub(crate) struct ArrayInfo {
    pub(crate) name: &'static str,
    pub(crate) entries: &'static [&'static str],
    pub(crate) sync: bool,
    pub(crate) expedited: bool,
    pub(crate) count: u32,
    pub(crate) show: fn(&dyn AnyPort, u32) -> String,
}

/// Something to be done on a PE later: `main`, or a send that waits for quiescence.
pub(crate) type Task = Box<dyn FnOnce(&PeCx)>;

/// Buffers beyond this many are not kept.
const BUFFERS: usize = 64;

impl PeCx {
    /// The context of one PE, before its arrays are known.
    pub(crate) fn new(rank: u32, node: Arc<Node>, carrier: Carrier, tracer: Option<Tracer>) -> Self {
        let settings = &node.settings;
        let recording = settings.recording();
        let ticker = match &settings.simulation {
            None => Ticker::real(settings.balances()),
            Some(it) => Ticker::Virtual(Box::new(VirtualClock::new(
                it.speeds_of(rank),
                it.uncharged == Uncharged::Measured,
                tracer,
            ))),
        };
        PeCx {
            rank,
            pes: node.pes,
            carrier,
            ports: Vec::new(),
            infos: Vec::new(),
            shared: Vec::new(),
            after: Cell::new(recording),
            recording: Cell::new(recording),
            running: RunningCell(Cell::new(NOBODY)),
            queued: Cell::new(0),
            expedited: 0,
            orders: RefCell::default(),
            contributed: Default::default(),
            edges: Cell::new(None),
            own_edges: RefCell::default(),
            move_to: Cell::new(0),
            pin: Cell::new(false),
            seconds: Cell::new(0.0),
            ticker,
            steps: Steps::default(),
            parked: RefCell::default(),
            quiet: RefCell::default(),
            rolls: RefCell::default(),
            counts: Counts::default(),
            buffers: RefCell::default(),
            node,
        }
    }

    /// This PE.
    pub fn here(&self) -> Pe {
        Pe(self.rank)
    }

    /// How many PEs there are.
    pub fn pes(&self) -> usize {
        self.pes as usize
    }

    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.node.settings.seed
    }

    /// Parks a closure on this PE; the [`Reply`] it returns is plain data that anybody, anywhere, can
    /// send a value to, once.
    ///
    /// For libraries that must answer a client they do not know: the client hands the `Reply` over.
    pub fn reply<V>(&self, answer: impl FnOnce(&PeCx, V) + 'static) -> Reply<V>
    where
        V: Serialize + DeserializeOwned + Send + 'static,
    {
        let parked = self.parked.borrow_mut().park(answer);
        Reply { pe: self.rank, parked, of: PhantomData }
    }

    /// Switches the measuring of load and communication on this PE off or on again, from the next
    /// delivery on.
    ///
    /// Has no effect where nothing is measured because no balancer and no dump asks for it.
    pub fn measure(&self, on: bool) {
        self.steps.measure(on, self.ticker.now());
        let settings = &self.node.settings;
        self.recording.set(if on { settings.recording() } else { settings.told() });
        if self.running().is_some() {
            self.after.set(self.after.get() | after::MEASURE);
        } else {
            self.after.set(self.recording.get());
        }
    }

    /// Counts messages that came up for delivery ..
    #[inline]
    pub(crate) fn executed(&self, messages: u64) {
        self.counts.executions.set(self.counts.executions.get().wrapping_add(messages));
    }

    /// .. but for one that was kept or passed on: its time comes again. The count may pass below zero
    /// until the others of its batch are added.
    pub(crate) fn not_executed(&self) {
        self.counts.executions.set(self.counts.executions.get().wrapping_sub(1));
    }

    /// The element that runs.
    pub(crate) fn running(&self) -> Option<Running> {
        self.running.get()
    }

    /// The bits of expedited arrays; those who share one come first, too.
    pub(crate) fn expedited_bits(&self) -> u64 {
        let expedited = (0..).zip(&self.infos).filter(|(_, info)| info.expedited);
        expedited.fold(0, |bits, (id, _)| bits | array_bit(id))
    }

    /// The name of an array, for people.
    pub(crate) fn name(&self, array: u16) -> &'static str {
        self.infos.get(usize::from(array)).map_or("?", |info| info.name)
    }

    /// Records a message of `bytes` bytes to an element, for a trace and as communication; what an element
    /// sends itself is none.
    #[inline(never)]
    pub(crate) fn record(&self, to: u64, bytes: u64) {
        if let Some(tracer) = self.tracer() {
            tracer.sends((to >> 32) as u16, to as u32, bytes);
        }
        if self.after.get() & after::COMM == 0 {
            return;
        }
        match self.running.get() {
            Some(running) if element_key(running.array, running.rank) == to => {}
            Some(_) => {
                let mut edges = self.edges.take().unwrap_or_default();
                edges.add(to, bytes);
                self.edges.set(Some(edges));
            }
            None => self.own_edges.borrow_mut().add(to, bytes),
        }
    }

    /// Keeps a send until nothing is in flight.
    pub(crate) fn when_quiet(&self, send: Task) {
        let round = self.node.quiescence.wait();
        self.quiet.borrow_mut().push((round, send));
    }

    /// Quiescence has been found for the `round`-th time: sends what had been waiting for it.
    pub(crate) fn found_quiet(&self, round: u64) {
        let mut quiet = self.quiet.borrow_mut();
        let (now, later) = quiet.drain(..).partition(|(asked, _)| *asked < round);
        *quiet = later;
        drop(quiet);
        let now: Vec<(u64, Task)> = now;
        self.node.quiescence.served(now.len());
        for (_, send) in now {
            send(self);
        }
    }

    /// Gives an order about the run to a PE.
    pub(crate) fn tell(&self, to: u32, order: PeOrder) {
        if to == self.rank {
            self.queued.set(self.queued.get() | PE_ORDERS);
            self.ordered(None);
            return self.orders.borrow_mut().push_back(order);
        }
        self.post(&self.node.mail, None, to, order, || "an order of the runtime".into());
    }

    /// The encoding of something that must cross PEs; what cannot be encoded ends the run.
    pub(crate) fn encoded<V: Serialize>(&self, value: &V, what: impl FnOnce() -> String) -> Vec<u8> {
        codec::encode(value).unwrap_or_else(|error| {
            self.fail(format!("{} must cross PEs: {error}", what()));
            Vec::new()
        })
    }

    /// A buffer to encode in.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_default()
    }

    /// Keeps a buffer for the next to encode in.
    pub(crate) fn return_buffer(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffer.capacity() > 0 && buffers.len() < BUFFERS {
            buffer.clear();
            buffers.push(buffer);
        }
    }

    /// Ends the run as failed.
    pub(crate) fn fail(&self, sentence: String) {
        self.node.fail(Failure::Program(sentence));
    }
}

/// What an entry method sees of the runtime: its own index, its peers, and through [`Deref`] its PE.
pub struct Cx<'a, T: Chare> {
    pub(crate) pe: &'a PeCx,
    pub(crate) port: &'a Port<T>,
    pub(crate) rank: u32,
}

impl<T: Chare> Deref for Cx<'_, T> {
    type Target = PeCx;

    fn deref(&self) -> &PeCx {
        self.pe
    }
}

impl<T: Chare> Cx<'_, T> {
    /// The index of this element.
    #[inline(always)]
    pub fn index(&self) -> T::Index {
        T::Index::unrank(self.rank, self.port.shared.shape)
    }

    /// The shape of its array.
    #[inline(always)]
    pub fn shape(&self) -> T::Index {
        self.port.shared.shape
    }

    /// Its array.
    pub fn array(&self) -> Array<T> {
        Array { id: self.port.id, of: PhantomData }
    }

    /// Sends to one element of the same array.
    ///
    /// # Panics
    /// If the index is outside the array's shape.
    #[inline(always)]
    pub fn peer(&self, index: T::Index) -> T::Proxy<'_> {
        Target::one(self.pe, self.port, self.port.rank(index)).into()
    }

    /// Sends to every element of the same array.
    pub fn peers(&self) -> T::Proxies<'_> {
        Targets::all(self.pe, self.port).into()
    }

    /// Waits for load balancing: the message sent through the result is delivered after it, wherever
    /// the element then lives. Messages of others are delivered meanwhile.
    ///
    /// Without a balancer and a dump there is nothing to wait for, and the message is sent at once.
    #[must_use = "say which entry goes on after load balancing, as in `cx.at_sync().step()`"]
    pub fn at_sync(&self) -> T::Proxy<'_>
    where
        T: Synced,
    {
        Target::after_sync(self.pe, self.port, self.rank).into()
    }

    /// Keeps this element where it is at load-balancing steps, or lets it go again.
    pub fn pin(&self, pinned: bool) {
        self.pe.pin.set(pinned);
        self.later(after::PIN);
    }

    /// Says that this delivery took `seconds` of work, in place of what is measured; several charges
    /// add up. On a simulated machine that is how long it takes, at speed 1; what is sent after a charge
    /// leaves after it, and where uncharged work is measured there, nothing is measured from the charge to the
    /// end of the delivery: so charge first. `main`, parked closures and reducers cannot charge.
    ///
    /// # Panics
    /// If `seconds` is negative, not a number or more than 1e15.
    pub fn charge(&self, seconds: f64) {
        assert!((0.0..=1e15).contains(&seconds), "a charge of {seconds:?} seconds is no time of work");
        let sum = if self.pe.after.get() & after::CHARGED == 0 { 0.0 } else { self.pe.seconds.get() };
        self.pe.seconds.set(sum + seconds);
        if let Some(clock) = self.pe.ticker.simulated() {
            clock.charge(seconds);
        }
        self.later(after::CHARGED);
    }

    /// Says what the load of this element is, in seconds, until the next load-balancing step, in place
    /// of what is measured and charged.
    ///
    /// # Panics
    /// If `seconds` is negative or not finite.
    pub fn set_load(&self, seconds: f64) {
        assert!(seconds.is_finite() && seconds >= 0.0, "a load of {seconds} seconds is no time");
        self.pe.steps.declared.set(seconds);
        self.later(after::DECLARED);
    }

    /// Moves this element to another PE when the entry method returns.
    ///
    /// # Panics
    /// If there is no such PE, or the chare is `pinned` or one per PE.
    pub fn migrate(&self, to: Pe) {
        assert!(to.0 < self.pe.pes, "there is no PE {}: the run has {}", to.0, self.pe.pes);
        assert!(!T::PINNED && !T::Index::PER_PE, "{} never migrates", T::NAME);
        self.pe.move_to.set(to.0);
        self.later(after::MIGRATES);
    }

    /// Ends this element when the entry method returns. Its index is free again; messages to it wait
    /// until another element is inserted there.
    ///
    /// # Panics
    /// If the chare is one per PE.
    pub fn destroy(&self) {
        assert!(!T::Index::PER_PE, "{} has one element on every PE, and keeps it", T::NAME);
        self.later(after::ENDS);
    }

    fn later(&self, what: u16) {
        self.pe.after.set(self.pe.after.get() | what);
    }
}
