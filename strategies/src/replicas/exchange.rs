//! Exchanges that make the heaviest PE lighter: of two replicas, or of one replica in the counts of two experts.

use super::layout::Layout;

/// A change of a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Exchange {
    /// The experts of two slots change places.
    Swap(usize, usize),
    /// A slot gets another expert: one expert has a replica more, another has one less.
    Replace(usize, u32),
}

/// The best exchange so far.
struct Best {
    exchange: Option<Exchange>,
    score: f64,
    least_cost: f64,
}

/// The largest number of steps of a descent.
const MOST: usize = 10_000;

/// The largest number of replacements that make a PE too heavy for a time, how many are tried for each, and the most steps
/// after each.
const KICKS: usize = 100;
const TRIED: usize = 12;
const STEPS: usize = 12;

/// The largest number of other counts of replicas that are tried.
const RESTARTS: usize = 12;

impl Layout<'_> {
    /// Makes PEs with more load than `goal` lighter, the heaviest first, until none is left or no exchange helps. While a PE
    /// has more load than `bound`, what takes longer is tried, too.
    pub(super) fn relieve(&mut self, goal: i64, bound: i64) {
        self.descend(goal, MOST);
        for _ in 0..KICKS {
            if self.peak() <= bound {
                return;
            }
            let heavy = self.heaviest();
            if !self.chain(heavy, bound.max(self.pe_load[heavy] - 1)) && !self.kick(bound) {
                return;
            }
            self.descend(bound, MOST);
        }
    }

    /// Places the experts of the zone with the heaviest PE anew with other counts, while a PE has more load than `bound`.
    pub(super) fn restart(&mut self, goal: i64, bound: i64) {
        for fewer in 1..=RESTARTS {
            if self.peak() <= bound {
                return;
            }
            let zone = self.given.zone_of_pe[self.heaviest()];
            let Some(mut other) = self.with_other_counts(zone, fewer) else { return };
            other.relieve(goal, bound);
            if other.peak() < self.peak() {
                *self = other;
            }
        }
    }

    /// Applies the exchanges that help most.
    pub(super) fn descend(&mut self, cap: i64, most: usize) {
        // Every exchange lowers the sum of squares above `cap`; the limit only bounds the time.
        for _ in 0..most {
            let heavy = self.heaviest();
            if self.pe_load[heavy] <= cap {
                return;
            }
            let Some(exchange) = self.best_exchange(heavy, cap) else { return };
            self.apply(exchange);
        }
    }

    /// Replaces a replica although another PE becomes too heavy, if exchanges make that one light again.
    fn kick(&mut self, cap: i64) -> bool {
        let peak = self.peak();
        let heavy = self.heaviest();
        for (_, slot, expert) in self.kicks(heavy, peak) {
            let mut tried = self.clone();
            tried.replace(slot, expert);
            tried.descend(cap.max(peak - 1), STEPS);
            if tried.peak() < peak {
                *self = tried;
                return true;
            }
        }
        false
    }

    /// Replacements that make `heavy` lighter than `peak`, by the load of the heaviest PE afterwards.
    fn kicks(&self, heavy: usize, peak: i64) -> Vec<(i64, usize, u32)> {
        let given = self.given;
        let mut kicks: Vec<(i64, usize, u32)> = Vec::new();
        let mut offer = |slot: usize, expert: u32| {
            let loads = self.replaced_loads(slot, expert).map(|(_, after)| after);
            let highest = loads.max().unwrap_or(i64::MAX);
            let kick = (highest, slot, expert);
            if kicks.len() < TRIED || kick < kicks[TRIED - 1] {
                let at = kicks.partition_point(|other| *other < kick);
                kicks.insert(at, kick);
                kicks.truncate(TRIED);
            }
        };
        for a in self.slots_of(heavy) {
            let expert = self.slot[a];
            for slot in 0..self.slot.len() {
                let (pe, old) = (slot / given.slots, self.slot[slot]);
                if pe != heavy && self.count(old) > 1 && given.allows(expert, pe) && !self.holds(expert, pe) {
                    offer(slot, expert);
                }
            }
            if self.count(expert) > 1 {
                for other in 0..given.load.len() as u32 {
                    let share = self.share_of(other, self.count(other) + 1);
                    let is_lighter =
                        share < self.share[expert as usize] + (self.pe_load[heavy] - peak).min(0);
                    if is_lighter && given.allows(other, heavy) && !self.holds(other, heavy) {
                        offer(a, other);
                    }
                }
            }
        }
        kicks
    }

    pub(super) fn apply(&mut self, exchange: Exchange) {
        match exchange {
            Exchange::Swap(a, b) => self.swap(a, b),
            Exchange::Replace(slot, expert) => self.replace(slot, expert),
        }
    }

    /// The exchange that makes `heavy` lighter and has the largest gain for its cost. The gain is the decrease of the sum of
    /// squares of the loads above `cap`.
    fn best_exchange(&self, heavy: usize, cap: i64) -> Option<Exchange> {
        let mut best = Best { exchange: None, score: 0.0, least_cost: self.given.least_cost };
        self.best_swap(heavy, cap, &mut best);
        self.best_replacement(heavy, cap, &mut best);
        best.exchange
    }

    fn best_swap(&self, heavy: usize, cap: i64, best: &mut Best) {
        let (given, load) = (self.given, self.pe_load[heavy]);
        let is_lighter =
            |&pe: &usize| self.pe_load[pe] < load && given.zone_of_pe[pe] == given.zone_of_pe[heavy];
        let mut lighter: Vec<usize> = (0..given.pes).filter(is_lighter).collect();
        lighter.sort_unstable_by_key(|&pe| (self.pe_load[pe], pe));
        for light in lighter {
            let room = load - self.pe_load[light];
            let before = over(load, cap) + over(self.pe_load[light], cap);
            // No swap with this PE gains more than one that makes both equal, and those with heavier PEs gain less.
            if !best.may_take(before - 2.0 * over(load - room / 2, cap), 0.0) {
                break;
            }
            for a in self.slots_of(heavy) {
                let down = self.slot[a];
                if self.holds(down, light) {
                    continue;
                }
                let share = self.share[down as usize];
                for b in self.slots_of(light) {
                    let less = share - self.share[self.slot[b] as usize];
                    if less <= 0 || less >= room {
                        continue;
                    }
                    let gain = before - over(load - less, cap) - over(self.pe_load[light] + less, cap);
                    if best.may_take(gain, 0.0) && !self.holds(self.slot[b], heavy) {
                        best.offer(gain, self.swap_cost(a, b), Exchange::Swap(a, b));
                    }
                }
            }
        }
    }

    /// The increase of the cost without loads by a swap.
    pub(super) fn swap_cost(&self, a: usize, b: usize) -> f64 {
        if !self.given.has_costs() {
            return 0.0;
        }
        let (from, to) = (self.pe(a), self.pe(b));
        let change = |expert: u32, from: usize, to: usize| {
            let count = self.count(expert);
            self.given.cost(expert, to, count) - self.given.cost(expert, from, count)
        };
        change(self.slot[a], from, to) + change(self.slot[b], to, from)
    }

    fn best_replacement(&self, heavy: usize, cap: i64, best: &mut Best) {
        let (given, peak) = (self.given, self.pe_load[heavy]);
        let zone = given.zone_of_pe[heavy];
        let can_grow = |expert: u32| self.count(expert) < given.zone_pes;
        // The slots whose expert has other replicas, with their PEs.
        let spare: Vec<(usize, usize, Option<usize>)> = (0..given.pes)
            .filter(|&pe| given.zone_of_pe[pe] == zone)
            .flat_map(|pe| self.slots_of(pe).map(move |slot| (slot, pe)))
            .filter(|&(slot, _)| self.count(self.slot[slot]) > 1)
            .map(|(slot, pe)| (slot, pe, self.blocking(slot, peak)))
            .collect();
        for a in self.slots_of(heavy) {
            let expert = self.slot[a];
            if can_grow(expert) && !spare.is_empty() {
                // One more replica of an expert of the heavy PE, elsewhere.
                let growth = self.growth_gain(expert, cap);
                for &(slot, pe, blocking) in &spare {
                    if !self.holds(expert, pe) && blocking.is_none_or(|pe| self.holds(expert, pe)) {
                        let bound = growth + over(self.pe_load[pe], cap);
                        self.offer_replacement(slot, expert, bound, peak, cap, best);
                    }
                }
            }
            if self.count(expert) > 1 {
                // One replica less on the heavy PE, for an expert that is not there.
                let blocking = self.blocking(a, peak);
                for other in 0..given.load.len() as u32 {
                    let is_blocked = blocking.is_some_and(|pe| !self.holds(other, pe));
                    if !is_blocked
                        && given.allows(other, heavy)
                        && can_grow(other)
                        && !self.holds(other, heavy)
                    {
                        let share = self.share_of(other, self.count(other) + 1);
                        let load = peak - self.share[expert as usize] + share;
                        if load < peak {
                            let bound = over(peak, cap) - over(load, cap) + self.growth_gain(other, cap);
                            self.offer_replacement(a, other, bound, peak, cap, best);
                        }
                    }
                }
            }
        }
    }

    /// A PE that becomes too heavy without the replica in a slot, unless it has the expert that the slot gets.
    fn blocking(&self, slot: usize, peak: i64) -> Option<usize> {
        let (pe, expert) = (self.pe(slot), self.slot[slot]);
        let more = self.share_of(expert, self.count(expert) - 1) - self.share[expert as usize];
        let others = self.hosts[expert as usize].iter().map(|&host| host as usize).filter(|&host| host != pe);
        others.into_iter().find(|&host| self.pe_load[host] + more >= peak)
    }

    /// The gain on the PEs of an expert if it has one more replica.
    fn growth_gain(&self, expert: u32, cap: i64) -> f64 {
        let less = self.share[expert as usize] - self.share_of(expert, self.count(expert) + 1);
        let loads = self.hosts[expert as usize].iter().map(|&pe| self.pe_load[pe as usize]);
        loads.filter(|&load| load > cap).map(|load| over(load, cap) - over(load - less, cap)).sum()
    }

    /// Offers a replacement whose gain is at most `bound`.
    fn offer_replacement(&self, slot: usize, expert: u32, bound: f64, peak: i64, cap: i64, best: &mut Best) {
        if !best.may_take(bound, 0.0) {
            return;
        }
        let (given, pe) = (self.given, self.pe(slot));
        let moved = f64::from(given.is_move(expert, pe)) - f64::from(given.is_move(self.slot[slot], pe));
        let moved = if given.message_cost.is_empty() { moved * given.move_cost } else { 0.0 };
        if best.may_take(bound, moved)
            && let Some(gain) = self.replacement_gain(slot, expert, peak, cap)
            && best.may_take(gain, moved)
        {
            best.offer(gain, self.replacement_cost(slot, expert), Exchange::Replace(slot, expert));
        }
    }

    /// The loads of the PEs that change if `slot` gets `expert`: before and after.
    fn replaced_loads(&self, slot: usize, expert: u32) -> impl Iterator<Item = (i64, i64)> {
        let (pe, old) = (self.pe(slot), self.slot[slot]);
        let [old_share, share] = [old, expert].map(|expert| self.share[expert as usize]);
        let new_share = self.share_of(expert, self.count(expert) + 1);
        let less = share - new_share;
        let more = self.share_of(old, self.count(old) - 1) - old_share;
        let here = (self.pe_load[pe], self.pe_load[pe] + new_share - old_share);
        let of_expert = self.hosts[expert as usize].iter().map(move |&host| {
            let load = self.pe_load[host as usize];
            (load, load - less + if self.holds(old, host as usize) { more } else { 0 })
        });
        let others = self.hosts[old as usize]
            .iter()
            .filter(move |&&host| host as usize != pe && !self.holds(expert, host as usize));
        let of_old =
            others.map(move |&host| (self.pe_load[host as usize], self.pe_load[host as usize] + more));
        std::iter::once(here).chain(of_expert).chain(of_old)
    }

    /// The gain of a replacement, if all PEs that it changes are lighter than `peak` afterwards.
    fn replacement_gain(&self, slot: usize, expert: u32, peak: i64, cap: i64) -> Option<f64> {
        let mut gain = 0.0;
        for (before, after) in self.replaced_loads(slot, expert) {
            if after >= peak {
                return None;
            }
            gain += over(before, cap) - over(after, cap);
        }
        Some(gain)
    }

    /// Whether all PEs that a replacement changes have at most the load `cap` afterwards.
    pub(super) fn replacement_keeps(&self, slot: usize, expert: u32, cap: i64) -> bool {
        self.replaced_loads(slot, expert).all(|(_, after)| after <= cap)
    }

    /// The increase of the cost without loads if `slot` gets `expert`.
    pub(super) fn replacement_cost(&self, slot: usize, expert: u32) -> f64 {
        let given = self.given;
        if !given.has_costs() {
            return 0.0;
        }
        let (pe, old) = (self.pe(slot), self.slot[slot]);
        let cost = |expert: u32, count: u32, skip: Option<usize>| -> f64 {
            let hosts = self.hosts[expert as usize].iter().map(|&host| host as usize);
            hosts.filter(|&host| Some(host) != skip).map(|host| given.cost(expert, host, count)).sum()
        };
        let (of_old, of_expert) = (self.count(old), self.count(expert));
        cost(old, of_old - 1, Some(pe)) - cost(old, of_old, None)
            + cost(expert, of_expert + 1, None)
            + given.cost(expert, pe, of_expert + 1)
            - cost(expert, of_expert, None)
    }
}

impl Best {
    /// Whether an exchange with at most this gain and at least this cost may be better than the best so far.
    fn may_take(&self, gain: f64, cost: f64) -> bool {
        gain > self.score * (self.least_cost + cost.max(0.0))
    }

    /// Takes an exchange with a better score than the best so far.
    fn offer(&mut self, gain: f64, cost: f64, exchange: Exchange) {
        if self.may_take(gain, cost) {
            (self.score, self.exchange) = (gain / (self.least_cost + cost.max(0.0)), Some(exchange));
        }
    }
}

/// The square of the load above `cap`.
fn over(load: i64, cap: i64) -> f64 {
    let over = (load - cap).max(0) as f64;
    over * over
}
