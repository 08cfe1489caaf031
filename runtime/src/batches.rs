//! Batches of encoded orders for PEs of other processes.
//!
//! A PE encodes an order straight behind what it has for the same receiver ([`Post`]). A batch leaves the PE at the end of
//! a turn, or as soon as it is large, into the [`Desk`] of its process, from where the transport sends it. One batch is
//! one message of the network: its cost is shared by all its orders.
//!
//! A batch begins with its receiver (4 bytes). Then every order has a header of 8 bytes, its array (2 bytes) and the
//! length of its encoding (6 bytes). Numbers are little-endian.
//!
//! Buffers of batches that were executed are used again.

use crate::codec::{self, CodecError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::Thread;
use std::time::Duration;

/// A batch of this many bytes leaves at once: small enough for a core's cache, large enough for the network.
const FULL_BYTES: usize = 1 << 15;

/// The number of free buffers that a process keeps for reuse, and their capacity together.
const BUFFERS: usize = 256;
pub(crate) const KEPT_BYTES: usize = 32 << 20;

/// While more bytes than this wait to be sent, PEs run only what arrives from others.
const CONGESTED_BYTES: u64 = 64 << 20;

/// In the place of an array: an order about the run. No array has this number.
const RUN: u16 = u16::MAX;

/// In the place of a receiver: the message is a control message between processes, and no batch of orders.
const CONTROL: u32 = u32::MAX;

/// The number of bytes before the first order.
const RECEIVER_BYTES: usize = 4;

/// The number of bytes before every order.
const HEADER_BYTES: usize = 8;

/// What a message of the network is.
pub(crate) enum Kind {
    /// Orders for this PE.
    Orders(u32),
    /// A control message between processes.
    Control,
}

/// What the first bytes of a message of the network say; none if there are too few.
pub(crate) fn kind(batch: &[u8]) -> Option<Kind> {
    let receiver = u32::from_le_bytes(*batch.first_chunk()?);
    Some(if receiver == CONTROL { Kind::Control } else { Kind::Orders(receiver) })
}

/// The encoding of a control message.
pub(crate) fn control_bytes(batch: &[u8]) -> &[u8] {
    batch.get(RECEIVER_BYTES..).unwrap_or_default()
}

/// The orders of a batch: the array of each (`None`: an order about the run), and its encoding. Ends early if the batch is
/// damaged.
pub(crate) fn orders(batch: &[u8]) -> impl Iterator<Item = (Option<u16>, &[u8])> {
    let mut rest = batch.get(RECEIVER_BYTES..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (header, behind) = rest.split_first_chunk::<HEADER_BYTES>()?;
        let header = u64::from_le_bytes(*header);
        let (array, length) = (header as u16, (header >> 16) as usize);
        let (order, next) = behind.split_at_checked(length)?;
        rest = next;
        Some(((array != RUN).then_some(array), order))
    })
}

/// What the PEs of a process and its connection to other processes exchange.
pub(crate) struct Desk {
    outgoing: Mutex<Outgoing>,
    has_outgoing: AtomicBool,
    /// The bytes of batches that were executed so far, by the process that sent them.
    executed_bytes: Box<[AtomicU64]>,
    /// Whether more than [`CONGESTED_BYTES`] wait to be sent, so that PEs must not send more on their own account.
    is_congested: AtomicBool,
    /// Buffers for reuse, with their old content: a receiver overwrites it, which is faster than filling with zeros.
    buffers: Mutex<Buffers>,
    /// Lines that PEs print.
    printed: Mutex<Vec<String>>,
    has_printed: AtomicBool,
    /// The thread that sends, while it sleeps because there is nothing to do.
    sleeper: Mutex<Option<Thread>>,
    has_sleeper: AtomicBool,
}

/// Buffers for reuse, and the sum of their capacities.
#[derive(Default)]
struct Buffers {
    free: Vec<Vec<u8>>,
    bytes: usize,
}

impl Buffers {
    /// The buffer that was kept last, whose memory is most likely in the cache; a new one if there is none.
    fn take(&mut self) -> Vec<u8> {
        let buffer = self.free.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
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
            buffers: Mutex::default(),
            printed: Mutex::default(),
            has_printed: AtomicBool::new(false),
            sleeper: Mutex::default(),
            has_sleeper: AtomicBool::new(false),
        }
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

    /// The most bytes that waited to be sent at one time.
    pub(crate) fn peak_unsent_bytes(&self) -> u64 {
        self.outgoing.lock().peak_unsent_bytes
    }

