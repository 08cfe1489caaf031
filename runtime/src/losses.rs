//! Which sync points become load-balancing steps.
//!
//! With `auto`, a step follows when the time lost since the last one exceeds what a step costs, as in H. Menon, N. Jain,
//! G. Zheng and L. Kale, Automated load balancing invocation based on application characteristics, CLUSTER 2012. At every
//! sync point the PEs add up their loads since the last one. What the most loaded PE has beyond the average is lost, except for the part that remained after the last step, which another step would not gain either. Where the paper
//! extrapolates the loads linearly to choose the number of iterations until the next step, the losses so far decide here:
//! they react to sudden changes, and cost at most as much again as the steps themselves.
//!
//! A loss counts with the part of it that a step is expected to avoid, as known from past steps. Where that is not known, because
//! the PEs decide without a list of objects, a step that gained nothing halves what later losses count.

use serde::{Deserialize, Serialize};

/// The loads of the PEs of a subtree since the last sync point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Loads {
    pub(crate) pes: u32,
    pub(crate) sum_seconds: f64,
    pub(crate) max_seconds: f64,
}

impl Loads {
    /// Adds those of another subtree.
    pub(crate) fn add(&mut self, other: Loads) {
        self.pes += other.pes;
        self.sum_seconds += other.sum_seconds;
        self.max_seconds = self.max_seconds.max(other.max_seconds);
    }

    /// How much more the most loaded PE had than the average.
    fn excess_seconds(&self) -> f64 {
        (self.max_seconds - self.average_seconds()).max(0.0)
    }

    fn average_seconds(&self) -> f64 {
        self.sum_seconds / f64::from(self.pes.max(1))
    }
}

/// An excess below this part of the average is noise.
const NOISE: f64 = 0.01;

/// The least part of a loss that counts.
const LEAST_CREDIT: f64 = 1.0 / 1024.0;

/// What the first step is assumed to cost, before one was measured.
const FIRST_COST_SECONDS: f64 = 2e-4;

/// The losses since the last step, and what steps cost.
#[derive(Debug)]
pub(crate) struct Losses {
    /// The cost of a step, if one was measured; each step halves the weight of those before it.
    cost_seconds: Option<f64>,
    /// The loss since the last step.
    lost_seconds: f64,
    /// The part of a loss that a step is expected to avoid.
    credit: f64,
    /// The excess of the most loaded PE over the average, as a part of the average, that remained after the last step.
    rest: f64,
    /// The excess in the last interval, and in the last one before the last step.
    excess: f64,
    excess_before: f64,
    /// Whether there was no sync point since the last step.
    is_fresh: bool,
    /// Whether the next sync point becomes a step in any case, and whether the last one did.
    is_due: bool,
    was_due: bool,
    /// Whether the gains of steps are judged here, and not by what their assignments delivered.
    judges: bool,
}

impl Default for Losses {
    fn default() -> Self {
        Losses {
            cost_seconds: None,
            lost_seconds: 0.0,
            credit: 1.0,
            rest: 0.0,
            excess: 0.0,
            excess_before: 0.0,
            is_fresh: false,
            is_due: false,
            was_due: false,
            judges: false,
        }
    }
}

impl Losses {
    /// Whether the sync point becomes a step, before which the PEs had these loads.
    pub(crate) fn need_step(&mut self, loads: Loads) -> bool {
        let average = loads.average_seconds();
        self.excess = if average > 0.0 { loads.excess_seconds() / average } else { 0.0 };
        if std::mem::take(&mut self.is_fresh) {
            let promised_gain = self.rest < self.excess_before * (1.0 - NOISE);
            let gained = self.excess < self.excess_before * (1.0 - NOISE);
            if self.judges && gained {
                self.credit = 1.0;
            } else if self.judges && promised_gain {
                self.credit = (self.credit / 2.0).max(LEAST_CREDIT);
            }
            // What the step promised is better than what was measured if the loads have changed since.
            self.rest = self.rest.min(self.excess);
        }
        let lost = self.excess - self.rest;
        if lost > NOISE {
            self.lost_seconds += self.credit * lost * average;
        }
        self.was_due = std::mem::take(&mut self.is_due);
        self.was_due || self.lost_seconds > self.cost_seconds.unwrap_or(FIRST_COST_SECONDS)
    }

