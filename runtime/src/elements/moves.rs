//! Creation, migration and end of elements.

use super::{Elements, Insertion};
use crate::array::{Chare, ChareSlot, Created};
use crate::location::{DROPPED, IN_TRANSIT, Known};
use crate::order::{Encoded, Ended, Journey, Landed, Located, Order, PeOrder};
use crate::pe::{Outbox, PeCx};
use crate::reduction::birth;
use crate::slot::{Collective, Extra, Item, Slot};
use crate::tracer::Kept;

/// The most bytes of encoded elements of one array in flight from a PE: about a core's cache.
const FLYING_BYTES: usize = 1 << 20;

impl<T: Chare> Elements<T> {
    /// Creates the elements that the element in this slot inserted into its own array.
    pub(super) fn creates(&mut self, pe: &PeCx, at: usize) {
        for kind in [Collective::Reduction, Collective::Barrier] {
            self.brings_created(at, kind, |created| created.first[kind as usize].is_none());
        }
        for created in self.port.created.take() {
            let on = created.on;
            let slot = Box::new(child(&self.slots[at], created));
            self.send_home(&pe.out, on, slot);
        }
    }

    /// The next collective of the element in this slot will wait for those of its new elements that it creates before it takes part:
    /// `is_now` says which.
    #[cold]
    #[inline(never)]
    pub(super) fn brings_created(
        &mut self,
        at: usize,
        kind: Collective,
        is_now: impl Fn(&Created<T>) -> bool,
    ) {
        let slot = &mut self.slots[at];
        for created in self.port.created.borrow_mut().iter_mut() {
            if is_now(created) {
                created.first[kind as usize] = Some(slot.next_round(kind));
                let birth = birth(slot.rank, created.rank);
                let births = &mut slot.extra().created[kind as usize];
                *births = births.wrapping_add(birth);
            }
        }
    }

    /// Sends a new element to its home like a migrating element, so that it receives every broadcast after its
    /// creation. The home sends it to PE `on`.
    pub(super) fn send_home(&mut self, out: &Outbox, on: u32, slot: Box<ChareSlot<T>>) {
        let flight = self.departures.leave(slot.rank, slot.missing(), self.broadcasts);
        let journey = Journey { from: out.rank, flight, epoch: 0, step: None };
        self.port.post(out, self.port.home(out, slot.rank), Order::Create { journey, on, slot });
    }

    /// Removes an element from its slot, because it migrates to PE `to` or ends (`gone`).
    fn remove(&mut self, out: &Outbox, at: usize, to: u32, gone: bool) -> (ChareSlot<T>, u32) {
        let slot = self.slots.swap_remove(at);
        let epoch = self.port.unregister_location(slot.rank, to, gone);
        if let Some(moved) = self.slots.get(at) {
            self.port.shift(out, moved.rank, at as u32);
        }
        (slot, epoch)
    }

    pub(super) fn ends(&mut self, pe: &PeCx, at: usize) {
        let home = self.port.home(&pe.out, self.slots[at].rank);
        let (mut slot, epoch) = self.remove(&pe.out, at, home, true);
        let rank = slot.rank;
        if slot.extra.as_ref().is_some_and(|extra| extra.syncing) {
            // The next element with this index did not call `at_sync`.
            self.change_sync_message(rank, DROPPED);
        }
        let news = Known { pe: home, epoch, gone: true };
        self.port.post(&pe.out, home, Order::Located(Located { rank, news }));
        // Pending messages go to the next element with this index.
        pe.out.trace(|tracer| tracer.drops(Kept::Pending, self.port.id, rank));
        if let Some(log) = pe.out.log() {
            log.drops(self.port.id, rank);
        }
        for msg in slot.extra.iter_mut().flat_map(|extra| extra.pending.drain(..)) {
            self.port.send_any(&pe.out, rank, msg);
        }
        let ended = Ended {
            array: self.port.id,
            reductions: (slot.contributions, slot.ends(Collective::Reduction)),
            syncs: (slot.syncs, slot.ends(Collective::Barrier)),
        };
        pe.out.tell(0, PeOrder::Ended(Box::new(ended)));
    }

