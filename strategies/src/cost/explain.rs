//! The comparison of two placements: bytes by distance and by level of the machine, heavy edges whose ends remain far
//! apart, and the links with the longest times.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use equipoise_model::database::End;
use equipoise_model::graph::Graph;
use equipoise_model::topology::{Hierarchy, Shape};
use equipoise_model::{Database, Topology};

use super::link_loads;

/// Two placements compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// By distance, ascending.
    pub distances: Vec<AtDistance>,
    /// By level of the machine, from the PE to the root; empty if the machine has neither a tree nor nodes of several PEs.
    pub levels: Vec<AtLevel>,
    /// The edges whose ends, in the placement after, are farther apart than the closest PEs; most hop-bytes first.
    pub far: Vec<FarEdge>,
    /// The links with the longest times (bytes over bandwidth) before; longest first.
    pub hot_before: Vec<HotLink>,
    /// The same links after.
    pub hot_after: Vec<HotLink>,
}

/// Bytes that travel one distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtDistance {
    /// The distance; 0 inside a PE.
    pub distance: u32,
    /// Bytes before.
    pub bytes_before: u64,
    /// Bytes after.
    pub bytes_after: u64,
}

/// Bytes between PEs whose lowest common node is at one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtLevel {
    /// The name of the level: `in one PE`, `in one of 4 nodes`, `in one of 16 parts of height 1`, `between nodes`. A part of a
    /// height is what is below a switch of this height.
    pub name: String,
    /// Levels below the root.
    pub level: usize,
    /// Nodes of the level; PEs at the last.
    pub nodes: usize,
    /// Bytes, before, between PEs whose lowest common node is at this level.
    pub bytes_before: u64,
    /// Bytes after.
    pub bytes_after: u64,
}

/// An edge whose ends are far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FarEdge {
    /// The ends.
    pub ends: [End; 2],
    /// Bytes both ways.
    pub bytes: u64,
    /// The PEs after.
    pub pes: [u32; 2],
    /// The distance before.
    pub distance_before: u32,
    /// The distance after.
    pub distance_after: u32,
}

/// A link and its load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotLink {
    /// The name of the link.
    pub name: String,
    /// Bytes over the link.
    pub bytes: u64,
    /// `bytes` divided by the bandwidth.
    pub seconds: f64,
}

impl Explanation {
    /// Compares two placements: object `i` on PE `before[i]`, and on PE `after[i]`. Lists at most `most` edges and
    /// links. Takes time linear in the edges, PEs and links.
    ///
    /// # Panics
    /// When a placement is shorter than the objects, or a PE is unknown.
    pub fn of(
        database: &Database,
        topology: &dyn Topology,
        before: &[u32],
        after: &[u32],
        most: usize,
    ) -> Explanation {
        let objects = database.objects.len();
        let place = |placement: &[u32], vertex: u32| match (vertex as usize).checked_sub(objects) {
            None => placement[vertex as usize],
            Some(pe) => pe as u32,
        };
        let meeting = Meeting::on(topology);
        let (distances, levels) = travelled(database, topology, [before, after], meeting.as_ref());
        let mut far = Vec::new();
        // An upper bound of the least distance between PEs, from successive PEs and from PE 0 only. If closer PEs
        // exist, edges up to this distance are missing from the list, but all longer edges are in the list.
        let mut row = vec![0; topology.pes()];
        topology.distances_from(0, &mut row);
        row.extend((1..topology.pes()).map(|pe| topology.distance(pe - 1, pe)));
        let nearest = row.into_iter().filter(|&distance| distance > 0).min().unwrap_or(0);
        for (a, b, bytes) in Graph::with_pes(database).pairs() {
            let apart = [before, after].map(|placement| {
                let [here, there] = [a, b].map(|vertex| place(placement, vertex) as usize);
                topology.distance(here, there)
            });
            if apart[1] > nearest {
                far.push((u128::from(bytes) * u128::from(apart[1]), a, b, bytes, apart));
            }
        }
        let by_cost = |edge: &(u128, u32, u32, u64, [u32; 2])| (Reverse(edge.0), edge.1, edge.2);
        if far.len() > most {
            far.select_nth_unstable_by_key(most, by_cost);
            far.truncate(most);
        }
        far.sort_unstable_by_key(by_cost);
        let end = |vertex: u32| match (vertex as usize).checked_sub(objects) {
            None => End::Object(vertex),
            Some(pe) => End::Pe(pe as u32),
        };
        let far = far.into_iter().map(|(_, a, b, bytes, [distance_before, distance_after])| FarEdge {
            ends: [end(a), end(b)],
            bytes,
            pes: [place(after, a), place(after, b)],
            distance_before,
            distance_after,
        });
        let (nodes, names) = meeting.map(|meeting| (meeting.nodes, meeting.names)).unwrap_or_default();
        let at_level = |(level, (nodes, bytes)): (usize, (usize, [u64; 2]))| AtLevel {
            name: names[level].clone(),
            level,
            nodes,
            bytes_before: bytes[0],
            bytes_after: bytes[1],
        };
        let names_of = Names::of(topology);
        Explanation {
            distances: distances
                .into_iter()
                .map(|(distance, [bytes_before, bytes_after])| AtDistance {
                    distance,
                    bytes_before,
                    bytes_after,
                })
                .collect(),
            levels: nodes.into_iter().zip(levels).enumerate().rev().map(at_level).collect(),
            far: far.collect(),
            hot_before: hottest(topology, &names_of, &link_loads(database, topology, before), most),
            hot_after: hottest(topology, &names_of, &link_loads(database, topology, after), most),
        }
    }
}