    /// The next sync point becomes a step, unless the last one was such a step: then losses decide, so that loads that never last
    /// do not lead to a step at every sync point.
    pub(crate) fn step_next(&mut self) {
        self.is_due = !self.was_due;
    }

    /// A step was decided that cost this time, and after which the most loaded PE is expected to exceed the average by `rest` of it.
    /// `credit` is the part of a loss that a step is expected to avoid, if it is known.
    pub(crate) fn stepped(&mut self, cost_seconds: f64, rest: f64, credit: Option<f64>) {
        self.cost_seconds = Some(self.cost_seconds.map_or(cost_seconds, |mean| (mean + cost_seconds) / 2.0));
        self.lost_seconds = 0.0;
        (self.rest, self.judges) = (rest, credit.is_none());
        self.credit = credit.unwrap_or(self.credit);
        self.excess_before = self.excess;
        self.is_fresh = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_pes(seconds: &[f64]) -> Loads {
        let mut all = Loads::default();
        for &seconds in seconds {
            all.add(Loads { pes: 1, sum_seconds: seconds, max_seconds: seconds });
        }
        all
    }

    /// The sync points that become steps which cost 1 s, of 100, if the PEs have the loads that `loads` gives for a point and the
    /// last step. A step leaves what `rest` says.
    fn steps(mut loads: impl FnMut(usize, usize) -> Vec<f64>, rest: f64) -> Vec<usize> {
        let (mut losses, mut steps) = (Losses::default(), Vec::new());
        for point in 0..100 {
            if losses.need_step(of_pes(&loads(point, steps.last().copied().unwrap_or(0)))) {
                losses.stepped(1.0, rest, None);
                steps.push(point);
            }
        }
        steps
    }

    #[test]
    fn constant_loads_are_balanced_once() {
        assert_eq!(steps(|point, _| if point == 0 { vec![2.0, 0.0] } else { vec![1.0, 1.0] }, 0.0), [0]);
        // A heaviest object keeps its PE at 1.5 s.
        assert_eq!(steps(|_, _| vec![1.5, 0.5], 0.5), [0]);
    }

    #[test]
    fn drifting_loads_are_balanced_when_the_losses_have_the_cost_of_a_step() {
        // The excess grows by 0.1 s a point. The first step costs little as far as is known, and the excess after it is as
        // before. The later ones come when 0.1 + 0.2 + 0.3 + 0.4 + 0.5 s are more than a step costs.
        let drift = |point: usize, last: usize| {
            let excess = 0.1 * (point - last) as f64;
            vec![1.0 + excess, 1.0 - excess]
        };
        assert_eq!(steps(drift, 0.0)[..4], [1, 7, 12, 17]);
    }

    #[test]
    fn a_sudden_change_is_balanced_at_once() {
        let jump = |point: usize, last: usize| {
            if point > 40 && last <= 40 { vec![3.0, 0.0] } else { vec![1.5, 1.5] }
        };
        assert_eq!(steps(jump, 0.0), [41]);
    }

    #[test]
    fn steps_without_a_gain_become_rare() {
        // The strategy promises a balance that never comes.
        let steps = steps(|_, _| vec![2.0, 0.0], 0.0);
        assert!(steps.len() < 9 && steps.windows(3).all(|at| at[2] - at[1] >= at[1] - at[0]), "{steps:?}");
    }

    #[test]
    fn losses_count_with_the_part_that_steps_avoid() {
        let until_a_step = |credit| {
            let mut losses = Losses::default();
            losses.stepped(1.0, 0.0, Some(credit));
            (1..=1000).find(|_| losses.need_step(of_pes(&[2.0, 1.0]))).expect("a step follows")
        };
        // An excess of 0.5 s a point, and a step that cost 1 s.
        assert_eq!((until_a_step(1.0), until_a_step(0.5), until_a_step(0.125)), (3, 5, 17));
    }

    #[test]
    fn a_step_can_be_ordered_for_the_next_sync_point() {
        let mut losses = Losses::default();
        let balanced = of_pes(&[1.0, 1.0]);
        losses.step_next();
        assert!(losses.need_step(balanced));
        // Not again at once, but later.
        losses.step_next();
        assert!(!losses.need_step(balanced));
        losses.step_next();
        assert!(losses.need_step(balanced));
    }
}
