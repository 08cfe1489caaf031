//! The arrangement of the PEs of a machine, for mappers that partition the machine.
//!
//! A mapper that bisects a machine recursively needs compact parts and cheap distances between parts. Both follow from
//! the arrangement: boxes of a grid, ranges of nodes of a tree, nodes of a network and then their cores. Machines
//! without such an arrangement have distances only.

use super::Hierarchy;

/// The arrangement of the PEs of a machine. PEs are numbered from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A grid.
    Grid {
        /// For each dimension: the number of nodes, and whether it wraps.
        sizes: Vec<(usize, bool)>,
        /// The node of each PE, first dimension fastest. The distance of nodes is the number of links between them.
        nodes: Vec<u32>,
    },
    /// The leaves of a tree; pairs that meet at the same level have the same distance.
    Tree(Hierarchy),
    /// The leaves of a tree; lower levels are closer, but distances are not given by the level.
    Nested(Hierarchy),
    /// A network of nodes with `cores` cores each.
    Product {
        /// The arrangement of the nodes.
        network: Box<Shape>,
        /// The arrangement of the cores of a node.
        node: Box<Shape>,
        /// Cores per node.
        cores: usize,
        /// For each PE: node * `cores` + core.
        places: Vec<u32>,
    },
    /// No special arrangement.
    Any,
}

impl Shape {
    /// The coordinates of the node of a PE, if the machine (or the network of a product) is a grid.
    ///
    /// # Panics
    /// If the PE does not exist.
    pub fn position(&self, pe: usize) -> Option<Vec<usize>> {
        match self {
            Shape::Grid { sizes, nodes } => {
                let mut rest = nodes[pe] as usize;
                let coordinate = |&(size, _): &(usize, bool)| {
                    let coordinate = rest % size;
                    rest /= size;
                    coordinate
                };
                Some(sizes.iter().map(coordinate).collect())
            }
            Shape::Product { network, cores, places, .. } => network.position(places[pe] as usize / cores),
            Shape::Tree(_) | Shape::Nested(_) | Shape::Any => None,
        }
    }

    /// The arrangement after renumbering: the new PE `i` is the old PE `kept[i]`.
    pub fn keep(self, kept: &[u32]) -> Shape {
        let pick = |places: Vec<u32>| kept.iter().map(|&pe| places[pe as usize]).collect();
        match self {
            Shape::Grid { sizes, nodes } => Shape::Grid { sizes, nodes: pick(nodes) },
            Shape::Tree(tree) => Shape::Tree(tree.keep(kept)),
            Shape::Nested(tree) => Shape::Nested(tree.keep(kept)),
            Shape::Product { network, node, cores, places } => {
                Shape::Product { network, node, cores, places: pick(places) }
            }
            Shape::Any => Shape::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::parse;

    #[test]
    fn nodes_of_grids_have_coordinates_also_in_products_and_allocations() {
        let check = |spec: &str, pe: usize, expected: Option<&[usize]>| {
            let found = parse(spec).expect("a machine").shape().position(pe);
            assert_eq!(found.as_deref(), expected, "{spec}");
        };
        check("torus:4x3x2", 17, Some(&[1, 1, 1]));
        check("mesh:4x3[7,0]", 0, Some(&[3, 1]));
        check("torus:4x3*tree:2:2", 21, Some(&[1, 1]));
        check("(torus:4x3[6,5]*flat:2)[3,0]", 0, Some(&[1, 1]));
        check("hypercube:3", 6, Some(&[0, 1, 1]));
        check("tree:2:4", 3, None);
        check("flat:4*torus:2x2", 3, None);
    }
}
