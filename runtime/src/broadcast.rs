//! Broadcasts reach every element exactly once while elements migrate.
//!
//! PE 0 numbers the broadcasts of an array, every PE delivers them in that order, and every element
//! stores the number of its next broadcast. After a migration, the next broadcast of the element and that of its new
//! PE may differ. If the element is ahead, it skips the broadcasts that it already received. If the element is behind,
//! it missed broadcasts that the new PE has delivered. The new PE reports its next broadcast to the previous PE, which
//! forwards the missed broadcasts as soon as it has them. Until they arrive, the element counts as migrating: it does
//! not execute, so it cannot end or create elements. If the element migrates again before it has executed all missed
//! broadcasts, the rest migrates with it. So a PE keeps broadcasts only while elements that left it have not landed.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Takes the item at a position; the others keep their order. O(`at`). `VecDeque::remove` would compile much code for each type of messages.
///
/// # Panics
/// When there is no such position.
pub(crate) fn take_at<T>(queue: &mut VecDeque<T>, at: usize) -> Option<T> {
    let mut hole = at;
    while hole > 0 {
        queue.swap(hole - 1, hole);
        hole -= 1;
    }
    queue.pop_front()
}

/// Broadcasts by number, ascending; most are added in this order. A map would compile a tree for each type of messages.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Numbered<M>(VecDeque<(u32, M)>);

impl<M> Default for Numbered<M> {
    fn default() -> Self {
        Numbered(VecDeque::new())
    }
}

impl<M> Numbered<M> {
    /// The number of broadcasts.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a broadcast, unless it is there.
    pub(crate) fn insert(&mut self, number: u32, msg: M) {
        if let Err(at) = self.find(number) {
            // Most are the last ones. `VecDeque::insert` would compile much code for each type of messages.
            let mut last = self.0.len();
            self.0.push_back((number, msg));
            while last > at {
                self.0.swap(last - 1, last);
                last -= 1;
            }
        }
    }

    /// Takes the broadcast with this number.
    pub(crate) fn take(&mut self, number: u32) -> Option<M> {
        let at = self.find(number).ok()?;
        take_at(&mut self.0, at).map(|(_, msg)| msg)
    }

    /// Takes the broadcast with the least number.
    pub(crate) fn pop_first(&mut self) -> Option<(u32, M)> {
        self.0.pop_front()
    }

    /// The same broadcasts, with messages that `copy` makes.
    pub(crate) fn copied(&self, copy: impl Fn(&M) -> M) -> Self {
        Numbered(self.0.iter().map(|(number, msg)| (*number, copy(msg))).collect())
    }

    /// The place of a broadcast, or where it would be.
    fn find(&self, number: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |&(known, _)| known)
    }
}

/// An element that left this PE.
#[derive(Clone, Copy, Debug)]
struct Flight {
    rank: u32,
    /// The next broadcast of the element when it left.
    next: u32,
    /// The next broadcast of this PE at that time; at most `next`.
    here: u32,
}

/// Broadcasts that this PE has to send to an element that left, once they arrive here.
#[derive(Clone, Copy, Debug)]
struct Pending {
    rank: u32,
    /// The PE where the element landed.
    at: u32,
    /// The first broadcast to send.
    from: u32,
    /// The end of the broadcasts to send (exclusive).
    until: u32,
}

/// The elements that left a PE, and the broadcasts kept for them.
#[derive(Debug)]
pub(crate) struct Departures<M> {
    /// The number of the first flight in `flights`.
    first: u32,
    /// In order of departure; `None` if landed.
    flights: VecDeque<Option<Flight>>,
    /// Numbered broadcasts delivered here since the oldest flight left.
    history: VecDeque<(u32, M)>,
    pending: Vec<Pending>,
}

impl<M> Default for Departures<M> {
    fn default() -> Self {
        Departures { first: 0, flights: VecDeque::new(), history: VecDeque::new(), pending: Vec::new() }
    }
}

impl<M> Departures<M> {
    /// An element leaves with `next` as its next broadcast, from this PE with `here` as its next broadcast; returns
    /// the flight number.
    pub(crate) fn leave(&mut self, rank: u32, next: u32, here: u32) -> u32 {
        self.flights.push_back(Some(Flight { rank, next, here }));
        self.first.wrapping_add(self.flights.len() as u32 - 1)
    }

