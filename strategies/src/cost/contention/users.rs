//! For each phase and link: the first channel whose route crosses the link.

use rustc_hash::FxHashMap;

/// The maximum of phases times links for a dense table, at 4 bytes each. Above it, only crossed links are stored.
const MAX_TABLE: usize = 1 << 24;

/// The link is free.
const NONE: u32 = u32::MAX;

/// By phase and link: one use of a channel whose route crosses the link.
pub(super) struct Users {
    links: usize,
    storage: Storage,
    /// By link: the number of phases in which it is crossed.
    phases: Vec<u32>,
}

enum Storage {
    /// By phase, then by link; [`NONE`] where a link is free.
    Table(Vec<u32>),
    Crossed(FxHashMap<(u32, u32), u32>),
}

impl Users {
    pub(super) fn new(phases: usize, links: usize) -> Self {
        let storage = match phases.checked_mul(links).filter(|&size| size <= MAX_TABLE) {
            Some(size) => Storage::Table(vec![NONE; size]),
            None => Storage::Crossed(FxHashMap::default()),
        };
        Users { links, storage, phases: vec![0; links] }
    }

    /// The use that crossed the link first in that phase. If no use has crossed the link, `of` becomes the first.
    pub(super) fn claim(&mut self, phase: u32, link: u32, of: u32) -> Option<u32> {
        let earlier = match &mut self.storage {
            Storage::Table(table) => {
                let user = &mut table[phase as usize * self.links + link as usize];
                match *user {
                    NONE => {
                        *user = of;
                        None
                    }
                    other => Some(other),
                }
            }
            Storage::Crossed(crossed) => match crossed.entry((phase, link)) {
                std::collections::hash_map::Entry::Occupied(entry) => Some(*entry.get()),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(of);
                    None
                }
            },
        };
        self.phases[link as usize] += u32::from(earlier.is_none());
        earlier
    }

    /// Marks the link as free in that phase.
    pub(super) fn release(&mut self, phase: u32, link: u32) {
        match &mut self.storage {
            Storage::Table(table) => table[phase as usize * self.links + link as usize] = NONE,
            Storage::Crossed(crossed) => drop(crossed.remove(&(phase, link))),
        }
        self.phases[link as usize] -= 1;
    }

    /// Whether a route crosses the link in any phase.
    pub(super) fn is_used(&self, link: usize) -> bool {
        self.phases[link] > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_map_return_the_same() {
        let mut table = Users::new(3, 4);
        let mut crossed = Users { storage: Storage::Crossed(FxHashMap::default()), ..Users::new(3, 4) };
        assert!(matches!(Users::new(1 << 20, 1 << 20).storage, Storage::Crossed(_)));
        for users in [&mut table, &mut crossed] {
            assert_eq!(users.claim(1, 2, 7), None);
            assert_eq!(users.claim(1, 2, 8), Some(7));
            assert_eq!(users.claim(2, 2, 8), None);
            users.release(1, 2);
            assert!(users.is_used(2) && !users.is_used(1));
            users.release(2, 2);
            assert!(!users.is_used(2));
            assert_eq!(users.claim(1, 2, 9), None);
        }
    }
}