    /// A batch from a process was executed; its buffer is used again.
    pub(crate) fn executed(&self, from: u32, batch: Vec<u8>) {
        self.executed_bytes[from as usize].fetch_add(batch.len() as u64, Relaxed);
        self.return_buffer(batch);
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

    /// An empty buffer.
    fn buffer(&self) -> Vec<u8> {
        let mut buffer = self.buffers.lock().take();
        // Bytes of an earlier batch in a new one would be false messages.
        buffer.clear();
        buffer
    }

    /// A control message between processes as a message of the network.
    pub(crate) fn control<C: Serialize>(&self, message: &C) -> Result<Vec<u8>, CodecError> {
        let mut bytes = self.buffer();
        bytes.extend_from_slice(&CONTROL.to_le_bytes());
        codec::encode_into(message, &mut bytes)?;
        Ok(self.in_fitting_buffer(bytes))
    }

    /// A message in a buffer that is not much larger, as flow control counts the bytes of messages that wait.
    fn in_fitting_buffer(&self, message: Vec<u8>) -> Vec<u8> {
        if message.capacity() <= 2 * message.len().max(FULL_BYTES) {
            return message;
        }
        let copy = message.clone();
        self.return_buffer(message);
        copy
    }

    /// A buffer of this length with any content, to receive in.
    #[cfg(any(feature = "mpi", test))]
    pub(crate) fn buffer_of(&self, length: usize) -> Vec<u8> {
        let mut buffer = self.buffers.lock().take();
        buffer.resize(length, 0);
        buffer
    }

    /// Keeps a buffer for reuse.
    pub(crate) fn return_buffer(&self, buffer: Vec<u8>) {
        self.buffers.lock().keep(buffer);
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

    fn hand_over(&self, to: u32, batch: Vec<u8>) {
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

    /// The calling thread, which sends, sleeps until a PE hands a batch over, or for this time. Rarely neither thread sees the
    /// flag of the other, and it sleeps for the whole time. All else that it looks for waits until then.
    pub(crate) fn sleep(&self, time: Duration) {
        *self.sleeper.lock() = Some(std::thread::current());
        self.has_sleeper.store(true, Relaxed);
        if !self.has_outgoing.load(Relaxed) {
            std::thread::park_timeout(time);
        }
        self.has_sleeper.store(false, Relaxed);
    }
}

/// The batches that a PE is filling.
pub(crate) struct Post {
    desk: Arc<Desk>,
    /// By receiver.
    open: Vec<RefCell<Vec<u8>>>,
    /// The receivers whose batch is not empty.
    receivers: RefCell<Vec<u32>>,
    /// Whether this PE itself drives the connection to other processes, and so must end its turns from time to time.
    drives: bool,
    /// How often the PE was asked whether it may continue since its last turn.
    asked: Cell<u32>,
    /// By process: whether it is on another computer.
    is_far: Box<[bool]>,
    /// The number of PEs in each process.
    local_pes: u32,
    /// The messages to other processes on this computer, and to other computers, so far.
    near: Cell<Amount>,
    far: Cell<Amount>,
}

/// Messages, and their encoded bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// The number of messages, including those of the runtime.
    pub messages: u64,
    /// Their encoded bytes.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, other: Amount) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

/// How often a PE that drives the connection may continue before it ends its turn.
const ASKED: u32 = 8;

impl Post {
    /// The batches of a PE. `is_far` says of every process whether it is on another computer; each has `local_pes` PEs.
    pub(crate) fn new(desk: Arc<Desk>, is_far: Box<[bool]>, local_pes: u32, drives: bool) -> Self {
        Post {
            desk,
            open: (0..is_far.len() * local_pes as usize).map(|_| RefCell::default()).collect(),
            is_far,
            local_pes,
            near: Cell::default(),
            far: Cell::default(),
            receivers: RefCell::default(),
            drives,
            asked: Cell::new(0),
        }
    }

    /// The messages so far to other processes on this computer, and to other computers.
    pub(crate) fn traffic(&self) -> (Amount, Amount) {
        (self.near.get(), self.far.get())
    }

    /// The desk of the process.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Adds an order to the batch for a PE of another process.
    ///
    /// # Errors
    /// If the order cannot be encoded; then the batch is as before.
    pub(crate) fn add<O: Serialize>(&self, to: u32, array: Option<u16>, order: &O) -> Result<(), CodecError> {
        let mut open = self.open[to as usize].borrow_mut();
        let is_first = open.is_empty();
        if is_first {
            if open.capacity() == 0 {
                *open = self.desk.buffer();
            }
            open.extend_from_slice(&to.to_le_bytes());
        }
        let start = open.len();
        open.extend_from_slice(&[0; HEADER_BYTES]);
        if let Err(error) = codec::encode_into(order, &mut open) {
            open.truncate(if is_first { 0 } else { start });
            return Err(error);
        }
        let length = (open.len() - start - HEADER_BYTES) as u64;
        let amount = if self.is_far[(to / self.local_pes) as usize] { &self.far } else { &self.near };
        let Amount { messages, bytes } = amount.get();
        amount.set(Amount { messages: messages + 1, bytes: bytes + length });
        let header = u64::from(array.unwrap_or(RUN)) | length << 16;
        open[start..start + HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
        if is_first {
            self.receivers.borrow_mut().push(to);
        }
        if open.len() >= FULL_BYTES {
            self.receivers.borrow_mut().retain(|&other| other != to);
            self.desk.hand_over(to, std::mem::take(&mut *open));
        }
        Ok(())
    }

    /// Hands all batches over. A PE does so at the end of every turn and before it rests.
    #[inline]
    pub(crate) fn dispatch(&self) {
        self.asked.set(0);
        if !self.receivers.borrow().is_empty() {
            self.dispatch_all();
        }
    }

    fn dispatch_all(&self) {
        for to in self.receivers.borrow_mut().drain(..) {
            self.desk.hand_over(to, self.open[to as usize].take());
        }
    }

    /// Whether more than [`CONGESTED_BYTES`] wait to be sent, so that PEs must not send more on their own account.
    #[inline]
    pub(crate) fn is_congested(&self) -> bool {
        self.desk.is_congested.load(Relaxed)
    }

    /// Whether the PE may continue its turn, as far as the connection to other processes is concerned.
    #[inline]
    pub(crate) fn may_continue(&self) -> bool {
        if !self.drives {
            return true;
        }
        let asked = self.asked.get() + 1;
        self.asked.set(asked);
        asked < ASKED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(desk: &Desk) -> Vec<(u32, Vec<u8>)> {
        let mut taken = Vec::new();
        desk.take_outgoing(&mut taken, &mut 0);
        taken
    }

    #[test]
    fn orders_come_out_as_they_went_in_and_large_batches_leave_at_once() {
        let desk = Arc::new(Desk::new(2));
        let post = Post::new(Arc::clone(&desk), [false, true].into(), 2, false);
        post.add(3, Some(7), &(1u8, 2u8)).expect("encodes");
        post.add(3, None, &"text").expect("encodes");
        post.add(2, Some(0), &()).expect("encodes");
        assert!(taken(&desk).is_empty() && desk.sent() == 0);
        let (near, far) = post.traffic();
        assert_eq!((near, far.messages, far.bytes), (Amount::default(), 3, 2 + 12));
        post.dispatch();
        assert_eq!(desk.sent(), 2);
        let mut batches = taken(&desk);
        batches.sort();
        let [(2, empty), (3, two)] = &batches[..] else { panic!("{batches:?}") };
        assert!(matches!(kind(two), Some(Kind::Orders(3))));
        let text = codec::encode(&"text").expect("encodes");
        assert_eq!(orders(two).collect::<Vec<_>>(), [(Some(7), &[1, 2][..]), (None, &text[..])]);
        assert_eq!(orders(empty).collect::<Vec<_>>(), [(Some(0), &[][..])]);
        assert_eq!(orders(&two[..two.len() - 1]).count(), 1, "a damaged batch ends early");
        post.add(1, Some(1), &vec![0u8; FULL_BYTES]).expect("encodes");
        assert_eq!((desk.sent(), taken(&desk).len()), (3, 1));
        let bytes = batches.iter().map(|(_, batch)| batch.len()).sum::<usize>();
        assert!(desk.peak_unsent_bytes() > FULL_BYTES as u64 + bytes as u64);
    }

    #[test]
    fn an_order_that_cannot_be_encoded_leaves_no_bytes() {
        struct Refuses;
        impl Serialize for Refuses {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::{Error, SerializeTuple};
                let mut tuple = serializer.serialize_tuple(2)?;
                tuple.serialize_element(&7u64)?;
                Err(S::Error::custom("refused"))
            }
        }
        let desk = Arc::new(Desk::new(2));
        let post = Post::new(Arc::clone(&desk), [false, false].into(), 1, false);
        assert!(post.add(1, None, &Refuses).is_err());
        post.dispatch();
        assert_eq!(desk.sent(), 0);
        post.add(1, None, &5u8).expect("encodes");
        assert!(post.add(1, None, &Refuses).is_err());
        post.dispatch();
        let batches = taken(&desk);
        assert_eq!(orders(&batches[0].1).collect::<Vec<_>>(), [(None, &[5][..])]);
    }

    #[test]
    fn buffers_are_used_again_and_are_empty() {
        let desk = Desk::new(1);
        desk.executed(0, vec![1, 2, 3]);
        let received = desk.buffer_of(2);
        assert_eq!(received.len(), 2);
        desk.return_buffer(received);
        assert_eq!(desk.executed_bytes(0), 3);
        let buffer = desk.buffer();
        assert!(buffer.is_empty() && buffer.capacity() >= 3);
    }

    #[test]
    fn large_buffers_are_kept_up_to_a_sum_and_small_ones_up_to_a_number() {
        let desk = Desk::new(1);
        let kept = |capacity| {
            (0..1000).for_each(|_| desk.return_buffer(Vec::with_capacity(capacity)));
            let buffers = desk.buffers.lock();
            assert_eq!(buffers.bytes, buffers.free.iter().map(Vec::capacity).sum::<usize>());
            buffers.free.len()
        };
        assert_eq!(kept(4 << 20), 8);
        while desk.buffers.lock().take().capacity() != 0 {}
        assert_eq!(desk.buffers.lock().bytes, 0);
        assert_eq!(kept(16), BUFFERS);
    }

    #[test]
    fn a_small_message_does_not_hold_a_large_buffer() {
        let desk = Desk::new(2);
        desk.return_buffer(Vec::with_capacity(4 << 20));
        let message = desk.control(&7u8).expect("encodes");
        assert!(message.len() < 10 && message.capacity() < 100, "{} B", message.capacity());
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
