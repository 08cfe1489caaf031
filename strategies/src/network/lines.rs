//! Events that come from places where one follows the other, as packets do on a link.
//!
//! A line is a queue of events whose times ascend. Only the first of each line is in a heap, so that this
//! stays small however many wait.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

/// Lines of things that will happen; of those of the same time, what was added first happens first.
pub(super) struct Lines<T> {
    lines: Vec<VecDeque<(Due, T)>>,
    /// The first of each line that is not empty, and the line.
    heads: BinaryHeap<Reverse<(Due, u32)>>,
    added: u64,
}

/// A time as bits, which for numbers that are not negative compare as the numbers do; then the order of
/// addition.
type Due = (u64, u64);

impl<T> Lines<T> {
    /// So many empty lines.
    pub(super) fn new(lines: usize) -> Self {
        let lines = (0..lines).map(|_| VecDeque::new()).collect();
        Lines { lines, heads: BinaryHeap::new(), added: 0 }
    }

    /// `what` will happen at `seconds`, which is neither below 0 nor before anything in that line.
    pub(super) fn add(&mut self, line: usize, seconds: f64, what: T) {
        let due = (seconds.to_bits(), self.added);
        self.added += 1;
        let queue = &mut self.lines[line];
        debug_assert!(seconds.is_sign_positive() && queue.back().is_none_or(|last| last.0 <= due));
        if queue.is_empty() {
            self.heads.push(Reverse((due, line as u32)));
        }
        queue.push_back((due, what));
    }

    /// When the next thing will happen, in seconds.
    pub(super) fn next(&self) -> Option<f64> {
        self.heads.peek().map(|Reverse((due, _))| f64::from_bits(due.0))
    }

    /// The next thing and its time, if it happens at `until` seconds or before.
    pub(super) fn pop(&mut self, until: f64) -> Option<(f64, T)> {
        let mut head = self.heads.peek_mut()?;
        let Reverse(((time, _), line)) = *head;
        let seconds = f64::from_bits(time);
        if seconds > until {
            return None;
        }
        let queue = &mut self.lines[line as usize];
        let (_, what) = queue.pop_front()?;
        match queue.front() {
            Some(&(due, _)) => *head = Reverse((due, line)),
            None => drop(PeekMut::pop(head)),
        }
        Some((seconds, what))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Events;
    use super::*;

    proptest! {
        #[test]
        fn lines_happen_in_the_order_of_events(
            // A line, and how much later than the last of it, before something happens or not.
            steps in prop::collection::vec((0..5usize, 0..4u32, any::<bool>()), 1..200),
        ) {
            let (mut lines, mut events) = (Lines::new(5), Events::new());
            let (mut last, mut now) = ([0.0f64; 5], 0.0);
            for (what, (line, later, is_time)) in steps.into_iter().enumerate() {
                last[line] = last[line].max(now) + f64::from(later);
                lines.add(line, last[line], what);
                events.add(last[line], what);
                if is_time {
                    prop_assert_eq!(lines.next(), events.next());
                    let happened = lines.pop(f64::INFINITY);
                    prop_assert_eq!(happened, events.pop(f64::INFINITY));
                    now = happened.map_or(now, |happened| happened.0);
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
