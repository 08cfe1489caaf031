//! A PE from the view of the code that runs on it: [`PeCx`] and its parts. Each protocol takes only the parts that
//! it needs.
//!
//! | part | purpose |
//! |---|---|
//! | [`Outbox`] | sending: queues of the PE to itself, mailboxes, packets |
//! | [`Delivery`] | the running element, and the requests of its entry method |
//! | [`Recorder`] | load and communication, the load clock |
//! | [`Collectives`] | reductions, load-balancing steps, quiescence |
//! | [`Clock`] | the wall clock, which is the virtual time of a simulated PE |

mod collectives;
mod delivery;
mod exit;
mod main;
mod meeting;
mod outbox;
mod port;
mod recorder;
mod reply;
mod shared;
mod timers;

pub use exit::Exit;
pub use main::{Asked, Main};
pub use reply::Reply;
pub use shared::Shared;

pub(crate) use collectives::{Collectives, Contributor, Ledgers, Waiter, WaitsForQuiescence};
pub(crate) use delivery::{Delivery, Offer, post_delivery};
pub(crate) use main::begin as begin_main;
pub(crate) use meeting::{Current, Told};
pub(crate) use outbox::{ARRAY_BITS, Carrier, Outbox, PE_ORDERS, Packet, PacketCarrier, array_bit};
pub(crate) use port::{AnyElements, AnyPort, ArrayInfo, Neighbors, Presence};
pub(crate) use recorder::Recorder;

use crate::checkpoint::Reason;
use crate::clock::Clock;
use crate::index::{Pe, Process};
use crate::load::array_and_rank;
use crate::node::Node;
use crate::options::Settings;
use crate::order::PeOrder;
use crate::process;
use crate::tracer::Tracer;
use reply::Parked;
use serde::{Serialize, de::DeserializeOwned};
use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use timers::Timers;

/// The context of a PE: required for sends, and for information about the run.
///
/// `main` and parked closures get one; inside an entry method [`Cx`](crate::Cx) dereferences to it.
pub struct PeCx {
    pub(crate) out: Outbox,
    pub(crate) delivery: Delivery,
    pub(crate) recorder: Recorder,
    pub(crate) collectives: Collectives,
    /// The wall clock. The load clock is in the [`Recorder`].
    pub(crate) clock: Clock,
    /// The arrays of the run, by id.
    pub(crate) ports: Vec<Rc<dyn AnyPort>>,
    pub(crate) infos: Vec<ArrayInfo>,
    /// The elements on this PE, by array.
    pub(crate) elements: Vec<Neighbors>,
    /// Values of [`Setup::shared`](crate::Setup::shared), by id.
    pub(crate) shared: Vec<Option<Arc<dyn Any + Send + Sync>>>,
    parked: RefCell<Parked>,
    pub(crate) timers: Timers,
}

impl PeCx {
    /// The context of one PE, before its arrays are known.
    pub(crate) fn new(rank: u32, node: Arc<Node>, carrier: Carrier, tracer: Option<Tracer>) -> Self {
        let recording = post_delivery::recording(&node.settings);
        let clock = Clock::of(&node.settings, rank, tracer);
        let loads = Clock::of_loads(&node.settings, &clock);
        PeCx {
            delivery: Delivery::new(recording, node.pulses.of(rank)),
            recorder: Recorder::new(loads),
            collectives: Collectives::default(),
            out: Outbox::new(rank, node, carrier, clock.simulated().cloned()),
            clock,
            ports: Vec::new(),
            infos: Vec::new(),
            elements: Vec::new(),
            shared: Vec::new(),
            parked: RefCell::default(),
            timers: Timers::default(),
        }
    }

    /// This PE.
    pub fn here(&self) -> Pe {
        Pe(self.out.rank)
    }

    /// The number of PEs.
    pub fn pes(&self) -> usize {
        self.out.pes as usize
    }

    /// The process of this PE. With threads, all PEs are in process 0.
    pub fn process(&self) -> Process {
        Process(self.out.rank / self.settings().local_pes())
    }

