//! What PEs tell each other beside the messages of the program: orders about one array, typed by
//! its chare, and orders about the run.

use crate::array::Slot;
use crate::balancer::{Plan, Statistics};
use crate::chare::Chare;
use crate::location::Known;
use crate::reduction::{Pieces, Tally};
use serde::{Deserialize, Serialize};
use std::any::Any;

/// An order about one array.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) enum Order<T: Chare> {
    /// A message found through a [`Directory`](crate::location::Directory).
    Message { rank: u32, epoch: u32, origin: u32, msg: T::Msg },
    /// Where an element was sent, to its home or to a sender that did not know.
    Located { rank: u32, news: Known },
    /// A message for all elements, to PE 0, which numbers it.
    Broadcast { msg: T::Msg },
    /// The `number`-th message for all elements, to every PE.
    All { number: u32, msg: T::Msg },
    /// Contributions to a reduction whose target is this array, to PE 0.
    Partial(Box<Partial<T::Msg>>),
    /// An element comes to stay.
    Arrive { journey: Journey, slot: Box<Slot<T>> },
    /// The same, encoded: what `--migration encode` sends between threads.
    ArriveEncoded {
        journey: Journey,
        #[serde(with = "crate::codec::numbers")]
        bytes: Vec<u8>,
    },
    /// An element has arrived at PE `at`, which had seen `broadcasts` broadcasts; its buffer comes back.
    Landed {
        flight: u32,
        at: u32,
        broadcasts: u32,
        #[serde(skip)]
        buffer: Vec<u8>,
    },
    /// A broadcast that an element missed on its way, to the PE where it waits for it.
    Missed { rank: u32, number: u32, msg: T::Msg },
    /// An element created by somebody else than its own array, to PE 0, which enters it in the
    /// ledgers.
    Admit { slot: Box<Slot<T>> },
    /// An element to be created at its home.
    Create { journey: Journey, slot: Box<Slot<T>> },
}

/// Where an element comes from, and how the place it left knows it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Journey {
    /// The PE it left.
    pub from: u32,
    /// Its number among that PE's departures.
    pub flight: u32,
    /// Which of its moves this is, where a directory counts them.
    pub epoch: u32,
    /// The load-balancing step that waits for it.
    pub step: Option<u32>,
}

/// Who a message is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Receivers {
    /// One element.
    One(u32),
    /// Every element.
    All,
    /// These elements.
    Some(Box<[u32]>),
}

/// A part of a reduction: what some elements of one array contributed to one entry of another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Partial<M> {
    /// The contributing array.
    pub source: u16,
    /// Which of its reductions.
    pub round: u32,
    /// The entry that receives the result,
    pub entry: u16,
    /// and the elements that do.
    pub to: Receivers,
    /// Who contributed.
    pub tally: Tally,
    /// What they contributed.
    pub pieces: Pieces<M>,
}

impl<M> Partial<M> {
    pub(crate) fn new(source: u16, round: u32, entry: u16, to: Receivers) -> Self {
        Partial { source, round, entry, to, tally: Tally::default(), pieces: Pieces::default() }
    }
}

/// An order about the run.
#[derive(Serialize, Deserialize)]
pub(crate) enum PeOrder {
    /// Elements of `array` wait for load-balancing step `round`; to PE 0.
    AtSync { array: u16, round: u32, tally: Tally },
    /// An element ended; to PE 0.
    Ended(Box<Ended>),
    /// Send your statistics to PE 0.
    Collect,
    /// The statistics of a PE, to PE 0.
    Statistics(Box<Statistics>),
    /// What to do in this load-balancing step.
    Carry(Box<Plan>),
    /// That many elements you wait for will not come: they ended before they could leave.
    Excused { step: u32, count: u32 },
    /// Look whether the load-balancing step is over; a PE says so to itself.
    Look { step: u32 },
    /// The answer to a parked closure.
    Reply { parked: u64, answer: Answer },
    /// Nothing was in flight, for the `round`-th time: send what had been waiting for that.
    Quiet { round: u64 },
}

/// What PE 0 has to know of an element that ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// Its array.
    pub array: u16,
    /// The reduction it would have contributed to next, and what it still had to say there.
    pub reductions: (u32, Tally),
    /// The load-balancing barrier it would have come to next, and what it still had to say there.
    pub syncs: (u32, Tally),
}

/// A value on its way to a closure.
#[derive(Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Encoded.
    Bytes(#[serde(with = "crate::codec::numbers")] Vec<u8>),
    /// As it is, inside a process.
    #[serde(skip)]
    Value(Box<dyn Any + Send>),
}
