//! One level of TreeMatch: groups of exactly `arity` vertices that exchange as much as possible inside.
//!
//! E. Jeannot, G. Mercier, "Near-optimal placement of MPI processes on hierarchical NUMA architectures",
//! Euro-Par 2010, section 3: of all groups of that size, disjoint groups with the least traffic to the
//! outside are found greedily, as an independent set in the graph of incompatible groups. If there are too
//! many groups, heavy edges are contracted first, as in later versions of the program.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

use equipoise_model::graph::Graph;

/// The maximum number of groups that are all enumerated.
const MAX_GROUPS: usize = 5000;

/// The number of greedy searches among all groups, each with another first group.
const STARTS: usize = 16;

/// The tie-breaking rule, which has a large effect on regular graphs.
pub(super) enum Ties<'a> {
    /// The lowest vertices first.
    Lowest,
    /// In random order.
    Random(&'a mut ChaCha8Rng),
}

impl Ties<'_> {
    /// The sort key of the `position`-th of several equal items.
    fn key(&mut self, position: usize) -> u64 {
        match self {
            Ties::Lowest => position as u64,
            Ties::Random(rng) => rng.next_u64(),
        }
    }
}

/// The group of each vertex. Each group has `arity` vertices; groups are numbered in the order of their lowest vertices.
///
/// # Panics
/// If the number of vertices is not a multiple of `arity`.
pub(super) fn group(graph: &Graph, arity: usize, mut ties: Ties) -> Vec<u32> {
    let vertices = graph.vertices();
    assert_eq!(vertices % arity, 0, "{vertices} vertices do not make groups of {arity}");
    if arity == vertices {
        return vec![0; vertices];
    }
    let mut group_of = match count_groups(vertices, arity) {
        _ if arity == 1 => (0..vertices as u32).collect(),
        Some(_) => from_all(graph, arity, &mut ties),
        None => from_edges(graph, arity, &mut ties),
    };
    crate::partition::renumber(&mut group_of);
    group_of
}

/// The number of groups of `arity` among `vertices`; `None` above [`MAX_GROUPS`].
fn count_groups(vertices: usize, arity: usize) -> Option<usize> {
    let mut groups = 1usize;
    for i in 0..arity.min(vertices - arity) {
        groups = groups * (vertices - i) / (i + 1);
        if groups > MAX_GROUPS {
            return None;
        }
    }
    // A group is a bit set of 128 bits.
    (vertices <= 128).then_some(groups)
}

/// Enumerates all groups, sorts them by their traffic to the outside, and chooses disjoint groups greedily in this
/// order, several times. Returns the best choice.
fn from_all(graph: &Graph, arity: usize, ties: &mut Ties) -> Vec<u32> {
    let vertices = graph.vertices();
    let mut weights = vec![0; vertices * vertices];
    for (a, b, weight) in graph.pairs() {
        weights[a as usize * vertices + b as usize] = weight;
    }
    let totals: Vec<u64> = (0..vertices).map(|v| graph.weight(v)).collect();
    let mut groups = Vec::new();
    let mut members: Vec<usize> = (0..arity).collect();
    loop {
        let total: u128 = members.iter().map(|&v| u128::from(totals[v])).sum();
        let inside = members.iter().enumerate().flat_map(|(i, &b)| {
            let row = &weights;
            members[..i].iter().map(move |&a| 2 * u128::from(row[a * vertices + b]))
        });
        let bits = members.iter().fold(0u128, |bits, &v| bits | 1 << v);
        groups.push((total.saturating_sub(inside.sum()), ties.key(groups.len()), bits));
        // The next group in lexicographic order.
        let Some(last) = (0..arity).rev().find(|&i| members[i] < vertices - arity + i) else { break };
        members[last] += 1;
        for i in last + 1..arity {
            members[i] = members[i - 1] + 1;
        }
    }
    groups.sort_unstable();
    let all = u128::MAX >> (128 - vertices);
    let greedy = |first: usize| {
        let (mut leaving, _, mut taken) = groups[first];
        let mut chosen = vec![taken];
        for &(more, _, bits) in &groups {
            if taken & bits == 0 {
                taken |= bits;
                leaving += more;
                chosen.push(bits);
                if taken == all {
                    break;
                }
            }
        }
        (leaving, chosen)
    };
    let starts = STARTS.min(groups.len());
    let (_, chosen) = (0..starts).map(greedy).min_by_key(|(leaving, _)| *leaving).expect("there is a start");
    let group = |v: usize| chosen.iter().position(|bits| bits >> v & 1 == 1).expect("groups cover all");
    (0..vertices).map(|v| group(v) as u32).collect()
}

