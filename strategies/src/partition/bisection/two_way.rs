//! Fiduccia-Mattheyses refinement of a bisection.
//!
//! C. M. Fiduccia, R. M. Mattheyses, "A linear-time heuristic for improving network partitions", 1982, with two heaps
//! instead of buckets, because costs are large numbers. In a round every vertex changes its side at most once, best gain
//! first, even if negative; then the best state of the round is restored. Only vertices at the cut, or biased to the
//! other side, take part, unless a side is above its capacity. A move may exceed the capacity by the heaviest vertex,
//! because the next move can compensate for it. A side above its capacity moves vertices before the other side does.

use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::Halves;

/// Minimum number of vertices for which the initial cut weights are computed in parallel.
const PARALLEL: usize = 1 << 15;

/// Maximum number of rounds; [`FEW_ROUNDS`] on graphs with more than [`LARGE`] vertices.
const ROUNDS: usize = 3;
const FEW_ROUNDS: usize = 2;
const LARGE: usize = 20_000;

/// A round ends after this many moves without improvement: 1/`PATIENCE_SHARE` of the vertices, within bounds.
const PATIENCE_SHARE: usize = 20;
const PATIENCE: (usize, usize) = (30, 300);

/// Lowers the overload of `sides`, then the cost. The result is never worse than the input.
pub(crate) fn refine(halves: &Halves, sides: &mut [u8]) {
    let mut state = State::new(halves, sides);
    for _ in 0..if sides.len() > LARGE { FEW_ROUNDS } else { ROUNDS } {
        if !state.round() {
            break;
        }
    }
    sides.iter_mut().zip(&state.vertices).for_each(|(side, vertex)| *side = vertex.side);
}

/// The state of a vertex.
#[derive(Clone, Copy)]
struct Vertex {
    /// Weight of its edges to the other side.
    across: u32,
    /// Weight of all its edges.
    all: u32,
    side: u8,
    /// Whether it has moved in this round.
    is_locked: bool,
}

struct State<'a> {
    halves: &'a Halves<'a>,
    vertices: Vec<Vertex>,
    loads: [i64; 2],
    /// By side: gain and bitwise complement of the vertex (lowest vertex first). Entries may be out of date.
    heaps: [BinaryHeap<(i64, u32)>; 2],
    heaviest: i64,
}

impl<'a> State<'a> {
    fn new(halves: &'a Halves<'a>, sides: &[u8]) -> State<'a> {
        let vertex = |(v, &side): (usize, &u8)| {
            let (mut across, mut all) = (0, 0);
            for half in halves.graph.row(v) {
                all += half.weight;
                across += if sides[half.to as usize] == side { 0 } else { half.weight };
            }
            Vertex { across, all, side, is_locked: false }
        };
        let vertices = if sides.len() < PARALLEL {
            sides.iter().enumerate().map(vertex).collect()
        } else {
            sides.par_iter().enumerate().map(vertex).collect()
        };
        State {
            halves,
            vertices,
            loads: halves.loads(sides),
            heaps: Default::default(),
            heaviest: halves.graph.heaviest(),
        }
    }

    /// Runs a round; returns whether the bisection improved.
    fn round(&mut self) -> bool {
        self.start();
        let limit = (self.vertices.len() / PATIENCE_SHARE).clamp(PATIENCE.0, PATIENCE.1);
        let (mut saved, mut best, mut kept) = (0, (self.halves.overload(self.loads), 0), 0);
        let before = best;
        let mut moved: Vec<u32> = Vec::new();
        while let Some(v) = self.pop_best() {
            saved += self.gain(v);
            self.vertices[v].is_locked = true;
            self.flip(v, true);
            moved.push(v as u32);
            let grade = (self.halves.overload(self.loads), -saved);
            if grade < best {
                (best, kept) = (grade, moved.len());
            } else if moved.len() - kept > limit {
                break;
            }
        }
        for &v in &moved[kept..] {
            self.flip(v as usize, false);
        }
        best < before
    }

    /// Fills the heaps with the vertices that take part in the round.
    fn start(&mut self) {
        self.heaps.iter_mut().for_each(BinaryHeap::clear);
        let all = self.halves.overload(self.loads) > 0;
        let mut entries: [Vec<(i64, u32)>; 2] = Default::default();
        for v in 0..self.vertices.len() {
            let takes_part = all || self.vertices[v].across > 0 || self.outward_bias(v) > 0;
            let gain = self.gain(v);
            let vertex = &mut self.vertices[v];
            vertex.is_locked = false;
            if takes_part {
                entries[usize::from(vertex.side)].push((gain, !(v as u32)));
            }
        }
        self.heaps = entries.map(BinaryHeap::from);
    }

    /// The bias of `v` to the other side.
    #[inline]
    fn outward_bias(&self, v: usize) -> i64 {
        if self.vertices[v].side == 0 { -self.halves.bias(v) } else { self.halves.bias(v) }
    }

    /// The cost saved if `v` changes sides.
    #[inline]
    fn gain(&self, v: usize) -> i64 {
        let Vertex { across, all, .. } = self.vertices[v];
        self.halves.edge_cost * (2 * i64::from(across) - i64::from(all)) + self.outward_bias(v)
    }

    /// Removes the vertex that moves next from its heap, and returns it.
    fn pop_best(&mut self) -> Option<usize> {
        for from in 0..2 {
            while let Some(&(gain, v)) = self.heaps[from].peek() {
                let v = !v as usize;
                let vertex = &self.vertices[v];
                if vertex.is_locked || usize::from(vertex.side) != from || gain != self.gain(v) {
                    self.heaps[from].pop();
                } else {
                    break;
                }
            }
        }
        let mut best: Option<(i64, usize)> = None;
        let capacity = self.halves.capacity;
        let is_over = [self.loads[0] > capacity[0], self.loads[1] > capacity[1]];
        for from in 0..2 {
            let to = 1 - from;
            let Some(&(gain, v)) = self.heaps[from].peek() else { continue };
            let there = self.loads[to] + self.halves.graph.loads[!v as usize];
            // A move that exceeds the capacity must be compensated, so the other side needs a vertex to move.
            let may_borrow = there <= capacity[to] + self.heaviest && !self.heaps[to].is_empty();
            let may = is_over[from] || (!is_over[to] && (there <= capacity[to] || may_borrow));
            if may && best.is_none_or(|best| gain > best.0) {
                best = Some((gain, from));
            }
        }
        let (_, from) = best?;
        self.heaps[from].pop().map(|(_, v)| !v as usize)
    }

    /// Moves `v` to the other side and updates its neighbors. With `enqueue`, unlocked neighbors enter the heaps with
    /// their new gains.
    fn flip(&mut self, v: usize, enqueue: bool) {
        let (graph, vertex) = (self.halves.graph, &mut self.vertices[v]);
        vertex.side = 1 - vertex.side;
        vertex.across = vertex.all - vertex.across;
        let side = vertex.side;
        self.loads[usize::from(side)] += graph.loads[v];
        self.loads[usize::from(1 - side)] -= graph.loads[v];
        for half in graph.row(v) {
            let u = half.to as usize;
            let neighbor = &mut self.vertices[u];
            if neighbor.side == side {
                neighbor.across -= half.weight;
            } else {
                neighbor.across += half.weight;
            }
            if enqueue && !neighbor.is_locked {
                let side = usize::from(neighbor.side);
                self.heaps[side].push((self.gain(u), !half.to));
            }
        }
    }
}
