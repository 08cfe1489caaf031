//! What the elements of an array on a PE do for those of other arrays there.

use super::Elements;
use crate::array::Chare;
use crate::location::Route;
use crate::order::Order;
use crate::pe::{AnyElements, PeCx, Presence};
use std::any::Any;

impl<T: Chare> AnyElements for Elements<T> {
    fn visit(&mut self, pe: &PeCx, rank: u32, visit: &mut dyn FnMut(&mut dyn Any)) {
        if let Route::Here(at) = self.port.find(&pe.out, rank) {
            visit(&mut self.slots[at as usize].chare);
            self.was_visited(pe, at);
        } else if let Some((_, slot)) = self.late.get_mut(u64::from(rank)) {
            // Its guards are evaluated when it is placed.
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
    /// A visit may have changed what the guards of the element in this slot say. The element cannot run its pending messages here, inside
    /// of another element's entry method, so the PE sends itself an order. Until then, new messages wait behind the pending ones.
    fn was_visited(&mut self, pe: &PeCx, slot: u32) {
        let slot = &mut self.slots[slot as usize];
        if let Some(extra) = slot.extra.as_mut().filter(|extra| !extra.pending.is_empty() && !extra.visited) {
            extra.visited = true;
            self.port.post(&pe.out, pe.out.rank, Order::Visited(slot.rank));
        }
    }

    /// Delivers the pending messages of the element in this slot whose guards are true, after visits or a migration.
    pub(super) fn recheck(&mut self, pe: &PeCx, at: usize) {
        let slot = &mut self.slots[at];
        let rank = slot.rank;
        if let Some(extra) = &mut slot.extra {
            extra.visited = false;
            self.begin(pe);
            self.run_pending(pe, at, rank);
        }
    }
}