    /// The number of processes.
    pub fn processes(&self) -> usize {
        self.settings().processes() as usize
    }

    /// Prints a text and a line break on stdout, as a whole. Where the run has several processes, process 0 prints it:
    /// texts of one process in their order, texts of several processes one after the other, and all before the run returns.
    pub fn print(&self, text: impl std::fmt::Display) {
        let line = text.to_string();
        match self.out.batches() {
            Some(post) => post.desk().print(line),
            None => process::print_lines(&[line]),
        }
    }

    /// The seed of the run; after a restart, that of the run that was saved.
    pub fn seed(&self) -> u64 {
        self.settings().restart.as_ref().map_or(self.settings().seed, |checkpoint| checkpoint.seed())
    }

    /// Parks a closure on this PE until a value is sent to the returned [`Reply`]. A `Reply` is plain data and accepts
    /// one value, from any element on any PE.
    ///
    /// Use it for libraries that answer unknown clients: the client includes the `Reply` in its request. A library that can also
    /// answer to entries takes a [`Callback`](crate::Callback), which [`Reply::callback`] makes.
    pub fn reply<V>(&self, answer: impl FnOnce(&PeCx, V) + 'static) -> Reply<V>
    where
        V: Serialize + DeserializeOwned + Send + 'static,
    {
        let parked = self.parked.borrow_mut().park(self.delivery.running.activity(), answer);
        Reply { pe: self.out.rank, parked, of: PhantomData }
    }

    /// Switches the recording of load and communication on this PE off or on, from the next delivery on.
    ///
    /// Has no effect if nothing is recorded because there is no load balancer and no `--lb-dump`.
    pub fn measure(&self, on: bool) {
        self.recorder.measure(on, self.clock.now());
        let (settings, delivery) = (self.settings(), &self.delivery);
        delivery.recording.set(if on {
            post_delivery::recording(settings)
        } else {
            post_delivery::observed(settings)
        });
        if delivery.running.get().is_some() {
            delivery.later(post_delivery::MEASURE);
        } else {
            delivery.post_delivery.set(delivery.recording.get());
        }
    }

    /// Panics if there is no such PE.
    #[track_caller]
    pub(crate) fn check_exists(&self, pe: Pe) {
        let pes = self.out.pes;
        if pe.0 >= pes {
            panic!("there is no PE {}; PEs are 0 to {}", pe.0, pes - 1);
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.out.node.settings
    }

    /// The bits of the arrays that are `of` a kind. Other arrays that share such a bit count as of this kind, too.
    pub(crate) fn bits_of(&self, of: impl Fn(&ArrayInfo) -> bool) -> u64 {
        let found = (0..).zip(&self.infos).filter(|(_, info)| of(info));
        found.fold(0, |bits, (id, _)| bits | array_bit(id))
    }

    /// The name of an array, for messages to users.
    pub(crate) fn name(&self, array: u16) -> &'static str {
        self.infos.get(usize::from(array)).map_or("?", |info| info.name)
    }

    /// The name of an element, for messages to users.
    pub(crate) fn element(&self, key: u64) -> String {
        let (array, rank) = array_and_rank(key);
        self.out.node.pulses.element(array, rank)
    }

    /// An element begins to execute, while executions are observed.
    #[cold]
    #[inline(never)]
    pub(crate) fn execution_begins(&self, array: u16, rank: u32) {
        if let (Some(order), Some(running)) = (self.out.interleaved(), self.delivery.running.get()) {
            order.executes(array, running.entry, rank);
        }
        if let Some(clock) = self.clock.simulated() {
            let entry = self.delivery.running.get().map(|running| running.entry);
            clock.execution_begins(array, rank, entry);
        }
        if let Some(log) = self.out.log() {
            log.begins();
        }
    }

    /// The element has executed, while executions are observed.
    #[cold]
    #[inline(never)]
    pub(crate) fn execution_ends(&self, array: u16, rank: u32, what: u16) {
        let charged = if what & post_delivery::CHARGED == 0 { 0.0 } else { self.delivery.charged.get() };
        if let Some(clock) = self.clock.simulated() {
            clock.execution_ends(charged);
        }
        if let Some(log) = self.out.log() {
            let entry = self.delivery.running.get().map_or(0, |running| running.entry);
            log.ends(array, entry, rank, charged);
        }
    }

    /// Counts time without work, from `start` to `end` on the wall clock.
    pub(crate) fn was_idle(&self, start: u64, end: u64) {
        if self.delivery.has(post_delivery::LOAD) {
            self.recorder.was_idle(end.wrapping_sub(start));
        }
    }

    /// Quiescence was found for the `round`-th time: sends the messages that waited for it.
    pub(crate) fn found_quiet(&self, round: u64) {
        let mut quiet = self.collectives.quiet.borrow_mut();
        let (now, later): (Vec<_>, _) = quiet.drain(..).partition(|waiting| waiting.asked < round);
        *quiet = later;
        drop(quiet);
        self.out.node.quiescence.served(now.len());
        for waiting in now {
            match waiting.waiter {
                Waiter::Message(array) => self.ports[usize::from(array)].found_quiet(self),
                Waiter::Main(main) => main.send(self, ()),
            }
        }
    }

    /// Answers when nothing is in flight.
    pub(crate) fn answer_when_quiet(&self, main: Reply<()>) {
        let asked = self.out.node.quiescence.wait();
        let waiting = WaitsForQuiescence { asked, waiter: Waiter::Main(main), saves: false };
        self.collectives.quiet.borrow_mut().push(waiting);
    }

    /// The run has saved itself for a sync point, and not for the messages that wait for a checkpoint: they wait for another one.
    pub(crate) fn has_saved_for_step(&self) {
        let waits = self.collectives.quiet.borrow().iter().any(|waiting| waiting.saves);
        if let Some(saver) = self.out.node.saver.as_ref().filter(|_| waits) {
            saver.want(Reason::Program);
        }
    }

    /// Reports calls of `at_sync`, and the loads that belong to them, to the parent in the tree.
    pub(crate) fn report_syncs(&self) {
        let (steps, rank) = (&self.collectives.steps, self.out.rank);
        let calls = steps.unreported.take();
        // PE 0 keeps the loads.
        let loads = (rank != 0).then(|| steps.loads.take()).filter(|loads| loads.pes > 0);
        if !calls.is_empty() || loads.is_some() {
            self.out.tell(self.out.tree.parent(rank), PeOrder::AtSync { calls, loads });
        }
    }

    /// Finishes, on PE 0, the complete reductions of an array, in order.
    pub(crate) fn complete_reductions(&self, source: u16) {
        let ledgers = &self.collectives.ledgers;
        loop {
            {
                let ledgers = ledgers.borrow();
                let ledger = &ledgers[usize::from(source)].reductions;
                if ledger.arrived() == 0 || !ledger.complete() {
                    return;
                }
            }
            if !self.ports.iter().any(|port| port.complete(self, source)) {
                return;
            }
            ledgers.borrow_mut()[usize::from(source)].reductions.advance();
        }
    }

    /// Drops the parked closures, at the end of the run: that of an asynchronous `main` refers to its PE.
    pub(crate) fn drop_parked(&self) {
        let parked = self.parked.take();
        drop(parked);
    }

    /// The number of parked closures.
    pub(crate) fn parked(&self) -> usize {
        self.parked.borrow().count()
    }

    /// What parked the oldest closure that is parked, for messages to users.
    pub(crate) fn oldest_parker(&self) -> Option<String> {
        let activity = self.parked.borrow().oldest()?;
        let unnamed = || "code outside the elements".to_owned();
        Some(self.out.node.pulses.describe(self.out.rank, activity, self.settings()).unwrap_or_else(unnamed))
    }

    /// Ends the run as failed.
    pub(crate) fn fail(&self, sentence: String) {
        self.out.fail(sentence);
    }
}
