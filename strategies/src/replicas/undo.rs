//! Moves that are undone: the previous experts of a PE return, and exchanges elsewhere make PEs light enough again.

use super::layout::Layout;
use super::reduce::SMALLEST;

/// The most exchanges after an undone PE.
const EXCHANGES: usize = 40;

impl Layout<'_> {
    /// Undoes the moves to each PE in turn, and keeps what costs less with no PE above `cap`.
    pub(super) fn undo_moves(&mut self, cap: i64) {
        for pe in 0..self.given.pes {
            if self.peak() > cap || self.slots_of(pe).all(|at| !self.given.is_move(self.slot[at], pe)) {
                continue;
            }
            let mut tried = self.clone();
            tried.undo(pe);
            tried.descend(cap, EXCHANGES);
            if tried.peak() <= cap {
                tried.reduce_costs(cap);
                if tried.cost() < self.cost() - SMALLEST {
                    *self = tried;
                }
            }
        }
    }

    /// Gives a PE its previous experts, as far as every expert keeps a replica.
    fn undo(&mut self, pe: usize) {
        let given = self.given;
        for slot in self.slots_of(pe) {
            let moved = self.slot[slot];
            let is_back = |&expert: &u32| {
                !given.is_move(expert, pe) && given.allows(expert, pe) && !self.holds(expert, pe)
            };
            let back = (0..given.load.len() as u32).find(is_back);
            let Some(back) = back.filter(|_| given.is_move(moved, pe)) else { continue };
            if self.count(moved) > 1 {
                self.replace(slot, back);
                continue;
            }
            let hosts = self.hosts[back as usize].iter().map(|&host| host as usize);
            let with_room = hosts.filter(|&host| !self.holds(moved, host));
            let host = with_room.max_by_key(|&host| (given.is_move(back, host), host));
            let other = host.and_then(|host| self.slots_of(host).find(|&at| self.slot[at] == back));
            if let Some(other) = other {
                self.swap(slot, other);
            }
        }
    }
}
