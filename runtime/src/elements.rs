//! The elements of one array on one PE: the only place where user code runs, so the only place where
//! load is measured.

use crate::array::{Collective, Item, Port, Slot};
use crate::balancer::Statistics;
use crate::broadcast::Departures;
use crate::chare::Chare;
use crate::context::{ARRAY_BITS, Cx, PeCx, after};
use crate::contribute::Contributor;
use crate::location::{self, Route, is_taken};
use crate::order::{Journey, Order, PeOrder};
use crate::reduction::Tally;
use crate::tracer::Kept;
use crate::transport::Bag;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

mod manager;
mod moves;
mod orders;

/// What the scheduler of a PE asks of an array.
pub(crate) trait Manager {
    /// Runs what this PE sent itself; returns when others have work, too.
    fn local(&mut self, pe: &PeCx);
    /// Runs one message this PE sent itself, or, where it has ordered itself something, all orders every other
    /// time.
    fn one(&mut self, pe: &PeCx);
    /// Runs what another PE put in this one's mailbox.
    fn mail(&mut self, pe: &PeCx, from: u32);
    /// Runs an order that came in bytes.
    fn packet(&mut self, pe: &PeCx, bytes: &[u8]);
    /// There is nothing to do: passes on what must not wait for more.
    fn idle(&mut self, pe: &PeCx);
    /// Adds what was recorded since the last time, and starts anew.
    fn collect(&mut self, pe: &PeCx, statistics: &mut Statistics);
    /// Sends an element away for a load-balancing step; false if it is not here.
    fn carry(&mut self, pe: &PeCx, step: u32, rank: u32, to: u32) -> bool;
    /// Lets the elements go on that wait for load-balancing steps up to `round`.
    fn resume(&mut self, pe: &PeCx, round: u32);
    /// What its elements wait for, for a person.
    fn waiting(&self) -> Vec<String>;
}

pub(crate) struct Elements<T: Chare> {
    port: Rc<Port<T>>,
    slots: Vec<Slot<T>>,
    /// The queue being run; [`Port::local`] is the one being filled.
    batch: VecDeque<Item<T::Msg>>,
    bag: Bag<Item<T::Msg>, Order<T>>,
    /// Messages for elements that are on their way here, or do not exist.
    early: FxHashMap<u32, Vec<T::Msg>>,
    /// The broadcast to deliver next, and those that came too soon.
    broadcasts: u32,
    ahead: BTreeMap<u32, T::Msg>,
    departures: Departures<T::Msg>,
    /// Elements that came here but wait for broadcasts they missed on their way, with the epoch of
    /// their last move; for everybody else they are on it still.
    late: FxHashMap<u32, (u32, Slot<T>)>,
    /// Elements that left and are still to be encoded, with where they go, while as many bytes as
    /// fit a cache are under way: encoding all at once would touch fresh memory for each.
    leaving: VecDeque<(u32, Journey, Slot<T>)>,
    flying_bytes: usize,
    /// Elements that came to a load-balancing barrier, by its round, to be told to PE 0.
    at_sync: Vec<(u32, Tally)>,
    /// Elements to be created once their namesakes are known to be gone.
    unborn: Vec<(Journey, Box<Slot<T>>)>,
    /// When the delivery in progress began, in ticks.
    clock: u64,
    /// Whether [`Manager::one`] ran orders the last time.
    ordered_last: bool,
}

impl<T: Chare> Elements<T> {
    pub(crate) fn new(port: Rc<Port<T>>, slots: Vec<Slot<T>>) -> Self {
        Elements {
            port,
            slots,
            batch: VecDeque::new(),
            bag: Bag::default(),
            early: FxHashMap::default(),
            broadcasts: 0,
            ahead: BTreeMap::new(),
            departures: Departures::default(),
            late: FxHashMap::default(),
            leaving: VecDeque::new(),
            flying_bytes: 0,
            at_sync: Vec::new(),
            unborn: Vec::new(),
            clock: 0,
            ordered_last: false,
        }
    }

    #[inline(always)]
    fn enter(&mut self, pe: &PeCx, item: Item<T::Msg>) {
        let at = item.slot as usize;
        if self.slots.get(at).is_some_and(|slot| slot.rank == item.rank) {
            self.deliver(pe, at, item.msg);
        } else {
            self.elsewhere(pe, item.rank, item.msg);
        }
    }

