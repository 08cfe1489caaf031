//! Messages that wait for a time: `proxy.after(duration)`.
//!
//! The PE of the sender keeps them. A PE with such a message does not rest, so quiescence is not found. Its thread sleeps at most until
//! the first message is due. Where the order of messages is sampled with a seed there is no time: a message waits for an arbitrary
//! number of deliveries. The waiting messages of one PE are sent in the order of their durations.

use super::PeCx;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The messages of one PE that wait for a time.
pub(crate) struct Timers {
    /// The begin of time, where it is wall time.
    begin: Instant,
    /// By time and number: the array that keeps the message.
    waiting: RefCell<BTreeMap<(Duration, u64), u16>>,
    /// The number of messages that wait, so that a look is cheap.
    count: Cell<usize>,
    next: Cell<u64>,
    /// The times of messages that the machine in virtual time does not yet know.
    unscheduled: RefCell<Vec<Duration>>,
}

impl Default for Timers {
    fn default() -> Self {
        Timers {
            begin: Instant::now(),
            waiting: RefCell::default(),
            count: Cell::new(0),
            next: Cell::new(0),
            unscheduled: RefCell::default(),
        }
    }
}

impl Timers {
    /// The number of messages that wait.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// Takes the times of new messages, for the machine in virtual time.
    pub(crate) fn take_unscheduled(&self) -> Vec<Duration> {
        self.unscheduled.take()
    }
}

impl PeCx {
    /// The time on this PE; zero where the order of messages is sampled.
    fn time(&self) -> Duration {
        match self.clock.simulated() {
            Some(clock) => Duration::from_secs_f64(clock.now()),
            None if self.settings().samples_order() => Duration::ZERO,
            None => self.timers.begin.elapsed(),
        }
    }

    /// Starts the time of a message that an array keeps; returns its number.
    pub(crate) fn waits(&self, array: u16, duration: Duration) -> u64 {
        let Timers { waiting, count, next, unscheduled, .. } = &self.timers;
        let due = self.time().saturating_add(duration);
        let number = next.get();
        next.set(number + 1);
        waiting.borrow_mut().insert((due, number), array);
        count.set(count.get() + 1);
        if self.clock.simulated().is_some() {
            unscheduled.borrow_mut().push(due);
        }
        number
    }

    /// How long the first message still waits; none if there is no message.
    pub(crate) fn first_due(&self) -> Option<Duration> {
        let (due, _) = *self.timers.waiting.borrow().first_key_value()?.0;
        let any_time = self.settings().samples_order();
        Some(if any_time { Duration::ZERO } else { due.saturating_sub(self.time()) })
    }

    /// Sends the first message that waits; returns its number.
    pub(crate) fn send_first(&self) -> Option<u64> {
        let ((_, number), array) = self.timers.waiting.borrow_mut().pop_first()?;
        self.send_waiting(number, array);
        Some(number)
    }

    /// Sends the message of this number; false if there is none.
    pub(crate) fn send_numbered(&self, number: u64) -> bool {
        let mut waiting = self.timers.waiting.borrow_mut();
        let Some(&key) = waiting.keys().find(|(_, it)| *it == number) else { return false };
        let array = waiting.remove(&key).expect("the key was found");
        drop(waiting);
        self.send_waiting(number, array);
        true
    }

    fn send_waiting(&self, number: u64, array: u16) {
        self.timers.count.set(self.timers.count.get() - 1);
        self.ports[usize::from(array)].is_due(self, number);
    }
}
