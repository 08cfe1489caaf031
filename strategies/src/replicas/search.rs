//! The placement of one layer: EPLB's plan or the previous plan, improved by exchanges.
//!
//! The load of the heaviest PE of EPLB's plan is the reference. A plan made anew starts from EPLB's plan, so that its heaviest
//! PE is not heavier than the reference unless EPLB has two replicas of an expert on a PE. A plan with costs (moves, messages)
//! keeps the heaviest PE below the reference and a tolerance, and has low costs.

use super::eplb;
use super::groups::nodes_of_groups;
use super::layout::{EMPTY, Given, Layout, Pairs};
use crate::partition::matching::minimum_weight;

/// The largest load over the average that is not improved further.
const BALANCED: f64 = 1.001;

/// What is added to the cost of every exchange, relative to the cost of a replica.
const LEAST_COST: f64 = 0.25;

/// What is added at least, so that no cost is 0.
const SMALLEST_COST: f64 = 1e-12;

/// The largest number of PEs or zones that are renumbered.
const MOST_MATCHED: usize = 1 << 10;

/// The largest number of slots of a layer whose moves are undone one by one, which takes longer than all else.
const MOST_UNDONE: usize = 96;

/// The largest cost of an assignment problem, whose costs are integers.
const COST_UNITS: f64 = (1u64 << 36) as f64;

/// While messages are shortened, PEs may have this load over the average, in turn; then, from the plan that was found, each of these again.
const LOOSE: [f64; 2] = [1.3, 1.1];
const AGAIN: [f64; 3] = [1.2, 1.1, 1.05];

/// How often at most loads are loosened again.
const MOST_AGAIN: usize = 24;

/// A layer, and what its plan depends on.
pub(super) struct Layer<'a> {
    pub(super) loads: &'a [f64],
    /// The slots of a PE.
    pub(super) slots: usize,
    /// The zone of every PE; a single one without groups.
    pub(super) zone_of: &'a [u32],
    /// The number of zones, to which the groups of experts are packed.
    pub(super) zones: usize,
    /// The number of groups; 1 without groups.
    pub(super) groups: usize,
    /// The previous experts of every PE.
    pub(super) previous: Option<Vec<&'a [u32]>>,
    /// The cost of messages, as in [`Given::message_cost`].
    pub(super) message_cost: Vec<f64>,
    /// The cost of moving all replicas.
    pub(super) gamma: f64,
    /// The cost of the messages to replicas at random places.
    pub(super) messages: f64,
    /// The allowed excess over the reference of plans with costs.
    pub(super) tolerance: f64,
}

/// A plan that was found: the load of its heaviest PE, its other costs, the expert of every slot, and the zone of every
/// expert.
struct Found {
    peak: i64,
    cost: f64,
    slot: Vec<u32>,
    zone_of_expert: Vec<u32>,
}

