//! Executes orders about an array from this and other PEs.

use super::{Elements, Insertion};
use crate::array::{Chare, ChareOrder, ChareSlot, each_of};
use crate::events::EventLog;
use crate::location::{IN_TRANSIT, Known, Route};
use crate::order::{Encoded, Landed, Located, Multicast, Order};
use crate::pe::PeCx;
use crate::slot::Item;
use std::rc::Rc;

impl<T: Chare> Elements<T> {
    pub(super) fn run_orders(&mut self, pe: &PeCx) {
        if self.port.orders.borrow().is_empty() {
            return;
        }
        let mut orders = self.port.orders.take();
        for order in orders.drain(..) {
            pe.out.trace(|tracer| tracer.executes_order(Some(self.port.id)));
            pe.out.during_order(self.port.id, pe.out.rank, None, || self.order(pe, order));
        }
        // Reuses the memory of the queue, unless new orders arrived meanwhile.
        let mut now = self.port.orders.borrow_mut();
        if now.is_empty() {
            *now = orders;
        }
        drop(now);
        // The time of orders is no element's load.
        self.begin(pe);
    }

    pub(super) fn order(&mut self, pe: &PeCx, order: ChareOrder<T>) {
        // The previous order may have run elements.
        pe.delivery.running.clear();
        match order {
            Order::Message { rank, epoch, origin, msg } => self.receive_routed(pe, rank, epoch, origin, msg),
            Order::Located(Located { rank, news }) => self.receive_news(pe, rank, news),
            Order::Broadcast(msg) => self.port.distribute(&pe.out, msg),
            Order::All { number, msg } => {
                self.port.relay(&pe.out, number, &msg);
                if number != self.broadcasts {
                    self.ahead.insert(number, msg);
                    return;
                }
                self.deliver_to_all(pe, msg);
                while let Some(msg) = self.ahead.take(self.broadcasts) {
                    self.deliver_to_all(pe, msg);
                }
            }
            Order::Multicast(multicast) => self.receive_multicast(pe, multicast.0, multicast.1),
            Order::Partial(partial) => self.port.receive_partial(pe, *partial),
            Order::Arrive { journey, slot } => self.arrive(pe, journey, *slot, Vec::new()),
            Order::ArriveEncoded(Encoded { journey, bytes }) => {
                if let Some(slot) = self.port.decoded::<ChareSlot<T>>(&pe.out, &bytes) {
                    self.arrive(pe, journey, slot, bytes);
                }
            }
            Order::Landed(Landed { flight, at, broadcasts, buffer }) => {
                // The buffer is empty if the element was not encoded.
                self.flying_bytes -= buffer.len().min(self.flying_bytes);
                pe.out.return_buffer(buffer);
                self.encode_leaving(pe);
                let port = Rc::clone(&self.port);
                self.departures.landed(flight, (at, broadcasts), self.broadcasts, |rank, number, msg| {
                    port.post(&pe.out, at, Order::Missed { rank, number, msg: T::copy(msg) });
                });
            }
            Order::Missed { rank, number, msg } => {
                if let Some((_, slot)) = self.late.get_mut(u64::from(rank)) {
                    slot.extra().missed.insert(number, msg);
                    self.deliver_late(pe, rank);
                }
            }
            Order::Admit { on, mut slot } => {
                {
                    let array_ledgers = &mut pe.collectives.ledgers.borrow_mut()[usize::from(self.port.id)];
                    slot.contributions = array_ledgers.reductions.admit();
                    slot.syncs = array_ledgers.syncs.admit();
                }
                slot.broadcasts = self.port.broadcasts.get();
                self.send_home(&pe.out, on, slot);
            }
            Order::Create { journey, on, slot } => {
                pe.out.inserts(-1);
                self.create(pe, Insertion { journey, on, slot });
            }
            Order::Met(rank) => self.met(pe, rank),
            Order::Visited(rank) => {
                // If the element has left, its guards are evaluated where it is placed.
                if let Route::Here(at) = self.port.find(&pe.out, rank) {
                    self.recheck(pe, at as usize);
                }
            }
        }
    }