/// The bytes of all edges by distance and by level, in two placements.
fn travelled(
    database: &Database,
    topology: &dyn Topology,
    placements: [&[u32]; 2],
    meeting: Option<&Meeting>,
) -> (BTreeMap<u32, [u64; 2]>, Vec<[u64; 2]>) {
    let mut distances = BTreeMap::<u32, [u64; 2]>::new();
    let mut levels = vec![[0u64; 2]; meeting.map_or(0, |meeting| meeting.nodes.len())];
    // Also messages of an object to itself, and between two PEs, which `Graph::with_pes` leaves out.
    for edge in database.edges.iter().filter(|edge| edge.bytes > 0) {
        for (which, placement) in placements.into_iter().enumerate() {
            let [here, there] = [edge.from, edge.to].map(|end| end.pe(placement));
            let distance = topology.distance(here as usize, there as usize);
            let at_distance = &mut distances.entry(distance).or_default()[which];
            *at_distance = at_distance.saturating_add(edge.bytes);
            if let Some(meeting) = meeting {
                let at_level = &mut levels[meeting.level(here, there)][which];
                *at_level = at_level.saturating_add(edge.bytes);
            }
        }
    }
    (distances, levels)
}

/// The mean distance of the bytes between different objects; 0 if there are none.
pub fn hops_between_objects(database: &Database, topology: &dyn Topology, placement: &[u32]) -> f64 {
    let (mut bytes, mut hop_bytes) = (0u128, 0u128);
    for edge in &database.edges {
        let (End::Object(from), End::Object(to)) = (edge.from, edge.to) else { continue };
        if from != to {
            let [here, there] = [from, to].map(|object| placement[object as usize] as usize);
            bytes += u128::from(edge.bytes);
            hop_bytes += u128::from(edge.bytes) * u128::from(topology.distance(here, there));
        }
    }
    if bytes > 0 { hop_bytes as f64 / bytes as f64 } else { 0.0 }
}

/// The largest parts of a machine with several PEs each: their name, such as `nodes` or `parts of height 2`, and by PE its part. None if
/// only the whole machine and its PEs are known.
pub fn largest_parts(topology: &dyn Topology) -> Option<(String, Vec<u32>)> {
    let mut meeting = Meeting::on(topology)?;
    (meeting.nodes.len() > 2).then(|| (meeting.parts.swap_remove(1), meeting.node_of.swap_remove(1)))
}

/// The displayed names of PEs and links.
pub struct Names {
    /// By PE: its host, with the core number if the host has several PEs; the PE number if the host is unknown.
    pes: Vec<String>,
    /// By node, as numbered in link names: its host, if known.
    hosts: FxHashMap<usize, String>,
}

impl Names {
    /// The names of the PEs and links of `topology`.
    pub fn of(topology: &dyn Topology) -> Self {
        let mut on_node = FxHashMap::<usize, usize>::default();
        (0..topology.pes()).for_each(|pe| *on_node.entry(topology.node_of(pe)).or_default() += 1);
        let mut hosts = FxHashMap::default();
        let name = |pe: usize| {
            let Some(host) = topology.host(pe) else { return pe.to_string() };
            let node = topology.node_of(pe);
            hosts.entry(node).or_insert_with(|| host.to_string());
            if on_node[&node] == 1 { host.into() } else { format!("{host} core {}", topology.core_of(pe)) }
        };
        Names { pes: (0..topology.pes()).map(name).collect(), hosts }
    }

    /// The displayed name of a PE.
    ///
    /// # Panics
    /// When there is no such PE.
    pub fn pe(&self, pe: u32) -> &str {
        &self.pes[pe as usize]
    }

    /// The displayed name of a link, given its [name](equipoise_model::topology::Link::name) with numbers.
    pub fn link(&self, name: &str) -> String {
        let host = |number: &str| self.hosts.get(&number.parse().ok()?).cloned();
        let end = |end: &str| {
            let known = match end.rsplit_once("node ") {
                // `node 3`, or `switch of node 3`.
                Some((before, number)) => host(number).map(|host| format!("{before}{host}")),
                None => end.parse().ok().and_then(|pe: usize| self.pes.get(pe).cloned()),
            };
            known.unwrap_or_else(|| end.strip_prefix("network ").unwrap_or(end).to_string())
        };
        name.split(" -> ").map(end).collect::<Vec<_>>().join(" -> ")
    }
}

