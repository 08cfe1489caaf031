//! Multilevel bisection: the vertices of a graph on two sides, cheaply, each side within its capacity.
//!
//! B. Hendrickson, R. Leland, "A multilevel algorithm for partitioning graphs", 1995: the graph is coarsened until
//! it is small, bisected there, and the bisection refined on the way back. Three things are added. What a vertex
//! costs on either side may differ (the bias), which is how the rest of the machine pulls at it. Below
//! [`Effort::repeat_below`] vertices every level is bisected several times from new coarsenings and the best kept,
//! so that the smallest graphs are seen many times (W-cycles: U. Trottenberg, C. Oosterlee, A. Schüller, "Multigrid",
//! 2001): the quality of the first cuts of a machine decides more than anything later, and small graphs cost
//! little. And capacities are hard: of two bisections the one with less overload is better, whatever it costs.

use std::collections::BinaryHeap;

use rand_core::RngCore;

use super::coarsen::cluster;
use super::csr::Csr;
use super::two_way;
use crate::random::{below, generator};

/// Graphs of at most so many vertices are bisected directly.
const SMALL: usize = 120;

/// Coarsening that leaves more than this part of the vertices is given up.
const MAX_SHRUNK: f64 = 0.95;

/// A cluster has at most this part of all load, unless a vertex has more.
const MAX_CLUSTER_SHARE: i64 = 20;

/// A cluster is at most so many times as heavy as the average vertex, unless a vertex is heavier.
const MAX_CLUSTER_AVERAGES: i64 = 8;

/// From so many vertices on the repeats of a level are made by different threads.
const PARALLEL: usize = 1000;

/// What to bisect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halves<'a> {
    /// The vertices, and what they exchange.
    pub graph: &'a Csr,
    /// What it costs that two vertices are on different sides, per weight of their edge.
    pub edge_cost: i64,
    /// By vertex: what it costs more on side 1 than on side 0. Empty if nothing does.
    pub bias: &'a [i64],
    /// The most load of either side.
    pub capacity: [i64; 2],
    /// The load that side 0 would have if all were even.
    pub target: i64,
}

/// How hard to try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// First bisections of the smallest graph.
    pub tries: usize,
    /// Bisections of each level of at most [`Self::repeat_below`] vertices.
    pub repeats: usize,
    /// See [`Self::repeats`].
    pub repeat_below: usize,
}

impl Effort {
    /// For graphs that are bisected once for all.
    pub const THOROUGH: Effort = Effort { tries: 4, repeats: 2, repeat_below: 4000 };
}

/// How good a bisection is: its overload, then its cost. Less is better.
pub(crate) type Grade = (i64, i64);

