//! Which of several placements is taken.
//!
//! F knows of the hops and the contention of a task's own messages, not of those that its partners waited for: on chains of
//! waits it may be far off, and what it tells apart by little need not be so. So of the placements whose F is nearly the
//! least, the program itself decides where it is known: it is executed on each of them, as long as that takes no longer than
//! to find them ([`MAX_MESSAGES`]). Where it is not, the least sum of R does.

use crate::Topology;
use crate::cost::contention::{Estimate, Speeds};
use crate::program::Model;

/// How many messages are simulated in all to choose between placements.
const MAX_MESSAGES: u64 = 1 << 15;

/// How many links take as long to set up as a message takes to be simulated, about.
const LINKS_PER_MESSAGE: u64 = 32;

/// The best of some placements, as a number, and of equals the first: of those whose F is larger than the least by the fraction
/// `similar` at most, that after which the program ends first, or else the one with the least sum of R, then F.
pub(super) fn best_of(
    all: &[Vec<u32>],
    similar: f64,
    model: &Model,
    topology: &dyn Topology,
    speeds: &Speeds,
) -> usize {
    let worth = |places: &Vec<u32>| {
        let estimate = Estimate::at(model, topology, speeds, places);
        (estimate.ticks(), estimate.summed_ticks())
    };
    let worths: Vec<(i64, i64)> = all.iter().map(worth).collect();
    let least = worths.iter().map(|it| it.0).min().unwrap_or(0);
    let limit = least.saturating_add((least.max(0) as f64 * similar) as i64);
    let mut near: Vec<usize> = (0..all.len()).filter(|&run| worths[run].0 <= limit).collect();
    near.sort_by_key(|&run| (worths[run].1, worths[run].0));
    // Runs often end alike.
    let mut seen = rustc_hash::FxHashSet::default();
    near.retain(|&run| seen.insert(&all[run]));
    first_to_end(all, &near, model, topology).or(near.first().copied()).unwrap_or(0)
}

/// Of these placements, as numbers with the best by the estimate first, that after which the program ends first, if it is known
/// and several can be tried.
fn first_to_end(all: &[Vec<u32>], near: &[usize], model: &Model, topology: &dyn Topology) -> Option<usize> {
    let trial = model.trial.as_ref()?;
    let messages = model.channels.iter().map(|it| it.messages).sum::<u64>();
    let each = messages + topology.links() as u64 / LINKS_PER_MESSAGE;
    let tried = (MAX_MESSAGES / each.max(1)).min(near.len() as u64) as usize;
    let mut best: Option<(u64, usize)> = None;
    for &run in near.iter().take(tried).filter(|_| tried > 1) {
        let cycles = trial.cycles(&all[run])?;
        if best.is_none_or(|best| cycles < best.0) {
            best = Some((cycles, run));
        }
    }
    best.map(|it| it.1)
}
