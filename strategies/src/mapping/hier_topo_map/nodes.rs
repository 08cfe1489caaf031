//! A machine as nodes with PEs.

use equipoise_model::topology::{Hierarchy, Shape, Topology};

use super::Inter;
use super::coordinates::bipartition;
use super::joining::join;
use super::tree::Tree;
use crate::strategy::StrategyError;

/// The nodes of a machine that have available PEs.
pub struct Nodes<'a> {
    topology: &'a dyn Topology,
    /// By node: its available PEs, in the order of the leaves of its tree from left to right.
    pub pes: Vec<Vec<u32>>,
    /// By node: the tree of these PEs; its places are indices into the list of PEs of the node.
    pub inside: Vec<Tree>,
    /// By node: its first PE.
    first: Vec<u32>,
    /// The network between the nodes.
    network: Network,
}

/// The network between nodes.
enum Network {
    /// A tree of the machine, with nodes as places.
    Tree(Tree),
    /// A grid: its sizes, and the grid position of every node.
    Grid(Vec<usize>, Vec<u32>),
    /// A network of which only the distances are known.
    Distances,
}

impl<'a> Nodes<'a> {
    /// The nodes with the PEs `available`, which are ascending. A node is the right part of a product, a subtree of a tree,
    /// or else a single PE.
    ///
    /// # Errors
    /// If neighbor joining fails for the PEs of a node.
    pub fn of(topology: &'a dyn Topology, available: &[u32]) -> Result<Self, StrategyError> {
        match topology.shape() {
            Shape::Product { network, node, cores, places } => {
                let mut pes: Vec<(u32, Vec<u32>)> = Vec::new();
                let mut sorted = available.to_vec();
                sorted.sort_unstable_by_key(|&pe| places[pe as usize]);
                for pe in sorted {
                    let of = places[pe as usize] / cores as u32;
                    match pes.last_mut() {
                        Some((last, pes)) if *last == of => pes.push(pe),
                        _ => pes.push((of, vec![pe])),
                    }
                }
                let core = |pe: u32| places[pe as usize] as usize % cores;
                let inside = pes
                    .iter()
                    .map(|(_, pes)| inside(topology, &node, pes, core))
                    .collect::<Result<_, _>>()?;
                let (numbers, pes): (Vec<u32>, Vec<Vec<u32>>) = pes.into_iter().unzip();
                let network = Network::of(&network, &numbers);
                Ok(Nodes::new(topology, pes, inside, network))
            }
            Shape::Tree(tree) | Shape::Nested(tree) => Ok(Nodes::of_tree(topology, &tree, available)),
            shape @ (Shape::Grid { .. } | Shape::Any) => {
                let network = Network::of(&shape, available);
                let pes = available.iter().map(|&pe| vec![pe]).collect();
                Ok(Nodes::new(topology, pes, available.iter().map(|_| single_pe()).collect(), network))
            }
        }
    }

    fn new(topology: &'a dyn Topology, pes: Vec<Vec<u32>>, inside: Vec<Tree>, network: Network) -> Self {
        let first = pes.iter().map(|pes| pes[0]).collect();
        Nodes { topology, pes, inside, first, network }
    }

    fn of_tree(topology: &'a dyn Topology, tree: &Hierarchy, available: &[u32]) -> Self {
        let mut is_available = vec![false; topology.pes()];
        available.iter().for_each(|&pe| is_available[pe as usize] = true);
        let pe = |leaf: usize| Some(tree.leaves()[leaf]).filter(|&pe| is_available[pe as usize]);
        let level = tree.node_level();
        let (mut inside, mut number) = (Vec::new(), Vec::new());
        for node in 0..tree.nodes(level).len() {
            let below = Tree::of(tree, (level, node), tree.depth(), &pe);
            number.push(below.is_some().then_some(inside.len() as u32));
            inside.extend(below);
        }
        let network = Tree::of(tree, (0, 0), level, &|node| number[node]).unwrap_or_default();
        let pes = inside.iter().map(Tree::places).collect();
        let inside = inside.iter().map(Tree::numbered).collect();
        Nodes::new(topology, pes, inside, Network::Tree(network))
    }

