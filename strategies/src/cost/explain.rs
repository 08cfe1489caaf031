//! What a placement gains over another, in numbers a person can follow: at which distances and levels of the
//! machine bytes travel, which heavy edges remain far apart, and which links are hottest.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::link_loads;
use crate::database::End;
use crate::graph::Graph;
use crate::{Database, Topology};

/// Two placements compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// By distance, ascending.
    pub distances: Vec<AtDistance>,
    /// By level of the machine's tree, from the PE to the root; empty if it is no tree.
    pub levels: Vec<AtLevel>,
    /// The edges with the most hop-bytes after, most first.
    pub far: Vec<FarEdge>,
    /// The links with the most bytes over their bandwidth, before and after, hottest first.
    pub hot_before: Vec<HotLink>,
    /// The same after.
    pub hot_after: Vec<HotLink>,
}

/// What travels that far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtDistance {
    /// The distance; 0 inside a PE.
    pub distance: u32,
    /// Bytes before.
    pub bytes_before: u64,
    /// Bytes after.
    pub bytes_after: u64,
}

/// What meets at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtLevel {
    /// Levels below the root.
    pub level: usize,
    /// Nodes of the level; PEs at the last.
    pub nodes: usize,
    /// Bytes before that meet in a node of this level and in none further below.
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

/// A link with much on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotLink {
    /// What a person calls it.
    pub name: String,
    /// Its bytes.
    pub bytes: u64,
    /// These over its bandwidth.
    pub seconds: f64,
}

impl Explanation {
    /// Compares the placements of object `i` on PE `before[i]` and on PE `after[i]`, with at most `most` edges and
    /// links. Time in the edges, PEs and links.
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
        let meeting = topology.hierarchy().map(|tree| Meeting::of(&tree));
        let mut distances = BTreeMap::<u32, [u64; 2]>::new();
        let mut levels = vec![[0u64; 2]; meeting.as_ref().map_or(0, |meeting| meeting.nodes.len())];
        let mut far = Vec::new();
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
            if apart[1] > 0 {
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
        let nodes = meeting.map(|meeting| meeting.nodes).unwrap_or_default();
        let at_level = |(level, (nodes, bytes)): (usize, (usize, [u64; 2]))| AtLevel {
            level,
            nodes,
            bytes_before: bytes[0],
            bytes_after: bytes[1],
        };
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
            hot_before: hottest(topology, &link_loads(database, topology, before), most),
            hot_after: hottest(topology, &link_loads(database, topology, after), most),
        }
    }
}

/// Where PEs meet in a tree.
struct Meeting {
    /// By level: how many nodes there are.
    nodes: Vec<usize>,
    /// By level, then by PE: its node.
    node_of: Vec<Vec<u32>>,
}

impl Meeting {
    fn of(tree: &crate::topology::Hierarchy) -> Self {
        let nodes_of = |level: usize| {
            let mut node_of = vec![0; tree.leaves().len()];
            for (node, leaves) in (0..).zip(tree.nodes(level)) {
                tree.leaves()[leaves].iter().for_each(|&pe| node_of[pe as usize] = node);
            }
            node_of
        };
        Meeting {
            nodes: (0..=tree.depth()).map(|level| tree.nodes(level).len()).collect(),
            node_of: (0..=tree.depth()).map(nodes_of).collect(),
        }
    }

    /// The lowest level at which both are in one node.
    fn level(&self, a: u32, b: u32) -> usize {
        let is_one = |level: &Vec<u32>| level[a as usize] == level[b as usize];
        self.node_of.iter().rposition(is_one).unwrap_or(0)
    }
}

/// The links whose bytes take longest.
fn hottest(topology: &dyn Topology, loads: &[u64], most: usize) -> Vec<HotLink> {
    let mut hot: Vec<(f64, usize, u64)> = Vec::new();
    for (id, &bytes) in loads.iter().enumerate().filter(|&(_, &bytes)| bytes > 0) {
        hot.push((bytes as f64 / topology.link(id).bandwidth, id, bytes));
    }
    hot.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    hot.truncate(most);
    hot.into_iter()
        .map(|(seconds, id, bytes)| HotLink { name: topology.link(id).name, bytes, seconds })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::load;
    use crate::topology::parse;

    #[test]
    fn bytes_are_counted_where_they_travel() {
        let machine = parse("tree:2:2").expect("a machine");
        let database = load("ring:4,bytes=10").expect("a graph").remap(4);
        // Around the ring 0-2-1-3 and 0-1-2-3.
        let told = Explanation::of(&database, &*machine, &[0, 2, 1, 3], &[0, 1, 2, 3], 2);
        let at = |distance, bytes_before, bytes_after| AtDistance { distance, bytes_before, bytes_after };
        assert_eq!(told.distances, [at(2, 0, 40), at(4, 80, 40)]);
        let level =
            |level, nodes, bytes_before, bytes_after| AtLevel { level, nodes, bytes_before, bytes_after };
        assert_eq!(told.levels, [level(2, 4, 0, 0), level(1, 2, 0, 40), level(0, 1, 80, 40)]);
        assert_eq!(told.far.len(), 2);
        let FarEdge { ends, bytes, pes, distance_before, distance_after } = told.far[0];
        assert_eq!((ends, bytes, pes), ([End::Object(0), End::Object(3)], 20, [0, 3]));
        assert_eq!((distance_before, distance_after), (4, 4));
        assert_eq!((told.hot_before[0].bytes, told.hot_after[0].bytes), (40, 20));
        let sum = |which: fn(&AtDistance) -> u64| told.distances.iter().map(which).sum::<u64>();
        assert_eq!((sum(|it| it.bytes_before), sum(|it| it.bytes_after)), (80, 80));
    }

    #[test]
    fn what_has_no_tree_has_no_levels_and_a_pe_is_an_end_too() {
        let machine = parse("torus:3x3").expect("a machine");
        let mut database = load("mesh:3x3").expect("a graph").remap(9);
        database.edges[0].to = End::Pe(5);
        let same: Vec<u32> = (0..9).collect();
        let told = Explanation::of(&database, &*machine, &same, &same, 100);
        assert!(told.levels.is_empty());
        assert!(told.far.iter().any(|edge| edge.ends.contains(&End::Pe(5))), "{:?}", told.far);
        assert_eq!(told.hot_before, told.hot_after);
    }
}
