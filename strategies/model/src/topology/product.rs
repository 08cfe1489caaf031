//! `torus:4x4x4*tree:2:4/2:1`: a network of nodes with several PEs each.
//!
//! The machine before the `*` is the network, whose PEs are the nodes; the machine after it is each node. PE p is core
//! p mod C of node p / C, for C cores per node. Two PEs of a node have their distance within the node. A hop between
//! nodes is longer than any distance within a node: two PEs of different nodes have distance (distance of the nodes) *
//! (1 + [diameter](Topology::diameter) of a node), regardless of the cores. Their messages take the route of the
//! network, whose links are longer by the same factor. The path from a core to the link of its node is not modelled.

use std::sync::Arc;

use super::operators::as_part;
use super::{Hierarchy, Link, Shape, Topology, count_links, count_pes, rename};

/// The help text on products.
pub const HELP: (&str, &str) = (
    "torus:4x4x4*tree:2:4/2:1",
    "A network of nodes: any machine, with any other machine as each node. PE = node * cores + core; a hop \
     between nodes is 1 longer than the longest distance within a node.",
);

/// The chunk size of [`Topology::distances_to`].
const CHUNK: usize = 256;

/// A network of nodes.
pub struct Product {
    network: Arc<dyn Topology>,
    node: Arc<dyn Topology>,
    /// PEs per node.
    cores: usize,
    /// The distance of neighboring nodes.
    hop: u32,
}

impl Product {
    /// The machine whose nodes are the PEs of `network`, with the PEs of `node` in each.
    ///
    /// # Errors
    /// If there are too many PEs or links, or distances exceed 32 bits.
    pub fn new(network: Arc<dyn Topology>, node: Arc<dyn Topology>) -> Result<Self, String> {
        let (nodes, cores) = (network.pes(), node.pes());
        count_pes([nodes, cores])?;
        count_links([Some(network.links()), node.links().checked_mul(nodes)])?;
        let (across, inside) = (network.diameter(), node.diameter());
        let hop = inside.checked_add(1).filter(|hop| hop.checked_mul(across).is_some()).ok_or_else(|| {
            format!(
                "a hop between nodes has a length of {inside} + 1, and {across} such hops exceed \
                 32 bits; use smaller distances"
            )
        })?;
        Ok(Product { network, node, cores, hop })
    }

    /// The network.
    pub fn network(&self) -> &Arc<dyn Topology> {
        &self.network
    }

    /// The machine of each node.
    pub fn node(&self) -> &Arc<dyn Topology> {
        &self.node
    }

    /// The node and core of a PE.
    fn place(&self, pe: usize) -> (usize, usize) {
        (pe / self.cores, pe % self.cores)
    }
}

impl Topology for Product {
    fn spec(&self) -> String {
        // Everything after the first `*` belongs to the node.
        format!("{}*{}", as_part(self.network.spec()), self.node.spec())
    }

    fn pes(&self) -> usize {
        self.network.pes() * self.cores
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        let ((here, from), (there, to)) = (self.place(a), self.place(b));
        if here == there {
            self.node.distance(from, to)
        } else {
            self.hop * self.network.distance(here, there)
        }
    }

    /// The distances of the nodes are written to the front of the row and expanded from its end.
    fn distances_from(&self, a: usize, row: &mut [u32]) {
        let (here, from) = self.place(a);
        let nodes = self.network.pes();
        self.network.distances_from(here, &mut row[..nodes]);
        for node in (0..nodes).rev() {
            let distance = self.hop * row[node];
            row[node * self.cores..][..self.cores].fill(distance);
        }
        self.node.distances_from(from, &mut row[here * self.cores..][..self.cores]);
    }

    fn distances_to(&self, a: usize, others: &[u32], row: &mut [u32]) {
        let (here, from) = self.place(a);
        let mut nodes = [0; CHUNK];
        for (others, row) in others.chunks(CHUNK).zip(row.chunks_mut(CHUNK)) {
            let nodes = &mut nodes[..others.len()];
            nodes.iter_mut().zip(others).for_each(|(node, &pe)| *node = pe / self.cores as u32);
            self.network.distances_to(here, nodes, row);
            for ((distance, &node), &pe) in row.iter_mut().zip(&*nodes).zip(others) {
                *distance = if node as usize == here {
                    self.node.distance(from, pe as usize % self.cores)
                } else {
                    self.hop * *distance
                };
            }
        }
    }

    fn diameter(&self) -> u32 {
        if self.network.pes() > 1 { self.hop * self.network.diameter() } else { self.node.diameter() }
    }

    fn links(&self) -> usize {
        self.network.links() + self.network.pes() * self.node.links()
    }

