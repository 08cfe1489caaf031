//! The interface of an array to the scheduler and to load-balancing steps.

use super::by_priority::ORDERS;
use super::{ChareSlot, Elements, Manager, Weighed};
use crate::array::Chare;
use crate::checkpoint::{ArrayIndex, Part};
use crate::codec;
use crate::index::Index;
use crate::location::Route;
use crate::order::{ObjectStatistics, Order, Statistics};
use crate::pe::PeCx;
use crate::slot::{Collective, Item, NextRounds};
use crate::waiting::Waiting;
use equipoise_model::table::count;
use rustc_hash::FxHashMap;
use std::cell::LazyCell;
use std::collections::BTreeMap;

impl<T: Chare> Manager for Elements<T> {
    fn local(&mut self, pe: &PeCx) {
        self.begin(pe);
        self.run_local(pe);
        self.stay_queued(pe);
    }

    fn first_priority(&mut self, pe: &PeCx) -> Option<i64> {
        Elements::first_priority(self, pe)
    }

    fn one(&mut self, pe: &PeCx) {
        self.begin(pe);
        // Messages and orders alternate, so that neither starves, but for messages that are less urgent than orders.
        let is_less_urgent =
            T::PRIORITIZED && self.by_priority.first().is_some_and(|priority| priority > ORDERS);
        self.ordered_last = (!self.ordered_last || is_less_urgent) && !self.port.orders.borrow().is_empty();
        let item = if self.ordered_last { None } else { self.next_item(pe) };
        match item {
            Some(item) => {
                pe.out.executed(1);
                self.enter(pe, item);
            }
            None => self.run_orders(pe),
        }
        self.stay_queued(pe);
    }

    fn mail(&mut self, pe: &PeCx, from: u32) -> bool {
        let mut bag = std::mem::take(&mut self.bag);
        let taken = pe.out.take(&self.port.shared.mail, from, &mut bag);
        if taken {
            self.begin(pe);
            pe.out.executed(bag.items.len() as u64 + u64::from(bag.one.is_some()));
            if let Some(item) = bag.one.take() {
                self.arrives(pe, item);
            }
            for item in bag.items.drain(..) {
                self.arrives(pe, item);
            }
            let sender = pe.out.node.first + from;
            for order in bag.orders.drain(..) {
                pe.out.during_order(self.port.id, sender, None, || self.order(pe, order));
            }
            pe.delivery.running.clear();
        }
        self.bag = bag;
        taken
    }

    fn packet(&mut self, pe: &PeCx, bytes: &[u8]) {
        if let Some(order) = self.port.decoded(&pe.out, bytes) {
            self.begin(pe);
            self.order(pe, order);
            pe.delivery.running.clear();
        }
    }

    fn weigh(&mut self, pe: &PeCx) -> f64 {
        let speed = pe.clock.speed();
        let before = std::mem::take(&mut self.weighed);
        // Only where elements have come or ended since, so that others are in other places.
        let by_rank = LazyCell::new(|| {
            before.iter().map(|known| (known.rank, known.period)).collect::<FxHashMap<u32, f64>>()
        });
        let mut sum = 0.0;
        self.weighed = self
            .slots
            .iter()
            .enumerate()
            .map(|(at, slot)| {
                let measured = pe.recorder.clock.seconds(slot.load);
                let period = match &slot.extra {
                    Some(extra) => extra.declared.unwrap_or(measured * speed + extra.charged) / speed,
                    None => measured,
                };
                sum += period;
                let known = match before.get(at) {
                    None if before.is_empty() => 0.0,
                    Some(known) if known.rank == slot.rank => known.period,
                    _ => by_rank.get(&slot.rank).copied().unwrap_or(0.0),
                };
                let interval = (period - known).max(0.0);
                Weighed { rank: slot.rank, period, interval }
            })
            .collect();
        sum
    }

    fn all_called(&self) -> bool {
        let waits = |slot: &ChareSlot<T>| slot.extra.as_ref().is_some_and(|extra| extra.resume.is_some());
        !T::SYNC || self.slots.iter().all(waits)
    }

    fn has_elements(&self) -> bool {
        !self.slots.is_empty() || !self.late.is_empty()
    }

