//! Messages to the members of a section. The sender groups the members by the PE that it believes them on. The message
//! travels along a tree of these PEs, once to each, and from there to the members that have left in the meantime.
//!
//! A message that passes other PEs may be overtaken, as a broadcast may.

use super::chare::Chare;
use super::port::Port;
use crate::load::array_and_rank;
use crate::location::Route;
use crate::order::{Branch, Multicast, Order};
use crate::pe::{Outbox, PeCx};
use crate::section::Members;
use equipoise_model::table::count as count_of;
use std::collections::BTreeMap;

impl<T: Chare> Port<T> {
    /// Sends a message to the members of a section.
    pub(super) fn send_to_section(&self, pe: &PeCx, members: &Members, msg: T::Msg) {
        let arrays = members.by_array().collect();
        each_of::<T, _>(arrays, msg, |(array, keys), msg| self.send_to_members(pe, array, keys, msg));
    }

    /// Sends a message to the members of a section that are elements of one array.
    pub(super) fn send_to_members(&self, pe: &PeCx, array: u16, keys: &[u64], msg: T::Msg) {
        match Self::of(pe, array) {
            Some(port) => match port.misfit(keys) {
                Some(sentence) => pe.fail(sentence),
                None => port.multicast(&pe.out, keys, msg),
            },
            None => pe.fail(format!(
                "a section has elements of array {} of the setup, which is not an array of {} in this run; use a section only in the \
                 run that made it",
                u64::from(array) + 1,
                T::NAME
            )),
        }
    }

    /// Sends a message to the elements of this array with these keys.
    fn multicast(&self, out: &Outbox, keys: &[u64], msg: T::Msg) {
        let mut here = Vec::new();
        let mut away = BTreeMap::<u32, Vec<(u32, u32)>>::new();
        for rank in keys.iter().map(|&key| array_and_rank(key).1) {
            match self.find(out, rank) {
                Route::There(known) => away.entry(known.pe).or_default().push((rank, known.epoch)),
                Route::Here(_) | Route::Hold => here.push(rank),
            }
        }
        self.forward(out, out.rank, away.into_iter().collect(), &msg);
        each_of::<T, _>(here, msg, |rank, msg| self.send_any(out, rank, msg));
    }

    /// Sends a message of PE `origin` on along the tree of the PEs of its receivers.
    pub(crate) fn forward(&self, out: &Outbox, origin: u32, branches: Vec<Branch>, msg: &T::Msg) {
        for branches in out.tree.parts(out.rank, branches) {
            let Some(&(to, _)) = branches.first() else { continue };
            out.sent_away();
            self.post(out, to, Order::Multicast(Box::new((Multicast { origin, branches }, T::copy(msg)))));
        }
    }

    /// The sentence that an array of this run has not all members of a section that it should have, if so.
    pub(super) fn misfit(&self, keys: &[u64]) -> Option<String> {
        let count = self.shared.count;
        let last = keys.last().map(|&key| array_and_rank(key).1).filter(|rank| *rank >= count)?;
        let (name, elements) = (T::NAME, count_of(count, "element"));
        Some(format!(
            "a section has element {last} of {name}, which has {elements} in this run; use a section only in the run that made it"
        ))
    }
}

/// Calls `send` for each receiver with a copy of a message, for the last one with the message itself.
pub(crate) fn each_of<T: Chare, R>(receivers: Vec<R>, msg: T::Msg, mut send: impl FnMut(R, T::Msg)) {
    let mut receivers = receivers;
    let Some(last) = receivers.pop() else { return };
    receivers.into_iter().for_each(|receiver| send(receiver, T::copy(&msg)));
    send(last, msg);
}