/// Merges clusters along the heaviest edges while they fit into a group, then packs clusters into groups.
fn from_edges(graph: &Graph, arity: usize, ties: &mut Ties) -> Vec<u32> {
    let mut edges: Vec<(Reverse<u64>, u64, u32, u32)> = graph
        .pairs()
        .enumerate()
        .map(|(position, (a, b, weight))| (Reverse(weight), ties.key(position), a, b))
        .collect();
    edges.sort_unstable();
    let mut clusters = Clusters::new(graph.vertices());
    for (.., a, b) in edges {
        clusters.merge(a, b, arity as u32);
    }
    pack(graph, arity, clusters.members())
}

/// Assigns clusters to groups, the largest cluster first. Of the groups with enough room, a cluster joins the group
/// that it exchanges most with; if it exchanges nothing with these, the group with the least room. Clusters that fit
/// into no group are split into vertices, which are assigned last.
fn pack(graph: &Graph, arity: usize, mut clusters: Vec<Vec<u32>>) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let groups = graph.vertices() / arity;
    let mut group_of = vec![NONE; graph.vertices()];
    let mut room = vec![arity; groups];
    let mut by_room: BTreeSet<(usize, u32)> = (0..groups as u32).map(|group| (arity, group)).collect();
    let mut exchanged = vec![0u64; groups];
    let mut met = Vec::new();
    clusters.sort_by_key(|cluster| Reverse(cluster.len()));
    let mut at = 0;
    while at < clusters.len() {
        let cluster = std::mem::take(&mut clusters[at]);
        at += 1;
        for (neighbor, weight) in cluster.iter().flat_map(|&v| graph.neighbors(v as usize)) {
            let group = group_of[neighbor];
            if group != NONE {
                met.push(group);
                let sum = &mut exchanged[group as usize];
                *sum = sum.saturating_add(weight);
            }
        }
        let fits = |group: &&u32| room[**group as usize] >= cluster.len();
        let closest =
            met.iter().filter(fits).max_by_key(|&&group| (exchanged[group as usize], Reverse(group)));
        let fullest = || by_room.range((cluster.len(), 0)..).next().map(|(_, group)| group);
        match closest.or_else(fullest).copied() {
            Some(group) => {
                let left = &mut room[group as usize];
                by_room.remove(&(*left, group));
                *left -= cluster.len();
                by_room.insert((*left, group));
                cluster.iter().for_each(|&v| group_of[v as usize] = group);
            }
            None => clusters.extend(cluster.into_iter().map(|v| vec![v])),
        }
        met.drain(..).for_each(|group| exchanged[group as usize] = 0);
    }
    group_of
}

/// Disjoint sets of vertices.
struct Clusters {
    parent: Vec<u32>,
    size: Vec<u32>,
}

impl Clusters {
    fn new(vertices: usize) -> Self {
        Clusters { parent: (0..vertices as u32).collect(), size: vec![1; vertices] }
    }

    fn root(&mut self, mut v: u32) -> u32 {
        while self.parent[v as usize] != v {
            let above = self.parent[self.parent[v as usize] as usize];
            self.parent[v as usize] = above;
            v = above;
        }
        v
    }

    /// Merges the clusters of two vertices, unless the result would have more than `most` vertices.
    fn merge(&mut self, a: u32, b: u32, most: u32) {
        let (a, b) = (self.root(a), self.root(b));
        let together = self.size[a as usize] + self.size[b as usize];
        if a != b && together <= most {
            let (low, high) = (a.min(b), a.max(b));
            self.parent[high as usize] = low;
            self.size[low as usize] = together;
        }
    }

