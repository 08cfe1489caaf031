//! What the scheduler and the load balancer ask of the elements.

use super::{Elements, Manager};
use crate::array::Item;
use crate::balancer::{ObjectStatistics, Statistics};
use crate::chare::Chare;
use crate::codec;
use crate::context::PeCx;
use crate::index::Index;
use crate::location::{self, Route, is_taken};
use crate::order::PeOrder;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

impl<T: Chare> Manager for Elements<T> {
    fn local(&mut self, pe: &PeCx) {
        self.begin(pe);
        self.run_local(pe);
        self.stay_queued(pe);
    }

    fn one(&mut self, pe: &PeCx) {
        self.begin(pe);
        // Neither may starve the other: who talks to himself waits for what others order, too.
        self.ordered_last = !self.ordered_last && !self.port.orders.borrow().is_empty();
        let item = if self.ordered_last { None } else { self.next_item(pe) };
        match item {
            Some(item) => {
                pe.executed(1);
                self.enter(pe, item);
            }
            None => self.run_orders(pe),
        }
        self.stay_queued(pe);
    }

    fn mail(&mut self, pe: &PeCx, from: u32) {
        let mut bag = std::mem::take(&mut self.bag);
        if self.port.shared.mail.take(from, pe.rank, &mut bag) {
            self.begin(pe);
            let count = bag.items.len() as u64 + u64::from(bag.one.is_some());
            pe.executed(count);
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
        let speed = pe.ticker.speed();
        for slot in &mut self.slots {
            let measured = pe.ticker.seconds(std::mem::take(&mut slot.load));
            let mut object = ObjectStatistics {
                array: self.port.id,
                rank: slot.rank,
                index: T::Index::unrank(slot.rank, self.port.shared.shape).coordinates(),
                load_seconds: measured * speed,
                bytes: None,
                migratable: movable && slot.extra.as_ref().is_none_or(|extra| !extra.pinned),
                edges: Vec::new(),
            };
            if let Some(extra) = &mut slot.extra {
                let charged = std::mem::take(&mut extra.charged);
                object.load_seconds = extra.declared.take().unwrap_or(measured * speed + charged);
                object.edges = extra.edges.as_mut().map(|edges| edges.take()).unwrap_or_default();
            }
            if object.migratable {
                object.bytes = Some(codec::size(&slot.chare));
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
                if location::pe_of(at) != pe.rank || !is_taken(at as u32) {
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
                self.port.keep(pe, Item { rank: slot.rank, slot: at as u32, msg });
            }
        }
    }

    fn waiting(&self) -> Vec<String> {
        let mut told = Vec::new();
        let at_sync = self.slots.iter().filter(|s| s.extra.as_ref().is_some_and(|e| e.resume.is_some()));
        let at_sync = at_sync.count();
        if at_sync > 0 {
            told.push(format!("{at_sync} of {} elements of {} here are at sync", self.slots.len(), T::NAME));
        }
        for slot in &self.slots {
            let Some(extra) = &slot.extra else { continue };
            let mut entries = BTreeMap::<&str, usize>::new();
            for msg in &extra.pending {
                *entries.entry(T::ENTRIES[T::entry(msg)]).or_default() += 1;
            }
            for (entry, count) in entries {
                let name = self.port.name(slot.rank);
                told.push(format!(
                    "{name} has {count} messages for `{entry}` that its guard does not let in"
                ));
            }
        }
        let mut early: Vec<_> = self.early.iter().collect();
        early.sort_unstable_by_key(|(rank, _)| **rank);
        for (&rank, messages) in early {
            let name = self.port.name(rank);
            told.push(format!("{} messages wait for {name}, which does not exist", messages.len()));
        }
        for (_, slot) in &self.unborn {
            told.push(format!("{} was inserted, and exists already", self.port.name(slot.rank)));
        }
        told
    }
}