    /// Whether an element that left may still need broadcasts from this PE.
    pub(crate) fn waiting(&self) -> bool {
        !self.flights.is_empty() || !self.pending.is_empty()
    }

    /// This PE has delivered broadcast `number`. Keeps the broadcast if an element may need it, and returns the ranks
    /// to send it to now, with their PEs.
    pub(crate) fn delivered(&mut self, number: u32, msg: impl FnOnce() -> M) -> Vec<(u32, u32)> {
        if !self.flights.is_empty() {
            self.history.push_back((number, msg()));
        }
        let receivers = self.pending.iter().filter(|it| it.from <= number && number < it.until);
        let receivers = receivers.map(|it| (it.rank, it.at)).collect();
        self.pending.retain(|it| number + 1 < it.until);
        receivers
    }

    /// A flight has landed on PE `at`, where broadcasts before `seen` had been delivered, while this PE
    /// has delivered those before `here`. Calls `send` with rank, number and message of each broadcast that the
    /// element missed.
    pub(crate) fn landed(
        &mut self,
        flight: u32,
        (at, seen): (u32, u32),
        here: u32,
        mut send: impl FnMut(u32, u32, &M),
    ) {
        let index = flight.wrapping_sub(self.first) as usize;
        let flight = self.flights.get_mut(index).and_then(Option::take);
        let Some(Flight { rank, next, .. }) = flight else { return };
        for (number, msg) in &self.history {
            if (next..seen).contains(number) {
                send(rank, *number, msg);
            }
        }
        if seen > here.max(next) {
            self.pending.push(Pending { rank, at, from: here.max(next), until: seen });
        }
        while let Some(None) = self.flights.front() {
            self.flights.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        // `here` does not decrease between departures, so the oldest flight needs the longest history.
        let needed = self.flights.iter().flatten().map(|flight| flight.here).next();
        match needed {
            None => self.history.clear(),
            Some(here) => {
                while self.history.front().is_some_and(|&(number, _)| number < here) {
                    self.history.pop_front();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_broadcasts_are_ascending_and_taken_once() {
        let mut numbered = Numbered::default();
        for number in [5, 3, 9, 4, 3] {
            numbered.insert(number, number * 10);
        }
        assert_eq!(numbered.copied(|msg| msg + 1).0, [(3, 31), (4, 41), (5, 51), (9, 91)]);
        assert_eq!([5, 5, 9, 7].map(|number| numbered.take(number)), [Some(50), None, Some(90), None]);
        assert_eq!((numbered.pop_first(), numbered.len()), (Some((3, 30)), 1));
    }

    #[test]
    fn sends_missed_broadcasts_after_an_element_and_drops_them() {
        let mut departures = Departures::default();
        let flight = departures.leave(7, 3, 3);
        assert!(departures.delivered(3, || "three").is_empty());
        let mut sent = Vec::new();
        departures.landed(flight, (2, 5), 4, |rank, number, &msg| sent.push((rank, number, msg)));
        assert_eq!(sent, [(7, 3, "three")]);
        assert!(departures.waiting(), "broadcast 4 is pending");
        assert_eq!(departures.delivered(4, || "four"), [(7, 2)]);
        assert!(!departures.waiting());
        assert!(departures.history.is_empty());
    }

    #[test]
    fn sends_nothing_to_an_element_on_a_pe_behind_the_previous_one() {
        let mut departures = Departures::default();
        let flight = departures.leave(7, 3, 3);
        departures.delivered(3, || 3);
        departures.landed(flight, (2, 3), 4, |_, _, _| panic!("the new PE delivers the broadcast"));
        assert!(!departures.waiting());
    }

    #[test]
    fn keeps_the_history_that_the_oldest_flight_needs() {
        let mut departures = Departures::default();
        for number in 0..1000 {
            let flight = departures.leave(number, number, number);
            departures.delivered(number, || number);
            if number > 0 {
                departures.landed(flight - 1, (1, number), number + 1, |_, _, _| ());
            }
            assert!(departures.history.len() <= 3, "{}", departures.history.len());
        }
    }
}