    /// The slot was right when the message was sent; looks again.
    #[cold]
    #[inline(never)]
    fn elsewhere(&mut self, pe: &PeCx, rank: u32, msg: T::Msg) {
        let Some(at) = self.port.shared.places.get(rank as usize) else {
            let route = self.port.directory.as_ref().map(|d| d.borrow().find(rank, self.port.home(pe, rank)));
            return match route {
                Some(Route::Here(slot)) => self.deliver(pe, slot as usize, msg),
                Some(Route::There(_)) => {
                    pe.not_executed();
                    self.port.send(pe, rank, msg);
                }
                Some(Route::Hold) | None => self.hold(pe, rank, msg),
            };
        };
        let at = at.load(Relaxed);
        if location::pe_of(at) != pe.rank {
            pe.not_executed();
            self.port.send(pe, rank, msg);
        } else if !is_taken(at as u32) {
            self.hold(pe, rank, msg);
        } else {
            self.deliver(pe, at as u32 as usize, msg);
        }
    }

    /// Keeps a message for an element that is on its way here, or does not exist.
    fn hold(&mut self, pe: &PeCx, rank: u32, msg: T::Msg) {
        pe.not_executed();
        self.early.entry(rank).or_default().push(msg);
        pe.keeps(Kept::Early, self.port.id, rank);
    }

    #[inline(always)]
    fn deliver(&mut self, pe: &PeCx, at: usize, msg: T::Msg) {
        let slot = &mut self.slots[at];
        let rank = slot.rank;
        pe.running.set(self.port.id, T::entry(&msg) as u16, rank);
        if !T::GUARDED {
            self.run(pe, at, msg);
        } else if slot.chare.ready(&msg) {
            self.run(pe, at, msg);
            self.run_pending(pe, at, rank);
        } else {
            pe.not_executed();
            slot.extra().pending.push_back(msg);
            pe.keeps(Kept::Pending, self.port.id, rank);
        }
    }

    /// Delivers what waits behind a guard of the element in this slot, as far as it is ready.
    #[inline(always)]
    fn run_pending(&mut self, pe: &PeCx, at: usize, rank: u32) {
        while let Some(slot) = self.slots.get_mut(at).filter(|slot| slot.rank == rank) {
            let Some(extra) = &mut slot.extra else { return };
            let ready = |msg: &T::Msg| {
                pe.running.set(self.port.id, T::entry(msg) as u16, rank);
                slot.chare.ready(msg)
            };
            let Some(next) = extra.pending.iter().position(ready) else { return };
            let Some(msg) = extra.pending.remove(next) else { return };
            pe.executed(1);
            pe.releases(Kept::Pending, self.port.id, rank, next);
            self.run(pe, at, msg);
        }
    }

    /// Runs an entry method. A panic in it (or in its guard) ends the run; [`PeCx::running`] says where.
    #[inline(always)]
    fn run(&mut self, pe: &PeCx, at: usize, msg: T::Msg) {
        let slot = &mut self.slots[at];
        if pe.after.get() & (after::COMM | after::TOLD) != 0 {
            pe.edges.set(slot.extra.as_mut().and_then(|extra| extra.edges.take()));
            if pe.after.get() & after::TOLD != 0 {
                pe.execution_begins(self.port.id, slot.rank);
            }
        }
        slot.chare.deliver(&Cx { pe, port: &self.port, rank: slot.rank }, msg);
        let mut what = pe.after.get();
        if what == 0 {
            return;
        }
        if what & after::CONTRIBUTED != 0 {
            // Before the clock is read: what the reducer takes is its contributor's load.
            self.contributes(pe, at);
            what &= !after::CONTRIBUTED;
            pe.after.set(what);
        }
        let slot = &mut self.slots[at];
        if what & (after::LOAD | after::CHARGED) == after::LOAD {
            let now = pe.ticker.now();
            slot.load += now.wrapping_sub(self.clock);
            self.clock = now;
        }
        if what & (after::COMM | after::TOLD) != 0 {
            if let Some(edges) = pe.edges.take() {
                slot.extra().edges = Some(edges);
            }
            if what & after::TOLD != 0 {
                pe.execution_ends();
            }
        }
        if what & after::WORK != 0 {
            self.follow_up(pe, at, what);
        }
    }

    /// Does what the entry method asked for, beside contributions.
    #[inline(never)]
    fn follow_up(&mut self, pe: &PeCx, at: usize, what: u16) {
        pe.after.set(pe.recording.get());
        let slot = &mut self.slots[at];
        if what & after::CHARGED != 0 && what & after::LOAD != 0 {
            slot.extra().charged += pe.seconds.get();
            // The time it did take is the element's, too: not background.
            let now = pe.ticker.now();
            pe.steps.charged.set(pe.steps.charged.get() + now.wrapping_sub(self.clock));
            self.clock = now;
        }
        if what & after::CHARGED != 0
            && let Some(clock) = pe.ticker.simulated()
        {
            clock.charged();
        }
        if what & after::DECLARED != 0 {
            slot.extra().declared = Some(pe.steps.declared.get());
        }
        if what & after::PIN != 0 {
            slot.extra().pinned = pe.pin.get();
        }
        if what & after::SYNC != 0 {
            self.comes_to_sync(pe, at);
        }
        if what & after::CREATED != 0 {
            self.creates(pe, at);
        }
        if what & after::ENDS != 0 {
            self.ends(pe, at);
        } else if what & after::MIGRATES != 0 && pe.move_to.get() != pe.rank {
            self.leave(pe, at, pe.move_to.get(), None);
        }
        // What all this took is nobody's load.
        self.begin(pe);
    }

