//! What will happen, in the order in which it will.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Things that will happen at some time; those of the same time in the order in which they were added.
pub struct Events<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
}

struct Entry<T> {
    /// The time's bits, which for numbers that are not negative compare as the numbers do, then the order
    /// of addition.
    key: u128,
    what: T,
}

impl<T> Events<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Events { heap: BinaryHeap::new(), added: 0 }
    }

    /// `what` will happen at `seconds`, which is not negative.
    pub fn add(&mut self, seconds: f64, what: T) {
        debug_assert!(seconds >= 0.0, "an event at {seconds}");
        // Adding 0.0 turns -0.0, whose bits would be the largest, into 0.0.
        let key = u128::from((seconds + 0.0).to_bits()) << 64 | u128::from(self.added);
        self.added += 1;
        self.heap.push(Reverse(Entry { key, what }));
    }

    /// When the next thing will happen, in seconds.
    pub fn next(&self) -> Option<f64> {
        self.heap.peek().map(|Reverse(entry)| entry.seconds())
    }

    /// The next thing and its time, if it happens at `until` seconds or before.
    pub fn pop(&mut self, until: f64) -> Option<(f64, T)> {
        if self.next()? > until {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.seconds(), entry.what))
    }

    /// How many things will happen.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing will.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<T> Default for Events<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Entry<T> {
    fn seconds(&self) -> f64 {
        f64::from_bits((self.key >> 64) as u64)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_at_the_same_time_keeps_its_order() {
        let mut events = Events::new();
        for (at, what) in [(2.0, 'c'), (0.5, 'a'), (2.0, 'd'), (-0.0, '0'), (0.5, 'b')] {
            events.add(at, what);
        }
        let mut order = String::new();
        while let Some((_, what)) = events.pop(2.0) {
            order.push(what);
        }
        assert_eq!(order, "0abcd");
    }

    #[test]
    fn nothing_happens_before_its_time() {
        let mut events = Events::new();
        events.add(1.0, ());
        assert!(events.pop(0.999).is_none());
        assert_eq!((events.next(), events.len()), (Some(1.0), 1));
        assert_eq!(events.pop(1.0), Some((1.0, ())));
        assert!(events.is_empty());
    }
}
