//! The counters of `--metrics`, and their text in Prometheus' format of text files.
//!
//! A PE publishes counters that it has anyway, when it becomes idle and from time to time while it is busy. The text says
//! how long PEs have been idle or busy until now, even if a PE runs one entry all the time.

use crate::options::{Settings, of_process};
use crossbeam_utils::CachePadded;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The time between two writes, unless a flag says otherwise.
const EVERY: Duration = Duration::from_secs(5);

/// The shortest time between two publications of a PE that is not idle.
pub(crate) const PUBLISHES: Duration = Duration::from_millis(10);

/// What the PEs of a process have published.
pub(crate) struct Metrics {
    path: PathBuf,
    pub(crate) every: Duration,
    process: u32,
    first: u32,
    start: Instant,
    pes: Box<[CachePadded<Published>]>,
    steps: AtomicU64,
    step_nanoseconds: AtomicU64,
    is_in_step: AtomicBool,
}

/// What a PE has published.
#[derive(Default)]
struct Published {
    executions: AtomicU64,
    remote_messages: AtomicU64,
    migrations: AtomicU64,
    queued: AtomicU64,
    /// The idle time until the PE was busy last, and since when it is idle (0 if it is busy), in nanoseconds.
    idle_nanoseconds: AtomicU64,
    idle_since: AtomicU64,
}

/// The counters of a PE at one time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) executions: u64,
    pub(crate) remote_messages: u64,
    pub(crate) migrations: u64,
    pub(crate) queued: u64,
}

/// A family of metrics: its name, type, help, and the value of each PE.
type Family<'a> = (&'a str, &'a str, &'a str, &'a dyn Fn(&Published) -> f64);

impl Metrics {
    /// The counters of process `process`, whose first PE is `first`; none if no flag asks for them.
    pub(crate) fn of(settings: &Settings, process: u32, first: u32) -> Option<Metrics> {
        let records = &settings.records;
        Some(Metrics {
            path: of_process(records.metrics.as_ref()?, process),
            every: records.metrics_every.map_or(EVERY, Duration::from_secs_f64),
            process,
            first,
            start: Instant::now(),
            pes: (0..settings.local_pes()).map(|_| CachePadded::default()).collect(),
            steps: AtomicU64::default(),
            step_nanoseconds: AtomicU64::default(),
            is_in_step: AtomicBool::default(),
        })
    }

    /// Nanoseconds since the begin; never 0.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64 + 1
    }

    /// PE `local` of the process is idle since `now`.
    pub(crate) fn rests(&self, local: u32, now: u64) {
        self.pes[local as usize].idle_since.store(now, Relaxed);
    }

    /// PE `local` of the process is busy again.
    pub(crate) fn resumes(&self, local: u32, now: u64) {
        let published = &self.pes[local as usize];
        let since = published.idle_since.swap(0, Relaxed);
        if since > 0 {
            published.idle_nanoseconds.fetch_add(now.saturating_sub(since), Relaxed);
        }
    }

    /// Publishes the counters of PE `local` of the process.
    pub(crate) fn publish(&self, local: u32, counters: Counters) {
        let published = &self.pes[local as usize];
        published.executions.store(counters.executions, Relaxed);
        published.remote_messages.store(counters.remote_messages, Relaxed);
        published.migrations.store(counters.migrations, Relaxed);
        published.queued.store(counters.queued, Relaxed);
    }

    /// PE 0 has decided a load-balancing step.
    pub(crate) fn balances(&self) {
        self.is_in_step.store(true, Relaxed);
    }

    /// PE 0 continues after a sync point that took `seconds`.
    pub(crate) fn has_synced(&self, seconds: f64) {
        if self.is_in_step.swap(false, Relaxed) {
            self.steps.fetch_add(1, Relaxed);
            self.step_nanoseconds.fetch_add((seconds * 1e9) as u64, Relaxed);
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// A sentence, if the file system reports an error.
    pub(crate) fn write(&self) -> Result<(), String> {
        let text = self.text(crate::events::resident_bytes());
        equipoise_model::files::write_whole(&self.path, text.as_bytes()).map_err(|error| {
            format!("--metrics: cannot write `{}`: {error}; choose a writable path", self.path.display())
        })
    }

    /// The text of the file, if the process has this much memory in use.
    fn text(&self, resident_bytes: Option<u64>) -> String {
        let now = self.now();
        let seconds = |nanoseconds: u64| nanoseconds as f64 * 1e-9;
        let idle = |pe: &Published| {
            let since = pe.idle_since.load(Relaxed);
            let current = if since == 0 { 0 } else { now.saturating_sub(since) };
            (pe.idle_nanoseconds.load(Relaxed) + current).min(now)
        };
        let count = |of: &AtomicU64| of.load(Relaxed) as f64;
        let families: [Family; 6] = [
            ("pe_busy_seconds_total", "counter", "Time that the PE was not idle.", &|pe| {
                seconds(now - idle(pe))
            }),
            ("pe_idle_seconds_total", "counter", "Time that the PE had nothing to do.", &|pe| {
                seconds(idle(pe))
            }),
            ("pe_queue_length", "gauge", "Messages in the queues of the PE.", &|pe| count(&pe.queued)),
            ("pe_messages_total", "counter", "Messages that the PE has executed.", &|pe| {
                count(&pe.executions)
            }),
            ("pe_remote_messages_total", "counter", "Messages that the PE has sent to other PEs.", &|pe| {
                count(&pe.remote_messages)
            }),
            ("pe_migrations_total", "counter", "Elements that have left the PE.", &|pe| {
                count(&pe.migrations)
            }),
        ];
        let mut text = String::new();
        let process = self.process;
        for (name, kind, help, value) in families {
            head(&mut text, name, kind, help);
            for (pe, published) in (self.first..).zip(&self.pes) {
                let value = value(published);
                let _ = writeln!(text, "equipoise_{name}{{pe=\"{pe}\",process=\"{process}\"}} {value}");
            }
        }
        let mut single = |name: &str, kind: &str, help: &str, value: f64| {
            head(&mut text, name, kind, help);
            let _ = writeln!(text, "equipoise_{name}{{process=\"{process}\"}} {value}");
        };
        if self.first == 0 {
            single("lb_steps_total", "counter", "Load-balancing steps.", count(&self.steps));
            let taken = seconds(self.step_nanoseconds.load(Relaxed));
            single("lb_step_seconds_total", "counter", "Time of load-balancing steps on PE 0.", taken);
        }
        single("run_seconds_total", "counter", "Time since the run began.", seconds(now));
        if let Some(bytes) = resident_bytes {
            single("resident_memory_bytes", "gauge", "Memory that the process has in use.", bytes as f64);
        }
        text
    }
}

/// Adds the lines about a metric.
fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP equipoise_{name} {help}\n# TYPE equipoise_{name} {kind}");
}
