//! What is left of a run: the report of one that ended well, or why there is none.

use crate::balancer::LbStep;
use crate::options::ConfigError;
use equipoise_strategies::table::seconds;
use serde::Serialize;

/// What is left of a run that ended well.
#[derive(Debug)]
pub struct Report<R> {
    /// What the program exited with.
    pub result: R,
    /// Wall-clock seconds from before the setup to the end, of this machine in any case.
    pub seconds: f64,
    /// The number of PEs.
    pub pes: usize,
    /// The seed of everything random.
    pub seed: u64,
    /// What happened on the simulated machine, if one was simulated.
    pub machine: Option<MachineReport>,
    /// What happened at each load-balancing step.
    pub lb_steps: Vec<LbStep>,
    /// Messages delivered to elements, those that a broadcast makes included.
    pub executions: u64,
    /// Messages between PEs.
    pub remote_messages: u64,
    /// Elements that moved, load-balancing steps and [`Cx::migrate`](crate::Cx::migrate) together.
    pub migrations: u64,
    /// Why what `--lb-dump` or `--record` asks for is not in its file, if writing it failed.
    /// [`run`](crate::run()) tells whoever watches.
    pub dump_error: Option<String>,
    /// Why there are fewer of them than were asked for, if there are. [`run`](crate::run()) tells whoever watches.
    pub dump_warning: Option<String>,
}

/// What happened on a simulated machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineReport {
    /// Virtual seconds until the program exited.
    pub seconds: f64,
    /// What each PE spent them on.
    pub pes: Vec<PeTime>,
    /// Messages that crossed the network, the runtime's own among them.
    pub messages: u64,
    /// How long they took, from the moment they left to their arrival, in the mean.
    pub mean_latency_seconds: f64,
    /// What 99 of 100 did not exceed, to 1 %.
    pub p99_latency_seconds: f64,
    /// Bytes that went over each link of the topology, by its number.
    pub link_bytes: Vec<u64>,
    /// The link that was the longest at its bytes, and how many seconds; none if no link carried any.
    pub busiest_link: Option<(String, f64)>,
}

/// What a PE of a simulated machine spent its time on, in virtual seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PeTime {
    /// Work: what was charged or measured.
    pub busy_seconds: f64,
    /// The runtime: deliveries, sends and receives, strategies.
    pub overhead_seconds: f64,
    /// Nothing.
    pub idle_seconds: f64,
}

impl std::fmt::Display for MachineReport {
    /// Lines of a name and a value each.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = |of: fn(&PeTime) -> f64| {
            let sum: f64 = self.pes.iter().map(of).sum();
            let all = self.seconds * self.pes.len() as f64;
            if all > 0.0 { 100.0 * sum / all } else { 0.0 }
        };
        writeln!(f, "virtual time  {}", seconds(self.seconds))?;
        writeln!(
            f,
            "PEs           busy {:.1} %, overhead {:.1} %, idle {:.1} % in the mean",
            share(|pe| pe.busy_seconds),
            share(|pe| pe.overhead_seconds),
            share(|pe| pe.idle_seconds),
        )?;
        if self.pes.iter().all(|pe| pe.busy_seconds == 0.0) {
            writeln!(f, "              nothing charged what its work takes, so it took no time")?;
        }
        write!(
            f,
            "messages      {}, {} in the mean, 99 % within {}",
            self.messages,
            seconds(self.mean_latency_seconds),
            seconds(self.p99_latency_seconds),
        )?;
        if let Some((name, busy)) = &self.busiest_link {
            write!(f, "\nbusiest link  {name}, {} at full bandwidth", seconds(*busy))?;
        }
        Ok(())
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The configuration cannot be followed; the sentence names the remedy.
    #[error("{0}")]
    Config(String),
    /// What is in a file that the configuration names cannot be followed; the sentence names the
    /// remedy.
    #[error("{0}")]
    File(String),
    /// An entry method, `main` or the setup panicked.
    #[error("{place} panicked: {message}{}", repeat(.seed))]
    Panic {
        /// The element with its index, the entry and the PE.
        place: String,
        /// What the panic said.
        message: String,
        /// The seed of a simulated run.
        seed: Option<u64>,
    },
    /// Nothing was in flight any more and nobody had exited.
    #[error(
        "the run came to rest without an exit: no message is in flight and no element can go on{}{}",
        repeat(.seed),
        list(.waiting)
    )]
    Quiet {
        /// What each PE was waiting for.
        waiting: Vec<String>,
        /// The seed of a simulated run.
        seed: Option<u64>,
    },
    /// The program broke a rule of the runtime, or a value could not be encoded.
    #[error("{sentence}{}", repeat(.seed))]
    Program {
        /// Which rule, and who broke it.
        sentence: String,
        /// The seed of a simulated run.
        seed: Option<u64>,
    },
    /// Not an error: the configuration asked for this text instead of a run.
    #[error("{0}")]
    Answer(String),
}

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Flag(sentence) => RunError::Config(sentence),
            ConfigError::File(sentence) => RunError::File(sentence),
        }
    }
}

/// How a failure is met again.
fn repeat(seed: &Option<u64>) -> String {
    seed.map_or_else(String::new, |seed| format!(" (simulated: seed {seed} repeats it)"))
}

fn list(waiting: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text = String::new();
    for told in waiting.iter().take(SHOWN) {
        text.push_str("\n  ");
        text.push_str(told);
    }
    if waiting.len() > SHOWN {
        text.push_str(&format!("\n  .. and {} more", waiting.len() - SHOWN));
    }
    text
}

impl RunError {
    /// What a process should exit with: 2 for a bad configuration, 0 for an answer, else 1.
    pub fn exit_code(&self) -> i32 {
        match self {
            RunError::Answer(_) => 0,
            RunError::Config(_) => 2,
            _ => 1,
        }
    }
}
