//! LibTopoMap's greedy mapping (T. Hoefler, M. Snir, ICS 2011, algorithm 1).
//!
//! The group that exchanges most goes to a node, here the first. While there is an edge between a mapped and an
//! unmapped group, the heaviest such edge selects the next group, which goes to the free node closest to the node of
//! the mapped one. If no such edge is left, the unmapped group that exchanges most goes to the free node closest to
//! the last used node. Ties go to the lowest number. O(E log E + nodes^2).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use equipoise_model::graph::Graph;

/// The node of every group; there are as many groups as nodes.
pub fn map(groups: &Graph, nodes: usize, distances_from: impl Fn(usize, &mut [u32])) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut node_of = vec![NONE; groups.vertices()];
    let (mut is_free, mut row, mut last) = (vec![true; nodes], vec![0; nodes], None);
    let mut closest = |to: Option<u32>| {
        let node = match to {
            None => 0,
            Some(to) => {
                distances_from(to as usize, &mut row);
                (0..nodes).filter(|&node| is_free[node]).min_by_key(|&node| row[node]).unwrap_or(0)
            }
        };
        is_free[node] = false;
        node as u32
    };
    let mut by_weight: Vec<u32> = (0..groups.vertices() as u32).collect();
    by_weight.sort_by_key(|&group| Reverse(groups.weight(group as usize)));
    for start in by_weight {
        if node_of[start as usize] != NONE {
            continue;
        }
        let mut edges = BinaryHeap::from([(u64::MAX, Reverse(start), Reverse(NONE))]);
        while let Some((_, Reverse(group), Reverse(other))) = edges.pop() {
            if node_of[group as usize] != NONE {
                continue;
            }
            let near = if other == NONE { last } else { Some(node_of[other as usize]) };
            let node = closest(near);
            (node_of[group as usize], last) = (node, Some(node));
            let open = groups.neighbors(group as usize).filter(|&(next, _)| node_of[next] == NONE);
            edges.extend(open.map(|(next, bytes)| (bytes, Reverse(next as u32), Reverse(group))));
        }
    }
    node_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_edge_is_mapped_first_and_to_the_closest_node() {
        // Group 2 exchanges most; its heaviest edge is to 0, then to 3; group 1 exchanges nothing.
        let groups = Graph::new(4, [(2, 0, 9), (2, 3, 5), (0, 3, 1)]);
        let line = |node: usize, row: &mut [u32]| {
            row.iter_mut().zip(0u32..).for_each(|(distance, other)| *distance = other.abs_diff(node as u32));
        };
        assert_eq!(map(&groups, 4, line), [1, 3, 0, 2]);
    }
}
