//! Bisects a graph: greedy graph growing, then Fiduccia-Mattheyses refinement.
//!
//! One side grows from a peripheral vertex (the last vertex that a breadth-first search reaches). Each step adds the
//! vertex whose move cuts least (G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning
//! irregular graphs", SIAM J. Sci. Comput. 20(1), 1998, section 3.2: GGGP). The refinement moves single vertices, each
//! once per pass, best gain first even if negative, and keeps the best state of the pass (C. M. Fiduccia, R. M.
//! Mattheyses, "A linear-time heuristic for improving network partitions", DAC 1982). Both ends of the longest path
//! found are tried as the start.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use equipoise_model::graph::Graph;

/// Maximum number of refinement passes; later passes gain almost nothing.
const PASSES: usize = 6;

/// The graph to bisect.
pub(super) struct Halves<'a> {
    pub(super) graph: &'a Graph,
    /// Weights of the vertices, at least 1 each.
    pub(super) weights: &'a [u32],
    /// Bytes each vertex exchanges with fixed ends on the first side, minus those with fixed ends on the second.
    pub(super) pulls: Vec<i128>,
    /// The target share of the first side in the weight.
    pub(super) share: f64,
    /// Relative excess of weight that a side may have.
    pub(super) slack: f64,
}

/// Orders bisections, best first: weight beyond the slack, bytes cut (up to a constant), deviation from the
/// target weight.
type Quality = (u64, i128, u64);

/// Whether each vertex is on the first side.
pub(super) fn bisect(halves: &Halves) -> Vec<bool> {
    let first = farthest_from(halves, 0);
    let second = farthest_from(halves, first);
    let cut = |start: usize| {
        let mut state = State::grown(halves, start);
        while state.passes < PASSES && state.improve() {}
        (state.quality(), state.is_first)
    };
    let (one, other) = (cut(first), cut(second));
    if other.0 < one.0 { other.1 } else { one.1 }
}

/// The last vertex that a breadth-first search from `start` reaches.
fn farthest_from(halves: &Halves, start: usize) -> usize {
    let mut is_seen = vec![false; halves.weights.len()];
    is_seen[start] = true;
    let mut queue = vec![start];
    let mut at = 0;
    while let Some(&v) = queue.get(at) {
        at += 1;
        for (u, _) in halves.graph.neighbors(v) {
            if !is_seen[u] {
                is_seen[u] = true;
                queue.push(u);
            }
        }
    }
    queue[at - 1]
}

struct State<'a> {
    halves: &'a Halves<'a>,
    is_first: Vec<bool>,
    /// The bytes saved by moving each vertex to the other side.
    gains: Vec<i128>,
    /// The weight of the first side.
    weight: u64,
    /// The target of `weight`.
    target: u64,
    /// The allowed deviation from the target.
    slack: u64,
    /// Bytes cut, minus the bytes cut when all vertices were on the second side.
    cut: i128,
    passes: usize,
}

impl<'a> State<'a> {
    /// The state with all vertices on the second side.
    fn new(halves: &'a Halves<'a>) -> Self {
        let total: u64 = halves.weights.iter().map(|&weight| u64::from(weight)).sum();
        let share = |share: f64| (total as f64 * share).round() as u64;
        // A move to the first side gains the pull and cuts all edges of the vertex.
        let gain = |v: usize| {
            let edges: i128 = halves.graph.neighbors(v).map(|(_, bytes)| i128::from(bytes)).sum();
            halves.pulls[v] - edges
        };
        State {
            halves,
            is_first: vec![false; halves.weights.len()],
            gains: (0..halves.weights.len()).map(gain).collect(),
            weight: 0,
            target: share(halves.share).min(total),
            slack: share(halves.share.min(1.0 - halves.share).max(0.0) * halves.slack.min(1.0)),
            cut: 0,
            passes: 0,
        }
    }