    /// Takes news of the location of an element. An insertion waits for the end of the previous element: the news may be that it has
    /// migrated.
    fn receive_news(&mut self, pe: &PeCx, rank: u32, news: Known) {
        if let Some(directory) = &self.port.directory {
            directory.borrow_mut().located(rank, news);
        }
        let key = u64::from(rank);
        if let Some(waiting) = self.blocked_inserts.get_mut(key)
            && let Some(epoch) = self.port.vacant(rank)
            && self.late.get(key).is_none()
            && let Some(insertion) = waiting.pop_front()
        {
            if waiting.is_empty() {
                self.blocked_inserts.remove(key);
            }
            self.begins(pe, insertion, epoch);
        }
    }

    /// Receives a message that was routed by a directory.
    pub(super) fn receive_routed(&mut self, pe: &PeCx, rank: u32, epoch: u32, origin: u32, msg: T::Msg) {
        let Some(directory) = &self.port.directory else { return };
        let route = directory.borrow().route_received(rank, epoch);
        pe.out.executed(1);
        match route {
            // The packets of a simulated machine have waited by priority.
            Route::Here(slot)
                if T::PRIORITIZED && pe.out.has_priorities() && pe.clock.simulated().is_none() =>
            {
                let slot = pe.out.log().map_or(slot, EventLog::defers);
                pe.out.not_executed();
                self.wait_by_priority(pe, Item { rank, slot, msg });
            }
            Route::Here(slot) => self.deliver_one(pe, slot as usize, msg),
            Route::Hold => self.hold(pe, rank, msg),
            Route::There(news) => {
                pe.out.not_executed();
                if origin != pe.out.rank {
                    self.port.post(&pe.out, origin, Order::Located(Located { rank, news }));
                }
                if let Some(log) = pe.out.log() {
                    log.addresses(self.port.id, rank);
                }
                self.port.post(&pe.out, news.pe, Order::Message { rank, epoch: news.epoch, origin, msg });
            }
        }
    }

    /// Delivers a multicast to its receivers here, after it has forwarded it to other PEs.
    fn receive_multicast(&mut self, pe: &PeCx, way: Multicast, msg: T::Msg) {
        let Multicast { origin, mut branches } = way;
        let others = branches.split_off(branches.len().min(1));
        self.port.forward(&pe.out, origin, others, &msg);
        let receivers = branches.pop().map(|(_, receivers)| receivers).unwrap_or_default();
        self.begin(pe);
        each_of::<T, _>(receivers, msg, |(rank, epoch), msg| {
            if self.port.directory.is_some() {
                return self.receive_routed(pe, rank, epoch, origin, msg);
            }
            pe.out.executed(1);
            let log = if T::PRIORITIZED && pe.out.has_priorities() { pe.out.log() } else { None };
            self.arrives(pe, Item { rank, slot: log.map_or(IN_TRANSIT, EventLog::defers), msg });
        });
    }

    /// Delivers the next broadcast to the elements on this PE that have not received it.
    pub(super) fn deliver_to_all(&mut self, pe: &PeCx, msg: T::Msg) {
        self.begin(pe);
        let number = self.broadcasts;
        let (mut at, mut deliveries) = (0, 0);
        while at < self.slots.len() {
            let count = self.slots.len();
            let slot = &mut self.slots[at];
            let rank = slot.rank;
            if slot.broadcasts == number {
                slot.broadcasts = number.wrapping_add(1);
                deliveries += 1;
                self.deliver(pe, at, T::copy(&msg));
            }
            // If the element left or ended, another element has its slot.
            if self.slots.len() == count && self.slots[at].rank == rank {
                at += 1;
            }
        }
        self.broadcasts = number.wrapping_add(1);
        // A bound element that waits for others may be ahead of this PE, and have received this broadcast.
        for (_, slot) in self.late.values_mut().filter(|(_, slot)| slot.missing() <= number) {
            slot.extra().missed.insert(number, T::copy(&msg));
        }
        if self.departures.waiting() {
            for (rank, at) in self.departures.delivered(number, || T::copy(&msg)) {
                self.port.post(&pe.out, at, Order::Missed { rank, number, msg: T::copy(&msg) });
            }
        }
        pe.out.executed(deliveries);
    }
}
