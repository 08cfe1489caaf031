//! What the PEs of a process and its connection to other processes exchange: batches, printed lines, and the counts from
//! which flow control and quiescence follow.
//!
//! Buffers of batches that were executed are used again.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::Thread;
use std::time::Duration;

/// A batch of this many bytes leaves at once: small enough for a core's cache, large enough for the network.
pub(crate) const FULL_BYTES: usize = 1 << 15;

/// The number of free buffers of a kind that a process keeps for reuse, and their capacity together.
const BUFFERS: usize = 256;
pub(crate) const KEPT_BYTES: usize = 16 << 20;

/// Shorter messages have buffers of their own. A long buffer that received a short message would have to be filled with zeros
/// again before the next long one.
const SHORT_BYTES: usize = 1 << 10;

/// How many buffers are looked at to find one for a message to receive.
const LOOKED_AT: usize = 8;

/// While more bytes than this wait to be sent, PEs run only what arrives from other processes. Smaller in tests.
pub(crate) const CONGESTED_BYTES: u64 = if cfg!(test) { 64 << 10 } else { 64 << 20 };

/// What the PEs of a process and its connection to other processes exchange.
pub(crate) struct Desk {
    outgoing: Mutex<Outgoing>,
    has_outgoing: AtomicBool,
    /// The bytes of batches that were executed so far, by the process that sent them.
    executed_bytes: Box<[AtomicU64]>,
    /// Whether more than [`CONGESTED_BYTES`] wait to be sent, so that PEs must not send more on their own account.
    is_congested: AtomicBool,
    /// Buffers for reuse of messages to send, and of received messages. The memory of a sent message is in the caches of
    /// two cores, so a receiver would overwrite it more slowly.
    to_send: Mutex<Buffers>,
    received: Mutex<Buffers>,
    /// Lines that PEs print.
    printed: Mutex<Vec<String>>,
    has_printed: AtomicBool,
    /// The thread that sends, while it sleeps because there is nothing to do.
    sleeper: Mutex<Option<Thread>>,
    has_sleeper: AtomicBool,
}

/// Buffers for reuse, and the sum of their capacities. They have their old content: a receiver overwrites it, which is faster
/// than filling with zeros.
#[derive(Default)]
struct Buffers {
    free: Vec<Vec<u8>>,
    bytes: usize,
}

impl Buffers {
    /// Of the buffers that `fit`, the one that was kept last, whose memory is most likely in the cache.
    fn take(&mut self, fits: impl Fn(&Vec<u8>) -> bool) -> Option<Vec<u8>> {
        let from_top = self.free.iter().rev().take(LOOKED_AT).position(fits)?;
        let buffer = self.free.remove(self.free.len() - 1 - from_top);
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    fn keep(&mut self, buffer: Vec<u8>) {
        let fits = self.free.len() < BUFFERS && self.bytes + buffer.capacity() <= KEPT_BYTES;
        if fits && buffer.capacity() != 0 {
            self.bytes += buffer.capacity();
            self.free.push(buffer);
        }
    }
}

/// What leaves a process.
#[derive(Default)]
struct Outgoing {
    /// Batches to send, with their receivers.
    batches: Vec<(u32, Vec<u8>)>,
    /// The number of batches that PEs have handed over so far, and their bytes.
    sent: u64,
    sent_bytes: u64,
    /// The bytes of batches that have not left the process, also of those that wait at the connection, and their maximum.
    unsent_bytes: u64,
    peak_unsent_bytes: u64,
}

impl Desk {
    /// The desk of a process that is connected to `processes` processes.
    pub(crate) fn new(processes: u32) -> Self {
        Desk {
            outgoing: Mutex::default(),
            has_outgoing: AtomicBool::new(false),
            executed_bytes: (0..processes).map(|_| AtomicU64::new(0)).collect(),
            is_congested: AtomicBool::new(false),
            to_send: Mutex::default(),
            received: Mutex::default(),
            printed: Mutex::default(),
            has_printed: AtomicBool::new(false),
            sleeper: Mutex::default(),
            has_sleeper: AtomicBool::new(false),
        }
    }

