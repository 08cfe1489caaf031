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
//! Every row of the table of distances knows its least entry after the diagonal. What is joined is looked up in the
//! others' rows, and a row is searched anew only if what was its least is gone; so time is O(n^2) but for such rows,
//! of which there are few. Rows are an odd number of cache lines long: a column is written at every step, and would
//! lie in a few sets of the cache alone if there are 2048 nodes.

use std::cmp::Ordering;
use std::ops::AddAssign;

use rayon::prelude::*;

use super::tree::Tree;

/// The most nodes, for whose distances there is a table of 4 bytes a pair (8 where their sums do not fit 32 bits).
pub const MAX_NODES: usize = 1 << 13;

/// Entries of a cache line.
const LINE: usize = 16;

/// The tree of so many nodes; `distances_from` writes those of a node to all.
///
/// # Errors
/// Without a node, or with more than [`MAX_NODES`]; a sentence says so.
pub fn join(nodes: usize, distances_from: impl Fn(usize, &mut [u32]) + Sync) -> Result<Tree, String> {
    if nodes == 0 || nodes > MAX_NODES {
        return Err(format!("neighbor joining takes 1 to {MAX_NODES} nodes, and there are {nodes}"));
    }
    let stride = LINE * (nodes.div_ceil(LINE) | 1);
    let mut table = vec![0u32; nodes * stride];
    let fill = |(node, row): (usize, &mut [u32])| {
        let row = &mut row[..nodes];
        distances_from(node, row);
        row.iter().copied().max().unwrap_or(0)
    };
    let farthest = table.par_chunks_exact_mut(stride).enumerate().map(fill).max().unwrap_or(0);
    // Two clusters have the most pairs if each has half of the nodes.
    let most = u64::from(farthest) * (nodes as u64 / 2) * (nodes as u64).div_ceil(2);
    Ok(if most <= u64::from(u32::MAX) {
        Joining::new(nodes, stride, table).run()
    } else {
        Joining::new(nodes, stride, table.into_par_iter().map(u64::from).collect()).run()
    })
}

/// Distances, added up.
trait Sum: Copy + Default + AddAssign {
    /// How the mean over so many pairs compares with another one.
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

/// What is left to be joined.
struct Joining<T> {
    tree: Tree,
    /// Between any two of those that are left: the distances of the nodes below them, added up. Row `i` begins at
    /// `i * stride`.
    sums: Vec<T>,
    stride: usize,
    /// Nodes below each.
    sizes: Vec<u32>,
    /// The vertex of the tree that each is.
    vertices: Vec<u32>,
    /// Those that are left, ascending; each has the number of its lowest node.
    active: Vec<u32>,
    /// By number: whether it is left.
    is_left: Vec<bool>,
    /// The closest of those after it, and the first of several; none of the last.
    nearest: Vec<Option<Near<T>>>,
}

/// Another one, and how far it is: a mean.
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

    /// How far two are.
    #[inline]
    fn near(&self, one: usize, other: usize) -> Near<T> {
        let pairs = self.sizes[one] * self.sizes[other];
        Near { other: other as u32, sum: self.sums[one * self.stride + other], pairs }
    }

    /// Finds the closest of those after one.
    fn search(&mut self, one: usize) {
        let after = self.active.partition_point(|&other| other as usize <= one);
        let row = &self.sums[one * self.stride..][..self.sizes.len()];
        let mut best: Option<Near<T>> = None;
        for &other in &self.active[after..] {
            // Who looks has the same size whoever is looked at.
            let near = Near { other, sum: row[other as usize], pairs: self.sizes[other as usize] };
            if best.is_none_or(|best| near.compare(&best).is_lt()) {
                best = Some(near);
            }
        }
        self.nearest[one] = best.map(|near| Near { pairs: near.pairs * self.sizes[one], ..near });
    }

    /// Those that are closest to each other, ascending: the first pair of all, and who is as close to all of them.
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

    /// Joins those that are closest.
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
            // Who is joined comes after who keeps the number.
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
        // A mean is not less than the least, so nothing else has become closer than it was; but what is new may be as
        // close and come first. Nobody after the one that is new looks at it.
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
        // Of 48 nodes anywhere in a torus a few are as far from each other. (Counted by another program, too.)
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
    fn distances_whose_sums_take_64_bits_are_joined_alike() {
        let machine = topology::parse("torus:8x4x4").expect("a machine");
        let far = |node: usize, row: &mut [u32]| {
            machine.distances_from(node, row);
            row.iter_mut().for_each(|distance| *distance *= 400_000_000);
        };
        assert_eq!(join(128, far), Ok(joined("torus:8x4x4")));
        assert!(join(100, |_, row| row.fill(u32::MAX)).is_ok_and(|tree| tree.arities() == [(100, 1)]));
    }

    #[test]
    fn too_many_nodes_and_none_are_refused() {
        assert!(join(MAX_NODES + 1, |_, _| ()).is_err_and(|error| error.contains("takes 1 to")));
        assert!(join(0, |_, _| ()).is_err_and(|error| error.contains("there are 0")));
    }

    /// The same by looking at all pairs of nodes at every step: O(n^3) or more.
    fn slow(nodes: usize, distance: impl Fn(usize, usize) -> u32) -> Tree {
        let mut tree = Tree::default();
        let mut clusters: Vec<(u32, Vec<usize>)> =
            (0..nodes).map(|node| (tree.leaf(node as u32), vec![node])).collect();
        while clusters.len() > 1 {
            // Whether a mean is less than another one, and whether they are equal, as fractions.
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
            // Of equals the first.
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
        fn any_distances_are_joined_as_by_looking_at_all_pairs(
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
    fn tori_are_joined_as_by_looking_at_all_pairs() {
        for spec in ["torus:5x4", "torus:4x4x2", "torus:7x3m", "torus:8x8x8[random:48,seed=1]"] {
            let machine = topology::parse(spec).expect("a machine");
            assert_eq!(joined(spec), slow(machine.pes(), |a, b| machine.distance(a, b)), "{spec}");
        }
    }
}
