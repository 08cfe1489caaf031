//! How elements take part in reductions and sync points.

use super::Elements;
use crate::array::Chare;
use crate::load::element_key;
use crate::location::AFTER_SYNC;
use crate::order::PeOrder;
use crate::pe::{Contributor, Offer, PeCx, post_delivery};
use crate::reduction::Tally;
use crate::slot::{Collective, Item};

impl<T: Chare> Elements<T> {
    #[inline(never)]
    pub(super) fn contributes(&mut self, pe: &PeCx, at: usize) {
        let mut number = 0;
        if let Some(target) = pe.delivery.offers.take_first() {
            self.contributes_to(pe, at, target, number);
            number += 1;
        }
        while pe.delivery.offers.has_others()
            && let Some(Offer { target, section }) = pe.delivery.offers.next_other()
        {
            match section {
                None => {
                    self.contributes_to(pe, at, target, number);
                    number += 1;
                }
                Some(section) => {
                    let slot = &mut self.slots[at];
                    let key = element_key(self.port.id, slot.rank);
                    let round = slot.contributes_to(section.0);
                    let tally = Tally { count: 1, ..Tally::default() };
                    let by = Contributor { key, section: Some(section), round, tally, here: 0 };
                    pe.ports[usize::from(target)].contributed(pe, by);
                }
            }
        }
    }

    /// Contributes to a reduction of the element's array, for the `number`-th time in this entry.
    #[inline]
    fn contributes_to(&mut self, pe: &PeCx, at: usize, target: u16, number: usize) {
        if pe.delivery.has(post_delivery::CREATED) {
            self.brings_created(at, Collective::Reduction, |created| created.contributed == number);
        }
        let here = self.slots.len() as u32;
        let slot = &mut self.slots[at];
        let key = element_key(self.port.id, slot.rank);
        let round = slot.contributions;
        slot.contributions = round.wrapping_add(1);
        let tally = slot.takes_part(Collective::Reduction);
        let by = Contributor { key, section: None, round, tally, here };
        pe.ports[usize::from(target)].contributed(pe, by);
    }

    pub(super) fn comes_to_sync(&mut self, pe: &PeCx, at: usize) {
        let resume = self.port.resume.take();
        let slot = &mut self.slots[at];
        let rank = slot.rank;
        let extra = slot.extra();
        assert!(
            extra.resume.is_none() && !extra.syncing,
            "{} called `at_sync` again before it received the message of its previous `at_sync`; call it in the entry that \
             receives this message, or later",
            self.port.name(rank)
        );
        if !pe.settings().has_barriers() {
            let Some(msg) = resume else { return };
            // The slot is found again, which is where the end of `syncing` is noticed.
            extra.syncing = true;
            return self.port.enqueue_traced(&pe.out, Item { rank, slot: AFTER_SYNC, msg });
        }
        extra.resume = resume;
        let tally = slot.takes_part(Collective::Barrier);
        let round = slot.syncs;
        slot.syncs += 1;
        pe.collectives.steps.add_calls((self.port.id, round), tally);
        self.called += 1;
        if self.called < self.slots.len() {
            return;
        }
        match pe.settings().weighs() {
            // Loads are read after the delivery: until then its array is borrowed.
            true => pe.out.tell(pe.out.rank, PeOrder::AllCalled),
            false => pe.report_syncs(),
        }
    }

    /// Changes the slot of the message of `at_sync` of an element that leaves this PE or ends. The message is in a queue of this PE.
    #[cold]
    #[inline(never)]
    pub(super) fn change_sync_message(&mut self, rank: u32, slot: u32) {
        let is_it = |item: &Item<T::Msg>| item.rank == rank && item.slot == AFTER_SYNC;
        // It is usually the last one that was queued, or the next one.
        let mut local = self.port.local.borrow_mut();
        let found = local.iter_mut().rev().chain(&mut self.batch).find(|item| is_it(item));
        match found {
            Some(item) => item.slot = slot,
            None if T::PRIORITIZED => self.by_priority.change_slot(is_it, slot),
            None => {}
        }
    }
}
