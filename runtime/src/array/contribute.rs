//! The path of a contribution: from the element to its PE's part of the reduction, up the tree of PEs to PE 0, and from
//! there as a message to the target. [`reduction`](crate::reduction) combines the values.
//!
//! Elements migrate, so a PE cannot know how many parts its children will send. It forwards the parts that it has when no packet
//! waits for it; parts that arrive together go up together.

use super::chare::Chare;
use super::port::Port;
use crate::load::{array_and_rank, element_key};
use crate::order::{Order, Partial, Receivers, Share};
use crate::pe::{AnyPort, Contributor, Delivery, Offer, PeCx, post_delivery};
use crate::pulse::Activity;
use crate::reduction::{Pieces, Tally};
use crate::section::{SectionId, Source};
use crate::waiting::{OpenReduction, disagreement};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A contribution of the running element.
pub(super) struct Offered<M> {
    pub(super) to: Receivers,
    pub(super) prefixes: bool,
    pub(super) msg: M,
}

/// Reductions in progress with one array as target, on one PE.
pub(crate) struct Contributions<M> {
    /// Contributions of the running element that are not yet in `partials`: the first one of the delivery, and all
    /// others.
    first: RefCell<Option<Offered<M>>>,
    others: RefCell<VecDeque<Offered<M>>>,
    /// Contributions of elements of this PE.
    partials: RefCell<Vec<Partial<M>>>,
    /// Contributions from this PE and from the PEs below in the tree: on PE 0 all, on others those not yet sent up.
    totals: RefCell<Vec<Partial<M>>>,
}

impl<M> Default for Contributions<M> {
    fn default() -> Self {
        Contributions {
            first: RefCell::default(),
            others: RefCell::default(),
            partials: RefCell::default(),
            totals: RefCell::default(),
        }
    }
}

impl<T: Chare> Port<T> {
    /// Stores a contribution of the running element to its array until its manager adds it to `partials`. Its parts are written to their
    /// place: written together elsewhere and then copied as a whole, they would cost the processor more than the rest.
    #[inline(never)]
    pub(super) fn offer(&self, delivery: &Delivery, to: &Receivers, prefixes: bool, msg: T::Msg) {
        let mut first = self.contributions.first.borrow_mut();
        if first.is_none() && delivery.offers.add(self.id) {
            *first = Some(Offered { to: to.clone(), prefixes, msg });
            return delivery.later(post_delivery::CONTRIBUTED);
        }
        drop(first);
        self.offer_other(delivery, None, Offered { to: to.clone(), prefixes, msg });
    }

    /// Stores a contribution that is not the first of its delivery, or is one to a section.
    #[cold]
    #[inline(never)]
    pub(super) fn offer_other(
        &self,
        delivery: &Delivery,
        section: Option<(SectionId, u32)>,
        offered: Offered<T::Msg>,
    ) {
        delivery.offers.add_other(Offer { target: self.id, section });
        self.contributions.others.borrow_mut().push_back(offered);
        delivery.later(post_delivery::CONTRIBUTED);
    }

    /// Adds a contribution of the last executed element to `partials`. Nothing is moved but the message.
    #[inline]
    pub(super) fn add_contribution(&self, pe: &PeCx, by: Contributor) {
        let mut first = self.contributions.first.borrow_mut();
        if first.is_none() {
            *first = self.contributions.others.borrow_mut().pop_front();
        }
        let Some(offered) = &*first else { return };
        let entry = T::entry(&offered.msg) as u16;
        let mut partials = self.contributions.partials.borrow_mut();
        let at = match partials.last() {
            // Usually it belongs to the reduction to which the one before belongs.
            Some(last) if by.belongs_to(last.of.source, last.of.round) => partials.len() - 1,
            _ => Self::position(&mut partials, &by, entry, offered),
        };
        let mine = &mut partials[at];
        let agrees = mine.of.agrees(entry, &offered.to, offered.prefixes);
        if !agrees && let Some(offered) = first.take() {
            return self.disagrees(pe, mine, &by, offered);
        }
        let Some(Offered { msg, prefixes, .. }) = first.take() else { return };
        drop(first);
        if prefixes {
            mine.pieces.append(Pieces::of(by.rank(), msg));
        } else {
            mine.pieces.add(by.rank(), msg, T::combine);
        }
        mine.of.tally.add(by.tally);
        mine.of.by = mine.of.by.min(by.key);
        if by.section.is_some() {
            // Its other members here are not known, so the transport decides when this part leaves.
            return pe.collectives.forwards.set(true);
        }
        if mine.of.tally.count == by.here {
            let partial = partials.swap_remove(at);
            drop(partials);
            self.add_partial(pe, partial);
            self.send_up(pe);
        }
    }

