//! Records what a PE does in real time, for `--record` and `--perfetto` on threads and across processes.
//!
//! Every PE has a log of its own, which no other thread reads before the PE has stopped, so a record takes no lock. A log is
//! a ring of chunks: when the limit of `--record-limit` is reached, the oldest chunk is filled again. A clock is read once
//! per execution, at its end, and when the PE continues after it was idle: an execution begins where the one before ended.
//! A send has no time of its own; [`join`] bounds it by the execution that sends and by the execution that receives.
//!
//! A message carries its number to the receiver in [`Item::slot`](crate::slot::Item), where otherwise the slot of the
//! receiver is. No slot is as large as such a number, so the receiver looks the element up, as if it had moved. Orders are
//! numbered instead by sender and receiver: they arrive in the order in which they were sent. So nothing is added to
//! messages, and a run without `--record` pays for none of this.
//!
//! As in a trace of a simulated machine ([`tracer`](crate::tracer)), work outside elements becomes an *own execution* of
//! the PE.

use equipoise_network::trace::LbStep;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

mod causal_order;
mod clocks;
pub(crate) mod join;
mod memory;
mod work;

pub(crate) use clocks::{Alignment, Estimate};
pub(crate) use memory::resident_bytes;

/// A record: its kind in the highest 4 bits of the first word. The other bits of this word are the time in ticks, for kinds
/// that have a time. [`work`] reads records.
type Record = [u64; 4];

/// The kinds of records.
mod kind {
    /// The PE continues after it was idle.
    pub(super) const RESUMED: u64 = 1;
    /// An element has executed.
    pub(super) const EXECUTED: u64 = 2;
    /// The PE has worked outside elements.
    pub(super) const OWN: u64 = 3;
    /// A message to an element is sent.
    pub(super) const SENT: u64 = 4;
    /// An order is sent.
    pub(super) const POSTED: u64 = 5;
    /// An order is taken.
    pub(super) const TAKEN: u64 = 6;
    /// A message is kept, because its guard is false.
    pub(super) const PENDING: u64 = 7;
    /// A message is kept, because its element is not there.
    pub(super) const EARLY: u64 = 8;
    /// A message whose guard was false is delivered.
    pub(super) const RELEASED: u64 = 9;
    /// The first message that waited for an element is queued.
    pub(super) const REQUEUED: u64 = 10;
    /// The messages kept for an element are sent again.
    pub(super) const DROPPED: u64 = 11;
    /// The message of an order is queued.
    pub(super) const DEFERRED: u64 = 12;
    /// An element leaves.
    pub(super) const LEFT: u64 = 13;
    /// Nothing was in flight.
    pub(super) const QUIET: u64 = 14;
    /// The run ends.
    pub(super) const EXIT: u64 = 15;
}

/// The bits of a time.
const TIME: u64 = (1 << 60) - 1;

/// The numbers of messages; [`Item::slot`](crate::slot::Item) has larger values with other meanings.
const FIRST_MESSAGE: u32 = 1 << 31;
const MESSAGES: u32 = 1 << 30;

/// What causes an execution: nothing known, the last order that was taken, or the message of this number.
const NO_CAUSE: u32 = 0;
const BY_ORDER: u32 = 1;

/// The channels of orders: of arrays by number, of orders about the run, and of batches between processes.
pub(crate) const RUN: u16 = u16::MAX;
pub(crate) const BATCHES: u16 = u16::MAX - 1;

/// In the place of an element's array: the order has no element as receiver.
const NO_ARRAY: u16 = u16::MAX;

/// The records of a chunk, and its bytes.
const CHUNK: usize = 1 << 12;
pub(crate) const CHUNK_BYTES: u64 = (CHUNK * size_of::<Record>()) as u64;

/// The shortest time between two looks at the memory of the process.
const MEMORY_SECONDS: f64 = 0.05;

