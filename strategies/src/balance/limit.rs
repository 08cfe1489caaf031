//! The lowest limit that the PEs can be brought below.
//!
//! A balancer that relieves PEs above a limit is stuck where no object fits below it, as with few objects
//! per PE. Charm++'s RefineLB then looks for the least limit that can be kept, by bisection; so do the
//! balancers here.

use crate::cost::LoadBound;

/// Limits tried after the first.
const STEPS: usize = 8;

/// How near to the best possible limit is near enough, as a part of the first one.
const NEAR: f64 = 0.005;

/// What `attempt` makes of `limit_seconds`, or of a higher limit if that leaves a lighter heaviest PE.
///
/// An attempt gives the PE of each object and the seconds of the heaviest PE.
pub(super) fn lowest(
    limit_seconds: f64,
    bound: LoadBound,
    mut attempt: impl FnMut(f64) -> (Vec<u32>, f64),
) -> Vec<u32> {
    let (mut best, mut best_seconds) = attempt(limit_seconds);
    let mut low = limit_seconds.max(bound.bound_seconds);
    let mut high = best_seconds;
    for _ in 0..STEPS {
        // Also when they are not finite.
        let is_wide = high - low > NEAR * limit_seconds;
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
        let best = lowest(limit, bound, |limit| {
            attempts += 1;
            (vec![(reached(limit) * 1000.0) as u32], reached(limit))
        });
        assert!((f64::from(best[0]) / 1000.0 - expected).abs() <= 0.01, "{best:?} is not {expected}");
        assert!(attempts <= most, "{attempts} attempts");
    }

    #[test]
    fn the_first_limit_is_enough_where_it_is_kept() {
        check(1.05, 1.0, |limit| limit - 0.01, 1.04, 1);
        // One object is heavier than the limit: nothing can be lower.
        check(1.05, 3.0, |_| 3.0, 3.0, 1);
        check(f64::INFINITY, 0.0, |_| f64::INFINITY, f64::from(u32::MAX) / 1000.0, 1);
    }

    #[test]
    fn a_limit_that_cannot_be_kept_is_raised_to_the_lowest_that_can() {
        check(1.05, 1.0, |limit| if limit < 1.3 { 2.0 } else { limit }, 1.3, 9);
        // What is missed by little is kept all the same, if no limit does better.
        check(1.05, 1.0, |limit| if limit < 1.1 { 1.2 } else { 1.9 }, 1.2, 9);
    }
}
