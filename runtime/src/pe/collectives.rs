//! The state of a PE for collectives: reductions, load-balancing steps, quiescence.

use super::Reply;
use super::meeting::Meeting;
use crate::checkpoint::CostMeter;
use crate::experience::Experience;
use crate::load::array_and_rank;
use crate::losses::{Loads, Losses};
use crate::options::Listed;
use crate::order::{Calls, Statistics};
use crate::reduction::{Ledger, Tally};
use crate::section::{Members, SectionId, Source};
use equipoise_strategies::predict::History;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// A message or `main` that waits for quiescence.
pub(crate) struct WaitsForQuiescence {
    /// The number of rounds before, for which it does not wait.
    pub(crate) asked: u64,
    pub(crate) waiter: Waiter,
    /// Whether the run is to save itself before the message is sent.
    pub(crate) saves: bool,
}

/// What waits for quiescence.
pub(crate) enum Waiter {
    /// A message, which this array keeps.
    Message(u16),
    /// `main`.
    Main(Reply<()>),
}

/// The state of one PE for collectives.
#[derive(Default)]
pub(crate) struct Collectives {
    /// On PE 0: the participants in the collectives of each array.
    pub(crate) ledgers: RefCell<Vec<Ledgers>>,
    pub(crate) steps: Steps,
    /// The messages that wait for quiescence, and `main`, in the order of the sends.
    pub(crate) quiet: RefCell<Vec<WaitsForQuiescence>>,
    /// Whether this PE holds something from a child in the tree, or contributions to a section. The transport flushes such a PE
    /// when no packet waits for it, even if the PE has work of its own: parts that arrive together go up together, and none waits
    /// for an idle PE.
    pub(crate) forwards: Cell<bool>,
    /// The sections to which elements contributed here last, for messages to users.
    sections: RefCell<VecDeque<Members>>,
}

/// The most sections that a PE remembers.
const SECTIONS: usize = 32;

/// The participants in the collectives of an array, on PE 0.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ledgers {
    pub(crate) reductions: Ledger,
    pub(crate) syncs: Ledger,
}

impl Collectives {
    /// Adds an array of `population` elements.
    pub(crate) fn add_array(&self, population: u32) {
        let ledger = || Ledger::new(population);
        self.ledgers.borrow_mut().push(Ledgers { reductions: ledger(), syncs: ledger() });
    }

    /// Remembers the members of a section to which an element contributes.
    pub(crate) fn remember(&self, members: &Members) {
        let mut sections = self.sections.borrow_mut();
        if sections.iter().any(|known| known == members) {
            return;
        }
        if sections.len() == SECTIONS {
            sections.pop_front();
        }
        sections.push_back(members.clone());
    }

    /// The sections that this PE remembers.
    pub(crate) fn sections(&self) -> Vec<(SectionId, Members)> {
        self.sections.borrow().iter().map(|members| (members.id(), members.clone())).collect()
    }
}

/// The state of a PE for load-balancing steps.
#[derive(Default)]
pub(crate) struct Steps {
    /// The number of sync points that this PE has finished.
    pub(crate) resumed: Cell<u32>,
    /// The arrivals of each step in progress.
    arrivals: RefCell<BTreeMap<u32, Arrivals>>,
    /// The calls of `at_sync` in this subtree that are not yet reported to the parent in the tree.
    pub(crate) unreported: RefCell<Vec<Calls>>,
    /// The statistics of the PEs of this subtree received so far.
    pub(crate) collected: RefCell<Vec<Statistics>>,
    /// On PE 0: the number of the current or next sync point, and its begin in ticks of the wall clock.
    pub(crate) number: Cell<u32>,
    pub(crate) began: Cell<u64>,
    /// On PE 0: the begin of the step that is decided, until PE 0 continues after it. Sync points without a step have none.
    pub(crate) decided: Cell<Option<u64>>,
    /// On PE 0: whether statistics are being collected. During this time the next step may become ready to start, if
    /// elements that called `at_sync` for this step end.
    pub(crate) collecting: Cell<bool>,
    /// On PE 0: the loads of past periods, if loads are predicted; and the number of sync points up to the last step.
    pub(crate) history: RefCell<Option<History>>,
    pub(crate) points_before: Cell<u32>,
    /// On PE 0: what strategies needed and delivered.
    pub(crate) experience: RefCell<Experience>,
    /// A step without a centre.
    pub(crate) meeting: Meeting,
    /// The loads of the PEs of this subtree that are not yet reported to the parent in the tree; on PE 0, of all PEs that have said
    /// theirs.
    pub(crate) loads: Cell<Loads>,
    /// The number of sync points for which this PE has said its load, and that for which PE 0 has asked for it.
    pub(crate) said: Cell<u32>,
    pub(crate) asked: Cell<u32>,
    /// On PE 0: the losses since the last step, which decide when the next one follows.
    pub(crate) losses: RefCell<Losses>,
    /// On PE 0: the sync points that were no steps.
    pub(crate) skipped: Cell<u32>,
    /// On PE 0: the PEs that `--pes-available` listed.
    pub(crate) available: RefCell<Listed>,
    /// On PE 0: the next step waits until the run has saved itself.
    pub(crate) saves: Cell<bool>,
    /// On PE 0: the run has saved itself before the next step.
    pub(crate) has_saved: Cell<bool>,
    /// On PE 0: what checkpoints cost.
    pub(crate) cost: CostMeter,
    /// The bytes of the elements that this PE has read from a checkpoint.
    pub(crate) restored_bytes: Cell<u64>,
}

