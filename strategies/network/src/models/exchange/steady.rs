//! Detects when the iterations of an exchange become periodic.
//!
//! Suppose that the time between the beginnings of an iteration and of the iteration one period earlier is the same for
//! all tasks (up to rounding), and for three periods in a row. Then the events in between repeat as well: the same
//! messages share links. So whole periods need not be simulated.

use std::collections::VecDeque;

/// The maximum length of a period, in iterations.
const LONGEST_PERIOD: usize = 4;

/// The number of equal periods in a row that are required.
const EQUAL_PERIODS: usize = 3;

/// Times are equal if they differ by at most this fraction of the current time.
const ROUNDING: f64 = 1e-11;

/// Searches for a period in the last iterations.
pub(super) struct PeriodDetector {
    tasks: usize,
    /// The number of the first of `iterations`.
    first: u64,
    iterations: VecDeque<Iteration>,
}

/// An iteration.
struct Iteration {
    /// When each task began this iteration, and the number of tasks that have begun it.
    seconds: Vec<f64>,
    begun: usize,
    /// The sum of the latencies of its messages.
    latency_seconds: f64,
}

/// A period.
#[derive(Clone, Copy, Default)]
pub(super) struct Period {
    /// The number of iterations.
    pub(super) iterations: u64,
    /// The duration.
    pub(super) seconds: f64,
    /// The sum of the latencies of its messages.
    pub(super) latency_seconds: f64,
}

impl PeriodDetector {
    pub(super) fn new(tasks: usize) -> Self {
        PeriodDetector { tasks, first: 0, iterations: VecDeque::new() }
    }

    /// A task begins an iteration; iterations count from 0. Returns the period, if this was the last task to begin the
    /// iteration and there is a period.
    pub(super) fn iteration_begins(&mut self, task: u32, iteration: u64, seconds: f64) -> Option<Period> {
        let at = (iteration - self.first) as usize;
        if at == self.iterations.len() {
            let seconds = vec![0.0; self.tasks];
            self.iterations.push_back(Iteration { seconds, begun: 0, latency_seconds: 0.0 });
        }
        let now = &mut self.iterations[at];
        now.seconds[task as usize] = seconds;
        now.begun += 1;
        if now.begun < self.tasks {
            return None;
        }
        let found = (1..=LONGEST_PERIOD).find_map(|period| self.find_period(at, period));
        // Iterations complete in order, so older ones are not needed.
        while self.first + (EQUAL_PERIODS * LONGEST_PERIOD) as u64 <= iteration {
            self.iterations.pop_front();
            self.first += 1;
        }
        found
    }

    /// A message of an iteration has arrived.
    pub(super) fn message_arrives(&mut self, iteration: u64, latency_seconds: f64) {
        self.iterations[(iteration - self.first) as usize].latency_seconds += latency_seconds;
    }

    /// The period of `period` iterations that ends with iteration `at`, if the last periods are equal.
    fn find_period(&self, at: usize, period: usize) -> Option<Period> {
        let first = at.checked_sub(EQUAL_PERIODS * period)?;
        let begun = |iteration: usize| &self.iterations[iteration].seconds;
        let seconds = begun(at)[0] - begun(at - period)[0];
        let slack = ROUNDING * begun(at)[0];
        let are_equal = (first..at).step_by(period).all(|earlier| {
            let mut pairs = begun(earlier).iter().zip(begun(earlier + period));
            pairs.all(|(before, after)| (after - before - seconds).abs() <= slack)
        });
        // A task that has begun this iteration has received all messages of earlier ones.
        let latencies = self.iterations.range(at - period..at).map(|iteration| iteration.latency_seconds);
        let latency_seconds = latencies.sum();
        are_equal.then_some(Period { iterations: period as u64, seconds, latency_seconds })
    }
}
