//! The links of a machine, as the page draws them.
//!
//! Links are found by their names, which are the same for a machine, for an allocation of it and for a network of nodes.

use std::collections::BTreeMap;

use equipoise_model::Topology;
use equipoise_model::topology::{Hierarchy, Shape};

use crate::data::Machine;

/// Of machines with more links, only the busiest are listed.
const MAX_LINKS: usize = 1 << 17;

/// The drawn links of a machine, and by link its drawn link.
pub(crate) struct Drawing {
    pub(crate) machine: Machine,
    drawn: usize,
    drawn_of: Vec<Option<u32>>,
}

impl Drawing {
    pub(crate) fn of(topology: &dyn Topology) -> Drawing {
        let found = match topology.links() {
            0..=MAX_LINKS => grid(topology).or_else(|| groups(topology)).or_else(|| tree(topology)),
            _ => None,
        };
        found.unwrap_or(Drawing { machine: Machine::Links, drawn: 0, drawn_of: Vec::new() })
    }

    /// By drawn link: the time of its busiest cable.
    pub(crate) fn seconds(&self, seconds: &[f64]) -> Vec<f64> {
        let mut drawn = vec![0.0f64; self.drawn];
        for (link, seconds) in self.drawn_of.iter().zip(seconds) {
            if let Some(link) = link {
                drawn[*link as usize] = drawn[*link as usize].max(*seconds);
            }
        }
        drawn
    }

    /// Numbers the drawn links in the order of their keys, which `key` finds from the names of the ends of a link.
    fn by_key<K: Ord + Copy>(
        topology: &dyn Topology,
        key: impl Fn(&str, &str) -> Option<K>,
    ) -> (Vec<K>, Vec<Option<u32>>) {
        let keys: Vec<Option<K>> = (0..topology.links())
            .map(|link| topology.link(link).name.split_once(" -> ").and_then(|(from, to)| key(from, to)))
            .collect();
        let mut numbers: BTreeMap<K, u32> = keys.iter().flatten().map(|&key| (key, 0)).collect();
        for (number, at) in numbers.values_mut().zip(0..) {
            *number = at;
        }
        let drawn_of = keys.into_iter().map(|key| key.and_then(|key| numbers.get(&key).copied())).collect();
        (numbers.into_keys().collect(), drawn_of)
    }
}

/// Grids, alone or as the network of nodes.
fn grid(topology: &dyn Topology) -> Option<Drawing> {
    let (dimensions, nodes): (_, Vec<u32>) = match topology.shape() {
        Shape::Grid { sizes, nodes } => (sizes, nodes),
        Shape::Product { network, cores, places, .. } => match *network {
            Shape::Grid { sizes, nodes } => {
                let node = |place: u32| nodes.get(place as usize / cores).copied();
                (sizes, places.into_iter().map(node).collect::<Option<_>>()?)
            }
            _ => return None,
        },
        _ => return None,
    };
    let of_nodes = matches!(topology.shape(), Shape::Product { .. });
    let node = |end: &str| match (end.strip_prefix("unused "), end.strip_prefix("node ")) {
        (Some(node), None) if !of_nodes => node.parse().ok(),
        (None, Some(node)) => node.parse::<u32>().ok(),
        (None, None) if !of_nodes => nodes.get(end.parse::<usize>().ok()?).copied(),
        _ => None,
    };
    let (ends, drawn_of) = Drawing::by_key(topology, |from, to| Some((node(from)?, node(to)?)));
    let (sizes, wraps) = dimensions.into_iter().unzip();
    let (from, to) = ends.iter().copied().unzip();
    Some(Drawing { machine: Machine::Grid { sizes, wraps, nodes, from, to }, drawn: ends.len(), drawn_of })
}

/// Dragonflies, whose routers are named `router GROUP.ROUTER`. The other ends of links of routers are PEs or nodes.
fn groups(topology: &dyn Topology) -> Option<Drawing> {
    const PES: u32 = u32::MAX;
    let group = |end: &str| end.strip_prefix("router ")?.split_once('.')?.0.parse::<u32>().ok();
    let key = |from: &str, to: &str| match (group(from), group(to)) {
        (None, None) => None,
        (from, to) => Some((from.unwrap_or(PES), to.unwrap_or(PES))),
    };
    let (ends, drawn_of) = Drawing::by_key(topology, key);
    let all = ends.iter().flat_map(|&(from, to)| [from, to]);
    let groups = all.filter(|&group| group != PES).max()? + 1;
    let (from, to) = ends.iter().map(|&(from, to)| (from.min(groups), to.min(groups))).unzip();
    let machine = Machine::Groups { groups: groups as usize, from, to };
    Some(Drawing { machine, drawn: ends.len(), drawn_of })
}

