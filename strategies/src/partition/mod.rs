//! Grouping objects: which belong together, before any machine is looked at.
//!
//! - [`metis`]: METIS, which cuts few bytes;
//! - [`greedy`]: by load alone;
//! - [`correct`]: makes parts of a partition as light, or as large, as they must be;
//! - `constrained`: parts of exactly given sizes, by TreeMatch's randomised search;
//! - [`exchange`]: the same by exchanges, where parts have few vertices;
//! - [`exact`]: parts of given sizes, by bisections;
//! - [`groups`]: the groups of movable objects that a mapping strategy places as wholes;
//! - [`matching`]: who gets what, at the least cost in all.
//!
//! A partition is a `Vec<u32>`: the part of every vertex, from 0.

pub(crate) mod constrained;
pub mod correct;
pub mod exact;
pub mod exchange;
pub mod greedy;
pub mod groups;
pub mod matching;
pub mod metis;
pub mod small;

/// The sum of [`weights`], but for rounding.
const TOTAL_WEIGHT: f64 = (1u64 << 28) as f64;

/// Loads as whole numbers in proportion, which sum to about 2^28 (so METIS can add them up) and are at
/// least 1; all 1 if nothing has a load.
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

/// The most a part may weigh when the allowed imbalance is max/avg - 1: never less than the average,
/// rounded up, and never more than there is.
pub fn capacity(weights: &[u32], parts: usize, imbalance: f64) -> u64 {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let average = total as f64 / parts as f64;
    ((average * (1.0 + imbalance)) as u64).max(total.div_ceil(parts as u64)).min(total)
}

/// Renumbers parts by their lowest vertex and returns how many there are; empty parts vanish.
///
/// What a partitioner calls its parts is an accident, and mappers break ties by number.
pub fn renumber(part_of: &mut [u32]) -> usize {
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
    fn weights_are_in_proportion_and_never_zero() {
        let check = |loads: &[f64], expected: &[u32]| assert_eq!(weights(loads.iter().copied()), expected);
        check(&[], &[]);
        check(&[0.0, 0.0], &[1, 1]);
        check(&[1.0, 3.0, 0.0], &[1 << 26, 3 << 26, 1]);
        check(&[f64::MAX, f64::MAX], &[1 << 27, 1 << 27]);
        check(&[1e-300, 1e-300], &[1 << 27, 1 << 27]);
        check(&[f64::MIN_POSITIVE * f64::EPSILON, 0.0], &[1 << 28, 1]);
    }

    #[test]
    fn a_capacity_has_room_for_everything() {
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
