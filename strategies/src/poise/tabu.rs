//! One object per PE, few PEs: robust tabu search.
//!
//! É. Taillard, "Robust taboo search for the quadratic assignment problem", 1991: in every iteration the best swap of
//! two places is made, even at a loss, unless it brings both objects back to where they were not long ago. How long
//! is drawn anew each time, here with the cube of a uniform number as in Taillard's later code, up to 8 n iterations;
//! a swap that leads to the best placement ever, or that puts objects where they have not been for 5 n^2
//! iterations, is made in any case. What every swap would save is kept in a table: O(n^2) per iteration.
//!
//! Costs are whole numbers in floating point, which processors multiply several at a time: exact below 2^53. Beyond that
//! rounding could mislead the search, but nothing else, since its answer is judged anew.

use rand_core::RngCore;

use super::csr::Csr;
use super::distance::Metric;
use crate::random::below;

/// The longest time a place is forbidden, per object.
const TENURE: f64 = 8.0;

/// Iterations after which a place is visited again, per pair of objects.
const ASPIRATION: i64 = 5;

/// The best placement found in so many iterations from `start`, which gives every object one of `blocks`, ascending, for
/// itself.
///
/// All vertices of `graph` are objects, and there are at most as many as blocks.
pub(crate) fn search<M: Metric>(
    graph: &Csr,
    distance: &M,
    blocks: &[u32],
    start: &[u32],
    iterations: usize,
    dice: &mut impl RngCore,
) -> Vec<u32> {
    let mut tabu = Tabu::new(graph, distance, blocks, start);
    let mut best = tabu.place_of.clone();
    let (mut cost, mut best_cost) = (0.0, 0.0);
    for iteration in 1..=iterations as i64 {
        let Some((change, r, s)) = tabu.choose(iteration, best_cost - cost) else { continue };
        cost += change;
        let mut wait = || {
            let part = below(dice, 1 << 20) as f64 / f64::from(1 << 20);
            (part * part * part * TENURE * blocks.len() as f64) as i64 + 1
        };
        let until = [iteration + wait(), iteration + wait()];
        tabu.swap(r, s, until);
        if cost < best_cost {
            best_cost = cost;
            best.copy_from_slice(&tabu.place_of);
        }
    }
    best[..graph.vertices()].iter().map(|&place| blocks[place]).collect()
}

/// Sums that are added up side by side.
const LANES: usize = 8;

/// Objects, and as many without edges as there are places left, on places of their own.
struct Tabu {
    n: usize,
    /// Between all pairs of objects, row by row; distances from where they are now.
    flows: Vec<f64>,
    distances: Vec<f64>,
    place_of: Vec<usize>,
    /// By pair of objects, the lower first: what swapping them adds to the cost.
    changes: Vec<f64>,
    /// By object and place: until when it must not go there.
    forbidden: Vec<i64>,
}

impl Tabu {
    fn new<M: Metric>(graph: &Csr, distance: &M, blocks: &[u32], start: &[u32]) -> Tabu {
        let n = blocks.len();
        let mut flows = vec![0.0; n * n];
        for v in 0..graph.vertices() {
            graph.row(v).iter().for_each(|half| flows[v * n + half.to as usize] = f64::from(half.weight));
        }
        let mut is_free = vec![true; n];
        let place = |block: &u32| blocks.partition_point(|other| other < block);
        let mut place_of: Vec<usize> = start.iter().map(place).collect();
        place_of.iter().for_each(|&place| is_free[place] = false);
        place_of.extend((0..n).filter(|&place| is_free[place]));
        let pair = |at: usize| distance.between(blocks[place_of[at / n]], blocks[place_of[at % n]]) as f64;
        let mut tabu = Tabu {
            n,
            flows,
            distances: (0..n * n).map(pair).collect(),
            place_of,
            changes: vec![0.0; n * n],
            forbidden: (0..(n * n) as i64).map(|at| -at).collect(),
        };
        for i in 0..n {
            for j in i + 1..n {
                tabu.changes[i * n + j] = tabu.change(i, j);
            }
        }
        tabu
    }

