//! Recursive bipartition by coordinates: makes a tree of nodes on a grid.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers",
//! J. Supercomput. 71, 2015, section 3.1.2 and algorithm 2 (figure 5): nodes are bisected recursively along the
//! dimension of largest extent (from the least to the largest coordinate, without wrapping). The nodes may be a part of
//! the grid. Ties go to the first dimension. The paper leaves open where to cut: here at the median in the order of
//! coordinates along the dimension, then of node numbers. The sizes of both halves differ by at most one, and the larger
//! half comes first. O(n log^2 n).

use super::tree::Tree;

/// The tree of nodes on a grid with `sizes`. Node `i` is at grid position `numbers[i]`, where the first dimension varies
/// fastest. The leaves of the tree are indices into `numbers`, which has at least one entry.
pub fn bipartition(sizes: &[usize], numbers: &[u32]) -> Tree {
    let mut tree = Tree::default();
    let mut nodes: Vec<u32> = (0..numbers.len() as u32).collect();
    // By node, then dimension. Computed once, because every bisection reads them and division is slow.
    let mut coordinates = Vec::with_capacity(numbers.len() * sizes.len());
    for &number in numbers {
        let mut rest = number as usize;
        for size in sizes {
            coordinates.push((rest % size) as u32);
            rest /= size;
        }
    }
    let coordinate = |node: u32, dimension: usize| coordinates[node as usize * sizes.len() + dimension];
    halve(&mut tree, sizes.len(), &coordinate, numbers, &mut nodes);
    tree
}

fn halve(
    tree: &mut Tree,
    dimensions: usize,
    coordinate: &impl Fn(u32, usize) -> u32,
    numbers: &[u32],
    nodes: &mut [u32],
) -> u32 {
    if let [only] = *nodes {
        return tree.leaf(only);
    }
    let extent = |dimension: usize| {
        let coordinates = nodes.iter().map(|&node| coordinate(node, dimension));
        let (least, most) = coordinates.fold((u32::MAX, 0), |(least, most), x| (least.min(x), most.max(x)));
        most - least
    };
    // `max_by_key` returns the last of several maxima.
    let longest = (0..dimensions).rev().max_by_key(|&dimension| extent(dimension)).unwrap_or(0);
    let half = nodes.len().div_ceil(2);
    let key = |&node: &u32| (coordinate(node, longest), numbers[node as usize]);
    nodes.select_nth_unstable_by_key(half - 1, key);
    let (left, right) = nodes.split_at_mut(half);
    let children = [left, right].map(|side| halve(tree, dimensions, coordinate, numbers, side));
    tree.parent(children.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_cut_along_its_longest_side() {
        // A 4 x 2 grid is cut between the second and the third column, then each square between its columns.
        let tree = bipartition(&[4, 2], &(0..8).collect::<Vec<_>>());
        assert_eq!(tree.places(), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(tree.arities(), [(2, 7)]);
        assert_eq!(bipartition(&[9], &[5]).places(), [0]);
    }

    #[test]
    fn some_nodes_of_a_grid_are_cut_into_equal_halves_along_their_longest_extent() {
        // On an 8 x 8 grid: five nodes in row 0, columns 0 to 4, and one node in row 7.
        let numbers = [0, 1, 2, 3, 4, 56];
        let tree = bipartition(&[8, 8], &numbers);
        // The cut along the second dimension is at the median: the first three nodes of row 0 are one half.
        assert_eq!(
            tree.places()[..3].iter().copied().collect::<std::collections::BTreeSet<_>>(),
            [0, 1, 2].into()
        );
        assert_eq!(tree.arities(), [(2, 5)]);
    }

    #[test]
    fn a_large_grid_is_cut_down_to_pairs_of_neighbors() {
        let tree = bipartition(&[32, 32, 64], &(0..1 << 16).collect::<Vec<_>>());
        assert_eq!(tree.arities(), [(2, (1 << 16) - 1)]);
        let mut places = tree.places();
        // The next to last cuts leave pairs of neighbors.
        for pair in places.chunks(2) {
            assert!([1, 32, 1024].contains(&pair[0].abs_diff(pair[1])), "{pair:?}");
        }
        places.sort_unstable();
        assert!(places.iter().zip(0..).all(|(&place, node)| place == node));
    }
}
