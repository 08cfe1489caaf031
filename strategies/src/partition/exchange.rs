//! Exchanges vertices of overloaded parts for lighter vertices of parts with room.
//!
//! If parts have few vertices each, as in a program with eight objects per PE, no single vertex may fit into another
//! part although the loads could be balanced ([`super::correct`] stops there). Then a vertex of the heaviest part is
//! exchanged for a lighter vertex of another part. The other part stays within its capacity, and the heaviest part
//! gets as close to its own capacity as possible; among equal pairs, the one with the smallest cut is chosen. Partners
//! are sought in the parts adjacent to the heaviest part and in the parts with the most room.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use equipoise_model::graph::Graph;

/// Number of parts with the most room that are tried.
const ROOMIEST: usize = 8;

/// Parts with more vertices are skipped; single moves suffice there.
const MAX_VERTICES: usize = 256;

/// Exchanges vertices until no part is above its capacity or no exchange helps.
///
/// `weights` has one entry per vertex, `capacities` one per part. A part within its capacity stays within it.
///
/// # Panics
/// When the lengths do not match, or a part number is not below the number of capacities.
pub fn exchange(graph: &Graph, weights: &[u32], capacities: &[u64], part_of: &mut [u32]) {
    let mut state = State::new(graph, weights, capacities, part_of);
    let mut has_no_exchange = vec![false; capacities.len()];
    // Every exchange makes the part lighter, but possibly by very little, so the number of exchanges is limited.
    let mut left = graph.vertices();
    let mut left_before = left + 1;
    while left > 0 {
        let above = state.by_room.iter().take_while(|&&(room, _)| room < 0).map(|&(_, Reverse(part))| part);
        let Some(part) = above.into_iter().find(|&part| !has_no_exchange[part as usize]) else {
            // Exchanges of other parts may have made a new exchange possible.
            if left == left_before {
                return;
            }
            left_before = left;
            has_no_exchange.fill(false);
            continue;
        };
        match state.best_pair(part) {
            Some((v, u)) => {
                state.swap(v, u);
                left -= 1;
            }
            None => has_no_exchange[part as usize] = true,
        }
    }
}

struct State<'a> {
    graph: &'a Graph,
    weights: &'a [u32],
    part_of: &'a mut [u32],
    /// The vertices of each part, in no particular order.
    members: Vec<Vec<u32>>,
    /// Capacity minus weight of each part; negative above capacity.
    rooms: Vec<i64>,
    /// All parts, the part with the most room last (among equals, the lowest number last).
    by_room: BTreeSet<(i64, Reverse<u32>)>,
    /// Scratch space for [`Self::best_pair_with`]: weight between a vertex and every other. All zero between calls.
    links: Vec<u64>,
}

/// Orders exchanges, best first: remaining excess of the part, cut after the exchange minus cut before, and the two
/// vertices.
type Quality = (i64, i128, u32, u32);

impl<'a> State<'a> {
    fn new(graph: &'a Graph, weights: &'a [u32], capacities: &[u64], part_of: &'a mut [u32]) -> Self {
        assert_eq!((weights.len(), part_of.len()), (graph.vertices(), graph.vertices()));
        let mut members = vec![Vec::new(); capacities.len()];
        let mut rooms: Vec<i64> = capacities.iter().map(|&c| i64::try_from(c).unwrap_or(i64::MAX)).collect();
        for ((&part, &weight), v) in part_of.iter().zip(weights).zip(0..) {
            rooms[part as usize] -= i64::from(weight);
            members[part as usize].push(v);
        }
        let by_room = rooms.iter().zip(0..).map(|(&room, part)| (room, Reverse(part))).collect();
        State { graph, weights, part_of, members, rooms, by_room, links: vec![0; graph.vertices()] }
    }

    /// The best exchange of `part`, which is above its capacity: a vertex of `part` and a vertex of another part.
    fn best_pair(&mut self, part: u32) -> Option<(u32, u32)> {
        if self.members[part as usize].len() > MAX_VERTICES {
            return None;
        }
        let neighbors = self.members[part as usize].iter().flat_map(|&v| self.graph.neighbors(v as usize));
        let mut others: Vec<u32> = neighbors.map(|(u, _)| self.part_of[u]).collect();
        others.extend(self.by_room.iter().rev().take(ROOMIEST).map(|&(_, Reverse(other))| other));
        others.sort_unstable();
        others.dedup();
        others.retain(|&o| {
            o != part && self.rooms[o as usize] > 0 && self.members[o as usize].len() <= MAX_VERTICES
        });
        let best = others.into_iter().filter_map(|other| self.best_pair_with(part, other)).min();
        best.map(|(_, _, v, u)| (v, u))
    }

