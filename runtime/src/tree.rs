//! The spanning tree of PEs, rooted at PE 0: orders for every PE go down, reductions and statistics go up.
//!
//! The tree has two levels: processes form a tree that branches four ways, and the first PE of a process is the
//! parent of the other PEs of the process. So an order reaches a process once. Threads are PEs of one process. Simulated
//! PEs share no memory, so each counts as a process.

use std::iter::successors;

/// The branching factor of the tree of processes.
const BRANCHES: u64 = 4;

/// The tree of a run. The children of process `p` are the processes `4 p + 1` to `4 p + 4`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    processes: u64,
    /// The number of PEs of each process.
    local: u64,
}

impl Tree {
    /// The tree of `processes` processes with `local` PEs each.
    pub(crate) fn new(processes: u32, local: u32) -> Self {
        Tree { processes: u64::from(processes), local: u64::from(local) }
    }

    /// The parent of a PE. PE 0 is its own parent.
    pub(crate) fn parent(self, pe: u32) -> u32 {
        let (process, first) = self.process(pe);
        if u64::from(pe) != first {
            return first as u32;
        }
        (process.saturating_sub(1) / BRANCHES * self.local) as u32
    }

    /// The process of a PE, and the first PE of this process.
    fn process(self, pe: u32) -> (u64, u64) {
        let process = u64::from(pe) / self.local;
        (process, process * self.local)
    }

    /// The children of a PE: first those in other processes, whose messages take longest.
    pub(crate) fn children(self, pe: u32) -> impl Iterator<Item = u32> {
        let (process, first) = self.process(pe);
        let is_first = u64::from(pe) == first;
        let below = process * BRANCHES + 1;
        let others = if is_first { below..self.processes.min(below + BRANCHES) } else { 0..0 };
        let mates = if is_first { first + 1..first + self.local } else { 0..0 };
        others.map(move |process| process * self.local).chain(mates).map(|child| child as u32)
    }

    /// The number of PEs in the subtree of a PE, including itself.
    pub(crate) fn size(self, pe: u32) -> usize {
        let (process, first) = self.process(pe);
        if u64::from(pe) != first {
            return 1;
        }
        // The processes of each level of the subtree are consecutive.
        let levels = successors(Some((process, process)), |&(first, last)| {
            Some((first.saturating_mul(BRANCHES).saturating_add(1), (last + 1).saturating_mul(BRANCHES)))
        });
        let inside = levels.take_while(|&(first, _)| first < self.processes);
        let processes: u64 = inside.map(|(first, last)| last.min(self.processes - 1) - first + 1).sum();
        (processes * self.local) as usize
    }

    /// Splits a list that has an entry for each of some other PEs, in ascending order of the PEs: into the parts that `pe` sends
    /// on. A part goes to its first PE, which splits the rest of it in turn. A process is entered once.
    pub(crate) fn parts<V>(self, pe: u32, all: Vec<(u32, V)>) -> Vec<Vec<(u32, V)>> {
        let here = self.process(pe).0;
        let mut processes = Vec::<Vec<(u32, V)>>::new();
        let mut mates = Vec::new();
        for entry in all {
            let process = self.process(entry.0).0;
            match processes.last_mut() {
                _ if process == here => mates.push(vec![entry]),
                Some(last) if self.process(last[0].0).0 == process => last.push(entry),
                _ => processes.push(vec![entry]),
            }
        }
        let each = processes.len().div_ceil(BRANCHES as usize).max(1);
        let mut parts = Vec::new();
        while !processes.is_empty() {
            let rest = processes.split_off(each.min(processes.len()));
            parts.push(processes.into_iter().flatten().collect());
            processes = rest;
        }
        parts.extend(mates);
        parts
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
        let shapes = [1, 2, 5, 6, 22, 100].into_iter().flat_map(|processes| [(processes, 1), (processes, 3)]);
        for (processes, local) in shapes.chain([(1, 100)]) {
            let (tree, pes) = (Tree::new(processes, local), processes * local);
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
    fn every_process_is_entered_once() {
        let tree = Tree::new(30, 4);
        let entries = (1..120).filter(|&pe| tree.parent(pe) / 4 != pe / 4);
        assert_eq!(entries.count(), 29);
    }

    #[test]
    fn a_list_of_pes_is_split_until_each_has_its_part() {
        fn reach(tree: Tree, pe: u32, list: Vec<(u32, u32)>, reached: &mut Vec<(u32, u32)>) -> usize {
            let parts = tree.parts(pe, list);
            assert!(parts.iter().filter(|part| part[0].0 / 3 != pe / 3).count() <= 4);
            let depths = parts.into_iter().map(|mut part| {
                let rest = part.split_off(1);
                reached.push(part[0]);
                1 + reach(tree, part[0].0, rest, reached)
            });
            depths.max().unwrap_or(0)
        }
        let list: Vec<(u32, u32)> =
            (0..300).filter(|pe| pe % 7 != 2 && *pe != 100).map(|pe| (pe, pe)).collect();
        let mut reached = Vec::new();
        let depth = reach(Tree::new(100, 3), 100, list.clone(), &mut reached);
        reached.sort_unstable();
        assert_eq!((reached, depth), (list, 5));
    }

    #[test]
    fn the_largest_trees_do_not_overflow() {
        for (processes, local) in [(u32::MAX, 1), (1, u32::MAX)] {
            let tree = Tree::new(processes, local);
            assert_eq!(tree.size(0), u32::MAX as usize);
            assert_eq!((tree.children(u32::MAX - 1).count(), tree.size(u32::MAX - 1)), (0, 1));
        }
    }
}
