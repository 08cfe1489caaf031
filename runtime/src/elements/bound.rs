//! Bound arrays: elements with the same rank are on the same PE, and migrate together.
//!
//! The array to which others are bound leads. When its element leaves, the bound elements leave for the same PE, each with
//! the orders of its own array. On the new PE, each waits until all have landed and have the broadcasts that they missed.
//! [`Order::Met`](crate::order::Order::Met) reports this, first to the leader and then from the leader to the others. Each is placed in
//! a turn of its array, the leader last. So an element executes only while the elements with which it is bound are on its PE. The
//! leader, which alone decides to leave, executes only while the others are placed.

use super::Elements;
use crate::array::Chare;
use crate::pe::{ArrayInfo, PeCx, Presence};

impl<T: Chare> Elements<T> {
    /// Whether the array is bound to another one, or another one to it.
    pub(super) fn is_bound(&self, infos: &[ArrayInfo]) -> bool {
        let info = &infos[usize::from(self.port.id)];
        info.bound_to.is_some() || !info.followers.is_empty()
    }

    /// The element leaves for PE `to`, and the elements that are bound to it follow.
    pub(super) fn lead(&self, pe: &PeCx, rank: u32, to: u32) {
        for &follower in &pe.infos[usize::from(self.port.id)].followers {
            pe.elements[usize::from(follower)].borrow_mut().follow(pe, rank, to);
        }
    }

    /// Reports to the leader that an element has landed with all its broadcasts, or is placed.
    pub(super) fn report_landing(&self, pe: &PeCx, rank: u32) {
        let leader = pe.infos[usize::from(self.port.id)].bound_to.unwrap_or(self.port.id);
        pe.ports[usize::from(leader)].meet(&pe.out, rank);
    }

    /// The leader learns that an element has landed or is placed, or a follower that all have landed.
    pub(super) fn met(&mut self, pe: &PeCx, rank: u32) {
        if !self.is_complete(rank) {
            return;
        }
        let info = &pe.infos[usize::from(self.port.id)];
        if info.bound_to.is_some() {
            self.place_late(pe, rank);
            return self.report_landing(pe, rank);
        }
        let presences: Vec<(u16, Presence)> = info
            .followers
            .iter()
            .map(|&follower| (follower, pe.elements[usize::from(follower)].borrow().presence(pe, rank)))
            .collect();
        if presences.iter().any(|(_, presence)| *presence == Presence::Absent) {
            return;
        }
        let landed = presences.iter().filter(|(_, presence)| *presence == Presence::Landed);
        let mut is_last = true;
        for (follower, _) in landed {
            is_last = false;
            pe.ports[usize::from(*follower)].meet(&pe.out, rank);
        }
        if is_last {
            self.place_late(pe, rank);
        }
    }
}