/// The place of an end in a tree: (level, vertex). PEs are leaves, and switches are named `switch HEIGHT.VERTEX`.
fn place(tree: &Hierarchy, position_of: &[u32], end: &str) -> Option<(u32, u32)> {
    let depth = tree.depth() as u32;
    if let Ok(pe) = end.parse::<usize>() {
        return Some((depth, *position_of.get(pe)?));
    }
    let mut numbers = end.strip_prefix("switch ")?.split('.').map(str::parse::<u32>);
    let (height, vertex) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((depth.checked_sub(height)?, vertex))
}

/// Trees and fat trees whose links lead from a vertex to its parent, or back.
fn tree(topology: &dyn Topology) -> Option<Drawing> {
    let (Shape::Tree(tree) | Shape::Nested(tree)) = topology.shape() else { return None };
    let mut position_of = vec![0; topology.pes()];
    for (&pe, position) in tree.leaves().iter().zip(0..) {
        position_of[pe as usize] = position;
    }
    let key = |from: &str, to: &str| {
        let [from, to] = [from, to].map(|end| place(&tree, &position_of, end));
        let up = match (from, to) {
            (Some(from), Some(to)) => from.0 > to.0,
            (from, _) => from.is_some(),
        };
        let (level, vertex) = if up { from? } else { to? };
        let exists = (vertex as usize) < tree.nodes(level as usize).len() && level > 0;
        exists.then_some((level - 1, vertex, up))
    };
    let (keys, drawn_of) = Drawing::by_key(topology, key);
    if keys.is_empty() || drawn_of.iter().any(Option::is_none) {
        return None;
    }
    let starts = (1..=tree.depth()).map(|level| {
        let firsts = tree.nodes(level).map(|node| node.start as u32);
        firsts.chain([tree.leaves().len() as u32]).collect()
    });
    let machine = Machine::Tree {
        starts: starts.collect(),
        leaves: tree.leaves().to_vec(),
        level: keys.iter().map(|key| key.0).collect(),
        vertex: keys.iter().map(|key| key.1).collect(),
        up: keys.iter().map(|key| key.2).collect(),
    };
    Some(Drawing { machine, drawn: keys.len(), drawn_of })
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;

    fn drawing(spec: &str) -> Drawing {
        Drawing::of(&*topology::parse(spec).expect("a machine"))
    }

    #[test]
    fn every_kind_of_machine_has_its_drawing() {
        let check = |spec: &str, expected: &str, links: usize| {
            let found = drawing(spec);
            let layout = serde_json::to_value(&found.machine).expect("a value")["layout"].clone();
            assert_eq!((layout.as_str(), found.drawn), (Some(expected), links), "{spec}");
        };
        check("torus:4x4", "grid", 64);
        check("mesh:2x2x2", "grid", 24);
        check("mesh:4x3[7,0]", "grid", 34);
        check("torus:4x4*flat:2", "grid", 64);
        check("tree:2:4", "tree", 20);
        check("fattree:2:4/2e9:1e9", "tree", 20);
        check("dragonfly:groups=3,routers=2,hosts=2", "groups", 9 + 6);
        check("dragonfly:groups=3,routers=2,hosts=2*flat:2", "groups", 9 + 6);
        check("torus:2x3x2x3", "grid", 2 * 36 + 4 * 36);
        check("hypercube:4", "grid", 64);
        check("flat:4*torus:2x2", "links", 0);
        check("flat:3", "tree", 6);
    }

    #[test]
    fn a_drawn_link_has_the_time_of_its_busiest_cable() {
        let found = drawing("dragonfly:groups=2,routers=2,hosts=1,links=2");
        let links = found.drawn_of.len();
        let seconds: Vec<f64> = (0..links).map(|link| link as f64).collect();
        assert_eq!(found.seconds(&seconds).iter().copied().fold(0.0, f64::max), links as f64 - 1.0);
    }
}
