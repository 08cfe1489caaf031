//! LibTopoMap's mapping by Cuthill-McKee orders (T. Hoefler, M. Snir, ICS 2011, section 4.3).
//!
//! E. Cuthill, J. McKee, "Reducing the bandwidth of sparse symmetric matrices", 1969: a breadth-first search from a
//! pseudoperipheral vertex, which visits the neighbors of a vertex by degree. Neighbors get close numbers. The i-th
//! group in the order of groups goes to the i-th node in the order of nodes. A pseudoperipheral vertex is found by
//! repeated searches, each from the farthest vertex of least degree (A. George, J. W. H. Liu, "An implementation of a
//! pseudoperipheral node finder", 1979). The library reverses both orders, which gives the same mapping. O(E log E).

use equipoise_model::graph::Graph;

/// The node of every group; there are as many groups as nodes.
pub fn map(groups: &Graph, host: &Graph) -> Vec<u32> {
    let mut node_of = vec![0; groups.vertices()];
    for (group, node) in order(groups).into_iter().zip(order(host)) {
        node_of[group as usize] = node;
    }
    node_of
}

/// The vertices in Cuthill-McKee order, one connected component after the other.
fn order(graph: &Graph) -> Vec<u32> {
    let mut order = Vec::with_capacity(graph.vertices());
    let mut is_placed = vec![false; graph.vertices()];
    for vertex in 0..graph.vertices() as u32 {
        if !is_placed[vertex as usize] {
            let (found, _) = search(graph, pseudoperipheral(graph, vertex));
            found.iter().for_each(|&vertex| is_placed[vertex as usize] = true);
            order.extend(found);
        }
    }
    order
}

/// A vertex that is far from some other vertex in the connected component of `vertex`.
fn pseudoperipheral(graph: &Graph, mut vertex: u32) -> u32 {
    let (mut found, mut depths) = search(graph, vertex);
    loop {
        let depth = *depths.last().expect("a search finds its start");
        let farthest = found.iter().zip(&depths).filter(|&(_, &its)| its == depth).map(|(&vertex, _)| vertex);
        let next = farthest
            .min_by_key(|&vertex| (graph.degree(vertex as usize), vertex))
            .expect("a vertex has the largest depth");
        (found, depths) = search(graph, next);
        if *depths.last().expect("a search finds its start") <= depth {
            return vertex;
        }
        vertex = next;
    }
}

/// A breadth-first search that visits the neighbors of a vertex by degree and then by number: the vertices, and the
/// distance of each.
fn search(graph: &Graph, start: u32) -> (Vec<u32>, Vec<u32>) {
    let mut is_found = vec![false; graph.vertices()];
    is_found[start as usize] = true;
    let (mut found, mut depths, mut at) = (vec![start], vec![0], 0);
    while let Some(&vertex) = found.get(at) {
        let mut next: Vec<u32> = graph.neighbors(vertex as usize).map(|(other, _)| other as u32).collect();
        next.retain(|&other| !std::mem::replace(&mut is_found[other as usize], true));
        next.sort_unstable_by_key(|&other| (graph.degree(other as usize), other));
        depths.resize(depths.len() + next.len(), depths[at] + 1);
        found.extend(next);
        at += 1;
    }
    (found, depths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_ordered_from_its_end_and_components_one_after_the_other() {
        // 3-0-4-1 and 2-5.
        let graph = Graph::new(6, [(3, 0, 1), (0, 4, 1), (4, 1, 1), (2, 5, 1)]);
        let found = order(&graph);
        assert!(found == [1, 4, 0, 3, 2, 5] || found == [3, 0, 4, 1, 2, 5], "{found:?}");
        let line = Graph::new(6, (1..6).map(|v| (v - 1, v, 1)));
        let node_of = map(&graph, &line);
        for (a, b) in [(3, 0), (0, 4), (4, 1), (2, 5)] {
            assert_eq!(node_of[a].abs_diff(node_of[b]), 1, "{node_of:?}");
        }
    }
}
