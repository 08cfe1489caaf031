//! The tree whose leaves are the PEs of a machine.
//!
//! TreeMatch and related mappers (E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, 2013) use only this tree:
//! the level at which two PEs meet. All leaves have the same depth; nodes of a level may have different numbers of
//! children, as in an allocation with holes.

use std::ops::Range;

/// A rooted tree whose leaves are the PEs of a machine.
///
/// The root is level 0, the leaves are level [`depth`](Hierarchy::depth). Nodes of a level are numbered from left to
/// right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// The PE of each leaf, from left to right.
    leaves: Vec<u32>,
    /// For each level: the first leaf of each node, and finally the number of leaves.
    starts: Vec<Vec<u32>>,
    /// The level of the cluster nodes.
    node_level: usize,
}

impl Hierarchy {
    /// The tree in which nodes of level `l` have `arities[l]` children, and PE `i` is leaf `i`.
    ///
    /// # Panics
    /// If there are more than 2^32-1 leaves.
    pub fn balanced(arities: &[usize]) -> Self {
        let count = arities.iter().product::<usize>();
        let leaves: Vec<u32> = (0..u32::try_from(count).expect("leaves fit 32 bits")).collect();
        let mut below = count;
        let mut starts = vec![vec![0, count as u32]];
        for arity in arities {
            below /= arity.max(&1);
            starts.push((0..=count as u32).step_by(below.max(1)).collect());
        }
        Hierarchy { leaves, starts, node_level: 1 }
    }

    /// The tree with these leaves; `starts` has for each level, from the root, the first leaf of each node, and finally
    /// the number of leaves.
    pub fn new(leaves: Vec<u32>, starts: Vec<Vec<u32>>) -> Self {
        Hierarchy { leaves, starts, node_level: 1 }
    }

    /// A tree for PEs without a tree structure, such as a grid: the arities are the prime factors of the number of PEs,
    /// so PEs with close numbers are close, as on grids.
    pub fn by_number(pes: usize) -> Self {
        Hierarchy::balanced(&prime_factors(pes))
    }

    /// The number of levels below the root.
    pub fn depth(&self) -> usize {
        self.starts.len() - 1
    }

    /// The level of the cluster nodes, which have several PEs each: in a product, the level where its parts meet,
    /// otherwise 1. If these nodes are single PEs, the level is 0, so that all PEs form one node.
    pub fn node_level(&self) -> usize {
        let level = self.node_level.min(self.depth());
        if self.nodes(level).any(|node| node.len() > 1) { level } else { 0 }
    }

    /// The PE of each leaf, from left to right.
    pub fn leaves(&self) -> &[u32] {
        &self.leaves
    }

    /// The nodes of a level, from left to right, as ranges of positions in [`leaves`](Hierarchy::leaves).
    ///
    /// # Panics
    /// If the level does not exist.
    pub fn nodes(&self, level: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
        self.starts[level].windows(2).map(|bounds| bounds[0] as usize..bounds[1] as usize)
    }

    /// By PE: the number of the part that is closest above nodes, where PE `p` is in node `node_of(p)`: at the deepest level with a part of
    /// several nodes. `None` if there is no such level below the root.
    pub(super) fn closest_parts(&self, node_of: impl Fn(usize) -> usize) -> Option<Vec<u32>> {
        let has_several = |range: Range<usize>| {
            let first = node_of(self.leaves[range.start] as usize);
            self.leaves[range].iter().any(|&pe| node_of(pe as usize) != first)
        };
        let level = (1..self.depth()).rev().find(|&level| self.nodes(level).any(has_several))?;
        let mut part_of = vec![0; self.leaves.len()];
        for (part, range) in (0..).zip(self.nodes(level)) {
            self.leaves[range].iter().for_each(|&pe| part_of[pe as usize] = part);
        }
        Some(part_of)
    }

    /// The children of a node, as node numbers of the next level.
    ///
    /// # Panics
    /// If the node does not exist or is a leaf.
    pub fn children(&self, level: usize, node: usize) -> Range<usize> {
        let next = &self.starts[level + 1];
        let position = |leaf: u32| next.partition_point(|&start| start < leaf);
        position(self.starts[level][node])..position(self.starts[level][node + 1])
    }

    /// The arities of all levels, from the root; `None` if nodes of a level differ.
    ///
    /// If there are arities, leaf `i` is PE `leaves()[i]`.
    pub fn arities(&self) -> Option<Vec<usize>> {
        let same = |level: usize| {
            let nodes = self.starts[level].len() - 1;
            let arity = self.children(level, 0).len();
            (1..nodes).all(|node| self.children(level, node).len() == arity).then_some(arity)
        };
        (0..self.depth()).map(same).collect()
    }

    /// This tree with `inner` below each leaf: PE `p` of this tree is replaced by as many PEs as `inner` has leaves.
    pub(super) fn over(&self, inner: &Hierarchy) -> Self {
        let size = inner.leaves.len() as u32;
        let leaves = self.leaves.iter().flat_map(|&p| inner.leaves.iter().map(move |&q| p * size + q));
        let outside = self.starts.iter().map(|starts| starts.iter().map(|start| start * size).collect());
        let end = self.leaves.len() as u32 * size;
        let inside = inner.starts[1..].iter().map(|starts| {
            let within = &starts[..starts.len() - 1];
            let begins = (0..end).step_by(size as usize);
            begins.flat_map(|begin| within.iter().map(move |start| begin + start)).chain([end]).collect()
        });
        Hierarchy {
            leaves: leaves.collect(),
            starts: outside.chain(inside).collect(),
            node_level: self.depth(),
        }
    }

