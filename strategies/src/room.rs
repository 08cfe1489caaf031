//! The room that constraints leave on PEs while objects are placed: counts, memory, places, and groups apart.

use std::sync::Arc;

use equipoise_model::constraints::Level;
use equipoise_model::database::PeRecord;
use equipoise_model::rules::{Allowed, Rules, allows};
use rustc_hash::FxHashMap;

/// What objects need: an entry for each object of a database.
#[derive(Clone, Copy)]
pub(crate) struct Needs<'a> {
    /// For how many objects it counts.
    pub(crate) count: &'a [u64],
    pub(crate) bytes: &'a [u64],
    /// Where it may be.
    pub(crate) allowed: &'a [Allowed],
    /// Groups: whether together, the level, the objects.
    pub(crate) groups: &'a [(bool, Level, Vec<u32>)],
}

/// What each PE has while objects are placed, and what else the constraints allow there.
///
/// Strategies that know constraints get it in [`Strategy::assign_within`](crate::Strategy::assign_within).
#[derive(Clone)]
pub struct Room<'a> {
    needs: Needs<'a>,
    rules: &'a Rules,
    pes: &'a [PeRecord],
    /// The groups apart of each object, as positions in the groups of `needs`.
    apart: Arc<Vec<Vec<u32>>>,
    count: Vec<u64>,
    /// A placement that breaks constraints may have more bytes on a PE than 64 bits can count.
    bytes: Vec<u128>,
    /// The bytes of the smallest object.
    smallest: u64,
    /// How many objects of a group are in a part of the machine: (group, part).
    taken: FxHashMap<(u32, u32), u32>,
}

impl<'a> Room<'a> {
    /// The room on PEs without objects.
    pub(crate) fn new(needs: Needs<'a>, rules: &'a Rules, pes: &'a [PeRecord]) -> Room<'a> {
        let mut apart = vec![Vec::new(); needs.count.len()];
        for (group, (together, _, members)) in (0..).zip(needs.groups) {
            if !together {
                members.iter().for_each(|&object| apart[object as usize].push(group));
            }
        }
        let (count, bytes) = (vec![0; pes.len()], vec![0; pes.len()]);
        let apart = Arc::new(apart);
        let smallest = needs.bytes.iter().copied().min().unwrap_or(0);
        Room { needs, rules, pes, apart, count, bytes, smallest, taken: FxHashMap::default() }
    }

    /// Whether an object without a place can go to a PE.
    pub fn fits(&self, object: u32, pe: u32) -> bool {
        self.pes[pe as usize].available && self.allows(object, pe)
    }

    /// Whether a PE has no room for any further object.
    pub fn is_full(&self, pe: u32) -> bool {
        !self.has_place(pe) || self.free_bytes(pe) < self.smallest
    }

    /// Gives objects without places these PEs, and returns whether each of them fits there.
    pub fn put_all(&mut self, placed: impl Iterator<Item = (u32, u32)>) -> bool {
        let mut fit = true;
        for (object, pe) in placed {
            fit &= self.fits(object, pe);
            self.put(object, pe);
        }
        fit
    }

    /// Gives a place to an object without one. It need not fit there.
    pub fn put(&mut self, object: u32, pe: u32) {
        self.count[pe as usize] += self.needs.count[object as usize];
        self.bytes[pe as usize] += u128::from(self.needs.bytes[object as usize]);
        for group in 0..self.apart[object as usize].len() {
            let group = self.apart[object as usize][group];
            *self.taken.entry((group, self.part(group, pe))).or_default() += 1;
        }
    }

    /// Takes an object from its PE.
    pub fn take(&mut self, object: u32, pe: u32) {
        self.count[pe as usize] -= self.needs.count[object as usize];
        self.bytes[pe as usize] -= u128::from(self.needs.bytes[object as usize]);
        for group in 0..self.apart[object as usize].len() {
            let group = self.apart[object as usize][group];
            *self.taken.entry((group, self.part(group, pe))).or_default() -= 1;
        }
    }

    /// Whether the constraints allow an object without a place on a PE, available or not.
    pub(crate) fn allows(&self, object: u32, pe: u32) -> bool {
        self.may_be(object, pe)
            && self.takes(object, pe)
            && self.needs.bytes[object as usize] <= self.free_bytes(pe)
            && self.apart(object).iter().all(|&group| self.members(group, pe) == 0)
    }

    /// Whether an object may be on a PE, if there is room.
    pub(crate) fn may_be(&self, object: u32, pe: u32) -> bool {
        allows(&self.needs.allowed[object as usize], pe)
    }

    /// Whether a PE takes the number of objects that an object counts for.
    pub(crate) fn takes(&self, object: u32, pe: u32) -> bool {
        self.count[pe as usize] + self.needs.count[object as usize] <= self.most(pe)
    }

    /// Whether a PE takes more objects.
    pub(crate) fn has_place(&self, pe: u32) -> bool {
        self.count[pe as usize] < self.most(pe)
    }

    /// The bytes that a PE has left.
    pub(crate) fn free_bytes(&self, pe: u32) -> u64 {
        let free = u128::from(self.memory(pe)).saturating_sub(self.bytes[pe as usize]);
        free as u64
    }

    /// How many objects and how many bytes a PE has too much after a change.
    pub(crate) fn excess(&self, pe: u32, objects: i64, bytes: i128) -> (f64, f64) {
        let count = self.count[pe as usize].saturating_add_signed(objects).saturating_sub(self.most(pe));
        let bytes = self.bytes[pe as usize].saturating_add_signed(bytes);
        (count as f64, bytes.saturating_sub(self.memory(pe).into()) as f64)
    }

    /// The groups apart of an object.
    pub(crate) fn apart(&self, object: u32) -> &[u32] {
        &self.apart[object as usize]
    }

    /// The part of the machine that a PE is in, at the level of a group.
    pub(crate) fn part(&self, group: u32, pe: u32) -> u32 {
        self.rules.parts[&self.needs.groups[group as usize].1][pe as usize]
    }

    /// How many objects of a group are in the part of the machine that a PE is in.
    pub(crate) fn members(&self, group: u32, pe: u32) -> u32 {
        self.taken.get(&(group, self.part(group, pe))).copied().unwrap_or(0)
    }

    /// The most objects of a PE.
    pub(crate) fn most(&self, pe: u32) -> u64 {
        self.rules.most.as_ref().map_or(u64::MAX, |most| most[pe as usize])
    }

    /// The most bytes of a PE.
    fn memory(&self, pe: u32) -> u64 {
        self.rules.memory.as_ref().map_or(u64::MAX, |memory| memory[pe as usize])
    }
}
