//! Where an item is near its partners: hop-bytes, and the best PE for an item that must leave its own.

use std::collections::BTreeSet;

use equipoise_model::Topology;

use super::state::{NOWHERE, State};
use crate::balance::load::order;
use crate::cost::commodities::Commodities;

/// How many of the lightest PEs are compared for an item that must leave its PE, in addition to those of its partners.
const LIGHTEST: usize = 16;

/// The machine and the messages, for the distances of an item to its partners.
pub(super) struct Near<'a> {
    pub(super) topology: &'a dyn Topology,
    pub(super) traffic: &'a Commodities,
}

impl Near<'_> {
    /// The place of a vertex in a placement: an item, or an anchor of a PE.
    pub(super) fn place(&self, pe_of: &[u32], vertex: u32) -> u32 {
        match (vertex as usize).checked_sub(self.traffic.tasks) {
            None => pe_of[vertex as usize],
            Some(anchor) => self.traffic.anchors[anchor],
        }
    }

    /// The bytes of an item on `pe` times their hops, without those of `except`, as far as its partners have places.
    pub(super) fn hop_bytes(&self, pe_of: &[u32], item: u32, pe: u32, except: Option<u32>) -> u128 {
        let partners = self.traffic.partners(item as usize).iter();
        let placed = partners
            .filter(|partner| Some(partner.vertex) != except)
            .map(|partner| (self.place(pe_of, partner.vertex), partner));
        placed
            .filter(|(place, _)| *place != NOWHERE)
            .map(|(place, partner)| {
                let hops = self.topology.distance(pe as usize, place as usize);
                u128::from(hops) * (u128::from(partner.sent_bytes) + u128::from(partner.received_bytes))
            })
            .sum()
    }

    /// Twice the hop-bytes of a placement, because each edge is counted at both ends.
    pub(super) fn twice_all(&self, pe_of: &[u32]) -> u128 {
        let vertices = 0..self.traffic.vertices() as u32;
        vertices.map(|vertex| self.hop_bytes(pe_of, vertex, self.place(pe_of, vertex), None)).sum()
    }

    /// The best PE where an item fits: one that does not become heavier than `limit_seconds` with the fewest hop-bytes, else the one
    /// that finishes first.
    pub(super) fn best(&self, state: &State, item: u32, limit_seconds: f64) -> Option<u32> {
        let partners = self.traffic.partners(item as usize).iter();
        let of_partners =
            partners.map(|partner| self.place(&state.pe_of, partner.vertex)).filter(|&pe| pe != NOWHERE);
        let mut candidates: BTreeSet<u32> = of_partners.filter(|&pe| state.fits(item, pe)).collect();
        candidates.extend(state.open().filter(|&pe| state.fits(item, pe)).take(LIGHTEST));
        let grade = |&pe: &u32| {
            let seconds = state.total_seconds(pe) + state.total_seconds_of(item, pe);
            match seconds <= limit_seconds {
                true => (false, self.hop_bytes(&state.pe_of, item, pe, None), order(seconds), pe),
                false => (true, u128::from(order(seconds)), 0, pe),
            }
        };
        candidates.into_iter().min_by_key(grade)
    }
}
