//! Multilevel bisection of a graph: a small cut, each side within its capacity.
//!
//! B. Hendrickson, R. Leland, "A multilevel algorithm for partitioning graphs", 1995: the graph is coarsened until it is
//! small, bisected, and the bisection is refined during uncoarsening. There are three extensions. (1) A vertex may have
//! different costs on the two sides (the bias); this implements terminal propagation. (2) Below `Effort::repeat_below`
//! vertices every level is bisected several times from new coarsenings, and the best bisection is kept, so that the
//! smallest graphs are bisected many times (W-cycles: U. Trottenberg, C. Oosterlee, A. Schüller, "Multigrid", 2001). The
//! first bisections of a machine determine the quality more than all later steps, and small graphs take little time.
//! (3) Capacities are hard constraints: a bisection with less overload is better, whatever its cost.

use std::collections::BinaryHeap;

use equipoise_model::graph::Graph;
use equipoise_model::random::{below, generator};
use rand_core::RngCore;

pub(crate) mod coarsening;
pub(crate) mod csr;
#[cfg(test)]
mod tests;
mod two_way;

use coarsening::cluster;
use csr::{Csr, Half};

/// Graphs with at most this many vertices are bisected directly.
const SMALL: usize = 120;

/// Coarsening stops if more than this fraction of the vertices would remain.
const MAX_SHRUNK: f64 = 0.95;

/// A cluster has at most 1/`MAX_CLUSTER_SHARE` of the total load, unless a single vertex has more.
const MAX_CLUSTER_SHARE: i64 = 20;

/// The stream of random numbers of [`bisect_within`].
const STREAM: u64 = 5 << 40;

/// A cluster is at most this many times as heavy as the average vertex, unless a single vertex is heavier.
const MAX_CLUSTER_AVERAGES: i64 = 8;

/// Minimum number of vertices for which the repetitions of a level run in parallel.
const PARALLEL: usize = 1000;

/// A bisection problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halves<'a> {
    /// The graph to bisect.
    pub graph: &'a Csr,
    /// Cost of a cut edge, per unit of its weight.
    pub edge_cost: i64,
    /// Cost of each vertex on side 1 minus its cost on side 0. Empty if all are 0.
    pub bias: &'a [i64],
    /// Maximum load of each side.
    pub capacity: [i64; 2],
    /// The load of side 0 in a balanced bisection.
    pub target: i64,
}

/// The effort of a bisection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Number of initial bisections of the coarsest graph.
    pub tries: usize,
    /// Number of bisections of each level with at most [`Self::repeat_below`] vertices.
    pub repeats: usize,
    /// Maximum number of vertices of levels that are bisected [`Self::repeats`] times.
    pub repeat_below: usize,
}

impl Effort {
    /// For graphs that are bisected only once.
    pub const THOROUGH: Effort = Effort { tries: 4, repeats: 2, repeat_below: 4000 };
}

/// The side, 0 or 1, of every vertex: a multilevel bisection with a small cut. Side `i` weighs at most `capacities[i]`,
/// where the weights allow.
///
/// # Panics
/// When the numbers of weights and vertices differ.
pub fn bisect_within(graph: &Graph, weights: &[u32], capacities: [u64; 2], seed: u64) -> Vec<u8> {
    assert_eq!(weights.len(), graph.vertices(), "every vertex has a weight");
    let total: u128 = graph.pairs().map(|(_, _, weight)| u128::from(weight)).sum();
    // The sum of all weights fits 32 bits; very light edges may be rounded to 0.
    let unit = total.div_ceil(u128::from(u32::MAX)).max(1);
    let mut csr = Csr::with_capacity(graph.vertices());
    for (v, &load) in weights.iter().enumerate() {
        let half =
            |(to, weight): (usize, u64)| Half { to: to as u32, weight: (u128::from(weight) / unit) as u32 };
        csr.push(i64::from(load), graph.neighbors(v).map(half));
    }
    let capacity = capacities.map(|capacity| i64::try_from(capacity).unwrap_or(i64::MAX / 4));
    // The loads of the sides are proportional to their capacities.
    let all = u128::from(capacities[0]) + u128::from(capacities[1]);
    let target = (csr.total_load() as u128 * u128::from(capacities[0])).checked_div(all).unwrap_or(0) as i64;
    let halves = Halves { graph: &csr, edge_cost: 1, bias: &[], capacity, target };
    bisect(&halves, &Effort::THOROUGH, &mut generator(seed, STREAM))
}

