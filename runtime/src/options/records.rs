//! The flags that record a run while it proceeds: traces, timelines and metrics.

use super::{Config, ConfigError, Job, Transport, flag, wrong};
use crate::events::CHUNK_BYTES;
use equipoise_model::fault::Classified;
use equipoise_model::files::{can_write_whole, file_at};
use equipoise_model::params::parse_bytes;
use equipoise_model::table::{bytes, count};
use equipoise_network::trace::Trace;
use equipoise_report::{ReportFile, perfetto};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

// Through `concat!`, because clap shows `///` as the description of every program that flattens `Config`.
#[doc = concat!("What is recorded of a run while it proceeds; by default nothing.")]
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Recording")]
pub struct Records {
    /// Write a timeline of the run for Perfetto (ui.perfetto.dev), as in run.pftrace
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,

    /// Write a trace of the run to this file, for `equipoise simulate --events` and `equipoise convert` (.json: as JSON)
    ///
    /// The trace has executions, messages and their dependencies.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// The most memory for the events of --record and --perfetto, of all PEs together, as in 64M; when it is full, the oldest
    /// events are dropped. At least 256k for each PE. At the end, process 0 needs about eight times this size. Not for simulated
    /// machines, which record everything [default: 128M]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub record_limit: Option<u64>,

    /// Write counters of PEs to this file every few seconds, in Prometheus' textfile format; `%p` in the name is the number of
    /// the process
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,

    /// The time between two writes of --metrics [default: 5]
    #[arg(long, value_name = "SECONDS", requires = "metrics", allow_negative_numbers = true)]
    pub metrics_every: Option<f64>,
}

/// The bytes for events, unless a flag says otherwise.
const LIMIT: u64 = 128 << 20;

impl Records {
    /// The most memory for events, in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.record_limit.unwrap_or(LIMIT)
    }

    /// Records a trace in the file at `path`, and nothing else.
    pub fn trace(path: impl Into<PathBuf>) -> Self {
        Records { record: Some(path.into()), ..Records::default() }
    }
}

impl Config {
    /// Checks the flags against each other, for this number of PEs in this number of processes, and that files can be written.
    pub(super) fn check_records(&self, job: &Job, pes: usize, processes: usize) -> Result<(), ConfigError> {
        let Records { perfetto, record, record_limit, metrics, .. } = &self.records;
        let first =
            [("--record", record), ("--perfetto", perfetto)].into_iter().find(|(_, path)| path.is_some());
        let is_timeless = self.transport == Transport::Simulated && self.machine.network.is_none();
        match first {
            Some((name, _)) if is_timeless => {
                return Err(flag(format!(
                    "{name} with --transport simulated: without a network there is no time to record; add --network SPEC"
                )));
            }
            Some((name, _)) if self.replay_order.is_some() => {
                return Err(flag(format!(
                    "{name} with --replay-order: the threads of the recorded run are one thread in its repetition, so its times \
                     mean nothing; record the first run"
                )));
            }
            None if record_limit.is_some() => {
                return Err(flag("--record-limit without --record or --perfetto: add one of them".into()));
            }
            _ => {}
        }
        if record_limit.is_some() && self.transport == Transport::Simulated {
            return Err(flag(
                "--record-limit on a simulated machine, whose trace is written while it runs; leave it out"
                    .into(),
            ));
        }
        if let Some((name, _)) = first.filter(|_| self.transport != Transport::Simulated) {
            self.check_record_limit(name, pes)?;
        }
        self.check_files()?;
        if let Some(path) = metrics {
            if self.transport == Transport::Simulated || self.replay_order.is_some() {
                return Err(flag(
                    "--metrics with --transport simulated or --replay-order: metrics are those of PEs that run in real time; \
                     leave it out"
                        .into(),
                ));
            }
            if path.to_str().is_none() && path.to_string_lossy().contains("%p") {
                return Err(flag(format!(
                    "--metrics {}: the name is not UTF-8, so the number of the process cannot be put into it; choose another name",
                    path.display()
                )));
            }
            if processes > 1 && !path.to_string_lossy().contains("%p") {
                return Err(flag(format!(
                    "--metrics {} with several processes, each of which writes a file: put %p into the name, for the number of the \
                     process",
                    path.display()
                )));
            }
            can_write_whole(&of_process(path, job.process))
                .map_err(|error| refused("--metrics", path, &error))?;
        }
        // Of several processes, the first writes the files.
        if job.process == 0 {
            if let Some(path) = record {
                if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pftrace")) {
                    return Err(flag(format!(
                        "--record: a trace is not in Perfetto's format, and `{}` is a name of it; use --perfetto, or name the trace as in run.trace",
                        path.display()
                    )));
                }
                Trace::can_write(path).map_err(|error| wrong("--record", &error))?;
            }
            if let Some(path) = perfetto {
                perfetto::check_name(path).map_err(|sentence| flag(format!("--perfetto: {sentence}")))?;
                can_write_whole(path).map_err(|error| refused("--perfetto", path, &error))?;
            }
        }
        Ok(())
    }

    /// Refuses an output with the file of an input or of another output.
    fn check_files(&self) -> Result<(), ConfigError> {
        let Records { perfetto, record, metrics, .. } = &self.records;
        let outputs = [
            ("--report", self.report.as_ref().map(ReportFile::path)),
            ("--lb-dump", self.lb_dump.as_deref()),
            ("--record-order", self.record_order.as_deref()),
            ("--record", record.as_deref()),
            ("--perfetto", perfetto.as_deref()),
            ("--metrics", metrics.as_deref()),
        ];
        // A word such as `blocks` is not a file, unless there is one.
        let file_or_word = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_file());
        let inputs = [
            ("--initial", file_or_word(&self.initial)),
            ("--lb-schedule", self.lb_schedule.clone()),
            ("--pes-available", self.pes_available.clone()),
            ("--max-objects", self.max_objects.as_deref().and_then(file_or_word)),
            ("--memory", self.memory.as_deref().and_then(file_or_word)),
            ("--cost-model", self.cost_model.clone()),
            ("--lb-sim-file", self.lb_sim_file.clone()),
            ("--replay-order", self.replay_order.clone()),
        ];
        let read: BTreeMap<_, _> =
            inputs.into_iter().filter_map(|(name, path)| Some((file_at(&path?)?, name))).collect();
        let mut flags = BTreeMap::new();
        for (name, path) in outputs.into_iter().filter_map(|(name, path)| Some((name, file_at(path?)?))) {
            if let Some(input) = read.get(&path) {
                return Err(flag(format!("{name} would replace the file of {input}; give it another name")));
            }
            if let Some(other) = flags.insert(path, name) {
                return Err(flag(format!("{other} and {name} name the same file; give each its own name")));
            }
        }
        Ok(())
    }

    /// Checks the limit of the recording, by this number of PEs, that flag `name` asks for.
    fn check_record_limit(&self, name: &str, pes: usize) -> Result<(), ConfigError> {
        let least = pes as u64 * 2 * CHUNK_BYTES;
        let limit = self.records.limit();
        if limit >= least {
            return Ok(());
        }
        let asked = match self.records.record_limit {
            Some(_) => format!("--record-limit of {}", bytes(limit)),
            None => format!("{name} with the default limit of {}", bytes(limit)),
        };
        // In the form that the flag takes, and never less than the size that is needed.
        let enough = format!("{}k", least.div_ceil(1024));
        let verb = if pes == 1 { "needs" } else { "need" };
        let pes = count(pes as u64, "PE");
        Err(flag(format!("{asked}: {pes} {verb} at least {enough}; give --record-limit {enough}")))
    }
}

