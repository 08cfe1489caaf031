//! The report of a successful run, and the error of a failed one.

use crate::batches::Amount;
use crate::checkpoint::CheckpointCost;
use crate::lb_history::{LbStep, LbSummary};
use crate::options::ConfigError;
use crate::process;
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::table::{bytes, count, seconds};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The report of a successful run.
#[derive(Debug)]
pub struct Report<R> {
    /// The result that the program exited with.
    pub result: R,
    /// Wall-clock seconds from before the setup to the end, on this computer even if a machine is simulated.
    pub seconds: f64,
    /// The number of PEs.
    pub pes: usize,
    /// The process that returns this report, from 0; 0 unless the transport has several processes. All processes return the same
    /// result, and only process 0 the load-balancing steps and the warnings. Print results where this is 0.
    pub process: usize,
    /// The processes, and the messages between them.
    pub job: JobReport,
    /// The seed of the random number generator.
    pub seed: u64,
    /// The report of the simulated machine, if there was one.
    pub machine: Option<MachineReport>,
    /// The load-balancing steps; of more than 1000 steps the first 500 and the last 500.
    pub lb_steps: Vec<LbStep>,
    /// A summary of all load-balancing steps.
    pub lb_summary: LbSummary,
    /// Messages delivered to elements; a broadcast counts once per element.
    pub executions: u64,
    /// Messages between PEs.
    pub remote_messages: u64,
    /// Migrations of elements, by load-balancing steps and by [`Cx::migrate`](crate::Cx::migrate).
    pub migrations: u64,
    /// The number of checkpoints that were written.
    pub checkpoints: u64,
    /// Why the last checkpoint could not be saved, if it could not. The warning has been printed when it failed.
    pub checkpoint_error: Option<String>,
    /// What checkpoints have cost, if the run has saved itself and there is a clock: not on a simulated transport without a
    /// network.
    pub checkpoint_cost: Option<CheckpointCost>,
    /// The error of writing the file of `--lb-dump` or `--record`, if there was one.
    /// [`run`](crate::run()) prints it.
    pub dump_error: Option<String>,
    /// A warning if fewer databases exist than `--lb-dump` asked for. [`run`](crate::run()) prints it.
    pub dump_warning: Option<String>,
    /// Warnings about the program: messages for elements that do not exist when the run ends, a load balancer without an
    /// array that takes part. [`run`](crate::run()) prints them.
    pub warnings: Vec<String>,
}

/// The processes of a run, and the messages between them. With threads there is one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobReport {
    /// The name of the computer of each process.
    pub hosts: Vec<String>,
    /// The messages between processes. [`Report::remote_messages`] counts messages between PEs.
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// The messages between processes, including those of the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Between processes on one computer.
    pub near: Amount,
    /// Between computers.
    pub far: Amount,
    /// The most bytes that waited in one process to be sent.
    pub peak_unsent_bytes: u64,
}

impl Traffic {
    /// Adds the traffic of other PEs.
    pub(crate) fn add(&mut self, other: Traffic) {
        self.near.add(other.near);
        self.far.add(other.far);
        self.peak_unsent_bytes = self.peak_unsent_bytes.max(other.peak_unsent_bytes);
    }
}

impl std::fmt::Display for JobReport {
    /// One line: processes, computers and messages.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut computers = self.hosts.clone();
        computers.sort_unstable();
        computers.dedup();
        let amount =
            |amount: Amount| format!("{} ({})", count(amount.messages, "message"), bytes(amount.bytes));
        let names = if computers.len() > 4 { String::new() } else { format!(" ({})", computers.join(", ")) };
        write!(
            f,
            "{} on {}{names}; between processes of one computer {}, between computers {}; at most {} waited in one process",
            count(self.hosts.len() as u64, "process"),
            count(computers.len() as u64, "computer"),
            amount(self.traffic.near),
            amount(self.traffic.far),
            bytes(self.traffic.peak_unsent_bytes),
        )
    }
}

/// The report of a simulated machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineReport {
    /// Virtual seconds until the program exited.
    pub seconds: f64,
    /// How each PE spent the time.
    pub pes: Vec<PeTime>,
    /// Messages that crossed the network, including those of the runtime.
    pub messages: u64,
    /// The mean latency of a message, from departure to arrival.
    pub mean_latency_seconds: f64,
    /// The 99th percentile of the latency, to 1 %.
    pub p99_latency_seconds: f64,
    /// Bytes over each link of the topology, by link number.
    pub link_bytes: Vec<u64>,
    /// The link with the longest transmission time, and that time in seconds; none if no link carried bytes.
    pub busiest_link: Option<(String, f64)>,
}

/// How a PE of a simulated machine spent its time, in virtual seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PeTime {
    /// Charged or measured work.
    pub busy_seconds: f64,
    /// Time of the runtime: deliveries, sends, receives, strategies.
    pub overhead_seconds: f64,
    /// Time without work.
    pub idle_seconds: f64,
}