    /// Whether more than [`CONGESTED_BYTES`] wait to be sent, so that PEs must not send more on their own account.
    #[inline]
    pub(crate) fn is_congested(&self) -> bool {
        self.is_congested.load(Relaxed)
    }

    /// The number of batches that PEs have handed over so far.
    pub(crate) fn sent(&self) -> u64 {
        self.outgoing.lock().sent
    }

    /// Swaps the batches to send, with their receivers, with an empty list. `left_bytes` have left the process since the last
    /// call.
    #[inline]
    pub(crate) fn take_outgoing(&self, empty: &mut Vec<(u32, Vec<u8>)>, left_bytes: &mut u64) {
        if !self.has_outgoing.load(Relaxed) && *left_bytes == 0 {
            return;
        }
        let mut outgoing = self.outgoing.lock();
        self.has_outgoing.store(false, Relaxed);
        std::mem::swap(&mut outgoing.batches, empty);
        outgoing.unsent_bytes -= std::mem::take(left_bytes);
        self.is_congested.store(outgoing.unsent_bytes > CONGESTED_BYTES, Relaxed);
    }

    /// The bytes that have not left the process, as far as calls of [`take_outgoing`](Self::take_outgoing) have said.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.outgoing.lock().unsent_bytes
    }

    /// The most bytes that waited to be sent at one time.
    pub(crate) fn peak_unsent_bytes(&self) -> u64 {
        self.outgoing.lock().peak_unsent_bytes
    }

    /// A batch from a process was executed; its buffer is used again.
    pub(crate) fn executed(&self, from: u32, batch: Vec<u8>) {
        self.executed_bytes[from as usize].fetch_add(batch.len() as u64, Relaxed);
        self.return_received(batch);
    }

    /// The bytes of batches from a process that were executed so far.
    pub(crate) fn executed_bytes(&self, from: u32) -> u64 {
        self.executed_bytes[from as usize].load(Relaxed)
    }

    /// The bytes that PEs have handed over so far, minus those from other processes that they have executed.
    pub(crate) fn sent_minus_executed_bytes(&self) -> i64 {
        let executed: u64 = self.executed_bytes.iter().map(|bytes| bytes.load(Relaxed)).sum();
        self.outgoing.lock().sent_bytes as i64 - executed as i64
    }

