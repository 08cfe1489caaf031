//! The lowest load limit that the PEs can keep.
//!
//! A balancer that relieves PEs above a limit makes no progress if no object fits below the limit, for example with
//! few objects per PE. Charm++'s RefineLB then finds the lowest limit that can be kept by bisection; so do the
//! balancers here.

use crate::cost::LoadBound;

/// Maximum number of limits tried after the first.
const MAX_STEPS: usize = 8;

/// Width of the interval of limits at which the bisection stops, relative to the first limit.
const TOLERANCE: f64 = 0.005;

/// The placement of `attempt` with `limit_seconds`, or with a higher limit if the heaviest PE is lighter with it.
///
/// `attempt` returns the PE of each object and the seconds of the heaviest PE.
pub(super) fn at_lowest_limit(
    limit_seconds: f64,
    bound: LoadBound,
    mut attempt: impl FnMut(f64) -> (Vec<u32>, f64),
) -> Vec<u32> {
    let (mut best, mut best_seconds) = attempt(limit_seconds);
    let mut low = limit_seconds.max(bound.bound_seconds);
    let mut high = best_seconds;
    for _ in 0..MAX_STEPS {
        // False also if the difference is NaN.
        let is_wide = high - low > TOLERANCE * limit_seconds;
        if !is_wide {
            break;
        }
        let middle = low / 2.0 + high / 2.0;
        let (placement, seconds) = attempt(middle);
        if seconds <= middle {
            high = seconds;
        } else {
            low = middle;
        }
        if seconds < best_seconds {
            (best, best_seconds) = (placement, seconds);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: f64, bound_seconds: f64, reached: impl Fn(f64) -> f64, expected: f64, most: usize) {
        let mut attempts = 0;
        let bound = LoadBound { bound_seconds, ..LoadBound::default() };
        let best = at_lowest_limit(limit, bound, |limit| {
            attempts += 1;
            (vec![(reached(limit) * 1000.0) as u32], reached(limit))
        });
        assert!((f64::from(best[0]) / 1000.0 - expected).abs() <= 0.01, "{best:?} is not {expected}");
        assert!(attempts <= most, "{attempts} attempts");
    }

    #[test]
    fn one_attempt_suffices_if_the_first_limit_is_kept() {
        check(1.05, 1.0, |limit| limit - 0.01, 1.04, 1);
        // One object is heavier than the limit, so no limit below its load can be kept.
        check(1.05, 3.0, |_| 3.0, 3.0, 1);
        check(f64::INFINITY, 0.0, |_| f64::INFINITY, f64::from(u32::MAX) / 1000.0, 1);
    }

    #[test]
    fn a_limit_that_cannot_be_kept_is_raised_to_the_lowest_that_can() {
        check(1.05, 1.0, |limit| if limit < 1.3 { 2.0 } else { limit }, 1.3, 9);
        // A placement slightly above its limit is kept if no other limit gives a better one.
        check(1.05, 1.0, |limit| if limit < 1.1 { 1.2 } else { 1.9 }, 1.2, 9);
    }
}