    /// The state after the first side has grown from `start` to its share.
    fn grown(halves: &'a Halves<'a>, start: usize) -> Self {
        let mut state = State::new(halves);
        let mut border: BinaryHeap<(i128, Reverse<usize>)> = BinaryHeap::new();
        // If no edge leaves the first side, growth continues at the lowest remaining vertex.
        let mut rest = std::iter::once(start).chain(0..halves.weights.len());
        // Vertices pulled to the first side are starting points, too.
        border.extend(
            (0..halves.weights.len()).filter(|&v| halves.pulls[v] > 0).map(|v| (state.gains[v], Reverse(v))),
        );
        loop {
            let v = match border.pop() {
                Some((gain, Reverse(v))) if state.is_first[v] || gain != state.gains[v] => continue,
                Some((_, Reverse(v))) => v,
                None => match rest.find(|&v| !state.is_first[v]) {
                    Some(v) => v,
                    None => return state,
                },
            };
            let weight = u64::from(halves.weights[v]);
            // The last vertex is added only if the weight gets closer to the target.
            if state.weight.abs_diff(state.target) <= (state.weight + weight).abs_diff(state.target) {
                if state.weight + state.slack >= state.target || state.weight >= state.target {
                    return state;
                }
                // The vertex is too heavy; a lighter one may fit.
                continue;
            }
            state.flip(v);
            let next = halves.graph.neighbors(v).filter(|&(u, _)| !state.is_first[u]);
            border.extend(next.map(|(u, _)| (state.gains[u], Reverse(u))));
        }
    }

    /// Moves `v` to the other side.
    fn flip(&mut self, v: usize) {
        let weight = u64::from(self.halves.weights[v]);
        self.weight = if self.is_first[v] { self.weight - weight } else { self.weight + weight };
        self.cut -= self.gains[v];
        self.gains[v] = -self.gains[v];
        self.is_first[v] = !self.is_first[v];
        for (u, bytes) in self.halves.graph.neighbors(v) {
            let change = 2 * i128::from(bytes);
            self.gains[u] += if self.is_first[u] == self.is_first[v] { -change } else { change };
        }
    }

    fn quality(&self) -> Quality {
        let deviation = self.weight.abs_diff(self.target);
        (deviation.saturating_sub(self.slack), self.cut, deviation)
    }

