//! Exchanges of groups that keep the heaviest PE as light as it was.
//!
//! A strategy that permutes whole groups changes the loads of PEs with fixed objects, background or another speed. So a
//! group that makes its PE heavier than the heaviest PE was goes elsewhere: it exchanges its PE with the group, or takes the free
//! PE, for which hop-bytes grow least, among those where no PE becomes too heavy.

use std::cmp::Reverse;

use equipoise_model::Topology;

use super::ROUNDING;
use crate::balance::load::{Work, order};
use crate::partition::groups::Groups;

/// The places, changed until no PE is heavier than the heaviest PE is at present; `None` if an exchange is missing. Group `i` is on PE
/// `places[i]`. Places are not changed if objects must leave unavailable PEs, because then there is no load to keep.
pub(super) fn keep_load(
    work: &Work,
    topology: &dyn Topology,
    groups: &Groups,
    places: Vec<u32>,
) -> Option<Vec<u32>> {
    let must_leave = |&object: &u32| !work.is_available(work.home(object));
    if work.movable.iter().any(must_leave) {
        return Some(places);
    }
    let (_, seconds) = work.placement();
    let limit_seconds = work.max_seconds(&seconds) * (1.0 + ROUNDING);
    let mut state =
        State { work, topology, groups, loads_seconds: groups.loads_seconds(work.database()), places };
    let mut too_heavy: Vec<usize> = (0..groups.count)
        .filter(|&group| state.seconds(group, state.places[group]) > limit_seconds)
        .collect();
    too_heavy.sort_by_key(|&group| (Reverse(order(state.loads_seconds[group])), group));
    for group in too_heavy {
        // An earlier exchange may have moved this group.
        if state.seconds(group, state.places[group]) > limit_seconds {
            let (other, pe) = state.best_exchange(group, limit_seconds)?;
            let left = std::mem::replace(&mut state.places[group], pe);
            if let Some(other) = other {
                state.places[other] = left;
            }
        }
    }
    Some(state.places)
}

struct State<'a> {
    work: &'a Work<'a>,
    topology: &'a dyn Topology,
    groups: &'a Groups,
    loads_seconds: Vec<f64>,
    /// The PE of each group.
    places: Vec<u32>,
}

impl State<'_> {
    /// The seconds of `pe` with `group`.
    fn seconds(&self, group: usize, pe: u32) -> f64 {
        self.work.fixed_seconds[pe as usize] + self.loads_seconds[group] / self.work.speed(pe)
    }

    /// The group with which `group` exchanges its place, and the place; no group if the place is free.
    fn best_exchange(&self, group: usize, limit_seconds: f64) -> Option<(Option<usize>, u32)> {
        let mut group_at = vec![None; self.topology.pes()];
        self.places.iter().enumerate().for_each(|(group, &pe)| group_at[pe as usize] = Some(group));
        let from = self.places[group];
        let fits = |group: usize, pe: u32| self.seconds(group, pe) <= limit_seconds;
        let candidates = self.work.available.iter().map(|&pe| (group_at[pe as usize], pe));
        candidates
            .filter(|&(other, pe)| {
                pe != from && fits(group, pe) && other.is_none_or(|other| fits(other, from))
            })
            .min_by_key(|&(other, pe)| (self.added_hop_bytes(group, other, pe), pe))
    }

    /// By how much hop-bytes grow if `group` moves to `to`, and the group there, `other`, to the place of `group`.
    fn added_hop_bytes(&self, group: usize, other: Option<usize>, to: u32) -> i128 {
        let from = self.places[group];
        let grows =
            |group, other, from, to| self.hop_bytes(group, other, to) - self.hop_bytes(group, other, from);
        // The distance between two groups that exchange their places stays the same.
        grows(group, other, from, to) + other.map_or(0, |other| grows(other, Some(group), to, from))
    }

    /// Hop-bytes of `group` on the PE `at`, except for its messages with the group `without`.
    fn hop_bytes(&self, group: usize, without: Option<usize>, at: u32) -> i128 {
        let Groups { graph, anchors, count, .. } = self.groups;
        let place_of = |vertex: usize| match vertex.checked_sub(*count) {
            Some(anchor) => anchors[anchor],
            None => self.places[vertex],
        };
        let cost = |(vertex, bytes): (usize, u64)| {
            i128::from(bytes) * i128::from(self.topology.distance(at as usize, place_of(vertex) as usize))
        };
        graph.neighbors(group).filter(|&(vertex, _)| Some(vertex) != without).map(cost).sum()
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::graph::load;
    use equipoise_model::topology;

    use crate::testing::{assign_on, communication};

    #[test]
    fn permuted_groups_have_fewer_hop_bytes_and_no_pe_becomes_heavier() {
        // One task on each PE, far from its neighbors. PEs with a light task have an object that stays, too heavy to be next to a
        // task of 3 or 4 seconds.
        let mut recorded = load("mesh:6x6").expect("a mesh").remap(36);
        for (object, at) in recorded.objects.iter_mut().zip(0..) {
            (object.pe, object.load_seconds) = (at * 7 % 36, 1.0 + f64::from(at % 4));
        }
        for at in (0..36).step_by(4) {
            let mut stays = recorded.objects[at].clone();
            (stays.migratable, stays.load_seconds, stays.id) = (false, 2.0, 100 + at as u64);
            recorded.objects.push(stays);
        }
        let machine = topology::parse("mesh:6x6").expect("a mesh");
        let heaviest = |pe_of: &[u32]| recorded.pe_loads(pe_of).into_iter().fold(0.0, f64::max);
        let hop_bytes = |pe_of: &[u32]| communication(&recorded, &*machine, pe_of).hop_bytes;
        let before = recorded.placement();
        for spec in ["TopoLB:groups=keep", "TopoLB:groups=keep,order=1", "TopoCentLB:groups=keep"] {
            let after = assign_on(spec, &recorded, "mesh:6x6").expect(spec).pe_of;
            assert!(heaviest(&after) <= heaviest(&before), "{spec}: {}", heaviest(&after));
            assert!(hop_bytes(&after) < hop_bytes(&before), "{spec}: {}", hop_bytes(&after));
        }
    }
}
