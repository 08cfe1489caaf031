//! An element and its runtime state, which migrates with the element.

use crate::broadcast::Numbered;
use crate::codec::State;
use crate::load::Edges;
use crate::reduction::Tally;
use crate::section::SectionId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A message, with the slot of the receiver at the time of sending.
pub(crate) struct Item<M> {
    pub(crate) rank: u32,
    pub(crate) slot: u32,
    pub(crate) msg: M,
}

/// An element and its runtime state; `extra` has the state that few elements need.
#[derive(Serialize, Deserialize)]
#[serde(bound(
    serialize = "C: State, M: Serialize, F: Serialize",
    deserialize = "C: State, M: Deserialize<'de>, F: Deserialize<'de>"
))]
pub(crate) struct Slot<C, M, F> {
    pub(crate) rank: u32,
    /// The number of its next reduction.
    pub(crate) contributions: u32,
    /// The number of its next load-balancing barrier.
    pub(crate) syncs: u32,
    /// The number of its next broadcast.
    pub(crate) broadcasts: u32,
    /// Measured ticks since the last load-balancing step.
    pub(crate) load: u64,
    pub(crate) extra: Option<Box<Extra<M>>>,
    /// Where its flow waits, with the variables of the flow; `()` for a chare without a flow.
    pub(crate) flow: F,
    #[serde(serialize_with = "State::write", deserialize_with = "State::read")]
    pub(crate) chare: C,
}

/// The collectives with participants that the runtime counts; an index into arrays of counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Collective {
    /// Contributions to a reduction.
    Reduction,
    /// Calls of `at_sync`.
    Barrier,
}

/// The numbers of the oldest collectives of an array that are not complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextRounds {
    pub(crate) reduction: u32,
    pub(crate) barrier: u32,
    pub(crate) broadcast: u32,
}

/// Runtime state that few elements need.
#[derive(Serialize, Deserialize)]
pub(crate) struct Extra<M> {
    /// Messages whose guard was false, oldest first.
    pub(crate) pending: VecDeque<M>,
    /// Whether an element of another array has visited it since the guards of `pending` were evaluated.
    #[serde(skip)]
    pub(crate) visited: bool,
    /// Broadcasts that the element missed while migrating and still has to receive, by number.
    pub(crate) missed: Numbered<M>,
    /// The message to deliver after load balancing.
    pub(crate) resume: Option<M>,
    /// Without a load balancer: whether the message of `at_sync` is still to be delivered, on this PE.
    pub(crate) syncing: bool,
    /// Communication recorded at this element.
    pub(crate) edges: Option<Box<Edges>>,
    /// Charged seconds of work, which replace measured time.
    pub(crate) charged: f64,
    /// The load set with `set_load` in this period.
    pub(crate) declared: Option<f64>,
    /// Whether it was pinned by [`Cx::pin`](crate::Cx::pin).
    pub(crate) pinned: bool,
    /// The sums of the births of the elements that it created since its last contribution, and since its last barrier.
    pub(crate) created: [u64; 2],
    /// Of an element that another element created: its birth until it contributes, and until it reaches a barrier; then 0.
    pub(crate) births: [u64; 2],
    /// The sections to which it has contributed, each with the number of its next reduction.
    pub(crate) sections: Vec<(SectionId, u32)>,
}

impl<M> Default for Extra<M> {
    fn default() -> Self {
        Extra {
            pending: VecDeque::new(),
            visited: false,
            missed: Numbered::default(),
            resume: None,
            syncing: false,
            edges: None,
            charged: 0.0,
            declared: None,
            pinned: false,
            created: [0; 2],
            births: [0; 2],
            sections: Vec::new(),
        }
    }
}

impl<M> Extra<M> {
    /// Whether a run can have saved this: loads are seconds, and nothing is in flight.
    fn is_plausible(&self) -> bool {
        let is_seconds = |load: f64| load.is_finite() && load >= 0.0;
        is_seconds(self.charged) && self.declared.is_none_or(is_seconds) && self.missed.is_empty()
    }
}

impl<C, M, F: Default> Slot<C, M, F> {
    /// Whether a run can have saved this. Its load is not saved here, because ticks have another length on another computer.
    pub(crate) fn is_plausible(&self) -> bool {
        self.load == 0 && self.extra.as_ref().is_none_or(|extra| extra.is_plausible())
    }

    /// Whether its next reduction and its next barrier are not over.
    pub(crate) fn is_after(&self, next: NextRounds) -> bool {
        self.contributions >= next.reduction && self.syncs >= next.barrier
    }

    pub(crate) fn new(rank: u32, chare: C) -> Self {
        Slot {
            rank,
            contributions: 0,
            syncs: 0,
            broadcasts: 0,
            load: 0,
            extra: None,
            flow: F::default(),
            chare,
        }
    }

    pub(crate) fn extra(&mut self) -> &mut Extra<M> {
        self.extra.get_or_insert_with(Box::default)
    }

    /// The number of its next collective of a kind.
    pub(crate) fn next_round(&self, kind: Collective) -> u32 {
        match kind {
            Collective::Reduction => self.contributions,
            Collective::Barrier => self.syncs,
        }
    }

    /// The first broadcast that the element has neither received nor carries in `missed`.
    pub(crate) fn missing(&self) -> u32 {
        let carried = self.extra.as_ref().map_or(0, |extra| extra.missed.len() as u32);
        self.broadcasts.wrapping_add(carried)
    }

    /// The tally of this element for its next contribution or barrier.
    pub(crate) fn takes_part(&mut self, kind: Collective) -> Tally {
        let mut tally = Tally { count: 1, ..Tally::default() };
        if let Some(extra) = &mut self.extra {
            let birth = std::mem::take(&mut extra.births[kind as usize]);
            tally.births = std::mem::take(&mut extra.created[kind as usize]).wrapping_sub(birth);
            tally.appeared = u32::from(birth != 0);
        }
        tally
    }

    /// Contributes to a section: returns the number of the reduction.
    pub(crate) fn contributes_to(&mut self, section: SectionId) -> u32 {
        let sections = &mut self.extra().sections;
        let at = sections.iter().position(|(known, _)| *known == section).unwrap_or_else(|| {
            sections.push((section, 0));
            sections.len() - 1
        });
        let next = sections[at].1.wrapping_add(1);
        std::mem::replace(&mut sections[at].1, next)
    }

    /// The tally of this element when it ends.
    pub(crate) fn ends(&mut self, kind: Collective) -> Tally {
        Tally { count: 0, ended: 1, ..self.takes_part(kind) }
    }
}
