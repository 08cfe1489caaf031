//! Refinement of a bisection: vertices change sides where that pays, and sometimes where it does not yet.
//!
//! C. M. Fiduccia, R. M. Mattheyses, "A linear-time heuristic for improving network partitions", 1982, with two
//! heaps instead of buckets, since costs are large numbers. In a round every vertex changes its side at most once,
//! the best first; then the best state of the round is restored. Only vertices at the cut, or drawn to the other
//! side, take part, unless a side is above its capacity. A move may exceed the capacity by the heaviest vertex,
//! because the next one can make up for it, and a side above its capacity gives before anything else.

use std::collections::BinaryHeap;

use rayon::prelude::*;

use super::bisect::Halves;

/// From so many vertices on several threads count what crosses.
const PARALLEL: usize = 1 << 15;

/// Rounds at most; [`FEW_ROUNDS`] on graphs of more than [`LARGE`] vertices.
const ROUNDS: usize = 3;
const FEW_ROUNDS: usize = 2;
const LARGE: usize = 20_000;

/// Moves in vain after which a round ends: a part of the vertices, within bounds.
const PATIENCE_SHARE: usize = 20;
const PATIENCE: (usize, usize) = (30, 300);

/// Lowers the overload of `sides`, then its cost; never makes either worse.
pub(crate) fn refine(halves: &Halves, sides: &mut [u8]) {
    let mut state = State::new(halves, sides);
    for _ in 0..if sides.len() > LARGE { FEW_ROUNDS } else { ROUNDS } {
        if !state.round() {
            break;
        }
    }
    sides.iter_mut().zip(&state.vertices).for_each(|(side, vertex)| *side = vertex.side);
}

/// What is known of a vertex.
#[derive(Clone, Copy)]
struct Vertex {
    /// The weight of its edges to the other side, and of all.
    across: u32,
    all: u32,
    side: u8,
    /// Whether it has moved in this round.
    is_locked: bool,
}

struct State<'a> {
    halves: &'a Halves<'a>,
    vertices: Vec<Vertex>,
    loads: [i64; 2],
    /// By side: (gain, vertex, all its bits turned so that the lowest comes first); entries may be out of date.
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

    /// Whether a round found something better.
    fn round(&mut self) -> bool {
        self.start();
        let limit = (self.vertices.len() / PATIENCE_SHARE).clamp(PATIENCE.0, PATIENCE.1);
        let (mut saved, mut best, mut kept) = (0, (self.halves.overload(self.loads), 0), 0);
        let before = best;
        let mut moved: Vec<u32> = Vec::new();
        while let Some(v) = self.pick() {
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

    /// Fills the heaps with those that have a reason to move.
    fn start(&mut self) {
        self.heaps.iter_mut().for_each(BinaryHeap::clear);
        let all = self.halves.overload(self.loads) > 0;
        let mut entries: [Vec<(i64, u32)>; 2] = Default::default();
        for v in 0..self.vertices.len() {
            let touches = all || self.vertices[v].across > 0 || self.drawn(v) > 0;
            let gain = self.gain(v);
            let vertex = &mut self.vertices[v];
            vertex.is_locked = false;
            if touches {
                entries[usize::from(vertex.side)].push((gain, !(v as u32)));
            }
        }
        self.heaps = entries.map(BinaryHeap::from);
    }

    /// How much `v` is drawn to the other side from outside.
    #[inline]
    fn drawn(&self, v: usize) -> i64 {
        if self.vertices[v].side == 0 { -self.halves.bias(v) } else { self.halves.bias(v) }
    }

    /// What it saves that `v` changes sides.
    #[inline]
    fn gain(&self, v: usize) -> i64 {
        let Vertex { across, all, .. } = self.vertices[v];
        self.halves.edge_cost * (2 * i64::from(across) - i64::from(all)) + self.drawn(v)
    }

    /// The vertex to move next, taken from its heap.
    fn pick(&mut self) -> Option<usize> {
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
            // What is borrowed must be given back, so the other side has to have somebody to give.
            let may_borrow = there <= capacity[to] + self.heaviest && !self.heaps[to].is_empty();
            let may = is_over[from] || (!is_over[to] && (there <= capacity[to] || may_borrow));
            if may && best.is_none_or(|best| gain > best.0) {
                best = Some((gain, from));
            }
        }
        let (_, from) = best?;
        self.heaps[from].pop().map(|(_, v)| !v as usize)
    }

    /// Moves `v` to the other side; its neighbors gain by following it, and lose by staying away. Those that have not
    /// moved yet go into the heaps, if there is any use.
    fn flip(&mut self, v: usize, tell: bool) {
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
            if tell && !neighbor.is_locked {
                let side = usize::from(neighbor.side);
                self.heaps[side].push((self.gain(u), !half.to));
            }
        }
    }
}
