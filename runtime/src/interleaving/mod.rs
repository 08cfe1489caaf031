//! The order of deliveries on threads: recorded with `--record-order`, repeated with `--replay-order`.
//!
//! A PE is deterministic but for a few questions whose answers depend on other threads. While a run is recorded,
//! every question has a default answer; the file has the other answers, each with the number of default answers before
//! it, so that work within a PE costs no bytes.
//!
//! | question | asked | default | other answers |
//! |---|---|---|---|
//! | turn | at the begin of a turn, if the PE has own work | no mail | [`Event::Mail`] |
//! | flush | if the PE has no own work, once | it sends what it has collected | [`Event::Mail`] |
//! | wait | if the PE has flushed and has no own work | none | [`Event::Mail`], [`Event::Quiet`] |
//! | break | within a turn, now and then | no other PE has sent work | [`Event::Break`] |
//! | time | at the begin of a turn, while a message waits for a time | none is due | [`Event::Timer`] |
//! | plan | when a load-balancing step is decided | none | [`Event::Plan`] |
//! | sync | at a sync point, with `--lb-when auto` | none | [`Event::Sync`] |
//!
//! PEs that share the table of places would also race for its entries. So these runs have a directory per PE instead,
//! whose content follows from the deliveries. All messages between PEs are then orders in mailboxes.
//!
//! A replay runs all PEs in one thread. A PE continues as soon as the mailbox that its next event names has as many
//! messages as the event needs. The PEs form a Kahn process network, so every such schedule gives the same run.

mod event;
mod file;
mod recording;
mod replay;

pub(crate) use event::{Event, Plan};
pub(crate) use file::{ArrayHead, Head};
pub(crate) use recording::{PeRecording, Recording};
pub(crate) use replay::{Halted, PeReplay, Replay};

use crate::inbox::{Bag, Mail};
use equipoise_model::random::splitmix;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// What the flags ask for.
#[derive(Clone)]
pub(crate) enum Interleaving {
    /// Record the order of deliveries.
    Record(Arc<Recording>),
    /// Repeat a recorded order.
    Replay(Arc<Replay>),
}

impl Interleaving {
    /// Whether the run may end because PE `pe` exits, or fails if `fails`. In a replay, only the PE that ended the
    /// recorded run may. A file that is cut does not name this PE; then every failure ends the replay.
    pub(crate) fn may_end(&self, pe: u32, fails: bool) -> bool {
        match self {
            Interleaving::Record(_) => true,
            Interleaving::Replay(replay) => replay.ended_by() == Some(pe) || fails && replay.is_cut(),
        }
    }
}

/// The order of deliveries on one PE.
pub(crate) enum Interleaved {
    /// It is recorded.
    Record(Rc<PeRecording>),
    /// It is repeated.
    Replay(Rc<PeReplay>),
}

impl Interleaved {
    /// Answers whether no other PE has sent work, within a turn; `quiet` is the answer of the bell.
    pub(crate) fn quiet(&self, quiet: impl FnOnce() -> bool) -> bool {
        match self {
            Interleaved::Record(recording) => {
                let quiet = quiet();
                if quiet {
                    recording.note_default();
                } else {
                    recording.note(&Event::Break);
                }
                quiet
            }
            Interleaved::Replay(replay) => replay.quiet(),
        }
    }

    /// Takes messages from the mailbox of `from`: all that are there, or as many as when the run was recorded. False
    /// if there are none, or not yet enough.
    pub(crate) fn take<M, O>(&self, mail: &Mail<M, O>, from: u32, to: u32, bag: &mut Bag<M, O>) -> bool {
        match self {
            Interleaved::Record(recording) => {
                let taken = mail.take(from, to, bag);
                if taken {
                    debug_assert!(bag.one.is_none() && bag.items.is_empty(), "there is a table of places");
                    recording.note_mail(mail.number(from), bag.orders.len() as u32);
                }
                taken
            }
            Interleaved::Replay(replay) => {
                let count = replay.batch(mail.number(from));
                let taken = count.is_some_and(|count| mail.take_orders(from, to, count as usize, bag));
                if taken {
                    replay.advance();
                }
                taken
            }
        }
    }

    /// Counts an execution.
    pub(crate) fn executes(&self, array: u16, entry: u16, rank: u32) {
        match self {
            Interleaved::Record(recording) => recording.executions.add(array, entry, rank),
            Interleaved::Replay(replay) => replay.executions.add(array, entry, rank),
        }
    }
}

/// The executions of a PE: their number, and a digest of their sequence.
#[derive(Default)]
pub(crate) struct Executions {
    count: Cell<u64>,
    digest: Cell<u64>,
}

impl Executions {
    fn add(&self, array: u16, entry: u16, rank: u32) {
        self.count.set(self.count.get() + 1);
        let key = u64::from(array) << 48 | u64::from(entry) << 32 | u64::from(rank);
        self.digest.set(splitmix(self.digest.get() ^ key));
    }

    fn get(&self) -> (u64, u64) {
        (self.count.get(), self.digest.get())
    }

    /// Eight bits of the digest, which every [`Event::Mail`] carries.
    fn check(&self) -> u8 {
        self.digest.get() as u8
    }
}
