//! Shorter ways of messages under constraints: the items that a constraint has moved, and those near them, look for places near their
//! partners. Only items that migrate anyway move or are exchanged, so no migration is added, and no PE becomes heavier than the heaviest.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use equipoise_model::Topology;

use super::state::{NOWHERE, State};
use crate::balance::load::order;
use crate::cost::commodities::Commodities;

/// How many of the lightest PEs are compared for an item that must leave its PE, beside those of its partners.
const LIGHTEST: usize = 16;
/// Exchanges of which the hop-bytes are computed, at most; about a second.
const ATTEMPTS: u64 = 1 << 21;
/// How many exchanges of an item with items of a PE are tried, those that gain most first.
const EXCHANGES: usize = 8;
/// No item.
const NO_ITEM: u32 = u32::MAX;

/// The machine and the messages, for the distances of an item to its partners.
pub(super) struct Near<'a> {
    pub(super) topology: &'a dyn Topology,
    pub(super) traffic: &'a Commodities,
}

impl Near<'_> {
    /// The place of a vertex: an item, or an anchor of a PE.
    fn place(&self, state: &State, vertex: u32) -> u32 {
        match (vertex as usize).checked_sub(self.traffic.tasks) {
            None => state.pe_of[vertex as usize],
            Some(anchor) => self.traffic.anchors[anchor],
        }
    }

    /// The bytes of an item on `pe` times their hops, without those of `except`, as far as its partners have places.
    fn hop_bytes(&self, state: &State, item: u32, pe: u32, except: u32) -> u128 {
        let partners = self.traffic.partners(item as usize).iter().filter(|partner| partner.vertex != except);
        let placed = partners.map(|partner| (self.place(state, partner.vertex), partner));
        placed
            .filter(|(place, _)| *place != NOWHERE)
            .map(|(place, partner)| {
                let hops = self.topology.distance(pe as usize, place as usize);
                u128::from(hops) * (u128::from(partner.sent_bytes) + u128::from(partner.received_bytes))
            })
            .sum()
    }

    /// The best PE where an item fits: one that does not become heavier than `limit_seconds` with the fewest hop-bytes, else the one
    /// that finishes first.
    pub(super) fn best(&self, state: &State, item: u32, limit_seconds: f64) -> Option<u32> {
        let partners = self.traffic.partners(item as usize).iter();
        let of_partners =
            partners.map(|partner| self.place(state, partner.vertex)).filter(|&pe| pe != NOWHERE);
        let mut candidates: BTreeSet<u32> = of_partners.filter(|&pe| state.fits(item, pe)).collect();
        candidates.extend(state.open().filter(|&pe| state.fits(item, pe)).take(LIGHTEST));
        let grade = |&pe: &u32| {
            let seconds = state.total_seconds(pe) + state.total_seconds_of(item, pe);
            match seconds <= limit_seconds {
                true => (false, self.hop_bytes(state, item, pe, NO_ITEM), order(seconds), pe),
                false => (true, u128::from(order(seconds)), 0, pe),
            }
        };
        candidates.into_iter().min_by_key(grade)
    }
}

/// Lowers hop-bytes, beginning with the items that are not where the answer has them. The cost stays below `limit_seconds`, or what it is.
pub(super) fn shorten(near: &Near, state: &mut State, answer: &[u32], limit_seconds: f64) {
    let limit_seconds = limit_seconds.max(state.cost_seconds());
    let mut waiting: BTreeSet<u32> = (0..)
        .zip(answer)
        .filter(|&(item, &pe)| state.pe_of[item as usize] != pe)
        .map(|(item, _)| item)
        .collect();
    let mut attempts = ATTEMPTS;
    while attempts > 0
        && let Some(item) = waiting.pop_first()
    {
        let Some(other) = improved(near, state, item, limit_seconds, &mut attempts) else { continue };
        for item in [Some(item), other].into_iter().flatten() {
            let partners = near.traffic.partners(item as usize).iter().map(|partner| partner.vertex);
            waiting.extend(partners.filter(|&vertex| (vertex as usize) < near.traffic.tasks));
            waiting.insert(item);
        }
    }
}

/// Moves an item to the PE of a partner, or exchanges it with an item there, if that lowers hop-bytes. Returns the other item, if any;
/// none at all if nothing lowers them.
fn improved(
    near: &Near,
    state: &mut State,
    item: u32,
    limit_seconds: f64,
    attempts: &mut u64,
) -> Option<Option<u32>> {
    if !state.migrates(item) {
        return None;
    }
    let from = state.pe_of[item as usize];
    let here = near.hop_bytes(state, item, from, NO_ITEM);
    let partners = near.traffic.partners(item as usize).iter();
    let places: BTreeSet<u32> = partners.map(|partner| near.place(state, partner.vertex)).collect();
    let places =
        places.into_iter().filter(|&pe| pe != from && state.is_available(pe) && state.may_be(item, pe));
    let mut places: Vec<(u128, u32)> = places
        .map(|pe| (near.hop_bytes(state, item, pe, NO_ITEM), pe))
        .filter(|place| place.0 < here)
        .collect();
    places.sort_unstable();
    let is_light = |state: &State| state.cost_seconds() <= limit_seconds;
    for (_, to) in places {
        if state.attempt(&[(item, from, to)], is_light) {
            return Some(None);
        }
        let mut gains = Vec::new();
        for other in state.on(to).filter(|&other| state.migrates(other) && state.may_be(other, from)) {
            *attempts = attempts.saturating_sub(1);
            // The distance between the two stays.
            let of = |item, pe, other| near.hop_bytes(state, item, pe, other);
            let [before, after] =
                [of(item, from, other) + of(other, to, item), of(item, to, other) + of(other, from, item)];
            if after < before {
                gains.push((Reverse(before - after), other));
            }
        }
        gains.sort_unstable();
        for (_, other) in gains.into_iter().take(EXCHANGES) {
            if state.attempt(&[(item, from, to), (other, to, from)], is_light) {
                return Some(Some(other));
            }
        }
    }
    None
}
