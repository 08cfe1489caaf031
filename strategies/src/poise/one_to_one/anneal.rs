//! One object per PE, many PEs: simulated annealing.
//!
//! S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", 1983. A step moves an object next
//! to one of its partners and swaps it with the object there, if any. The temperature is proportional to the square of the
//! remaining time.

use equipoise_model::random::below;
use rand_core::RngCore;

use crate::partition::bisection::csr::Csr;
use crate::poise::machine::distance::Metric;
use crate::poise::machine::{NONE, Near};

/// The inputs of simulated annealing of a placement with at most one object per block.
pub(crate) struct Annealing<'a, M> {
    pub graph: &'a Csr,
    pub movable: usize,
    pub distance: &'a M,
    pub near: &'a Near,
    /// By block: the allowed load. Only blocks with room for any object are used.
    pub capacity: &'a [i64],
    /// Total number of steps.
    pub steps: usize,
    /// The initial temperature.
    pub temperature: f64,
}

impl<M: Metric> Annealing<'_, M> {
    /// The best placement found, and the difference by which it is cheaper than `block_of`.
    pub fn run(&self, block_of: &[u32], rng: &mut impl RngCore) -> (Vec<u32>, i64) {
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
            let v = below(rng, self.movable as u64) as usize;
            let here = block_of[v];
            let row = self.graph.row(v);
            if row.is_empty() {
                continue;
            }
            let partner = row[below(rng, row.len() as u64) as usize].to as usize;
            let near = self.near.of(block_of[partner]);
            let there = match near.len() {
                0 => below(rng, blocks as u64) as u32,
                count => near[below(rng, count as u64) as usize],
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
            let part = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            if change > 0 && part >= (-(change as f64) / temperature).exp() {
                continue;
            }
            // The best placement is copied only before a step makes it worse, not at every improving step.
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

    /// The cost of `v` in `block`, without its edges to `skipped`.
    fn cost(&self, block_of: &[u32], v: usize, block: u32, skipped: u32) -> i64 {
        let others = self.graph.row(v).iter().filter(|half| half.to != skipped);
        others
            .map(|half| i64::from(half.weight) * self.distance.between(block, block_of[half.to as usize]))
            .sum()
    }
}