    /// An empty buffer for a message to send.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        let mut buffer =
            self.to_send.lock().take(|_| true).unwrap_or_else(|| Vec::with_capacity(SHORT_BYTES));
        // Bytes of an earlier batch in a new one would be false messages.
        buffer.clear();
        buffer
    }

    /// A message in a buffer that is not much larger, as flow control counts the bytes of messages that wait.
    pub(crate) fn in_fitting_buffer(&self, message: Vec<u8>) -> Vec<u8> {
        if message.capacity() <= 2 * message.len().max(FULL_BYTES) {
            return message;
        }
        let copy = message.clone();
        self.return_buffer(message);
        copy
    }

    /// A buffer of this length with any content, to receive in.
    #[allow(dead_code, reason = "for carriers that copy what they receive; a build may have none")]
    pub(crate) fn buffer_of(&self, length: usize) -> Vec<u8> {
        let is_short = |length: usize| length < SHORT_BYTES;
        let kept = self.received.lock().take(|buffer| is_short(buffer.len()) == is_short(length));
        let mut buffer = kept.unwrap_or_default();
        buffer.resize(length, 0);
        buffer
    }

    /// Keeps the buffer of a sent message for reuse.
    pub(crate) fn return_buffer(&self, buffer: Vec<u8>) {
        // A buffer of a short message would have to grow for the next long one.
        if buffer.capacity() >= SHORT_BYTES {
            self.to_send.lock().keep(buffer);
        }
    }

    /// Keeps the buffer of a received message for reuse.
    pub(crate) fn return_received(&self, buffer: Vec<u8>) {
        self.received.lock().keep(buffer);
    }

    /// Prints a line of a PE.
    pub(crate) fn print(&self, line: String) {
        let mut printed = self.printed.lock();
        printed.push(line);
        self.has_printed.store(true, Relaxed);
    }

    /// Whether there are printed lines to take.
    pub(crate) fn has_printed(&self) -> bool {
        self.has_printed.load(Relaxed)
    }

    /// Takes the lines that PEs have printed, in their order.
    pub(crate) fn take_printed(&self) -> Vec<String> {
        let mut printed = self.printed.lock();
        self.has_printed.store(false, Relaxed);
        std::mem::take(&mut *printed)
    }

    /// A PE hands a batch over, which is then sent to the PE `to`.
    pub(crate) fn hand_over(&self, to: u32, batch: Vec<u8>) {
        let batch = self.in_fitting_buffer(batch);
        let mut outgoing = self.outgoing.lock();
        outgoing.sent += 1;
        outgoing.sent_bytes += batch.len() as u64;
        outgoing.unsent_bytes += batch.len() as u64;
        outgoing.peak_unsent_bytes = outgoing.peak_unsent_bytes.max(outgoing.unsent_bytes);
        if outgoing.unsent_bytes > CONGESTED_BYTES {
            self.is_congested.store(true, Relaxed);
        }
        outgoing.batches.push((to, batch));
        self.has_outgoing.store(true, Relaxed);
        drop(outgoing);
        if self.has_sleeper.load(Relaxed) {
            self.sleeper.lock().iter().for_each(Thread::unpark);
        }
    }

    /// The calling thread, which sends, sleeps until a PE hands a batch over, or for this time. Rarely, a PE does
    /// not see `has_sleeper` and the calling thread does not see `has_outgoing`. Then it sleeps for the whole time. All else that it
    /// looks for waits until then.
    pub(crate) fn sleep(&self, time: Duration) {
        *self.sleeper.lock() = Some(std::thread::current());
        self.has_sleeper.store(true, Relaxed);
        if !self.has_outgoing.load(Relaxed) {
            std::thread::park_timeout(time);
        }
        self.has_sleeper.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_are_empty() {
        let desk = Desk::new(1);
        let [sent, executed] = [1, 2].map(|byte| vec![byte; 2 * SHORT_BYTES]);
        let [sent_at, executed_at] = [&sent, &executed].map(|buffer| buffer.as_ptr());
        desk.return_buffer(sent);
        desk.executed(0, executed);
        assert_eq!(desk.executed_bytes(0), 2 * SHORT_BYTES as u64);
        assert_eq!(desk.buffer_of(3).len(), 3, "this is a new one");
        let received = desk.buffer_of(2 * SHORT_BYTES - 1);
        assert_eq!((received.len(), received.as_ptr()), (2 * SHORT_BYTES - 1, executed_at));
        let buffer = desk.buffer();
        assert_eq!((buffer.len(), buffer.as_ptr()), (0, sent_at));
    }

    #[test]
    fn large_buffers_are_kept_up_to_a_sum_and_small_ones_up_to_a_number() {
        let desk = Desk::new(1);
        let kept = |capacity| {
            (0..1000).for_each(|_| desk.return_buffer(Vec::with_capacity(capacity)));
            let buffers = desk.to_send.lock();
            assert_eq!(buffers.bytes, buffers.free.iter().map(Vec::capacity).sum::<usize>());
            buffers.free.len()
        };
        assert_eq!(kept(4 << 20), 4);
        while desk.to_send.lock().take(|_| true).is_some() {}
        assert_eq!(desk.to_send.lock().bytes, 0);
        assert_eq!(kept(SHORT_BYTES - 1), 0);
        assert_eq!(kept(SHORT_BYTES), BUFFERS);
    }

    #[test]
    fn a_small_message_does_not_hold_a_large_buffer() {
        let desk = Desk::new(2);
        desk.return_buffer(Vec::with_capacity(4 << 20));
        let mut message = desk.buffer();
        message.push(7);
        let message = desk.in_fitting_buffer(message);
        assert!(message == [7] && message.capacity() < 100, "{} B", message.capacity());
        assert_eq!(desk.buffer().capacity(), 4 << 20, "it is free again");
    }

    #[test]
    fn a_batch_wakes_the_thread_that_sends() {
        let desk = Desk::new(2);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| desk.sleep(Duration::from_secs(60)));
            while !desk.has_sleeper.load(Relaxed) {
                std::thread::yield_now();
            }
            let begin = std::time::Instant::now();
            desk.hand_over(1, vec![0; 4]);
            sleeper.join().expect("no panic");
            assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        });
    }
}
