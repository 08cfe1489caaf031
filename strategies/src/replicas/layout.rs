//! A placement of the replicas of a layer while it is searched for: loads are integers, so that sums are exact.

/// No expert, in a slot.
pub(super) const EMPTY: u32 = u32::MAX;

/// The sum of the loads of a layer, as an integer.
const TOTAL: f64 = (1u64 << 44) as f64;

/// What does not change while a layer is placed.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// The load of every expert; the sum is about [`TOTAL`].
    pub(super) load: Vec<i64>,
    /// The PEs.
    pub(super) pes: usize,
    /// The slots of a PE.
    pub(super) slots: usize,
    /// The zone of every PE. Zones have consecutive numbers and the same number of PEs; without groups there is one.
    pub(super) zone_of_pe: Vec<u32>,
    /// The zone of every expert: all its replicas are there.
    pub(super) zone_of_expert: Vec<u32>,
    /// The PEs of a zone.
    pub(super) zone_pes: u32,
    /// The experts of PEs before; none if nothing was placed before.
    pub(super) home: Option<Pairs>,
    /// The cost of a replica on a PE where it was not before.
    pub(super) move_cost: f64,
    /// The cost of the messages of an expert with a single replica on a PE, at `expert * pes + pe`; empty if unknown.
    pub(super) message_cost: Vec<f64>,
    /// What is added to the cost of every exchange when exchanges are compared: without it, a small gain that costs nothing
    /// would win against every other. Above 0.
    pub(super) least_cost: f64,
}

impl Given {
    /// The integer loads that stand for `loads`.
    pub(super) fn integers(loads: &[f64]) -> Vec<i64> {
        let largest = loads.iter().copied().fold(0.0, f64::max);
        if largest <= 0.0 {
            return vec![0; loads.len()];
        }
        // Dividing first keeps the sum finite.
        let parts: Vec<f64> = loads.iter().map(|load| load / largest).collect();
        let sum: f64 = parts.iter().sum();
        parts.iter().map(|part| (part / sum * TOTAL).round() as i64).collect()
    }

    /// The average load of a PE, rounded up.
    pub(super) fn average(&self) -> i64 {
        let sum: i64 = self.load.iter().sum();
        sum.div_euclid(self.pes as i64) + 1
    }

    /// Whether replicas of an expert may be on a PE.
    pub(super) fn allows(&self, expert: u32, pe: usize) -> bool {
        self.zone_of_expert[expert as usize] == self.zone_of_pe[pe]
    }

    /// Whether a replica of an expert on a PE must be copied there.
    pub(super) fn is_move(&self, expert: u32, pe: usize) -> bool {
        self.home.as_ref().is_some_and(|home| !home.has(expert, pe))
    }

    /// The cost of one of `count` replicas of an expert on a PE, without its load.
    pub(super) fn cost(&self, expert: u32, pe: usize, count: u32) -> f64 {
        let at = expert as usize * self.pes + pe;
        let moved = if self.is_move(expert, pe) { self.move_cost } else { 0.0 };
        let messages = self.message_cost.get(at).map_or(0.0, |cost| cost / f64::from(count));
        moved + messages
    }

    /// Whether replicas have costs other than their load.
    pub(super) fn has_costs(&self) -> bool {
        self.home.is_some() || !self.message_cost.is_empty()
    }
}

/// Pairs of an expert and a PE, as bits.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// The words of an expert.
    words: usize,
    bits: Vec<u64>,
}

impl Pairs {
    /// No pairs of these.
    pub(super) fn new(experts: usize, pes: usize) -> Self {
        let words = pes.div_ceil(64);
        Pairs { words, bits: vec![0; experts * words] }
    }

    pub(super) fn has(&self, expert: u32, pe: usize) -> bool {
        self.bits[expert as usize * self.words + pe / 64] >> (pe % 64) & 1 == 1
    }

    /// Adds a pair, or removes it.
    pub(super) fn set(&mut self, expert: u32, pe: usize, is_there: bool) {
        let word = &mut self.bits[expert as usize * self.words + pe / 64];
        *word = *word & !(1 << (pe % 64)) | u64::from(is_there) << (pe % 64);
    }
}

/// The expert of every slot, with what follows from it.
#[derive(Clone, Debug)]
pub(super) struct Layout<'a> {
    pub(super) given: &'a Given,
    /// The expert of every slot; the slots of a PE are adjacent.
    pub(super) slot: Vec<u32>,
    /// The PEs of every expert, not sorted.
    pub(super) hosts: Vec<Vec<u32>>,
    /// The load of a replica of every expert.
    pub(super) share: Vec<i64>,
    /// The load of every PE.
    pub(super) pe_load: Vec<i64>,
    holds: Pairs,
    /// The number of replicas of every expert.
    pub(super) count: Vec<u32>,
}

