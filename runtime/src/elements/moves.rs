//! Elements come and go: created, migrating, ending.

use super::Elements;
use crate::array::{Collective, Extra, Item, Slot};
use crate::chare::Chare;
use crate::context::PeCx;
use crate::location::{self, Known, NOBODY, is_taken};
use crate::order::{Ended, Journey, Order, PeOrder};
use crate::reduction::Tally;
use crate::tracer::Kept;
use std::sync::atomic::Ordering::Relaxed;

/// How many bytes of encoded elements of one array may be under way from a PE: about a core's cache.
const FLYING_BYTES: usize = 1 << 20;

impl<T: Chare> Elements<T> {
    /// Creates what the element in this slot inserted into its own array.
    pub(super) fn creates(&mut self, pe: &PeCx, at: usize) {
        let created = self.port.created.take();
        let creator = &mut self.slots[at];
        let count = created.len() as u32;
        creator.extra().created.iter_mut().for_each(|created| *created += count);
        let new: Vec<_> =
            created.into_iter().map(|(rank, chare)| Box::new(creator.child(rank, chare))).collect();
        for slot in new {
            self.send_home(pe, slot);
        }
    }

    /// Sends a new element to its home, as if it moved there from here: so it hears every broadcast
    /// that comes after its creation.
    pub(super) fn send_home(&mut self, pe: &PeCx, slot: Box<Slot<T>>) {
        let flight = self.departures.leave(slot.rank, slot.missing(), self.broadcasts);
        let journey = Journey { from: pe.rank, flight, epoch: 0, step: None };
        self.port.post(pe, self.port.home(pe, slot.rank), Order::Create { journey, slot });
    }

    /// Takes an element out of its slot, because it goes `to` a PE, or because it ends.
    fn remove(&mut self, pe: &PeCx, at: usize, to: u32, gone: bool) -> (Slot<T>, u32) {
        let slot = self.slots.swap_remove(at);
        let epoch = self.port.unsettle(slot.rank, to, gone);
        if let Some(moved) = self.slots.get(at) {
            self.port.shift(pe, moved.rank, at as u32);
        }
        (slot, epoch)
    }

    pub(super) fn ends(&mut self, pe: &PeCx, at: usize) {
        let home = self.port.home(pe, self.slots[at].rank);
        let (mut slot, epoch) = self.remove(pe, at, home, true);
        let rank = slot.rank;
        self.port.post(pe, home, Order::Located { rank, news: Known { pe: home, epoch, gone: true } });
        // What its guards held back is for whoever has its index next.
        if let Some(tracer) = pe.tracer() {
            tracer.drops(Kept::Pending, self.port.id, rank);
        }
        for msg in slot.extra.iter_mut().flat_map(|extra| extra.pending.drain(..)) {
            self.port.send(pe, rank, msg);
        }
        let ended = Ended {
            array: self.port.id,
            reductions: (slot.contributions, slot.ends(Collective::Reduction)),
            syncs: (slot.syncs, slot.ends(Collective::Barrier)),
        };
        pe.tell(0, PeOrder::Ended(Box::new(ended)));
    }

    pub(super) fn leave(&mut self, pe: &PeCx, at: usize, to: u32, step: Option<u32>) {
        pe.counts.migrations.set(pe.counts.migrations.get() + 1);
        let (slot, epoch) = self.remove(pe, at, to, false);
        let flight = self.departures.leave(slot.rank, slot.missing(), self.broadcasts);
        let journey = Journey { from: pe.rank, flight, epoch, step };
        if !pe.node.settings.encodes_migrations() {
            return self.port.post(pe, to, Order::Arrive { journey, slot: Box::new(slot) });
        }
        self.leaving.push_back((to, journey, slot));
        self.encode_leaving(pe);
    }

    /// Encodes and sends elements that left, as many as may be under way at a time.
    pub(super) fn encode_leaving(&mut self, pe: &PeCx) {
        while self.flying_bytes < FLYING_BYTES {
            let Some((to, journey, slot)) = self.leaving.pop_front() else { return };
            let mut bytes = pe.buffer();
            if let Err(error) = crate::codec::encode_into(&slot, &mut bytes) {
                return pe.fail(format!("{} cannot migrate: {error}", self.port.name(slot.rank)));
            }
            self.flying_bytes += bytes.len();
            self.port.post(pe, to, Order::ArriveEncoded { journey, bytes });
        }
    }

    pub(super) fn arrive(&mut self, pe: &PeCx, journey: Journey, slot: Slot<T>, buffer: Vec<u8>) {
        if self.port.directory.is_some() {
            let home = self.port.home(pe, slot.rank);
            if home != pe.rank {
                let news = Known { pe: pe.rank, epoch: journey.epoch, gone: false };
                self.port.post(pe, home, Order::Located { rank: slot.rank, news });
            }
        }
        self.lands(pe, journey, journey.epoch, slot, buffer);
        if let Some(step) = journey.step {
            pe.came(step, 1);
            pe.tell(pe.rank, PeOrder::Look { step });
        }
    }