    /// The position of the part of a reduction on this PE to which a contribution belongs. It is added if there is none.
    #[inline(never)]
    fn position(
        partials: &mut Vec<Partial<T::Msg>>,
        by: &Contributor,
        entry: u16,
        offered: &Offered<T::Msg>,
    ) -> usize {
        let known = partials.iter().position(|part| by.belongs_to(part.of.source, part.of.round));
        known.unwrap_or_else(|| {
            partials.push(Self::part(by, entry, offered));
            partials.len() - 1
        })
    }

    /// A part of the reduction to which a contribution belongs.
    fn part(by: &Contributor, entry: u16, offered: &Offered<T::Msg>) -> Partial<T::Msg> {
        let &Contributor { key, round, .. } = by;
        let (to, prefixes) = (offered.to.clone(), offered.prefixes);
        let of = Share { source: by.source(), round, entry, to, prefixes, by: key, tally: Tally::default() };
        Partial { of, pieces: Pieces::default() }
    }

    /// Ends the run because the contribution goes to other receivers than those before it.
    #[cold]
    #[inline(never)]
    fn disagrees(&self, pe: &PeCx, mine: &Partial<T::Msg>, by: &Contributor, offered: Offered<T::Msg>) {
        let entry = T::entry(&offered.msg) as u16;
        let mut other = Self::part(by, entry, &offered);
        other.pieces = Pieces::of(by.rank(), offered.msg);
        pe.fail(disagreement(&self.open(pe, mine), &self.open(pe, &other)));
    }

    /// Sends everything collected to the parent in the tree.
    fn send_up(&self, pe: &PeCx) {
        if pe.out.rank == 0 {
            return;
        }
        let next = || self.contributions.totals.borrow_mut().pop();
        while let Some(mut total) = next() {
            if !total.of.prefixes {
                self.reduces(&pe.delivery, total.of.entry, || total.pieces.merge(T::combine));
            }
            self.post(&pe.out, pe.out.tree.parent(pe.out.rank), Order::Partial(Box::new(total)));
        }
    }

    /// Adds a part of a reduction, from this PE or from a child in the tree.
    fn add_partial(&self, pe: &PeCx, partial: Partial<T::Msg>) {
        let Share { source, round, tally, .. } = partial.of;
        let mut is_first = false;
        {
            let mut totals = self.contributions.totals.borrow_mut();
            match totals.iter_mut().find(|total| total.of.is_of(source, round)) {
                Some(total) => {
                    if !total.of.agrees(partial.of.entry, &partial.of.to, partial.of.prefixes) {
                        return pe.fail(disagreement(&self.open(pe, total), &self.open(pe, &partial)));
                    }
                    total.of.tally.add(tally);
                    total.of.by = total.of.by.min(partial.of.by);
                    total.pieces.append(partial.pieces);
                }
                None => {
                    is_first = true;
                    totals.push(partial);
                }
            }
        }
        if pe.out.rank != 0 {
            return;
        }
        match source {
            Source::Array(array) => {
                pe.collectives.ledgers.borrow_mut()[usize::from(array)].reductions.note(round, tally);
                pe.complete_reductions(array);
            }
            Source::Section(section) => self.complete_section(pe, section, round, is_first),
        }
    }

    /// On PE 0: completes a reduction over a section with this array as target, if all members have contributed.
    fn complete_section(&self, pe: &PeCx, section: SectionId, round: u32, is_first: bool) {
        let source = Source::Section(section);
        let total = {
            let mut totals = self.contributions.totals.borrow_mut();
            let found = totals.iter().position(|total| total.of.is_of(source, round));
            let Some(at) = found else { return };
            let is_elsewhere = |(id, port): (usize, &Rc<dyn AnyPort>)| {
                id != usize::from(self.id) && port.is_reducing(source, round)
            };
            if is_first && pe.ports.iter().enumerate().any(is_elsewhere) {
                let mine = self.open(pe, &totals[at]);
                drop(totals);
                return self.fail_elsewhere(pe, &mine);
            }
            if totals[at].of.tally.count < section.len {
                return;
            }
            totals.swap_remove(at)
        };
        if !total.pieces.covers(section.len) {
            return pe.fail(format!(
                "an element contributed twice to reduction {} of a section of {}: it was inserted where another member ended before \
                 this reduction was complete; insert it after the result has arrived",
                u64::from(round) + 1,
                pe.name(section.array)
            ));
        }
        self.finish_reduction(pe, total);
    }

