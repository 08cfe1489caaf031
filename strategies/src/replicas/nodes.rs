//! The nodes of a machine, and the hops of tokens from nodes to PEs.

use equipoise_model::Topology;

/// The nodes of a machine, numbered from 0 in the order of their numbers in the machine.
pub(super) struct Nodes {
    of_pe: Vec<u32>,
    number: usize,
}

impl Nodes {
    pub(super) fn of(machine: &dyn Topology) -> Self {
        let of_pe: Vec<usize> = (0..machine.pes()).map(|pe| machine.node_of(pe)).collect();
        let mut all = of_pe.clone();
        all.sort_unstable();
        all.dedup();
        let number = |node: usize| all.partition_point(|&other| other < node) as u32;
        Nodes { of_pe: of_pe.into_iter().map(number).collect(), number: all.len() }
    }

    /// The number of nodes.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The node of every PE.
    pub(super) fn of_pes(&self) -> &[u32] {
        &self.of_pe
    }

    /// Whether all nodes have the same number of PEs.
    pub(super) fn are_equal(&self) -> bool {
        let pes = self.pes_of_nodes();
        pes.iter().all(|number| *number == pes[0])
    }

    fn pes_of_nodes(&self) -> Vec<usize> {
        let mut pes = vec![0; self.number];
        self.of_pe.iter().for_each(|&node| pes[node as usize] += 1);
        pes
    }

    /// The mean distance from the PEs of a node to a PE, at `pe * nodes + node`.
    pub(super) fn distances(&self, machine: &dyn Topology) -> Vec<f64> {
        let pes = self.pes_of_nodes();
        let mut row = vec![0; machine.pes()];
        let mut distances = vec![0.0; machine.pes() * self.number];
        for (pe, to) in distances.chunks_mut(self.number).enumerate() {
            machine.distances_from(pe, &mut row);
            for (&node, &distance) in self.of_pe.iter().zip(&row) {
                to[node as usize] += f64::from(distance) / pes[node as usize] as f64;
            }
        }
        distances
    }

    /// The cost of the tokens to every expert if it has a single replica on a PE, at `expert * pes + pe`. Replicas at random
    /// places cost `weight` in all.
    pub(super) fn message_cost(&self, tokens: &[Vec<f64>], distances: &[f64], weight: f64) -> Vec<f64> {
        let experts = tokens.first().map_or(0, Vec::len);
        let mut cost = Vec::with_capacity(experts * self.of_pe.len());
        for expert in 0..experts {
            let hops = |to: &[f64]| {
                to.iter().zip(tokens).map(|(distance, from)| distance * from[expert]).sum::<f64>()
            };
            cost.extend(distances.chunks(self.number).map(hops));
        }
        let random = cost.iter().sum::<f64>() / self.of_pe.len() as f64;
        if random > 0.0 {
            cost.iter_mut().for_each(|cost| *cost *= weight / random);
        }
        cost
    }
}