    fn best_pair_with(&mut self, part: u32, other: u32) -> Option<Quality> {
        let (over, room) = (-self.rooms[part as usize], self.rooms[other as usize]);
        let (ours, theirs) = (&self.members[part as usize], &self.members[other as usize]);
        let added: Vec<i128> = theirs.iter().map(|&u| self.added_cut(u, other, part)).collect();
        let mut best: Option<Quality> = None;
        for &v in ours {
            let added_by_v = self.added_cut(v, part, other);
            for (u, weight) in self.graph.neighbors(v as usize) {
                self.links[u] = weight;
            }
            for (&u, added_by_u) in theirs.iter().zip(&added) {
                let given = i64::from(self.weights[v as usize]) - i64::from(self.weights[u as usize]);
                if given <= 0 || given > room {
                    continue;
                }
                let added = added_by_v + added_by_u + 2 * i128::from(self.links[u as usize]);
                let quality = ((over - given).max(0), added, v, u);
                best = Some(best.map_or(quality, |best| best.min(quality)));
            }
            for (u, _) in self.graph.neighbors(v as usize) {
                self.links[u] = 0;
            }
        }
        best
    }

    /// The increase of the cut if `v` alone moves `from` its part `to` another.
    fn added_cut(&self, v: u32, from: u32, to: u32) -> i128 {
        let signed = |(u, weight): (usize, u64)| match self.part_of[u] {
            part if part == from => i128::from(weight),
            part if part == to => -i128::from(weight),
            _ => 0,
        };
        self.graph.neighbors(v as usize).map(signed).sum()
    }

    fn swap(&mut self, v: u32, u: u32) {
        let (a, b) = (self.part_of[v as usize], self.part_of[u as usize]);
        let given = i64::from(self.weights[v as usize]) - i64::from(self.weights[u as usize]);
        for (part, leaves, joins, change) in [(a, v, u, given), (b, u, v, -given)] {
            let room = &mut self.rooms[part as usize];
            self.by_room.remove(&(*room, Reverse(part)));
            *room += change;
            self.by_room.insert((*room, Reverse(part)));
            for member in self.members[part as usize].iter_mut().filter(|member| **member == leaves) {
                *member = joins;
            }
            self.part_of[joins as usize] = part;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn loads(weights: &[u32], part_of: &[u32], parts: usize) -> Vec<u64> {
        let mut loads = vec![0; parts];
        part_of.iter().zip(weights).for_each(|(&part, &weight)| loads[part as usize] += u64::from(weight));
        loads
    }

    #[test]
    fn a_heavy_vertex_is_exchanged_for_a_lighter_one() {
        let graph = Graph::new(6, [(0, 3, 9), (1, 2, 1)]);
        let weights = [4, 4, 4, 3, 3, 3];
        let mut part_of = vec![0, 0, 0, 1, 1, 1];
        // All exchanges give weights 11 and 10. Vertices 0 and 3 have a heavy edge, so 0 joins 3 and another vertex returns.
        exchange(&graph, &weights, &[11, 11], &mut part_of);
        assert_eq!(loads(&weights, &part_of, 2), [11, 10]);
        assert_eq!(part_of, [1, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn a_partition_without_useful_exchange_is_unchanged() {
        let mut part_of = vec![0, 1];
        exchange(&Graph::new(2, []), &[5, 5], &[3, 9], &mut part_of);
        assert_eq!(part_of, [0, 1]);
    }

    proptest! {
        #[test]
        fn overloaded_parts_get_lighter_and_the_others_stay_within_their_capacity(
            edges in prop::collection::vec((0..12u32, 0..12u32, 0..9u64), 0..40),
            weights in prop::collection::vec(0..20u32, 12),
            part_of in prop::collection::vec(0..4u32, 12),
            capacity in 10..40u64,
        ) {
            let graph = Graph::new(12, edges);
            let before = loads(&weights, &part_of, 4);
            let mut after_of = part_of.clone();
            exchange(&graph, &weights, &[capacity; 4], &mut after_of);
            let after = loads(&weights, &after_of, 4);
            for (before, after) in before.iter().zip(&after) {
                prop_assert!(*after <= (*before).max(capacity));
            }
            let count = |of: &[u32], part| of.iter().filter(|&&p| p == part).count();
            prop_assert!((0..4).all(|part| count(&part_of, part) == count(&after_of, part)));
            // No useful exchange is left. With 4 parts, all pairs of parts are examined.
            for v in 0..12 {
                for u in 0..12 {
                    let (a, b) = (after_of[v] as usize, after_of[u] as usize);
                    let given = i64::from(weights[v]) - i64::from(weights[u]);
                    let helps = a != b && after[a] > capacity && given > 0;
                    prop_assert!(!(helps && after[b] as i64 + given <= capacity as i64), "{} {}", v, u);
                }
            }
        }
    }
}
