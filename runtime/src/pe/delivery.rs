//! The delivery in progress on a PE: the running element, and the requests of its entry method.

use crate::pulse::Pulse;
use crate::section::SectionId;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// The work after a delivery, one bit each. `LOAD`, `COMM` and `OBSERVED` say what is recorded and stay set between
/// deliveries.
pub(crate) mod post_delivery {
    use crate::options::{Settings, Uncharged};

    pub(crate) const LOAD: u16 = 1;
    pub(crate) const COMM: u16 = 1 << 1;
    pub(crate) const CONTRIBUTED: u16 = 1 << 2;
    pub(crate) const CREATED: u16 = 1 << 3;
    pub(crate) const SYNC: u16 = 1 << 4;
    pub(crate) const MIGRATES: u16 = 1 << 5;
    pub(crate) const ENDS: u16 = 1 << 6;
    pub(crate) const PIN: u16 = 1 << 7;
    pub(crate) const CHARGED: u16 = 1 << 8;
    pub(crate) const DECLARED: u16 = 1 << 9;
    pub(crate) const MEASURE: u16 = 1 << 10;
    /// A trace records executions and sends.
    pub(crate) const TRACED: u16 = 1 << 11;
    /// The clock of a simulated PE advances by the measured time of a delivery.
    pub(crate) const TIMED: u16 = 1 << 12;
    /// The order of deliveries is recorded or repeated.
    pub(crate) const ORDERED: u16 = 1 << 13;
    /// The bits of observers, independent of `measure`.
    pub(crate) const OBSERVED: u16 = TRACED | TIMED | ORDERED;
    /// All bits that do not stand for recording.
    pub(crate) const WORK: u16 = !(LOAD | COMM | OBSERVED);

    /// The recording bits of a run.
    pub(crate) fn recording(settings: &Settings) -> u16 {
        let measured = match settings.balances() {
            true if settings.records_communication() => LOAD | COMM,
            true => LOAD,
            false => 0,
        };
        measured | observed(settings)
    }

    /// The bits of observers, independent of `measure`.
    pub(crate) fn observed(settings: &Settings) -> u16 {
        let ordered = if settings.interleaving.is_some() { ORDERED } else { 0 };
        let traced = if settings.is_recorded() { TRACED } else { 0 };
        let Some(simulation) = &settings.simulation else { return ordered | traced };
        let timed = if simulation.uncharged == Uncharged::Measured { TIMED } else { 0 };
        ordered | timed | traced
    }
}

/// The delivery in progress.
pub(crate) struct Delivery {
    /// The work after the delivery, as bits.
    pub(crate) post_delivery: Cell<u16>,
    /// The bits to which `post_delivery` is reset.
    pub(crate) recording: Cell<u16>,
    /// The running element, or other user code.
    pub(crate) running: Pulse,
    /// The arrays to which the element contributes.
    pub(crate) offers: Offers,
    /// The PE to which the element migrates.
    pub(crate) move_to: Cell<u32>,
    /// The new value of `pinned`.
    pub(crate) pin: Cell<bool>,
    /// Charged seconds of work.
    pub(crate) charged: Cell<f64>,
    /// The load set with `set_load`, in seconds.
    pub(crate) declared: Cell<f64>,
}

impl Delivery {
    /// No delivery; `recording` has the recording bits.
    pub(crate) fn new(recording: u16, running: Pulse) -> Self {
        Delivery {
            post_delivery: Cell::new(recording),
            recording: Cell::new(recording),
            running,
            offers: Offers::default(),
            move_to: Cell::new(0),
            pin: Cell::new(false),
            charged: Cell::new(0.0),
            declared: Cell::new(0.0),
        }
    }

    /// Requests work after the delivery.
    #[inline(always)]
    pub(crate) fn later(&self, bits: u16) {
        self.post_delivery.set(self.post_delivery.get() | bits);
    }

    /// Whether one of these bits is set.
    #[inline(always)]
    pub(crate) fn has(&self, bits: u16) -> bool {
        self.post_delivery.get() & bits != 0
    }
}

/// A contribution of the running element.
pub(crate) struct Offer {
    /// The array that receives the result.
    pub(crate) target: u16,
    /// The section that contributes, and the position of the element there; none for the array of the element.
    pub(crate) section: Option<(SectionId, u32)>,
}

/// The arrays to which the running element contributes, in order.
#[derive(Default)]
pub(crate) struct Offers {
    /// The first array plus 1 if its own array contributes, or [`NONE`](Self::NONE); [`MORE`](Self::MORE) is set if there are others.
    first: Cell<u32>,
    others: RefCell<VecDeque<Offer>>,
}

impl Offers {
    const NONE: u32 = 0;
    const MORE: u32 = 1 << 31;

    /// Adds the array that receives a contribution of the element's own array; returns whether the contribution is the first of the
    /// delivery.
    #[inline(always)]
    pub(crate) fn add(&self, target: u16) -> bool {
        let is_first = self.first.get() == Self::NONE;
        if is_first {
            self.first.set(u32::from(target) + 1);
        }
        is_first
    }

    /// Adds a contribution that is not the first, or is one of a section.
    pub(crate) fn add_other(&self, offer: Offer) {
        self.first.set(self.first.get() | Self::MORE);
        self.others.borrow_mut().push_back(offer);
    }

    /// The number of contributions to reductions of the element's own array.
    pub(crate) fn of_array(&self) -> usize {
        let of_others = self.others.borrow().iter().filter(|offer| offer.section.is_none()).count();
        usize::from(self.first.get() & !Self::MORE != Self::NONE) + of_others
    }

    /// Takes the array of the first contribution, if the element's own array contributes.
    #[inline(always)]
    pub(crate) fn take_first(&self) -> Option<u16> {
        let first = self.first.get();
        self.first.set(first & Self::MORE);
        (first & !Self::MORE).checked_sub(1).map(|target| target as u16)
    }

    /// Whether there are other contributions than the first.
    #[inline(always)]
    pub(crate) fn has_others(&self) -> bool {
        self.first.get() & Self::MORE != 0
    }

    /// Takes the next contribution that is not the first.
    pub(crate) fn next_other(&self) -> Option<Offer> {
        let mut others = self.others.borrow_mut();
        let next = others.pop_front();
        if others.is_empty() {
            self.first.set(Self::NONE);
        }
        next
    }
}