impl Layer<'_> {
    /// The expert of every slot.
    pub(super) fn place(self) -> Vec<u32> {
        let given = self.given();
        let published = eplb::in_zones(self.loads, self.slots, self.groups, self.zone_of, self.zones);
        let reference = self.reference(&given, &published);
        if self.previous.is_none() && self.message_cost.is_empty() {
            return self.anew(&given, &published, reference).slot;
        }
        if self.previous.is_some() {
            let cap = (reference as f64 * (1.0 + self.tolerance)) as i64;
            let zones = self.zones_with_costs(&given, &published, cap);
            return self.with_costs(&given, &published, reference, cap, zones);
        }
        // Messages alone do not make the heaviest PE heavier than without them.
        let fresh = self.anew(&given, &published, reference);
        let zones = self.nearest_zones(fresh.zone_of_expert);
        self.with_costs(&given, &published, reference, fresh.peak, zones)
    }

    /// The plan without regard to a previous plan and to messages.
    fn anew(&self, given: &Given, published: &[u32], reference: i64) -> Found {
        let goal = ((given.average() as f64 * BALANCED) as i64).min(reference);
        let plan = |zone_of_expert: Vec<u32>| {
            let given = Given { zone_of_expert, ..given.clone() };
            let mut layout = Layout::new(&given, published.iter().copied());
            layout.complete();
            layout.relieve(goal, reference);
            layout.restart(goal, reference);
            Found::of(layout)
        };
        let first = plan(self.zones_in(published));
        if self.groups == 1 {
            return first;
        }
        let improved = self.zones_of_groups(nodes_of_groups(&self.group_loads(given), self.zones, None, 0));
        if improved == first.zone_of_expert {
            return first;
        }
        let second = plan(improved);
        if second.peak < first.peak { second } else { first }
    }

    /// The plan with low costs of which no PE has more load than `cap`, if one is found.
    fn with_costs(
        &self,
        blind: &Given,
        published: &[u32],
        reference: i64,
        cap: i64,
        zone_of_expert: Vec<u32>,
    ) -> Vec<u32> {
        let replicas = (self.slots * self.zone_of.len()) as f64;
        let gamma = if self.previous.is_some() { self.gamma } else { 0.0 };
        let messages = if self.message_cost.is_empty() { 0.0 } else { self.messages };
        let given = Given {
            home: self.previous.as_deref().map(|previous| self.home(previous)),
            move_cost: gamma / replicas,
            message_cost: self.message_cost.clone(),
            least_cost: (LEAST_COST * (gamma + messages) / replicas).max(SMALLEST_COST),
            zone_of_expert,
            ..blind.clone()
        };
        let shorten = |layout: &mut Layout, loose: &[f64]| {
            let average = given.average() as f64;
            loose.iter().for_each(|loose| layout.reduce_costs((average * loose) as i64));
            layout.relieve(cap, cap);
            layout.reduce_costs(cap.max(layout.peak()));
        };
        let value = |layout: &Layout| (layout.peak().max(cap), layout.cost());
        let found = |mut layout: Layout, is_loose: bool| {
            layout.complete();
            shorten(&mut layout, if is_loose { &LOOSE } else { &[] });
            // Loads are loosened again and again, as long as that finds shorter messages.
            let mut failed = 0;
            for loose in AGAIN.iter().cycle().take(MOST_AGAIN).filter(|_| is_loose) {
                let mut other = layout.clone();
                shorten(&mut other, &[*loose]);
                let is_better = value(&other) < value(&layout);
                failed = if is_better { 0 } else { failed + 1 };
                if is_better {
                    layout = other;
                } else if failed == AGAIN.len() {
                    break;
                }
            }
            if layout.slot.len() <= MOST_UNDONE {
                layout.undo_moves(cap);
            }
            Found::of(layout)
        };
        let start = match &self.previous {
            Some(previous) => {
                Layout::new(&given, previous.iter().flat_map(|&experts| self.slots_with(experts)))
            }
            None => Layout::new(&given, published.iter().copied()),
        };
        let mut best = found(start.clone(), self.previous.is_none());
        if best.peak <= cap {
            return best.slot;
        }
        // Where exchanges do not suffice, the counts of a plan made anew, or its PEs.
        let fresh = self.anew(blind, published, reference);
        let given = Given { zone_of_expert: fresh.zone_of_expert.clone(), ..given.clone() };
        let mut recounted = Layout::new(&given, start.slot.iter().copied());
        recounted.recount(&Layout::new(&given, fresh.slot.iter().copied()));
        let matched = Layout::new(&given, matched(&given, &fresh.slot));
        for start in [recounted, matched] {
            let other = found(start, false);
            let order = |found: &Found| (found.peak.max(cap), found.cost);
            if order(&other) < order(&best) {
                best = other;
            }
        }
        best.slot
    }

    /// What is given, without previous placement and messages, and with all experts in one zone.
    fn given(&self) -> Given {
        Given {
            load: Given::integers(self.loads),
            pes: self.zone_of.len(),
            slots: self.slots,
            zone_of_pe: self.zone_of.to_vec(),
            zone_of_expert: vec![0; self.loads.len()],
            zone_pes: (self.zone_of.len() / self.zones) as u32,
            home: None,
            move_cost: 0.0,
            message_cost: Vec::new(),
            least_cost: 1.0,
        }
    }

    /// The pairs of experts and PEs in a plan, given the experts of every PE.
    fn home(&self, plan: &[&[u32]]) -> Pairs {
        let mut home = Pairs::new(self.loads.len(), self.zone_of.len());
        for (pe, experts) in plan.iter().enumerate() {
            experts.iter().for_each(|&expert| home.set(expert, pe, true));
        }
        home
    }

    /// The slots of a PE that had these experts before, perhaps in another number of slots.
    fn slots_with(&self, experts: &[u32]) -> impl Iterator<Item = u32> {
        let mut slots: Vec<u32> = Vec::with_capacity(self.slots);
        for expert in experts {
            if !slots.contains(expert) && slots.len() < self.slots {
                slots.push(*expert);
            }
        }
        slots.resize(self.slots, EMPTY);
        slots.into_iter()
    }

    /// The load of the heaviest PE of EPLB's plan.
    fn reference(&self, given: &Given, plan: &[u32]) -> i64 {
        let mut counts = vec![0i64; self.loads.len()];
        plan.iter().for_each(|&expert| counts[expert as usize] += 1);
        let share = |&expert: &u32| given.load[expert as usize] / counts[expert as usize];
        plan.chunks(self.slots).map(|pe| pe.iter().map(share).sum()).max().unwrap_or(0)
    }

    fn group_loads(&self, given: &Given) -> Vec<i64> {
        given.load.chunks(given.load.len() / self.groups).map(|group| group.iter().sum()).collect()
    }

    /// The zones of experts in the previous plan, if it keeps groups in zones, with as few swaps of groups as the cap needs;
    /// otherwise those of EPLB's plan, with the numbers that fit the previous plan best.
    fn zones_with_costs(&self, given: &Given, published: &[u32], cap: i64) -> Vec<u32> {
        let size = self.loads.len() / self.groups;
        let kept = self.previous.as_ref().filter(|_| self.groups > 1).and_then(|previous| {
            let zones = self.zones_of(previous.iter().copied());
            let has_whole_groups = zones.chunks(size).all(|group| group.iter().all(|zone| *zone == group[0]));
            let of_group: Vec<u32> = zones.iter().step_by(size).copied().collect();
            let groups_in = |zone| of_group.iter().filter(|&&it| it == zone).count();
            let is_even = (0..self.zones as u32).all(|zone| groups_in(zone) == self.groups / self.zones);
            (has_whole_groups && is_even).then_some(of_group)
        });
        let Some(kept) = kept else { return self.zones_near_previous(self.zones_in(published)) };
        let cap = cap.saturating_mul(i64::from(given.zone_pes));
        self.zones_of_groups(nodes_of_groups(&self.group_loads(given), self.zones, Some(kept), cap))
    }

    /// The zones with other numbers, such that as many previous replicas as possible are in the zone of their experts.
    fn zones_near_previous(&self, zones: Vec<u32>) -> Vec<u32> {
        let (size, Some(previous)) = (self.zones, &self.previous) else { return zones };
        if size == 1 || size > MOST_MATCHED {
            return zones;
        }
        let mut kept = vec![0i64; size * size];
        for (experts, &to) in previous.iter().zip(self.zone_of) {
            experts.iter().for_each(|&it| kept[zones[it as usize] as usize * size + to as usize] += 1);
        }
        let most = kept.iter().copied().max().unwrap_or(0);
        let lost: Vec<i64> = kept.iter().map(|kept| most - kept).collect();
        let new = minimum_weight(&lost, size);
        zones.into_iter().map(|zone| new[zone as usize]).collect()
    }

    /// The zones with other numbers, such that the messages to the experts of each zone are as short as possible.
    fn nearest_zones(&self, zones: Vec<u32>) -> Vec<u32> {
        let size = self.zones;
        if size == 1 || self.messages <= 0.0 || size > MOST_MATCHED {
            return zones;
        }
        let mut costs = vec![0.0; size * size];
        let pes = self.zone_of.len();
        for (expert, &from) in zones.iter().enumerate() {
            for (cost, &to) in self.message_cost[expert * pes..(expert + 1) * pes].iter().zip(self.zone_of) {
                costs[from as usize * size + to as usize] += cost;
            }
        }
        let largest = costs.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let costs: Vec<i64> = costs.iter().map(|cost| (cost / largest * COST_UNITS) as i64).collect();
        let new = minimum_weight(&costs, size);
        zones.into_iter().map(|zone| new[zone as usize]).collect()
    }

    /// The zone of every expert in a plan that keeps experts in zones.
    fn zones_in(&self, plan: &[u32]) -> Vec<u32> {
        self.zones_of(plan.chunks(self.slots))
    }

    /// The zone of every expert, given the experts of every PE of such a plan.
    fn zones_of<'p>(&self, plan: impl Iterator<Item = &'p [u32]>) -> Vec<u32> {
        let mut zones = vec![0; self.loads.len()];
        for (experts, &zone) in plan.zip(self.zone_of) {
            experts.iter().for_each(|&expert| zones[expert as usize] = zone);
        }
        zones
    }

    /// The zone of every expert, given that of every group.
    fn zones_of_groups(&self, zone_of: Vec<u32>) -> Vec<u32> {
        let size = self.loads.len() / self.groups;
        zone_of.into_iter().flat_map(|zone| std::iter::repeat_n(zone, size)).collect()
    }
}

