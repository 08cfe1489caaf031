//! The elements of one array on one PE: the only place where user code runs, so the only place where
//! load is measured.

use crate::array::{Item, Port, Slot};
use crate::balancer::{ObjectStatistics, Statistics};
use crate::broadcast::Departures;
use crate::chare::Chare;
use crate::context::{Cx, PeCx, after};
use crate::contribute::Contributor;
use crate::index::Index;
use crate::location::{self, IN_TRANSIT, Known, Route};
use crate::order::{Ended, Journey, Order, PeOrder};
use crate::reduction::Tally;
use crate::transport::Bag;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// What the scheduler of a PE asks of an array.
pub(crate) trait Manager {
    /// Runs what this PE sent itself; returns when others have work, too.
    fn local(&mut self, pe: &PeCx);
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
    /// Elements that came to a load-balancing barrier, by its round, to be told to PE 0.
    at_sync: Vec<(u32, Tally)>,
    /// Elements to be created once their namesakes are known to be gone.
    unborn: Vec<Box<Slot<T>>>,
    /// When the delivery in progress began, in ticks.
    clock: u64,
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
            at_sync: Vec::new(),
            unborn: Vec::new(),
            clock: 0,
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
                Some(Route::There(_)) => self.port.send(pe, rank, msg),
                Some(Route::Hold) | None => self.early.entry(rank).or_default().push(msg),
            };
        };
        let at = at.load(Relaxed);
        if location::pe_of(at) != pe.rank {
            self.port.send(pe, rank, msg);
        } else if at as u32 == IN_TRANSIT {
            self.early.entry(rank).or_default().push(msg);
        } else {
            self.deliver(pe, at as u32 as usize, msg);
        }
    }

    #[inline(always)]
    fn deliver(&mut self, pe: &PeCx, at: usize, msg: T::Msg) {
        if T::GUARDED {
            let slot = &mut self.slots[at];
            if !slot.chare.ready(&msg) {
                return slot.extra().pending.push_back(msg);
            }
            let rank = slot.rank;
            self.run(pe, at, msg);
            self.run_pending(pe, at, rank);
        } else {
            self.run(pe, at, msg);
        }
    }

    /// Delivers what waits behind a guard of the element in this slot, as far as it is ready.
    #[inline(always)]
    fn run_pending(&mut self, pe: &PeCx, at: usize, rank: u32) {
        while let Some(slot) = self.slots.get_mut(at).filter(|slot| slot.rank == rank) {
            let Some(extra) = &mut slot.extra else { return };
            let Some(next) = extra.pending.iter().position(|msg| slot.chare.ready(msg)) else { return };
            let Some(msg) = extra.pending.remove(next) else { return };
            self.run(pe, at, msg);
        }
    }

    /// Runs an entry method. A panic in it ends the run; [`PeCx::running`] then says where it was.
    #[inline(always)]
    fn run(&mut self, pe: &PeCx, at: usize, msg: T::Msg) {
        let slot = &mut self.slots[at];
        pe.running.set(self.port.id, T::entry(&msg) as u16, slot.rank);
        if pe.after.get() & after::COMM != 0 {
            pe.edges.set(slot.extra.as_mut().and_then(|extra| extra.edges.take()));
        }
        slot.chare.deliver(&Cx { pe, port: &self.port, rank: slot.rank }, msg);
        let what = pe.after.get();
        if what == 0 {
            return;
        }
        if what & (after::LOAD | after::CHARGED) == after::LOAD {
            let now = pe.ticker.now();
            slot.load += now.wrapping_sub(self.clock);
            self.clock = now;
        }
        if what & after::COMM != 0
            && let Some(edges) = pe.edges.take()
        {
            slot.extra().edges = Some(edges);
        }
        if what & after::WORK != 0 {
            self.after(pe, at, what);
        }
    }

    /// Does what the entry method asked for.
    #[inline(never)]
    fn after(&mut self, pe: &PeCx, at: usize, what: u16) {
        pe.after.set(pe.recording.get());
        if what & after::WORK == after::CONTRIBUTED {
            // By far the most frequent.
            return self.contributes(pe, at);
        }
        let slot = &mut self.slots[at];
        if what & after::CHARGED != 0 && what & after::LOAD != 0 {
            slot.extra().charged += pe.seconds.get();
            self.clock = pe.ticker.now();
        }
        if what & after::DECLARED != 0 {
            slot.extra().declared = Some(pe.steps.declared.get());
        }
        if what & after::PIN != 0 {
            slot.extra().pinned = pe.pin.get();
        }
        if what & after::MEASURE != 0 {
            self.clock = pe.ticker.now();
        }
        if what & after::CONTRIBUTED != 0 {
            self.contributes(pe, at);
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
    }

    fn contributes(&mut self, pe: &PeCx, at: usize) {
        let here = self.slots.len() as u32;
        let slot = &mut self.slots[at];
        let (source, rank) = (self.port.id, slot.rank);
        while let Some(target) = pe.contributed.next() {
            let by = Contributor { source, rank, round: slot.contributions, tally: slot.takes_part(0), here };
            slot.contributions = slot.contributions.wrapping_add(1);
            if target == source {
                self.port.file(pe, by);
            } else {
                pe.ports[usize::from(target)].contributed(pe, by);
            }
        }
    }

    /// Creates what the element in this slot inserted into its own array.
    fn creates(&mut self, pe: &PeCx, at: usize) {
        let created = self.port.created.take();
        let slot = &mut self.slots[at];
        let rounds = (slot.contributions, slot.syncs);
        let count = created.len() as u32;
        slot.extra().created[0] += count;
        slot.extra().created[1] += count;
        for (rank, chare) in created {
            let mut slot = Slot::new(rank, chare);
            (slot.contributions, slot.syncs) = rounds;
            slot.extra().fresh = [true; 2];
            self.port.post(pe, self.port.home(pe, rank), Order::Create { slot: Box::new(slot) });
        }
    }

    fn comes_to_sync(&mut self, pe: &PeCx, at: usize) {
        let resume = self.port.resume.take();
        let slot = &mut self.slots[at];
        let rank = slot.rank;
        if !pe.node.settings.balances() {
            let Some(msg) = resume else { return };
            return self.port.enqueue(pe, Item { rank, slot: at as u32, msg });
        }
        let extra = slot.extra();
        assert!(
            extra.resume.is_none(),
            "{} called `at_sync` again before load balancing was over",
            self.port.name(rank)
        );
        extra.resume = resume;
        let tally = slot.takes_part(1);
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

    /// Takes an element out of its slot.
    fn remove(&mut self, pe: &PeCx, at: usize, to: u32) -> (Slot<T>, u32) {
        let slot = self.slots.swap_remove(at);
        let epoch = self.port.unsettle(slot.rank, to);
        if let Some(moved) = self.slots.get(at) {
            self.port.shift(pe, moved.rank, at as u32);
        }
        (slot, epoch)
    }

    fn ends(&mut self, pe: &PeCx, at: usize) {
        let home = self.port.home(pe, self.slots[at].rank);
        let (mut slot, epoch) = self.remove(pe, at, home);
        let rank = slot.rank;
        if self.port.directory.is_some() {
            self.port.post(pe, home, Order::Located { rank, news: Known { pe: home, epoch } });
        }
        let ended = Ended {
            array: self.port.id,
            reductions: (slot.contributions, slot.ends(0)),
            syncs: (slot.syncs, slot.ends(1)),
        };
        pe.tell(0, PeOrder::Ended(Box::new(ended)));
    }

    fn leave(&mut self, pe: &PeCx, at: usize, to: u32, step: Option<u32>) {
        pe.counts.migrations.set(pe.counts.migrations.get() + 1);
        let (mut slot, epoch) = self.remove(pe, at, to);
        let flight = self.departures.leave(slot.rank, slot.broadcasts, self.broadcasts);
        let journey = Journey { from: pe.rank, flight, epoch, step };
        let order = if pe.node.settings.encodes_migrations() {
            let mut bytes = pe.buffer();
            if let Err(error) = crate::codec::encode_into(&slot, &mut bytes) {
                return pe.fail(format!("{} cannot migrate: {error}", self.port.name(slot.rank)));
            }
            Order::ArriveEncoded { journey, bytes }
        } else {
            let bytes = crate::codec::size(&slot);
            slot.extra().bytes = Some(bytes);
            Order::Arrive { journey, slot: Box::new(slot) }
        };
        self.port.post(pe, to, order);
    }

    fn arrive(&mut self, pe: &PeCx, journey: Journey, mut slot: Slot<T>, buffer: Vec<u8>) {
        // Compared as in a ring, so that the numbers may wrap around.
        let behind = self.broadcasts.wrapping_sub(slot.broadcasts) as i32 > 0;
        if behind {
            slot.broadcasts = self.broadcasts;
        }
        let landed = Order::Landed { flight: journey.flight, broadcasts: slot.broadcasts, buffer };
        self.port.post(pe, journey.from, landed);
        if self.port.directory.is_some() {
            let home = self.port.home(pe, slot.rank);
            if home != pe.rank {
                let news = Known { pe: pe.rank, epoch: journey.epoch };
                self.port.post(pe, home, Order::Located { rank: slot.rank, news });
            }
        }
        self.place(pe, slot, journey.epoch);
        if let Some(step) = journey.step {
            pe.came(step, 1);
            pe.tell(pe.rank, PeOrder::Look { step });
        }
    }

    /// Gives an element a slot, and what came before it.
    fn place(&mut self, pe: &PeCx, slot: Slot<T>, epoch: u32) {
        let (rank, at) = (slot.rank, self.slots.len());
        self.port.settle(pe, rank, at as u32, epoch);
        self.slots.push(slot);
        if !self.early.is_empty() {
            for msg in self.early.remove(&rank).into_iter().flatten() {
                self.port.enqueue(pe, Item { rank, slot: at as u32, msg });
            }
        }
        let slot = &mut self.slots[at];
        // By hand it may have moved to a PE that is through with the step it waits for.
        if slot.syncs <= pe.steps.resumed.get()
            && let Some(msg) = slot.extra.as_mut().and_then(|extra| extra.resume.take())
        {
            self.port.enqueue(pe, Item { rank, slot: at as u32, msg });
        }
        if T::GUARDED {
            self.run_pending(pe, at, rank);
        }
    }

    /// Creates an element here, at its home.
    fn create(&mut self, pe: &PeCx, mut slot: Box<Slot<T>>) {
        let rank = slot.rank;
        let epoch = match (&self.port.directory, self.port.shared.places.get(rank as usize)) {
            (Some(directory), _) => {
                assert!(!directory.borrow().holds(rank), "{} exists already", self.port.name(rank));
                match directory.borrow().vacant(rank) {
                    Some(epoch) => epoch,
                    None => return self.unborn.push(slot),
                }
            }
            (None, Some(at)) => {
                let vacant = at.load(Relaxed) == location::place(pe.rank, IN_TRANSIT);
                assert!(vacant, "{} exists already", self.port.name(rank));
                0
            }
            (None, None) => 0,
        };
        slot.broadcasts = self.broadcasts;
        self.place(pe, *slot, epoch);
    }

    fn order(&mut self, pe: &PeCx, order: Order<T>) {
        match order {
            Order::Message { rank, epoch, origin, msg } => self.meet(pe, rank, epoch, origin, msg),
            Order::Located { rank, news } => {
                if let Some(directory) = &self.port.directory {
                    directory.borrow_mut().located(rank, news);
                    let vacant = !self.unborn.is_empty() && directory.borrow().vacant(rank).is_some();
                    if vacant && let Some(at) = self.unborn.iter().position(|slot| slot.rank == rank) {
                        let slot = self.unborn.swap_remove(at);
                        self.create(pe, slot);
                    }
                }
            }
            Order::Broadcast { msg } => self.port.broadcast(pe, msg),
            Order::All { number, msg } => {
                if number != self.broadcasts {
                    self.ahead.insert(number, msg);
                    return;
                }
                self.deliver_to_all(pe, msg);
                while let Some(msg) = self.ahead.remove(&self.broadcasts) {
                    self.deliver_to_all(pe, msg);
                }
            }
            Order::Partial(partial) => self.port.total(pe, partial),
            Order::Arrive { journey, slot } => self.arrive(pe, journey, *slot, Vec::new()),
            Order::ArriveEncoded { journey, bytes } => {
                if let Some(mut slot) = self.port.decoded::<Slot<T>>(pe, &bytes) {
                    slot.extra().bytes = Some(bytes.len() as u64);
                    self.arrive(pe, journey, slot, bytes);
                }
            }
            Order::Landed { flight, broadcasts, buffer } => {
                pe.return_buffer(buffer);
                let port = Rc::clone(&self.port);
                self.departures.landed(flight, broadcasts, self.broadcasts, |rank, msg| {
                    port.send(pe, rank, T::copy(msg));
                });
            }
            Order::Admit { mut slot } => {
                {
                    let roll = &mut pe.rolls.borrow_mut()[usize::from(self.port.id)];
                    slot.contributions = roll.reductions.admit();
                    slot.syncs = roll.syncs.admit();
                }
                self.port.post(pe, self.port.home(pe, slot.rank), Order::Create { slot });
            }
            Order::Create { slot } => self.create(pe, slot),
        }
    }

    /// A message that came by directory.
    fn meet(&mut self, pe: &PeCx, rank: u32, epoch: u32, origin: u32, msg: T::Msg) {
        let Some(directory) = &self.port.directory else { return };
        let route = directory.borrow().meet(rank, epoch);
        match route {
            Route::Here(slot) => self.deliver(pe, slot as usize, msg),
            Route::Hold => self.early.entry(rank).or_default().push(msg),
            Route::There(news) => {
                if origin != pe.rank {
                    self.port.post(pe, origin, Order::Located { rank, news });
                }
                self.port.post(pe, news.pe, Order::Message { rank, epoch: news.epoch, origin, msg });
            }
        }
    }

    /// Delivers the next broadcast to the elements here that have not had it.
    fn deliver_to_all(&mut self, pe: &PeCx, msg: T::Msg) {
        if pe.after.get() & after::LOAD != 0 {
            self.clock = pe.ticker.now();
        }
        let number = self.broadcasts;
        let mut at = 0;
        while at < self.slots.len() {
            let count = self.slots.len();
            let slot = &mut self.slots[at];
            let rank = slot.rank;
            if slot.broadcasts == number {
                slot.broadcasts = number.wrapping_add(1);
                self.deliver(pe, at, T::copy(&msg));
            }
            // If it left or ended, another has its slot.
            if self.slots.len() == count && self.slots[at].rank == rank {
                at += 1;
            }
        }
        self.broadcasts = number.wrapping_add(1);
        if self.departures.waiting() {
            for rank in self.departures.delivered(number, || T::copy(&msg)) {
                self.port.send(pe, rank, T::copy(&msg));
            }
        }
        pe.counts.executions.set(pe.counts.executions.get() + at as u64);
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
                if burst % Self::BURST == 0 && !pe.quiet_outside() {
                    break;
                }
            }
            executions += u64::from(burst);
            self.run_orders(pe);
            if pe.queued.get() != self.port.bit || !pe.quiet_outside() {
                break;
            }
            pe.queued.set(0);
        }
        pe.counts.executions.set(pe.counts.executions.get() + executions);
    }

    fn run_orders(&mut self, pe: &PeCx) {
        if self.port.orders.borrow().is_empty() {
            return;
        }
        let mut orders = self.port.orders.take();
        for order in orders.drain(..) {
            self.order(pe, order);
        }
        // Keeps the room of the queue, unless orders were given meanwhile.
        let mut now = self.port.orders.borrow_mut();
        if now.is_empty() {
            *now = orders;
        }
    }

    fn begin(&mut self, pe: &PeCx) {
        if pe.after.get() & after::LOAD != 0 {
            self.clock = pe.ticker.now();
        }
    }
}

