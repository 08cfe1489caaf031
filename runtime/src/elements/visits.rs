//! What the elements of an array on a PE do for those of other arrays there.

use super::Elements;
use crate::array::Chare;
use crate::location::Route;
use crate::pe::{AnyElements, PeCx, Presence};
use crate::slot::Item;
use std::any::Any;

impl<T: Chare> AnyElements for Elements<T> {
    fn visit(&mut self, pe: &PeCx, rank: u32, visit: &mut dyn FnMut(&mut dyn Any)) {
        if let Route::Here(at) = self.port.find(&pe.out, rank) {
            visit(&mut self.slots[at as usize].chare);
            self.retry_pending(pe, at);
        } else if let Some((_, slot)) = self.late.get_mut(&rank) {
            // When the element is placed, its guards are evaluated.
            visit(&mut slot.chare);
        }
    }

    fn presence(&self, pe: &PeCx, rank: u32) -> Presence {
        if self.port.holds(&pe.out, rank) {
            Presence::Placed
        } else if self.is_complete(rank) {
            Presence::Landed
        } else {
            Presence::Absent
        }
    }

    fn follow(&mut self, pe: &PeCx, rank: u32, to: u32) {
        let Route::Here(at) = self.port.find(&pe.out, rank) else {
            let name = self.port.name(rank);
            return pe.fail(format!(
                "{name} is not with the element to which it is bound (please report this bug)"
            ));
        };
        self.leave(pe, at as usize, to, None);
    }
}

impl<T: Chare> Elements<T> {
    /// Queues the pending messages of the element in this slot before all others of their priority, after a visit that may have changed
    /// what their guards say. The element cannot run them here, inside of another element's entry method.
    fn retry_pending(&mut self, pe: &PeCx, slot: u32) {
        if !T::GUARDED {
            return;
        }
        let element = &mut self.slots[slot as usize];
        let rank = element.rank;
        let Some(extra) = element.extra.as_mut().filter(|extra| !extra.pending.is_empty()) else { return };
        let pending = std::mem::take(&mut extra.pending);
        let before = self.is_by_priority(pe).then(|| self.by_priority.lowest_number());
        pe.out.trace(|tracer| tracer.puts_first(self.port.id, rank, pending.len(), before));
        if before.is_some() {
            let items = pending.into_iter().map(|msg| (T::priority(&msg), Item { rank, slot, msg }));
            self.by_priority.put_first(items);
        } else {
            pending.into_iter().rev().for_each(|msg| self.batch.push_front(Item { rank, slot, msg }));
        }
        pe.out.queue(self.port.bit);
    }
}
