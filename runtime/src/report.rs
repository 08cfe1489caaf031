//! What is left of a run: the report of one that ended well, or why there is none.

use crate::balancer::LbStep;
use crate::options::ConfigError;

/// What is left of a run that ended well.
#[derive(Debug)]
pub struct Report<R> {
    /// What the program exited with.
    pub result: R,
    /// Wall-clock seconds from before the setup to the end.
    pub seconds: f64,
    /// The number of PEs.
    pub pes: usize,
    /// The seed of everything random.
    pub seed: u64,
    /// What happened at each load-balancing step.
    pub lb_steps: Vec<LbStep>,
    /// Messages delivered to elements, those that a broadcast makes included.
    pub executions: u64,
    /// Messages between PEs.
    pub remote_messages: u64,
    /// Elements that moved, load-balancing steps and [`Cx::migrate`](crate::Cx::migrate) together.
    pub migrations: u64,
    /// Why the databases that `--lb-dump` asks for are not in their file, if writing them failed.
    /// [`run`](crate::run()) tells whoever watches.
    pub dump_error: Option<String>,
    /// Why there are fewer of them than were asked for, if there are. [`run`](crate::run()) tells whoever watches.
    pub dump_warning: Option<String>,
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