impl<T: Chare> Slot<T> {
    /// What the element says of others when it contributes (`kind` 0) or comes to a barrier (1).
    fn takes_part(&mut self, kind: usize) -> Tally {
        let mut tally = Tally { count: 1, ..Tally::default() };
        if let Some(extra) = &mut self.extra {
            tally.created = std::mem::take(&mut extra.created[kind]);
            tally.appeared = u32::from(std::mem::take(&mut extra.fresh[kind]));
        }
        tally
    }

    /// What it says when it ends.
    fn ends(&mut self, kind: usize) -> Tally {
        Tally { count: 0, ended: 1, ..self.takes_part(kind) }
    }
}

impl<T: Chare> Manager for Elements<T> {
    fn local(&mut self, pe: &PeCx) {
        self.begin(pe);
        self.run_local(pe);
        if !self.batch.is_empty()
            || !self.port.local.borrow().is_empty()
            || !self.port.orders.borrow().is_empty()
        {
            pe.queued.set(pe.queued.get() | self.port.bit);
        }
        pe.running.nobody();
    }

    fn mail(&mut self, pe: &PeCx, from: u32) {
        let mut bag = std::mem::take(&mut self.bag);
        if self.port.shared.mail.take(from, pe.rank, &mut bag) {
            self.begin(pe);
            let count = bag.items.len() as u64 + u64::from(bag.one.is_some());
            pe.counts.executions.set(pe.counts.executions.get() + count);
            if let Some(item) = bag.one.take() {
                self.enter(pe, item);
            }
            for item in bag.items.drain(..) {
                self.enter(pe, item);
            }
            for order in bag.orders.drain(..) {
                self.order(pe, order);
            }
            pe.running.nobody();
        }
        self.bag = bag;
    }

