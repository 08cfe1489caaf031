//! Messages that wait in the order of their priorities, of arrays where an entry has one. Callers that queue or take a message test
//! `T::PRIORITIZED` in their own code: behind a function, the compiler would keep this queue for arrays without priorities, too.

use super::Elements;
use crate::array::Chare;
use crate::pe::PeCx;
use crate::slot::Item;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The priority of orders, which is that of messages without one.
pub(super) const ORDERS: i64 = 0;

/// The waiting messages of an array: smaller priorities first, equal ones in the order in which they came.
pub(super) struct ByPriority<M> {
    heap: BinaryHeap<Waiting<M>>,
    /// The number of messages that have come.
    came: u64,
}

struct Waiting<M> {
    priority: i64,
    /// Its number among all messages that have come.
    number: u64,
    item: Item<M>,
}

impl<M> Ord for Waiting<M> {
    /// The greatest is first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.priority, other.number).cmp(&(self.priority, self.number))
    }
}

impl<M> PartialOrd for Waiting<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> PartialEq for Waiting<M> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<M> Eq for Waiting<M> {}

impl<M> Default for ByPriority<M> {
    fn default() -> Self {
        ByPriority { heap: BinaryHeap::new(), came: 0 }
    }
}

impl<M> ByPriority<M> {
    /// The number of messages.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    fn push(&mut self, priority: i64, item: Item<M>) {
        let number = self.came;
        self.came += 1;
        self.heap.push(Waiting { priority, number, item });
    }

    /// The priority of the first message.
    pub(super) fn first(&self) -> Option<i64> {
        self.heap.peek().map(|first| first.priority)
    }

    /// Changes the slot of the first message that `is_it` accepts.
    pub(super) fn change_slot(&mut self, is_it: impl Fn(&Item<M>) -> bool, slot: u32) {
        let mut all = std::mem::take(&mut self.heap).into_vec();
        if let Some(found) = all.iter_mut().find(|waiting| is_it(&waiting.item)) {
            found.item.slot = slot;
        }
        self.heap = all.into();
    }

    /// Takes the first message, with its number.
    fn pop(&mut self) -> Option<(u64, Item<M>)> {
        self.heap.pop().map(|first| (first.number, first.item))
    }
}

impl<T: Chare> Elements<T> {
    /// Queues a message by priority.
    pub(super) fn wait_by_priority(&mut self, pe: &PeCx, item: Item<T::Msg>) {
        // A priority is code of the program, which may panic.
        pe.delivery.running.set(self.port.id, T::entry(&item.msg) as u16, item.rank);
        let priority = T::priority(&item.msg);
        pe.delivery.running.clear();
        self.by_priority.push(priority, item);
        pe.out.queue(self.port.bit);
    }

    /// Queues the messages of this PE to itself by priority.
    pub(super) fn sort_local(&mut self, pe: &PeCx) {
        if self.port.local.borrow().is_empty() {
            return;
        }
        let mut local = self.port.local.take();
        pe.out.trace(|tracer| tracer.leave_port(self.port.id, local.len()));
        local.drain(..).for_each(|item| self.wait_by_priority(pe, item));
        // Reuses the memory of the queue; a priority cannot send.
        *self.port.local.borrow_mut() = local;
    }

    /// The priority of the next message or of the orders that wait.
    pub(super) fn first_priority(&mut self, pe: &PeCx) -> Option<i64> {
        if !T::PRIORITIZED || !pe.out.has_priorities() {
            return None;
        }
        self.sort_local(pe);
        let orders = if self.port.orders.borrow().is_empty() { None } else { Some(ORDERS) };
        self.by_priority.first().into_iter().chain(orders).min()
    }

    /// Takes the next message by priority.
    pub(super) fn next_by_priority(&mut self, pe: &PeCx) -> Option<Item<T::Msg>> {
        self.sort_local(pe);
        let (number, item) = self.by_priority.pop()?;
        pe.out.trace(|tracer| tracer.takes(self.port.id, Some(number)));
        Some(item)
    }
}
