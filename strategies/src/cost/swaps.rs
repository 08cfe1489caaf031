//! What a search needs of a cost: what it would be if two tasks changed places.

/// A cost of a mapping that is updated, not computed anew, when two tasks change places.
///
/// A place may hold no task: then the other one moves there.
pub trait SwapCost {
    /// Begins anew, with task `i` on PE `places[i]`.
    fn restart(&mut self, places: &[u32]);

    /// What the mapping costs.
    fn worth(&self) -> Worth;

    /// What it would cost if the tasks on PEs `p` and `q`, in this order, changed places; `None` if that were not better
    /// than what it costs now, which is often known before all of it is computed.
    fn try_swap(&mut self, tasks: [Option<usize>; 2], pes: [u32; 2]) -> Option<Worth>;

    /// Carries out the swap that was tried last, of which `worth` is what [`Self::try_swap`] said.
    fn keep(&mut self, tasks: [Option<usize>; 2], pes: [u32; 2], worth: Worth);
}

/// A cost, and what decides between mappings of the same cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// The cost itself.
    pub cost: f64,
    /// Of equal costs, that with the smaller one of these is better.
    pub tie: f64,
}

/// What two sums of the same numbers in another order may differ by, as a part of them.
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
    fn costs_decide_before_ties_and_rounding_does_not() {
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
