//! The graph of a machine, made from its distances.

use equipoise_model::graph::Graph;

use crate::strategy::StrategyError;

/// The maximum number of nodes; each may be linked to all others.
const MAX_NODES: usize = 1 << 12;

/// The weight of a link of length 1.
const CLOSEST: u64 = 1 << 20;

/// The graph with a link between any two nodes up to the least distance that connects all nodes (the longest edge of a
/// minimum spanning tree; R. C. Prim, 1957). The weight of a link is 2^20 over the square of its distance.
///
/// # Errors
/// If there are more than 4096 nodes.
pub fn graph(nodes: usize, distances_from: impl Fn(usize, &mut [u32])) -> Result<Graph, StrategyError> {
    if nodes > MAX_NODES {
        return Err(StrategyError::Request(format!(
            "LibTopoMap maps to at most {MAX_NODES} nodes, and there are {nodes}; use a strategy \
             that needs no graph of the machine"
        )));
    }
    let (mut row, mut nearest) = (vec![0; nodes], vec![u32::MAX; nodes]);
    let (mut is_in, mut reach, mut next) = (vec![false; nodes], 0, 0);
    for _ in 1..nodes {
        is_in[next] = true;
        distances_from(next, &mut row);
        nearest.iter_mut().zip(&row).for_each(|(nearest, &distance)| *nearest = distance.min(*nearest));
        next = (0..nodes).filter(|&node| !is_in[node]).min_by_key(|&node| nearest[node]).unwrap_or(0);
        reach = reach.max(nearest[next]);
    }
    let mut links = Vec::new();
    for node in 0..nodes {
        distances_from(node, &mut row);
        let others = row.iter().enumerate().skip(node + 1).filter(|&(_, &distance)| distance <= reach);
        links.extend(others.map(|(other, &distance)| {
            let square = u64::from(distance) * u64::from(distance);
            (node as u32, other as u32, (CLOSEST / square.max(1)).max(1))
        }));
    }
    Ok(Graph::new(nodes, links))
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology::parse;

    use super::*;

    #[test]
    fn a_torus_gives_its_links_and_a_tree_weighs_pairs_by_distance() {
        let host = |spec: &str| {
            let machine = parse(spec).expect("a machine");
            graph(machine.pes(), |node, row| machine.distances_from(node, row)).expect("it is small")
        };
        let torus = host("torus:4x4");
        assert!((0..16).all(|node| torus.degree(node) == 4));
        let tree = host("tree:2:4");
        assert_eq!(tree.edges(), 28);
        let weight = |a: usize, b: usize| tree.neighbors(a).find(|&(other, _)| other == b).map(|it| it.1);
        assert_eq!((weight(0, 1), weight(0, 4)), (Some(CLOSEST / 4), Some(CLOSEST / 16)));
        // Nodes 0, 1 and 5 of a line are connected by a link of length 4.
        assert_eq!(host("mesh:6[0,1,5]").edges(), 2);
        assert_eq!(host("flat:1").edges(), 0);
    }
}
