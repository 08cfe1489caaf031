//! Refinement of a bisection: vertices change sides where that pays, and sometimes where it does not yet.
//!
//! C. M. Fiduccia, R. M. Mattheyses, "A linear-time heuristic for improving network partitions", 1982, with two
//! heaps instead of buckets, since costs are large numbers. In a round every vertex changes its side at most once,
//! the best first; then the best state of the round is restored. Only vertices at the cut, or drawn to the other
//! side, take part, unless a side is above its capacity. A move may exceed the capacity by the heaviest vertex,
//! because the next one can make up for it, and a side above its capacity gives before anything else.

use std::collections::BinaryHeap;

use super::bisect::Halves;

/// Rounds at most; [`FEW_ROUNDS`] on graphs of more than [`LARGE`] vertices.
const ROUNDS: usize = 3;
const FEW_ROUNDS: usize = 2;
const LARGE: usize = 20_000;

/// Moves in vain after which a round ends: a part of the vertices, within bounds.
const PATIENCE_SHARE: usize = 20;
const PATIENCE: (usize, usize) = (30, 300);

/// Lowers the overload of `sides`, then its cost; never makes either worse.
pub(crate) fn refine(halves: &Halves, sides: &mut [u8]) {
    let graph = halves.graph;
    let vertices = graph.vertices();
    let mut state = State {
        halves,
        loads: halves.loads(sides),
        sides,
        gains: vec![0; vertices],
        is_in: vec![false; vertices],
        is_locked: vec![false; vertices],
        heaps: Default::default(),
        heaviest: graph.heaviest(),
    };
    for _ in 0..if vertices > LARGE { FEW_ROUNDS } else { ROUNDS } {
        if !state.round() {
            break;
        }
    }
}

struct State<'a> {
    halves: &'a Halves<'a>,
    sides: &'a mut [u8],
    loads: [i64; 2],
    /// By vertex: what it saves that it changes sides. Known of those that take part.
    gains: Vec<i64>,
    is_in: Vec<bool>,
    is_locked: Vec<bool>,
    /// By side: (gain, vertex, all its bits turned so that the lowest comes first); entries may be out of date.
    heaps: [BinaryHeap<(i64, u32)>; 2],
    heaviest: i64,
}

impl State<'_> {
    /// Whether a round found something better.
    fn round(&mut self) -> bool {
        self.start();
        let limit = (self.sides.len() / PATIENCE_SHARE).clamp(PATIENCE.0, PATIENCE.1);
        let (mut saved, mut best, mut kept) = (0, (self.halves.overload(self.loads), 0), 0);
        let before = best;
        let mut moved: Vec<u32> = Vec::new();
        while let Some(v) = self.pick() {
            saved += self.gains[v];
            self.is_locked[v] = true;
            self.flip(v);
            moved.push(v as u32);
            self.tell_neighbors(v);
            let grade = (self.halves.overload(self.loads), -saved);
            if grade < best {
                (best, kept) = (grade, moved.len());
            } else if moved.len() - kept > limit {
                break;
            }
        }
        for &v in &moved[kept..] {
            self.flip(v as usize);
        }
        best < before
    }

    /// Fills the heaps.
    fn start(&mut self) {
        self.heaps.iter_mut().for_each(BinaryHeap::clear);
        self.is_locked.fill(false);
        let all = self.halves.overload(self.loads) > 0;
        for v in 0..self.sides.len() {
            let (gain, touches) = self.gain(v);
            self.is_in[v] = all || touches;
            if self.is_in[v] {
                self.gains[v] = gain;
                self.heaps[usize::from(self.sides[v])].push((gain, !(v as u32)));
            }
        }
    }

    /// What it saves that `v` changes sides, and whether there is a reason to.
    fn gain(&self, v: usize) -> (i64, bool) {
        let side = self.sides[v];
        let (mut across, mut along) = (0, 0);
        for half in self.halves.graph.row(v) {
            if self.sides[half.to as usize] == side {
                along += i64::from(half.weight);
            } else {
                across += i64::from(half.weight);
            }
        }
        let drawn = if side == 0 { -self.halves.bias(v) } else { self.halves.bias(v) };
        (self.halves.edge_cost * (across - along) + drawn, across > 0 || drawn > 0)
    }

    /// The vertex to move next, taken from its heap.
    fn pick(&mut self) -> Option<usize> {
        let (sides, gains, is_locked) = (&*self.sides, &self.gains, &self.is_locked);
        let mut best: Option<(i64, usize)> = None;
        for from in 0..2 {
            let heap = &mut self.heaps[from];
            while let Some(&(gain, v)) = heap.peek() {
                let v = !v as usize;
                if is_locked[v] || usize::from(sides[v]) != from || gain != gains[v] {
                    heap.pop();
                } else {
                    break;
                }
            }
        }
        let capacity = self.halves.capacity;
        let is_over = [self.loads[0] > capacity[0], self.loads[1] > capacity[1]];
        for from in 0..2 {
            let to = 1 - from;
            let Some(&(gain, v)) = self.heaps[from].peek() else { continue };
            let there = self.loads[to] + self.halves.graph.loads[!v as usize];
            // What is borrowed must be given back, so the other side has to have somebody to give.
            let may_borrow =
                !is_over[to] && there <= capacity[to] + self.heaviest && !self.heaps[to].is_empty();
            let may = is_over[from] || (!is_over[to] && (there <= capacity[to] || may_borrow));
            if may && best.is_none_or(|best| gain > best.0) {
                best = Some((gain, from));
            }
        }
        let (_, from) = best?;
        self.heaps[from].pop().map(|(_, v)| !v as usize)
    }

    fn flip(&mut self, v: usize) {
        let (from, load) = (usize::from(self.sides[v]), self.halves.graph.loads[v]);
        self.loads[from] -= load;
        self.loads[1 - from] += load;
        self.sides[v] = 1 - self.sides[v];
    }

    /// After `v` changed sides: its neighbors gain by following it, and lose by staying away.
    fn tell_neighbors(&mut self, v: usize) {
        for half in self.halves.graph.row(v) {
            let u = half.to as usize;
            if self.is_locked[u] {
                continue;
            }
            if !self.is_in[u] {
                self.is_in[u] = true;
                self.gains[u] = self.gain(u).0;
            } else {
                let change = 2 * self.halves.edge_cost * i64::from(half.weight);
                self.gains[u] += if self.sides[u] == self.sides[v] { -change } else { change };
            }
            self.heaps[usize::from(self.sides[u])].push((self.gains[u], !half.to));
        }
    }
}