/// The sentence that the file of flag `name` cannot be written.
pub(crate) fn unwritable(name: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{name}: cannot write `{}`: {error}; choose a writable path", path.display())
}

/// The error that the file of flag `name` cannot be written.
fn refused(name: &str, path: &Path, error: &std::io::Error) -> ConfigError {
    ConfigError { fault: error.fault(), sentence: unwritable(name, path, error) }
}

/// A path with the number of a process in the place of `%p`.
pub(crate) fn of_process(path: &Path, process: u32) -> PathBuf {
    match path.to_str() {
        Some(text) if text.contains("%p") => text.replace("%p", &process.to_string()).into(),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_that_a_refusal_names_is_enough_with_the_default_limit_too() {
        let config = |pes, record_limit| Config {
            records: Records { record_limit, ..Records::trace("some.trace") },
            ..Config::threads(pes)
        };
        let check = |pes, limit| config(pes, limit).check_record_limit("--record", pes);
        assert!(check(512, None).is_ok());
        for (pes, limit) in [(513, None), (3, Some(1000)), (1, Some(0))] {
            let sentence = check(pes, limit).expect_err("too small").sentence;
            let remedy =
                sentence.split_whitespace().last().map(parse_bytes).expect("a size").expect("a size");
            assert!(check(pes, Some(remedy)).is_ok(), "{sentence}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_name_with_the_place_of_a_number_has_to_be_text() {
        use std::os::unix::ffi::OsStrExt as _;
        let name = std::ffi::OsStr::from_bytes(b"m\xff.%p.prom");
        let records = Records { metrics: Some(name.into()), ..Records::default() };
        let config = Config { records, ..Config::threads(1) };
        let refused = config.check_records(&Job::default(), 1, 1).expect_err("not UTF-8");
        assert!(refused.sentence.contains("not UTF-8"), "{}", refused.sentence);
    }

    #[test]
    fn the_number_of_a_process_replaces_its_place() {
        assert_eq!(of_process(Path::new("a/m.%p.prom"), 12), Path::new("a/m.12.prom"));
        assert_eq!(of_process(Path::new("a/m.prom"), 12), Path::new("a/m.prom"));
    }
}
