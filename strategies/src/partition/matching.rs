//! The assignment problem: a different column for every row, at the least total cost.
//!
//! H. W. Kuhn, "The Hungarian method for the assignment problem", 1955; R. Jonker, A. Volgenant, "A
//! shortest augmenting path algorithm for dense and sparse linear assignment problems", Computing 38,
//! 1987. The crate `hungarian` is exact on integers but slow (about the fourth power of the size), so it solves
//! small problems; `lapjv` solves large ones. It computes with `f64`, which is exact here because costs differ by at
//! most [`MAX_SPREAD`].

/// The largest problem that the Hungarian method solves; it takes 0.7 ms.
const MAX_HUNGARIAN: usize = 64;

/// Maximum difference between two costs.
pub const MAX_SPREAD: u64 = 1 << 38;

/// The column of every row; `costs[row * size + column]` is the cost of that pair.
///
/// # Panics
/// When the number of costs is not `size` squared, there are more than 2^14 rows, or two costs differ by
/// more than [`MAX_SPREAD`].
pub fn minimum_weight(costs: &[i64], size: usize) -> Vec<u32> {
    assert_eq!(costs.len(), size * size, "every row has a cost for every column");
    assert!(size <= 1 << 14, "{size} rows are too many for a table");
    let least = costs.iter().copied().min().unwrap_or(0);
    let spread = costs.iter().map(|cost| cost.abs_diff(least)).max().unwrap_or(0);
    assert!(spread <= MAX_SPREAD, "costs differ by {spread}");
    // The crate `hungarian` treats negative costs as 0.
    let shifted = costs.iter().map(|cost| cost - least);
    if size <= MAX_HUNGARIAN { hungarian(shifted.collect(), size) } else { jonker_volgenant(shifted, size) }
}

fn hungarian(costs: Vec<i64>, size: usize) -> Vec<u32> {
    let columns = hungarian::minimize(&costs, size, size);
    columns
        .into_iter()
        .map(|column| column.expect("a square problem gives every row a column") as u32)
        .collect()
}

fn jonker_volgenant(costs: impl Iterator<Item = i64>, size: usize) -> Vec<u32> {
    let costs = costs.map(|cost| cost as f64).collect();
    let matrix = lapjv::Matrix::from_shape_vec((size, size), costs).expect("the costs make a square");
    let (columns, _) = lapjv::lapjv(&matrix).expect("a square problem that is not cancelled has a solution");
    columns.into_iter().map(|column| column as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cost(costs: &[i64], size: usize, columns: &[u32]) -> i64 {
        columns.iter().enumerate().map(|(row, &column)| costs[row * size + column as usize]).sum()
    }

    #[track_caller]
    fn check(costs: &[i64], size: usize, expected: &[u32]) {
        assert_eq!(minimum_weight(costs, size), expected);
        let least = costs.iter().copied().min().unwrap_or(0);
        assert_eq!(jonker_volgenant(costs.iter().map(|cost| cost - least), size), expected);
    }

    #[test]
    fn the_total_cost_is_minimal() {
        check(&[], 0, &[]);
        check(&[7], 1, &[0]);
        check(&[5, 1, 1, 0], 2, &[1, 0]);
        check(&[-1, -9, -9, -1], 2, &[1, 0]);
        check(&[1, 2, 3, 2, 4, 6, 3, 6, 9], 3, &[2, 1, 0]);
    }

    /// The least cost over all permutations of the columns.
    fn brute_force(costs: &[i64], size: usize, columns: &mut Vec<u32>) -> i64 {
        if columns.len() == size {
            return cost(costs, size, columns);
        }
        let mut least = i64::MAX;
        for column in 0..size as u32 {
            if !columns.contains(&column) {
                columns.push(column);
                least = least.min(brute_force(costs, size, columns));
                columns.pop();
            }
        }
        least
    }

    fn square(sizes: std::ops::Range<usize>, most: i64) -> impl Strategy<Value = (usize, Vec<i64>)> {
        sizes.prop_flat_map(move |size| (Just(size), prop::collection::vec(-most..=most, size * size)))
    }

    proptest! {
        #[test]
        fn no_permutation_is_cheaper((size, costs) in square(0..7, 9)) {
            let best = brute_force(&costs, size, &mut Vec::new());
            prop_assert_eq!(cost(&costs, size, &minimum_weight(&costs, size)), best);
        }

        #[test]
        fn both_crates_find_the_same_cost((size, costs) in square(1..40, 1 << 36)) {
            let shifted: Vec<i64> = costs.iter().map(|cost| cost + (1 << 36)).collect();
            let (one, other) = (hungarian(shifted.clone(), size), jonker_volgenant(shifted.iter().copied(), size));
            prop_assert_eq!(cost(&costs, size, &one), cost(&costs, size, &other));
        }
    }

    #[test]
    fn both_crates_agree_at_the_size_limit() {
        for size in [MAX_HUNGARIAN, MAX_HUNGARIAN + 1] {
            let costs: Vec<i64> = (0..size * size).map(|at| (at * at * 7919 % 1009) as i64).collect();
            let (one, other) =
                (hungarian(costs.clone(), size), jonker_volgenant(costs.iter().copied(), size));
            assert_eq!(cost(&costs, size, &one), cost(&costs, size, &other));
            assert_eq!(minimum_weight(&costs, size), if size <= MAX_HUNGARIAN { one } else { other });
        }
    }
}
