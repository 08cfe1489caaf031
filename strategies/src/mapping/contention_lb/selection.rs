//! The choice between several placements.
//!
//! F includes the hops and the contention of a task's own messages, but not of the messages that its partners waited
//! for. With chains of waits F may be inaccurate, and a small difference in F may mean nothing. So if the program is
//! known, it is executed on the placements whose F is nearly the least, for about a tenth of a second ([`MAX_EFFORT`]).
//! If the program is not known, the least sum of R decides.

use rustc_hash::FxHashSet;

use equipoise_model::Topology;
use equipoise_network::program::{Model, ProgramSimulation};

use crate::cost::contention::{Estimate, Speeds};

/// The maximum effort of all simulations that choose between placements, in simulated messages.
const MAX_EFFORT: u64 = 1 << 15;

/// A placement whose F exceeds the least F by at most this fraction is not significantly worse.
pub(super) const NEAR: f64 = 0.01;

/// The placements to choose from.
pub(super) struct Candidates {
    /// Placements that qualify only if their F exceeds the least F of these placements by at most the fraction
    /// `similar`.
    pub(super) judged: Vec<Vec<u32>>,
    pub(super) similar: f64,
    /// Placements on which the program is executed for any F; empty unless it can be executed on all of them.
    pub(super) executed: Vec<Vec<u32>>,
}

impl Candidates {
    /// The placement with the earliest end of the program; ties go to the first. If the program cannot be executed on all
    /// similar placements, only those within [`NEAR`] qualify. If it cannot be executed at all, the least sum of R, then F,
    /// decides between these.
    pub(super) fn best(mut self, model: &Model, topology: &dyn Topology, speeds: &Speeds) -> Vec<u32> {
        let worth = |places: &Vec<u32>| {
            let estimate = Estimate::at(model, topology, speeds, places);
            (estimate.ticks(), estimate.summed_ticks())
        };
        let worths: Vec<(i64, i64)> = self.judged.iter().map(worth).collect();
        let least = worths.iter().map(|it| it.0).min().unwrap_or(0);
        let mut seen = FxHashSet::default();
        // Several runs often find the same placement.
        let unique: Vec<usize> = (0..worths.len()).filter(|&at| seen.insert(&self.judged[at])).collect();
        let similar = |fraction: f64| {
            let limit = least.saturating_add((least.max(0) as f64 * fraction) as i64);
            let mut similar = unique.clone();
            similar.retain(|&at| worths[at].0 <= limit);
            similar.sort_by_key(|&at| (worths[at].1, worths[at].0));
            similar
        };
        let most = max_executions(model).saturating_sub(self.executed.len());
        let mut chosen = similar(self.similar);
        if chosen.len() > most {
            chosen = similar(self.similar.min(NEAR));
        }
        chosen.truncate(most.max(1));
        let chosen: Vec<Vec<u32>> = chosen.iter().map(|&at| std::mem::take(&mut self.judged[at])).collect();
        first_to_end(chosen.into_iter().chain(self.executed).collect(), model)
    }
}

/// The number of placements on which the program can be executed within [`MAX_EFFORT`]; 0 if the program is not known.
pub(super) fn max_executions(model: &Model) -> usize {
    let messages = model.channels.iter().map(|it| it.messages).fold(1, u64::saturating_add);
    let each = |simulation: &ProgramSimulation| simulation.effort().saturating_add(messages);
    model.simulation.as_ref().map_or(0, |simulation| (MAX_EFFORT / each(simulation)) as usize)
}

/// The placement with the earliest end of the program; the first one if the program cannot be executed. `placements` begin
/// with the best estimate.
fn first_to_end(mut placements: Vec<Vec<u32>>, model: &Model) -> Vec<u32> {
    let best = model.simulation.as_ref().filter(|_| placements.len() > 1).and_then(|simulation| {
        let simulation = simulation.prepare()?;
        let ends: Option<Vec<u64>> = placements.iter().map(|places| simulation.cycles(places)).collect();
        ends.and_then(|ends| (0..ends.len()).min_by_key(|&at| ends[at]))
    });
    placements.swap_remove(best.unwrap_or(0))
}
