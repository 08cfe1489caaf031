//! The location of the elements of an array: the table of places that the PEs of a process share, or a
//! [`Directory`](crate::location::Directory) per PE where PEs share no memory or the array is sparse.

use super::chare::Chare;
use super::port::Port;
use crate::location::{self, Known, Route, is_taken, place};
use crate::pe::Outbox;
use std::sync::atomic::Ordering::Relaxed;

impl<T: Chare> Port<T> {
    /// The home of an element: the PE where it is (or would be) created.
    #[inline]
    pub(crate) fn home(&self, out: &Outbox, rank: u32) -> u32 {
        self.shared.placement.pe(rank, self.shared.count, out.pes)
    }

    /// The next hop of a message for an element.
    #[inline]
    pub(crate) fn find(&self, out: &Outbox, rank: u32) -> Route {
        if let Some(directory) = &self.directory {
            return directory.borrow().find(rank, || self.home(out, rank));
        }
        let at = self.shared.places[rank as usize].load(Relaxed);
        match location::pe_of(at) {
            pe if pe != out.rank => Route::There(Known { pe, epoch: 0, gone: false }),
            _ if is_taken(at as u32) => Route::Here(at as u32),
            _ => Route::Hold,
        }
    }

    /// Whether the element is on this PE.
    pub(crate) fn holds(&self, out: &Outbox, rank: u32) -> bool {
        matches!(self.find(out, rank), Route::Here(_))
    }

    /// The epoch with which an element can be created here, its home, if its index is free.
    pub(crate) fn vacant(&self, rank: u32) -> Option<u32> {
        match &self.directory {
            Some(directory) => directory.borrow().vacant(rank),
            None => {
                let slot = self.shared.places[rank as usize].load(Relaxed) as u32;
                (slot == location::NO_ELEMENT).then_some(0)
            }
        }
    }

    /// Registers that an element is in this slot of this PE.
    pub(crate) fn register_location(&self, out: &Outbox, rank: u32, slot: u32, epoch: u32) {
        match &self.directory {
            None => self.shared.places[rank as usize].store(place(out.rank, slot), Relaxed),
            Some(directory) => directory.borrow_mut().arrived(rank, slot, epoch),
        }
    }

    /// Registers that a new element begins on PE `to`; this PE is its home. Returns its epoch on that PE.
    pub(crate) fn begins_on(&self, rank: u32, to: u32, epoch: u32) -> u32 {
        match &self.directory {
            None => {
                self.shared.places[rank as usize].store(place(to, location::IN_TRANSIT), Relaxed);
                0
            }
            Some(directory) => directory.borrow_mut().begins_on(rank, to, epoch),
        }
    }

    /// Registers that an element of this PE moved to another slot.
    pub(crate) fn shift(&self, out: &Outbox, rank: u32, slot: u32) {
        match &self.directory {
            None => self.shared.places[rank as usize].store(place(out.rank, slot), Relaxed),
            Some(directory) => directory.borrow_mut().shifted(rank, slot),
        }
    }

    /// Registers that an element migrates to PE `to`. With `gone`, the element ends, and `to` is its home. Returns the
    /// new epoch.
    pub(crate) fn unregister_location(&self, rank: u32, to: u32, gone: bool) -> u32 {
        match &self.directory {
            None => {
                let slot = if gone { location::NO_ELEMENT } else { location::IN_TRANSIT };
                self.shared.places[rank as usize].store(place(to, slot), Relaxed);
                0
            }
            Some(directory) => directory.borrow_mut().left(rank, to, gone),
        }
    }
}