    /// The tree of the PEs of a node, with PEs as places.
    pub(super) fn pes_below(&self, node: u32) -> Tree {
        let mut tree = Tree::default();
        tree.graft(&self.inside[node as usize], |place| self.pes[node as usize][place as usize]);
        tree
    }

    /// Whether all nodes have the same number of PEs.
    pub fn are_alike(&self) -> bool {
        self.pes.iter().all(|pes| pes.len() == self.pes[0].len())
    }

    /// Writes the distances from a node to all nodes to `row`.
    pub fn distances_from(&self, node: usize, row: &mut [u32]) {
        self.topology.distances_to(self.first[node] as usize, &self.first, row);
    }

    /// The tree of the nodes; its places are indices into [`Nodes::pes`].
    ///
    /// # Errors
    /// If `inter` needs coordinates and there are none, or there are too many nodes for neighbor joining.
    pub fn tree(&self, inter: Inter) -> Result<Tree, StrategyError> {
        match (inter, &self.network) {
            (Inter::Auto | Inter::Bipart, Network::Grid(sizes, numbers)) => Ok(bipartition(sizes, numbers)),
            (Inter::Auto | Inter::Tree, Network::Tree(tree)) => Ok(tree.clone()),
            (Inter::Bipart, _) => Err(StrategyError::Request(format!(
                "HierTopoMap:inter=bipart needs coordinates, and the nodes of `{}` have none; use inter=tree",
                self.topology.spec()
            ))),
            (Inter::Auto | Inter::Tree, _) => {
                join(self.pes.len(), |node, row| self.distances_from(node, row)).map_err(|error| {
                    let remedy = "use inter=bipart on a grid, or a machine described as a tree";
                    StrategyError::Request(format!(
                        "HierTopoMap on `{}`: {error}; {remedy}",
                        self.topology.spec()
                    ))
                })
            }
        }
    }
}

impl Network {
    /// The network between the nodes `numbers` of a machine.
    fn of(network: &Shape, numbers: &[u32]) -> Self {
        match network {
            Shape::Grid { sizes, nodes } => {
                let sizes = sizes.iter().map(|&(size, _)| size).collect();
                Network::Grid(sizes, numbers.iter().map(|&number| nodes[number as usize]).collect())
            }
            Shape::Tree(tree) | Shape::Nested(tree) => {
                let mut place = vec![None; tree.leaves().len()];
                numbers.iter().zip(0..).for_each(|(&number, node)| place[number as usize] = Some(node));
                let place_of = |leaf: usize| place[tree.leaves()[leaf] as usize];
                Network::Tree(Tree::of(tree, (0, 0), tree.depth(), &place_of).unwrap_or_default())
            }
            Shape::Product { .. } | Shape::Any => Network::Distances,
        }
    }
}

/// The tree of a single PE.
fn single_pe() -> Tree {
    let mut tree = Tree::default();
    tree.leaf(0);
    tree
}

/// The tree of the PEs of a node; `core` gives the position of a PE in `node`.
fn inside(
    topology: &dyn Topology,
    node: &Shape,
    pes: &[u32],
    core: impl Fn(u32) -> usize,
) -> Result<Tree, StrategyError> {
    if let Shape::Tree(tree) | Shape::Nested(tree) = node {
        let place = |leaf: usize| pes.iter().position(|&pe| core(pe) == tree.leaves()[leaf] as usize);
        let place = |leaf: usize| place(leaf).map(|place| place as u32);
        return Ok(Tree::of(tree, (0, 0), tree.depth(), &place).unwrap_or_default());
    }
    let row = |pe: usize, row: &mut [u32]| topology.distances_to(pes[pe] as usize, pes, row);
    join(pes.len(), row).map_err(|error| {
        StrategyError::Request(format!("HierTopoMap inside the nodes of `{}`: {error}", topology.spec()))
    })
}
