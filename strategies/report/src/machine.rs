//! The links of a machine, as the page draws them.
//!
//! The ends of links are found by their names. Where names do not say the place of a switch, routes do.

use std::collections::{BTreeMap, BTreeSet};

use equipoise_model::Topology;
use equipoise_model::topology::{Hierarchy, Shape};

use crate::data::Machine;

/// Of machines with more links, only the busiest are listed.
const MAX_LINKS: usize = 1 << 17;

/// The drawn links of a machine.
pub(crate) struct Drawing {
    pub(crate) machine: Machine,
    drawn: usize,
    /// By link: its drawn link, if it is drawn.
    drawn_of: Vec<Option<u32>>,
}

impl Drawing {
    pub(crate) fn of(topology: &dyn Topology) -> Drawing {
        let found = match topology.links() {
            0..=MAX_LINKS => grid(topology).or_else(|| groups(topology)).or_else(|| tree(topology)),
            _ => None,
        };
        found.unwrap_or_else(Drawing::none)
    }

    /// That of a machine whose busiest links are only listed.
    pub(crate) fn none() -> Drawing {
        Drawing { machine: Machine::Links, drawn: 0, drawn_of: Vec::new() }
    }

    /// The drawn links of these links, each once, without those that are not drawn.
    pub(crate) fn drawn_of(&self, links: impl Iterator<Item = usize>) -> impl Iterator<Item = u32> {
        let drawn: BTreeSet<u32> =
            links.filter_map(|link| self.drawn_of.get(link).copied().flatten()).collect();
        drawn.into_iter()
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

/// The shape of a machine, or of its network of nodes.
struct Network {
    shape: Shape,
    /// By PE: its PE or node in the network.
    place_of: Vec<u32>,
    /// Whether the network is one of nodes.
    is_of_nodes: bool,
}

impl Network {
    fn of(topology: &dyn Topology) -> Network {
        match topology.shape() {
            Shape::Product { network, cores, places, .. } => {
                let place_of = places.into_iter().map(|place| place / cores as u32).collect();
                Network { shape: *network, place_of, is_of_nodes: true }
            }
            shape => Network { shape, place_of: (0..topology.pes() as u32).collect(), is_of_nodes: false },
        }
    }

    /// The PE or node of an end of a link; none if the end is something else.
    fn place(&self, end: &str) -> Option<usize> {
        if self.is_of_nodes { end.strip_prefix("node ")? } else { end }.parse().ok()
    }
}

/// Grids, alone or as the network of nodes.
fn grid(topology: &dyn Topology) -> Option<Drawing> {
    let network = Network::of(topology);
    let Shape::Grid { sizes, nodes } = &network.shape else { return None };
    let unused = if network.is_of_nodes { "network unused " } else { "unused " };
    // The names of unused nodes have their number in the grid.
    let node = |end: &str| match end.strip_prefix(unused) {
        Some(node) => node.parse::<u32>().ok(),
        None => nodes.get(network.place(end)?).copied(),
    };
    let (ends, drawn_of) = Drawing::by_key(topology, |from, to| Some((node(from)?, node(to)?)));
    let nodes = network.place_of.iter().map(|&place| nodes.get(place as usize).copied());
    let nodes = nodes.collect::<Option<_>>()?;
    let (sizes, wraps) = sizes.iter().copied().unzip();
    let (from, to) = ends.iter().copied().unzip();
    Some(Drawing { machine: Machine::Grid { sizes, wraps, nodes, from, to }, drawn: ends.len(), drawn_of })
}

/// Dragonflies, whose routers are named `router GROUP.ROUTER`. The other ends of links of routers are PEs or nodes.
fn groups(topology: &dyn Topology) -> Option<Drawing> {
    const PES: u32 = u32::MAX;
    let group = |end: &str| {
        let end = end.strip_prefix("network ").unwrap_or(end);
        end.strip_prefix("router ")?.split_once('.')?.0.parse::<u32>().ok()
    };
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

/// The levels of a tree: by level from the root, by position of a leaf, the vertex above the leaf.
fn vertices(tree: &Hierarchy) -> Vec<Vec<u32>> {
    let of_level = |level: usize| {
        let nodes = tree.nodes(level).zip(0..);
        nodes.flat_map(|(range, vertex)| range.map(move |_| vertex)).collect()
    };
    (0..=tree.depth()).map(of_level).collect()
}

/// The name of a switch without the number of its plane, because the switches of all planes are one vertex.
fn switch(name: &str) -> &str {
    let numbers = name.rsplit(' ').next().unwrap_or_default();
    let is_in_plane =
        numbers.split('.').count() == 3 && numbers.split('.').all(|it| it.parse::<u32>().is_ok());
    if is_in_plane { name.rsplit_once('.').map_or(name, |(name, _)| name) } else { name }
}

/// The level and the vertex of each switch on the routes between the first leaf and the others, by name. Names say neither in an
/// allocation nor in a tree of named switches. None if a route does not lead from level to level.
fn switches(
    topology: &dyn Topology,
    vertices: &[Vec<u32>],
    leaves: &[(u32, u32)],
) -> Option<BTreeMap<String, (u32, u32)>> {
    let depth = vertices.len() - 1;
    let mut found = BTreeMap::new();
    let mut links = Vec::new();
    let (first, others) = leaves.split_first()?;
    for (from, to) in others.iter().flat_map(|other| [(first, other), (other, first)]) {
        links.clear();
        topology.route(from.1 as usize, to.1 as usize, &mut links);
        if links.len() % 2 == 1 || links.len() > 2 * depth {
            return None;
        }
        for (&link, height) in links[..links.len() / 2].iter().zip(1..) {
            let name = topology.link(link).name;
            let (_, above) = name.split_once(" -> ")?;
            let place = (depth - height, vertices[depth - height][from.0 as usize]);
            let place = (place.0 as u32, place.1);
            if found.insert(switch(above).to_string(), place).is_some_and(|other| other != place) {
                return None;
            }
        }
    }
    Some(found)
}

/// Trees and fat trees, alone or as the network of nodes.
fn tree(topology: &dyn Topology) -> Option<Drawing> {
    let network = Network::of(topology);
    let (Shape::Tree(tree) | Shape::Nested(tree)) = &network.shape else { return None };
    let mut position_of = vec![0; tree.leaves().len()];
    for (&leaf, position) in tree.leaves().iter().zip(0..) {
        position_of[leaf as usize] = position;
    }
    // The first PE of each leaf, by position.
    let mut pes = BTreeMap::new();
    for (&place, pe) in network.place_of.iter().zip(0..) {
        pes.entry(position_of[place as usize]).or_insert(pe);
    }
    let leaves: Vec<(u32, u32)> = pes.into_iter().collect();
    let vertices = vertices(tree);
    let switches = switches(topology, &vertices, &leaves)?;
    let depth = tree.depth() as u32;
    let place = |end: &str| match network.place(end) {
        Some(leaf) => Some((depth, *position_of.get(leaf)?)),
        None => switches.get(switch(end)).copied(),
    };
    let key = |from: &str, to: &str| match (place(from)?, place(to)?) {
        (from, to) if from.0 == to.0 + 1 => Some((from.0 - 1, from.1, true)),
        (from, to) if to.0 == from.0 + 1 => Some((to.0 - 1, to.1, false)),
        _ => None,
    };
    let (keys, drawn_of) = Drawing::by_key(topology, key);
    if keys.is_empty() {
        return None;
    }
    let starts = (1..=tree.depth()).map(|level| {
        let firsts = tree.nodes(level).map(|node| node.start as u32);
        firsts.chain([tree.leaves().len() as u32]).collect()
    });
    let nodes: BTreeSet<usize> = (0..topology.pes()).map(|pe| topology.node_of(pe)).collect();
    let name = |level: usize| match tree.depth() - level {
        0 if network.is_of_nodes => "nodes".into(),
        0 => "PEs".into(),
        height if !network.is_of_nodes && tree.nodes(level).len() == nodes.len() => {
            format!("height {height} (nodes)")
        }
        height => format!("height {height}"),
    };
    let machine = Machine::Tree {
        names: (1..=tree.depth()).map(name).collect(),
        starts: starts.collect(),
        leaves: tree.leaves().to_vec(),
        of_nodes: network.is_of_nodes,
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
        check("torus:4x4[3,9]*flat:2", "grid", 64);
        check("torus:2x3x2x3", "grid", 2 * 36 + 4 * 36);
        check("hypercube:4", "grid", 64);
        check("tree:2:4", "tree", 20);
        check("fattree:2:4/2e9:1e9", "tree", 20);
        check("fattree:2:4/2e9:1e9*tree:2:2", "tree", 20);
        check("flat:3", "tree", 6);
        check("flat:4*torus:2x2", "tree", 8);
        check("dragonfly:groups=3,routers=2,hosts=2", "groups", 9 + 6);
        check("dragonfly:groups=3,routers=2,hosts=2*flat:2", "groups", 9 + 6);
    }

    #[test]
    fn links_of_routes_are_drawn_where_messages_travel() {
        for spec in [
            "torus:4x3",
            "mesh:4x3[7,0,5]",
            "hypercube:4",
            "torus:3x3x3x3",
            "torus:4x4[random:9,seed=1]*flat:2",
            "(torus:4x4*flat:2)[random:9,seed=1]",
        ] {
            check_grid(spec);
        }
        for spec in [
            "flat:5",
            "tree:2:3:2",
            "tree:2:3:2[random:7,seed=1]",
            "fattree:2:4:2/2e9:1e9:1e9",
            "fattree:2:4:2/2e9:1e9:1e9[random:9,seed=2]",
            "tree:2:4*flat:2",
            "tree:2:4[random:5,seed=1]*flat:2",
            "fattree:2:4/2e9:1e9*tree:2:2",
            "(tree:2:4*flat:2)[random:9,seed=1]",
        ] {
            check_tree(spec);
        }
    }

    /// Calls `check` with the drawn links of the route between any two PEs in different places.
    fn routes(spec: &str, check: impl Fn(&Machine, usize, usize, &[usize])) {
        let topology = topology::parse(spec).expect("a machine");
        let drawing = Drawing::of(&*topology);
        for (a, b) in (0..topology.pes()).flat_map(|a| (0..topology.pes()).map(move |b| (a, b))) {
            if topology.node_of(a) == topology.node_of(b) {
                continue;
            }
            let mut links = Vec::new();
            topology.route(a, b, &mut links);
            let drawn = links.iter().map(|&link| drawing.drawn_of[link].expect("a drawn link") as usize);
            check(&drawing.machine, a, b, &drawn.collect::<Vec<_>>());
        }
    }

    /// Routes lead from node to node in the grid.
    fn check_grid(spec: &str) {
        routes(spec, |machine, a, b, links| {
            let Machine::Grid { sizes, nodes, from, to, .. } = machine else { panic!("{spec} is no grid") };
            let place = |mut node: usize| {
                let coordinate = |&size: &usize| {
                    let at = node % size;
                    node /= size;
                    at
                };
                sizes.iter().map(coordinate).collect::<Vec<_>>()
            };
            let mut here = nodes[a];
            for &link in links {
                assert_eq!(from[link], here, "{spec}: {a} to {b}");
                here = to[link];
                let [from, to] = [from[link], to[link]].map(|node| place(node as usize));
                let steps = from.iter().zip(&to).zip(sizes).filter(|((from, to), _)| from != to);
                let steps: Vec<_> = steps.map(|((from, to), size)| (from.abs_diff(*to), *size)).collect();
                assert!(
                    matches!(steps[..], [(step, size)] if step == 1 || step == size - 1),
                    "{spec}: {steps:?}"
                );
            }
            assert_eq!(here, nodes[b], "{spec}: {a} to {b}");
        });
    }

    /// Routes lead up above the sender, and down above the receiver.
    fn check_tree(spec: &str) {
        let topology = topology::parse(spec).expect("a machine");
        let network = Network::of(&*topology);
        routes(spec, |machine, a, b, links| {
            let Machine::Tree { starts, leaves, level, vertex, up, .. } = machine else {
                panic!("{spec} is no tree")
            };
            let position =
                |pe: usize| leaves.iter().position(|&leaf| leaf == network.place_of[pe]).expect("a leaf");
            for (&link, step) in links.iter().zip(0..) {
                let (level, vertex) = (level[link] as usize, vertex[link] as usize);
                let below = starts[level][vertex] as usize..starts[level][vertex + 1] as usize;
                let is_up = step < links.len() / 2;
                let end = position(if is_up { a } else { b });
                assert!(up[link] == is_up && below.contains(&end), "{spec}: {a} to {b}, link {step}");
                let height = if is_up { step } else { links.len() - 1 - step };
                assert_eq!(level, starts.len() - 1 - height, "{spec}: {a} to {b}, link {step}");
            }
        });
    }

    #[test]
    fn a_drawn_link_has_the_time_of_its_busiest_cable() {
        let found = drawing("dragonfly:groups=2,routers=2,hosts=1,links=2");
        let links = found.drawn_of.len();
        let seconds: Vec<f64> = (0..links).map(|link| link as f64).collect();
        assert_eq!(found.seconds(&seconds).iter().copied().fold(0.0, f64::max), links as f64 - 1.0);
    }
}
