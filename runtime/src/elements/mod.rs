//! The elements of one array on one PE. Entry methods run only here, so load is measured only here.

use crate::array::{Chare, ChareOrder, ChareSlot, Cx, Port};
use crate::broadcast::{Departures, Numbered, take_at};
use crate::checkpoint::{ArrayIndex, Part};
use crate::inbox::Bag;
use crate::keyed::Keyed;
use crate::location::{AFTER_SYNC, DROPPED, Route};
use crate::order::{Journey, Statistics};
use crate::pe::{ARRAY_BITS, PeCx, post_delivery};
use crate::slot::{Collective, Item, NextRounds};
use crate::tracer::Kept;
use crate::waiting::Waiting;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

mod bound;
mod by_priority;
mod collectives;
mod manager;
mod moves;
mod orders;
mod saving;
mod visits;

pub(crate) use saving::restored;

use by_priority::ByPriority;
use saving::Rest;

/// The elements of an array on a PE, as the scheduler holds them. They are borrowed during a turn of the array.
/// [`Array::local`](crate::Array::local) borrows them during the turns of other arrays.
pub(crate) type Held = Rc<RefCell<dyn Manager>>;

/// The interface of an array to the scheduler of a PE.
pub(crate) trait Manager {
    /// Runs messages and orders of this PE to itself; returns when other arrays or PEs have work.
    fn local(&mut self, pe: &PeCx);
    /// The priority of the next message of this PE to itself, if the array has priorities.
    fn first_priority(&mut self, pe: &PeCx) -> Option<i64>;
    /// Runs one message of this PE to itself, or all orders of this PE to itself. The two alternate.
    fn one(&mut self, pe: &PeCx);
    /// Runs the messages and orders in the mailbox from another PE; false if there are none.
    fn mail(&mut self, pe: &PeCx, from: u32) -> bool;
    /// Runs an encoded order.
    fn packet(&mut self, pe: &PeCx, bytes: &[u8]);
    /// Notes the loads of the elements on this PE at a sync point. Returns their sum since the last load-balancing step, in seconds of
    /// this PE.
    fn weigh(&mut self, pe: &PeCx) -> f64;
    /// Whether all elements on this PE that are to call `at_sync` have called it.
    fn all_called(&self) -> bool;
    /// Whether this PE has elements of the array.
    fn has_elements(&self) -> bool;
    /// Moves the records since the last call into `statistics`.
    fn collect(&mut self, pe: &PeCx, statistics: &mut Statistics);
    /// Migrates an element for a load-balancing step; false if the element is not on this PE.
    fn migrate(&mut self, pe: &PeCx, step: u32, rank: u32, to: u32) -> bool;
    /// Resumes the elements that wait for load-balancing steps up to `round`.
    fn resume(&mut self, pe: &PeCx, round: u32);
    /// Whether messages or orders of this PE to itself wait.
    fn has_own(&self) -> bool;
    /// The number of messages that are queued for elements on this PE.
    fn queued(&self, pe: &PeCx) -> usize;
    /// Adds what the elements wait for, and the messages that are queued for them.
    fn waiting(&self, pe: &PeCx, waiting: &mut Waiting);
    /// Adds the messages for elements that do not exist.
    fn unreceived(&self, pe: &PeCx, waiting: &mut Waiting);
    /// Saves the elements on this PE, and what belongs to none of them. Nothing is in flight.
    ///
    /// # Errors
    /// A sentence, if something cannot be saved.
    fn save(&mut self, pe: &PeCx, part: &mut Part) -> Result<ArrayIndex, String>;
    /// Takes over what saved PEs had in addition to elements, and the number of the next broadcast. There are `arrays` arrays.
    ///
    /// # Errors
    /// If the bytes are of another program, or no run saves them.
    fn restore(&mut self, rests: &[Vec<u8>], next: NextRounds, arrays: usize) -> Result<(), String>;
    /// Sends again what waited for elements that do not exist, and for quiescence.
    fn resend(&mut self, pe: &PeCx);
    /// Drops one element at the end of the run; false if there is none.
    fn drop_element(&mut self) -> bool;
}

/// The load of an element at a sync point, in seconds of its PE.
struct Weighed {
    rank: u32,
    /// Since the last load-balancing step.
    period: f64,
    /// Since the sync point before.
    interval: f64,
}

/// An element that begins on PE `on`.
struct Insertion<T: Chare> {
    journey: Journey,
    on: u32,
    slot: Box<ChareSlot<T>>,
}

