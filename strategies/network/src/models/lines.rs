//! Events in many first-in first-out queues, for example the packets on each link.
//!
//! A line is a queue of events with ascending times. Only the first event of each line is in the heap, so the size of
//! the heap does not depend on the number of waiting events.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

/// Lines of future events; events of the same time occur in the order in which they were added.
pub(super) struct Lines<T> {
    lines: Vec<VecDeque<(Due, T)>>,
    /// The first event of each nonempty line, and the line.
    heads: BinaryHeap<Reverse<(Due, u32)>>,
    added: u64,
}

/// A time as bits (bits of numbers that are not negative compare like the numbers), then the order of addition.
type Due = (u64, u64);

impl<T> Lines<T> {
    /// Empty lines.
    pub(super) fn new(lines: usize) -> Self {
        let lines = (0..lines).map(|_| VecDeque::new()).collect();
        Lines { lines, heads: BinaryHeap::new(), added: 0 }
    }

    /// Adds an event at `seconds`, which must be neither negative nor before any other event of the line.
    pub(super) fn add(&mut self, line: usize, seconds: f64, event: T) {
        let due = (seconds.to_bits(), self.added);
        self.added += 1;
        let queue = &mut self.lines[line];
        debug_assert!(seconds.is_sign_positive() && queue.back().is_none_or(|last| last.0 <= due));
        if queue.is_empty() {
            self.heads.push(Reverse((due, line as u32)));
        }
        queue.push_back((due, event));
    }

    /// The time of the next event, in seconds.
    pub(super) fn next(&self) -> Option<f64> {
        self.heads.peek().map(|Reverse((due, _))| f64::from_bits(due.0))
    }

    /// Removes the next event and returns it with its time, unless its time is after `until` seconds.
    pub(super) fn pop(&mut self, until: f64) -> Option<(f64, T)> {
        let mut head = self.heads.peek_mut()?;
        let Reverse(((time, _), line)) = *head;
        let seconds = f64::from_bits(time);
        if seconds > until {
            return None;
        }
        let queue = &mut self.lines[line as usize];
        let (_, event) = queue.pop_front()?;
        match queue.front() {
            Some(&(due, _)) => *head = Reverse((due, line)),
            None => drop(PeekMut::pop(head)),
        }
        Some((seconds, event))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Events;
    use super::*;

    proptest! {
        #[test]
        fn lines_give_the_same_order_as_events(
            // The line, the time since the last event of the line, and whether an event is removed after that.
            steps in prop::collection::vec((0..5usize, 0..4u32, any::<bool>()), 1..200),
        ) {
            let (mut lines, mut events) = (Lines::new(5), Events::new());
            let (mut last, mut now) = ([0.0f64; 5], 0.0);
            for (event, (line, later, is_removed)) in steps.into_iter().enumerate() {
                last[line] = last[line].max(now) + f64::from(later);
                lines.add(line, last[line], event);
                events.add(last[line], event);
                if is_removed {
                    prop_assert_eq!(lines.next(), events.next());
                    let next = lines.pop(f64::INFINITY);
                    prop_assert_eq!(next, events.pop(f64::INFINITY));
                    now = next.map_or(now, |next| next.0);
                }
            }
            while let Some(next) = events.pop(f64::INFINITY) {
                prop_assert!(lines.pop(next.0 - 0.5).is_none());
                prop_assert_eq!(lines.pop(next.0), Some(next));
            }
            prop_assert_eq!(lines.next(), None);
        }
    }
}
