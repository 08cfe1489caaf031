//! `--time-limit` and `--watchdog`: a thread, the watcher, looks at intervals at what every PE runs. Without these flags
//! there is no such thread.
//!
//! The watcher learns only at its next look that a delivery has begun. So the true time of a delivery is longer than the
//! measured time, by at most one interval between looks.

use crate::node::{Failure, Node};
use crate::process;
use crate::pulse::Activity;
use equipoise_model::table::{count, seconds};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// When the time limit is over, a delivery that runs longer than this is stuck.
const GRACE: Duration = Duration::from_secs(2);

/// A PE runs all messages that it took in one turn before it stops. This long after the time limit, a PE that still runs
/// messages is stuck, even if each of them is short.
const LONG_GRACE: Duration = Duration::from_secs(10);

/// The watcher of a run; dropping it ends its thread.
pub(super) struct Watcher {
    end: Arc<End>,
    thread: Option<JoinHandle<()>>,
}

/// Wakes the watcher when the run is over.
#[derive(Default)]
struct End {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Watcher {
    /// Starts the watcher, if a flag needs one.
    pub(super) fn start(node: &Arc<Node>) -> Option<Self> {
        let settings = &node.settings;
        let shortest = settings.watchdog.into_iter().chain(settings.time_limit).min()?;
        // A delivery is measured with an error of at most an eighth of the shortest time.
        let period = (shortest / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        let (end, node) = (Arc::new(End::default()), Arc::clone(node));
        let watch = {
            let end = Arc::clone(&end);
            move || Watch::new(&node, period).run(&end)
        };
        match std::thread::Builder::new().name("watcher".into()).spawn(watch) {
            Ok(thread) => Some(Watcher { end, thread: Some(thread) }),
            Err(error) => {
                process::warn(&format!(
                    "--time-limit and --watchdog have no effect: cannot start a thread: {error}"
                ));
                None
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        *self.end.is_over.lock() = true;
        self.end.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the watcher's thread.
struct Watch<'a> {
    node: &'a Node,
    /// The time between two looks.
    period: Duration,
    /// For each pulse: when the watcher first saw the current delivery; none if no user code runs.
    since: Vec<Option<Instant>>,
    /// The end of the time limit; none without a limit, and when it has passed.
    limit: Option<Instant>,
    /// When the watcher noticed that the time limit had passed.
    ended: Option<Instant>,
    /// After the time limit: when to check next whether a PE is stuck.
    next_check: Option<Instant>,
    /// The earliest time of the next warning of the watchdog.
    next_warning: Instant,
}

/// A delivery, or other user code, that a PE runs at the time of a look.
struct Observed {
    /// The element and entry, or the other code, with the PE.
    what: String,
    /// The time since the first look that saw this delivery; none if that is the current look.
    age: Option<Duration>,
}

impl<'a> Watch<'a> {
    fn new(node: &'a Node, period: Duration) -> Self {
        let now = Instant::now();
        Watch {
            node,
            period,
            since: node.pulses.all().map(|_| None).collect(),
            limit: node.settings.time_limit.map(|limit| now + limit),
            ended: None,
            next_check: None,
            next_warning: now,
        }
    }

    fn run(mut self, end: &End) {
        let mut is_over = end.is_over.lock();
        while !*is_over {
            let now = Instant::now();
            let observed = self.look(now);
            if self.limit.is_some_and(|limit| now >= limit) {
                self.limit = None;
                self.ended = Some(now);
                self.next_check = Some(now + GRACE);
                self.node.fail_with(Failure::TimeLimit, observed.iter().map(Observed::line).collect());
            } else if self.next_check.is_some_and(|next| now >= next) {
                self.end_if_stuck(now, &observed);
            }
            self.warn_of_longest(now, &observed);
            let next =
                [self.limit, self.next_check].into_iter().flatten().fold(now + self.period, Instant::min);
            end.changed.wait_until(&mut is_over, next);
        }
    }

    /// What the PEs run, the longest delivery first.
    fn look(&mut self, now: Instant) -> Vec<Observed> {
        let mut all = Vec::new();
        for ((pe, pulse), since) in self.node.pulses.all().zip(&mut self.since) {
            let (activity, same) = pulse.look();
            let earlier = since.filter(|_| same);
            *since = (activity != Activity::Nothing).then(|| earlier.unwrap_or(now));
            if let Some(what) = self.node.pulses.describe(pe as u32, activity, &self.node.settings) {
                all.push(Observed { what, age: earlier.map(|since| now - since) });
            }
        }
        all.sort_by_key(|observed| std::cmp::Reverse(observed.age));
        all
    }

    /// `--watchdog`: warns of the delivery that has run longest, if it has run for the interval of the flag or longer. There
    /// is at most one warning in each interval.
    fn warn_of_longest(&mut self, now: Instant, observed: &[Observed]) {
        let Some(interval) = self.node.settings.watchdog.filter(|_| now >= self.next_warning) else { return };
        let mut long = observed.iter().filter(|one| one.age.is_some_and(|age| age >= interval));
        let Some(longest) = long.next() else { return };
        let more = match long.count() {
            0 => String::new(),
            more => {
                let (pes, verb) = (count(more as u64, "other PE"), if more == 1 { "has" } else { "have" });
                format!("; {pes} {verb} run one delivery for {} or more", seconds(interval.as_secs_f64()))
            }
        };
        process::warn(&format!("--watchdog: {}{more}", longest.line()));
        self.next_warning = now + interval;
    }

    /// `--time-limit`: the time is over, and PEs still run. A stuck PE never stops, and a thread cannot be stopped from
    /// outside. Therefore the process of a program is ended. Where the configuration was made in code, a warning says that
    /// the run ends only when the delivery returns.
    fn end_if_stuck(&mut self, now: Instant, observed: &[Observed]) {
        let is_late = self.ended.is_some_and(|ended| now - ended >= LONG_GRACE);
        let is_stuck = |one: &&Observed| is_late || one.age.is_some_and(|age| age >= GRACE);
        let stuck: Vec<String> = observed.iter().filter(is_stuck).map(Observed::line).collect();
        self.next_check = stuck.is_empty().then_some(now + self.period);
        let Some(first) = stuck.first() else { return };
        if !self.node.settings.program {
            let remedy = "the run ends when this returns, because a thread cannot be stopped";
            return process::warn(&format!("--time-limit: the time is over, and {first}; {remedy}"));
        }
        let mut outcome = self.node.outcome.lock();
        // Also after an exit: the run cannot end with its result.
        outcome.failure.get_or_insert(Failure::TimeLimit);
        outcome.waiting.runs(stuck);
        if let Some(error) = outcome.error(&self.node.settings) {
            process::print_end(&error);
            std::process::exit(error.exit_code());
        }
    }
}

impl Observed {
    /// The line of a report.
    fn line(&self) -> String {
        match self.age {
            None => format!("{} is running", self.what),
            Some(age) => {
                format!("{} has run for {} and has not returned", self.what, seconds(age.as_secs_f64()))
            }
        }
    }
}