pub(crate) struct Elements<T: Chare> {
    port: Rc<Port<T>>,
    slots: Vec<ChareSlot<T>>,
    /// The queue being run; [`Port::local`] is the one being filled.
    batch: VecDeque<Item<T::Msg>>,
    /// The messages of an array with priorities, instead of `batch`.
    by_priority: ByPriority<T::Msg>,
    bag: Bag<Item<T::Msg>, ChareOrder<T>>,
    /// Messages for elements that are migrating to this PE, or do not exist.
    early: Keyed<Vec<T::Msg>>,
    /// The number of the next broadcast, and broadcasts that arrived early.
    broadcasts: u32,
    ahead: Numbered<T::Msg>,
    departures: Departures<T::Msg>,
    /// Elements that arrived but wait for broadcasts they missed while migrating, or for the elements with which they are
    /// bound, with the epoch of their last migration. Messages treat them as still migrating.
    late: Keyed<(u32, ChareSlot<T>)>,
    /// Elements that left and are not yet encoded, with their destinations. At most as many bytes as fit a cache are
    /// in flight, so that buffers are reused; encoding all elements at once would allocate memory for each.
    leaving: VecDeque<(u32, Journey, ChareSlot<T>)>,
    flying_bytes: usize,
    /// Insertions that wait until the element at their index is known to have ended, in the order in which they came.
    blocked_inserts: Keyed<VecDeque<Insertion<T>>>,
    /// Begin of the delivery in progress, in ticks.
    clock: u64,
    /// The loads at the last sync point, where the PEs compare them at sync points, in the order of `slots` at that time.
    weighed: Vec<Weighed>,
    /// How often elements on this PE have called `at_sync` since it resumed its elements. Some may have migrated since.
    called: usize,
    /// Whether [`Manager::one`] ran orders the last time.
    ordered_last: bool,
    /// After a restart: what saved PEs had in addition to elements.
    restored: Vec<Rest<T::Msg>>,
}

impl<T: Chare> Elements<T> {
    pub(crate) fn new(port: Rc<Port<T>>, slots: Vec<ChareSlot<T>>) -> Self {
        Elements {
            port,
            slots,
            batch: VecDeque::new(),
            by_priority: ByPriority::default(),
            bag: Bag::default(),
            early: Keyed::default(),
            broadcasts: 0,
            ahead: Numbered::default(),
            departures: Departures::default(),
            late: Keyed::default(),
            leaving: VecDeque::new(),
            flying_bytes: 0,
            blocked_inserts: Keyed::default(),
            clock: 0,
            weighed: Vec::new(),
            called: 0,
            ordered_last: false,
            restored: Vec::new(),
        }
    }

    /// A message arrives from another PE in memory.
    #[inline(always)]
    fn arrives(&mut self, pe: &PeCx, item: Item<T::Msg>) {
        if T::PRIORITIZED && pe.out.has_priorities() {
            pe.out.not_executed();
            self.wait_by_priority(pe, item);
        } else {
            self.enter(pe, item);
        }
    }

    #[inline(always)]
    fn enter(&mut self, pe: &PeCx, item: Item<T::Msg>) {
        let at = item.slot as usize;
        if self.slots.get(at).is_some_and(|slot| slot.rank == item.rank) {
            self.deliver(pe, at, item.msg);
        } else {
            self.reroute(pe, item);
        }
    }

    /// The element has left the slot since the message was sent, or the message has no slot: looks up the location.
    #[cold]
    #[inline(never)]
    fn reroute(&mut self, pe: &PeCx, item: Item<T::Msg>) {
        let Item { rank, slot, msg } = item;
        if let Some(log) = pe.out.log() {
            log.takes(slot);
        }
        if slot == DROPPED {
            return pe.out.not_executed();
        }
        match self.port.find(&pe.out, rank) {
            Route::Here(at) => {
                if slot == AFTER_SYNC {
                    self.slots[at as usize].extra().syncing = false;
                }
                self.deliver_one(pe, at as usize, msg);
            }
            Route::There(_) => {
                pe.out.not_executed();
                self.port.send_any(&pe.out, rank, msg);
            }
            Route::Hold => self.hold(pe, rank, msg),
        }
    }

    /// Keeps a message for an element that is migrating to this PE, or does not exist.
    fn hold(&mut self, pe: &PeCx, rank: u32, msg: T::Msg) {
        pe.out.not_executed();
        let kept = self.early.get_or_insert(u64::from(rank), Vec::new());
        kept.push(msg);
        pe.out.trace(|tracer| tracer.keeps(Kept::Early, self.port.id, rank, None));
        if let Some(log) = pe.out.log() {
            log.keeps_early(self.port.id, rank, kept.len());
        }
    }

