//! When the iterations of an exchange repeat themselves.
//!
//! If every task begins an iteration exactly as long after it began the one `period` before, and that was so for
//! three periods in a row, then what happens between is a repetition, too: the same messages meet the same others
//! on the way. So whole periods can be left out. Exactly means but for rounding.

use std::collections::VecDeque;

/// The longest period that is looked for, in iterations.
const LONGEST: usize = 4;

/// How many periods in a row have to be alike.
const ALIKE: usize = 3;

/// Times are the same that differ by no more than this part of the time it is.
const ROUNDING: f64 = 1e-11;

/// What is remembered of the last iterations.
pub(super) struct Steady {
    tasks: usize,
    /// The number of the first of `iterations`.
    first: u64,
    iterations: VecDeque<Iteration>,
}

/// An iteration.
struct Iteration {
    /// When every task began it, and how many did.
    seconds: Vec<f64>,
    begun: usize,
    /// The latencies of its messages.
    latency_seconds: f64,
}

/// What repeats itself.
#[derive(Clone, Copy, Default)]
pub(super) struct Period {
    /// How many iterations it has.
    pub(super) iterations: u64,
    /// How long it takes.
    pub(super) seconds: f64,
    /// The latencies of its messages.
    pub(super) latency_seconds: f64,
}

impl Steady {
    pub(super) fn new(tasks: usize) -> Self {
        Steady { tasks, first: 0, iterations: VecDeque::new() }
    }

    /// A task begins the iteration of that number, from 0; the period if it is the last to do so, and there is one.
    pub(super) fn begins(&mut self, task: u32, iteration: u64, seconds: f64) -> Option<Period> {
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
        let found = (1..=LONGEST).find_map(|period| self.repeats(at, period));
        // Iterations are completed in their order, so what is too long ago is over.
        while self.first + (ALIKE * LONGEST) as u64 <= iteration {
            self.iterations.pop_front();
            self.first += 1;
        }
        found
    }

    /// A message of the iteration of that number took so long.
    pub(super) fn arrives(&mut self, iteration: u64, latency_seconds: f64) {
        self.iterations[(iteration - self.first) as usize].latency_seconds += latency_seconds;
    }

    /// So many iterations as a period, if the last ones were alike.
    fn repeats(&self, at: usize, period: usize) -> Option<Period> {
        let first = at.checked_sub(ALIKE * period)?;
        let begun = |iteration: usize| &self.iterations[iteration].seconds;
        let seconds = begun(at)[0] - begun(at - period)[0];
        let slack = ROUNDING * begun(at)[0];
        let alike = (first..at).step_by(period).all(|earlier| {
            let mut pairs = begun(earlier).iter().zip(begun(earlier + period));
            pairs.all(|(before, after)| (after - before - seconds).abs() <= slack)
        });
        // Who has begun this iteration has had all messages of those before.
        let latencies = self.iterations.range(at - period..at).map(|iteration| iteration.latency_seconds);
        let latency_seconds = latencies.sum();
        alike.then_some(Period { iterations: period as u64, seconds, latency_seconds })
    }
}
