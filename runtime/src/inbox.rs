//! Mailboxes between threads: one mailbox per (array, sender, receiver), always emptied completely, and one bell per PE.
//!
//! A message is in the receiver's mailbox when the send returns. The lock of a mailbox is shared by
//! exactly two threads. A sender rings the receiver's bell only when it fills an empty mailbox. So sending to a
//! busy receiver touches no further cache line, and messages form batches. The first message is stored next to the
//! lock, so a single message moves one cache line.
//!
//! # Why no message is lost
//! A bell is a word with a bit per mailbox (modulo 64) and a flag that its owner sleeps.
//! 1. The sender fills the mailbox, then sets the bit, then reads the flag.
//! 2. The receiver clears the word, then empties the mailboxes of the bits it found. The next message in
//!    an emptied mailbox rings again.
//! 3. To sleep, the receiver sets the flag, then reads the word. All four accesses are sequentially consistent,
//!    so either the sender sees the flag and wakes the receiver, or the receiver sees the bit and does not sleep.
//!
//! The tests below check this protocol under loom, in all interleavings with up to `LOOM_MAX_PREEMPTIONS` preemptions:
//! `RUSTFLAGS="--cfg equipoise_loom" cargo test -p equipoise-inbox-tests --release --target-dir target/loom`. The package has this file alone.

#[cfg(not(equipoise_loom))]
mod primitives {
    pub(super) use parking_lot::Mutex;
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU64};
    pub(super) use std::thread::{Thread, current, park, park_timeout};

    /// No operation: the surrounding accesses are sequentially consistent.
    #[inline(always)]
    pub(super) fn barrier() {}
}

#[cfg(equipoise_loom)]
mod primitives {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64};
    pub(super) use loom::thread::{Thread, current, park};

    /// loom has no time.
    pub(super) fn park_timeout(_: std::time::Duration) {
        park();
    }

    /// loom models sequentially consistent accesses as weaker ones; only its fences are sequentially consistent.
    pub(super) fn barrier() {
        loom::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// loom's lock with the signature of `parking_lot::Mutex`.
    #[derive(Default)]
    pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no panic under this lock")
        }
    }
}

use crossbeam_utils::CachePadded;
use primitives::{AtomicBool, AtomicU64, Mutex, Thread, barrier, current, park, park_timeout};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// The bells of all PEs of a process.
pub(crate) struct Bells(Box<[Bell]>);

#[derive(Default)]
struct Bell {
    word: CachePadded<AtomicU64>,
    asleep: CachePadded<AtomicBool>,
    owner: OnceLock<Thread>,
}

impl Bells {
    /// The bells of `pes` PEs.
    pub(crate) fn new(pes: u32) -> Self {
        Bells((0..pes).map(|_| Bell::default()).collect())
    }

    /// Makes this thread the owner of the bell of `pe`.
    pub(crate) fn own(&self, pe: u32) {
        let _ = self.0[pe as usize].owner.set(current());
    }

    /// Whether the bell is silent; a relaxed read that may be outdated.
    #[inline(always)]
    pub(crate) fn quiet(&self, pe: u32) -> bool {
        self.0[pe as usize].word.load(Relaxed) == 0
    }

    /// Whether the bell is silent; a sequentially consistent read.
    pub(crate) fn quiet_seq_cst(&self, pe: u32) -> bool {
        self.0[pe as usize].word.load(SeqCst) == 0
    }

    /// Silences the bell; returns the bits of the mailboxes to empty.
    #[inline(always)]
    pub(crate) fn take(&self, pe: u32) -> u64 {
        if self.quiet(pe) { 0 } else { self.0[pe as usize].word.swap(0, SeqCst) }
    }

    #[inline]
    fn ring(&self, pe: u32, bits: u64) {
        let bell = &self.0[pe as usize];
        bell.word.fetch_or(bits, SeqCst);
        barrier();
        if bell.asleep.load(SeqCst) {
            Self::wake(bell);
        }
    }

    #[cold]
    fn wake(bell: &Bell) {
        if let Some(owner) = bell.owner.get() {
            owner.unpark();
        }
    }

