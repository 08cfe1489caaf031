//! How the PEs of a machine lie, for those who cut it into pieces.
//!
//! A mapper that halves a machine again and again needs pieces that are compact, and distances between pieces that
//! are cheap. Both follow from the shape: boxes of a grid, runs of nodes of a tree, nodes of a network and then
//! their cores. What has no shape is known by its distances only.

use super::Hierarchy;

/// How the PEs of a machine lie. PEs are told by their numbers, from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// On a grid.
    Grid {
        /// By dimension: how many nodes there are along it, and whether its ends are linked.
        sizes: Vec<(usize, bool)>,
        /// By PE: the number of its node, first dimension fastest. Distances are the links between nodes.
        nodes: Vec<u32>,
    },
    /// At the leaves of a tree, where all pairs that meet at a level are equally far apart.
    Tree(Hierarchy),
    /// At the leaves of a tree that says who is close, and not how close.
    Nested(Hierarchy),
    /// In the nodes of a network: PE `i` is number `places[i]` of `cores` times as many as the network has.
    Product {
        /// How the nodes lie.
        network: Box<Shape>,
        /// How the cores of a node lie.
        node: Box<Shape>,
        /// Cores per node.
        cores: usize,
        /// By PE: its node times `cores` plus its core.
        places: Vec<u32>,
    },
    /// Anyhow.
    Any,
}

impl Shape {
    /// The coordinates of a PE's node, where the machine, or the network of a product, is a grid.
    ///
    /// # Panics
    /// When there is no such PE.
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

    /// The shape of a machine whose PE `i` was PE `kept[i]` of this one.
    pub(crate) fn keep(self, kept: &[u32]) -> Shape {
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
    fn nodes_of_grids_have_coordinates_in_products_and_allocations_too() {
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