/// The quality of a bisection: overload, then cost. Lower is better.
pub(crate) type Grade = (i64, i64);

impl<'a> Halves<'a> {
    /// Side 0 gets a load of exactly `first`, side 1 the rest. Every vertex must have load 1.
    pub fn exact(graph: &'a Csr, first: i64) -> Halves<'a> {
        let capacity = [first, graph.total_load() - first];
        Halves { graph, edge_cost: 1, bias: &[], capacity, target: first }
    }

    /// Cost of `v` on side 1 minus its cost on side 0.
    #[inline]
    pub fn bias(&self, v: usize) -> i64 {
        self.bias.get(v).copied().unwrap_or(0)
    }

    /// The load of each side.
    pub fn loads(&self, sides: &[u8]) -> [i64; 2] {
        let mut loads = [0; 2];
        for (&side, load) in sides.iter().zip(&self.graph.loads) {
            loads[usize::from(side)] += load;
        }
        loads
    }

    /// The sum of the loads above the capacities.
    pub fn overload(&self, loads: [i64; 2]) -> i64 {
        (loads[0] - self.capacity[0]).max(0) + (loads[1] - self.capacity[1]).max(0)
    }

    pub fn grade(&self, sides: &[u8]) -> Grade {
        let mut cost = 0;
        for v in 0..self.graph.vertices() {
            let cut = self
                .graph
                .row(v)
                .iter()
                .filter(|half| half.to as usize > v && sides[half.to as usize] != sides[v]);
            cost += self.edge_cost * cut.map(|half| i64::from(half.weight)).sum::<i64>();
            cost += i64::from(sides[v]) * self.bias(v);
        }
        (self.overload(self.loads(sides)), cost)
    }
}

/// The side, 0 or 1, of every vertex.
pub(crate) fn bisect(halves: &Halves, effort: &Effort, rng: &mut impl RngCore) -> Vec<u8> {
    let chain = Chain::new(halves.graph, effort, rng);
    chain.bisect(halves, effort, rng)
}

/// A coarser level.
pub(crate) struct Level {
    /// The cluster of each vertex of the finer graph.
    pub cluster_of: Vec<u32>,
    pub graph: Csr,
}

/// The levels of a graph down to the first level that is small or whose bisections are repeated. They depend on the graph
/// only, not on the bias.
pub(crate) struct Chain {
    levels: Vec<Level>,
}

impl Chain {
    pub fn new(graph: &Csr, effort: &Effort, rng: &mut impl RngCore) -> Chain {
        let mut levels: Vec<Level> = Vec::new();
        loop {
            let finer = levels.last().map_or(graph, |level| &level.graph);
            let is_whole = levels.is_empty();
            if finer.vertices() <= SMALL || (!is_whole && finer.vertices() <= effort.repeat_below) {
                break;
            }
            match coarser(finer, rng) {
                Some(level) => levels.push(level),
                None => break,
            }
        }
        Chain { levels }
    }

    /// The side of every vertex. The graph of `halves` must be the graph that the chain was built from.
    pub fn bisect(mut self, halves: &Halves, effort: &Effort, rng: &mut impl RngCore) -> Vec<u8> {
        let biases = self.biases(halves);
        let mut sides = {
            let coarsest = self.last(halves, &biases);
            let vertices = coarsest.graph.vertices();
            match (vertices, self.levels.len()) {
                (0, _) => return Vec::new(),
                (1, _) => vec![single(&coarsest)],
                (2..=SMALL, 0) => initial(&coarsest, effort.tries, rng),
                // The graph cannot be coarsened.
                (_, 0) => initial(&coarsest, effort.tries.min(2), rng),
                _ => best_of(
                    &coarsest,
                    effort,
                    if vertices <= effort.repeat_below { effort.repeats } else { 1 },
                    rng,
                ),
            }
        };
        // Levels are dropped when they are no longer needed: together they are as large as the graph.
        while let Some(Level { cluster_of, .. }) = self.levels.pop() {
            sides = cluster_of.iter().map(|&cluster| sides[cluster as usize]).collect();
            drop(cluster_of);
            two_way::refine(&self.last(halves, &biases), &mut sides);
        }
        sides
    }

