//! What other PEs, and this one itself, tell the manager of an array.

use super::Elements;
use crate::array::Slot;
use crate::chare::Chare;
use crate::context::PeCx;
use crate::location::Route;
use crate::order::Order;
use std::rc::Rc;

impl<T: Chare> Elements<T> {
    pub(super) fn run_orders(&mut self, pe: &PeCx) {
        if self.port.orders.borrow().is_empty() {
            return;
        }
        let mut orders = self.port.orders.take();
        for order in orders.drain(..) {
            pe.obeys_itself(Some(self.port.id));
            self.order(pe, order);
        }
        // Keeps the room of the queue, unless orders were given meanwhile.
        let mut now = self.port.orders.borrow_mut();
        if now.is_empty() {
            *now = orders;
        }
        drop(now);
        // What orders took is nobody's load.
        self.begin(pe);
    }

    pub(super) fn order(&mut self, pe: &PeCx, order: Order<T>) {
        // The one before may have run elements.
        pe.running.nobody();
        match order {
            Order::Message { rank, epoch, origin, msg } => self.meet(pe, rank, epoch, origin, msg),
            Order::Located { rank, news } => {
                if let Some(directory) = &self.port.directory {
                    directory.borrow_mut().located(rank, news);
                }
                if let Some(at) = self.unborn.iter().position(|(_, slot)| slot.rank == rank) {
                    let (journey, slot) = self.unborn.swap_remove(at);
                    self.create(pe, journey, slot);
                }
            }
            Order::Broadcast { msg } => self.port.spread(pe, msg),
            Order::All { number, msg } => {
                self.port.relay(pe, number, &msg);
                if number != self.broadcasts {
                    self.ahead.insert(number, msg);
                    return;
                }
                self.deliver_to_all(pe, msg);
                while let Some(msg) = self.ahead.remove(&self.broadcasts) {
                    self.deliver_to_all(pe, msg);
                }
            }
            Order::Partial(partial) => self.port.total(pe, *partial),
            Order::Arrive { journey, slot } => self.arrive(pe, journey, *slot, Vec::new()),
            Order::ArriveEncoded { journey, bytes } => {
                if let Some(slot) = self.port.decoded::<Slot<T>>(pe, &bytes) {
                    self.arrive(pe, journey, slot, bytes);
                }
            }
            Order::Landed { flight, at, broadcasts, buffer } => {
                // What was moved unencoded comes back without a buffer.
                self.flying_bytes -= buffer.len().min(self.flying_bytes);
                pe.return_buffer(buffer);
                self.encode_leaving(pe);
                let port = Rc::clone(&self.port);
                self.departures.landed(flight, (at, broadcasts), self.broadcasts, |rank, number, msg| {
                    port.post(pe, at, Order::Missed { rank, number, msg: T::copy(msg) });
                });
            }
            Order::Missed { rank, number, msg } => {
                if let Some((_, slot)) = self.late.get_mut(&rank) {
                    slot.extra().missed.insert(number, msg);
                    self.settle_late(pe, rank);
                }
            }
            Order::Admit { mut slot } => {
                {
                    let roll = &mut pe.rolls.borrow_mut()[usize::from(self.port.id)];
                    slot.contributions = roll.reductions.admit();
                    slot.syncs = roll.syncs.admit();
                }
                slot.broadcasts = self.port.broadcasts.get();
                self.send_home(pe, slot);
            }
            Order::Create { journey, slot } => self.create(pe, journey, slot),
        }
    }

    /// A message that came by directory.
    pub(super) fn meet(&mut self, pe: &PeCx, rank: u32, epoch: u32, origin: u32, msg: T::Msg) {
        let Some(directory) = &self.port.directory else { return };
        let route = directory.borrow().meet(rank, epoch);
        pe.executed(1);
        match route {
            Route::Here(slot) => self.deliver(pe, slot as usize, msg),
            Route::Hold => self.hold(pe, rank, msg),
            Route::There(news) => {
                pe.not_executed();
                if origin != pe.rank {
                    self.port.post(pe, origin, Order::Located { rank, news });
                }
                self.port.post(pe, news.pe, Order::Message { rank, epoch: news.epoch, origin, msg });
            }
        }
    }

    /// Delivers the next broadcast to the elements here that have not had it.
    pub(super) fn deliver_to_all(&mut self, pe: &PeCx, msg: T::Msg) {
        self.begin(pe);
        let number = self.broadcasts;
        let (mut at, mut heard) = (0, 0);
        while at < self.slots.len() {
            let count = self.slots.len();
            let slot = &mut self.slots[at];
            let rank = slot.rank;
            if slot.broadcasts == number {
                slot.broadcasts = number.wrapping_add(1);
                heard += 1;
                self.deliver(pe, at, T::copy(&msg));
            }
            // If it left or ended, another has its slot.
            if self.slots.len() == count && self.slots[at].rank == rank {
                at += 1;
            }
        }
        self.broadcasts = number.wrapping_add(1);
        for (_, slot) in self.late.values_mut() {
            slot.extra().missed.insert(number, T::copy(&msg));
        }
        if self.departures.waiting() {
            for (rank, at) in self.departures.delivered(number, || T::copy(&msg)) {
                self.port.post(pe, at, Order::Missed { rank, number, msg: T::copy(&msg) });
            }
        }
        pe.executed(heard);
    }
}
