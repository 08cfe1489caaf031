//! `equipoise replay`: what balancers would have done at recorded load-balancing steps.

use std::path::PathBuf;
use std::time::Instant;

use equipoise_strategies::registry::Choice;
use equipoise_strategies::replay::Request;

use super::{input, output};
use crate::Format;

/// What is replayed, and with what.
#[derive(clap::Args)]
pub struct Args {
    /// What a program wrote with --lb-dump, or a Charm++ dump (for several steps, the name before `.STEP`)
    #[arg(value_name = "DATABASE")]
    database: PathBuf,

    /// A balancer to compare, again and again; `help` lists them all [default: all that need no file]
    #[arg(long, value_name = "SPEC", value_parser = input::balancer())]
    balancer: Vec<Choice>,

    /// The machine; `help` lists all kinds [default: the recorded one, else flat]
    #[arg(long, value_name = "SPEC", value_parser = input::machine())]
    topology: Option<input::Machine>,

    /// What would be on another number of PEs, objects in blocks
    #[arg(long, value_name = "P")]
    pes: Option<usize>,

    /// The first step to replay [default: the first there is]
    #[arg(long, value_name = "S")]
    step: Option<u64>,

    /// How many steps to replay [default: 1 with --step, else all]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,

    /// Everything random comes from this
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let what = format!("replaying {}", self.database.display());
        let request = Request {
            path: self.database,
            step: self.step,
            steps: self.steps,
            pes: self.pes,
            topology: self.topology.transpose()?,
            strategies: self.balancer,
            seed: self.seed,
        };
        let begin = Instant::now();
        let comparison = output::watched(&what, || request.run(|| begin.elapsed()))?;
        output::show(self.format, || comparison.to_string(), &comparison)
    }
}