    /// The bisection problem of the coarsest level that is left.
    fn last<'a>(&'a self, halves: &Halves<'a>, biases: &'a [Vec<i64>]) -> Halves<'a> {
        match self.levels.len().checked_sub(1) {
            None => *halves,
            Some(last) => Halves { graph: &self.levels[last].graph, bias: &biases[last], ..*halves },
        }
    }

    /// The bias of the vertices of each coarser level; empty if the graph has no bias.
    fn biases(&self, halves: &Halves) -> Vec<Vec<i64>> {
        let mut biases: Vec<Vec<i64>> = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            let finer = biases.last().map_or(halves.bias, |bias| bias);
            let mut bias = Vec::new();
            if !finer.is_empty() {
                bias = vec![0; level.graph.vertices()];
                level
                    .cluster_of
                    .iter()
                    .zip(finer)
                    .for_each(|(&cluster, more)| bias[cluster as usize] += more);
            }
            biases.push(bias);
        }
        biases
    }
}

/// The next level; `None` if it would hardly be smaller.
fn coarser(graph: &Csr, rng: &mut impl RngCore) -> Option<Level> {
    let vertices = graph.vertices();
    let (total, heaviest) = (graph.total_load(), graph.heaviest());
    let light = heaviest.max(MAX_CLUSTER_AVERAGES * total / vertices as i64);
    let max_load = heaviest.max(total / MAX_CLUSTER_SHARE).min(light);
    let (cluster_of, clusters) = cluster(graph, vertices, None, max_load, rng);
    let shrinks = clusters as f64 <= MAX_SHRUNK * vertices as f64;
    shrinks.then(|| Level { graph: graph.contract(&cluster_of, clusters), cluster_of })
}

/// The best of several bisections; the first among equals.
fn best_of(halves: &Halves, effort: &Effort, repeats: usize, rng: &mut impl RngCore) -> Vec<u8> {
    if repeats == 1 {
        return bisect(halves, effort, rng);
    }
    let (repeats, rest) = (repeats / 2, repeats - repeats / 2);
    // Each half has its own generator, so that the result does not depend on the order of execution.
    let mut rngs = [rng.next_u64(), rng.next_u64()].map(|seed| generator(seed, 0));
    let [one, other] = &mut rngs;
    let mut first = || best_of(halves, effort, repeats, one);
    let mut second = || best_of(halves, effort, rest, other);
    let (a, b) =
        if halves.graph.vertices() >= PARALLEL { rayon::join(first, second) } else { (first(), second()) };
    if halves.grade(&b) < halves.grade(&a) { b } else { a }
}

/// The side of a single vertex: the cheaper side if both have room, else the side with room, else the larger side.
fn single(halves: &Halves) -> u8 {
    let load = halves.graph.loads[0];
    let fits = halves.capacity.map(|capacity| load <= capacity);
    match fits {
        [true, true] => u8::from(halves.bias(0) < 0),
        [true, false] => 0,
        [false, true] => 1,
        [false, false] => u8::from(halves.capacity[1] > halves.capacity[0]),
    }
}

