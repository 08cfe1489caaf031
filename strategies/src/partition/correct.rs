//! Corrects a partition until every part is within its capacity or has its exact size.
//!
//! The correction step of the mapping library of J. Wu, X. Xiong and Z. Lan ("Hierarchical task mapping
//! for parallel applications on supercomputers", J. Supercomput. 71, 2015). While a part is above its capacity, the
//! step moves one vertex out of such a part into a part with room: the vertex whose move adds least to the cut. With
//! weights of 1 and capacities that sum to the number of vertices, the parts get exactly these sizes. A heavy vertex
//! that fits nowhere still moves, at most once, if that reduces the larger excess of the two parts.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use equipoise_model::graph::Graph;

/// Moves vertices out of the parts above their capacities, with the least increase of the cut.
///
/// `weights` has one entry per vertex, `capacities` one per part. Ties are broken by lowest vertex, then lowest part.
///
/// # Panics
/// When the lengths do not match, or a part number is not below the number of capacities.
pub fn correct(graph: &Graph, weights: &[u32], capacities: &[u64], part_of: &mut [u32]) {
    let mut state = State::new(graph, weights, capacities, part_of);
    let mut moves: BinaryHeap<Reverse<Move>> =
        (0..graph.vertices()).filter_map(|v| state.best_move(v)).map(Reverse).collect();
    while let Some(Reverse(old)) = moves.pop() {
        let v = old.vertex as usize;
        // Parts or neighbors may have changed since the move was pushed, so the move is evaluated again.
        let Some(now) = state.best_move(v) else { continue };
        if now > old {
            moves.push(Reverse(now));
            continue;
        }
        state.apply(now);
        for (u, _) in graph.neighbors(v) {
            moves.extend(state.best_move(u).map(Reverse));
        }
    }
}

/// Moves vertices until the parts have exactly these sizes.
///
/// # Panics
/// When the sizes do not sum to the number of vertices, or a part number is not below the number of sizes.
pub(crate) fn exact_sizes(graph: &Graph, sizes: &[usize], part_of: &mut [u32]) {
    assert_eq!(sizes.iter().sum::<usize>(), graph.vertices(), "every vertex has a place");
    let capacities: Vec<u64> = sizes.iter().map(|&size| size as u64).collect();
    correct(graph, &vec![1; graph.vertices()], &capacities, part_of);
}

/// A move of a vertex, ordered best first: moves into parts with room, then forced moves; then by the added cut.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Move {
    is_forced: bool,
    /// Cut after the move minus cut before.
    added_cut: i128,
    vertex: u32,
    target: u32,
}

struct State<'a> {
    graph: &'a Graph,
    weights: &'a [u32],
    part_of: &'a mut [u32],
    /// Capacity minus weight of each part; negative above capacity.
    rooms: Vec<i64>,
    /// All parts, the part with the most room last (among equals, the lowest number last).
    by_room: BTreeSet<(i64, Reverse<u32>)>,
    was_forced: Vec<bool>,
    /// Scratch space for [`Self::best_move`]: weight between a vertex and each part. All zero between calls.
    links: Vec<u64>,
}

impl<'a> State<'a> {
    fn new(graph: &'a Graph, weights: &'a [u32], capacities: &[u64], part_of: &'a mut [u32]) -> Self {
        assert_eq!((weights.len(), part_of.len()), (graph.vertices(), graph.vertices()));
        let mut rooms: Vec<i64> = capacities.iter().map(|&c| i64::try_from(c).unwrap_or(i64::MAX)).collect();
        for (&part, &weight) in part_of.iter().zip(weights) {
            rooms[part as usize] -= i64::from(weight);
        }
        let by_room = rooms.iter().zip(0..).map(|(&room, part)| (room, Reverse(part))).collect();
        let (was_forced, links) = (vec![false; graph.vertices()], vec![0; capacities.len()]);
        State { graph, weights, part_of, rooms, by_room, was_forced, links }
    }

    /// The best move of `v` if its part is above its capacity.
    fn best_move(&mut self, v: usize) -> Option<Move> {
        let (part, weight) = (self.part_of[v], i64::from(self.weights[v]));
        let over = -self.rooms[part as usize];
        if over <= 0 || weight == 0 {
            return None;
        }
        for (u, weight) in self.graph.neighbors(v) {
            self.links[self.part_of[u] as usize] += weight;
        }
        let lost_weight = i128::from(self.links[part as usize]);
        let &(room, Reverse(roomiest)) = self.by_room.last()?;
        let move_to = |target: u32, is_forced| Move {
            is_forced,
            added_cut: lost_weight - i128::from(self.links[target as usize]),
            vertex: v as u32,
            target,
        };
        let mut best = None;
        if room >= weight {
            let adjacent = self.graph.neighbors(v).map(|(u, _)| self.part_of[u]);
            let fits = adjacent.filter(|&target| self.rooms[target as usize] >= weight);
            best = fits.chain([roomiest]).map(|target| move_to(target, false)).min();
        } else if weight - room < over && !self.was_forced[v] {
            best = Some(move_to(roomiest, true));
        }
        for (u, _) in self.graph.neighbors(v) {
            self.links[self.part_of[u] as usize] = 0;
        }
        best
    }

