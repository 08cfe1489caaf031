//! Exchanges that lower the cost of moves and messages and keep every PE below a load.

use super::exchange::Exchange;
use super::layout::Layout;

/// Costs are relative to those of a whole plan; lower gains are rounding errors.
const SMALLEST: f64 = 1e-9;

/// The largest number of passes over all slots.
const PASSES: usize = 12;

impl Layout<'_> {
    /// Lowers the cost of moves and messages, while no PE becomes heavier than `cap`.
    pub(super) fn reduce_costs(&mut self, cap: i64) {
        if !self.given.has_costs() {
            return;
        }
        for _ in 0..PASSES {
            let mut is_changed = false;
            for slot in 0..self.slot.len() {
                if let Some(exchange) = self.cheapest_exchange(slot, cap) {
                    self.apply(exchange);
                    is_changed = true;
                }
            }
            if !is_changed {
                return;
            }
        }
    }

    /// The exchange with one slot that lowers the cost most.
    fn cheapest_exchange(&self, slot: usize, cap: i64) -> Option<Exchange> {
        let (given, pe, expert) = (self.given, self.pe(slot), self.slot[slot]);
        let has_messages = !given.message_cost.is_empty();
        // Of a replica at home, only messages can become cheaper.
        if !has_messages && !given.is_move(expert, pe) {
            return None;
        }
        let (mut best, mut cheapest) = (None, -SMALLEST);
        for other in 0..given.pes {
            if other == pe || given.zone_of_pe[other] != given.zone_of_pe[pe] || self.holds(expert, other) {
                continue;
            }
            let count = self.count(expert);
            let gained = given.cost(expert, other, count) - given.cost(expert, pe, count);
            for at in self.slots_of(other) {
                let back = self.slot[at];
                let more = self.share[back as usize] - self.share[expert as usize];
                let keeps = self.pe_load[pe] + more <= cap && self.pe_load[other] - more <= cap;
                if !keeps || self.holds(back, pe) {
                    continue;
                }
                let count = self.count(back);
                let cost = gained + given.cost(back, pe, count) - given.cost(back, other, count);
                if cost < cheapest {
                    (best, cheapest) = (Some(Exchange::Swap(slot, at)), cost);
                }
            }
        }
        if self.count(expert) > 1 && given.is_move(expert, pe) {
            for other in 0..given.load.len() as u32 {
                let is_back = given.allows(other, pe) && !given.is_move(other, pe) && !self.holds(other, pe);
                if is_back && self.replacement_keeps(slot, other, cap) {
                    let cost = self.replacement_cost(slot, other);
                    if cost < cheapest {
                        (best, cheapest) = (Some(Exchange::Replace(slot, other)), cost);
                    }
                }
            }
        }
        best
    }
}
