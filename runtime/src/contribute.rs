//! The way of a contribution: from the element to its PE's part of the reduction, to PE 0, and from
//! there as a message to the target. [`reduction`](crate::reduction) has the arithmetic.

use crate::array::{AnyPort, Port};
use crate::chare::Chare;
use crate::context::PeCx;
use crate::order::{Order, Partial, Receivers};
use crate::reduction::Tally;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Reductions under way whose target is one array, on one PE.
pub(crate) struct Contributions<M> {
    /// What the element that runs offers, until its manager says on whose behalf: the first
    /// contribution of a delivery, and any others.
    first: Cell<Option<(Receivers, M)>>,
    others: RefCell<VecDeque<(Receivers, M)>>,
    /// What elements of this PE contributed.
    partials: RefCell<Vec<Partial<M>>>,
    /// On PE 0: what came from all PEs.
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

/// The arrays the element that runs contributes to, in order.
#[derive(Default)]
pub(crate) struct Offers {
    /// The first, or [`NONE`](Self::NONE); [`MORE`](Self::MORE) is set if there are others.
    first: Cell<u32>,
    others: RefCell<VecDeque<u16>>,
}

impl Offers {
    const NONE: u32 = 0;
    const MORE: u32 = 1 << 31;

    /// Takes the next one.
    #[inline]
    pub(crate) fn next(&self) -> Option<u16> {
        let first = self.first.get();
        if first == Self::NONE {
            return None;
        }
        if first == Self::MORE {
            let mut others = self.others.borrow_mut();
            let next = others.pop_front();
            if others.is_empty() {
                self.first.set(Self::NONE);
            }
            return next;
        }
        self.first.set(first & Self::MORE);
        Some((first & !Self::MORE) as u16 - 1)
    }
}

impl PeCx {
    /// Keeps what the element that runs contributes until its manager says on whose behalf.
    #[inline]
    pub(crate) fn offer<T: Chare>(&self, port: &Port<T>, to: Receivers, msg: T::Msg) {
        let first = self.contributed.first.get();
        if first == Offers::NONE {
            self.contributed.first.set(u32::from(port.id) + 1);
            port.contributions.first.set(Some((to, msg)));
        } else {
            self.contributed.first.set(first | Offers::MORE);
            self.contributed.others.borrow_mut().push_back(port.id);
            port.contributions.others.borrow_mut().push_back((to, msg));
        }
    }
}

const OTHERS: &str = "some contribute to another entry or other receivers than the rest";

/// Says that elements contribute to different things.
#[cold]
fn mixed(pe: &PeCx, source: u16, round: u32, how: &str) -> String {
    let name = pe.name(source);
    format!("the elements of {name} do not agree on their reduction number {}: {how}", round + 1)
}

/// The element that contributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contributor {
    /// Its array.
    pub source: u16,
    /// Its rank there.
    pub rank: u32,
    /// Which reduction of its array this is.
    pub round: u32,
    /// What it says of elements it created.
    pub tally: Tally,
    /// How many elements of its array its PE has.
    pub here: u32,
}

impl<T: Chare> Port<T> {
    /// Files a contribution of the element that ran.
    #[inline]
    pub(crate) fn file(&self, pe: &PeCx, by: Contributor) {
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
            panic!("{}", mixed(pe, by.source, by.round, OTHERS));
        }
        partial.pieces.add(by.rank, msg, T::combine);
        partial.tally.add(by.tally);
        if partial.tally.count == by.here {
            let partial = partials.swap_remove(at);
            drop(partials);
            self.forward(pe, partial);
        }
    }

    fn forward(&self, pe: &PeCx, mut partial: Partial<T::Msg>) {
        partial.pieces.settle(T::combine);
        if pe.rank == 0 {
            self.total(pe, partial);
        } else {
            self.post(pe, 0, Order::Partial(Box::new(partial)));
        }
    }

    /// Takes in a part of a reduction on PE 0.
    pub(crate) fn total(&self, pe: &PeCx, partial: Partial<T::Msg>) {
        let (source, round, tally) = (partial.source, partial.round, partial.tally);
        {
            let mut totals = self.contributions.totals.borrow_mut();
            match totals.iter_mut().find(|total| total.source == source && total.round == round) {
                Some(total) => {
                    if total.entry != partial.entry || total.to != partial.to {
                        return pe.fail(mixed(pe, source, round, OTHERS));
                    }
                    total.tally.add(partial.tally);
                    total.pieces.append(partial.pieces);
                }
                None => totals.push(partial),
            }
        }
        pe.rolls.borrow_mut()[usize::from(source)].reductions.note(round, tally);
        pe.complete_reductions(source);
    }
}

impl<T: Chare> AnyPort for Port<T> {
    fn contributed(&self, pe: &PeCx, by: Contributor) {
        self.file(pe, by);
    }

    fn complete(&self, pe: &PeCx, source: u16) -> bool {
        let (round, everybody) = {
            let rolls = pe.rolls.borrow();
            let ledger = &rolls[usize::from(source)].reductions;
            (ledger.next(), ledger.arrived())
        };
        let total = {
            let mut totals = self.contributions.totals.borrow_mut();
            let found = totals.iter().position(|total| total.source == source && total.round == round);
            found.map(|at| totals.swap_remove(at))
        };
        let Some(total) = total else { return false };
        if total.tally.count != everybody {
            let few = format!("only {} of {everybody} contribute to {}", total.tally.count, T::NAME);
            pe.fail(mixed(pe, source, round, &few));
            return false;
        }
        if let Some(msg) = total.pieces.fold(T::combine) {
            self.send_to(pe, &total.to, msg);
        }
        true
    }

    fn flush(&self, pe: &PeCx) {
        if self.contributions.partials.borrow().is_empty() {
            return;
        }
        for partial in self.contributions.partials.take() {
            self.forward(pe, partial);
        }
    }

    fn waiting(&self) -> Vec<String> {
        let totals = self.contributions.totals.borrow();
        let told = totals.iter().map(|total| {
            let entry = T::ENTRIES[usize::from(total.entry)];
            format!("a reduction to `{entry}` of {} has {} contributions", T::NAME, total.tally.count)
        });
        told.collect()
    }
}

impl PeCx {
    /// Finishes, on PE 0, the reductions of an array that have everything they wait for, in order.
    pub(crate) fn complete_reductions(&self, source: u16) {
        loop {
            {
                let rolls = self.rolls.borrow();
                let ledger = &rolls[usize::from(source)].reductions;
                if ledger.arrived() == 0 || !ledger.complete() {
                    return;
                }
            }
            if !self.ports.iter().any(|port| port.complete(self, source)) {
                return;
            }
            self.rolls.borrow_mut()[usize::from(source)].reductions.advance();
        }
    }
}
