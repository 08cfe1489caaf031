//! Neighbor joining: the tree of nodes of which only the distances are known.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers",
//! J. Supercomput. 71, 2015, section 3.1.1, after H. Subramoni et al., "Design of a scalable InfiniBand topology
//! service to enable network-topology-aware placement of processes", SC 2012. Again and again the nodes that are
//! closest to each other are joined under a new one, and its distances to the others are found; in the end
//! all are below one root. Of a fat tree that gives the switches, of a torus a binary tree (where rings have
//! an even number of nodes).
//!
//! The papers leave open what is joined where many are equally close, and what the distance of a new node is.
//! Here: of the closest pairs the first, and all further nodes in their order that are as close to every one of
//! those joined so far (not just to one of them, or a whole torus would be one star); the mean distance of the
//! nodes below the two, in exact arithmetic.
//!
//! Every row of the table of distances knows its least entry. What is joined is looked up in the others' rows,
//! and a row is searched anew only if what was its least is gone; so time is O(n^2) but for such rows, of which
//! there are few.

use super::tree::Tree;

/// The most nodes, for whose distances there is a table of 4 bytes a pair.
pub const MAX_NODES: usize = 1 << 13;

/// The tree of so many nodes; `distances_from` writes those of a node to all.
///
/// # Errors
/// Without a node, with more than [`MAX_NODES`], or when the distances of half of them to the others sum to more
/// than fits 32 bits; a sentence says so.
pub fn join(nodes: usize, mut distances_from: impl FnMut(usize, &mut [u32])) -> Result<Tree, String> {
    if nodes == 0 || nodes > MAX_NODES {
        return Err(format!("neighbor joining takes 1 to {MAX_NODES} nodes, and there are {nodes}"));
    }
    let mut sums = vec![0; nodes * nodes];
    let mut farthest = 0;
    for (node, row) in sums.chunks_exact_mut(nodes).enumerate() {
        distances_from(node, row);
        farthest = row.iter().copied().fold(farthest, u32::max);
    }
    let most = u64::from(farthest) * (nodes as u64 / 2) * (nodes as u64).div_ceil(2);
    if most > u64::from(u32::MAX) {
        return Err(format!(
            "the distances of {nodes} nodes, up to {farthest}, are too large to be added up"
        ));
    }
    let mut tree = Tree::default();
    let vertices = (0..nodes as u32).map(|node| tree.leaf(node)).collect();
    let active = (0..nodes as u32).collect();
    let mut joining =
        Joining { nodes, sums, sizes: vec![1; nodes], vertices, active, nearest: vec![None; nodes] };
    for node in 0..nodes {
        joining.search(node);
    }
    while joining.active.len() > 1 {
        joining.step(&mut tree);
    }
    Ok(tree)
}

/// What is left to be joined.
struct Joining {
    nodes: usize,
    /// Between any two of those that are left: the distances of the nodes below them, added up.
    sums: Vec<u32>,
    /// Nodes below each.
    sizes: Vec<u32>,
    /// The vertex of the tree that each is.
    vertices: Vec<u32>,
    /// Those that are left, ascending; each has the number of its lowest node.
    active: Vec<u32>,
    /// The closest of those after it, and the first of several; none of the last.
    nearest: Vec<Option<Near>>,
}

/// Another one, and how far it is: a fraction.
#[derive(Clone, Copy)]
struct Near {
    other: u32,
    sum: u32,
    pairs: u32,
}

impl Near {
    fn is_closer_than(&self, other: &Near) -> bool {
        u64::from(self.sum) * u64::from(other.pairs) < u64::from(other.sum) * u64::from(self.pairs)
    }

    fn is_as_close_as(&self, other: &Near) -> bool {
        u64::from(self.sum) * u64::from(other.pairs) == u64::from(other.sum) * u64::from(self.pairs)
    }
}

impl Joining {
    /// How far two are.
    fn near(&self, one: usize, other: usize) -> Near {
        let pairs = self.sizes[one] * self.sizes[other];
        Near { other: other as u32, sum: self.sums[one * self.nodes + other], pairs }
    }

    /// Finds the closest of those after one.
    fn search(&mut self, one: usize) {
        let after = self.active.partition_point(|&other| other as usize <= one);
        let closer = |best: Near, other: Near| if other.is_closer_than(&best) { other } else { best };
        let others = self.active[after..].iter().map(|&other| self.near(one, other as usize));
        self.nearest[one] = others.reduce(closer);
    }

