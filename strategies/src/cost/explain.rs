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
        let mut distances = BTreeMap::<u32, [u64; 2]>::new();
        let mut levels = vec![[0u64; 2]; meeting.as_ref().map_or(0, |meeting| meeting.nodes.len())];
        let mut far = Vec::new();
        // An upper bound of the least distance between PEs, from successive PEs and from PE 0 only. If closer PEs
        // exist, edges up to this distance are missing from the list, but all longer edges are in the list.
        let mut row = vec![0; topology.pes()];
        topology.distances_from(0, &mut row);
        row.extend((1..topology.pes()).map(|pe| topology.distance(pe - 1, pe)));
        let nearest = row.into_iter().filter(|&distance| distance > 0).min().unwrap_or(0);
        for (a, b, bytes) in Graph::with_pes(database).pairs() {
            let mut apart = [0; 2];
            for (which, placement) in [before, after].into_iter().enumerate() {
                let [here, there] = [a, b].map(|vertex| place(placement, vertex));
                apart[which] = topology.distance(here as usize, there as usize);
                let at_distance = &mut distances.entry(apart[which]).or_default()[which];
                *at_distance = at_distance.saturating_add(bytes);
                if let Some(meeting) = &meeting {
                    let at_level = &mut levels[meeting.level(here, there)][which];
                    *at_level = at_level.saturating_add(bytes);
                }
            }
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
mod tests {
    use equipoise_model::graph::load;
    use equipoise_model::topology::parse;

    use super::*;

    #[test]
    fn bytes_are_counted_where_they_travel() {
        let machine = parse("tree:2:2").expect("a machine");
        let database = load("ring:4,bytes=10").expect("a graph").remap(4);
        // The ring visits the PEs in the order 0-2-1-3 before, and 0-1-2-3 after.
        let found = Explanation::of(&database, &*machine, &[0, 2, 1, 3], &[0, 1, 2, 3], 2);
        let at = |distance, bytes_before, bytes_after| AtDistance { distance, bytes_before, bytes_after };
        assert_eq!(found.distances, [at(2, 0, 40), at(4, 80, 40)]);
        let level = |name: &str, level, nodes, bytes_before, bytes_after| AtLevel {
            name: name.into(),
            level,
            nodes,
            bytes_before,
            bytes_after,
        };
        let in_nodes = level("in one of 2 parts of height 1", 1, 2, 0, 40);
        assert_eq!(
            found.levels,
            [level("in one PE", 2, 4, 0, 0), in_nodes, level("at the root", 0, 1, 80, 40)]
        );
        assert_eq!(found.far.len(), 2);
        let FarEdge { ends, bytes, pes, distance_before, distance_after } = found.far[0];
        assert_eq!((ends, bytes, pes), ([End::Object(0), End::Object(3)], 20, [0, 3]));
        assert_eq!((distance_before, distance_after), (4, 4));
        assert_eq!((found.hot_before[0].bytes, found.hot_after[0].bytes), (40, 20));
        let sum = |which: fn(&AtDistance) -> u64| found.distances.iter().map(which).sum::<u64>();
        assert_eq!((sum(|it| it.bytes_before), sum(|it| it.bytes_after)), (80, 80));
    }

    #[test]
    fn a_torus_has_no_levels_and_edges_may_end_at_a_pe() {
        let machine = parse("torus:3x3").expect("a machine");
        let mut database = load("mesh:3x3").expect("a graph").remap(9);
        database.edges[0].to = End::Pe(5);
        let same: Vec<u32> = (0..9).collect();
        // On the torus every neighbor of the mesh is one hop away, which is the least possible distance.
        let found = Explanation::of(&database, &*machine, &same, &same, 100);
        assert!(found.levels.is_empty());
        assert!(found.far.iter().any(|edge| edge.ends.contains(&End::Pe(5))), "{:?}", found.far);
        assert!(found.far.iter().all(|edge| edge.distance_after > 1), "{:?}", found.far);
        assert_eq!(found.hot_before, found.hot_after);
    }

    #[test]
    fn lists_heavy_edges_even_if_pe_0_is_far_from_all_other_pes() {
        let machine = parse("torus:64[0,20,22,40,50]").expect("a machine");
        let mut database = load("mesh:5").expect("a graph").remap(5);
        // Objects 3 and 4 are on PEs 40 and 50; the PE nearest to PE 0 is 14 hops away.
        database.edges.retain(|edge| edge.from == End::Object(3) || edge.to == End::Object(3));
        database.edges.iter_mut().for_each(|edge| edge.bytes = 900);
        let found = Explanation::of(&database, &*machine, &[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4], 100);
        assert!(found.far.iter().any(|edge| edge.distance_after == 10), "{:?}", found.far);
    }

    #[test]
    fn levels_are_those_of_the_tree_and_the_node_level() {
        let check = |spec: &str, expected: &str| {
            let machine = parse(spec).expect(spec);
            let database = load("ring:4").expect("a graph").remap(machine.pes() as u32);
            let found = Explanation::of(&database, &*machine, &[0, 1, 2, 3], &[0, 1, 2, 3], 1);
            let names: Vec<&str> = found.levels.iter().map(|level| level.name.as_str()).collect();
            assert_eq!(names.join(", "), expected, "{spec}");
        };
        check("torus:4x4", "");
        check(
            "torus:3x3*tree:2:4",
            "in one PE, in one of 18 parts of height 1 inside nodes, in one of 9 nodes, between nodes",
        );
        check("torus:4x4*mesh:2x2", "in one PE, in one of 16 nodes, between nodes");
        check("(torus:4x4*mesh:2x2)[0-3,12]", "in one PE, in one of 2 nodes, between nodes");
        check(
            "tree:2:3*mesh:2x2",
            "in one PE, in one of 6 nodes, in one of 2 parts of height 1, at the root",
        );
        check("flat:4", "in one PE, between PEs");
        check("tree:2:1:2", "in one PE, in one of 2 parts of height 2, at the root");
        check("tree:1:4", "in one PE, between PEs");
        check(
            "dragonfly:groups=3,routers=2,hosts=2",
            "in one PE, in one of 6 parts of height 1, in one of 3 parts of height 2, at the root",
        );
        check(
            "tree:2:2:2",
            "in one PE, in one of 4 parts of height 1, in one of 2 parts of height 2, at the root",
        );
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/model/tests/data/topology.conf");
        // Switches are not nodes.
        check(
            &format!("(slurm:{file})[n[1-2]-ib,gpu[01-02]]"),
            "in one PE, in one of 3 parts of height 1, in one of 2 parts of height 2, at the root",
        );
        check(
            &format!("(slurm:{file}*tree:2:2)[n[1-2]-ib,gpu[01-02]]"),
            "in one PE, in one of 8 parts of height 1 inside nodes, in one of 4 nodes, in one of 3 parts of height 1, \
             in one of 2 parts of height 2, at the root",
        );
    }

    #[test]
    fn hosts_and_switches_are_shown_by_name() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/model/tests/data/topology.conf");
        let check = |spec: String, pe: u32, name: &str, link: &str| {
            let machine = parse(&spec).expect("a cluster");
            let names = Names::of(&*machine);
            let links: Vec<String> =
                (0..machine.links()).map(|id| names.link(&machine.link(id).name)).collect();
            assert_eq!(names.pe(pe), name, "{spec}");
            assert!(links.iter().any(|known| known == link), "{spec}: {links:?}");
        };
        let first = parse(&format!("slurm:{file}")).expect("a cluster");
        let host = first.host(1).expect("a name");
        let mut route = Vec::new();
        first.route(1, 0, &mut route);
        let up = first.link(route[0]).name;
        let switch = up.split(" -> ").last().expect("a switch").to_string();
        check(format!("slurm:{file}"), 1, host, &format!("{host} -> {switch}"));
        check(format!("slurm:{file}*tree:2:2"), 6, &format!("{host} core 2"), &format!("{host} -> {switch}"));
        check(format!("(slurm:{file}*tree:2:2)[6]"), 0, host, &format!("{host} -> {switch}"));
        check("mesh:2x2".into(), 1, "1", "1 -> 0");
    }
}
