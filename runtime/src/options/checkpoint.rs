//! `--checkpoint` and `--restart`.

use super::{Config, ConfigError, Settings, flag, program, wrong};
use crate::checkpoint::{self, Checkpoint, Plan, When};
use crate::process::{self, CheckpointSignal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The heading of the flags of checkpoints.
const CHECKPOINTS: &str = "Checkpoints";

// Through `concat!`, because clap shows `///` as the description of every program that flattens `Config`.
#[doc = concat!("When a run saves itself, and the checkpoint with which it begins; by default none.")]
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = CHECKPOINTS)]
pub struct Checkpoints {
    /// Save the state of the run in this folder: where the program sends `at_checkpoint`, and as the other flags say; the last
    /// two checkpoints are kept
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,

    /// Save at every N-th sync point
    #[arg(long, value_name = "N", requires = "checkpoint", allow_negative_numbers = true)]
    pub checkpoint_every: Option<u32>,

    /// Save at the first sync point or quiescence when this wall-clock time has passed since the last checkpoint was written
    #[arg(long, value_name = "SECONDS", requires = "checkpoint", allow_negative_numbers = true)]
    pub checkpoint_seconds: Option<f64>,

    /// Save at the first sync point or quiescence after this signal, which batch systems send before the time of a job ends
    #[arg(long, value_enum, value_name = "SIGNAL", ignore_case = true, requires = "checkpoint")]
    pub checkpoint_on: Option<CheckpointSignal>,

    /// End the run with exit code 0 when it has saved itself because of the signal
    #[arg(long, requires = "checkpoint_on")]
    pub checkpoint_exit: bool,

    /// Mean time between failures of the job: the report then has the best interval between checkpoints
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "checkpoint",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub mtbf: Option<f64>,

    /// Begin with the newest complete checkpoint of this folder, or with one of its checkpoints; the number of PEs, the
    /// transport and the load balancer may be other ones
    #[arg(long, value_name = "DIR")]
    pub restart: Option<PathBuf>,

    /// Restart although the program was built again since; state that does not fit is refused
    #[arg(long, requires = "restart")]
    pub restart_other_build: bool,
}

impl Checkpoints {
    /// What the signal of `--checkpoint-on` sets, from now on.
    pub(super) fn asked(&self) -> Result<Option<Arc<AtomicBool>>, ConfigError> {
        let asked =
            self.checkpoint_on.filter(|_| self.checkpoint.is_some()).map(process::asks_for_checkpoint);
        asked.transpose().map_err(|error| flag(format!("--checkpoint-on: {error}; use --checkpoint-seconds")))
    }
}

impl Config {
    /// Sets what is saved, and the checkpoint with which the run begins.
    pub(super) fn checkpoints(
        &self,
        settings: &mut Settings,
        asked: Option<Arc<AtomicBool>>,
    ) -> Result<(), ConfigError> {
        let Checkpoints { checkpoint, restart, .. } = &self.checkpoints;
        if checkpoint.is_none() && restart.is_none() {
            return Ok(());
        }
        if self.record_order.is_some() || self.replay_order.is_some() {
            let name = if checkpoint.is_some() { "--checkpoint" } else { "--restart" };
            return Err(flag(format!(
                "{name} with --record-order or --replay-order: an order is that of a whole run; leave out one of them"
            )));
        }
        let build = process::program_file();
        if let Some(dir) = restart {
            settings.restart = Some(Arc::new(self.open(dir, &build)?));
        }
        let Some(dir) = &self.checkpoints.checkpoint else { return Ok(()) };
        let numbering = checkpoint::make_folder(dir)
            .and_then(|()| checkpoint::numbering(dir, settings.restart.as_deref()));
        let (first, before) = numbering.map_err(|error| {
            flag(format!("--checkpoint {}: {error}; name a folder that can be written", dir.display()))
        })?;
        settings.checkpoint = Some(Plan {
            dir: dir.clone(),
            when: self.when(asked)?,
            first,
            before,
            mtbf_seconds: super::settings::time("--mtbf", self.checkpoints.mtbf)?
                .map(|time| time.as_secs_f64()),
            program: program(),
            build,
            seed: settings.restart.as_ref().map_or(settings.seed, |checkpoint| checkpoint.seed()),
            pes: settings.pes as u32,
            local_pes: settings.local_pes(),
        });
        Ok(())
    }

    fn open(&self, path: &std::path::Path, build: &str) -> Result<Checkpoint, ConfigError> {
        let checkpoint = Checkpoint::open(path).map_err(|error| wrong("--restart", &error))?;
        if checkpoint.build() != build && !self.checkpoints.restart_other_build {
            return Err(flag(format!(
                "--restart {}: the checkpoint was saved by `{}`, from {}, and this is {build}; restart the program that was \
                 saved, or add --restart-other-build",
                path.display(),
                checkpoint.program(),
                checkpoint.build(),
            )));
        }
        Ok(checkpoint)
    }

    fn when(&self, asked: Option<Arc<AtomicBool>>) -> Result<When, ConfigError> {
        let Checkpoints { checkpoint_every, checkpoint_seconds, checkpoint_exit, .. } = &self.checkpoints;
        if *checkpoint_every == Some(0) {
            return Err(flag("--checkpoint-every 0: give a number of sync points from 1 on".into()));
        }
        Ok(When {
            every: *checkpoint_every,
            period: super::settings::time("--checkpoint-seconds", *checkpoint_seconds)?,
            asked,
            exits: *checkpoint_exit,
        })
    }
}
