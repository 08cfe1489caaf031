//! A complete search for a placement that keeps constraints, where the other steps find none.
//!
//! The search finds a placement, proves that there is none, or gives up after [`MOST_CHECKS`]. The item that fits on the fewest PEs is
//! placed first, on the PE that it fills best; if that leads to a dead end, on the next one. Of empty PEs that are alike, one is tried.
//! Where a PE takes exactly a number of items, `repair::prove_impossible` has shown that all PEs take as many items as there are, so that
//! it is enough if none takes more.

use equipoise_model::constraints::Level;
use equipoise_model::rules::Rules;
use rustc_hash::{FxHashMap, FxHashSet};

use super::contracted::{Items, sets};
use super::state::State;
use crate::room::Room;

/// The largest number of checks whether an item fits on a PE. They take some tenths of a second.
const MOST_CHECKS: u64 = 10_000_000;
/// The largest number of items without a place: each is a call on the stack.
const MOST_ITEMS: usize = 500;

/// The outcome of a search.
pub(super) enum Outcome {
    /// The PE of every item.
    Found(Vec<u32>),
    /// There is no placement.
    Impossible,
    /// The search became too long.
    Unknown,
}

/// The search became too long.
struct TooLong;

/// Searches for a placement of all items that can move.
pub(super) fn search(items: &Items, rules: &Rules) -> Outcome {
    let Ok(fixed) = State::new(items, rules) else { return Outcome::Impossible };
    let (can_move, cannot): (Vec<u32>, Vec<u32>) =
        (0..items.weight.len() as u32).partition(|&item| fixed.can_move(item));
    let open: Vec<u32> = (0..fixed.pes()).filter(|&pe| fixed.is_available(pe)).collect();
    if can_move.len() > MOST_ITEMS || (can_move.len() * open.len()) as u64 > MOST_CHECKS {
        return Outcome::Unknown;
    }
    let levels = [Level::Node, Level::Switch].into_iter();
    let levels = levels.filter_map(|level| Some(Together::new(items, level, rules.parts.get(&level)?)));
    let mut search = Search {
        room: fixed.room().clone(),
        pe_of: fixed.pe_of.clone(),
        unplaced: can_move,
        levels: levels.collect(),
        class_of: classes(items, rules, &fixed),
        placed: vec![0; fixed.pes() as usize],
        open,
        checks: MOST_CHECKS,
    };
    for item in cannot {
        let pe = fixed.pe_of[item as usize];
        if !search.levels.iter().all(|level| level.allows(item, pe)) {
            return Outcome::Impossible;
        }
        search.levels.iter_mut().for_each(|level| level.put(item, pe));
    }
    match search.place() {
        Ok(true) => Outcome::Found(search.pe_of),
        Ok(false) => Outcome::Impossible,
        Err(TooLong) => Outcome::Unknown,
    }
}

/// By PE: its class. PEs of a class are alike for all constraints as long as they have only the items that cannot move.
fn classes(items: &Items, rules: &Rules, fixed: &State) -> Vec<usize> {
    let room = fixed.room();
    let sets: FxHashSet<_> = items.allowed.iter().flatten().map(|set| set.as_slice()).collect();
    let parts = [Level::Node, Level::Switch].map(|level| rules.parts.get(&level));
    let apart = (0..).zip(&items.groups).filter(|(_, (together, level, _))| !together && *level == Level::Pe);
    let apart: Vec<u32> = apart.map(|(group, _)| group).collect();
    let sets: Vec<&[u32]> = sets.into_iter().collect();
    let mut known = FxHashMap::default();
    let of = |pe: u32| {
        let mut key = vec![room.free_bytes(pe), room.most(pe)];
        key.push(fixed.on(pe).map(|item| fixed.weight_of(item)).sum());
        key.extend(parts.iter().flatten().map(|part_of| u64::from(part_of[pe as usize])));
        key.extend(sets.iter().map(|set| u64::from(set.binary_search(&pe).is_ok())));
        key.extend(apart.iter().map(|&group| u64::from(room.members(group, pe))));
        let next = known.len();
        *known.entry(key).or_insert(next)
    };
    (0..fixed.pes()).map(of).collect()
}