    pub(super) fn leave(&mut self, pe: &PeCx, at: usize, to: u32, step: Option<u32>) {
        pe.out.migrated();
        if let Some(log) = pe.out.log() {
            log.leaves(self.port.id, self.slots[at].rank, to);
        }
        pe.out
            .trace(|tracer| tracer.leaves(self.port.id, self.slots[at].rank, to, pe.clock.virtual_seconds()));
        let (mut slot, epoch) = self.remove(&pe.out, at, to, false);
        self.lead(pe, slot.rank, to);
        if slot.extra.as_mut().is_some_and(|extra| std::mem::take(&mut extra.syncing)) {
            // It follows the element like any other message.
            self.change_sync_message(slot.rank, IN_TRANSIT);
        }
        let flight = self.departures.leave(slot.rank, slot.missing(), self.broadcasts);
        let journey = Journey { from: pe.out.rank, flight, epoch, step };
        if pe.settings().is_distributed && !pe.out.shares_memory_with(to) && slot.load > 0 {
            // Ticks of another computer's clock may have another length.
            let seconds = pe.recorder.clock.seconds(std::mem::take(&mut slot.load)) * pe.clock.speed();
            slot.extra().charged += seconds;
        }
        if !pe.settings().encodes_migrations() || !pe.out.shares_memory_with(to) {
            return self.port.post(&pe.out, to, Order::Arrive { journey, slot: Box::new(slot) });
        }
        self.leaving.push_back((to, journey, slot));
        self.encode_leaving(pe);
    }

    /// Encodes and sends elements that left, up to the limit of bytes in flight.
    pub(super) fn encode_leaving(&mut self, pe: &PeCx) {
        while self.flying_bytes < FLYING_BYTES {
            let Some((to, journey, slot)) = self.leaving.pop_front() else { return };
            let mut bytes = pe.out.buffer();
            if let Err(error) = crate::codec::encode_into(&slot, &mut bytes) {
                return pe.fail(format!("{} cannot migrate: {error}", self.port.name(slot.rank)));
            }
            self.flying_bytes += bytes.len();
            self.port.post(&pe.out, to, Order::ArriveEncoded(Encoded { journey, bytes }));
        }
    }

    pub(super) fn arrive(&mut self, pe: &PeCx, journey: Journey, slot: ChareSlot<T>, buffer: Vec<u8>) {
        if self.port.directory.is_some() {
            let home = self.port.home(&pe.out, slot.rank);
            if home != pe.out.rank {
                let news = Known { pe: pe.out.rank, epoch: journey.epoch, gone: false };
                self.port.post(&pe.out, home, Order::Located(Located { rank: slot.rank, news }));
            }
        }
        self.lands(pe, journey, journey.epoch, slot, buffer);
        if let Some(step) = journey.step {
            pe.collectives.steps.arrived(step, 1);
            pe.out.tell(pe.out.rank, PeOrder::TryResume { step });
        }
    }

    /// Reports to the previous PE of an element which broadcasts this PE has delivered. Places the element unless
    /// it missed some of them.
    fn lands(&mut self, pe: &PeCx, journey: Journey, epoch: u32, slot: ChareSlot<T>, buffer: Vec<u8>) {
        let Journey { from, flight, .. } = journey;
        let landed = Landed { flight, at: pe.out.rank, broadcasts: self.broadcasts, buffer };
        self.port.post(&pe.out, from, Order::Landed(landed));
        if slot.missing() >= self.broadcasts && !self.is_bound(&pe.infos) {
            return self.place(pe, slot, epoch);
        }
        let rank = slot.rank;
        self.late.get_or_insert(u64::from(rank), (epoch, slot));
        self.deliver_late(pe, rank);
    }

    /// Places a late element once it has all broadcasts that it missed, and the elements with which it is bound have theirs.
    pub(super) fn deliver_late(&mut self, pe: &PeCx, rank: u32) {
        if !self.is_complete(rank) {
            return;
        }
        if self.is_bound(&pe.infos) {
            return self.report_landing(pe, rank);
        }
        self.place_late(pe, rank);
    }

    /// Whether a late element has all broadcasts that it missed.
    pub(super) fn is_complete(&self, rank: u32) -> bool {
        self.late.get(u64::from(rank)).is_some_and(|(_, slot)| slot.missing() >= self.broadcasts)
    }

    pub(super) fn place_late(&mut self, pe: &PeCx, rank: u32) {
        if let Some((epoch, slot)) = self.late.remove(u64::from(rank)) {
            self.place(pe, slot, epoch);
        }
    }

    /// Delivers the missed broadcasts to the element in this slot. If the element leaves, the remaining ones migrate
    /// with it.
    fn catch_up(&mut self, pe: &PeCx, at: usize, rank: u32) {
        while let Some(slot) = self.slots.get_mut(at).filter(|slot| slot.rank == rank) {
            let missed = slot.extra.as_mut().and_then(|extra| extra.missed.pop_first());
            let Some((number, msg)) = missed else { return };
            slot.broadcasts = number.wrapping_add(1);
            pe.out.executed(1);
            self.begin(pe);
            self.deliver_one(pe, at, msg);
        }
    }