    fn collect(&mut self, pe: &PeCx, statistics: &mut Statistics) {
        // Of bound elements, the leader takes part in steps.
        let is_follower = pe.infos[usize::from(self.port.id)].bound_to.is_some();
        let movable = is_follower || (T::SYNC && !T::PINNED && T::Index::GROUP.is_none());
        let speed = pe.clock.speed();
        // A vector that grows may stay in the memory of another thread, where a first small block came from; PEs that collect
        // at the same time would wait for each other.
        statistics.objects.reserve_exact(self.slots.len());
        let weighed = std::mem::take(&mut self.weighed);
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let measured = pe.recorder.clock.seconds(std::mem::take(&mut slot.load));
            let known = weighed.get(at).filter(|known| known.rank == slot.rank && known.period > 0.0);
            let mut object = ObjectStatistics {
                array: self.port.id,
                rank: slot.rank,
                index: T::Index::unrank(slot.rank, self.port.shared.shape).coordinates(),
                load_seconds: measured * speed,
                interval_part: known.map_or(1.0, |known| (known.interval / known.period) as f32),
                bytes: None,
                migratable: movable && slot.extra.as_ref().is_none_or(|extra| !extra.pinned),
                edges: Vec::new(),
            };
            if let Some(extra) = &mut slot.extra {
                let charged = std::mem::take(&mut extra.charged);
                object.load_seconds = extra.declared.take().unwrap_or(measured * speed + charged);
                object.edges = extra.edges.as_mut().map(|edges| edges.take()).unwrap_or_default();
            }
            // A bound on memory counts all elements.
            if object.migratable || pe.settings().constraints.memory.is_some() {
                object.bytes = Some(codec::size(&slot.chare) + codec::size(&slot.flow));
            }
            statistics.measured_seconds += measured;
            statistics.objects.push(object);
        }
    }

    fn migrate(&mut self, pe: &PeCx, step: u32, rank: u32, to: u32) -> bool {
        let Route::Here(at) = self.port.find(&pe.out, rank) else { return false };
        self.leave(pe, at as usize, to, Some(step));
        true
    }

    fn resume(&mut self, pe: &PeCx, round: u32) {
        self.called = 0;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if slot.syncs <= round + 1
                && let Some(msg) = slot.extra.as_mut().and_then(|extra| extra.resume.take())
            {
                self.port.enqueue_traced(&pe.out, Item { rank: slot.rank, slot: at as u32, msg });
            }
        }
    }

    fn has_own(&self) -> bool {
        !self.batch.is_empty()
            || T::PRIORITIZED && self.by_priority.len() > 0
            || !self.port.local.borrow().is_empty()
            || !self.port.orders.borrow().is_empty()
    }

    fn queued(&self, pe: &PeCx) -> usize {
        let mail = self.port.shared.mail.messages(pe.out.local, Order::is_message);
        let orders = self.port.orders.borrow().iter().filter(|order| order.is_message()).count();
        self.batch.len() + self.by_priority.len() + self.port.local.borrow().len() + orders + mail
    }

    fn waiting(&self, pe: &PeCx, waiting: &mut Waiting) {
        let array = (self.port.id, T::NAME);
        let here = Some(pe.out.rank);
        for slot in &self.slots {
            let element = || (slot.rank, || self.port.name(slot.rank));
            waiting.element(Collective::Reduction, array, slot.contributions, element());
            if T::SYNC && pe.settings().has_barriers() {
                waiting.element(Collective::Barrier, array, slot.syncs, element());
            }
            if let Some(messages) = T::waits(&slot.flow) {
                waiting.flow(array, messages, element());
            }
            let Some(extra) = &slot.extra else { continue };
            let mut entries = BTreeMap::<_, u64>::new();
            for msg in &extra.pending {
                *entries.entry((T::ENTRIES[T::entry(msg)], T::idle(&slot.flow, msg))).or_default() += 1;
            }
            for ((entry, idle), messages) in entries {
                let (name, messages) = (self.port.name(slot.rank), count(messages, "message"));
                waiting.line(here, pending(&name, &messages, entry, idle));
            }
        }
        self.early_messages(pe, waiting, |_| true);
        for rank in self.blocked_inserts.sorted_keys() {
            let name = self.port.name(rank as u32);
            let inserted = match self.blocked_inserts.get(rank).map_or(0, |waiting| waiting.len()) {
                1 => format!("the inserted {name} waits"),
                number => format!("{number} inserted elements {name} wait"),
            };
            waiting.line(here, format!("{inserted} for the end of {name}, which exists already"));
        }
        let queued = self.queued(pe);
        if queued > 0 {
            let verb = if queued == 1 { "is" } else { "are" };
            let messages = count(queued as u64, "message");
            waiting.line(here, format!("{messages} for elements of {} {verb} queued", T::NAME));
        }
    }

    fn save(&mut self, pe: &PeCx, part: &mut Part) -> Result<ArrayIndex, String> {
        self.save_all(pe, part)
    }

    fn restore(&mut self, rests: &[Vec<u8>], next: NextRounds, arrays: usize) -> Result<(), String> {
        self.restore_rests(rests, next, arrays)
    }

    fn resend(&mut self, pe: &PeCx) {
        self.resend_all(pe);
    }

    fn drop_element(&mut self) -> bool {
        self.slots.pop().is_some()
    }

    fn unreceived(&self, pe: &PeCx, waiting: &mut Waiting) {
        // An element that migrates or waits for broadcasts exists.
        self.early_messages(pe, waiting, |rank| {
            self.port.home(&pe.out, rank) == pe.out.rank
                && self.port.vacant(rank).is_some()
                && self.late.get(u64::from(rank)).is_none()
        });
    }
}

impl<T: Chare> Elements<T> {
    /// Adds the messages for those elements that are not here.
    fn early_messages(&self, pe: &PeCx, waiting: &mut Waiting, is_missing: impl Fn(u32) -> bool) {
        for key in self.early.sorted_keys() {
            let rank = key as u32;
            let Some(messages) = self.early.get(key).filter(|_| is_missing(rank)) else { continue };
            let (name, verb) = (self.port.name(rank), if messages.len() == 1 { "waits" } else { "wait" });
            let messages = count(messages.len() as u64, "message");
            waiting.line(Some(pe.out.rank), format!("{messages} {verb} for {name}, which does not exist"));
        }
    }
}

/// That an element has messages which it does not receive, because their guard is false or because their flow does not run.
fn pending(name: &str, messages: &str, entry: &str, idle: Option<&str>) -> String {
    let why = match idle {
        None => "whose guard is false".into(),
        Some(flow) => format!("but its flow `{flow}` does not run: it was not started, or has ended"),
    };
    format!("{name} has {messages} for `{entry}`, {why}")
}
