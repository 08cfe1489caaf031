//! Which of several placements is taken.
//!
//! F knows of the hops and the contention of a task's own messages, not of those that its partners waited for: on chains of
//! waits it may be far off, and what it tells apart by little need not be so. So of the placements whose F is nearly the
//! least, the program itself decides where it is known: it is executed on as many of them as takes a tenth of a second or so
//! ([`MAX_EFFORT`]). Where it is not, the least sum of R does.

use crate::Topology;
use crate::cost::contention::{Estimate, Speeds};
use crate::program::{Model, Trial};

/// How much is done in all to choose between placements by trial, in messages that are simulated.
const MAX_EFFORT: u64 = 1 << 15;

/// By what part of the least F that of others is larger which it hardly tells apart.
pub(super) const HARDLY: f64 = 0.01;

/// The best of some placements, as a number, and of equals the first: of those whose F is larger than the least by the fraction
/// `similar` at most, that after which the program ends first. Where not all of these can be tried, of those that F [`HARDLY`]
/// tells apart, and where none can, of these the one with the least sum of R, then F.
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
    let near = |similar: f64| {
        let limit = least.saturating_add((least.max(0) as f64 * similar) as i64);
        let mut near: Vec<usize> = (0..all.len()).filter(|&run| worths[run].0 <= limit).collect();
        near.sort_by_key(|&run| (worths[run].1, worths[run].0));
        // Runs often end alike.
        let mut seen = rustc_hash::FxHashSet::default();
        near.retain(|&run| seen.insert(&all[run]));
        near
    };
    let most = affordable(model);
    let mut chosen = near(similar);
    if chosen.len() > most {
        chosen = near(similar.min(HARDLY));
    }
    let first = chosen.first().copied().unwrap_or(0);
    chosen.truncate(most);
    first_to_end(all, &chosen, model).unwrap_or(first)
}

/// How many placements of a program can be tried; none where it is not known.
pub(super) fn affordable(model: &Model) -> usize {
    let messages = model.channels.iter().map(|it| it.messages).fold(1, u64::saturating_add);
    let each = |trial: &Trial| trial.effort().saturating_add(messages);
    model.trial.as_ref().map_or(0, |trial| (MAX_EFFORT / each(trial)) as usize)
}

/// Of these placements, as numbers with the best by the estimate first, that after which the program ends first, if it is known
/// and there are several.
pub(super) fn first_to_end(all: &[Vec<u32>], chosen: &[usize], model: &Model) -> Option<usize> {
    let trial = model.trial.as_ref().filter(|_| chosen.len() > 1)?;
    let mut best: Option<(u64, usize)> = None;
    for &run in chosen {
        let cycles = trial.cycles(&all[run])?;
        if best.is_none_or(|best| cycles < best.0) {
            best = Some((cycles, run));
        }
    }
    best.map(|it| it.1)
}
