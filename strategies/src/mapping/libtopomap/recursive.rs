//! LibTopoMap's recursive bisection (T. Hoefler, M. Snir, ICS 2011, section 4.2).
//!
//! The graph of the machine is bisected recursively into halves of equal size with few links between them. The graph
//! of the groups is bisected in the same way, and halves are mapped to halves. METIS bisects both graphs, and its parts
//! are corrected to exact sizes.

use equipoise_model::graph::Graph;

use crate::mapping::hier_topo_map::tree::{Processes, Tree};
use crate::partition::exact::{self, Partitioner};
use crate::strategy::StrategyError;

/// The node of every group; there are as many groups as nodes.
///
/// # Errors
/// If METIS fails.
pub fn map(groups: &Graph, host: &Graph, seed: u64) -> Result<Vec<u32>, StrategyError> {
    let mut tree = Tree::default();
    if host.vertices() > 0 {
        halve(&mut tree, host, &(0..host.vertices() as u32).collect::<Vec<_>>(), seed)?;
    }
    let (ones, rooms) = (vec![1; groups.vertices()], vec![1; host.vertices()]);
    let processes =
        Processes { graph: groups, weights: &ones, rooms: &rooms, partitioner: Partitioner::Metis, seed };
    processes.map(&tree)
}

/// Adds the bisection tree of `nodes`, at least one, whose graph is `host`; returns its root.
fn halve(tree: &mut Tree, host: &Graph, nodes: &[u32], seed: u64) -> Result<u32, StrategyError> {
    if let [only] = *nodes {
        return Ok(tree.leaf(only));
    }
    let sizes = [nodes.len().div_ceil(2) as u64, nodes.len() as u64 / 2];
    let side_of = exact::bisect(host, &vec![1; nodes.len()], sizes, Partitioner::Metis, seed)?;
    let mut children = Vec::with_capacity(2);
    for side in 0..2 {
        let members: Vec<u32> =
            (0..nodes.len() as u32).filter(|&position| side_of[position as usize] == side).collect();
        let half: Vec<u32> = members.iter().map(|&position| nodes[position as usize]).collect();
        children.push(halve(tree, &host.induced(&members), &half, seed)?);
    }
    Ok(tree.parent(children))
}