    #[inline(never)]
    fn contributes(&mut self, pe: &PeCx, at: usize) {
        let here = self.slots.len() as u32;
        let slot = &mut self.slots[at];
        let (source, rank) = (self.port.id, slot.rank);
        while let Some(target) = pe.contributed.next() {
            let by = Contributor {
                source,
                rank,
                round: slot.contributions,
                tally: slot.takes_part(Collective::Reduction),
                here,
            };
            slot.contributions = slot.contributions.wrapping_add(1);
            if target == source {
                self.port.file(pe, by);
            } else {
                pe.ports[usize::from(target)].contributed(pe, by);
            }
        }
    }

    fn comes_to_sync(&mut self, pe: &PeCx, at: usize) {
        let resume = self.port.resume.take();
        let slot = &mut self.slots[at];
        let rank = slot.rank;
        if !pe.node.settings.balances() {
            let Some(msg) = resume else { return };
            return self.port.keep(pe, Item { rank, slot: at as u32, msg });
        }
        let extra = slot.extra();
        assert!(
            extra.resume.is_none(),
            "{} called `at_sync` again before load balancing was over",
            self.port.name(rank)
        );
        extra.resume = resume;
        let tally = slot.takes_part(Collective::Barrier);
        let round = slot.syncs;
        slot.syncs += 1;
        let mine = match self.at_sync.iter().position(|(other, _)| *other == round) {
            Some(mine) => mine,
            None => {
                self.at_sync.push((round, Tally::default()));
                self.at_sync.len() - 1
            }
        };
        self.at_sync[mine].1.add(tally);
        if self.at_sync[mine].1.count as usize == self.slots.len() {
            let (round, tally) = self.at_sync.swap_remove(mine);
            pe.tell(0, PeOrder::AtSync { array: self.port.id, round, tally });
        }
    }

    /// How many local messages are run before the other PEs get a look in.
    const BURST: u32 = 16;
    /// How many times the local queue is run before the scheduler looks at other arrays.
    const ROUNDS: u32 = 64;

    fn run_local(&mut self, pe: &PeCx) {
        let mut executions = 0;
        for _ in 0..Self::ROUNDS {
            if self.batch.is_empty() {
                let mut local = self.port.local.borrow_mut();
                if local.len() == 1 {
                    // Swapping the queues for one message costs more than the message.
                    let lone = local.pop_front();
                    drop(local);
                    if let Some(item) = lone {
                        executions += 1;
                        self.enter(pe, item);
                    }
                } else {
                    std::mem::swap(&mut *local, &mut self.batch);
                }
            }
            let mut burst = 0;
            while let Some(item) = self.batch.pop_front() {
                self.enter(pe, item);
                burst += 1;
                if burst % Self::BURST == 0
                    && (!pe.quiet_outside() || pe.queued.get() & pe.expedited & !self.port.bit != 0)
                {
                    break;
                }
            }
            executions += u64::from(burst);
            self.run_orders(pe);
            // Where arrays share bits, this one's bit may stand for another.
            if pe.queued.get() != self.port.bit || pe.ports.len() > ARRAY_BITS || !pe.quiet_outside() {
                break;
            }
            pe.queued.set(0);
        }
        pe.executed(executions);
    }

    /// The next message of this PE to itself.
    fn next_item(&mut self, pe: &PeCx) -> Option<Item<T::Msg>> {
        if self.batch.is_empty() {
            std::mem::swap(&mut *self.port.local.borrow_mut(), &mut self.batch);
            if let Some(tracer) = pe.tracer() {
                tracer.leave_port(self.port.id, self.batch.len());
            }
        }
        let item = self.batch.pop_front()?;
        if let Some(tracer) = pe.tracer() {
            tracer.takes(self.port.id);
        }
        Some(item)
    }

    /// Says that there is more to run, if there is.
    fn stay_queued(&self, pe: &PeCx) {
        if !self.batch.is_empty()
            || !self.port.local.borrow().is_empty()
            || !self.port.orders.borrow().is_empty()
        {
            pe.queued.set(pe.queued.get() | self.port.bit);
        }
        pe.running.nobody();
    }

    pub(super) fn begin(&mut self, pe: &PeCx) {
        if pe.after.get() & after::LOAD != 0 {
            self.clock = pe.ticker.now();
        }
    }
}