    #[inline(always)]
    fn deliver(&mut self, pe: &PeCx, at: usize, msg: T::Msg) {
        let slot = &mut self.slots[at];
        let rank = slot.rank;
        pe.delivery.running.set(self.port.id, T::entry(&msg) as u16, rank);
        if !T::GUARDED {
            return self.run(pe, at, msg);
        }
        // No message becomes pending while the element runs.
        let (may_have_pending, visited) =
            slot.extra.as_ref().map_or((false, false), |extra| (true, extra.visited));
        if !visited && slot.chare.ready(&slot.flow, &msg) {
            self.run(pe, at, msg);
            if may_have_pending {
                self.run_pending(pe, at, rank);
            }
        } else {
            self.keep(pe, at, msg);
        }
    }

    /// Like [`deliver`](Self::deliver), where the time of a call does not count: compiled once.
    #[inline(never)]
    fn deliver_one(&mut self, pe: &PeCx, at: usize, msg: T::Msg) {
        self.deliver(pe, at, msg);
    }

    /// Keeps a message whose guard is false.
    #[inline(never)]
    fn keep(&mut self, pe: &PeCx, at: usize, msg: T::Msg) {
        pe.out.not_executed();
        let slot = &mut self.slots[at];
        let (rank, entry) = (slot.rank, T::entry(&msg) as u16);
        let pending = &mut slot.extra().pending;
        pending.push_back(msg);
        let since = Some((entry, pe.clock.virtual_seconds()));
        pe.out.trace(|tracer| tracer.keeps(Kept::Pending, self.port.id, rank, since));
        if let Some(log) = pe.out.log() {
            log.keeps_pending(self.port.id, entry, rank, pending.len());
        }
    }

    /// Delivers the pending messages of the element in this slot whose guards are true.
    #[inline(never)]
    fn run_pending(&mut self, pe: &PeCx, at: usize, rank: u32) {
        while let Some(slot) = self.slots.get_mut(at).filter(|slot| slot.rank == rank) {
            let Some(extra) = &mut slot.extra else { return };
            let ready = |msg: &T::Msg| {
                pe.delivery.running.set(self.port.id, T::entry(msg) as u16, rank);
                slot.chare.ready(&slot.flow, msg)
            };
            let Some(next) = extra.pending.iter().position(ready) else { return };
            let kept = extra.pending.len();
            let Some(msg) = take_at(&mut extra.pending, next) else { return };
            pe.out.executed(1);
            pe.out.trace(|tracer| tracer.releases(self.port.id, rank, next, pe.clock.virtual_seconds()));
            if let Some(log) = pe.out.log() {
                log.releases(self.port.id, rank, next, kept);
            }
            self.run(pe, at, msg);
        }
    }

    /// Runs an entry method. A panic in the method or its guard ends the run; [`PeCx::delivery`] has the place.
    #[inline(always)]
    fn run(&mut self, pe: &PeCx, at: usize, msg: T::Msg) {
        let slot = &mut self.slots[at];
        if pe.delivery.has(post_delivery::COMM | post_delivery::OBSERVED) {
            *pe.recorder.edges.borrow_mut() = slot.extra.as_mut().and_then(|extra| extra.edges.take());
            if pe.delivery.has(post_delivery::OBSERVED) {
                pe.execution_begins(self.port.id, slot.rank);
            }
        }
        slot.chare.deliver(&mut slot.flow, &Cx { pe, port: &self.port, rank: slot.rank }, msg);
        let mut what = pe.delivery.post_delivery.get();
        if what == 0 {
            return;
        }
        if what & post_delivery::CONTRIBUTED != 0 {
            // Before the clock is read, so that the time of the reducer is load of the contributor.
            self.contributes(pe, at);
            what &= !post_delivery::CONTRIBUTED;
            pe.delivery.post_delivery.set(what);
        }
        let slot = &mut self.slots[at];
        if what & (post_delivery::LOAD | post_delivery::CHARGED) == post_delivery::LOAD {
            let now = pe.recorder.clock.now();
            slot.load += now.wrapping_sub(self.clock);
            self.clock = now;
        }
        if what & (post_delivery::COMM | post_delivery::OBSERVED) != 0 {
            let rank = slot.rank;
            if let Some(edges) = pe.recorder.edges.take() {
                slot.extra().edges = Some(edges);
            }
            if what & post_delivery::OBSERVED != 0 {
                pe.execution_ends(self.port.id, rank, what);
            }
        }
        if what & post_delivery::WORK != 0 {
            self.follow_up(pe, at, what);
        }
    }

