//! The spanning tree of PEs, rooted at PE 0, along which broadcasts go where PEs share no memory.

/// The branching factor of the tree; the same as in Charm++'s spanning trees.
const BRANCHES: u64 = 4;

/// The children of `pe` in the tree of `pes` PEs.
pub(crate) fn children(pe: u32, pes: u32) -> impl Iterator<Item = u32> {
    let first = u64::from(pe) * BRANCHES + 1;
    (first..first + BRANCHES).take_while(move |&child| child < u64::from(pes)).map(|child| child as u32)
}

#[cfg(test)]
mod tests {
    use super::children;

    #[test]
    fn every_pe_but_the_root_has_one_parent() {
        for pes in [1, 2, 5, 6, 100] {
            let mut reached: Vec<u32> = (0..pes).flat_map(|pe| children(pe, pes)).collect();
            reached.sort_unstable();
            assert_eq!(reached, (1..pes).collect::<Vec<_>>());
        }
        assert_eq!(children(u32::MAX - 1, u32::MAX).count(), 0);
    }
}