impl Found {
    fn of(layout: Layout) -> Self {
        Found {
            peak: layout.peak(),
            cost: layout.cost(),
            zone_of_expert: layout.given.zone_of_expert.clone(),
            slot: layout.slot,
        }
    }
}

/// The plan with its PEs renumbered such that as many replicas as possible are where they were; only PEs of a zone change
/// places.
fn matched(given: &Given, plan: &[u32]) -> Vec<u32> {
    let size = given.zone_pes as usize;
    if size > MOST_MATCHED || given.home.is_none() {
        return plan.to_vec();
    }
    let mut matched = vec![EMPTY; plan.len()];
    for zone in 0..(given.pes / size) as u32 {
        let pes: Vec<usize> = (0..given.pes).filter(|&pe| given.zone_of_pe[pe] == zone).collect();
        let experts = |pe: usize| &plan[pe * given.slots..(pe + 1) * given.slots];
        let moves =
            |from: usize, to: usize| experts(from).iter().filter(|&&it| given.is_move(it, to)).count();
        let pairs = pes.iter().flat_map(|&from| pes.iter().map(move |&to| (from, to)));
        let costs: Vec<i64> = pairs.map(|(from, to)| moves(from, to) as i64).collect();
        for (&from, to) in pes.iter().zip(minimum_weight(&costs, size)) {
            matched[pes[to as usize] * given.slots..][..given.slots].copy_from_slice(experts(from));
        }
    }
    matched
}