    fn apply(&mut self, chosen: Move) {
        let v = chosen.vertex as usize;
        let weight = i64::from(self.weights[v]);
        self.was_forced[v] |= chosen.is_forced;
        for (part, change) in [(self.part_of[v], weight), (chosen.target, -weight)] {
            let room = &mut self.rooms[part as usize];
            self.by_room.remove(&(*room, Reverse(part)));
            *room += change;
            self.by_room.insert((*room, Reverse(part)));
        }
        self.part_of[v] = chosen.target;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(graph: &Graph, part_of: &[u32]) -> u64 {
        let crosses = |&(a, b, _): &(u32, u32, u64)| part_of[a as usize] != part_of[b as usize];
        graph.pairs().filter(crosses).map(|(.., weight)| weight).sum()
    }

    fn loads(weights: &[u32], part_of: &[u32], parts: usize) -> Vec<u64> {
        let mut loads = vec![0; parts];
        part_of.iter().zip(weights).for_each(|(&part, &weight)| loads[part as usize] += u64::from(weight));
        loads
    }

    /// The same by trying every move in every step, for weights of 1. Among parts without an edge to `v`,
    /// only the part with the most room is tried.
    fn exhaustive(graph: &Graph, sizes: &[usize], part_of: &mut [u32]) {
        loop {
            let load = loads(&vec![1; part_of.len()], part_of, sizes.len());
            let mut best = None;
            for v in 0..part_of.len() {
                let part = part_of[v];
                if load[part as usize] <= sizes[part as usize] as u64 {
                    continue;
                }
                let room = |target: usize| (sizes[target] as u64).saturating_sub(load[target]);
                let roomiest = (0..sizes.len()).rev().max_by_key(|&target| room(target));
                let adjacent = graph.neighbors(v).map(|(u, _)| part_of[u] as usize);
                let targets: Vec<usize> =
                    adjacent.chain(roomiest).filter(|&target| room(target) > 0).collect();
                for target in targets {
                    part_of[v] = target as u32;
                    let key = (cut(graph, part_of), v, target);
                    best = Some(best.map_or(key, |best| key.min(best)));
                }
                part_of[v] = part;
            }
            let Some((_, v, target)) = best else { return };
            part_of[v] = target as u32;
        }
    }

    /// A graph and a partition of it into 3 parts.
    fn partitioned() -> impl Strategy<Value = (Graph, Vec<u32>)> {
        (1..14usize).prop_flat_map(|n| {
            let edges = prop::collection::vec((0..n as u32, 0..n as u32, 0..5u64), 0..30);
            (edges.prop_map(move |edges| Graph::new(n, edges)), prop::collection::vec(0..3u32, n))
        })
    }

    proptest! {
        #[test]
        fn sizes_are_exact_and_the_cut_equals_that_of_the_exhaustive_search(
            (graph, part_of) in partitioned(),
            shares in prop::collection::vec(0..5usize, 2),
        ) {
            let n = graph.vertices();
            let first = shares[0].min(n);
            let second = shares[1].min(n - first);
            let sizes = [first, second, n - first - second];
            let (mut fast, mut expected) = (part_of.clone(), part_of);
            exact_sizes(&graph, &sizes, &mut fast);
            exhaustive(&graph, &sizes, &mut expected);
            let found = loads(&vec![1; n], &fast, 3);
            prop_assert_eq!(found, sizes.map(|size| size as u64).to_vec());
            prop_assert_eq!(cut(&graph, &fast), cut(&graph, &expected));
        }

        #[test]
        fn the_heaviest_part_never_grows_above_the_capacity(
            (graph, part_of) in partitioned(),
            weights in prop::collection::vec(0..9u32, 14),
            capacity in 0..30u64,
        ) {
            let weights = &weights[..graph.vertices()];
            let before = loads(weights, &part_of, 3);
            let mut after_of = part_of;
            correct(&graph, weights, &[capacity; 3], &mut after_of);
            let after = loads(weights, &after_of, 3);
            prop_assert_eq!(before.iter().sum::<u64>(), after.iter().sum::<u64>());
            prop_assert!(after.iter().max() <= before.iter().max().max(Some(&capacity)));
        }
    }

    #[test]
    fn a_heavy_vertex_moves_if_that_reduces_the_excess() {
        let graph = Graph::new(4, [(0, 1, 5)]);
        let mut part_of = vec![0, 0, 0, 1];
        correct(&graph, &[10, 10, 10, 1], &[8, 8, 8], &mut part_of);
        assert_eq!(loads(&[10, 10, 10, 1], &part_of, 3), [10, 11, 10]);
    }
}