/// The log of a PE.
pub(crate) struct EventLog {
    clock: quanta::Clock,
    pe: u32,
    /// The PEs of the process, and the number of this PE among them.
    local_pes: u32,
    local: u32,
    /// The chunk that is being filled, and full chunks, oldest first.
    chunk: RefCell<Vec<Record>>,
    full: RefCell<VecDeque<Vec<Record>>>,
    most_chunks: usize,
    dropped: Cell<u64>,
    /// How many messages this PE has numbered since its numbers began anew.
    messages: Cell<u32>,
    /// The message that is delivered, or [`NO_CAUSE`].
    message: Cell<u32>,
    /// Whether an order is executed, and whether an element has executed since the order was taken.
    in_order: Cell<bool>,
    order_executed: Cell<bool>,
    /// Whether an element executes.
    is_running: Cell<bool>,
    /// Whether the PE has done something outside elements that no record covers, and its cause.
    has_own: Cell<bool>,
    own_cause: Cell<u32>,
    is_idle: Cell<bool>,
    /// The element that receives the message of the next order.
    addressee: Cell<Option<(u16, u32)>>,
    /// The number of orders so far, by channel and receiver, and by channel and sender.
    posted: RefCell<FxHashMap<(u16, u32), u32>>,
    taken: RefCell<FxHashMap<(u16, u32), u32>>,
    steps: RefCell<Vec<TimedStep>>,
    /// The times of samples of the memory of the process, with the bytes; of its first PE only.
    memory: RefCell<Vec<(u64, u64)>>,
    memory_ticks: u64,
}

/// A load-balancing step, with its begin and end in ticks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TimedStep {
    pub(crate) ticks: [u64; 2],
    pub(crate) step: LbStep,
}

/// What is left of a log, with times in nanoseconds of the clock of the process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PeEvents {
    pub(crate) pe: u32,
    /// Records one after the other.
    #[serde(with = "crate::codec::numbers")]
    words: Vec<u64>,
    dropped: u64,
    steps: Vec<TimedStep>,
    memory: Vec<(u64, u64)>,
}

impl EventLog {
    /// The log of a PE, which is PE `local` of the `local_pes` PEs of its process, with at most this many bytes.
    pub(crate) fn new(pe: u32, local: u32, local_pes: u32, bytes: u64) -> Self {
        let clock = quanta::Clock::new();
        let memory_ticks = ticks_of(&clock, MEMORY_SECONDS);
        EventLog {
            pe,
            local,
            local_pes,
            chunk: RefCell::new(Vec::with_capacity(CHUNK)),
            full: RefCell::default(),
            most_chunks: usize::try_from(bytes / CHUNK_BYTES).unwrap_or(usize::MAX).max(2) - 1,
            dropped: Cell::default(),
            messages: Cell::default(),
            message: Cell::new(NO_CAUSE),
            in_order: Cell::default(),
            order_executed: Cell::default(),
            is_running: Cell::default(),
            has_own: Cell::default(),
            own_cause: Cell::new(NO_CAUSE),
            is_idle: Cell::new(true),
            addressee: Cell::default(),
            posted: RefCell::default(),
            taken: RefCell::default(),
            steps: RefCell::default(),
            memory: RefCell::default(),
            memory_ticks,
            clock,
        }
    }

    #[inline(always)]
    fn push(&self, record: Record) {
        let mut chunk = self.chunk.borrow_mut();
        if chunk.len() == CHUNK {
            self.next_chunk(&mut chunk);
        }
        chunk.push(record);
    }

    #[cold]
    #[inline(never)]
    fn next_chunk(&self, chunk: &mut Vec<Record>) {
        let mut full = self.full.borrow_mut();
        let next = match full.len() < self.most_chunks {
            true => Vec::with_capacity(CHUNK),
            false => {
                let mut oldest = full.pop_front().unwrap_or_default();
                self.dropped.set(self.dropped.get() + oldest.len() as u64);
                oldest.clear();
                oldest
            }
        };
        full.push_back(std::mem::replace(chunk, next));
    }

    #[inline(always)]
    fn timed(&self, kind: u64) -> u64 {
        kind << 60 | self.clock.raw() & TIME
    }

    /// The PE has something to do, maybe after it was idle.
    pub(crate) fn resumes(&self) {
        if self.is_idle.replace(false) {
            self.push([self.timed(kind::RESUMED), 0, 0, 0]);
        }
    }

    /// The PE has nothing to do.
    pub(crate) fn rests(&self) {
        if self.is_idle.replace(true) {
            return;
        }
        let now = self.ends_own().unwrap_or_else(|| self.clock.raw() & TIME);
        let mut memory = self.memory.borrow_mut();
        let last = memory.last().map_or(0, |last| last.0);
        if self.local == 0 && now.saturating_sub(last) >= self.memory_ticks {
            memory.extend(resident_bytes().map(|bytes| (now, bytes)));
        }
    }

    /// Ends an own execution, if there is something in it; returns the time.
    fn ends_own(&self) -> Option<u64> {
        if !self.has_own.replace(false) {
            return None;
        }
        let time = self.timed(kind::OWN);
        self.push([time, u64::from(self.own_cause.get()), 0, 0]);
        Some(time & TIME)
    }

