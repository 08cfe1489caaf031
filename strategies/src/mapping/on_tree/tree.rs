//! The trees that TreeMatch maps to: trees of machines, and fake trees for a number of chares.

use equipoise_model::Database;
use equipoise_model::graph::Graph;
pub(in crate::mapping) use equipoise_model::topology::prime_factors;
use equipoise_model::topology::{Hierarchy, Topology};

/// The tree of a machine, and the availability of its leaves.
pub(in crate::mapping) struct Machine {
    /// The tree; its leaves are the PEs.
    pub(in crate::mapping) tree: Hierarchy,
    /// Whether the PE on each leaf may take objects.
    pub(in crate::mapping) is_free: Vec<bool>,
    leaf_of_pe: Vec<u32>,
}

impl Machine {
    /// The tree of a machine, with the PEs of `database` that are available.
    ///
    /// A machine that is not built as a tree (a grid, a graph) gets a tree [by number](Hierarchy::by_number).
    pub(in crate::mapping) fn of(topology: &dyn Topology, database: &Database) -> Self {
        let tree = topology.hierarchy().unwrap_or_else(|| Hierarchy::by_number(topology.pes()));
        let mut leaf_of_pe = vec![0; topology.pes()];
        for (&pe, leaf) in tree.leaves().iter().zip(0..) {
            leaf_of_pe[pe as usize] = leaf;
        }
        let is_free = tree.leaves().iter().map(|&pe| database.pes[pe as usize].available).collect();
        Machine { tree, is_free, leaf_of_pe }
    }

    /// Makes only the leaves of these PEs free.
    pub(in crate::mapping) fn restrict_to(&mut self, pes: &[u32]) {
        self.is_free.fill(false);
        for leaf in self.leaves_of(pes) {
            self.is_free[leaf as usize] = true;
        }
    }

    /// The leaves of PEs.
    pub(in crate::mapping) fn leaves_of(&self, pes: &[u32]) -> Vec<u32> {
        pes.iter().map(|&pe| self.leaf_of_pe[pe as usize]).collect()
    }

    /// The PEs of leaves.
    pub(in crate::mapping) fn pes_of(&self, leaves: &[u32]) -> Vec<u32> {
        leaves.iter().map(|&leaf| self.tree.leaves()[leaf as usize]).collect()
    }
}

/// The smallest number of the form 2^a 3^b that is at least `number`.
pub(in crate::mapping) fn three_smooth(number: usize) -> usize {
    let powers_of_3 = std::iter::successors(Some(1usize), |power| power.checked_mul(3));
    let up_to = number.saturating_mul(3);
    let rounded_up = |power: usize| power * number.div_ceil(power).next_power_of_two();
    powers_of_3.take_while(|&power| power <= up_to).map(rounded_up).min().unwrap_or(1)
}

/// A fake tree, and whether each of its leaves may be used: one leaf per chare may.
///
/// Section V.B of the 2013 paper: the number of leaves is 2^a 3^b, so that groups stay small. Surplus leaves are
/// constraints, spread evenly over the smallest subtrees.
pub(in crate::mapping) fn fake(chares: usize) -> (Hierarchy, Vec<bool>) {
    let leaves = three_smooth(chares);
    let arities = prime_factors(leaves);
    let smallest = arities.last().copied().unwrap_or(1);
    let (subtrees, surplus) = (leaves / smallest, leaves - chares);
    let mut is_free = vec![true; leaves];
    for subtree in 0..subtrees {
        let constraints = (subtree + 1) * surplus / subtrees - subtree * surplus / subtrees;
        let end = (subtree + 1) * smallest;
        is_free[end - constraints..end].fill(false);
    }
    (Hierarchy::balanced(&arities), is_free)
}

/// The nodes of a tree above each of its leaves.
pub(in crate::mapping) struct Levels {
    /// By level below the root: the node above each leaf.
    node_of_leaf: Vec<Vec<u32>>,
}

impl Levels {
    /// The levels of a tree.
    pub(in crate::mapping) fn of(tree: &Hierarchy) -> Self {
        let nodes = |level| (0..).zip(tree.nodes(level)).flat_map(|(node, leaves)| leaves.map(move |_| node));
        Levels { node_of_leaf: (1..=tree.depth()).map(|level| nodes(level).collect()).collect() }
    }

    /// The weight of edges between different nodes, summed over the levels, with vertex `v` of the graph on
    /// leaf `leaf_of[v]`.
    pub(in crate::mapping) fn cut(&self, graph: &Graph, leaf_of: &[u32]) -> u128 {
        let cut = |node_of_leaf: &Vec<u32>| {
            let node = |v: u32| node_of_leaf[leaf_of[v as usize] as usize];
            let apart = graph.pairs().filter(|&(a, b, _)| node(a) != node(b));
            apart.map(|(.., weight)| u128::from(weight)).sum::<u128>()
        };
        self.node_of_leaf.iter().map(cut).sum()
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology::parse;

    use super::*;
    use crate::testing::database;

    #[test]
    fn three_smooth_rounds_up_to_the_next_2_to_the_a_3_to_the_b() {
        let numbers = [0, 1, 2, 3, 4, 5, 7, 9, 10, 13, 17, 25, 28, 55, 65, 73, 110, 961];
        let expected = [1, 1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 27, 32, 64, 72, 81, 128, 972];
        assert_eq!(numbers.map(three_smooth), expected);
        for number in 1..3000 {
            let smooth = three_smooth(number);
            let is_smooth = |n: &usize| prime_factors(*n).iter().all(|&factor| factor <= 3);
            assert_eq!((number..).find(is_smooth), Some(smooth));
        }
    }

    #[test]
    fn fifty_five_chares_get_64_leaves_with_9_constraints_spread_evenly() {
        let (tree, is_free) = fake(55);
        assert_eq!(tree.arities(), Some(vec![2; 6]));
        assert_eq!(is_free.iter().filter(|&&free| free).count(), 55);
        let constraints: Vec<usize> = (0..64).filter(|&leaf| !is_free[leaf]).collect();
        assert_eq!(constraints, [7, 15, 21, 29, 35, 43, 49, 57, 63]);
    }

    #[test]
    fn every_fake_tree_has_a_leaf_for_every_chare() {
        for chares in 0..500 {
            let (tree, is_free) = fake(chares);
            assert_eq!(tree.leaves().len(), is_free.len());
            assert_eq!(is_free.iter().filter(|&&free| free).count(), chares);
        }
    }

    #[test]
    fn machines_without_a_tree_get_one_by_number() {
        let arities = |spec: &str| {
            let topology = parse(spec).expect(spec);
            Machine::of(&*topology, &database(topology.pes(), &[])).tree.arities()
        };
        assert_eq!(arities("tree:8:2:4"), Some(vec![8, 2, 4]));
        assert_eq!(arities("torus:4x6"), Some(vec![2, 2, 2, 3]));
        assert_eq!(arities("torus:1"), Some(vec![]));
    }

    #[test]
    fn an_edge_through_the_root_is_cut_at_every_level() {
        let levels = Levels::of(&Hierarchy::balanced(&[2, 2]));
        let graph = Graph::new(4, [(0, 1, 1), (0, 2, 10), (1, 3, 100)]);
        assert_eq!(levels.cut(&graph, &[0, 1, 2, 3]), 1 + 20 + 200);
        assert_eq!(levels.cut(&graph, &[0, 2, 1, 3]), 2 + 10 + 100);
    }
}