/// The levels of the machine at which pairs of PEs have their lowest common node.
pub(super) struct Meeting {
    /// By level: the number of nodes.
    nodes: Vec<usize>,
    /// By level: its name.
    names: Vec<String>,
    /// By level: the name of its nodes, such as `parts of height 2`.
    parts: Vec<String>,
    /// By level, then by PE: its node.
    node_of: Vec<Vec<u32>>,
}

impl Meeting {
    /// For a tree: its levels. For a product, whose parts need not be trees: the levels of those parts that are trees,
    /// the node level, and the root.
    fn on(topology: &dyn Topology) -> Option<Self> {
        let tree = topology.hierarchy()?;
        let is_tree = |shape: &Shape| matches!(shape, Shape::Tree(_) | Shape::Nested(_));
        let (outside, inside, is_product) = match topology.shape() {
            Shape::Product { network, node, .. } => (is_tree(&network), is_tree(&node), true),
            _ => (true, true, false),
        };
        let level_of_nodes = tree.node_level();
        // As in the names of switches: PEs have height 0, and so have nodes in their network.
        let height = |level: usize| match level < level_of_nodes && is_product {
            true => level_of_nodes - level,
            false => tree.depth() - level,
        };
        let is_real = |level: usize| match level {
            0 => true,
            level if level < level_of_nodes => outside,
            level => level == level_of_nodes || level == tree.depth() || inside,
        };
        let is_last = |level: usize| level == tree.depth();
        let divides = |level: usize| level == 0 || is_last(level) || tree.nodes(level).len() > 1;
        let mut levels: Vec<usize> =
            (0..=tree.depth()).filter(|&level| is_real(level) && divides(level)).collect();
        // Levels below the root with equally many nodes have the same nodes.
        levels.dedup_by_key(|level| if *level == 0 { 0 } else { tree.nodes(*level).len() });
        let mut meeting = Meeting::of(&tree, levels.iter().copied());
        // Strategies group the PEs of a tree at the level of nodes, too, where launchers know no nodes of several PEs.
        let nodes_of_launchers: FxHashSet<usize> =
            (0..topology.pes()).map(|pe| topology.node_of(pe)).collect();
        let is_of_nodes = |nodes: usize| nodes == nodes_of_launchers.len();
        let below_root = meeting.nodes.get(1).copied().unwrap_or(1);
        for (at, &level) in levels.iter().enumerate() {
            let (nodes, height) = (meeting.nodes[at], height(level));
            meeting.parts[at] = match () {
                () if is_of_nodes(nodes) && is_product => "nodes".into(),
                () if is_of_nodes(nodes) => format!("nodes (height {height})"),
                () if is_product && level > level_of_nodes => {
                    format!("parts of height {height} inside nodes")
                }
                () => format!("parts of height {height}"),
            };
            meeting.names[at] = match at {
                at if at == levels.len() - 1 => "in one PE".into(),
                0 if levels.len() == 2 => "between PEs".into(),
                0 if !outside || is_of_nodes(below_root) => "between nodes".into(),
                0 => "at the root".into(),
                _ => format!("in one of {nodes} {}", meeting.parts[at]),
            };
        }
        Some(meeting)
    }

    pub(super) fn of(tree: &Hierarchy, levels: impl Iterator<Item = usize>) -> Self {
        let levels: Vec<usize> = levels.collect();
        let nodes_of = |level: usize| {
            let mut node_of = vec![0; tree.leaves().len()];
            for (node, leaves) in (0..).zip(tree.nodes(level)) {
                tree.leaves()[leaves].iter().for_each(|&pe| node_of[pe as usize] = node);
            }
            node_of
        };
        Meeting {
            nodes: levels.iter().map(|&level| tree.nodes(level).len()).collect(),
            names: vec![String::new(); levels.len()],
            parts: vec![String::new(); levels.len()],
            node_of: levels.into_iter().map(nodes_of).collect(),
        }
    }

    /// The lowest level at which both PEs are in the same node.
    pub(super) fn level(&self, a: u32, b: u32) -> usize {
        let is_one = |level: &Vec<u32>| level[a as usize] == level[b as usize];
        self.node_of.iter().rposition(is_one).unwrap_or(0)
    }
}

/// The links with the longest times.
fn hottest(topology: &dyn Topology, names: &Names, loads: &[u64], most: usize) -> Vec<HotLink> {
    let mut hot: Vec<(f64, usize, u64)> = Vec::new();
    for (id, &bytes) in loads.iter().enumerate().filter(|&(_, &bytes)| bytes > 0) {
        hot.push((bytes as f64 / topology.link(id).bandwidth, id, bytes));
    }
    hot.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    hot.truncate(most);
    hot.into_iter()
        .map(|(seconds, id, bytes)| HotLink { name: names.link(&topology.link(id).name), bytes, seconds })
        .collect()
}

#[cfg(test)]
mod tests;