    /// Ends the run because elements contribute to this array and to another one in the same reduction.
    fn fail_elsewhere(&self, pe: &PeCx, mine: &OpenReduction) {
        let others = pe.ports.iter().flat_map(|port| port.open_reductions(pe));
        let is_other = |other: &OpenReduction| {
            other.to != mine.to && other.source == mine.source && other.round == mine.round
        };
        let other = others.into_iter().find(is_other);
        let other = other.expect("the missing contributions are in the total of another array");
        pe.fail(disagreement(mine, &other));
    }

    /// Sends the result of a reduction.
    fn finish_reduction(&self, pe: &PeCx, total: Partial<T::Msg>) {
        let Partial { of: Share { entry, to, prefixes, .. }, pieces } = total;
        if !prefixes {
            if let Some(msg) = self.reduces(&pe.delivery, entry, || pieces.fold(T::combine)) {
                self.send_to(pe, &to, msg);
            }
            return;
        }
        let mut prefix = None;
        for (rank, msg) in pieces.into_ranks() {
            let next = match prefix {
                Some(before) => self.reduces(&pe.delivery, entry, || T::combine(before, msg)),
                None => msg,
            };
            self.send_prefix(pe, &to, rank, T::copy(&next));
            prefix = Some(next);
        }
    }

    /// Sends a prefix to the element with this rank or position.
    fn send_prefix(&self, pe: &PeCx, to: &Receivers, rank: u32, msg: T::Msg) {
        let Receivers::Section(members) = to else { return self.send_any(&pe.out, rank, msg) };
        if let Some(&key) = members.keys().get(rank as usize) {
            self.send_to_members(pe, array_and_rank(key).0, &[key], msg);
        }
    }

    /// On PE 0: whether a reduction with this array as target is in progress.
    pub(super) fn has_total(&self, source: Source, round: u32) -> bool {
        self.contributions.totals.borrow().iter().any(|total| total.of.is_of(source, round))
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
            let found = totals.iter().position(|total| total.of.is_of(Source::Array(source), round));
            found.map(|at| totals.swap_remove(at))
        };
        let Some(total) = total else { return false };
        if total.of.tally.count != participants {
            self.fail_elsewhere(pe, &self.open(pe, &total));
            // The run is over; another array must not look for this total.
            return true;
        }
        self.finish_reduction(pe, total);
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
    fn reduces<R>(&self, delivery: &Delivery, entry: u16, run: impl FnOnce() -> R) -> R {
        delivery.running.during(Activity::Reducer { array: self.id, entry }, run)
    }

    /// A part of a reduction, for messages to users.
    fn open(&self, pe: &PeCx, partial: &Partial<T::Msg>) -> OpenReduction {
        let entry = T::ENTRIES[usize::from(partial.of.entry)];
        open(pe, &partial.of, (self.id, entry), &|| partial.pieces.runs())
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

/// A part of a reduction to an entry of an array, for messages to users. `runs` are the ranks that contributed.
fn open(
    pe: &PeCx,
    of: &Share,
    (to, entry): (u16, &str),
    runs: &dyn Fn() -> Vec<(u32, u64)>,
) -> OpenReduction {
    let &Share { source, round, by, .. } = of;
    let array_name = pe.name(to);
    let target = match &of.to {
        Receivers::One(rank) => pe.element(element_key(to, *rank)),
        Receivers::All => format!("all elements of {array_name}"),
        Receivers::Section(members) => match members.keys() {
            [] => format!("no element of {array_name}"),
            [one] => pe.element(*one),
            [first, more @ ..] => format!("{} and {} more", pe.element(*first), more.len()),
        },
    };
    let array = if source.array() == to { String::new() } else { format!(" of {array_name}") };
    let prefixes = if of.prefixes { ", as prefixes" } else { "" };
    let (name, done) = match source {
        Source::Array(array) => (pe.name(array).to_owned(), Vec::new()),
        Source::Section(section) => (format!("a section of {}", pe.name(section.array)), runs()),
    };
    OpenReduction {
        source,
        name,
        round,
        entry: format!("`{entry}`{array}"),
        to,
        target: format!("entry `{entry}` of {target}{prefixes}"),
        by: pe.element(by),
        done,
    }
}
