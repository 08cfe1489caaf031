//! Exchanges that lower the cost of moves and messages and keep every PE below a load.

use super::exchange::Exchange;
use super::layout::Layout;

/// Costs are relative to those of a whole plan; lower gains are rounding errors.
pub(super) const SMALLEST: f64 = 1e-9;

/// The largest number of passes over all slots.
const PASSES: usize = 12;

/// The most that moving a replica can change the cost, a number below 0: by slot, and the least of the slots of a PE.
struct Drops {
    /// The lowest cost of messages of an expert on any PE.
    lowest: Vec<f64>,
    of_slot: Vec<f64>,
    of_pe: Vec<f64>,
}

impl Layout<'_> {
    /// Lowers the cost of moves and messages, while no PE becomes heavier than `cap`.
    pub(super) fn reduce_costs(&mut self, cap: i64) {
        if !self.given.has_costs() {
            return;
        }
        let mut drops = Drops::of(self);
        for _ in 0..PASSES {
            let mut is_changed = false;
            for slot in 0..self.slot.len() {
                let Some(exchange) = self.cheapest_exchange(slot, cap, &drops) else { continue };
                self.apply(exchange);
                is_changed = true;
                match exchange {
                    Exchange::Swap(a, b) => [a, b].iter().for_each(|&slot| drops.update(self, self.pe(slot))),
                    // The counts of two experts change, on any PE.
                    Exchange::Replace(..) => drops = Drops::of(self),
                }
            }
            if !is_changed {
                return;
            }
        }
    }

    /// The exchange with one slot that lowers the cost most.
    fn cheapest_exchange(&self, slot: usize, cap: i64, drops: &Drops) -> Option<Exchange> {
        let (given, pe, expert) = (self.given, self.pe(slot), self.slot[slot]);
        // Where neither is possible, moving this replica only costs; the other replica of a swap finds the swap.
        if drops.of_slot[slot] >= -SMALLEST {
            return None;
        }
        let (mut best, mut cheapest) = (None, -SMALLEST);
        let count = self.count(expert);
        let here = given.cost(expert, pe, count);
        for other in 0..given.pes {
            let is_possible = other != pe && given.zone_of_pe[other] == given.zone_of_pe[pe];
            if !is_possible || self.holds(expert, other) {
                continue;
            }
            let gained = given.cost(expert, other, count) - here;
            if gained + drops.of_pe[other] >= cheapest {
                continue;
            }
            for at in self.slots_of(other) {
                let back = self.slot[at];
                if gained + drops.of_slot[at] >= cheapest {
                    continue;
                }
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
        if count > 1 && given.is_move(expert, pe) {
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

impl Drops {
    fn of(layout: &Layout) -> Self {
        let given = layout.given;
        let least = |costs: &[f64]| costs.iter().copied().fold(f64::INFINITY, f64::min);
        let lowest = match given.message_cost.is_empty() {
            true => vec![0.0; given.load.len()],
            false => given.message_cost.chunks(given.pes).map(least).collect(),
        };
        let mut drops = Drops { lowest, of_slot: vec![0.0; layout.slot.len()], of_pe: vec![0.0; given.pes] };
        (0..given.pes).for_each(|pe| drops.update(layout, pe));
        drops
    }

    fn update(&mut self, layout: &Layout, pe: usize) {
        for slot in layout.slots_of(pe) {
            let expert = layout.slot[slot];
            let count = layout.count(expert);
            let lowest = self.lowest[expert as usize] / f64::from(count);
            self.of_slot[slot] = lowest - layout.given.cost(expert, pe, count);
        }
        let of_slots = self.of_slot[layout.slots_of(pe)].iter();
        self.of_pe[pe] = of_slots.copied().fold(0.0, f64::min);
    }
}
