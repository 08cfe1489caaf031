//! The path of a contribution: from the element to its PE's part of the reduction, up the tree of PEs to PE 0, and from
//! there as a message to the target. [`reduction`](crate::reduction) combines the values.
//!
//! Elements migrate, so a PE cannot know how many parts its children will send. It forwards the parts that it has when no packet
//! waits for it; parts that arrive together go up together.

use super::chare::Chare;
use super::port::Port;
use crate::order::{Order, Partial, Receivers};
use crate::pe::{Contributor, Offers, PeCx};
use crate::pulse::Activity;
use crate::reduction::Pieces;
use crate::waiting::{OpenReduction, disagreement};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Reductions in progress with one array as target, on one PE.
pub(crate) struct Contributions<M> {
    /// Contributions of the running element that are not yet in `partials`: the first one of the delivery, and all
    /// others.
    first: Cell<Option<(Receivers, M)>>,
    others: RefCell<VecDeque<(Receivers, M)>>,
    /// Contributions of elements of this PE.
    partials: RefCell<Vec<Partial<M>>>,
    /// Contributions from this PE and from the PEs below in the tree: on PE 0 all, on others those not yet sent up.
    totals: RefCell<Vec<Partial<M>>>,
}

impl<M> Default for Contributions<M> {
    fn default() -> Self {
        Contributions {
            first: Cell::new(None),
            others: RefCell::default(),
            partials: RefCell::default(),
            totals: RefCell::default(),
        }
    }
}

impl<T: Chare> Port<T> {
    /// Stores a contribution of the running element until its manager adds it to `partials`.
    #[inline]
    pub(super) fn offer(&self, offers: &Offers, to: Receivers, msg: T::Msg) {
        if offers.add(self.id) {
            self.contributions.first.set(Some((to, msg)));
        } else {
            self.contributions.others.borrow_mut().push_back((to, msg));
        }
    }

    /// Adds a contribution of the last executed element to `partials`.
    #[inline]
    pub(crate) fn add_contribution(&self, pe: &PeCx, by: Contributor) {
        let offered = self.contributions.first.take();
        let offered = offered.or_else(|| self.contributions.others.borrow_mut().pop_front());
        let Some((to, msg)) = offered else { return };
        let entry = T::entry(&msg) as u16;
        let mut partials = self.contributions.partials.borrow_mut();
        let known = partials.iter().position(|p| p.source == by.source && p.round == by.round);
        let at = known.unwrap_or_else(|| {
            partials.push(Partial::new(by.source, by.round, entry, to.clone()));
            partials.len() - 1
        });
        let partial = &mut partials[at];
        if partial.entry != entry || partial.to != to {
            let other = Partial { to, entry, pieces: Pieces::of(by.rank, msg), ..*partial };
            panic!("{}", disagreement(&self.open(pe, partial), &self.open(pe, &other)));
        }
        partial.pieces.add(by.rank, msg, T::combine);
        partial.tally.add(by.tally);
        if partial.tally.count == by.here {
            let partial = partials.swap_remove(at);
            drop(partials);
            self.add_partial(pe, partial);
            self.send_up(pe);
        }
    }

    /// Sends everything collected to the parent in the tree.
    fn send_up(&self, pe: &PeCx) {
        if pe.out.rank == 0 {
            return;
        }
        let next = || self.contributions.totals.borrow_mut().pop();
        while let Some(mut total) = next() {
            self.reduces(pe, total.entry, || total.pieces.merge(T::combine));
            self.post(&pe.out, pe.out.tree.parent(pe.out.rank), Order::Partial(Box::new(total)));
        }
    }

    /// Adds a part of a reduction, from this PE or from a child in the tree.
    fn add_partial(&self, pe: &PeCx, partial: Partial<T::Msg>) {
        let (source, round, tally) = (partial.source, partial.round, partial.tally);
        {
            let mut totals = self.contributions.totals.borrow_mut();
            match totals.iter_mut().find(|total| total.source == source && total.round == round) {
                Some(total) => {
                    if total.entry != partial.entry || total.to != partial.to {
                        return pe.fail(disagreement(&self.open(pe, total), &self.open(pe, &partial)));
                    }
                    total.tally.add(partial.tally);
                    total.pieces.append(partial.pieces);
                }
                None => totals.push(partial),
            }
        }
        if pe.out.rank == 0 {
            pe.collectives.ledgers.borrow_mut()[usize::from(source)].reductions.note(round, tally);
            pe.complete_reductions(source);
        }
    }