/// The elements that arrived in a step, and the expected number once known.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    arrived: u32,
    expected: Option<u32>,
}

impl Steps {
    /// On PE 0: the number of load-balancing steps so far.
    pub(crate) fn done(&self) -> u32 {
        self.number.get() - self.skipped.get()
    }

    /// Adds calls of `at_sync` for an array and a round, of elements on this PE or from the PEs below.
    pub(crate) fn add_calls(&self, of: (u16, u32), calls: Tally) {
        let mut unreported = self.unreported.borrow_mut();
        match unreported.iter_mut().find(|(other, _)| *other == of) {
            Some((_, tally)) => tally.add(calls),
            None => unreported.push((of, calls)),
        }
    }

    /// Adds loads of PEs of this subtree.
    pub(crate) fn add_loads(&self, loads: Loads) {
        let mut all = self.loads.take();
        all.add(loads);
        self.loads.set(all);
    }

    /// Counts elements that arrived in a step.
    pub(crate) fn arrived(&self, step: u32, count: u32) {
        self.arrivals.borrow_mut().entry(step).or_default().arrived += count;
    }

    /// Sets the number of elements to expect in a step.
    pub(crate) fn expect(&self, step: u32, count: u32) {
        self.arrivals.borrow_mut().entry(step).or_default().expected = Some(count);
    }

    /// Ends a step on this PE if all expected elements have arrived; returns whether they have.
    pub(crate) fn end(&self, step: u32) -> bool {
        let mut arrivals = self.arrivals.borrow_mut();
        let over = arrivals.get(&step).is_some_and(|arrivals| arrivals.expected == Some(arrivals.arrived));
        if over {
            arrivals.remove(&step);
            self.resumed.set(self.resumed.get().max(step + 1));
        }
        over
    }
}

/// The element that contributes to a reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contributor {
    /// It, as [`element_key`](crate::load::element_key).
    pub key: u64,
    /// The section that it contributes to, and its position there; none for its array.
    pub section: Option<(SectionId, u32)>,
    /// The number of the reduction of the array or section.
    pub round: u32,
    /// Its tally.
    pub tally: Tally,
    /// The number of elements of its array on its PE; 0 for a section, whose members are not counted on PEs.
    pub here: u32,
}

impl Contributor {
    /// The elements that contribute with it.
    pub(crate) fn source(&self) -> Source {
        match self.section {
            Some((section, _)) => Source::Section(section),
            None => Source::Array(array_and_rank(self.key).0),
        }
    }

    /// Its rank in the array, or its position in the section.
    #[inline(always)]
    pub(crate) fn rank(&self) -> u32 {
        self.section.map_or(array_and_rank(self.key).1, |(_, position)| position)
    }

    /// Whether this is its reduction.
    #[inline(always)]
    pub(crate) fn belongs_to(&self, source: Source, round: u32) -> bool {
        let is_source = match (source, &self.section) {
            (Source::Array(array), None) => array == array_and_rank(self.key).0,
            (Source::Section(section), Some((mine, _))) => section == *mine,
            _ => false,
        };
        is_source && round == self.round
    }
}
