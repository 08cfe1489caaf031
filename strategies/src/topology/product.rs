//! `torus:4x4x4*tree:2:4/2:1`: a network of nodes, and PEs inside each node.
//!
//! What stands before the `*` is the network, its "PEs" being the nodes; what stands after it is each
//! node. PE p is core p mod C of node p / C, for C cores per node. Two PEs of a node are as far apart as
//! the node says. A hop between nodes is longer than any way inside one: two PEs of different nodes are
//! (distance of the nodes) * (1 + largest distance inside a node) apart, whichever cores they are, and
//! their messages take the network's route; a network link is longer by the same factor. How a message
//! gets from a core to its node's link is not counted.

use std::sync::Arc;

use super::spec::as_part;
use super::{Hierarchy, Link, Topology, count_links, count_pes, rename};

/// What help says of products.
pub const HELP: (&str, &str) = (
    "torus:4x4x4*tree:2:4/2:1",
    "A network of nodes: any machine, and inside each node any other. PE = node * cores + core; a hop \
     between nodes is 1 longer than the longest distance inside.",
);

/// How many PEs [`Topology::distances_to`] looks at together.
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
    /// With too many PEs or links, or when distances do not fit 32 bits.
    pub fn new(network: Arc<dyn Topology>, node: Arc<dyn Topology>) -> Result<Self, String> {
        let (nodes, cores) = (network.pes(), node.pes());
        count_pes([nodes, cores])?;
        count_links([Some(network.links()), node.links().checked_mul(nodes)])?;
        let (across, inside) = (network.diameter(), node.diameter());
        let hop = inside.checked_add(1).filter(|hop| hop.checked_mul(across).is_some()).ok_or_else(|| {
            format!(
                "a hop between nodes is longer than the {inside} inside one, and {across} such hops do not fit \
                 32 bits; use smaller distances"
            )
        })?;
        Ok(Product { network, node, cores, hop })
    }

    /// The machine between the nodes.
    pub fn network(&self) -> &Arc<dyn Topology> {
        &self.network
    }

    /// The machine inside each node.
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
        // What stands after the first `*` is all inside the node.
        format!("{}*{}", as_part(&*self.network), self.node.spec())
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

    /// The distances of the nodes are written to the front of the row, and spread from its end.
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
            return Link { name, length: self.hop * link.length, ..link };
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

    fn hierarchy(&self) -> Option<Hierarchy> {
        Some(self.network.hierarchy()?.over(&self.node.hierarchy()?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{route, row};

    #[test]
    fn a_hop_of_a_product_is_longer_than_any_way_inside_a_node() {
        let machine = parse("torus:4x4x4*tree:2:4/2:1").expect("a product");
        assert_eq!((machine.pes(), machine.diameter()), (512, 3 * 6));
        assert_eq!(row(&*machine, 9)[8..17], [1, 0, 1, 1, 2, 2, 2, 2, 3]);
        assert_eq!(route("mesh:3*flat:2", 1, 4), "node 0 -> node 1, node 1 -> node 2");
        assert_eq!(route("mesh:3*flat:2", 5, 4), "5 -> switch of node 2, switch of node 2 -> 4");
        // What stands after the first star is the node, unless parentheses say otherwise.
        for spec in ["flat:2*flat:2*flat:2", "(flat:2*flat:2)*flat:2", "(flat:2*flat:2)[1-2]*mesh:2[1]"] {
            assert_eq!(parse(spec).expect(spec).spec(), spec);
        }
        assert_eq!(row(&*parse("flat:2*flat:2*flat:2").expect("a product"), 0), [0, 1, 2, 2, 3, 3, 3, 3]);
        let tree = |spec: &str| parse(spec).expect(spec).hierarchy().and_then(|tree| tree.arities());
        assert_eq!(tree("fattree:2:3*tree:2:4"), Some(vec![2, 3, 2, 4]));
        assert_eq!(tree("dragonfly:groups=5,routers=4,hosts=3"), Some(vec![5, 4, 3]));
        assert_eq!(tree("torus:2x3*tree:2:4"), None);
    }
}