    /// The PE does something outside elements.
    #[inline(always)]
    fn does(&self) {
        if !self.is_running.get() && !self.has_own.replace(true) {
            self.resumes();
            self.own_cause.set(self.cause());
        }
    }

    /// What causes the work at the moment.
    #[inline(always)]
    fn cause(&self) -> u32 {
        match self.message.get() {
            NO_CAUSE if self.in_order.get() => BY_ORDER,
            message => message,
        }
    }

    /// An element begins to execute.
    #[inline]
    pub(crate) fn begins(&self) {
        if self.has_own.get() {
            self.ends_own();
        }
        self.is_running.set(true);
    }

    /// An element has executed this entry.
    #[inline(always)]
    pub(crate) fn ends(&self, array: u16, entry: u16, rank: u32, charged_seconds: f64) {
        self.is_running.set(false);
        self.order_executed.set(true);
        let cause = self.cause();
        self.message.set(NO_CAUSE);
        let time = self.timed(kind::EXECUTED);
        self.push([time, element(array, entry, rank), u64::from(cause), charged_seconds.to_bits()]);
    }

    /// A message to an element, on PE `to` as far as this PE knows, is sent; returns its number.
    #[inline(always)]
    pub(crate) fn sends(&self, array: u16, rank: u32, to: u32, bytes: u64) -> u32 {
        self.does();
        let number = self.next_number();
        self.push([kind::SENT << 60 | u64::from(to), element(array, 0, rank), u64::from(number), bytes]);
        number
    }

    #[inline(always)]
    fn next_number(&self) -> u32 {
        let nth = self.messages.get();
        let most = MESSAGES / self.local_pes;
        // Numbers of two PEs always differ. Those of a PE repeat when a log no longer has the first ones.
        self.messages.set(if nth + 1 < most { nth + 1 } else { 0 });
        FIRST_MESSAGE + self.local * most + nth
    }

    /// Whether a slot is the number of a message.
    #[inline]
    pub(crate) fn is_number(slot: u32) -> bool {
        (FIRST_MESSAGE..FIRST_MESSAGE + MESSAGES).contains(&slot)
    }

    /// The item with this slot is taken.
    #[inline]
    pub(crate) fn takes(&self, slot: u32) {
        if self.has_own.get() {
            self.ends_own();
        }
        self.message.set(if Self::is_number(slot) { slot } else { NO_CAUSE });
    }

    /// The next order is a message to this element.
    pub(crate) fn addresses(&self, array: u16, rank: u32) {
        self.addressee.set(Some((array, rank)));
    }

    /// An order is sent to PE `to`; returns its number on this channel.
    pub(crate) fn posts(&self, channel: u16, to: u32, bytes: u64) -> u32 {
        self.does();
        let mut posted = self.posted.borrow_mut();
        let next = posted.entry((channel, to)).or_default();
        let number = *next;
        *next = next.wrapping_add(1);
        let (array, rank) = self.addressee.take().unwrap_or((NO_ARRAY, 0));
        let place = u64::from(channel) << 32 | u64::from(number);
        self.push([kind::POSTED << 60 | u64::from(to), element(array, 0, rank), place, bytes]);
        number
    }

    /// The next order from PE `from` is executed; `number` if it is known.
    pub(crate) fn takes_order(&self, channel: u16, from: u32, number: Option<u32>) {
        self.ends_own();
        let mut taken = self.taken.borrow_mut();
        let next = taken.entry((channel, from)).or_default();
        let number = number.unwrap_or(*next);
        *next = number.wrapping_add(1);
        self.push([kind::TAKEN << 60, u64::from(channel) << 32 | u64::from(from), u64::from(number), 0]);
        self.message.set(NO_CAUSE);
        self.in_order.set(true);
        self.order_executed.set(false);
    }

    /// The order is executed.
    pub(crate) fn ends_order(&self) {
        self.message.set(NO_CAUSE);
        if !self.order_executed.get() {
            self.does();
        }
        self.in_order.set(false);
    }

    /// The message that is delivered is kept, because its guard is false; `kept` messages of the element are now kept.
    pub(crate) fn keeps_pending(&self, array: u16, entry: u16, rank: u32, kept: usize) {
        self.keeps(kind::PENDING, element(array, entry, rank), kept);
    }

    /// The message that is delivered is kept, because its element is not there; `kept` messages for it are now kept.
    pub(crate) fn keeps_early(&self, array: u16, rank: u32, kept: usize) {
        self.keeps(kind::EARLY, element(array, 0, rank), kept);
    }