    /// One pass of refinement; returns whether the bisection improved.
    fn improve(&mut self) -> bool {
        self.passes += 1;
        let n = self.halves.weights.len();
        let heaviest = self.halves.weights.iter().max().map_or(0, |&weight| u64::from(weight));
        let reach = self.slack + heaviest;
        let stalled = 64 + n / 16;
        // The possible moves of vertices that leave the second side, and of those that leave the first side.
        let mut moves: [BinaryHeap<(i128, Reverse<usize>)>; 2] = Default::default();
        for v in 0..n {
            moves[usize::from(self.is_first[v])].push((self.gains[v], Reverse(v)));
        }
        let mut is_locked = vec![false; n];
        let mut flipped: Vec<usize> = Vec::new();
        let before = self.quality();
        let (mut best, mut best_len) = (before, 0);
        while flipped.len() < best_len + stalled {
            let mut top = |state: &Self, side: usize| loop {
                let &(gain, Reverse(v)) = moves[side].peek()?;
                let is_current = state.gains[v] == gain && state.is_first[v] == (side == 1);
                if is_current && !is_locked[v] {
                    return Some((gain, Reverse(v)));
                }
                moves[side].pop();
            };
            let tops = [top(self, 0), top(self, 1)];
            let allowed = |side: usize, (_, Reverse(v)): (i128, Reverse<usize>)| {
                let weight = u64::from(self.halves.weights[v]);
                let after = if side == 1 { self.weight - weight } else { self.weight + weight };
                let deviation = after.abs_diff(self.target);
                deviation <= reach || deviation < self.weight.abs_diff(self.target)
            };
            let candidates = (0..2).filter_map(|side| tops[side].filter(|&top| allowed(side, top)));
            let Some((_, Reverse(v))) = candidates.max() else { break };
            self.flip(v);
            is_locked[v] = true;
            flipped.push(v);
            for (u, _) in self.halves.graph.neighbors(v).filter(|&(u, _)| !is_locked[u]) {
                moves[usize::from(self.is_first[u])].push((self.gains[u], Reverse(u)));
            }
            let now = self.quality();
            if now < best {
                (best, best_len) = (now, flipped.len());
            }
        }
        for &v in flipped[best_len..].iter().rev() {
            self.flip(v);
        }
        best < before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(halves: &Halves, is_first: &[bool]) -> i128 {
        let crosses = |&(a, b, _): &(u32, u32, u64)| is_first[a as usize] != is_first[b as usize];
        let edges: i128 = halves.graph.pairs().filter(crosses).map(|(.., bytes)| i128::from(bytes)).sum();
        let pulled: i128 = (0..is_first.len()).filter(|&v| is_first[v]).map(|v| halves.pulls[v]).sum();
        edges - pulled
    }

    #[test]
    fn two_cliques_are_separated_at_their_bridge() {
        let clique =
            |first: u32| (first..first + 5).flat_map(move |a| (a + 1..first + 5).map(move |b| (a, b, 10)));
        let graph = Graph::new(10, clique(0).chain(clique(5)).chain([(2, 7, 1)]));
        let halves = Halves { graph: &graph, weights: &[1; 10], pulls: vec![0; 10], share: 0.5, slack: 0.01 };
        let is_first = bisect(&halves);
        assert_eq!(cut(&halves, &is_first), 1);
        let pulls = (0..10).map(|v| if v == 9 { -3 } else { 0 }).collect();
        let is_first = bisect(&Halves { pulls, ..halves });
        assert!(is_first[0] && !is_first[9], "{is_first:?}");
    }

    proptest! {
        #[test]
        fn gains_and_cut_match_their_definitions(
            edges in prop::collection::vec((0..9u32, 0..9u32, 1..50u64), 0..30),
            weights in prop::collection::vec(1..20u32, 9),
            pulls in prop::collection::vec(-20..20i128, 9),
            share in 0.0..1.0f64,
            flips in prop::collection::vec(0..9usize, 0..20),
        ) {
            let graph = Graph::new(9, edges);
            let halves = Halves { graph: &graph, weights: &weights, pulls, share, slack: 0.05 };
            let mut state = State::new(&halves);
            let base = cut(&halves, &state.is_first);
            flips.iter().for_each(|&v| state.flip(v));
            let before = cut(&halves, &state.is_first);
            prop_assert_eq!(state.cut, before - base);
            let quality = state.quality();
            state.improve();
            prop_assert_eq!(state.cut, cut(&halves, &state.is_first) - base);
            prop_assert!(state.quality() <= quality);
            for v in 0..9 {
                let now = cut(&halves, &state.is_first);
                let gain = state.gains[v];
                state.flip(v);
                prop_assert_eq!(now - cut(&halves, &state.is_first), gain);
                state.flip(v);
            }
        }

        #[test]
        fn no_side_exceeds_its_share_by_more_than_a_vertex(
            edges in prop::collection::vec((0..30u32, 0..30u32, 1..50u64), 0..80),
            weights in prop::collection::vec(1..20u32, 30),
            share in 0.0..=1.0f64,
        ) {
            let graph = Graph::new(30, edges);
            let halves = Halves { graph: &graph, weights: &weights, pulls: vec![0; 30], share, slack: 0.0 };
            let is_first = bisect(&halves);
            let weight: u32 = (0..30).filter(|&v| is_first[v]).map(|v| weights[v]).sum();
            let target = f64::from(weights.iter().sum::<u32>()) * share;
            let heaviest = f64::from(*weights.iter().max().unwrap_or(&0));
            prop_assert!((f64::from(weight) - target).abs() <= heaviest / 2.0 + 1.0, "{} for {}", weight, target);
        }
    }
}
