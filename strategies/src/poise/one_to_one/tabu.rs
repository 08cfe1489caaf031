//! One object per PE, few PEs: robust tabu search.
//!
//! É. Taillard, "Robust taboo search for the quadratic assignment problem", 1991: every iteration applies the best swap
//! of two objects, even at a loss, unless it returns both objects to places they left recently. The tabu tenure is sampled
//! for each move: up to 8 n iterations, with the cube of a uniform number as in Taillard's later code. A swap that leads to
//! the best placement so far, or to places where the objects have not been for 5 n^2 iterations, is always allowed. The
//! change of the cost by every swap is kept in a table: O(n^2) per iteration.
//!
//! Costs are integers in floating point, so that they are processed with SIMD instructions: exact below 2^53. Beyond that
//! rounding may misguide the search, but not the result, whose cost is recomputed.

use equipoise_model::random::below;
use rand_core::RngCore;

use crate::partition::bisection::csr::Csr;
use crate::poise::machine::distance::Metric;

/// The longest tabu tenure, in iterations per object.
const TENURE: f64 = 8.0;

/// After this many iterations per pair of objects, a place may be visited again in any case.
const ASPIRATION: i64 = 5;

/// The best placement found in `iterations` iterations from `start`, which gives every object a different one of
/// `blocks`; `blocks` is ascending.
///
/// All vertices of `graph` are objects, and there are at most as many objects as blocks.
pub(crate) fn search<M: Metric>(
    graph: &Csr,
    distance: &M,
    blocks: &[u32],
    start: &[u32],
    iterations: usize,
    rng: &mut impl RngCore,
) -> Vec<u32> {
    let mut tabu = Tabu::new(graph, distance, blocks, start);
    let mut best = tabu.place_of.clone();
    let (mut cost, mut best_cost) = (0.0, 0.0);
    for iteration in 1..=iterations as i64 {
        let Some((change, r, s)) = tabu.choose(iteration, best_cost - cost) else { continue };
        cost += change;
        let mut tenure = || {
            let part = below(rng, 1 << 20) as f64 / f64::from(1 << 20);
            (part * part * part * TENURE * blocks.len() as f64) as i64 + 1
        };
        let until = [iteration + tenure(), iteration + tenure()];
        tabu.swap(r, s, until);
        if cost < best_cost {
            best_cost = cost;
            best.copy_from_slice(&tabu.place_of);
        }
    }
    best[..graph.vertices()].iter().map(|&place| blocks[place]).collect()
}

/// Number of parallel partial sums.
const LANES: usize = 8;

/// Objects on different places; objects without edges fill the free places.
struct Tabu {
    n: usize,
    /// By pair of objects, row by row: weights, and distances between their present places.
    flows: Vec<f64>,
    distances: Vec<f64>,
    place_of: Vec<usize>,
    /// By pair of objects, the lower first: the change of the cost by swapping them.
    changes: Vec<f64>,
    /// By object and place: the iteration until which the object must not return to the place.
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

    /// The change of the cost by swapping `r` and `s`. O(n)
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
        // The distance between both objects does not change, but the sums have counted it as a gain.
        sums.iter().sum::<f64>() + rest + 2.0 * self.flow(r)[s] * self.distance(r)[s]
    }

    /// The swap to apply: (change of the cost, objects). `missing` is the best cost so far minus the present cost.
    fn choose(&self, iteration: i64, missing: f64) -> Option<(f64, usize, usize)> {
        let n = self.n;
        let old = iteration - ASPIRATION * (n * n) as i64;
        // Before that iteration, no object can have been away from a place for long enough. So swaps that are no better
        // than the best swap found can be skipped.
        let has_old = old > -((n * n) as i64);
        let (mut best, mut is_aspired): (Option<(f64, usize, usize)>, bool) = (None, false);
        for i in 0..n {
            let back = &self.forbidden[i * n..][..n];
            for j in i + 1..n {
                let change = self.changes[i * n + j];
                let is_better = best.is_none_or(|best| change < best.0);
                if !is_better && !has_old {
                    continue;
                }
                let (first, second) = (back[self.place_of[j]], self.forbidden[j * n + self.place_of[i]]);
                let aspired = (first < old && second < old) || change < missing;
                let takes = match (aspired, is_aspired) {
                    (true, false) => true,
                    (false, true) => false,
                    (true, true) => is_better,
                    (false, false) => is_better && (first < iteration || second < iteration),
                };
                if takes {
                    (best, is_aspired) = (Some((change, i, j)), aspired);
                }
            }
        }
        best
    }

    /// Swaps `r` and `s`, which must not return to their places before the iterations `until`.
    fn swap(&mut self, r: usize, s: usize, until: [i64; 2]) {
        let n = self.n;
        self.forbidden[r * n + self.place_of[r]] = until[0];
        self.forbidden[s * n + self.place_of[s]] = until[1];
        let less = |(a, b): (&f64, &f64)| a - b;
        let flow: Vec<f64> = self.flow(r).iter().zip(self.flow(s)).map(less).collect();
        let distance: Vec<f64> = self.distance(s).iter().zip(self.distance(r)).map(less).collect();
        self.place_of.swap(r, s);
        for k in 0..n {
            self.distances.swap(r * n + k, s * n + k);
        }
        for k in 0..n {
            self.distances.swap(k * n + r, k * n + s);
        }
        for i in (0..n).filter(|&i| i != r && i != s) {
            let row = &mut self.changes[i * n + i + 1..][..n - i - 1];
            for ((change, flow_j), distance_j) in row.iter_mut().zip(&flow[i + 1..]).zip(&distance[i + 1..]) {
                *change += (flow[i] - flow_j) * (distance_j - distance[i]);
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
