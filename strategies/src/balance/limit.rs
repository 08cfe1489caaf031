//! The lowest load limit that the PEs can keep.
//!
//! A balancer that relieves PEs above a limit makes no progress if no object fits below the limit, for example with few or
//! heavy objects per PE: it moves objects, and the heaviest PE remains. Charm++'s `Refiner` then finds the lowest limit
//! that can be kept by bisection; so do the balancers here. They never aim below the bound that no placement can go
//! below, because objects would move for nothing.

use super::load::Work;
use crate::cost::{LoadBound, ROUNDING, is_lighter};

/// Maximum number of limits tried after the first.
const MAX_STEPS: usize = 8;

/// Width of the interval of limits at which the bisection stops, relative to the first limit.
const TOLERANCE: f64 = 0.005;

/// The PE of each object, and the seconds of the heaviest PE.
pub(super) type Outcome = (Vec<u32>, f64);

/// The limit at which the search begins: the allowed imbalance, or the bound that no placement can go below.
pub(super) fn first_limit_seconds(work: &Work, imbalance: f64) -> f64 {
    let LoadBound { average_seconds, bound_seconds, .. } = LoadBound::of(work.database());
    ((1.0 + imbalance) * average_seconds).max(bound_seconds * (1.0 + ROUNDING))
}

/// The placement of `attempt` with `first_limit_seconds`, or with a limit above it and above `low_seconds` if the heaviest PE is
/// lighter with that. Returns `present` if it keeps the first limit, or if no attempt makes its heaviest PE lighter.
pub(super) fn at_lowest_limit(
    present: Outcome,
    first_limit_seconds: f64,
    low_seconds: f64,
    mut attempt: impl FnMut(f64) -> Outcome,
) -> Outcome {
    let (mut best, mut best_seconds) = present;
    if best_seconds <= first_limit_seconds {
        return (best, best_seconds);
    }
    let (mut low, mut high) = (first_limit_seconds.max(low_seconds), best_seconds);
    let mut limit = first_limit_seconds;
    for _ in 0..=MAX_STEPS {
        let (placement, seconds) = attempt(limit);
        if seconds <= limit {
            high = seconds;
        } else {
            low = low.max(limit);
            high = high.min(seconds);
        }
        if is_lighter(seconds, best_seconds) {
            (best, best_seconds) = (placement, seconds);
        }
        // False also if the difference is NaN.
        let is_wide = high - low > TOLERANCE * first_limit_seconds;
        if !is_wide {
            break;
        }
        limit = low / 2.0 + high / 2.0;
    }
    (best, best_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the limit at which the search from `limit` ends if the heaviest PE has 4 seconds at first and `reached(limit)` after an
    /// attempt, and the most attempts.
    #[track_caller]
    fn check(limit: f64, low: f64, reached: impl Fn(f64) -> f64, expected: f64, most: usize) {
        let mut attempts = 0;
        let (best, _) = at_lowest_limit((vec![4000], 4.0), limit, low, |limit| {
            attempts += 1;
            (vec![(reached(limit) * 1000.0) as u32], reached(limit))
        });
        assert!((f64::from(best[0]) / 1000.0 - expected).abs() <= 0.01, "{best:?} is not {expected}");
        assert!(attempts <= most, "{attempts} attempts");
    }

    #[test]
    fn one_attempt_suffices_if_the_first_limit_is_kept() {
        check(1.05, 1.0, |limit| limit - 0.01, 1.04, 1);
        // No limit below 3 can be kept.
        check(1.05, 3.0, |_| 3.0, 3.0, 1);
    }

    #[test]
    fn a_placement_that_cannot_be_improved_is_kept() {
        check(f64::INFINITY, 0.0, |_| 0.0, 4.0, 0);
        check(4.0, 0.0, |_| 0.0, 4.0, 0);
        check(1.05, 1.0, |_| 4.0, 4.0, 9);
    }

    #[test]
    fn a_limit_that_cannot_be_kept_is_raised_to_the_lowest_that_can() {
        check(1.05, 1.0, |limit| if limit < 1.3 { 2.0 } else { limit }, 1.3, 9);
        // A placement slightly above its limit is kept if no other limit gives a better one.
        check(1.05, 1.0, |limit| if limit < 1.1 { 1.2 } else { 1.9 }, 1.2, 9);
    }
}
