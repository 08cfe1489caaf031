//! The interface between searches and costs: the cost of a mapping after a swap of two tasks.

/// A cost of a mapping that is updated incrementally when two tasks swap their PEs.
///
/// If one of the PEs is free, the task of the other PE moves there.
pub trait SwapCost {
    /// Starts over with task `i` on PE `places[i]`.
    fn restart(&mut self, places: &[u32]);

    /// The cost of the mapping.
    fn worth(&self) -> Worth;

    /// The cost after a swap of the tasks on PEs `p` and `q`, in this order; `None` if the swap is no improvement,
    /// which is often known before the whole cost is computed.
    fn try_swap(&mut self, tasks: [Option<usize>; 2], pes: [u32; 2]) -> Option<Worth>;

    /// Applies the swap that was tried last; `worth` is the result of [`Self::try_swap`].
    fn keep(&mut self, tasks: [Option<usize>; 2], pes: [u32; 2], worth: Worth);
}

/// A cost, and a tie-breaker between mappings of equal cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// The cost itself.
    pub cost: f64,
    /// Among equal costs, the smaller tie-breaker is better.
    pub tie: f64,
}

/// Relative difference that two sums of the same numbers in different order may have.
const ROUNDING: f64 = 1e-12;

impl Worth {
    /// Whether this is better than `other` by more than rounding.
    pub fn is_better(self, other: Worth) -> bool {
        let less = |a: f64, b: f64| a < b - ROUNDING * b.abs();
        less(self.cost, other.cost) || (!less(other.cost, self.cost) && less(self.tie, other.tie))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_costs_before_ties_and_ignores_rounding() {
        let worth = |cost, tie| Worth { cost, tie };
        for (a, b, expected) in [
            (worth(1.0, 9.0), worth(2.0, 1.0), true),
            (worth(2.0, 1.0), worth(1.0, 9.0), false),
            (worth(1.0, 1.0), worth(1.0, 2.0), true),
            (worth(1.0 + 1e-15, 1.0), worth(1.0, 2.0), true),
            (worth(1.0, 1.0), worth(1.0, 1.0), false),
            (worth(1.0 - 1e-15, 1.0), worth(1.0, 1.0), false),
            (worth(0.0, 0.0), worth(0.0, 0.0), false),
        ] {
            assert_eq!(a.is_better(b), expected, "{a:?} {b:?}");
        }
    }
}
