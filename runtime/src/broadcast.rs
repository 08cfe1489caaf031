//! Broadcasts reach every element exactly once while elements migrate.
//!
//! PE 0 numbers the broadcasts of an array, every PE delivers them in that order, and every element
//! knows the number it receives next. An element that arrives ahead of its new PE skips what it has
//! had. One that arrives behind it missed what its new PE had already delivered: its new PE says how
//! far it was, and the PE it left, which has seen those broadcasts too or will, sends them after it.
//! Until it has them the element is still on its way: it does nothing, so it cannot end, or create
//! others, before it heard what was said. Should it leave while it catches up, it takes along what it
//! has still to hear. So a PE keeps broadcasts only while elements that left it have not landed.

use std::collections::VecDeque;

/// An element that left this PE.
#[derive(Clone, Copy, Debug)]
struct Flight {
    rank: u32,
    /// The broadcast it had not had when it left.
    next: u32,
    /// The broadcast this PE had not delivered then; never after `next`.
    here: u32,
}

/// What this PE owes to an element that left it.
#[derive(Clone, Copy, Debug)]
struct Debt {
    rank: u32,
    /// The PE where it landed.
    at: u32,
    /// The broadcasts from here ..
    from: u32,
    /// .. to before here.
    until: u32,
}

/// The elements that left a PE, and the broadcasts kept for them.
#[derive(Debug)]
pub(crate) struct Departures<M> {
    /// The number of the first flight in `flights`.
    first: u32,
    /// In order of departure; `None` has landed.
    flights: VecDeque<Option<Flight>>,
    /// Delivered here since the oldest flight left, with their numbers.
    history: VecDeque<(u32, M)>,
    debts: Vec<Debt>,
}

impl<M> Default for Departures<M> {
    fn default() -> Self {
        Departures { first: 0, flights: VecDeque::new(), history: VecDeque::new(), debts: Vec::new() }
    }
}

impl<M> Departures<M> {
    /// An element leaves that has had the broadcasts before `next`, from a PE that has delivered those
    /// before `here`; returns its flight number.
    pub(crate) fn leave(&mut self, rank: u32, next: u32, here: u32) -> u32 {
        self.flights.push_back(Some(Flight { rank, next, here }));
        self.first.wrapping_add(self.flights.len() as u32 - 1)
    }

    /// Whether broadcasts have to be kept.
    pub(crate) fn waiting(&self) -> bool {
        !self.flights.is_empty() || !self.debts.is_empty()
    }

    /// This PE has delivered broadcast `number`. Keeps it if somebody may need it, and returns who
    /// is owed it now, with the PEs where they landed.
    pub(crate) fn delivered(&mut self, number: u32, msg: impl FnOnce() -> M) -> Vec<(u32, u32)> {
        if !self.flights.is_empty() {
            self.history.push_back((number, msg()));
        }
        let owed = self.debts.iter().filter(|debt| debt.from <= number && number < debt.until);
        let owed = owed.map(|debt| (debt.rank, debt.at)).collect();
        self.debts.retain(|debt| number + 1 < debt.until);
        owed
    }

    /// A flight has landed on PE `at`, where broadcasts before `seen` had been delivered, while this PE
    /// has delivered those before `here`. Calls `send` with rank, number and message of what the
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
            self.debts.push(Debt { rank, at, from: here.max(next), until: seen });
        }
        while let Some(None) = self.flights.front() {
            self.flights.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        // `here` never falls from one departure to the next, so the oldest flight needs the most.
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
    fn what_an_element_missed_is_sent_after_it_and_then_forgotten() {
        let mut departures = Departures::default();
        let flight = departures.leave(7, 3, 3);
        assert!(departures.delivered(3, || "three").is_empty());
        let mut sent = Vec::new();
        departures.landed(flight, (2, 5), 4, |rank, number, &msg| sent.push((rank, number, msg)));
        assert_eq!(sent, [(7, 3, "three")]);
        assert!(departures.waiting(), "the fourth is owed");
        assert_eq!(departures.delivered(4, || "four"), [(7, 2)]);
        assert!(!departures.waiting());
        assert!(departures.history.is_empty());
    }

    #[test]
    fn an_element_that_lands_behind_its_old_pe_is_owed_nothing() {
        let mut departures = Departures::default();
        let flight = departures.leave(7, 3, 3);
        departures.delivered(3, || 3);
        departures.landed(flight, (2, 3), 4, |_, _, _| panic!("it will have it where it is"));
        assert!(!departures.waiting());
    }

    #[test]
    fn the_history_is_as_long_as_the_oldest_flight_needs() {
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