/// The best of several bisections of a small graph: one grown from the vertex with the largest bias to side 0, one
/// sorted by bias, and others grown from random vertices and from vertices far from these.
fn initial(halves: &Halves, tries: usize, rng: &mut impl RngCore) -> Vec<u8> {
    let is_biased = halves.bias.iter().any(|&bias| bias != 0);
    let mut best: Option<(Grade, Vec<u8>)> = None;
    for attempt in 0..tries.max(1) {
        let mut sides = match (attempt, is_biased) {
            (0, true) => {
                let lowest = (0..halves.bias.len()).min_by_key(|&v| std::cmp::Reverse(halves.bias[v]));
                grow(halves, lowest.unwrap_or(0))
            }
            (1, true) => sorted_by_bias(halves),
            _ => grow(halves, start_vertex(halves.graph, rng)),
        };
        two_way::refine(halves, &mut sides);
        let grade = halves.grade(&sides);
        if best.as_ref().is_none_or(|best| grade < best.0) {
            best = Some((grade, sides));
        }
    }
    best.map_or_else(Vec::new, |best| best.1)
}

/// Fills side 0 with the vertices of largest bias to it until it reaches its target.
fn sorted_by_bias(halves: &Halves) -> Vec<u8> {
    let loads = &halves.graph.loads;
    let mut order: Vec<u32> = (0..loads.len() as u32).collect();
    order.sort_unstable_by_key(|&v| (std::cmp::Reverse(halves.bias(v as usize)), v));
    let (mut sides, mut load) = (vec![1; loads.len()], 0);
    for v in order {
        let more = load + loads[v as usize];
        if load < halves.target && more <= halves.capacity[0] {
            (sides[v as usize], load) = (0, more);
        }
    }
    sides
}

/// A start vertex for growing: a random vertex, or a vertex farthest from it.
fn start_vertex(graph: &Csr, rng: &mut impl RngCore) -> usize {
    let start = below(rng, graph.vertices() as u64) as usize;
    if rng.next_u32().is_multiple_of(2) {
        return start;
    }
    let mut is_seen = vec![false; graph.vertices()];
    is_seen[start] = true;
    let (mut queue, mut next) = (vec![start], 0);
    while let Some(&v) = queue.get(next) {
        next += 1;
        for half in graph.row(v) {
            if !std::mem::replace(&mut is_seen[half.to as usize], true) {
                queue.push(half.to as usize);
            }
        }
    }
    queue[next - 1]
}

/// Grows side 0 from a vertex, adding the vertex of least cost (greedy graph growing: Karypis and Kumar 1998, section
/// 4.2), until it reaches its target. If no adjacent vertex is left, growth continues at the lowest remaining vertex.
fn grow(halves: &Halves, start: usize) -> Vec<u8> {
    let graph = halves.graph;
    let mut sides = vec![1u8; graph.vertices()];
    let mut is_done = vec![false; graph.vertices()];
    // The gain of adding a vertex to side 0; `i64::MIN` for vertices not adjacent to side 0.
    let mut gains = vec![i64::MIN; graph.vertices()];
    let mut heap = BinaryHeap::from([(i64::MAX, !(start as u32))]);
    gains[start] = i64::MAX;
    let (mut load, mut lowest) = (0, 0);
    while load < halves.target {
        let v = loop {
            match heap.pop() {
                Some((gain, v)) if !is_done[!v as usize] && gain == gains[!v as usize] => break !v as usize,
                Some(_) => {}
                None => {
                    while is_done.get(lowest) == Some(&true) {
                        lowest += 1;
                    }
                    break lowest;
                }
            }
        };
        if v >= graph.vertices() {
            break;
        }
        is_done[v] = true;
        if load + graph.loads[v] > halves.capacity[0] && load > 0 {
            continue;
        }
        sides[v] = 0;
        load += graph.loads[v];
        for half in graph.row(v) {
            let u = half.to as usize;
            if is_done[u] {
                continue;
            }
            if gains[u] == i64::MIN {
                let attraction = graph.row(u).iter().map(|half| match sides[half.to as usize] {
                    0 => i64::from(half.weight),
                    _ => -i64::from(half.weight),
                });
                gains[u] = halves.bias(u) + halves.edge_cost * attraction.sum::<i64>();
            } else if gains[u] != i64::MAX {
                gains[u] += 2 * halves.edge_cost * i64::from(half.weight);
            }
            heap.push((gains[u], !half.to));
        }
    }
    sides
}