    fn packet(&mut self, pe: &PeCx, bytes: &[u8]) {
        if let Some(order) = self.port.decoded(pe, bytes) {
            self.begin(pe);
            if let Order::Message { .. } = &order {
                pe.counts.executions.set(pe.counts.executions.get() + 1);
            }
            self.order(pe, order);
            pe.running.nobody();
        }
    }

    fn idle(&mut self, pe: &PeCx) {
        for (round, tally) in self.at_sync.drain(..) {
            pe.tell(0, PeOrder::AtSync { array: self.port.id, round, tally });
        }
    }

    fn collect(&mut self, pe: &PeCx, statistics: &mut Statistics) {
        let movable = T::SYNC && !T::PINNED && !T::Index::PER_PE;
        for slot in &mut self.slots {
            let measured = pe.ticker.seconds(std::mem::take(&mut slot.load));
            let mut object = ObjectStatistics {
                array: self.port.id,
                rank: slot.rank,
                index: T::Index::unrank(slot.rank, self.port.shared.shape).coordinates(),
                load_seconds: measured,
                bytes: None,
                migratable: movable,
                edges: Vec::new(),
            };
            if let Some(extra) = &mut slot.extra {
                let charged = std::mem::take(&mut extra.charged);
                object.load_seconds = extra.declared.take().unwrap_or(measured + charged);
                object.bytes = extra.bytes;
                object.migratable &= !extra.pinned;
                object.edges = extra.edges.as_mut().map(|edges| edges.take()).unwrap_or_default();
            }
            statistics.measured_seconds += measured;
            statistics.objects.push(object);
        }
    }

