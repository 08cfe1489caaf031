//! `--record-order` and `--replay-order`.

use super::{Config, ConfigError, Migration, Settings, Transport, flag, program, wrong};
use crate::interleaving::{Head, Interleaving, Recording, Replay};
use crate::location::Placement;
use equipoise_model::random::splitmix;
use std::sync::Arc;

impl Config {
    /// The run to repeat, if there is one.
    pub(super) fn replay(&self) -> Result<Option<Arc<Replay>>, ConfigError> {
        if self.record_order.is_some() && self.replay_order.is_some() {
            return Err(flag("--record-order with --replay-order: name one of them".into()));
        }
        if self.transport.has_launcher() && (self.record_order.is_some() || self.replay_order.is_some()) {
            return Err(flag(
                "--record-order and --replay-order with several processes: only the order of threads of one process can be \
                 recorded; leave out --transport"
                    .into(),
            ));
        }
        if self.record_order.is_some() && self.transport == Transport::Simulated {
            return Err(flag(
                "--record-order with --transport simulated: a simulated run is repeated by its --seed; leave out \
                 --record-order"
                    .into(),
            ));
        }
        if self.replay_order.is_some() && self.machine.network.is_some() {
            return Err(flag(
                "--replay-order with --network: a run of threads is repeated, which had no network; leave out \
                 --network"
                    .into(),
            ));
        }
        if self.replay_order.is_some() && self.transport == Transport::Simulated {
            return Err(flag(
                "--replay-order with --transport simulated: a run of threads is repeated; leave out --transport".into(),
            ));
        }
        let Some(path) = &self.replay_order else { return Ok(None) };
        let replay = Replay::open(path).map_err(|error| wrong("--replay-order", &error))?;
        Ok(Some(Arc::new(replay)))
    }

    /// Creates the file of `--record-order`, or compares these settings with those of the run to repeat.
    pub(super) fn interleaving(
        &self,
        settings: &Settings,
        replay: Option<Arc<Replay>>,
    ) -> Result<Option<Interleaving>, ConfigError> {
        let head = Head {
            program: program().into_bytes(),
            pes: settings.pes as u32,
            seed: settings.seed,
            initial: digest(&settings.initial),
            encodes: settings.migration == Migration::Encode,
            balances: settings.balances(),
        };
        if let Some(replay) = replay {
            return match replay.difference(&head) {
                Some(sentence) => Err(flag(sentence)),
                None => Ok(Some(Interleaving::Replay(replay))),
            };
        }
        let Some(path) = &self.record_order else { return Ok(None) };
        let recording = Recording::create(path, head).map_err(|error| wrong("--record-order", &error))?;
        Ok(Some(Interleaving::Record(Arc::new(recording))))
    }
}

/// A number that differs between placements.
fn digest(placement: &Placement) -> u64 {
    match placement {
        Placement::Blocks => 0,
        Placement::RoundRobin => 1,
        Placement::Every(pes) => splitmix(splitmix(2) ^ u64::from(*pes)),
        Placement::Random(seed) => splitmix(splitmix(3) ^ seed),
        Placement::Listed(list) => list.iter().fold(4, |digest, &pe| splitmix(digest ^ u64::from(pe))),
    }
}
