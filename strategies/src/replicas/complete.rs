//! Fills the empty slots of a layout: how many replicas experts have, and where.
//!
//! Counts are greedy: one more replica at a time for the expert with the largest load per replica, which makes the heaviest
//! replica as light as possible. Placement is by descending load, each replica on the lightest PE with an empty slot and
//! without the expert.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::layout::{EMPTY, Layout};

impl Layout<'_> {
    /// Fills all empty slots. Every zone needs at least a slot, and at most a slot on each PE, for every expert of the zone.
    pub(super) fn complete(&mut self) {
        if !self.slot.contains(&EMPTY) && self.hosts.iter().all(|hosts| !hosts.is_empty()) {
            return;
        }
        let zones = self.given.pes as u32 / self.given.zone_pes;
        let pending = (0..zones).flat_map(|zone| self.pending(zone)).collect();
        self.fill(pending);
    }

    /// Fills all empty slots with replicas of the experts `pending`.
    fn fill(&mut self, mut pending: Vec<u32>) {
        // The loads with all replicas, so that placing one changes no other.
        let mut counts: Vec<i64> = self.hosts.iter().map(|hosts| hosts.len() as i64).collect();
        pending.iter().for_each(|&expert| counts[expert as usize] += 1);
        self.share = self.given.load.iter().zip(&counts).map(|(load, &count)| load / count.max(1)).collect();
        self.pe_load = vec![0; self.given.pes];
        for at in 0..self.slot.len() {
            if self.slot[at] != EMPTY {
                self.pe_load[at / self.given.slots] += self.share[self.slot[at] as usize];
            }
        }
        pending.sort_by_key(|&expert| (Reverse(self.share[expert as usize]), expert));
        pending.into_iter().for_each(|expert| self.place(expert));
        self.update_loads();
    }

    /// The layout in which the experts of a zone are placed anew with other counts: `fewer` replicas less of experts with
    /// several, such that the heaviest replica stays as light as possible, and a second one of as many other experts. It may
    /// help where PEs have replicas of two heavy experts. None if there are no such experts.
    pub(super) fn with_other_counts(&self, zone: u32, fewer: usize) -> Option<Self> {
        let of_zone = (0..).zip(&self.given.zone_of_expert).filter(|it| *it.1 == zone);
        let experts: Vec<u32> = of_zone.map(|it| it.0).collect();
        let mut singles: Vec<u32> = experts.iter().copied().filter(|&it| self.count(it) == 1).collect();
        singles.sort_by_key(|&expert| (Reverse(self.given.load[expert as usize]), expert));
        let more = singles.get(..fewer).filter(|_| self.given.zone_pes > 1)?;
        let mut counts = self.count.clone();
        for _ in 0..fewer {
            let several = experts.iter().copied().filter(|&it| counts[it as usize] > 1);
            let less = several.min_by_key(|&it| (self.share_of(it, counts[it as usize] - 1), it))?;
            counts[less as usize] -= 1;
        }
        more.iter().for_each(|&expert| counts[expert as usize] += 1);
        let mut other = self.clone();
        let slots = (0..self.slot.len()).filter(|&at| self.given.zone_of_pe[self.pe(at)] == zone);
        slots.for_each(|at| other.put(at, EMPTY));
        let replicas = |&expert: &u32| std::iter::repeat_n(expert, counts[expert as usize] as usize);
        other.fill(experts.iter().flat_map(replicas).collect());
        Some(other)
    }

    /// Empties slots of experts that have more replicas than in `other`, on their heaviest PEs.
    pub(super) fn recount(&mut self, other: &Layout) {
        for expert in 0..self.given.load.len() as u32 {
            while self.count(expert) > other.count(expert).max(1) {
                let hosts = self.hosts[expert as usize].iter().copied();
                let Some(pe) = hosts.max_by_key(|&pe| (self.pe_load[pe as usize], Reverse(pe))) else {
                    break;
                };
                let Some(slot) = self.slots_of(pe as usize).find(|&at| self.slot[at] == expert) else {
                    break;
                };
                self.put(slot, EMPTY);
            }
        }
    }

    /// The experts of the replicas that fill the empty slots of a zone. If these are fewer than the experts without a
    /// replica, others lose replicas first.
    fn pending(&mut self, zone: u32) -> Vec<u32> {
        let experts: Vec<u32> =
            (0..).zip(&self.given.zone_of_expert).filter(|it| *it.1 == zone).map(|it| it.0).collect();
        let slots = (0..self.slot.len())
            .filter(|at| self.given.zone_of_pe[at / self.given.slots] == zone)
            .collect::<Vec<_>>();
        let missing: Vec<u32> = experts.iter().copied().filter(|&expert| self.count(expert) == 0).collect();
        let mut empty = slots.iter().filter(|&&at| self.slot[at] == EMPTY).count();
        while empty < missing.len() {
            let spare = experts.iter().copied().filter(|&expert| self.count(expert) > 1);
            let Some(lightest) = spare.min_by_key(|&it| self.share_of(it, self.count(it) - 1)) else { break };
            let of_it = slots.iter().copied().filter(|&at| self.slot[at] == lightest);
            let Some(heaviest) = of_it.max_by_key(|&at| (self.pe_load[self.pe(at)], Reverse(at))) else {
                break;
            };
            self.put(heaviest, EMPTY);
            empty += 1;
        }
        let mut pending = missing;
        let more = |expert: u32, count: u32| (self.share_of(expert, count), Reverse(expert), count);
        let mut heap: BinaryHeap<_> = experts.iter().map(|&it| more(it, self.count(it).max(1))).collect();
        while pending.len() < empty {
            let Some((_, Reverse(expert), count)) = heap.pop() else { break };
            if count < self.given.zone_pes {
                pending.push(expert);
                heap.push(more(expert, count + 1));
            }
        }
        pending
    }

    /// Places one replica; loads of PEs are updated, loads of replicas stay.
    fn place(&mut self, expert: u32) {
        let given = self.given;
        let allowed: Vec<usize> = (0..given.pes).filter(|&pe| given.allows(expert, pe)).collect();
        let empty = |layout: &Self, pe: usize| layout.slots_of(pe).find(|&at| layout.slot[at] == EMPTY);
        let by_load = |layout: &Self, pe: usize| (layout.pe_load[pe], pe);
        let free = allowed.iter().copied().filter(|&pe| !self.holds(expert, pe) && empty(self, pe).is_some());
        let (pe, slot) = match free.min_by_key(|&pe| by_load(self, pe)) {
            Some(pe) => (pe, empty(self, pe)),
            None => {
                // All PEs with an empty slot have the expert. A PE without it is full, so it has an expert that a PE with an
                // empty slot lacks: that one makes room.
                let with_room = allowed.iter().copied().find(|&pe| empty(self, pe).is_some());
                let without = allowed.iter().copied().filter(|&pe| !self.holds(expert, pe));
                let Some((room, full)) = with_room.zip(without.min_by_key(|&pe| by_load(self, pe))) else {
                    return;
                };
                let leaves = |&at: &usize| self.slot[at] != EMPTY && !self.holds(self.slot[at], room);
                let Some(from) = self
                    .slots_of(full)
                    .filter(leaves)
                    .min_by_key(|&at| (self.share[self.slot[at] as usize], at))
                else {
                    return;
                };
                let (moved, to) = (self.slot[from], empty(self, room));
                self.put(from, EMPTY);
                if let Some(to) = to {
                    self.put(to, moved);
                }
                self.pe_load[full] -= self.share[moved as usize];
                self.pe_load[room] += self.share[moved as usize];
                (full, Some(from))
            }
        };
        if let Some(slot) = slot {
            self.put(slot, expert);
            self.pe_load[pe] += self.share[expert as usize];
        }
    }
}