    /// Puts an element into a slot and queues the messages that arrived before it.
    pub(super) fn place(&mut self, pe: &PeCx, slot: ChareSlot<T>, epoch: u32) {
        let (rank, at) = (slot.rank, self.slots.len());
        self.port.register_location(&pe.out, rank, at as u32, epoch);
        self.slots.push(slot);
        if !self.early.is_empty() {
            let early = self.early.remove(u64::from(rank)).unwrap_or_default();
            let kept = early.len();
            for (nth, msg) in early.into_iter().enumerate() {
                pe.out.trace(|tracer| tracer.requeues(self.port.id, rank, self.port.local.borrow().len()));
                let number = pe.out.log().map(|log| log.requeues(self.port.id, rank, kept - nth));
                self.port.enqueue(&pe.out, Item { rank, slot: number.unwrap_or(at as u32), msg });
            }
        }
        let slot = &mut self.slots[at];
        // After a call of `migrate` this PE may already have finished the step that the element waits for.
        if slot.syncs <= pe.collectives.steps.resumed.get()
            && let Some(msg) = slot.extra.as_mut().and_then(|extra| extra.resume.take())
        {
            self.port.enqueue_traced(&pe.out, Item { rank, slot: at as u32, msg });
        }
        let catches_up = slot.extra.as_ref().is_some_and(|extra| !extra.missed.is_empty());
        if T::GUARDED {
            self.recheck(pe, at);
        }
        if catches_up {
            self.catch_up(pe, at, rank);
        }
    }

    /// Creates an element, or keeps it until this PE, its home, knows that the previous element at its index has
    /// ended.
    pub(super) fn create(&mut self, pe: &PeCx, insertion: Insertion<T>) {
        let rank = insertion.slot.rank;
        // An element on another PE may have ended already; an element on this PE has not.
        if self.port.holds(&pe.out, rank) || self.late.get(u64::from(rank)).is_some() {
            return pe.fail(format!(
                "cannot insert {}: it exists already, on {}; destroy it first, or insert at another index",
                self.port.name(rank),
                pe.settings().pe_name(pe.out.rank)
            ));
        }
        // Where PEs share memory, the index may be free before the news that it is: then insertions that wait for the news go first.
        let others_wait = || self.blocked_inserts.get(u64::from(rank)).is_some();
        match self.port.vacant(rank).filter(|_| !others_wait()) {
            Some(epoch) => self.begins(pe, insertion, epoch),
            None => {
                self.blocked_inserts.get_or_insert(u64::from(rank), Default::default()).push_back(insertion)
            }
        }
    }

    /// Lets an inserted element begin. This PE is its home, and its index is free.
    pub(super) fn begins(&mut self, pe: &PeCx, insertion: Insertion<T>, epoch: u32) {
        let Insertion { journey, on, slot } = insertion;
        if on == pe.out.rank {
            return self.lands(pe, journey, epoch, *slot, Vec::new());
        }
        let rank = slot.rank;
        let journey = Journey { epoch: self.port.begins_on(rank, on, epoch), ..journey };
        self.port.post(&pe.out, on, Order::Arrive { journey, slot });
        pe.out.trace(|tracer| tracer.drops(Kept::Early, self.port.id, rank));
        if let Some(log) = pe.out.log() {
            log.drops(self.port.id, rank);
        }
        for msg in self.early.remove(u64::from(rank)).into_iter().flatten() {
            self.port.send_any(&pe.out, rank, msg);
        }
    }
}

/// An element that `creator` creates. Its next reduction, barrier and broadcast are those of its creator when it creates the element.
fn child<T: Chare>(creator: &ChareSlot<T>, created: Created<T>) -> ChareSlot<T> {
    let Created { rank, chare, first: [contributions, syncs], .. } = created;
    let missed = creator.extra.as_ref().map(|extra| extra.missed.copied(T::copy)).unwrap_or_default();
    let extra = Extra { births: [birth(creator.rank, rank); 2], missed, ..Extra::default() };
    Slot {
        contributions: contributions.unwrap_or(creator.contributions),
        syncs: syncs.unwrap_or(creator.syncs),
        broadcasts: creator.broadcasts,
        extra: Some(Box::new(extra)),
        ..Slot::new(rank, chare)
    }
}