    /// The members of the clusters, in the order of their lowest vertices.
    fn members(mut self) -> Vec<Vec<u32>> {
        let mut members = vec![Vec::new(); self.parent.len()];
        for v in 0..self.parent.len() as u32 {
            let root = self.root(v);
            members[root as usize].push(v);
        }
        members.retain(|cluster| !cluster.is_empty());
        members
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::graph::load;
    use equipoise_model::random::generator;
    use proptest::prelude::*;

    use super::*;

    fn inside(graph: &Graph, group_of: &[u32]) -> u64 {
        graph
            .pairs()
            .filter(|&(a, b, _)| group_of[a as usize] == group_of[b as usize])
            .map(|pair| pair.2)
            .sum()
    }

    #[track_caller]
    fn check_sizes(group_of: &[u32], arity: usize) {
        for group in 0..(group_of.len() / arity) as u32 {
            assert_eq!(
                group_of.iter().filter(|&&g| g == group).count(),
                arity,
                "group {group} of {group_of:?}"
            );
        }
    }

    #[test]
    fn heavy_pairs_become_groups() {
        let graph = Graph::new(6, [(0, 3, 10), (1, 2, 10), (4, 5, 10), (0, 1, 3), (3, 2, 3), (5, 0, 3)]);
        let mut clusters = Clusters::new(6);
        [(0, 3), (1, 2), (4, 5)].iter().for_each(|&(a, b)| clusters.merge(a, b, 2));
        assert_eq!(group(&graph, 2, Ties::Lowest), [0, 1, 1, 0, 2, 2]);
        assert_eq!(from_edges(&graph, 2, &mut Ties::Lowest), [0, 1, 1, 0, 2, 2]);
        assert_eq!(pack(&graph, 2, clusters.members()), [0, 1, 1, 0, 2, 2]);
    }

    #[test]
    fn vertices_without_edges_do_not_split_a_ring() {
        // Vertices 0 to 5 are a ring; 6 to 11 have no edges.
        let graph = Graph::new(12, (0..6).map(|v| (v, (v + 1) % 6, 1)));
        for group_of in [from_all(&graph, 3, &mut Ties::Lowest), from_edges(&graph, 3, &mut Ties::Lowest)] {
            check_sizes(&group_of, 3);
            assert_eq!(inside(&graph, &group_of), 4, "{group_of:?}");
        }
    }

    #[test]
    fn a_cluster_that_fits_into_no_group_is_split() {
        // Three pairs for two groups of three.
        let graph = Graph::new(6, [(0, 1, 5), (2, 3, 5), (4, 5, 5), (5, 3, 1)]);
        assert_eq!(pack(&graph, 3, vec![vec![0, 1], vec![2, 3], vec![4, 5]]), [0, 0, 1, 1, 0, 1]);
    }

    #[test]
    fn a_large_grid_is_grouped_into_pairs_of_neighbors() {
        let graph = Graph::of(&load("mesh:16x16").expect("a mesh"));
        assert_eq!(count_groups(256, 2), None);
        let pairs = group(&graph, 2, Ties::Lowest);
        check_sizes(&pairs, 2);
        assert_eq!(inside(&graph, &pairs), 128 * 2);
    }

    proptest! {
        #[test]
        fn groups_have_equal_size_and_are_numbered_by_their_lowest_vertices(
            arity in 1..8usize, groups in 1..9usize, seed in any::<u64>(),
            edges in prop::collection::vec((any::<u32>(), any::<u32>(), 0..5u64), 0..120),
        ) {
            let n = (arity * groups) as u32;
            let graph = Graph::new(n as usize, edges.into_iter().map(|(a, b, w)| (a % n, b % n, w)));
            let mut first = group(&graph, arity, Ties::Lowest);
            check_sizes(&first, arity);
            let random = group(&graph, arity, Ties::Random(&mut generator(seed, 0)));
            check_sizes(&random, arity);
            check_sizes(&from_edges(&graph, arity, &mut Ties::Lowest), arity);
            let numbered = first.clone();
            crate::partition::renumber(&mut first);
            prop_assert_eq!(first, numbered);
        }
    }
}