    /// Receives a part of a reduction from a child in the tree.
    pub(crate) fn receive_partial(&self, pe: &PeCx, partial: Partial<T::Msg>) {
        self.add_partial(pe, partial);
        pe.collectives.forwards.set(pe.out.rank != 0);
    }

    /// On PE 0: completes the oldest reduction of array `source` if its target is this array; returns whether it is.
    pub(super) fn complete_reductions(&self, pe: &PeCx, source: u16) -> bool {
        let (round, participants) = {
            let ledgers = pe.collectives.ledgers.borrow();
            let ledger = &ledgers[usize::from(source)].reductions;
            (ledger.next(), ledger.arrived())
        };
        let total = {
            let mut totals = self.contributions.totals.borrow_mut();
            let found = totals.iter().position(|total| total.source == source && total.round == round);
            found.map(|at| totals.swap_remove(at))
        };
        let Some(total) = total else { return false };
        if total.tally.count != participants {
            let mine = self.open(pe, &total);
            let others = pe.ports.iter().flat_map(|port| port.open_reductions(pe));
            let other = others.into_iter().find(|other| other.source == source && other.round == round);
            let other = other.expect("the missing contributions are in the total of another array");
            pe.fail(disagreement(&mine, &other));
            // The run is over; another array must not look for this total.
            return true;
        }
        if let Some(msg) = self.reduces(pe, total.entry, || total.pieces.fold(T::combine)) {
            self.send_to(&pe.out, &total.to, msg);
        }
        true
    }

    /// Sends the contributions that this PE has collected towards PE 0.
    pub(super) fn flush_contributions(&self, pe: &PeCx) {
        let partials = self.contributions.partials.take();
        for partial in partials {
            self.add_partial(pe, partial);
        }
        self.send_up(pe);
    }

    /// Runs the reducer of an entry.
    fn reduces<R>(&self, pe: &PeCx, entry: u16, run: impl FnOnce() -> R) -> R {
        pe.delivery.running.during(Activity::Reducer { array: self.id, entry }, run)
    }

    /// A part of a reduction, for messages to users.
    fn open(&self, pe: &PeCx, partial: &Partial<T::Msg>) -> OpenReduction {
        let &Partial { source, round, .. } = partial;
        let entry = T::ENTRIES[usize::from(partial.entry)];
        let target = match &partial.to {
            Receivers::One(rank) => self.name(*rank),
            Receivers::All => format!("all elements of {}", T::NAME),
            Receivers::Some(ranks) => match &**ranks {
                [] => format!("no element of {}", T::NAME),
                [first, more @ ..] => format!("{} and {} more", self.name(*first), more.len()),
            },
        };
        let array = if source == self.id { String::new() } else { format!(" of {}", T::NAME) };
        OpenReduction {
            source,
            name: pe.name(source).to_owned(),
            round,
            entry: format!("`{entry}`{array}"),
            to: self.id,
            target: format!("entry `{entry}` of {target}"),
            by: partial.pieces.first().map_or("?".into(), |rank| pe.out.node.pulses.element(source, rank)),
        }
    }

    /// Calls `f` with the unfinished reductions on PE 0; there are none on other PEs, if nothing is in flight.
    pub(crate) fn with_totals<R>(&self, f: impl FnOnce(&[Partial<T::Msg>]) -> R) -> R {
        f(&self.contributions.totals.borrow())
    }

    /// Takes over unfinished reductions of a saved run, on PE 0.
    pub(crate) fn restore_totals(&self, totals: Vec<Partial<T::Msg>>) {
        self.contributions.totals.borrow_mut().extend(totals);
    }

    /// The incomplete reductions on this PE with this array as target.
    pub(super) fn incomplete_reductions(&self, pe: &PeCx) -> Vec<OpenReduction> {
        let (partials, totals) = (self.contributions.partials.borrow(), self.contributions.totals.borrow());
        partials.iter().chain(&*totals).map(|partial| self.open(pe, partial)).collect()
    }
}
