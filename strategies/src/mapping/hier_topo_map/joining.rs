//! Neighbor joining: makes a tree of nodes from their distances.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers",
//! J. Supercomput. 71, 2015, section 3.1.1, after H. Subramoni et al., "Design of a scalable InfiniBand topology
//! service to enable network-topology-aware placement of processes", SC 2012. Repeatedly, the nodes that are closest to
//! each other are joined under a new node, and its distances to the others are computed, until one root remains. For a
//! fat tree this gives the switches, for a torus a binary tree (if rings have an even number of nodes).
//!
//! The papers leave open which nodes are joined if many are equally close, and the distance of a new node. Here the
//! first of the closest pairs is joined. Further nodes, in order of their numbers, join if they are as close to every
//! node joined so far. (If it sufficed to be close to one of them, a whole torus would be one star.) The distance of
//! two new nodes is the mean distance of the nodes below them, in exact arithmetic.
//!
//! For every row of the distance table, the least entry after the diagonal is stored. After a join, a row is searched
//! again only if the node of its least entry is gone. There are few such rows; apart from them the time is O(n^2).
//! Every step writes a column. Rows have an odd number of cache lines, because otherwise (for example with 2048 nodes)
//! the entries of a column would share a few cache sets.

use std::cmp::Ordering;
use std::ops::AddAssign;

use equipoise_model::memory;
use rayon::prelude::*;

use super::tree::Tree;

/// The maximum number of nodes; the table of distances has 4 bytes per pair (8 bytes if sums do not fit into 32 bits).
pub const MAX_NODES: usize = 1 << 13;

/// The number of entries in a cache line.
const LINE: usize = 16;

/// The tree of `nodes` nodes; `distances_from` writes the distances from a node to all nodes.
///
/// # Errors
/// If there are no nodes or more than [`MAX_NODES`]; the error is a sentence.
pub fn join(nodes: usize, distances_from: impl Fn(usize, &mut [u32]) + Sync) -> Result<Tree, String> {
    if nodes == 0 || nodes > MAX_NODES {
        return Err(format!("neighbor joining needs 1 to {MAX_NODES} nodes, and there are {nodes}"));
    }
    let what = format!("the table of distances between {nodes} nodes");
    memory::check(12 * (nodes as u64).pow(2), &what, "use fewer nodes")?;
    let stride = LINE * (nodes.div_ceil(LINE) | 1);
    let mut table = vec![0u32; nodes * stride];
    let fill = |(node, row): (usize, &mut [u32])| {
        let row = &mut row[..nodes];
        distances_from(node, row);
        row.iter().copied().max().unwrap_or(0)
    };
    let farthest = table.par_chunks_exact_mut(stride).enumerate().map(fill).max().unwrap_or(0);
    // The number of pairs between two clusters is largest if each has half of the nodes.
    let most = u64::from(farthest) * (nodes as u64 / 2) * (nodes as u64).div_ceil(2);
    Ok(if most <= u64::from(u32::MAX) {
        Joining::new(nodes, stride, table).run()
    } else {
        Joining::new(nodes, stride, table.into_par_iter().map(u64::from).collect()).run()
    })
}

/// A sum of distances.
trait Sum: Copy + Default + AddAssign {
    /// Compares the mean of `self` over `pairs` with the mean of `other` over `other_pairs`.
    fn compare(self, pairs: u32, other: Self, other_pairs: u32) -> Ordering;
}

impl Sum for u32 {
    #[inline]
    fn compare(self, pairs: u32, other: u32, other_pairs: u32) -> Ordering {
        (u64::from(self) * u64::from(other_pairs)).cmp(&(u64::from(other) * u64::from(pairs)))
    }
}

impl Sum for u64 {
    #[inline]
    fn compare(self, pairs: u32, other: u64, other_pairs: u32) -> Ordering {
        (u128::from(self) * u128::from(other_pairs)).cmp(&(u128::from(other) * u128::from(pairs)))
    }
}

/// The state of neighbor joining. A cluster is a set of joined nodes; its number is that of its lowest node.
struct Joining<T> {
    tree: Tree,
    /// By pair of clusters: the sum of the distances between their nodes. Row `i` begins at `i * stride`.
    sums: Vec<T>,
    stride: usize,
    /// By cluster: its number of nodes.
    sizes: Vec<u32>,
    /// By cluster: its vertex in the tree.
    vertices: Vec<u32>,
    /// The clusters that are left, ascending.
    active: Vec<u32>,
    /// By number: whether there is a cluster with this number.
    is_left: Vec<bool>,
    /// By cluster: the closest of the clusters after it; ties go to the first; `None` for the last.
    nearest: Vec<Option<Near<T>>>,
}