    /// Rings every bell, for an event outside the mailboxes.
    pub(crate) fn ring_all(&self) {
        for pe in 0..self.0.len() {
            self.ring(pe as u32, 1);
        }
    }

    /// Sleeps until the bell rings, or at most for this time.
    #[cold]
    pub(crate) fn sleep(&self, pe: u32, most: Option<Duration>) {
        let bell = &self.0[pe as usize];
        bell.asleep.store(true, SeqCst);
        barrier();
        if bell.word.load(SeqCst) == 0 {
            most.map_or_else(park, park_timeout);
        }
        bell.asleep.store(false, SeqCst);
    }
}

/// The content of a mailbox: messages for elements and orders for managers, taken together.
pub(crate) struct Bag<M, O> {
    /// The first message.
    pub(crate) one: Option<M>,
    /// All later messages.
    pub(crate) items: Vec<M>,
    pub(crate) orders: Vec<O>,
}

impl<M, O> Default for Bag<M, O> {
    fn default() -> Self {
        Bag { one: None, items: Vec::new(), orders: Vec::new() }
    }
}

impl<M, O> Bag<M, O> {
    /// Adds a message.
    #[inline(always)]
    pub(crate) fn add(&mut self, msg: M) {
        if self.one.is_none() && self.items.is_empty() {
            self.one = Some(msg);
        } else {
            self.items.push(msg);
        }
    }

    fn is_empty(&self) -> bool {
        self.one.is_none() && self.items.is_empty() && self.orders.is_empty()
    }
}

struct Mailbox<M, O> {
    /// Whether the mailbox has content, so that a mailbox that shares its bit need not be locked.
    full: AtomicBool,
    bag: Mutex<Bag<M, O>>,
}

/// The mailboxes of one array (or of the run itself) between all pairs of PEs.
pub(crate) struct Mail<M, O> {
    id: u32,
    pes: u32,
    boxes: Box<[CachePadded<Mailbox<M, O>>]>,
}

impl<M, O> Mail<M, O> {
    /// The bytes of the empty mailboxes between `pes` PEs.
    pub(crate) fn bytes(pes: u32) -> u64 {
        size_of::<CachePadded<Mailbox<M, O>>>() as u64 * u64::from(pes) * u64::from(pes)
    }

    /// Mailboxes number `id` between `pes` PEs.
    pub(crate) fn new(id: u32, pes: u32) -> Self {
        let mailbox = |_| CachePadded::new(Mailbox { full: AtomicBool::new(false), bag: Mutex::default() });
        let count = pes as usize * pes as usize;
        Mail { id, pes, boxes: (0..count).map(mailbox).collect() }
    }

    /// The number of the mailbox from `from`, among all mailboxes of a receiver.
    pub(crate) fn number(&self, from: u32) -> u32 {
        self.id * self.pes + from
    }

    #[inline(always)]
    fn mailbox(&self, from: u32, to: u32) -> &Mailbox<M, O> {
        &self.boxes[to as usize * self.pes as usize + from as usize]
    }

    /// The number of messages for elements in the mailboxes to a PE, also of those that travel as orders.
    pub(crate) fn messages(&self, to: u32, is_message: impl Fn(&O) -> bool) -> usize {
        let count = |from| {
            let bag = self.mailbox(from, to).bag.lock();
            let orders = bag.orders.iter().filter(|order| is_message(order)).count();
            bag.items.len() + usize::from(bag.one.is_some()) + orders
        };
        (0..self.pes).map(count).sum()
    }

    /// Runs `put` on the mailbox. The receiver can take the additions when this returns.
    #[inline(always)]
    pub(crate) fn push(&self, from: u32, to: u32, bells: &Bells, put: impl FnOnce(&mut Bag<M, O>)) {
        let mailbox = self.mailbox(from, to);
        let mut bag = mailbox.bag.lock();
        let first = bag.is_empty();
        put(&mut bag);
        if first {
            mailbox.full.store(true, Relaxed);
        }
        drop(bag);
        if first {
            bells.ring(to, 1 << (self.number(from) % 64));
        }
    }

