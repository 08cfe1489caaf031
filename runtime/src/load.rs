//! Records the load and the communication of every element.
//!
//! Load is measured in one place, around [`deliver`](crate::elements), with one reading of the TSC per
//! delivery: the end of a delivery is the start of the next. Communication is recorded at the send, in a
//! list that belongs to the sender and migrates with it. Both are off unless a strategy or a dump
//! needs them.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// An element as one word: array and rank.
pub(crate) fn element_key(array: u16, rank: u32) -> u64 {
    u64::from(array) << 32 | u64::from(rank)
}

/// The array and the rank of an element.
pub(crate) fn array_and_rank(key: u64) -> (u16, u32) {
    ((key >> 32) as u16, key as u32)
}

/// Messages from one sender to one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// [`element_key`] of the receiver.
    pub to: u64,
    /// How many messages.
    pub messages: u64,
    /// The sum of their encoded sizes.
    pub bytes: u64,
}

/// Lists longer than this have an index.
const SCAN: usize = 32;

/// The recorded communication of one sender.
///
/// Senders usually repeat a sequence of receivers, so `add` tries the entry after the last one before it searches
/// the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Edges {
    #[serde(skip)]
    next: u32,
    list: Vec<Sent>,
    /// Position by receiver, once the list is longer than [`SCAN`]; made when it is needed.
    #[serde(skip)]
    index: Option<Box<FxHashMap<u64, u32>>>,
}

impl Edges {
    /// Adds a message of `bytes` bytes to `to`.
    #[inline]
    pub(crate) fn add(&mut self, to: u64, bytes: u64) {
        let mut at = self.next as usize;
        if self.list.get(at).is_none_or(|sent| sent.to != to) {
            at = self.find(to);
        }
        let sent = &mut self.list[at];
        sent.messages += 1;
        sent.bytes += bytes;
        self.next = if at + 1 == self.list.len() { 0 } else { at as u32 + 1 };
    }

    fn find(&mut self, to: u64) -> usize {
        if self.index.is_none() && self.list.len() > SCAN {
            let all = self.list.iter().enumerate().map(|(at, sent)| (sent.to, at as u32));
            self.index = Some(Box::new(all.collect()));
        }
        let at = match &self.index {
            Some(index) => index.get(&to).map(|&at| at as usize),
            None => self.list.iter().position(|sent| sent.to == to),
        };
        if let Some(at) = at {
            return at;
        }
        let at = self.list.len();
        self.list.push(Sent { to, messages: 0, bytes: 0 });
        if let Some(index) = &mut self.index {
            index.insert(to, at as u32);
        }
        at
    }

    /// Takes the records. If every receiver was used in this period, the list keeps the receivers, because a program
    /// usually sends to the same receivers in the next period. Otherwise the list is cleared.
    pub(crate) fn take(&mut self) -> Vec<Sent> {
        let recorded: Vec<Sent> = self.list.iter().copied().filter(|sent| sent.messages > 0).collect();
        if recorded.len() < self.list.len() {
            *self = Edges::default();
        } else {
            for sent in &mut self.list {
                (sent.messages, sent.bytes) = (0, 0);
            }
            self.next = 0;
        }
        recorded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn records_equal_those_of_a_map(sends in prop::collection::vec((0u64..80, 0u64..1000), 0..400)) {
            let mut edges = Edges::default();
            for half in sends.chunks(sends.len() / 2 + 1) {
                let mut expected = BTreeMap::<u64, (u64, u64)>::new();
                for &(to, bytes) in half {
                    edges.add(to, bytes);
                    let sent = expected.entry(to).or_default();
                    sent.0 += 1;
                    sent.1 += bytes;
                }
                let recorded: BTreeMap<_, _> =
                    edges.take().into_iter().map(|sent| (sent.to, (sent.messages, sent.bytes))).collect();
                prop_assert_eq!(recorded, expected);
            }
        }
    }
}