/// Another cluster and its distance, as a sum over a number of pairs.
#[derive(Clone, Copy)]
struct Near<T> {
    other: u32,
    sum: T,
    pairs: u32,
}

impl<T: Sum> Near<T> {
    #[inline]
    fn compare(&self, other: &Near<T>) -> Ordering {
        self.sum.compare(self.pairs, other.sum, other.pairs)
    }
}

impl<T: Sum> Joining<T> {
    fn new(nodes: usize, stride: usize, sums: Vec<T>) -> Self {
        let mut tree = Tree::default();
        Joining {
            vertices: (0..nodes as u32).map(|node| tree.leaf(node)).collect(),
            tree,
            sums,
            stride,
            sizes: vec![1; nodes],
            active: (0..nodes as u32).collect(),
            is_left: vec![true; nodes],
            nearest: vec![None; nodes],
        }
    }

    fn run(mut self) -> Tree {
        for node in 0..self.active.len() {
            self.search(node);
        }
        while self.active.len() > 1 {
            self.step();
        }
        self.tree
    }

    /// The distance of two clusters.
    #[inline]
    fn near(&self, one: usize, other: usize) -> Near<T> {
        let pairs = self.sizes[one] * self.sizes[other];
        Near { other: other as u32, sum: self.sums[one * self.stride + other], pairs }
    }

    /// Finds the closest of the clusters after `one`.
    fn search(&mut self, one: usize) {
        let after = self.active.partition_point(|&other| other as usize <= one);
        let row = &self.sums[one * self.stride..][..self.sizes.len()];
        let mut best: Option<Near<T>> = None;
        for &other in &self.active[after..] {
            // The size of `one` is a common factor, so the comparison leaves it out.
            let near = Near { other, sum: row[other as usize], pairs: self.sizes[other as usize] };
            if best.is_none_or(|best| near.compare(&best).is_lt()) {
                best = Some(near);
            }
        }
        self.nearest[one] = best.map(|near| Near { pairs: near.pairs * self.sizes[one], ..near });
    }

    /// The clusters to join, ascending: the first closest pair, and all clusters that are as close to each of these.
    fn closest(&self) -> Vec<u32> {
        let mut best: Option<(u32, Near<T>)> = None;
        for &one in &self.active {
            let Some(near) = self.nearest[one as usize] else { continue };
            if best.is_none_or(|(_, best)| near.compare(&best).is_lt()) {
                best = Some((one, near));
            }
        }
        let Some((first, nearest)) = best else { return Vec::new() };
        let mut joined = vec![first, nearest.other];
        let after = self.active.partition_point(|&other| other <= nearest.other);
        for &other in &self.active[after..] {
            let is_as_close = |&one: &u32| self.near(one as usize, other as usize).compare(&nearest).is_eq();
            if joined.iter().all(is_as_close) {
                joined.push(other);
            }
        }
        joined
    }