    fn keeps(&self, kind: u64, element: u64, kept: usize) {
        self.push([self.timed(kind), element, u64::from(self.cause()), kept as u64]);
        self.message.set(NO_CAUSE);
        self.order_executed.set(true);
    }

    /// The `nth` of `kept` messages whose guards were false is delivered.
    pub(crate) fn releases(&self, array: u16, rank: u32, nth: usize, kept: usize) {
        // What the PE has done outside elements before has another cause.
        self.ends_own();
        let nth = (nth as u64) << 32 | kept as u64;
        self.push([self.timed(kind::RELEASED), element(array, 0, rank), nth, 0]);
        self.message.set(NO_CAUSE);
    }

    /// The first of `kept` messages that waited for an element is queued; returns its new number.
    pub(crate) fn requeues(&self, array: u16, rank: u32, kept: usize) -> u32 {
        let number = self.next_number();
        self.push([kind::REQUEUED << 60, element(array, 0, rank), u64::from(number), kept as u64]);
        number
    }

    /// The messages kept for an element are sent again.
    pub(crate) fn drops(&self, array: u16, rank: u32) {
        self.push([kind::DROPPED << 60, element(array, 0, rank), 0, 0]);
    }

    /// The message of the order that is executed is queued; returns its number.
    pub(crate) fn defers(&self) -> u32 {
        let number = self.next_number();
        self.push([kind::DEFERRED << 60, 0, u64::from(number), u64::from(self.cause())]);
        self.order_executed.set(true);
        number
    }

    /// An element leaves for PE `to`.
    pub(crate) fn leaves(&self, array: u16, rank: u32, to: u32) {
        self.push([self.timed(kind::LEFT), element(array, 0, rank), u64::from(to), 0]);
    }

    /// Nothing was in flight, so what this PE does now depends on everything before.
    pub(crate) fn was_quiet(&self) {
        self.does();
        self.push([kind::QUIET << 60, 0, 0, 0]);
    }

    /// What executes ends the run.
    pub(crate) fn exits(&self) {
        self.does();
        self.push([self.timed(kind::EXIT), 0, 0, 0]);
    }

    /// A load-balancing step began when the clock showed `ticks`; `step` has no times.
    pub(crate) fn balances(&self, ticks: u64, step: LbStep) {
        self.steps.borrow_mut().push(TimedStep { ticks: [ticks & TIME; 2], step });
    }

    /// The last load-balancing step is over.
    pub(crate) fn has_balanced(&self) {
        if let Some(last) = self.steps.borrow_mut().last_mut() {
            last.ticks[1] = self.clock.raw() & TIME;
        }
    }

    /// What is left at the end, with times in nanoseconds since `start` on the clock of the process.
    pub(crate) fn finish(&self, start: quanta::Instant) -> PeEvents {
        self.is_running.set(false);
        self.ends_own();
        let (now, raw) = (self.clock.now(), self.clock.raw());
        let end = now.saturating_duration_since(start).as_nanos() as u64;
        let nanoseconds = |ticks: u64| {
            let before = self.clock.delta_as_nanos(ticks, raw & TIME);
            end.saturating_sub(before)
        };
        let mut full = self.full.take();
        full.push_back(self.chunk.take());
        let mut words = Vec::with_capacity(full.iter().map(Vec::len).sum::<usize>() * 4);
        for mut record in full.into_iter().flatten() {
            let kind = record[0] >> 60;
            if work::has_time(kind) {
                record[0] = kind << 60 | nanoseconds(record[0] & TIME) & TIME;
            }
            words.extend(record);
        }
        let mut steps = self.steps.take();
        steps.iter_mut().for_each(|step| step.ticks = step.ticks.map(nanoseconds));
        let memory = self.memory.take().into_iter().map(|(ticks, bytes)| (nanoseconds(ticks), bytes));
        let memory = memory.collect();
        PeEvents { pe: self.pe, words, dropped: self.dropped.get(), steps, memory }
    }
}

/// An element and an entry as a word.
#[inline(always)]
fn element(array: u16, entry: u16, rank: u32) -> u64 {
    u64::from(array) << 48 | u64::from(entry) << 32 | u64::from(rank)
}

/// Seconds in ticks of a clock.
fn ticks_of(clock: &quanta::Clock, seconds: f64) -> u64 {
    let nanoseconds = clock.delta_as_nanos(0, 1 << 30) as f64;
    (seconds * 1e9 / nanoseconds * f64::from(1 << 30)) as u64
}

#[cfg(test)]
mod tests;
