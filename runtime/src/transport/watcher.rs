//! The thread that watches a run, for `--time-limit` and `--watchdog`. There is none without these flags.

use crate::node::{Failure, Node};
use crate::pulse::Activity;
use crate::signals;
use equipoise_model::files;
use equipoise_model::quote::sentences;
use equipoise_model::table::{count, seconds};
use parking_lot::{Condvar, Mutex};
use std::io::{self, Write as _};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the PEs may need to end their deliveries when the time of a run is over.
const GRACE: Duration = Duration::from_secs(2);

/// How long they may need to end all deliveries that they have taken.
const LONG_GRACE: Duration = Duration::from_secs(10);

/// The watcher of a run; dropping it ends its thread.
pub(super) struct Watcher {
    over: Arc<Over>,
    thread: Option<JoinHandle<()>>,
}

/// Whether the run is over, and the bell for that.
#[derive(Default)]
struct Over {
    over: Mutex<bool>,
    bell: Condvar,
}

impl Watcher {
    /// Starts the watcher, if a flag needs one.
    pub(super) fn start(node: &Arc<Node>) -> Option<Self> {
        let settings = &node.settings;
        let shortest = settings.watchdog.into_iter().chain(settings.time_limit).min()?;
        // Deliveries are timed to an eighth of the shortest time.
        let period = (shortest / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        let (over, node) = (Arc::new(Over::default()), Arc::clone(node));
        let watch = {
            let over = Arc::clone(&over);
            move || Watch::new(&node, period).run(&over)
        };
        match std::thread::Builder::new().name("watcher".into()).spawn(watch) {
            Ok(thread) => Some(Watcher { over, thread: Some(thread) }),
            Err(error) => {
                eprintln!(
                    "warning: --time-limit and --watchdog have no effect: cannot start a thread: {error}"
                );
                None
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        *self.over.over.lock() = true;
        self.over.bell.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct Watch<'a> {
    node: &'a Node,
    period: Duration,
    /// For each PE (or for all PEs, in one thread): since when it runs one delivery.
    since: Vec<Option<Instant>>,
    /// When the time of the run is over.
    limit: Option<Instant>,
    /// When the time of the run was over.
    ended: Option<Instant>,
    /// When PEs that still run a delivery are reported, after the time is over.
    verdict: Option<Instant>,
    /// When the watchdog may report again.
    next_report: Instant,
}

/// What a PE runs.
struct Sight {
    /// The activity in words, with the PE.
    what: String,
    /// How long it has run at least; none if this is the first look at it.
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
            verdict: None,
            next_report: now,
        }
    }

    fn run(mut self, over: &Over) {
        let mut is_over = over.over.lock();
        while !*is_over {
            let now = Instant::now();
            let sights = self.look(now);
            if self.limit.is_some_and(|limit| now >= limit) {
                self.limit = None;
                self.ended = Some(now);
                self.verdict = Some(now + GRACE);
                self.node.fail_with(Failure::TimeLimit, sights.iter().map(Sight::line).collect());
            } else if self.verdict.is_some_and(|verdict| now >= verdict) {
                self.judge(now, &sights);
            }
            self.bark(now, &sights);
            let next = [self.limit, self.verdict].into_iter().flatten().fold(now + self.period, Instant::min);
            over.bell.wait_until(&mut is_over, next);
        }
    }

    /// What the PEs run, the longest first.
    fn look(&mut self, now: Instant) -> Vec<Sight> {
        let mut sights = Vec::new();
        for ((pe, pulse), since) in self.node.pulses.all().zip(&mut self.since) {
            let (activity, same) = pulse.look();
            let earlier = since.filter(|_| same);
            *since = (activity != Activity::Nothing).then(|| earlier.unwrap_or(now));
            if let Some(what) = self.node.pulses.describe(pe, activity, &self.node.settings) {
                sights.push(Sight { what, age: earlier.map(|since| now - since) });
            }
        }
        sights.sort_by_key(|sight| std::cmp::Reverse(sight.age));
        sights
    }

    /// Reports the delivery that runs longest, if it is too long, once in every interval.
    fn bark(&mut self, now: Instant, sights: &[Sight]) {
        let Some(interval) = self.node.settings.watchdog.filter(|_| now >= self.next_report) else { return };
        let mut long = sights.iter().filter(|sight| sight.age.is_some_and(|age| age >= interval));
        let Some(longest) = long.next() else { return };
        let more = match long.count() {
            0 => String::new(),
            more => {
                let (pes, verb) = (count(more as u64, "other PE"), if more == 1 { "has" } else { "have" });
                format!("; {pes} {verb} run one delivery for {} or more", seconds(interval.as_secs_f64()))
            }
        };
        warn(&format!("--watchdog: {}{more}", longest.line()));
        self.next_report = now + interval;
    }

    /// The time is over, and a PE still runs the delivery that it ran then. A thread cannot be stopped from outside, so
    /// the process of a program ends. Other runs end when the delivery ends.
    fn judge(&mut self, now: Instant, sights: &[Sight]) {
        let is_late = self.ended.is_some_and(|ended| now - ended >= LONG_GRACE);
        let is_stuck = |sight: &&Sight| is_late || sight.age.is_some_and(|age| age >= GRACE);
        let stuck: Vec<String> = sights.iter().filter(is_stuck).map(Sight::line).collect();
        self.verdict = stuck.is_empty().then_some(now + self.period);
        let Some(first) = stuck.first() else { return };
        if !self.node.settings.program {
            let remedy = "the run ends when this returns, because a thread cannot be stopped";
            return warn(&format!("--time-limit: the time is over, and {first}; {remedy}"));
        }
        let mut outcome = self.node.outcome.lock();
        // Also after an exit: the run cannot end with its result.
        outcome.failure.get_or_insert(Failure::TimeLimit);
        outcome.waiting.runs(stuck);
        if let Some(error) = outcome.error(&self.node.settings) {
            // Unfinished files are removed, or keep the load-balancing steps so far.
            let kept = files::interrupt();
            let notes: String = kept.iter().map(|kept| format!("\nnote: {kept}")).collect();
            signals::say_last(format!("error: {}{notes}", sentences(&error.to_string())));
            std::process::exit(error.exit_code());
        }
    }
}

/// Writes a warning to stderr. A closed stderr must not end the watcher.
fn warn(sentence: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", sentences(sentence));
}

impl Sight {
    fn line(&self) -> String {
        match self.age {
            None => format!("{} is running", self.what),
            Some(age) => {
                format!("{} has run for {} and has not returned", self.what, seconds(age.as_secs_f64()))
            }
        }
    }
}
