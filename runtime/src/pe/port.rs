//! The arrays of a run, independent of their chare types.

use super::{Contributor, Outbox, PeCx};
use crate::checkpoint::ArrayHead;
use crate::order::Receivers;
use crate::section::Source;
use crate::waiting::OpenReduction;
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

/// The properties of an array, independent of its chare type.
#[derive(Clone, Debug)]
pub(crate) struct ArrayInfo {
    pub(crate) name: &'static str,
    pub(crate) sync: bool,
    pub(crate) expedited: bool,
    pub(crate) prioritized: bool,
    pub(crate) count: u32,
    /// Whether it has an element at every index from the begin.
    pub(crate) has_elements: bool,
    /// The array to which it is bound, which leads.
    pub(crate) bound_to: Option<u16>,
    /// The arrays that are bound to it.
    pub(crate) followers: Vec<u16>,
}

/// The elements of an array on a PE, as elements of other arrays there reach them. While the array executes, they are
/// borrowed.
pub(crate) type Neighbors = Rc<RefCell<dyn AnyElements>>;

/// The interface of the elements of an array on a PE to those of other arrays there.
pub(crate) trait AnyElements {
    /// Calls `visit` with an element, if it is on this PE.
    fn visit(&mut self, pe: &PeCx, rank: u32, visit: &mut dyn FnMut(&mut dyn Any));
    /// Where an element is that is bound to the calling array's element of the same rank.
    fn presence(&self, pe: &PeCx, rank: u32) -> Presence;
    /// Sends an element to PE `to`, because the element to which it is bound migrates there.
    fn follow(&mut self, pe: &PeCx, rank: u32, to: u32);
}

/// Where a bound element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Not on this PE, or without a broadcast that it missed.
    Absent,
    /// On this PE, where it waits for the elements with which it is bound.
    Landed,
    /// In a slot of this PE.
    Placed,
}

/// The interface of a port, independent of its chare type.
pub(crate) trait AnyPort: Any {
    /// The last executed element contributed to this array.
    fn contributed(&self, pe: &PeCx, by: Contributor);
    /// Sends the argument of an entry to these elements, or contributes it. `argument` is an `Option` of the argument.
    ///
    /// # Errors
    /// Why the entry does not receive it.
    fn call_back(
        &self,
        pe: &PeCx,
        entry: u16,
        to: &Receivers,
        argument: &mut dyn Any,
        contributes: bool,
    ) -> Result<(), String>;
    /// On PE 0: completes the oldest reduction of array `source` if its target is this array; returns whether it is.
    fn complete(&self, pe: &PeCx, source: u16) -> bool;
    /// On PE 0: whether a reduction with this array as target is in progress.
    fn is_reducing(&self, source: Source, round: u32) -> bool;
    /// Sends the contributions that this PE has collected towards PE 0.
    fn flush(&self, pe: &PeCx);
    /// Sends the oldest message that waits for quiescence.
    fn found_quiet(&self, pe: &PeCx);
    /// Sends the message of this number, which waited for a time.
    fn is_due(&self, pe: &PeCx, number: u64);
    /// On PE 0: the number of the next broadcast.
    fn next_broadcast(&self) -> u32;
    /// The array as checkpoints describe it.
    fn head(&self, bound_to: Option<u16>) -> ArrayHead;
    /// A bound element with this rank has landed on this PE, or is placed.
    fn meet(&self, out: &Outbox, rank: u32);
    /// The incomplete reductions on this PE with this array as target.
    fn open_reductions(&self, pe: &PeCx) -> Vec<OpenReduction>;
}