    /// Tells the PE an element comes from which broadcasts this PE has delivered, and places the
    /// element unless it missed some of them.
    fn lands(&mut self, pe: &PeCx, journey: Journey, epoch: u32, slot: Slot<T>, buffer: Vec<u8>) {
        let Journey { from, flight, .. } = journey;
        self.port.post(pe, from, Order::Landed { flight, at: pe.rank, broadcasts: self.broadcasts, buffer });
        if slot.missing() >= self.broadcasts {
            self.place(pe, slot, epoch);
        } else {
            self.late.insert(slot.rank, (epoch, slot));
        }
    }

    /// Places an element that was late if it has now all that it missed.
    pub(super) fn settle_late(&mut self, pe: &PeCx, rank: u32) {
        if self.late.get(&rank).is_some_and(|(_, slot)| slot.missing() >= self.broadcasts)
            && let Some((epoch, slot)) = self.late.remove(&rank)
        {
            self.place(pe, slot, epoch);
        }
    }

    /// Delivers to the element in this slot the broadcasts it carries; if it leaves, it takes the rest
    /// along.
    fn catch_up(&mut self, pe: &PeCx, at: usize, rank: u32) {
        while let Some(slot) = self.slots.get_mut(at).filter(|slot| slot.rank == rank) {
            let missed = slot.extra.as_mut().and_then(|extra| extra.missed.pop_first());
            let Some((number, msg)) = missed else { return };
            slot.broadcasts = number.wrapping_add(1);
            pe.executed(1);
            self.begin(pe);
            self.deliver(pe, at, msg);
        }
    }

    /// Gives an element a slot, and what came before it.
    pub(super) fn place(&mut self, pe: &PeCx, slot: Slot<T>, epoch: u32) {
        let (rank, at) = (slot.rank, self.slots.len());
        self.port.settle(pe, rank, at as u32, epoch);
        self.slots.push(slot);
        if !self.early.is_empty() {
            for msg in self.early.remove(&rank).into_iter().flatten() {
                if let Some(tracer) = pe.tracer() {
                    tracer.requeues(self.port.id, rank, self.port.local.borrow().len());
                }
                self.port.enqueue(pe, Item { rank, slot: at as u32, msg });
            }
        }
        let slot = &mut self.slots[at];
        // By hand it may have moved to a PE that is through with the step it waits for.
        if slot.syncs <= pe.steps.resumed.get()
            && let Some(msg) = slot.extra.as_mut().and_then(|extra| extra.resume.take())
        {
            self.port.keep(pe, Item { rank, slot: at as u32, msg });
        }
        let catches_up = slot.extra.as_ref().is_some_and(|extra| !extra.missed.is_empty());
        if T::GUARDED {
            self.begin(pe);
            self.run_pending(pe, at, rank);
        }
        if catches_up {
            self.catch_up(pe, at, rank);
        }
    }

    /// Creates an element here, at its home, or keeps it until its namesake is known to be gone.
    pub(super) fn create(&mut self, pe: &PeCx, journey: Journey, slot: Box<Slot<T>>) {
        let rank = slot.rank;
        let (vacant, holds) = match &self.port.directory {
            Some(directory) => (directory.borrow().vacant(rank), directory.borrow().holds(rank)),
            None => {
                let at = self.port.shared.places[rank as usize].load(Relaxed);
                let here = location::pe_of(at) == pe.rank;
                ((at as u32 == NOBODY).then_some(0), here && is_taken(at as u32))
            }
        };
        // Elsewhere it may have ended without our knowing; here it lives.
        if holds || self.late.contains_key(&rank) {
            return pe.fail(format!("{} exists already, and was inserted again", self.port.name(rank)));
        }
        match vacant {
            Some(epoch) => {
                self.lands(pe, journey, epoch, *slot, Vec::new());
            }
            None => self.unborn.push((journey, slot)),
        }
    }
}

impl<T: Chare> Slot<T> {
    /// An element that this one creates: it takes part in what its creator takes part in next, and
    /// hears what its creator hears next.
    fn child(&self, rank: u32, chare: T) -> Self {
        let missed = self.extra.iter().flat_map(|extra| &extra.missed);
        let missed = missed.map(|(&number, msg)| (number, T::copy(msg))).collect();
        let extra = Extra { fresh: [true; 2], missed, ..Extra::default() };
        let &Slot { contributions, syncs, broadcasts, .. } = self;
        Slot { contributions, syncs, broadcasts, extra: Some(Box::new(extra)), ..Slot::new(rank, chare) }
    }

    /// What the element says of others when it contributes, or comes to a barrier.
    pub(crate) fn takes_part(&mut self, kind: Collective) -> Tally {
        let mut tally = Tally { count: 1, ..Tally::default() };
        if let Some(extra) = &mut self.extra {
            tally.created = std::mem::take(&mut extra.created[kind as usize]);
            tally.appeared = u32::from(std::mem::take(&mut extra.fresh[kind as usize]));
        }
        tally
    }

    /// What it says when it ends.
    fn ends(&mut self, kind: Collective) -> Tally {
        Tally { count: 0, ended: 1, ..self.takes_part(kind) }
    }
}