    /// The tree after renumbering: the new PE `i` is the old PE `kept[i]`. Other leaves, and nodes without leaves, are
    /// removed.
    pub(super) fn keep(&self, kept: &[u32]) -> Self {
        let mut renamed = vec![u32::MAX; self.leaves.len()];
        for (&old, new) in kept.iter().zip(0..) {
            renamed[old as usize] = new;
        }
        let (mut leaves, mut before) = (Vec::with_capacity(kept.len()), vec![0]);
        for &leaf in &self.leaves {
            let new = renamed[leaf as usize];
            leaves.extend((new != u32::MAX).then_some(new));
            before.push(leaves.len() as u32);
        }
        let thin = |starts: &Vec<u32>| {
            let mut starts: Vec<u32> = starts.iter().map(|&start| before[start as usize]).collect();
            starts.dedup();
            starts
        };
        Hierarchy { starts: self.starts.iter().map(thin).collect(), leaves, node_level: self.node_level }
    }
}

/// The prime factors of a number in ascending order: 100 gives 2, 2, 5, 5; 0 and 1 give none.
pub fn prime_factors(mut number: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    let mut factor = 2;
    while factor * factor <= number {
        while number % factor == 0 {
            factors.push(factor);
            number /= factor;
        }
        factor += 1;
    }
    if number > 1 {
        factors.push(number);
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The PEs below each node of each level, as in `0 1 | 2 3`.
    fn levels(tree: &Hierarchy) -> Vec<String> {
        let below = |node: Range<usize>| {
            let pes: Vec<String> = tree.leaves()[node].iter().map(u32::to_string).collect();
            pes.join(" ")
        };
        (0..=tree.depth()).map(|level| tree.nodes(level).map(below).collect::<Vec<_>>().join(" | ")).collect()
    }

    #[test]
    fn a_balanced_tree_has_the_given_arities() {
        let tree = Hierarchy::balanced(&[2, 3]);
        assert_eq!(levels(&tree), ["0 1 2 3 4 5", "0 1 2 | 3 4 5", "0 | 1 | 2 | 3 | 4 | 5"]);
        assert_eq!(tree.arities(), Some(vec![2, 3]));
        assert_eq!((tree.children(0, 0), tree.children(1, 1)), (0..2, 3..6));
        assert_eq!(Hierarchy::balanced(&[1, 4, 1]).arities(), Some(vec![1, 4, 1]));
        assert_eq!(levels(&Hierarchy::balanced(&[1])), ["0", "0"]);
    }

    #[test]
    fn finds_prime_factors() {
        let check = |number, expected: &[usize]| assert_eq!(prime_factors(number), expected, "{number}");
        check(0, &[]);
        check(1, &[]);
        check(100, &[2, 2, 5, 5]);
        check(110, &[2, 5, 11]);
        check(960, &[2, 2, 2, 2, 2, 2, 3, 5]);
        check(997, &[997]);
    }

    #[test]
    fn the_node_level_is_where_the_parts_of_a_product_meet() {
        let balanced = Hierarchy::balanced;
        let check = |tree: Hierarchy, level| assert_eq!(tree.node_level(), level, "{tree:?}");
        check(balanced(&[8, 2, 4]), 1);
        check(balanced(&[8]), 0);
        check(balanced(&[]), 0);
        check(balanced(&[2, 3]).over(&balanced(&[2, 4])), 2);
        check(balanced(&[2, 3]).over(&balanced(&[2])).keep(&[0, 1, 6]), 2);
        check(balanced(&[2, 3]).over(&balanced(&[2])).keep(&[0, 3, 6]), 0);
        check(balanced(&[2]).over(&balanced(&[2]).over(&balanced(&[2]))), 1);
        check(Hierarchy::by_number(36).over(&balanced(&[4])), 4);
    }

    #[test]
    fn combines_balanced_trees() {
        let both = Hierarchy::balanced(&[2]).over(&Hierarchy::balanced(&[2, 2]));
        assert_eq!(both, Hierarchy::balanced(&[2, 2, 2]));
        assert_eq!(both.over(&Hierarchy::balanced(&[2])).arities(), Some(vec![2; 4]));
    }

    #[test]
    fn keep_removes_leaves_and_empty_nodes() {
        let tree = Hierarchy::balanced(&[3, 2, 2]).keep(&[10, 0, 1, 2]);
        assert_eq!(levels(&tree), ["1 2 3 0", "1 2 3 | 0", "1 2 | 3 | 0", "1 | 2 | 3 | 0"]);
        assert_eq!(tree.arities(), None);
        assert_eq!(Hierarchy::balanced(&[3, 2]).keep(&[4, 5, 0, 1]).arities(), Some(vec![2, 2]));
    }

    #[test]
    fn combines_uneven_trees() {
        let uneven = Hierarchy::balanced(&[2, 2]).keep(&[0, 1, 2]);
        let both = uneven.over(&uneven);
        assert_eq!(
            levels(&both)[1..4],
            ["0 1 2 3 4 5 | 6 7 8", "0 1 2 | 3 4 5 | 6 7 8", "0 1 | 2 | 3 4 | 5 | 6 7 | 8"]
        );
    }
}