    /// Swaps the mailbox with an empty bag, so that the sender reuses the memory of the bag; false if the mailbox was
    /// empty.
    #[inline]
    pub(crate) fn take(&self, from: u32, to: u32, empty: &mut Bag<M, O>) -> bool {
        let mailbox = self.mailbox(from, to);
        // Outdated only if the sender has not rung yet; then it rings later.
        if !mailbox.full.load(Relaxed) {
            return false;
        }
        let mut bag = mailbox.bag.lock();
        std::mem::swap(&mut *bag, empty);
        mailbox.full.store(false, Relaxed);
        true
    }

    /// Moves the first `count` orders of the mailbox to `bag`; false if there are fewer.
    pub(crate) fn take_orders(&self, from: u32, to: u32, count: usize, bag: &mut Bag<M, O>) -> bool {
        let mut mailbox = self.mailbox(from, to).bag.lock();
        let is_enough = count <= mailbox.orders.len();
        if is_enough {
            bag.orders.extend(mailbox.orders.drain(..count));
        }
        is_enough
    }
}

#[cfg(all(test, equipoise_loom))]
mod exhaustive {
    use super::*;
    use loom::sync::Arc;

    /// The receiver sleeps when it finds nothing; each sender sends `messages` messages. If a wake-up could be
    /// lost, loom would find the execution in which the receiver sleeps forever.
    fn check(senders: u32, messages: u32, shared_bit: bool) {
        loom::model(move || {
            // Mail 64 shares its bits of the bell with mail 0.
            let pes = senders + 1;
            let other = if shared_bit { 64 } else { 1 };
            let world =
                Arc::new((Bells::new(pes), Mail::<u32, u32>::new(0, pes), Mail::<u32, u32>::new(other, pes)));
            // Not joined: loom would take a late wake-up for the end of the joined thread.
            for from in 1..=senders {
                let world = world.clone();
                loom::thread::spawn(move || {
                    for message in 0..messages {
                        let mail = if message % 2 == 0 { &world.1 } else { &world.2 };
                        mail.push(from, 0, &world.0, |bag| bag.add(message));
                    }
                });
            }
            let (bells, one, two) = (&world.0, &world.1, &world.2);
            bells.own(0);
            let mut got = 0;
            while got < senders * messages {
                if bells.take(0) == 0 {
                    bells.sleep(0, None);
                    continue;
                }
                for mail in [one, two] {
                    for from in 1..=senders {
                        let mut bag = Bag::default();
                        if mail.take(from, 0, &mut bag) {
                            got += bag.one.iter().count() as u32 + bag.items.len() as u32;
                        }
                    }
                }
            }
        });
    }

    #[test]
    fn no_message_and_no_wake_up_is_lost_between_two_threads() {
        check(1, 2, false);
    }

    #[test]
    fn mailboxes_that_share_a_bit_of_the_bell_lose_no_message() {
        check(1, 2, true);
    }

    #[test]
    fn no_message_and_no_wake_up_is_lost_between_three_threads() {
        check(2, 1, false);
    }
}

#[cfg(all(test, not(equipoise_loom)))]
mod tests {
    use super::*;

    #[test]
    fn delivers_every_message_once_and_in_order_to_a_receiver_that_sleeps() {
        const MESSAGES: u64 = 200_000;
        let (bells, mail) = (Bells::new(3), Mail::<u64, ()>::new(5, 3));
        std::thread::scope(|scope| {
            for from in [1, 2] {
                let (bells, mail) = (&bells, &mail);
                scope.spawn(move || {
                    for message in 0..MESSAGES {
                        mail.push(from, 0, bells, |bag| bag.add(message));
                    }
                });
            }
            bells.own(0);
            let mut next = [0, 0];
            while next != [MESSAGES; 2] {
                if bells.take(0) == 0 {
                    bells.sleep(0, None);
                    continue;
                }
                for from in [1, 2] {
                    let mut bag = Bag::default();
                    mail.take(from, 0, &mut bag);
                    for message in bag.one.into_iter().chain(bag.items) {
                        assert_eq!(message, next[from as usize - 1]);
                        next[from as usize - 1] += 1;
                    }
                }
            }
        });
    }
}
