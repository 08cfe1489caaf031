//! The placement of one layer: from EPLB's plan and from the previous plan, improved by exchanges.

use super::eplb;
use super::groups::nodes_of_groups;
use super::layout::{EMPTY, Given, Layout};

/// The largest load over the average that is not improved further.
const BALANCED: f64 = 1.001;

/// A layer, and what its plan depends on.
pub(super) struct Layer<'a> {
    pub(super) loads: &'a [f64],
    pub(super) pes: usize,
    /// The slots of a PE.
    pub(super) slots: usize,
    /// The nodes that the groups of experts are packed to, and the number of groups; 1 and 1 without groups. PEs of a node
    /// are adjacent.
    pub(super) nodes: usize,
    pub(super) groups: usize,
    /// The previous expert of every slot.
    pub(super) previous: Option<&'a [u32]>,
    /// The cost of messages, as in [`Given::message_cost`].
    pub(super) message_cost: Vec<f64>,
    /// The cost of moving all replicas.
    pub(super) gamma: f64,
    pub(super) tolerance: f64,
}

impl Layer<'_> {
    /// The expert of every slot.
    pub(super) fn place(self) -> Vec<u32> {
        let blind = self.given();
        let published = self.published();
        let mut starts = vec![self.zones(&published)];
        if self.groups > 1 {
            let improved = self.zones_of_groups(nodes_of_groups(&self.group_loads(&blind), self.nodes, None, 0));
            starts.extend(Some(improved).filter(|zones| *zones != starts[0]));
        }
        let goal = (blind.average() as f64 * BALANCED) as i64;
        let fresh = starts.into_iter().map(|zone_of_expert| {
            let given = Given { zone_of_expert, ..blind.clone() };
            let mut layout = Layout::new(&given, published.iter().copied());
            layout.complete();
            layout.relieve(goal);
            (layout.peak(), layout.slot.clone(), given.zone_of_expert.clone())
        });
        let (peak, fresh, zones) = fresh.min_by_key(|it| it.0).unwrap_or_default();
        if self.previous.is_none() && self.message_cost.is_empty() {
            return fresh;
        }
        let cap = (peak.max(goal) as f64 * (1.0 + self.tolerance)) as i64;
        self.with_costs(blind, cap, zones, fresh)
    }

    fn with_costs(self, blind: Given, cap: i64, zones: Vec<u32>, fresh: Vec<u32>) -> Vec<u32> {
        let mut given = Given { zone_of_expert: zones, ..blind };
        given.unit = self.gamma / fresh.len() as f64;
        if let Some(previous) = self.previous {
            given.home = vec![false; given.load.len() * given.pes];
            for (slot, &expert) in previous.iter().enumerate() {
                given.home[expert as usize * given.pes + slot / given.slots] = true;
            }
            given.move_cost = self.gamma / fresh.len() as f64;
        }
        given.message_cost = self.message_cost;
        let start = self.previous.unwrap_or(&fresh).to_vec();
        let mut layout = Layout::new(&given, start);
        layout.complete();
        layout.relieve(cap);
        layout.reduce_costs(cap.max(layout.peak()));
        layout.slot
    }

    /// What is given, without previous placement and messages, and with all experts in one zone.
    fn given(&self) -> Given {
        let zone_pes = self.pes / self.nodes;
        Given {
            load: Given::integers(self.loads),
            pes: self.pes,
            slots: self.slots,
            zone_of_pe: (0..self.pes).map(|pe| (pe / zone_pes) as u32).collect(),
            zone_of_expert: vec![0; self.loads.len()],
            zone_pes: zone_pes as u32,
            home: Vec::new(),
            move_cost: 0.0,
            message_cost: Vec::new(),
            unit: 1.0,
        }
    }

    /// EPLB's plan.
    fn published(&self) -> Vec<u32> {
        let slots = self.pes * self.slots;
        let plan = eplb::layer(self.loads, slots, self.groups, self.nodes, self.pes);
        plan.into_iter().map(|(expert, _)| expert as u32).collect()
    }

    fn group_loads(&self, given: &Given) -> Vec<i64> {
        given.load.chunks(given.load.len() / self.groups).map(|group| group.iter().sum()).collect()
    }

    /// The zone of every expert in a plan that keeps groups on nodes.
    fn zones(&self, plan: &[u32]) -> Vec<u32> {
        let mut zones = vec![0; self.loads.len()];
        for (slot, &expert) in plan.iter().enumerate().filter(|it| *it.1 != EMPTY) {
            zones[expert as usize] = (slot / (plan.len() / self.nodes)) as u32;
        }
        zones
    }

    /// The zone of every expert, given the node of every group.
    fn zones_of_groups(&self, node_of: Vec<u32>) -> Vec<u32> {
        let size = self.loads.len() / self.groups;
        node_of.into_iter().flat_map(|node| std::iter::repeat_n(node, size)).collect()
    }
}