    fn flow(&self, object: usize) -> &[f64] {
        &self.flows[object * self.n..][..self.n]
    }

    fn distance(&self, object: usize) -> &[f64] {
        &self.distances[object * self.n..][..self.n]
    }

    /// What it adds to the cost that `r` and `s` swap places. O(n)
    fn change(&self, r: usize, s: usize) -> f64 {
        let term = |((f, g), (a, b)): ((&f64, &f64), (&f64, &f64))| (f - g) * (b - a);
        let flows = (self.flow(r).chunks_exact(LANES), self.flow(s).chunks_exact(LANES));
        let distances = (self.distance(r).chunks_exact(LANES), self.distance(s).chunks_exact(LANES));
        let rest = (flows.0.remainder().iter().zip(flows.1.remainder()))
            .zip(distances.0.remainder().iter().zip(distances.1.remainder()));
        let rest: f64 = rest.map(term).sum();
        let mut sums = [0.0; LANES];
        for ((f, g), (a, b)) in flows.0.zip(flows.1).zip(distances.0.zip(distances.1)) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum += term(((&f[lane], &g[lane]), (&a[lane], &b[lane])));
            }
        }
        // They stay as far from each other as they are, which the sums have taken for a gain.
        sums.iter().sum::<f64>() + rest + 2.0 * self.flow(r)[s] * self.distance(r)[s]
    }

    /// The swap to make: what it adds, and of whom. `missing` is what the best cost ever is below the present one.
    fn choose(&self, iteration: i64, missing: f64) -> Option<(f64, usize, usize)> {
        let n = self.n;
        let old = iteration - ASPIRATION * (n * n) as i64;
        // Not before that is anybody where he has not been for so long, and then a swap that is worse than the best is not
        // worth a look.
        let has_old = old > -((n * n) as i64);
        let (mut best, mut is_wished): (Option<(f64, usize, usize)>, bool) = (None, false);
        for i in 0..n {
            let back = &self.forbidden[i * n..][..n];
            for j in i + 1..n {
                let change = self.changes[i * n + j];
                let is_better = best.is_none_or(|best| change < best.0);
                if !is_better && !has_old {
                    continue;
                }
                let (first, second) = (back[self.place_of[j]], self.forbidden[j * n + self.place_of[i]]);
                let wished = (first < old && second < old) || change < missing;
                let takes = match (wished, is_wished) {
                    (true, false) => true,
                    (false, true) => false,
                    (true, true) => is_better,
                    (false, false) => is_better && (first < iteration || second < iteration),
                };
                if takes {
                    (best, is_wished) = (Some((change, i, j)), wished);
                }
            }
        }
        best
    }

    /// Swaps `r` and `s`, which must not come back before.
    fn swap(&mut self, r: usize, s: usize, until: [i64; 2]) {
        let n = self.n;
        self.forbidden[r * n + self.place_of[r]] = until[0];
        self.forbidden[s * n + self.place_of[s]] = until[1];
        let less = |(a, b): (&f64, &f64)| a - b;
        let flow: Vec<f64> = self.flow(r).iter().zip(self.flow(s)).map(less).collect();
        let way: Vec<f64> = self.distance(s).iter().zip(self.distance(r)).map(less).collect();
        self.place_of.swap(r, s);
        for k in 0..n {
            self.distances.swap(r * n + k, s * n + k);
        }
        for k in 0..n {
            self.distances.swap(k * n + r, k * n + s);
        }
        for i in (0..n).filter(|&i| i != r && i != s) {
            let row = &mut self.changes[i * n + i + 1..][..n - i - 1];
            for ((change, flow_j), way_j) in row.iter_mut().zip(&flow[i + 1..]).zip(&way[i + 1..]) {
                *change += (flow[i] - flow_j) * (way_j - way[i]);
            }
        }
        for q in [r, s] {
            for j in (0..n).filter(|&j| j != q) {
                let (low, high) = (q.min(j), q.max(j));
                self.changes[low * n + high] = self.change(low, high);
            }
        }
    }
}