    /// Executes the requests of the entry method, except contributions.
    #[inline(never)]
    fn follow_up(&mut self, pe: &PeCx, at: usize, what: u16) {
        pe.delivery.post_delivery.set(pe.delivery.recording.get());
        let slot = &mut self.slots[at];
        if what & post_delivery::CHARGED != 0 && what & post_delivery::LOAD != 0 {
            slot.extra().charged += pe.delivery.charged.get();
            // The real time of the delivery belongs to the element, not to the background.
            let now = pe.recorder.clock.now();
            pe.recorder.was_charged(now.wrapping_sub(self.clock));
            self.clock = now;
        }
        if what & post_delivery::CHARGED != 0
            && let Some(clock) = pe.clock.simulated()
        {
            clock.charged();
        }
        if what & post_delivery::DECLARED != 0 {
            slot.extra().declared = Some(pe.delivery.declared.get());
        }
        if what & post_delivery::PIN != 0 {
            slot.extra().pinned = pe.delivery.pin.get();
        }
        if what & post_delivery::SYNC != 0 {
            if what & post_delivery::CREATED != 0 {
                self.brings_created(at, Collective::Barrier, |created| !created.synced);
            }
            self.comes_to_sync(pe, at);
        }
        if what & post_delivery::CREATED != 0 {
            self.creates(pe, at);
        }
        if what & post_delivery::ENDS != 0 {
            self.ends(pe, at);
        } else if what & post_delivery::MIGRATES != 0 && pe.delivery.move_to.get() != pe.out.rank {
            self.leave(pe, at, pe.delivery.move_to.get(), None);
        }
        // The time of the follow-up is no element's load.
        self.begin(pe);
    }

    /// Local messages between two checks for messages from other PEs.
    const BURST: u32 = 16;
    /// Passes over the local queue before the scheduler serves other arrays.
    const ROUNDS: u32 = 64;

    fn run_local(&mut self, pe: &PeCx) {
        if T::PRIORITIZED && pe.out.has_priorities() {
            // The scheduler runs messages by priority, over all arrays.
            self.sort_local(pe);
            return self.run_orders(pe);
        }
        let mut executions = 0;
        for _ in 0..Self::ROUNDS {
            if self.batch.is_empty() {
                let mut local = self.port.local.borrow_mut();
                if local.len() == 1 {
                    // Exchanging the queues for one message costs more than the message.
                    let lone = local.pop();
                    drop(local);
                    if let Some(item) = lone {
                        executions += 1;
                        self.enter(pe, item);
                    }
                } else {
                    drop(local);
                    self.next_batch();
                }
            }
            let mut burst = 0;
            while let Some(item) = self.batch.pop_front() {
                self.enter(pe, item);
                burst += 1;
                if burst % Self::BURST == 0
                    && (!pe.out.quiet_outside()
                        || pe.out.queued.get() & (pe.out.expedited | pe.out.prioritized) & !self.port.bit
                            != 0)
                {
                    break;
                }
            }
            executions += u64::from(burst);
            self.run_orders(pe);
            // Where arrays share bits, the bit of this array may belong to another array.
            if pe.out.queued.get() != self.port.bit || pe.ports.len() > ARRAY_BITS || !pe.out.quiet_outside()
            {
                break;
            }
            pe.out.queued.set(0);
        }
        pe.out.executed(executions);
    }

    /// Runs the queue that was filled, and fills the other one, which is empty.
    fn next_batch(&mut self) {
        let mut local = self.port.local.borrow_mut();
        let filled = VecDeque::from(std::mem::take(&mut *local));
        *local = Vec::from(std::mem::replace(&mut self.batch, filled));
    }

    /// The next message of this PE to itself.
    fn next_item(&mut self, pe: &PeCx) -> Option<Item<T::Msg>> {
        if T::PRIORITIZED && pe.out.has_priorities() {
            return self.next_by_priority(pe);
        }
        if self.batch.is_empty() {
            self.next_batch();
            pe.out.trace(|tracer| tracer.leave_port(self.port.id, self.batch.len()));
        }
        let item = self.batch.pop_front()?;
        pe.out.trace(|tracer| tracer.takes(self.port.id, None));
        Some(item)
    }

    /// Marks this array as queued if it has more to run.
    fn stay_queued(&self, pe: &PeCx) {
        if self.has_own() {
            pe.out.queue(self.port.bit);
        }
        pe.delivery.running.clear();
    }

    pub(super) fn begin(&mut self, pe: &PeCx) {
        if pe.delivery.has(post_delivery::LOAD) {
            self.clock = pe.recorder.clock.now();
        }
    }
}