    /// Joins the closest clusters.
    fn step(&mut self) {
        let joined = self.closest();
        let Some((&first, gone)) = joined.split_first() else { return };
        let keeper = first as usize;
        let below = joined.iter().map(|&one| self.vertices[one as usize]).collect();
        self.vertices[keeper] = self.tree.parent(below);
        gone.iter().for_each(|&one| self.is_left[one as usize] = false);
        let is_left = &self.is_left;
        self.active.retain(|&one| is_left[one as usize]);
        for &one in gone {
            // The row of `keeper` is before that of `one`.
            let (before, rest) = self.sums.split_at_mut(one as usize * self.stride);
            let row = &mut before[keeper * self.stride..][..self.stride];
            self.active.iter().for_each(|&other| row[other as usize] += rest[other as usize]);
            self.sizes[keeper] += self.sizes[one as usize];
        }
        self.sums[keeper * self.stride + keeper] = T::default();
        for &other in &self.active {
            self.sums[other as usize * self.stride + keeper] =
                self.sums[keeper * self.stride + other as usize];
        }
        self.search(keeper);
        // A mean is not below the least of its values, so the new cluster is not closer to any cluster than the stored
        // nearest one. But the new cluster may be equally close and come first. Clusters after `keeper` never store it
        // as their nearest.
        for at in 0..self.active.len() {
            let other = self.active[at] as usize;
            let Some(known) = self.nearest[other] else { continue };
            if other == keeper {
                continue;
            }
            if known.other == first || !self.is_left[known.other as usize] {
                self.search(other);
            } else if other < keeper && first < known.other {
                let new = self.near(other, keeper);
                if new.compare(&known).is_eq() {
                    self.nearest[other] = Some(new);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::topology::{self, Hierarchy};

    use super::*;

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
        // Of 48 random nodes of a torus, a few are equally far from each other. (Another program gave the same counts.)
        check("torus:8x8x8[random:48,seed=1]", &[(2, 47)]);
        check("torus:8x8x8[random:48,seed=2]", &[(2, 40), (3, 2), (4, 1)]);
        check("torus:8x8x8[random:48,seed=3]", &[(2, 45), (3, 1)]);
    }

    #[test]
    fn the_tree_of_a_machine_is_found_from_its_distances() {
        for spec in ["tree:3:2:4", "fattree:4:2:3", "tree:5:1:2/9:9:1", "tree:2:2:2:2:2[random:20,seed=3]"] {
            let machine = topology::parse(spec).expect("a machine");
            let tree: Hierarchy = machine.hierarchy().expect("it is a tree");
            let expected = Tree::of(&tree, (0, 0), tree.depth(), &|leaf| Some(tree.leaves()[leaf]));
            assert_eq!(joined(spec).groups(), expected.expect("there are PEs").groups(), "{spec}");
        }
    }

    #[test]
    fn sums_of_64_bits_give_the_same_tree() {
        let machine = topology::parse("torus:8x4x4").expect("a machine");
        let far = |node: usize, row: &mut [u32]| {
            machine.distances_from(node, row);
            row.iter_mut().for_each(|distance| *distance *= 400_000_000);
        };
        assert_eq!(join(128, far), Ok(joined("torus:8x4x4")));
        assert!(join(100, |_, row| row.fill(u32::MAX)).is_ok_and(|tree| tree.arities() == [(100, 1)]));
    }

    #[test]
    fn refuses_too_many_nodes_and_no_nodes() {
        assert!(join(MAX_NODES + 1, |_, _| ()).is_err_and(|error| error.contains("needs 1 to")));
        assert!(join(0, |_, _| ()).is_err_and(|error| error.contains("there are 0")));
    }

    /// Neighbor joining that compares all pairs of nodes at every step: O(n^3) or more.
    fn slow(nodes: usize, distance: impl Fn(usize, usize) -> u32) -> Tree {
        let mut tree = Tree::default();
        let mut clusters: Vec<(u32, Vec<usize>)> =
            (0..nodes).map(|node| (tree.leaf(node as u32), vec![node])).collect();
        while clusters.len() > 1 {
            // Means as fractions: a sum and a number of pairs.
            let mean = |a: usize, b: usize| {
                let (one, other) = (&clusters[a].1, &clusters[b].1);
                let sum: u64 = one
                    .iter()
                    .flat_map(|&x| other.iter().map(move |&y| (x, y)))
                    .map(|(x, y)| u64::from(distance(x, y)))
                    .sum();
                (sum, (one.len() * other.len()) as u64)
            };
            let order = |x: (u64, u64), y: (u64, u64)| (x.0 * y.1).cmp(&(y.0 * x.1));
            let pairs = (0..clusters.len()).flat_map(|a| (a + 1..clusters.len()).map(move |b| (a, b)));
            // Ties go to the first.
            let (a, b) = pairs.min_by(|x, y| order(mean(x.0, x.1), mean(y.0, y.1))).expect("there are two");
            let mut joined = vec![a, b];
            for c in b + 1..clusters.len() {
                if joined.iter().all(|&one| order(mean(one, c), mean(a, b)).is_eq()) {
                    joined.push(c);
                }
            }
            let vertex = tree.parent(joined.iter().map(|&one| clusters[one].0).collect());
            let members = joined.iter().flat_map(|&one| clusters[one].1.clone()).collect();
            clusters[a] = (vertex, members);
            let gone = &joined[1..];
            let mut at = 0..clusters.len();
            clusters.retain(|_| !gone.contains(&at.next().expect("one for each")));
        }
        tree
    }

    proptest! {
        #[test]
        fn any_distances_give_the_same_tree_as_comparing_all_pairs(
            nodes in 1..14usize,
            distances in prop::collection::vec(1..5u32, 14 * 14),
        ) {
            let distance = |a: usize, b: usize| distances[a.min(b) * 14 + a.max(b)];
            let tree = join(nodes, |node, row| {
                let to = |other| if other == node { 0 } else { distance(node, other) };
                row.iter_mut().enumerate().for_each(|(other, entry)| *entry = to(other));
            });
            prop_assert_eq!(tree, Ok(slow(nodes, distance)));
        }
    }

    #[test]
    fn tori_give_the_same_tree_as_comparing_all_pairs() {
        for spec in ["torus:5x4", "torus:4x4x2", "torus:7x3m", "torus:8x8x8[random:48,seed=1]"] {
            let machine = topology::parse(spec).expect("a machine");
            assert_eq!(joined(spec), slow(machine.pes(), |a, b| machine.distance(a, b)), "{spec}");
        }
    }
}
