//! One object per PE, many PEs: simulated annealing.
//!
//! S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", 1983. An object goes next to
//! one of its partners, and what is there goes where it was. The temperature falls with the square of the time that
//! is left.

use rand_core::RngCore;

use super::csr::Csr;
use super::distance::Metric;
use super::machine::{NONE, Near};
use crate::random::below;

/// Where objects are that are alone on their blocks, and how they may change.
pub(crate) struct Annealing<'a, M> {
    pub graph: &'a Csr,
    pub movable: usize,
    pub distance: &'a M,
    pub near: &'a Near,
    /// By block: the most load. Objects go where there is room for any of them.
    pub capacity: &'a [i64],
    /// Steps in all.
    pub steps: usize,
    /// The first temperature.
    pub temperature: f64,
}

impl<M: Metric> Annealing<'_, M> {
    /// The best placement on the way, and by how much it is cheaper than `block_of`.
    pub fn run(&self, block_of: &[u32], dice: &mut impl RngCore) -> (Vec<u32>, i64) {
        let mut block_of = block_of.to_vec();
        let (blocks, heaviest) = (self.capacity.len(), self.graph.heaviest());
        let mut at = vec![NONE; blocks];
        for v in 0..self.movable {
            at[block_of[v] as usize] = v as u32;
        }
        let mut best = block_of.clone();
        let (mut cost, mut best_cost) = (0, 0);
        for step in 0..self.steps {
            let left = 1.0 - step as f64 / self.steps as f64;
            let temperature = self.temperature * left * left + 1e-9;
            let v = below(dice, self.movable as u64) as usize;
            let here = block_of[v];
            let row = self.graph.row(v);
            if row.is_empty() {
                continue;
            }
            let partner = row[below(dice, row.len() as u64) as usize].to as usize;
            let near = self.near.of(block_of[partner]);
            let there = match near.len() {
                0 => below(dice, blocks as u64) as u32,
                count => near[below(dice, count as u64) as usize],
            };
            if there == here || self.capacity[there as usize] < heaviest {
                continue;
            }
            let other = at[there as usize];
            let mut change = self.cost(&block_of, v, there, other) - self.cost(&block_of, v, here, other);
            if other != NONE {
                let u = other as usize;
                change += self.cost(&block_of, u, here, v as u32) - self.cost(&block_of, u, there, v as u32);
            }
            let part = (dice.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            if change > 0 && part >= (-(change as f64) / temperature).exp() {
                continue;
            }
            // The best is copied when it is left, not at every step that improves it.
            if cost < best_cost && change > 0 {
                best.copy_from_slice(&block_of);
                best_cost = cost;
            }
            block_of[v] = there;
            at[there as usize] = v as u32;
            at[here as usize] = other;
            if other != NONE {
                block_of[other as usize] = here;
            }
            cost += change;
        }
        if cost < best_cost {
            (best, best_cost) = (block_of, cost);
        }
        (best, -best_cost)
    }

    /// What `v` costs in `block`, without what it exchanges with `skipped`.
    fn cost(&self, block_of: &[u32], v: usize, block: u32, skipped: u32) -> i64 {
        let others = self.graph.row(v).iter().filter(|half| half.to != skipped);
        others
            .map(|half| i64::from(half.weight) * self.distance.between(block, block_of[half.to as usize]))
            .sum()
    }
}
