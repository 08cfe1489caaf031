//! Elements come and go: created, migrating, ending.

use super::Elements;
use crate::array::{Item, Slot};
use crate::chare::Chare;
use crate::context::PeCx;
use crate::location::{self, IN_TRANSIT, Known};
use crate::order::{Ended, Journey, Order, PeOrder};
use crate::reduction::Tally;
use std::sync::atomic::Ordering::Relaxed;

/// How many bytes of encoded elements of one array may be under way from a PE: about a core's cache.
const FLYING_BYTES: usize = 1 << 20;

impl<T: Chare> Elements<T> {
    /// Creates what the element in this slot inserted into its own array.
    pub(super) fn creates(&mut self, pe: &PeCx, at: usize) {
        let created = self.port.created.take();
        let slot = &mut self.slots[at];
        let (rounds, broadcasts) = ((slot.contributions, slot.syncs), slot.broadcasts);
        let count = created.len() as u32;
        slot.extra().created[0] += count;
        slot.extra().created[1] += count;
        for (rank, chare) in created {
            let mut slot = Slot::new(rank, chare);
            (slot.contributions, slot.syncs) = rounds;
            slot.extra().fresh = [true; 2];
            slot.broadcasts = broadcasts;
            self.send_home(pe, Box::new(slot));
        }
    }

    /// Sends a new element to its home, as if it moved there from here: so it hears every broadcast
    /// that comes after its creation.
    pub(super) fn send_home(&mut self, pe: &PeCx, slot: Box<Slot<T>>) {
        let flight = self.departures.leave(slot.rank, slot.broadcasts, self.broadcasts);
        let journey = Journey { from: pe.rank, flight, epoch: 0, step: None };
        self.port.post(pe, self.port.home(pe, slot.rank), Order::Create { journey, slot });
    }

    /// Takes an element out of its slot.
    pub(super) fn remove(&mut self, pe: &PeCx, at: usize, to: u32) -> (Slot<T>, u32) {
        let slot = self.slots.swap_remove(at);
        let epoch = self.port.unsettle(slot.rank, to);
        if let Some(moved) = self.slots.get(at) {
            self.port.shift(pe, moved.rank, at as u32);
        }
        (slot, epoch)
    }

    pub(super) fn ends(&mut self, pe: &PeCx, at: usize) {
        let home = self.port.home(pe, self.slots[at].rank);
        let (mut slot, epoch) = self.remove(pe, at, home);
        let rank = slot.rank;
        self.port.post(pe, home, Order::Located { rank, news: Known { pe: home, epoch } });
        // What its guards held back is for whoever has its index next.
        for msg in slot.extra.iter_mut().flat_map(|extra| extra.pending.drain(..)) {
            self.port.send(pe, rank, msg);
        }
        let ended = Ended {
            array: self.port.id,
            reductions: (slot.contributions, slot.ends(0)),
            syncs: (slot.syncs, slot.ends(1)),
        };
        pe.tell(0, PeOrder::Ended(Box::new(ended)));
    }

    pub(super) fn leave(&mut self, pe: &PeCx, at: usize, to: u32, step: Option<u32>) {
        pe.counts.migrations.set(pe.counts.migrations.get() + 1);
        let (slot, epoch) = self.remove(pe, at, to);
        let flight = self.departures.leave(slot.rank, slot.broadcasts, self.broadcasts);
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

    pub(super) fn arrive(&mut self, pe: &PeCx, journey: Journey, mut slot: Slot<T>, buffer: Vec<u8>) {
        self.lands(pe, journey, &mut slot, buffer);
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

    /// Tells the PE an element comes from which broadcasts it missed on its way.
    fn lands(&self, pe: &PeCx, journey: Journey, slot: &mut Slot<T>, buffer: Vec<u8>) {
        slot.broadcasts = slot.broadcasts.max(self.broadcasts);
        let landed = Order::Landed { flight: journey.flight, broadcasts: slot.broadcasts, buffer };
        self.port.post(pe, journey.from, landed);
    }

    /// Gives an element a slot, and what came before it.
    pub(super) fn place(&mut self, pe: &PeCx, slot: Slot<T>, epoch: u32) {
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
            self.begin(pe);
            self.run_pending(pe, at, rank);
        }
    }

    /// Creates an element here, at its home, or keeps it until its namesake is known to be gone.
    pub(super) fn create(&mut self, pe: &PeCx, journey: Journey, mut slot: Box<Slot<T>>) {
        let rank = slot.rank;
        let (vacant, holds) = match &self.port.directory {
            Some(directory) => (directory.borrow().vacant(rank), directory.borrow().holds(rank)),
            None => {
                let at = self.port.shared.places[rank as usize].load(Relaxed);
                let here = location::pe_of(at) == pe.rank;
                ((here && at as u32 == IN_TRANSIT).then_some(0), here && at as u32 != IN_TRANSIT)
            }
        };
        // Elsewhere it may have ended without our knowing; here it lives.
        if holds {
            return pe.fail(format!("{} exists already, and was inserted again", self.port.name(rank)));
        }
        match vacant {
            Some(epoch) => {
                self.lands(pe, journey, &mut slot, Vec::new());
                self.place(pe, *slot, epoch);
            }
            None => self.unborn.push((journey, slot)),
        }
    }
}

impl<T: Chare> Slot<T> {
    /// What the element says of others when it contributes (`kind` 0) or comes to a barrier (1).
    pub(crate) fn takes_part(&mut self, kind: usize) -> Tally {
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