    /// The links of the network come first, then those of each node.
    fn link(&self, id: usize) -> Link {
        let Some(inside) = id.checked_sub(self.network.links()) else {
            let link = self.network.link(id);
            let name = rename(&link.name, |place, node| match node {
                Some(node) => format!("node {node}"),
                None => format!("network {place}"),
            });
            // No distance overflows; only a link that is on no route can be too long.
            return Link { name, length: self.hop.saturating_mul(link.length), ..link };
        };
        let node = inside / self.node.links();
        let link = self.node.link(inside % self.node.links());
        let name = rename(&link.name, |place, core| match core {
            Some(core) => (node * self.cores + core).to_string(),
            None => format!("{place} of node {node}"),
        });
        Link { name, ..link }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        let ((here, from), (there, to)) = (self.place(a), self.place(b));
        if here != there {
            return self.network.route(here, there, links);
        }
        let before = links.len();
        self.node.route(from, to, links);
        let first = self.network.links() + here * self.node.links();
        links[before..].iter_mut().for_each(|link| *link += first);
    }

    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let ((here, from), (there, to)) = (self.place(a), self.place(b));
        if here != there {
            return self.network.onward(here, there, crossed, links);
        }
        let first = self.network.links() + here * self.node.links();
        let before = links.len();
        self.node.onward(from, to, crossed.map(|link| link - first), links);
        links[before..].iter_mut().for_each(|link| *link += first);
    }

    /// The tree of the network with the tree of the node below each leaf; a part without a tree gets one by PE number.
    fn hierarchy(&self) -> Option<Hierarchy> {
        let tree =
            |part: &Arc<dyn Topology>| part.hierarchy().unwrap_or_else(|| Hierarchy::by_number(part.pes()));
        Some(tree(&self.network).over(&tree(&self.node)))
    }

    fn switches(&self) -> Option<Vec<u32>> {
        let of_network = self.network.switches()?;
        Some((0..self.pes()).map(|pe| of_network[self.place(pe).0]).collect())
    }

    fn shape(&self) -> Shape {
        Shape::Product {
            network: Box::new(self.network.shape()),
            node: Box::new(self.node.shape()),
            cores: self.cores,
            places: (0..self.pes() as u32).collect(),
        }
    }

    fn host(&self, pe: usize) -> Option<&str> {
        self.network.host(self.place(pe).0)
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        let ((here, from), (there, to)) = (self.place(a), self.place(b));
        if here == there {
            self.node.switch_between(from, to)
        } else {
            self.network.switch_between(here, there)
        }
    }

    fn node_of(&self, pe: usize) -> usize {
        self.place(pe).0
    }

    /// For nodes that are allocations, as in `torus:4*hwloc:node.xml[0,2,4,6]`, the number in the complete node.
    fn core_of(&self, pe: usize) -> usize {
        self.node.number_of(self.place(pe).1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{check_between, route, row};

    #[test]
    fn a_hop_is_longer_than_any_distance_within_a_node() {
        let machine = parse("torus:4x4x4*tree:2:4/2:1").expect("a product");
        assert_eq!((machine.pes(), machine.diameter()), (512, 3 * 6));
        assert_eq!(row(&*machine, 9)[8..17], [1, 0, 1, 1, 2, 2, 2, 2, 3]);
        assert_eq!(route("mesh:3*flat:2", 1, 4), "node 0 -> node 1, node 1 -> node 2");
        assert_eq!(route("mesh:3*flat:2", 5, 4), "5 -> switch of node 2, switch of node 2 -> 4");
        // Everything after the first `*` is the node, unless there are parentheses.
        for spec in ["flat:2*flat:2*flat:2", "(flat:2*flat:2)*flat:2", "(flat:2*flat:2)[1-2]*mesh:2[1]"] {
            assert_eq!(parse(spec).expect(spec).spec(), spec);
        }
        assert_eq!(row(&*parse("flat:2*flat:2*flat:2").expect("a product"), 0), [0, 1, 2, 2, 3, 3, 3, 3]);
    }

    #[test]
    fn the_tree_of_a_product_contains_its_nodes() {
        let tree = |spec: &str| parse(spec).expect(spec).hierarchy().and_then(|tree| tree.arities());
        assert_eq!(tree("fattree:2:3*tree:2:4"), Some(vec![2, 3, 2, 4]));
        assert_eq!(tree("dragonfly:groups=5,routers=4,hosts=3"), Some(vec![5, 4, 3]));
        assert_eq!(tree("torus:3x3*tree:2:4"), Some(vec![3, 3, 2, 4]));
        assert_eq!(tree("tree:2:3*mesh:3x2"), Some(vec![2, 3, 2, 3]));
        let level = |spec: &str| parse(spec).expect(spec).hierarchy().expect("a tree").node_level();
        assert_eq!(
            (level("torus:3x3*tree:2:4"), level("fattree:2:3*flat:4"), level("torus:4*flat:1")),
            (2, 2, 0)
        );
    }

    #[test]
    fn unused_links_may_exceed_the_range_of_lengths() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("detour.csv");
        std::fs::write(&file, "0,1,1\n1,2,1\n0,2,4000000000\n").expect("a file");
        let machine = parse(&format!("graph:{}*flat:2", file.display())).expect("a product");
        check_between(&*machine, |_, _| None);
        assert!((0..machine.links()).any(|link| machine.link(link).length == u32::MAX));
    }

    #[test]
    fn constructs_a_product_of_many_nodes() {
        let machine = parse("torus:256x256x256[random:1000000]*flat:2").expect("a product");
        assert_eq!((machine.pes(), machine.diameter()), (2_000_000, 2 * 384));
        // The length of a hop depends on the whole node, even if only a part is allocated.
        assert_eq!(row(&*parse("flat:2*mesh:4[0-1]").expect("a product"), 0), [0, 1, 4, 4]);
    }
}