    fn carry(&mut self, pe: &PeCx, step: u32, rank: u32, to: u32) -> bool {
        let at = match (&self.port.directory, self.port.shared.places.get(rank as usize)) {
            (Some(directory), _) => match directory.borrow().find(rank, pe.rank) {
                Route::Here(slot) => slot as usize,
                _ => return false,
            },
            (None, Some(at)) => {
                let at = at.load(Relaxed);
                if location::pe_of(at) != pe.rank || at as u32 == IN_TRANSIT {
                    return false;
                }
                at as u32 as usize
            }
            (None, None) => return false,
        };
        self.leave(pe, at, to, Some(step));
        true
    }

    fn resume(&mut self, pe: &PeCx, round: u32) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.syncs <= round + 1
                && let Some(msg) = slot.extra.as_mut().and_then(|extra| extra.resume.take())
            {
                self.port.enqueue(pe, Item { rank: slot.rank, slot: at as u32, msg });
            }
        }
    }

    fn waiting(&self) -> Vec<String> {
        let mut told = Vec::new();
        let at_sync = self.slots.iter().filter(|s| s.extra.as_ref().is_some_and(|e| e.resume.is_some()));
        let at_sync = at_sync.count();
        if at_sync > 0 {
            told.push(format!(
                "{at_sync} of {} elements of {} here are at sync",
                self.slots.len(),
                T::NAME
            ));
        }
        for slot in &self.slots {
            let Some(extra) = &slot.extra else { continue };
            let mut entries = BTreeMap::<&str, usize>::new();
            for msg in &extra.pending {
                *entries.entry(T::ENTRIES[T::entry(msg)]).or_default() += 1;
            }
            for (entry, count) in entries {
                let name = self.port.name(slot.rank);
                told.push(format!("{name} has {count} messages for `{entry}` that its guard does not let in"));
            }
        }
        let mut early: Vec<_> = self.early.iter().collect();
        early.sort_unstable_by_key(|(rank, _)| **rank);
        for (&rank, messages) in early {
            let name = self.port.name(rank);
            told.push(format!("{} messages wait for {name}, which does not exist", messages.len()));
        }
        for slot in &self.unborn {
            told.push(format!("{} was inserted and exists already", self.port.name(slot.rank)));
        }
        told
    }
}
