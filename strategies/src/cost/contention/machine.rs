//! What the estimate knows of PEs beside where they are: how fast they are, and what else they do.

use crate::database::Database;
use crate::program::Model;

/// The speeds and background loads of PEs; of none, all are of speed 1 and do nothing else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Speeds {
    /// By PE: its speed, and its background load in ticks.
    of: Vec<(f64, i64)>,
}

impl Speeds {
    /// Those of the PEs of a database, for its model.
    pub fn of(database: &Database, model: &Model) -> Self {
        let ticks = Model::TICKS as f64 / model.cycle_seconds;
        let of = |pe: &crate::database::PeRecord| {
            (pe.speed, (pe.background_seconds.max(0.0) / pe.speed * ticks).round() as i64)
        };
        Speeds { of: database.pes.iter().map(of).collect() }
    }

    /// How long a PE takes for work, in ticks.
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
