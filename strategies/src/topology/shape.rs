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