impl<'a> Halves<'a> {
    /// Side 0 takes exactly `first` of the load, side 1 the rest; vertices must have a load of 1 each for that.
    pub fn exact(graph: &'a Csr, first: i64) -> Halves<'a> {
        let capacity = [first, graph.total_load() - first];
        Halves { graph, edge_cost: 1, bias: &[], capacity, target: first }
    }

    /// What `v` costs more on side 1.
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

    /// By how much the sides are above their capacities.
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
pub(crate) fn bisect(halves: &Halves, effort: &Effort, dice: &mut impl RngCore) -> Vec<u8> {
    let chain = Chain::new(halves.graph, effort, dice);
    chain.bisect(halves, effort, dice)
}

/// A coarser graph.
pub(crate) struct Level {
    /// By vertex of the finer one.
    pub cluster_of: Vec<u32>,
    pub graph: Csr,
}

/// The levels of a graph down to the first whose bisections are repeated, or that is small. They depend on the graph alone,
/// and not on what it costs to be on either side.
pub(crate) struct Chain {
    levels: Vec<Level>,
}

impl Chain {
    pub fn new(graph: &Csr, effort: &Effort, dice: &mut impl RngCore) -> Chain {
        let mut levels: Vec<Level> = Vec::new();
        loop {
            let finer = levels.last().map_or(graph, |level| &level.graph);
            let is_whole = levels.is_empty();
            if finer.vertices() <= SMALL || (!is_whole && finer.vertices() <= effort.repeat_below) {
                break;
            }
            match coarser(finer, dice) {
                Some(level) => levels.push(level),
                None => break,
            }
        }
        Chain { levels }
    }

    /// The side of every vertex of the graph that the chain was made of, which is that of `halves`.
    pub fn bisect(&self, halves: &Halves, effort: &Effort, dice: &mut impl RngCore) -> Vec<u8> {
        let biases = self.biases(halves);
        let at = |level: usize| match level.checked_sub(1) {
            None => *halves,
            Some(before) => Halves { graph: &self.levels[before].graph, bias: &biases[before], ..*halves },
        };
        let coarsest = at(self.levels.len());
        let vertices = coarsest.graph.vertices();
        let mut sides = match (vertices, self.levels.len()) {
            (0, _) => return Vec::new(),
            (1, _) => vec![single(&coarsest)],
            (2..=SMALL, 0) => first(&coarsest, effort.tries, dice),
            // It cannot be coarsened.
            (_, 0) => first(&coarsest, effort.tries.min(2), dice),
            _ => best_of(
                &coarsest,
                effort,
                if vertices <= effort.repeat_below { effort.repeats } else { 1 },
                dice,
            ),
        };
        for (number, level) in self.levels.iter().enumerate().rev() {
            sides = level.cluster_of.iter().map(|&cluster| sides[cluster as usize]).collect();
            two_way::refine(&at(number), &mut sides);
        }
        sides
    }

    /// What vertices cost more on side 1, by level after the first; empty where nobody does.
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

/// The next level; none where that would hardly be smaller.
fn coarser(graph: &Csr, dice: &mut impl RngCore) -> Option<Level> {
    let vertices = graph.vertices();
    let (total, heaviest) = (graph.total_load(), graph.heaviest());
    let light = heaviest.max(MAX_CLUSTER_AVERAGES * total / vertices as i64);
    let max_load = heaviest.max(total / MAX_CLUSTER_SHARE).min(light);
    let (cluster_of, clusters) = cluster(graph, vertices, None, max_load, dice);
    let shrinks = clusters as f64 <= MAX_SHRUNK * vertices as f64;
    shrinks.then(|| Level { graph: graph.contract(&cluster_of, clusters), cluster_of })
}

/// The best of several bisections; of equals the first.
fn best_of(halves: &Halves, effort: &Effort, repeats: usize, dice: &mut impl RngCore) -> Vec<u8> {
    if repeats == 1 {
        return bisect(halves, effort, dice);
    }
    let (repeats, rest) = (repeats / 2, repeats - repeats / 2);
    // Both halves have dice of their own, so that it does not matter who rolls first.
    let mut own = [dice.next_u64(), dice.next_u64()].map(|seed| generator(seed, 0));
    let [one, other] = &mut own;
    let mut first = || best_of(halves, effort, repeats, one);
    let mut second = || best_of(halves, effort, rest, other);
    let (a, b) =
        if halves.graph.vertices() >= PARALLEL { rayon::join(first, second) } else { (first(), second()) };
    if halves.grade(&b) < halves.grade(&a) { b } else { a }
}

/// The side of the only vertex: that with room for it, or else the larger one; the cheaper of two.
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

/// The best of several bisections of a small graph: grown from the vertex that is drawn to side 0 most, sorted by
/// that, and grown from random vertices and those far from them.
fn first(halves: &Halves, tries: usize, dice: &mut impl RngCore) -> Vec<u8> {
    let is_biased = halves.bias.iter().any(|&bias| bias != 0);
    let mut best: Option<(Grade, Vec<u8>)> = None;
    for attempt in 0..tries.max(1) {
        let mut sides = match (attempt, is_biased) {
            (0, true) => {
                let lowest = (0..halves.bias.len()).min_by_key(|&v| std::cmp::Reverse(halves.bias[v]));
                grow(halves, lowest.unwrap_or(0))
            }
            (1, true) => sorted(halves),
            _ => grow(halves, seed(halves.graph, dice)),
        };
        two_way::refine(halves, &mut sides);
        let grade = halves.grade(&sides);
        if best.as_ref().is_none_or(|best| grade < best.0) {
            best = Some((grade, sides));
        }
    }
    best.map_or_else(Vec::new, |best| best.1)
}

/// Side 0 takes those that cost least there until it has its share.
fn sorted(halves: &Halves) -> Vec<u8> {
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

/// A vertex to grow from: a random one, or one that is as far from it as any.
fn seed(graph: &Csr, dice: &mut impl RngCore) -> usize {
    let start = below(dice, graph.vertices() as u64) as usize;
    if dice.next_u32().is_multiple_of(2) {
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

/// Side 0 grows from a vertex by whatever costs least (greedy graph growing: Karypis and Kumar 1998, section 4.2),
/// until it has its share. Where it cannot go on it starts anew at the lowest vertex.
fn grow(halves: &Halves, start: usize) -> Vec<u8> {
    let graph = halves.graph;
    let mut sides = vec![1u8; graph.vertices()];
    let mut is_done = vec![false; graph.vertices()];
    // What it saves that a vertex joins side 0; known of those that are next to it.
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
                let drawn = graph.row(u).iter().map(|half| match sides[half.to as usize] {
                    0 => i64::from(half.weight),
                    _ => -i64::from(half.weight),
                });
                gains[u] = halves.bias(u) + halves.edge_cost * drawn.sum::<i64>();
            } else if gains[u] != i64::MAX {
                gains[u] += 2 * halves.edge_cost * i64::from(half.weight);
            }
            heap.push((gains[u], !half.to));
        }
    }
    sides
}
