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
    free: f64,
}

/// The cost of an exchange that is free, relative to that of one replica: without it, a small gain that is free would win
/// against every other.
const FREE: f64 = 0.25;

impl Layout<'_> {
    /// Makes PEs with more load than `cap` lighter, the heaviest first, until none is left or no exchange helps.
    pub(super) fn relieve(&mut self, cap: i64) {
        // Every exchange lowers the sum of squares above `cap`; the limit only bounds the time.
        for _ in 0..8 * self.slot.len() {
            let heavy = self.heaviest();
            if self.pe_load[heavy] <= cap {
                return;
            }
            match self.best_exchange(heavy, cap) {
                Some(exchange) => self.apply(exchange),
                None => return,
            }
        }
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
        let mut best = Best { exchange: None, score: 0.0, free: FREE * self.given.unit };
        self.best_swap(heavy, cap, &mut best);
        self.best_replacement(heavy, cap, &mut best);
        best.exchange
    }

    fn best_swap(&self, heavy: usize, cap: i64, best: &mut Best) {
        let (given, load) = (self.given, self.pe_load[heavy]);
        for light in 0..given.pes {
            let room = load - self.pe_load[light];
            if room <= 0 || given.zone_of_pe[light] != given.zone_of_pe[heavy] {
                continue;
            }
            let before = over(load, cap) + over(self.pe_load[light], cap);
            let bound = before - 2.0 * over(load - room / 2, cap);
            if bound / best.free <= best.score {
                continue;
            }
            for a in self.slots_of(heavy) {
                let down = self.slot[a];
                if self.holds(down, light) {
                    continue;
                }
                for b in self.slots_of(light) {
                    let up = self.slot[b];
                    let less = self.share[down as usize] - self.share[up as usize];
                    if less <= 0 || less >= room {
                        continue;
                    }
                    let gain = before - over(load - less, cap) - over(self.pe_load[light] + less, cap);
                    if gain / best.free <= best.score || self.holds(up, heavy) {
                        continue;
                    }
                    best.offer(gain, || self.swap_cost(a, b), Exchange::Swap(a, b));
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
        for a in self.slots_of(heavy) {
            let expert = self.slot[a];
            if can_grow(expert) {
                // One more replica of an expert of the heavy PE, elsewhere.
                for slot in 0..self.slot.len() {
                    let (pe, old) = (slot / given.slots, self.slot[slot]);
                    if self.count(old) > 1 && given.zone_of_pe[pe] == zone && !self.holds(expert, pe) {
                        self.offer_replacement(slot, expert, peak, cap, best);
                    }
                }
            }
            if self.count(expert) > 1 {
                // One replica less on the heavy PE, for an expert that is not there.
                for other in 0..given.load.len() as u32 {
                    if given.allows(other, heavy) && can_grow(other) && !self.holds(other, heavy) {
                        self.offer_replacement(a, other, peak, cap, best);
                    }
                }
            }
        }
    }

    fn offer_replacement(&self, slot: usize, expert: u32, peak: i64, cap: i64, best: &mut Best) {
        if let Some(gain) = self.replacement_gain(slot, expert, peak, cap)
            && gain / best.free > best.score
        {
            best.offer(gain, || self.replacement_cost(slot, expert), Exchange::Replace(slot, expert));
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
        let others = self.hosts[old as usize].iter().filter(move |&&host| {
            host as usize != pe && !self.holds(expert, host as usize)
        });
        let of_old = others.map(move |&host| (self.pe_load[host as usize], self.pe_load[host as usize] + more));
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
        cost(old, of_old - 1, Some(pe)) - cost(old, of_old, None) + cost(expert, of_expert + 1, None)
            + given.cost(expert, pe, of_expert + 1)
            - cost(expert, of_expert, None)
    }
}

impl Best {
    /// Takes an exchange with a better score than the best so far.
    fn offer(&mut self, gain: f64, cost: impl FnOnce() -> f64, exchange: Exchange) {
        let score = gain / (self.free + cost().max(0.0));
        if score > self.score {
            (self.score, self.exchange) = (score, Some(exchange));
        }
    }
}

/// The square of the load above `cap`.
fn over(load: i64, cap: i64) -> f64 {
    let over = (load - cap).max(0) as f64;
    over * over
}
