//! A queue of future events in the order of time.
//!
//! It is a radix heap (R. K. Ahuja, K. Mehlhorn, J. B. Orlin, R. E. Tarjan, "Faster algorithms for the shortest
//! path problem", 1990) on the bits of times; bits of numbers that are not negative compare like the numbers. A radix
//! heap requires that time never goes backward. It moves whole buckets, and so has better locality than a binary heap:
//! with a million events it is several times as fast.

use std::collections::VecDeque;

use super::Network;

/// The number of buckets: one per position of the highest bit that differs from now, and bucket 0 for events now.
const BUCKETS: usize = u64::BITS as usize + 1;

/// Future events in the order of time; events of the same time keep the order in which they were added.
pub struct Events<T> {
    /// The time of the last removed event, as bits.
    now: u64,
    /// The events at this time.
    present: VecDeque<T>,
    /// By the highest bit in which the time differs from `now`, from 1: times and events, those of equal times in the
    /// order of addition.
    future: Vec<Vec<(u64, T)>>,
    /// The earliest time of each bucket.
    least: [u64; BUCKETS],
}

impl<T> Events<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Events {
            now: 0,
            present: VecDeque::new(),
            future: (0..BUCKETS).map(|_| Vec::new()).collect(),
            least: [u64::MAX; BUCKETS],
        }
    }

    /// Adds an event at `seconds` (or any other unit of time), which must not be negative. A time before the last
    /// removed event counts as the time of that event.
    pub fn add(&mut self, seconds: f64, event: T) {
        debug_assert!(seconds >= 0.0, "an event at {seconds}");
        // Adding 0.0 turns -0.0, whose bits would be the largest, into 0.0.
        let time = (seconds + 0.0).to_bits().max(self.now);
        self.place(time, event);
    }

    /// The time of the next event.
    pub fn next(&self) -> Option<f64> {
        if !self.present.is_empty() {
            return Some(f64::from_bits(self.now));
        }
        Some(f64::from_bits(self.least[self.first_bucket()?]))
    }

    /// The time of the next event of this queue or of `network`, whichever is earlier.
    pub fn next_with(&self, network: &mut dyn Network) -> Option<f64> {
        [self.next(), network.next_event()].into_iter().flatten().reduce(f64::min)
    }

    /// Removes the next event and returns it with its time, unless its time is after `until`.
    pub fn pop(&mut self, until: f64) -> Option<(f64, T)> {
        if self.next()? > until {
            return None;
        }
        if self.present.is_empty() {
            self.advance();
        }
        let event = self.present.pop_front()?;
        Some((f64::from_bits(self.now), event))
    }

    fn place(&mut self, time: u64, event: T) {
        let bucket = (u64::BITS - (time ^ self.now).leading_zeros()) as usize;
        if bucket == 0 {
            self.present.push_back(event);
        } else {
            self.least[bucket] = self.least[bucket].min(time);
            self.future[bucket].push((time, event));
        }
    }

    /// The first nonempty bucket; its times are before those of all later buckets.
    fn first_bucket(&self) -> Option<usize> {
        self.least.iter().position(|&least| least != u64::MAX)
    }

    /// Moves `now` to the time of the next event, and the events of its bucket to lower buckets. Events of equal times
    /// stay together and keep their order.
    fn advance(&mut self) {
        let Some(bucket) = self.first_bucket() else { return };
        self.now = std::mem::replace(&mut self.least[bucket], u64::MAX);
        let mut moving = std::mem::take(&mut self.future[bucket]);
        for (time, event) in moving.drain(..) {
            self.place(time, event);
        }
        // The allocation is reused.
        self.future[bucket] = moving;
    }
}

impl<T> Default for Events<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_of_the_same_time_keep_their_order() {
        let mut events = Events::new();
        for (at, event) in [(2.0, 'c'), (0.5, 'a'), (2.0, 'd'), (-0.0, '0'), (0.5, 'b')] {
            events.add(at, event);
        }
        let mut order = String::new();
        while let Some((_, event)) = events.pop(2.0) {
            order.push(event);
        }
        assert_eq!(order, "0abcd");
    }

    #[test]
    fn pop_returns_no_event_after_the_given_time() {
        let mut events = Events::new();
        events.add(1.0, ());
        assert!(events.pop(0.999).is_none());
        assert_eq!(events.next(), Some(1.0));
        // `next` does not move the time, so an earlier event can still be added.
        events.add(0.5, ());
        assert_eq!(events.next(), Some(0.5));
        assert_eq!(events.pop(1.0), Some((0.5, ())));
        assert_eq!(events.pop(1.0), Some((1.0, ())));
        assert_eq!(events.next(), None);
    }

    proptest! {
        #[test]
        fn events_have_the_order_of_a_binary_heap(
            // By step: the delays of the events that are added before the next event is removed.
            steps in prop::collection::vec(prop::collection::vec(0..9u32, 0..4), 1..200),
            scale in prop::sample::select(vec![1e-9, 0.3, 1e12]),
        ) {
            let (mut events, mut heap) = (Events::new(), BinaryHeap::new());
            let (mut now, mut added) = (0.0, 0u64);
            for step in steps {
                for later in step {
                    let at = now + f64::from(later.saturating_sub(3)) * scale;
                    events.add(at, added);
                    heap.push(Reverse((at.to_bits(), added)));
                    added += 1;
                }
                let next = heap.pop().map(|Reverse((at, event))| (f64::from_bits(at), event));
                prop_assert_eq!(events.next(), next.map(|next| next.0));
                prop_assert_eq!(events.pop(f64::INFINITY), next);
                now = next.map_or(now, |next| next.0);
            }
        }
    }
}
