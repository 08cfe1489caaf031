//! The counters of `--metrics`, and their text in Prometheus' format of text files.
//!
//! A PE publishes counters that it has anyway, when it becomes idle and from time to time while it is busy. The text says
//! how long PEs have been idle or busy until now, even if a PE runs one entry all the time.

use crate::options::{Settings, of_process, unwritable};
use crossbeam_utils::CachePadded;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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
    /// When the file was written last, in nanoseconds.
    written: AtomicU64,
}

/// What a PE has published.
#[derive(Default)]
struct Published {
    executions: AtomicU64,
    remote_messages: AtomicU64,
    migrations: AtomicU64,
    queued: AtomicU64,
    /// Whether the PE is idle in the lowest bit, and above it nanoseconds: of a busy PE its idle time so far, of an idle PE its
    /// busy time so far.
    idle: AtomicU64,
    /// The idle time that was written last, in nanoseconds. Only the thread that writes uses it.
    written_idle: AtomicU64,
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
            written: AtomicU64::default(),
        })
    }

    /// Nanoseconds since the begin; never 0.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64 + 1
    }

    /// PE `local` of the process is idle since `now`.
    pub(crate) fn rests(&self, local: u32, now: u64) {
        let idle = &self.pes[local as usize].idle;
        let word = idle.load(Relaxed);
        if word & 1 == 0 {
            idle.store(now.saturating_sub(word >> 1) << 1 | 1, Relaxed);
        }
    }

    /// PE `local` of the process is busy again.
    pub(crate) fn resumes(&self, local: u32, now: u64) {
        let idle = &self.pes[local as usize].idle;
        let word = idle.load(Relaxed);
        if word & 1 == 1 {
            idle.store(now.saturating_sub(word >> 1) << 1, Relaxed);
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

    /// PE 0 continues after a load-balancing step that took `seconds`.
    pub(crate) fn has_balanced(&self, seconds: f64) {
        self.steps.fetch_add(1, Relaxed);
        self.step_nanoseconds.fetch_add((seconds * 1e9) as u64, Relaxed);
    }

    /// Writes the file.
    ///
    /// # Errors
    /// A sentence, if the file system reports an error.
    pub(crate) fn write(&self) -> Result<(), String> {
        let text = self.text(crate::events::resident_bytes());
        equipoise_model::files::write_whole(&self.path, text.as_bytes())
            .map_err(|error| unwritable("--metrics", &self.path, &error))
    }

    /// Notes the idle time of each PE at `now`, in nanoseconds. Neither it nor the rest of the time, in which the PE was busy, is less
    /// than in the text before, even if a PE is about to say that it became idle or busy.
    fn note_idle_times(&self, now: u64) {
        let passed = now.saturating_sub(self.written.swap(now, Relaxed));
        for pe in &self.pes {
            let word = pe.idle.load(Relaxed);
            let idle = if word & 1 == 0 { word >> 1 } else { now.saturating_sub(word >> 1) };
            let before = pe.written_idle.load(Relaxed);
            let idle = idle.clamp(before, before + passed);
            pe.written_idle.store(idle, Relaxed);
        }
    }

    /// The text of the file, if the process has this much memory in use.
    fn text(&self, resident_bytes: Option<u64>) -> String {
        let now = self.now();
        let seconds = |nanoseconds: u64| nanoseconds as f64 * 1e-9;
        self.note_idle_times(now);
        let count = |of: &AtomicU64| of.load(Relaxed) as f64;
        let families: [Family; 6] = [
            ("pe_busy_seconds_total", "counter", "Time that the PE was not idle.", &|pe| {
                seconds(now.saturating_sub(pe.written_idle.load(Relaxed)))
            }),
            ("pe_idle_seconds_total", "counter", "Time that the PE had nothing to do.", &|pe| {
                seconds(pe.written_idle.load(Relaxed))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn metrics() -> Metrics {
        Metrics {
            path: PathBuf::new(),
            every: EVERY,
            process: 0,
            first: 0,
            start: Instant::now(),
            pes: [CachePadded::default()].into(),
            steps: AtomicU64::default(),
            step_nanoseconds: AtomicU64::default(),
            written: AtomicU64::default(),
        }
    }

    #[test]
    fn idle_time_is_that_between_rest_and_work() {
        let metrics = metrics();
        let at = |now| {
            metrics.note_idle_times(now);
            metrics.pes[0].written_idle.load(Relaxed)
        };
        assert_eq!(at(5), 0);
        metrics.rests(0, 10);
        metrics.rests(0, 12);
        assert_eq!(at(15), 5);
        metrics.resumes(0, 20);
        assert_eq!(at(30), 10);
        metrics.rests(0, 40);
        assert_eq!(at(41), 11);
        metrics.resumes(0, 50);
        assert_eq!(at(50), 20);
    }

    #[test]
    fn neither_idle_nor_busy_time_decreases() {
        let metrics = metrics();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    metrics.rests(0, metrics.now());
                    metrics.resumes(0, metrics.now());
                }
            });
            let mut before = [0, 0];
            for _ in 0..100_000 {
                let now = metrics.now();
                metrics.note_idle_times(now);
                let idle = metrics.pes[0].written_idle.load(Relaxed);
                let times = [idle, now - idle];
                assert!(times[0] >= before[0] && times[1] >= before[1], "{before:?}, {times:?}");
                before = times;
            }
            is_over.store(true, Relaxed);
        });
    }
}
