//! Partitioning of objects into groups, independent of the machine.
//!
//! - [`bisection`]: multilevel bisection into two sides, each within its capacity;
//! - [`metis`]: METIS, which minimizes the bytes cut;
//! - [`greedy`]: by load alone;
//! - [`correct`]: moves vertices until every part is within its capacity or has its exact size;
//! - `k_partition`: parts of exactly given sizes, by TreeMatch's randomized search;
//! - [`exchange`]: corrects parts with few vertices by exchanges;
//! - [`exact`]: parts of given sizes, by recursive bisection;
//! - [`groups`]: the groups of movable objects that a mapping strategy places as units;
//! - `matching`: the assignment problem (minimum-weight perfect matching);
//! - `small`: bisection of graphs with few vertices.
//!
//! A partition is a `Vec<u32>`: the part of every vertex, from 0.

pub mod bisection;
pub mod correct;
pub mod exact;
pub mod exchange;
pub mod greedy;
pub mod groups;
pub(crate) mod k_partition;
pub(crate) mod matching;
pub mod metis;
pub(crate) mod small;

/// The sum of [`weights`], up to rounding.
const TOTAL_WEIGHT: f64 = (1u64 << 28) as f64;

/// Integer weights proportional to the loads. They sum to about 2^28 (which METIS can add in 32 bits) and are at
/// least 1; all are 1 if all loads are 0.
///
/// Loads must be finite and not negative.
pub fn weights(loads_seconds: impl Iterator<Item = f64> + Clone) -> Vec<u32> {
    let largest = loads_seconds.clone().fold(0.0, f64::max);
    // Divided by the largest first, because the sum of large loads may not be finite.
    let total: f64 = loads_seconds.clone().map(|load| load / largest).sum();
    if !(total > 0.0 && total.is_finite()) {
        return loads_seconds.map(|_| 1).collect();
    }
    loads_seconds.map(|load| ((load / largest / total * TOTAL_WEIGHT).round() as u32).max(1)).collect()
}

/// The maximum weight of a part for the allowed `imbalance` (max/avg - 1): at least the average, rounded up, and at
/// most the total.
pub fn capacity(weights: &[u32], parts: usize, imbalance: f64) -> u64 {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let average = total as f64 / parts as f64;
    ((average * (1.0 + imbalance)) as u64).max(total.div_ceil(parts as u64)).min(total)
}

/// Renumbers parts by their lowest vertex, without empty parts; returns the number of parts.
///
/// The part numbers of a partitioner are arbitrary, but mappers break ties by number.
pub(crate) fn renumber(part_of: &mut [u32]) -> usize {
    let mut new = rustc_hash::FxHashMap::default();
    for part in part_of {
        let next = new.len() as u32;
        *part = *new.entry(*part).or_insert(next);
    }
    new.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_proportional_and_positive() {
        let check = |loads: &[f64], expected: &[u32]| assert_eq!(weights(loads.iter().copied()), expected);
        check(&[], &[]);
        check(&[0.0, 0.0], &[1, 1]);
        check(&[1.0, 3.0, 0.0], &[1 << 26, 3 << 26, 1]);
        check(&[f64::MAX, f64::MAX], &[1 << 27, 1 << 27]);
        check(&[1e-300, 1e-300], &[1 << 27, 1 << 27]);
        check(&[f64::MIN_POSITIVE * f64::EPSILON, 0.0], &[1 << 28, 1]);
    }

    #[test]
    fn the_capacities_hold_the_total_weight() {
        assert_eq!(capacity(&[1; 10], 4, 0.0), 3);
        assert_eq!(capacity(&[100; 10], 4, 0.1), 275);
        assert_eq!(capacity(&[], 4, 0.1), 0);
        assert_eq!(capacity(&[3; 10], 4, 1e300), 30);
    }

    #[test]
    fn parts_are_numbered_by_their_lowest_vertex() {
        let mut part_of = vec![7, 2, 7, 9, 2];
        assert_eq!(renumber(&mut part_of), 3);
        assert_eq!(part_of, [0, 1, 0, 2, 1]);
    }
}
