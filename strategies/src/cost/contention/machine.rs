//! Properties of PEs in the estimate, apart from their positions: speed and background load.

use equipoise_model::database::Database;
use equipoise_network::program::Model;

/// The speeds and background loads of PEs; the default is speed 1 and no background load for all PEs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speeds {
    /// By PE: its speed, and its background load in ticks.
    of: Vec<(f64, i64)>,
}

impl Speeds {
    /// The speeds of the PEs of a database, in the ticks of `model`.
    pub fn of(database: &Database, model: &Model) -> Self {
        let ticks = Model::TICKS as f64 / model.cycle_seconds;
        let of = |pe: &equipoise_model::database::PeRecord| {
            (pe.speed, (pe.background_seconds.max(0.0) / pe.speed * ticks).round() as i64)
        };
        Speeds { of: database.pes.iter().map(of).collect() }
    }

    /// The time of `ticks` of work on a PE, in ticks.
    pub(super) fn work_ticks(&self, ticks: i64, pe: u32) -> i64 {
        match self.of.get(pe as usize) {
            Some(&(speed, _)) if speed != 1.0 => (ticks as f64 / speed).round() as i64,
            _ => ticks,
        }
    }

    /// The background load of each PE, in ticks.
    pub(super) fn background_ticks(&self, pes: usize) -> Vec<i64> {
        let mut ticks: Vec<i64> = self.of.iter().map(|&(_, background)| background).collect();
        ticks.resize(pes, 0);
        ticks
    }
}