impl<'a> Layout<'a> {
    /// The layout of `slot`. A second replica on a PE and a replica in a wrong zone are left out: their slots are empty.
    pub(super) fn new(given: &'a Given, slot: impl IntoIterator<Item = u32>) -> Self {
        let experts = given.load.len();
        let mut layout = Layout {
            given,
            slot: slot.into_iter().collect(),
            hosts: vec![Vec::new(); experts],
            share: Vec::new(),
            pe_load: Vec::new(),
            holds: Pairs::new(experts, given.pes),
            count: vec![0; experts],
        };
        for at in 0..layout.slot.len() {
            let (expert, pe) = (layout.slot[at], layout.pe(at));
            if expert == EMPTY || layout.holds(expert, pe) || !given.allows(expert, pe) {
                layout.slot[at] = EMPTY;
            } else {
                layout.enter(expert, pe);
            }
        }
        layout.update_loads();
        layout
    }

    pub(super) fn pe(&self, slot: usize) -> usize {
        slot / self.given.slots
    }

    /// The slots of a PE.
    pub(super) fn slots_of(&self, pe: usize) -> std::ops::Range<usize> {
        pe * self.given.slots..(pe + 1) * self.given.slots
    }

    pub(super) fn holds(&self, expert: u32, pe: usize) -> bool {
        self.holds.has(expert, pe)
    }

    pub(super) fn count(&self, expert: u32) -> u32 {
        self.count[expert as usize]
    }

    /// The load of a replica of an expert if it has `count`.
    pub(super) fn share_of(&self, expert: u32, count: u32) -> i64 {
        self.given.load[expert as usize] / i64::from(count)
    }

    fn enter(&mut self, expert: u32, pe: usize) {
        self.holds.set(expert, pe, true);
        self.count[expert as usize] += 1;
        self.hosts[expert as usize].push(pe as u32);
    }

    fn leave(&mut self, expert: u32, pe: usize) {
        self.holds.set(expert, pe, false);
        self.count[expert as usize] -= 1;
        self.hosts[expert as usize].retain(|&host| host != pe as u32);
    }

    /// Puts an expert into a slot, in the place of the expert there; loads are out of date afterwards.
    pub(super) fn put(&mut self, slot: usize, expert: u32) {
        let (pe, old) = (self.pe(slot), std::mem::replace(&mut self.slot[slot], expert));
        if old != EMPTY {
            self.leave(old, pe);
        }
        if expert != EMPTY {
            self.enter(expert, pe);
        }
    }

    /// Computes the loads of replicas and PEs.
    pub(super) fn update_loads(&mut self) {
        let counts = self.hosts.iter().map(|hosts| hosts.len().max(1) as i64);
        self.share = self.given.load.iter().zip(counts).map(|(load, count)| load / count).collect();
        self.pe_load = vec![0; self.given.pes];
        for (at, &expert) in self.slot.iter().enumerate().filter(|(_, expert)| **expert != EMPTY) {
            self.pe_load[at / self.given.slots] += self.share[expert as usize];
        }
    }

    /// Exchanges the experts of two slots of different PEs.
    pub(super) fn swap(&mut self, a: usize, b: usize) {
        let (first, second) = (self.slot[a], self.slot[b]);
        let [first_share, second_share] = [first, second].map(|expert| self.share[expert as usize]);
        let (from, to) = (self.pe(a), self.pe(b));
        self.leave(first, from);
        self.leave(second, to);
        self.enter(first, to);
        self.enter(second, from);
        self.slot.swap(a, b);
        self.pe_load[from] += second_share - first_share;
        self.pe_load[to] += first_share - second_share;
    }

    /// Replaces the replica in a slot by one of another expert.
    pub(super) fn replace(&mut self, slot: usize, expert: u32) {
        let old = self.slot[slot];
        for expert in [old, expert] {
            self.add_to_hosts(expert, -1);
        }
        self.put(slot, expert);
        for expert in [old, expert] {
            self.share[expert as usize] = self.share_of(expert, self.count(expert).max(1));
            self.add_to_hosts(expert, 1);
        }
    }

    fn add_to_hosts(&mut self, expert: u32, sign: i64) {
        for &pe in &self.hosts[expert as usize] {
            self.pe_load[pe as usize] += sign * self.share[expert as usize];
        }
    }

    /// The heaviest PE, the first of several.
    pub(super) fn heaviest(&self) -> usize {
        let loads = &self.pe_load;
        (0..loads.len()).fold(0, |best, pe| if loads[pe] > loads[best] { pe } else { best })
    }

    /// The load of the heaviest PE.
    pub(super) fn peak(&self) -> i64 {
        self.pe_load[self.heaviest()]
    }

    /// The cost of all replicas, without their load.
    pub(super) fn cost(&self) -> f64 {
        let cost = |(at, &expert): (usize, &u32)| self.given.cost(expert, self.pe(at), self.count(expert));
        self.slot.iter().enumerate().map(cost).sum()
    }
}