    /// Joins those that are closest.
    fn step(&mut self, tree: &mut Tree) {
        let rows = self.active.iter().filter_map(|&one| Some((one, self.nearest[one as usize]?)));
        let closer =
            |best: (u32, Near), row: (u32, Near)| if row.1.is_closer_than(&best.1) { row } else { best };
        let Some((first, nearest)) = rows.reduce(closer) else { return };
        let mut joined = vec![first, nearest.other];
        let after = self.active.partition_point(|&other| other <= nearest.other);
        for &other in &self.active[after..] {
            let is_as_close = |&one: &u32| self.near(one as usize, other as usize).is_as_close_as(&nearest);
            if joined.iter().all(is_as_close) {
                joined.push(other);
            }
        }
        let keeper = first as usize;
        self.vertices[keeper] = tree.parent(joined.iter().map(|&one| self.vertices[one as usize]).collect());
        let gone = &joined[1..];
        self.active.retain(|one| gone.binary_search(one).is_err());
        let others: Vec<usize> =
            self.active.iter().map(|&one| one as usize).filter(|&one| one != keeper).collect();
        for &other in &others {
            let rest: u32 = gone.iter().map(|&one| self.sums[one as usize * self.nodes + other]).sum();
            self.sums[keeper * self.nodes + other] += rest;
            self.sums[other * self.nodes + keeper] += rest;
        }
        self.sizes[keeper] += gone.iter().map(|&one| self.sizes[one as usize]).sum::<u32>();
        self.search(keeper);
        for other in others {
            let Some(known) = self.nearest[other] else { continue };
            let is_gone = known.other == first || gone.binary_search(&known.other).is_ok();
            // A mean is not less than the least, so nothing else has become closer than it was; but what is new
            // may be as close and come first.
            if is_gone {
                self.search(other);
            } else if other < keeper {
                let new = self.near(other, keeper);
                if new.is_as_close_as(&known) && new.other < known.other {
                    self.nearest[other] = Some(new);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{self, Hierarchy};

    fn joined(spec: &str) -> Tree {
        let machine = topology::parse(spec).expect("a machine");
        join(machine.pes(), |node, row| machine.distances_from(node, row)).expect("it is small enough")
    }

    #[test]
    fn fat_trees_give_their_switches_and_tori_binary_trees() {
        let check =
            |spec: &str, arities: &[(usize, usize)]| assert_eq!(joined(spec).arities(), arities, "{spec}");
        check("tree:4:5/4:2", &[(4, 1), (5, 4)]);
        check("torus:4x4", &[(2, 15)]);
        check("torus:4x4x4", &[(2, 63)]);
        check("torus:3x3x3", &[(3, 13)]);
        check("torus:6x6", &[(2, 27), (3, 4)]);
        check("torus:1", &[]);
        let scattered = joined("torus:8x8x8[random:48,seed=1]").arities();
        assert_eq!(scattered.iter().map(|(children, nodes)| (children - 1) * nodes).sum::<usize>(), 47);
        assert!(scattered[0].0 == 2 && scattered[0].1 >= 40, "{scattered:?}");
    }

    #[test]
    fn the_tree_of_a_machine_is_found_from_its_distances() {
        for spec in ["tree:3:2:4", "fattree:4:2:3", "tree:5:1:2/9:9:1", "tree:2:2:2:2:2[random:20,seed=3]"] {
            let machine = topology::parse(spec).expect("a machine");
            let tree: Hierarchy = machine.hierarchy().expect("it is a tree");
            let expected = Tree::of(&tree, (0, 0), tree.depth(), &|leaf| Some(tree.leaves()[leaf]));
            let mut leaves = joined(spec).places();
            let arities = expected.expect("there are PEs").arities();
            assert_eq!(joined(spec).arities(), arities, "{spec}");
            leaves.sort_unstable();
            assert_eq!(leaves, (0..machine.pes() as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = join(2, |_, row| row.fill(u32::MAX)).err();
        assert_eq!(error, None);
        let error = join(100, |_, row| row.fill(u32::MAX)).expect_err("the sums do not fit");
        assert!(error.contains("too large to be added up"), "{error}");
        assert!(join(MAX_NODES + 1, |_, _| ()).is_err_and(|error| error.contains("takes 1 to")));
    }
}
