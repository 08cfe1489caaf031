//! The order in which the work of all PEs becomes executions of a trace: by begin, and each piece of work after the sends
//! of what caused it, even if clocks say otherwise.

use super::work::{Event, Key, Work};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Where a message was sent: the PE and the number of the piece of work there.
type Place = (usize, usize);

/// The work of all PEs that is not yet taken.
pub(super) struct InOrder<'a> {
    works: &'a [Vec<Work>],
    sent: FxHashMap<Key, Place>,
    /// By PE: the next piece of work.
    next: Vec<usize>,
    /// The begin, the PE and the number of the next piece of work of every PE, and of pieces that are already taken.
    begins: BinaryHeap<Reverse<(u64, usize, usize)>>,
    /// The PEs that are being brought forward, each because the one before waits for it.
    stack: Vec<usize>,
}

impl<'a> InOrder<'a> {
    /// The work of all PEs, from the pieces `next` on.
    pub(super) fn new(works: &'a [Vec<Work>], next: Vec<usize>) -> Self {
        let mut sent = FxHashMap::default();
        for (pe, (works, &from)) in works.iter().zip(&next).enumerate() {
            for (nth, work) in works.iter().enumerate().skip(from) {
                for event in &work.events {
                    if let Event::Sends { key, .. } = event {
                        sent.insert(*key, (pe, nth));
                    }
                }
            }
        }
        let mut order = InOrder { works, sent, next, begins: BinaryHeap::new(), stack: Vec::new() };
        (0..works.len()).for_each(|pe| order.waits_for_turn(pe));
        order
    }

    /// The next piece of work of a PE waits for its turn.
    fn waits_for_turn(&mut self, pe: usize) {
        let nth = self.next[pe];
        self.begins.extend(self.works[pe].get(nth).map(|work| Reverse((work.begin, pe, nth))));
    }

    /// The PE for which the next work of a PE waits.
    fn waits_for(&self, pe: usize) -> Option<usize> {
        let work = self.works[pe].get(self.next[pe])?;
        let kept = work.events.iter().filter_map(|event| match event {
            Event::Keeps { cause, .. } | Event::Renames { cause, .. } => *cause,
            _ => None,
        });
        let senders = work.cause.into_iter().chain(kept).filter_map(|key| self.sent.get(&key));
        let unsent = senders.filter(|&&(from, nth)| from != pe && self.next[from] <= nth);
        unsent.map(|&(from, _)| from).next()
    }
}

impl<'a> Iterator for InOrder<'a> {
    type Item = (usize, &'a Work);

    fn next(&mut self) -> Option<Self::Item> {
        while self.stack.is_empty() {
            let Reverse((_, pe, nth)) = self.begins.pop()?;
            if self.next[pe] == nth {
                self.stack.push(pe);
            }
        }
        while let Some(other) = self.stack.last().and_then(|&pe| self.waits_for(pe)) {
            // A cycle would be an error of the log; its messages then have no cause.
            if self.stack.contains(&other) {
                break;
            }
            self.stack.push(other);
        }
        let pe = self.stack.pop()?;
        let work = self.works[pe].get(self.next[pe])?;
        self.next[pe] += 1;
        self.waits_for_turn(pe);
        Some((pe, work))
    }
}
