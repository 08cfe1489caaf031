//! A complete search for a placement that keeps constraints, for small problems where the other steps find none.
//!
//! The item that fits on the fewest PEs is placed first, on the PE that it fills best; if that leads to a dead end, on the next one. So either
//! a placement is found, or there is none, unless the search becomes too long.

use equipoise_model::constraints::Level;
use equipoise_model::rules::Rules;

use super::contracted::{Items, sets};
use super::state::{NOWHERE, State};
use crate::room::Room;

/// How many questions whether an item fits on a PE are asked. They take about 0.2 s.
const MOST_QUESTIONS: u64 = 10_000_000;
/// The largest number of items: each is a call on the stack.
const MOST_ITEMS: usize = 500;

/// The outcome of a search.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// The PE of every item.
    Found(Vec<u32>),
    /// There is no placement.
    Impossible,
    /// The search became too long.
    Unknown,
}

/// Searches for a placement of all items that can move.
pub(super) fn search(items: &Items, rules: &Rules) -> Outcome {
    if items.weight.len() > MOST_ITEMS {
        return Outcome::Unknown;
    }
    let Ok(fixed) = State::new(items, rules) else { return Outcome::Impossible };
    let open = (0..fixed.pes()).filter(|&pe| fixed.is_available(pe)).collect();
    let levels = [Level::Node, Level::Switch].into_iter();
    let levels = levels.filter_map(|level| Some(Together::new(items, level, rules.parts.get(&level)?)));
    let mut search = Search {
        room: fixed.room().clone(),
        pe_of: vec![NOWHERE; items.weight.len()],
        unplaced: (0..items.weight.len() as u32).filter(|&item| fixed.can_move(item)).collect(),
        levels: levels.collect(),
        open,
        questions: MOST_QUESTIONS,
    };
    for item in (0..items.weight.len() as u32).filter(|&item| !fixed.can_move(item)) {
        let pe = items.database.objects[item as usize].pe;
        if !search.levels.iter().all(|level| level.allows(item, pe)) {
            return Outcome::Impossible;
        }
        search.levels.iter_mut().for_each(|level| level.put(item, pe));
        search.pe_of[item as usize] = pe;
    }
    match search.place() {
        Some(true) => Outcome::Found(search.pe_of),
        Some(false) => Outcome::Impossible,
        None => Outcome::Unknown,
    }
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

struct Search<'a> {
    room: Room<'a>,
    pe_of: Vec<u32>,
    unplaced: Vec<u32>,
    levels: Vec<Together<'a>>,
    /// The PEs that are available.
    open: Vec<u32>,
    questions: u64,
}

impl Search<'_> {
    /// Places all items without a place. `None`: the search became too long; `Some(false)`: there is no placement.
    fn place(&mut self) -> Option<bool> {
        if self.unplaced.is_empty() {
            return Some(true);
        }
        let (at, mut pes) = self.least_choice()?;
        let item = self.unplaced.swap_remove(at);
        pes.sort_by_key(|&pe| self.room.free_bytes(pe));
        for pe in pes {
            self.room.put(item, pe);
            self.levels.iter_mut().for_each(|level| level.put(item, pe));
            self.pe_of[item as usize] = pe;
            let placed = self.place();
            if placed != Some(false) {
                return placed;
            }
            self.room.take(item, pe);
            self.levels.iter_mut().for_each(|level| level.take(item));
        }
        self.unplaced.push(item);
        Some(false)
    }

    /// The item that fits on the fewest PEs, as its position among those without a place, and these PEs.
    fn least_choice(&mut self) -> Option<(usize, Vec<u32>)> {
        let mut least: Option<(usize, Vec<u32>)> = None;
        for (at, &item) in self.unplaced.iter().enumerate() {
            self.questions = self.questions.checked_sub(self.open.len() as u64)?;
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
        least
    }
}
