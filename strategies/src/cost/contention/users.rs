//! Which channel crossed which link first, phase by phase.

use rustc_hash::FxHashMap;

/// The most phases times links for which there is a table (of 4 bytes each); beyond, only what is crossed is kept.
const MAX_TABLE: usize = 1 << 24;

/// Nobody.
const NONE: u32 = u32::MAX;

/// By phase and link: a use of a channel whose way crosses it.
pub(super) struct Users {
    links: usize,
    kept: Kept,
    /// By link: in how many phases it is crossed.
    phases: Vec<u32>,
}

enum Kept {
    /// Phase by phase, [`NONE`] where a link is free.
    Table(Vec<u32>),
    Crossed(FxHashMap<(u32, u32), u32>),
}

impl Users {
    pub(super) fn new(phases: usize, links: usize) -> Self {
        let kept = match phases.checked_mul(links).filter(|&size| size <= MAX_TABLE) {
            Some(size) => Kept::Table(vec![NONE; size]),
            None => Kept::Crossed(FxHashMap::default()),
        };
        Users { links, kept, phases: vec![0; links] }
    }

    /// Who crossed that link before in that phase; if nobody did, `of` is the one from now on.
    pub(super) fn take(&mut self, phase: u32, link: u32, of: u32) -> Option<u32> {
        let earlier = match &mut self.kept {
            Kept::Table(table) => {
                let user = &mut table[phase as usize * self.links + link as usize];
                match *user {
                    NONE => {
                        *user = of;
                        None
                    }
                    other => Some(other),
                }
            }
            Kept::Crossed(crossed) => match crossed.entry((phase, link)) {
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

    /// Nobody crosses that link any more in that phase.
    pub(super) fn free(&mut self, phase: u32, link: u32) {
        match &mut self.kept {
            Kept::Table(table) => table[phase as usize * self.links + link as usize] = NONE,
            Kept::Crossed(crossed) => drop(crossed.remove(&(phase, link))),
        }
        self.phases[link as usize] -= 1;
    }

    /// Whether somebody crosses a link in some phase.
    pub(super) fn is_used(&self, link: usize) -> bool {
        self.phases[link] > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_and_what_is_crossed_say_the_same() {
        let mut table = Users::new(3, 4);
        let mut crossed = Users { kept: Kept::Crossed(FxHashMap::default()), ..Users::new(3, 4) };
        assert!(matches!(Users::new(1 << 20, 1 << 20).kept, Kept::Crossed(_)));
        for users in [&mut table, &mut crossed] {
            assert_eq!(users.take(1, 2, 7), None);
            assert_eq!(users.take(1, 2, 8), Some(7));
            assert_eq!(users.take(2, 2, 8), None);
            users.free(1, 2);
            assert!(users.is_used(2) && !users.is_used(1));
            users.free(2, 2);
            assert!(!users.is_used(2));
            assert_eq!(users.take(1, 2, 9), None);
        }
    }
}
