//! What will happen, in the order in which it will.
//!
//! A radix heap (R. K. Ahuja, K. Mehlhorn, J. B. Orlin, R. E. Tarjan, "Faster algorithms for the shortest
//! path problem", 1990) on the bits of times, which for numbers that are not negative compare as the numbers
//! do. It needs time to go one way, and moves whole buckets where a binary heap jumps about in memory: with a
//! million events ahead it is several times as fast.

use std::collections::VecDeque;

use super::Network;

/// Buckets for each place at which a time may first differ from now, 0 for what happens now.
const BUCKETS: usize = u64::BITS as usize + 1;

/// Things that will happen at some time, not before the last that has; those of the same time in the order
/// in which they were added.
pub struct Events<T> {
    /// The time of the last that has happened, as bits.
    now: u64,
    /// What happens at that time.
    present: VecDeque<T>,
    /// By the highest bit in which times differ from `now`, from 1: times and things, in the order of
    /// addition where times are equal.
    future: Vec<Vec<(u64, T)>>,
    /// The least time of each bucket.
    least: [u64; BUCKETS],
}

impl<T> Events<T> {
    /// Nothing yet.
    pub fn new() -> Self {
        Events {
            now: 0,
            present: VecDeque::new(),
            future: (0..BUCKETS).map(|_| Vec::new()).collect(),
            least: [u64::MAX; BUCKETS],
        }
    }

    /// `what` will happen at `seconds` (or whatever unit time has): not below 0, and not before what has
    /// happened, else it happens at once.
    pub fn add(&mut self, seconds: f64, what: T) {
        debug_assert!(seconds >= 0.0, "an event at {seconds}");
        // Adding 0.0 turns -0.0, whose bits would be the largest, into 0.0.
        let time = (seconds + 0.0).to_bits().max(self.now);
        self.place(time, what);
    }

    /// When the next thing will happen.
    pub fn next(&self) -> Option<f64> {
        if !self.present.is_empty() {
            return Some(f64::from_bits(self.now));
        }
        Some(f64::from_bits(self.least[self.first_bucket()?]))
    }

    /// When the next thing will happen, of these or on `network`, whose driver does the earlier of both.
    pub fn next_with(&self, network: &mut dyn Network) -> Option<f64> {
        [self.next(), network.next_event()].into_iter().flatten().reduce(f64::min)
    }

    /// The next thing and its time, if it happens at `until` or before.
    pub fn pop(&mut self, until: f64) -> Option<(f64, T)> {
        if self.next()? > until {
            return None;
        }
        if self.present.is_empty() {
            self.go_on();
        }
        let what = self.present.pop_front()?;
        Some((f64::from_bits(self.now), what))
    }

    fn place(&mut self, time: u64, what: T) {
        let bucket = (u64::BITS - (time ^ self.now).leading_zeros()) as usize;
        if bucket == 0 {
            self.present.push_back(what);
        } else {
            self.least[bucket] = self.least[bucket].min(time);
            self.future[bucket].push((time, what));
        }
    }

    /// The first bucket that is not empty; all its times are before those of the next.
    fn first_bucket(&self) -> Option<usize> {
        self.least.iter().position(|&least| least != u64::MAX)
    }

    /// Now is the time of the next thing; what shares its bucket moves to lower ones, in its order, so that
    /// equal times never part.
    fn go_on(&mut self) {
        let Some(bucket) = self.first_bucket() else { return };
        self.now = std::mem::replace(&mut self.least[bucket], u64::MAX);
        let mut moving = std::mem::take(&mut self.future[bucket]);
        for (time, what) in moving.drain(..) {
            self.place(time, what);
        }
        // Its memory is used again.
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
        assert_eq!(events.next(), Some(1.0));
        // What is looked at has not happened: something else may come first.
        events.add(0.5, ());
        assert_eq!(events.next(), Some(0.5));
        assert_eq!(events.pop(1.0), Some((0.5, ())));
        assert_eq!(events.pop(1.0), Some((1.0, ())));
        assert_eq!(events.next(), None);
    }

    proptest! {
        #[test]
        fn events_happen_in_the_order_of_a_binary_heap(
            // How many are added before the next one happens, and how much later than now.
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
                let next = heap.pop().map(|Reverse((at, what))| (f64::from_bits(at), what));
                prop_assert_eq!(events.next(), next.map(|next| next.0));
                prop_assert_eq!(events.pop(f64::INFINITY), next);
                now = next.map_or(now, |next| next.0);
            }
        }
    }
}