impl std::fmt::Display for MachineReport {
    /// One line per value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = |of: fn(&PeTime) -> f64| {
            let sum: f64 = self.pes.iter().map(of).sum();
            let all = self.seconds * self.pes.len() as f64;
            if all > 0.0 { 100.0 * sum / all } else { 0.0 }
        };
        writeln!(f, "virtual time  {}", seconds(self.seconds))?;
        writeln!(
            f,
            "PEs           busy {:.1} %, overhead {:.1} %, idle {:.1} % (mean of all PEs)",
            share(|pe| pe.busy_seconds),
            share(|pe| pe.overhead_seconds),
            share(|pe| pe.idle_seconds),
        )?;
        if self.pes.iter().all(|pe| pe.busy_seconds == 0.0) {
            writeln!(f, "              no work was charged, so work took no virtual time")?;
        }
        write!(
            f,
            "messages      {}, mean latency {}, 99th percentile {}",
            self.messages,
            seconds(self.mean_latency_seconds),
            seconds(self.p99_latency_seconds),
        )?;
        if let Some((name, busy)) = &self.busiest_link {
            write!(f, "\nbusiest link  {name}, {} of the run at full bandwidth", seconds(*busy))?;
        }
        Ok(())
    }
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The configuration is invalid; the sentence names the remedy.
    #[error("{0}")]
    Config(String),
    /// The content of a file that the configuration names is invalid; the sentence names the remedy.
    #[error("{0}")]
    File(String),
    /// An entry method, `main` or the setup panicked.
    #[error("{place} panicked: {message}{}", repeat(.seed))]
    Panic {
        /// The element with its index, the entry and the PE.
        place: String,
        /// The message of the panic, with file, line and column.
        message: String,
        /// The seed of a simulated run.
        seed: Option<u64>,
    },
    /// No message was in flight, and the program had not exited.
    #[error(
        "the run came to rest without an exit: no message is in flight and {}{}{}",
        if .waiting.is_empty() { NO_EXIT } else { "no element can continue" },
        repeat(.seed),
        list(.waiting)
    )]
    Quiet {
        /// What the run waits for, one line per item.
        waiting: Vec<String>,
        /// The seed of a simulated run.
        seed: Option<u64>,
    },
    /// The program had not exited when the time of [`Config::time_limit`](crate::Config::time_limit) was over.
    ///
    /// The run ends when every PE has ended its delivery, as a thread cannot be stopped from outside. If one never does,
    /// only a program with a command line ([`Config::program`](crate::Config::program)) ends: its process exits with
    /// code 1 and this sentence. A run whose configuration was made in code warns on stderr and continues to wait.
    #[error(
        "the run did not end within --time-limit {seconds} (seconds){}{}",
        .seed.map(|seed| format!(", simulated with seed {seed}")).unwrap_or_default(),
        list(.waiting)
    )]
    TimeLimit {
        /// The time limit, in seconds.
        seconds: f64,
        /// What each PE runs, what it waits for, and what is queued, one line per item.
        waiting: Vec<String>,
        /// The seed of a simulated run.
        seed: Option<u64>,
    },
    /// SIGINT or SIGTERM came while a program with a command line ran and wrote a report or a recording. The files have what
    /// happened until then.
    #[error("interrupted by {}", process::signal_name(*.signal))]
    Interrupted {
        /// The number of the signal.
        signal: i32,
    },
    /// The program broke a rule of the runtime, or a value could not be encoded.
    #[error("{sentence}{}", repeat(.seed))]
    Program {
        /// The rule that the program broke, and the element or PE that broke it.
        sentence: String,
        /// The seed of a simulated run.
        seed: Option<u64>,
    },
    /// Not an error: a signal of `--checkpoint-on` came with `--checkpoint-exit`, and the run has saved itself.
    #[error("saved as checkpoint {number} in `{}`; continue with --restart", dir.display())]
    Saved {
        /// The folder of the checkpoints.
        dir: PathBuf,
        /// The number of the checkpoint.
        number: u64,
    },
    /// Not an error: the configuration asked for this text instead of a run.
    #[error("{0}")]
    Answer(String),
}

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> Self {
        match error.fault {
            Fault::Usage => RunError::Config(error.sentence),
            Fault::Input | Fault::Bug => RunError::File(error.sentence),
        }
    }
}

/// The end of the error of a run that waits for nothing.
const NO_EXIT: &str =
    "nothing waits; call `exit` of the program's `Exit` handle in the entry that ends the run";

/// How to reproduce the failure.
fn repeat(seed: &Option<u64>) -> String {
    seed.map_or_else(String::new, |seed| format!(" (simulated: seed {seed} repeats it)"))
}

/// One line per item, below a sentence.
pub(crate) fn list(waiting: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text = String::new();
    for line in waiting.iter().take(SHOWN) {
        text.push_str("\n  ");
        text.push_str(line);
    }
    if waiting.len() > SHOWN {
        text.push_str(&format!("\n  .. and {} more", waiting.len() - SHOWN));
    }
    text
}

impl Classified for RunError {
    fn fault(&self) -> Fault {
        match self {
            RunError::Config(_) | RunError::Answer(_) | RunError::Saved { .. } => Fault::Usage,
            RunError::File(_) => Fault::Input,
            RunError::Panic { .. }
            | RunError::Quiet { .. }
            | RunError::TimeLimit { .. }
            | RunError::Interrupted { .. }
            | RunError::Program { .. } => Fault::Bug,
        }
    }
}

impl RunError {
    /// The exit code of a process: 2 for an invalid configuration, 0 for an answer or a saved run, 130 or 143 after a signal,
    /// else 1.
    pub fn exit_code(&self) -> i32 {
        match self {
            RunError::Answer(_) | RunError::Saved { .. } => 0,
            RunError::Interrupted { signal } => 128 + signal,
            error => error.fault().exit_code().into(),
        }
    }
}

/// Prints a text to stdout. A closed stdout is not an error.
pub(crate) fn show(text: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush());
}