/// The sets of items that must be together at a level of the machine.
struct Together<'a> {
    /// By PE: its part of the machine.
    part_of: &'a [u32],
    /// By item: its set.
    set_of: Vec<u32>,
    /// By set: the part where its items are, and how many are there.
    at: Vec<(u32, usize)>,
}

impl<'a> Together<'a> {
    fn new(items: &Items, level: Level, part_of: &'a [u32]) -> Self {
        let set_of = sets(items.weight.len(), &items.groups, level);
        let at = vec![(0, 0); set_of.len()];
        Together { part_of, set_of, at }
    }

    fn allows(&self, item: u32, pe: u32) -> bool {
        let (part, members) = self.at[self.set_of[item as usize] as usize];
        members == 0 || part == self.part_of[pe as usize]
    }

    fn put(&mut self, item: u32, pe: u32) {
        let (part, members) = &mut self.at[self.set_of[item as usize] as usize];
        (*part, *members) = (self.part_of[pe as usize], *members + 1);
    }

    fn take(&mut self, item: u32) {
        self.at[self.set_of[item as usize] as usize].1 -= 1;
    }
}

/// A placement in the making, with what is needed to take items back.
struct Search<'a> {
    room: Room<'a>,
    pe_of: Vec<u32>,
    unplaced: Vec<u32>,
    levels: Vec<Together<'a>>,
    /// By PE: its class, and how many items the search has placed there.
    class_of: Vec<usize>,
    placed: Vec<usize>,
    /// The PEs that are available.
    open: Vec<u32>,
    /// How many checks are left.
    checks: u64,
}

impl Search<'_> {
    /// Places all items without a place, and returns whether that is possible.
    fn place(&mut self) -> Result<bool, TooLong> {
        if self.unplaced.is_empty() {
            return Ok(true);
        }
        let (at, mut pes) = self.least_choice()?;
        let item = self.unplaced.swap_remove(at);
        pes.sort_by_key(|&pe| self.room.free_bytes(pe));
        let mut tried = FxHashSet::default();
        pes.retain(|&pe| self.placed[pe as usize] > 0 || tried.insert(self.class_of[pe as usize]));
        for pe in pes {
            self.room.put(item, pe);
            self.levels.iter_mut().for_each(|level| level.put(item, pe));
            self.placed[pe as usize] += 1;
            self.pe_of[item as usize] = pe;
            if self.place()? {
                return Ok(true);
            }
            self.room.take(item, pe);
            self.levels.iter_mut().for_each(|level| level.take(item));
            self.placed[pe as usize] -= 1;
        }
        self.unplaced.push(item);
        Ok(false)
    }

    /// The item that fits on the fewest PEs, as its position among those without a place, and these PEs.
    fn least_choice(&mut self) -> Result<(usize, Vec<u32>), TooLong> {
        let mut least: Option<(usize, Vec<u32>)> = None;
        for (at, &item) in self.unplaced.iter().enumerate() {
            let checks = self.open.len() * (1 + self.room.apart(item).len());
            self.checks = self.checks.checked_sub(checks as u64).ok_or(TooLong)?;
            let fits = |pe: &u32| {
                self.room.fits(item, *pe) && self.levels.iter().all(|level| level.allows(item, *pe))
            };
            let pes: Vec<u32> = self.open.iter().copied().filter(fits).collect();
            if least.as_ref().is_none_or(|(_, fewest)| pes.len() < fewest.len()) {
                let is_dead_end = pes.is_empty();
                least = Some((at, pes));
                if is_dead_end {
                    break;
                }
            }
        }
        Ok(least.expect("an item has no place yet"))
    }
}
