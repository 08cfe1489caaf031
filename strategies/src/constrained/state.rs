//! A placement of items in the making: what each PE has, and what fits where.

use std::collections::BTreeSet;

use equipoise_model::rules::Rules;
use equipoise_model::table::count;

use super::contracted::{Items, named};
use crate::balance::load::order;
use crate::room::Room;

/// The PE of an item that has no place.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A placement in the making.
pub(super) struct State<'a> {
    items: &'a Items,
    rules: &'a Rules,
    room: Room<'a>,
    /// The PE of each item, or [`NOWHERE`].
    pub(super) pe_of: Vec<u32>,
    /// The items of each PE.
    on: Vec<BTreeSet<u32>>,
    /// The seconds of each PE in each phase.
    seconds: Vec<Vec<f64>>,
    /// The available PEs by their seconds in each phase, lightest first.
    by_seconds: Vec<BTreeSet<(u64, u32)>>,
    /// Those that take more objects, by their seconds in all phases.
    open: BTreeSet<(u64, u32)>,
}

impl<'a> State<'a> {
    /// A placement of the items that cannot move.
    ///
    /// # Errors
    /// If they break a constraint.
    pub(super) fn new(items: &'a Items, rules: &'a Rules) -> Result<State<'a>, String> {
        let (number, pes) = (items.weight.len(), items.database.pes.len());
        let seconds = items.background_seconds();
        let available = |seconds: &Vec<f64>| {
            let open = (0..pes as u32).filter(|&pe| items.database.pes[pe as usize].available);
            open.map(|pe| (order(seconds[pe as usize]), pe)).collect()
        };
        let mut state = State {
            items,
            rules,
            room: items.room(rules),
            pe_of: vec![NOWHERE; number],
            on: vec![BTreeSet::new(); pes],
            by_seconds: seconds.iter().map(available).collect(),
            open: BTreeSet::new(),
            seconds,
        };
        (0..pes as u32).for_each(|pe| state.reopen(pe));
        for item in (0..number as u32).filter(|&item| items.is_fixed[item as usize]) {
            let pe = items.database.objects[item as usize].pe;
            if !state.room.allows(item, pe) {
                return Err(state.no_room(item, pe));
            }
            state.put(item, pe);
        }
        Ok(state)
    }

    /// The placement of the items by PE.
    ///
    /// # Errors
    /// As [`State::new`].
    pub(super) fn with(items: &'a Items, rules: &'a Rules, pe_of: &[u32]) -> Result<State<'a>, String> {
        let mut state = State::new(items, rules)?;
        for (item, &pe) in (0..).zip(pe_of) {
            if state.can_move(item) {
                state.put(item, pe);
            }
        }
        Ok(state)
    }

    /// Why an item that must be on `pe` has no room there.
    fn no_room(&self, item: u32, pe: u32) -> String {
        let ids = |items: &mut dyn Iterator<Item = u32>| {
            let ids: Vec<u64> = items.map(|item| self.id(item)).collect();
            if ids.is_empty() { String::new() } else { named("object", &ids) }
        };
        let there = ids(&mut self.on(pe));
        let is_in_way = |group: &&u32| self.room.members(**group, pe) > 0;
        let (why, remedy) = if !self.takes(item, pe) {
            let most = self.room.most(pe);
            let has = if there.is_empty() { String::new() } else { format!(" and has {there}") };
            (format!("which takes at most {}{has}", count(most, "object")), "--max-objects or --fixed")
        } else if let Some(&group) = self.room.apart(item).iter().find(is_in_way) {
            let (_, level, members) = &self.items.groups[group as usize];
            let is_near = |other: &u32| {
                let at = self.pe_of[*other as usize];
                at != NOWHERE && self.room.part(group, at) == self.room.part(group, pe)
            };
            let near = ids(&mut members.iter().copied().filter(is_near));
            (format!("and apart from {near}, which must be at the same {level}"), "--groups or --fixed")
        } else {
            let has = if there.is_empty() { String::new() } else { format!(", with {there} there") };
            (format!("which has no room for its bytes{has}"), "--memory or --fixed")
        };
        format!("no placement exists: object {} must be on PE {pe}, {why}; change {remedy}", self.id(item))
    }

    /// Whether an item can move.
    pub(super) fn can_move(&self, item: u32) -> bool {
        !self.items.is_fixed[item as usize]
    }

    /// The room that is left.
    pub(super) fn room(&self) -> &Room<'a> {
        &self.room
    }

    /// The number of PEs.
    pub(super) fn pes(&self) -> u32 {
        self.on.len() as u32
    }

    /// Whether a PE receives items.
    pub(super) fn is_available(&self, pe: u32) -> bool {
        self.items.database.pes[pe as usize].available
    }

    /// Where an item may be.
    pub(super) fn allowed(&self, item: u32) -> Option<&[u32]> {
        self.items.allowed[item as usize].as_ref().map(|set| set.as_slice())
    }

    /// Whether an item may be on a PE, if there is room.
    pub(super) fn may_be(&self, item: u32, pe: u32) -> bool {
        self.room.may_be(item, pe)
    }

    /// The id of the first object of an item.
    pub(super) fn id(&self, item: u32) -> u64 {
        self.items.id[item as usize]
    }

    /// The objects of an item.
    pub(super) fn weight_of(&self, item: u32) -> u64 {
        self.items.weight[item as usize]
    }

    /// Whether a PE takes the objects of an item in addition to those that it has.
    pub(super) fn takes(&self, item: u32, pe: u32) -> bool {
        self.room.takes(item, pe)
    }

    /// The bytes of an item.
    pub(super) fn bytes_of(&self, item: u32) -> u64 {
        self.items.bytes[item as usize]
    }

    /// Whether counts and places are the only constraints.
    pub(super) fn has_only_counts(&self) -> bool {
        self.rules.memory.is_none()
            && self.items.groups.is_empty()
            && self.items.weight.iter().all(|&weight| weight == 1)
    }

    /// Whether items must be apart, or together in more than a PE.
    pub(super) fn has_groups(&self) -> bool {
        !self.items.groups.is_empty()
    }

    /// The items of a PE, ascending.
    pub(super) fn on(&self, pe: u32) -> impl Iterator<Item = u32> + '_ {
        self.on[pe as usize].iter().copied()
    }

    /// Whether an item without a place can go to `pe`.
    pub(super) fn fits(&self, item: u32, pe: u32) -> bool {
        self.room.fits(item, pe)
    }

    /// The bytes that a PE has left.
    pub(super) fn free_bytes(&self, pe: u32) -> u64 {
        self.room.free_bytes(pe)
    }

    /// Whether a PE takes more objects.
    pub(super) fn has_place(&self, pe: u32) -> bool {
        self.room.has_place(pe)
    }

    /// Puts an item without a place on a PE.
    pub(super) fn put(&mut self, item: u32, pe: u32) {
        let (at, to) = (item as usize, pe as usize);
        self.open.remove(&(order(self.total_seconds(pe)), pe));
        self.pe_of[at] = pe;
        self.on[to].insert(item);
        self.room.put(item, pe);
        self.add_seconds(item, pe, 1.0);
        self.reopen(pe);
    }

    /// Notes that a PE takes more objects, if it does.
    fn reopen(&mut self, pe: u32) {
        if self.is_available(pe) && self.has_place(pe) {
            self.open.insert((order(self.total_seconds(pe)), pe));
        }
    }

    /// The PEs that take more objects, the lightest first.
    pub(super) fn open(&self) -> impl Iterator<Item = u32> + '_ {
        self.open.iter().map(|entry| entry.1)
    }

    /// The seconds of a PE in all phases.
    pub(super) fn total_seconds(&self, pe: u32) -> f64 {
        self.seconds.iter().map(|seconds| seconds[pe as usize]).sum()
    }

    /// The seconds of an item on a PE in all phases.
    pub(super) fn total_seconds_of(&self, item: u32, pe: u32) -> f64 {
        (0..self.phases()).map(|phase| self.seconds_of(item, pe, phase)).sum()
    }

    /// Takes an item from its PE.
    pub(super) fn take(&mut self, item: u32) {
        let (at, pe) = (item as usize, self.pe_of[item as usize]);
        let from = pe as usize;
        self.open.remove(&(order(self.total_seconds(pe)), pe));
        self.pe_of[at] = NOWHERE;
        self.on[from].remove(&item);
        self.room.take(item, pe);
        self.add_seconds(item, pe, -1.0);
        self.reopen(pe);
    }

    /// Moves items, each given with its PE and its next PE. Undoes that and returns false if the constraints do not allow it, or if the
    /// result is not good.
    pub(super) fn attempt(
        &mut self,
        moves: &[(u32, u32, u32)],
        is_good: impl FnOnce(&State) -> bool,
    ) -> bool {
        moves.iter().for_each(|of| self.take(of.0));
        let mut placed = 0;
        for &(item, _, to) in moves {
            if !self.fits(item, to) {
                break;
            }
            self.put(item, to);
            placed += 1;
        }
        if placed == moves.len() && is_good(self) {
            return true;
        }
        moves[..placed].iter().for_each(|of| self.take(of.0));
        moves.iter().for_each(|&(item, from, _)| self.put(item, from));
        false
    }

    fn add_seconds(&mut self, item: u32, pe: u32, sign: f64) {
        let is_available = self.items.database.pes[pe as usize].available;
        for phase in 0..self.seconds.len() {
            let added = sign * self.seconds_of(item, pe, phase);
            let seconds = &mut self.seconds[phase][pe as usize];
            let before = order(*seconds);
            // Rounding must not make a PE without items lighter than nothing.
            *seconds = (*seconds + added).max(0.0);
            if is_available {
                self.by_seconds[phase].remove(&(before, pe));
                self.by_seconds[phase].insert((order(*seconds), pe));
            }
        }
    }

    /// The seconds of an item on a PE in a phase.
    pub(super) fn seconds_of(&self, item: u32, pe: u32, phase: usize) -> f64 {
        self.items.seconds(item, pe, phase)
    }

    /// The number of phases.
    pub(super) fn phases(&self) -> usize {
        self.seconds.len()
    }

    /// The seconds of a PE in a phase.
    pub(super) fn seconds(&self, pe: u32, phase: usize) -> f64 {
        self.seconds[phase][pe as usize]
    }

    /// The available PEs, the lightest in a phase first.
    pub(super) fn lightest(&self, phase: usize) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.by_seconds[phase].iter().map(|entry| entry.1)
    }

    /// The sum over phases of the seconds of the slowest available PE.
    pub(super) fn cost_seconds(&self) -> f64 {
        let slowest = |phase: &BTreeSet<(u64, u32)>| phase.last().map_or(0.0, |last| f64::from_bits(last.0));
        self.by_seconds.iter().map(slowest).sum()
    }
}
