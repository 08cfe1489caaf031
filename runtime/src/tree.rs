//! The spanning tree of PEs, rooted at PE 0: orders for every PE go down, reductions and statistics go up.

use std::iter::successors;

/// The branching factor where PEs share no memory.
const BRANCHES: u64 = 4;

/// The tree of a run. The children of PE `p` are the PEs `b p + 1` to `b p + b`, where `b` is the branching factor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    pes: u64,
    branches: u64,
}

impl Tree {
    /// The tree of `pes` PEs. Where they share memory, PE 0 is the parent of all others: PE 0 fills a mailbox faster than a
    /// message takes a second hop.
    pub(crate) fn new(pes: u32, share_memory: bool) -> Self {
        let pes = u64::from(pes);
        Tree { pes, branches: if share_memory { pes } else { BRANCHES } }
    }

    /// The parent of a PE. PE 0 is its own parent.
    pub(crate) fn parent(self, pe: u32) -> u32 {
        (u64::from(pe).saturating_sub(1) / self.branches) as u32
    }

    /// The children of a PE.
    pub(crate) fn children(self, pe: u32) -> impl Iterator<Item = u32> {
        let first = u64::from(pe) * self.branches + 1;
        (first..self.pes.min(first + self.branches)).map(|child| child as u32)
    }

    /// The number of PEs in the subtree of a PE, including itself.
    pub(crate) fn size(self, pe: u32) -> usize {
        // The ranks of each level of the subtree are consecutive.
        let levels = successors(Some((u64::from(pe), u64::from(pe))), |&(first, last)| {
            Some((
                first.saturating_mul(self.branches).saturating_add(1),
                (last + 1).saturating_mul(self.branches),
            ))
        });
        let inside = levels.take_while(|&(first, _)| first < self.pes);
        inside.map(|(first, last)| (last.min(self.pes - 1) - first + 1) as usize).sum()
    }

    /// The child of `pe` on the path to its descendant `below`.
    pub(crate) fn toward(self, pe: u32, below: u32) -> u32 {
        let mut at = below;
        while self.parent(at) != pe {
            at = self.parent(at);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pe_but_the_root_is_below_its_parent() {
        for (pes, share_memory) in
            [1, 2, 5, 6, 22, 100].into_iter().flat_map(|pes| [(pes, true), (pes, false)])
        {
            let tree = Tree::new(pes, share_memory);
            let mut reached: Vec<u32> = (0..pes).flat_map(|pe| tree.children(pe)).collect();
            reached.sort_unstable();
            assert_eq!(reached, (1..pes).collect::<Vec<_>>());
            for pe in 0..pes {
                assert!(tree.children(pe).all(|child| tree.parent(child) == pe));
                let below: usize = tree.children(pe).map(|child| tree.size(child)).sum();
                assert_eq!(tree.size(pe), 1 + below, "PE {pe} of {pes}");
            }
            for below in 1..pes {
                assert!(tree.children(0).any(|child| child == tree.toward(0, below)));
                assert_eq!(tree.toward(tree.parent(below), below), below);
            }
        }
    }

    #[test]
    fn the_largest_trees_do_not_overflow() {
        for share_memory in [true, false] {
            let tree = Tree::new(u32::MAX, share_memory);
            assert_eq!(tree.size(0), u32::MAX as usize);
            assert_eq!((tree.children(u32::MAX - 1).count(), tree.size(u32::MAX - 1)), (0, 1));
        }
    }
}
