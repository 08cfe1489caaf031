//! When the iterations of an exchange repeat themselves.
//!
//! If every task begins an iteration exactly as long after it began the one `period` before, and that was so for
//! three periods in a row, then what happens between is a repetition, too: the same messages meet the same others
//! on the way. So the rest need not be simulated. Exactly means but for rounding.

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
    /// The latencies of all messages of iterations before the first.
    earlier_latency_seconds: f64,
    /// The repetition, once there is one.
    pub(super) found: Option<Found>,
}

/// An iteration.
struct Iteration {
    /// When every task began it, and how many did.
    seconds: Vec<f64>,
    begun: usize,
    /// The latencies of its messages.
    latency_seconds: f64,
}

/// An iteration from which on all is a repetition.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// How many iterations were over for every task.
    pub(super) iteration: u64,
    /// When the last of the tasks was through with them, and the latencies of their messages.
    pub(super) seconds: f64,
    pub(super) latency_seconds: f64,
    /// What each further one adds.
    pub(super) seconds_per_iteration: f64,
    pub(super) latency_per_iteration: f64,
}

impl Steady {
    pub(super) fn new(tasks: usize) -> Self {
        Steady { tasks, first: 0, iterations: VecDeque::new(), earlier_latency_seconds: 0.0, found: None }
    }

    /// A task begins the iteration of that number, from 0, or would if it were not through.
    pub(super) fn begins(&mut self, task: u32, iteration: u64, seconds: f64) {
        let at = (iteration - self.first) as usize;
        if at == self.iterations.len() {
            let seconds = vec![0.0; self.tasks];
            self.iterations.push_back(Iteration { seconds, begun: 0, latency_seconds: 0.0 });
        }
        let now = &mut self.iterations[at];
        now.seconds[task as usize] = seconds;
        now.begun += 1;
        if now.begun < self.tasks {
            return;
        }
        self.found = (1..=LONGEST).find_map(|period| self.repeats(at, period)).map(|(period, seconds)| {
            // Who has begun this iteration has had all messages of those before.
            let latency_seconds = |from| {
                self.iterations.range(from..at).map(|iteration| iteration.latency_seconds).sum::<f64>()
            };
            Found {
                iteration,
                seconds: self.iterations[at].seconds.iter().copied().fold(0.0, f64::max),
                latency_seconds: self.earlier_latency_seconds + latency_seconds(0),
                seconds_per_iteration: seconds / period as f64,
                latency_per_iteration: latency_seconds(at - period) / period as f64,
            }
        });
        // Iterations are completed in their order, so what is too long ago is over.
        while self.first + (ALIKE * LONGEST) as u64 <= iteration {
            self.earlier_latency_seconds += self.iterations.pop_front().map_or(0.0, |it| it.latency_seconds);
            self.first += 1;
        }
    }

    /// A message of the iteration of that number took so long.
    pub(super) fn arrives(&mut self, iteration: u64, latency_seconds: f64) {
        self.iterations[(iteration - self.first) as usize].latency_seconds += latency_seconds;
    }

    /// The seconds of a period if the last ones were alike.
    fn repeats(&self, at: usize, period: usize) -> Option<(usize, f64)> {
        let first = at.checked_sub(ALIKE * period)?;
        let seconds = |iteration: usize| &self.iterations[iteration].seconds;
        let length = seconds(at)[0] - seconds(at - period)[0];
        let slack = ROUNDING * seconds(at)[0];
        let alike = (first..at).step_by(period).all(|earlier| {
            let pairs = seconds(earlier).iter().zip(seconds(earlier + period));
            pairs.into_iter().all(|(before, after)| (after - before - length).abs() <= slack)
        });
        alike.then_some((period, length))
    }
}
