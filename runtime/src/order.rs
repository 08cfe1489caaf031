//! The closed list of orders that PEs send each other in addition to the messages of the program: orders about one
//! array ([`Order`], executed by `elements/orders.rs`), and orders about the run ([`PeOrder`], executed by
//! `scheduler.rs`).

use crate::load::{Sent, array_and_rank};
use crate::location::Known;
use crate::losses::Loads;
use crate::quiescence::Quiet;
use crate::reduction::{Pieces, Tally};
use crate::section::{Members, Source};
use equipoise_model::costs::EndCosts;
use equipoise_model::database::ObjectIndex;
use equipoise_strategies::decentral::{Letter, Totals};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::Arc;

/// An order about one array with messages `M` and slots `S`. Content that depends on neither has types of its own, because the code that
/// encodes this enum is compiled for each type of chares, and every field written here adds to it.
#[derive(Serialize, Deserialize)]
pub(crate) enum Order<M, S> {
    /// A message routed by a [`Directory`](crate::location::Directory).
    Message { rank: u32, epoch: u32, origin: u32, msg: M },
    /// The location of an element (sent to its home, or to a sender with an outdated entry).
    Located(Located),
    /// A broadcast (sent to PE 0, which numbers broadcasts).
    Broadcast(M),
    /// The `number`-th broadcast (sent to every PE).
    All { number: u32, msg: M },
    /// A message to elements on several PEs (sent to the first of these PEs).
    Multicast(Box<(Multicast, M)>),
    /// Contributions to a reduction whose target is this array (sent to the parent in the tree).
    Partial(Box<Partial<M>>),
    /// An element migrates to the receiving PE.
    Arrive { journey: Journey, slot: Box<S> },
    /// An encoded element migrates to the receiving PE, for `--migration encode` between threads.
    ArriveEncoded(Encoded),
    /// An element arrived (sent to the previous PE).
    Landed(Landed),
    /// A broadcast that an element missed while migrating (sent to the PE of the element).
    Missed { rank: u32, number: u32, msg: M },
    /// An element that was not created by an element of its array (sent to PE 0, which enters the element in the
    /// ledgers), to be created on PE `on`.
    Admit { on: u32, slot: Box<S> },
    /// An element to create on PE `on` (sent to its home).
    Create { journey: Journey, on: u32, slot: Box<S> },
    /// The element with this rank, of a bound array, has landed or is placed (sent by a PE to itself; see `elements/bound.rs`).
    Met(u32),
    /// The element with this rank, which has messages whose guards were false, was visited by an element of another array (sent by a PE to
    /// itself).
    Visited(u32),
}

impl<M, S> Order<M, S> {
    /// Whether the order delivers a message of the program.
    pub(crate) fn is_message(&self) -> bool {
        match self {
            Order::Message { .. }
            | Order::Broadcast(_)
            | Order::All { .. }
            | Order::Multicast(_)
            | Order::Missed { .. } => true,
            Order::Located(_)
            | Order::Partial(_)
            | Order::Arrive { .. }
            | Order::ArriveEncoded(_)
            | Order::Landed(_)
            | Order::Admit { .. }
            | Order::Create { .. }
            | Order::Met(_)
            | Order::Visited(_) => false,
        }
    }
}

/// The location of an element.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Located {
    pub rank: u32,
    pub news: Known,
}

/// An encoded element that migrates.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Encoded {
    pub journey: Journey,
    #[serde(with = "crate::codec::numbers")]
    pub bytes: Vec<u8>,
}

/// The arrival of an element.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Landed {
    /// The number of its departure.
    pub flight: u32,
    /// The PE on which it arrived, and how many broadcasts this PE had delivered.
    pub at: u32,
    pub broadcasts: u32,
    /// The buffer of the encoded element, for reuse.
    #[serde(skip)]
    pub buffer: Vec<u8>,
}

/// The origin of a migrating element.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Journey {
    /// The PE that the element left.
    pub from: u32,
    /// The number of the departure on that PE.
    pub flight: u32,
    /// The epoch of the migration, where PEs have directories.
    pub epoch: u32,
    /// The load-balancing step that waits for the element.
    pub step: Option<u32>,
}

/// The receivers of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Receivers {
    /// One element.
    One(u32),
    /// Every element.
    All,
    /// The members of a section.
    Section(Members),
}

impl Receivers {
    /// A rank of `array` that is listed and not below `count`.
    pub(crate) fn outside(&self, array: u16, count: u32) -> Option<u32> {
        match self {
            Receivers::One(rank) => Some(*rank).filter(|rank| *rank >= count),
            Receivers::All => None,
            Receivers::Section(members) => {
                let mine = members.by_array().find(|(of, _)| *of == array);
                let last = mine.and_then(|(_, keys)| keys.last()).map(|&key| array_and_rank(key).1);
                last.filter(|rank| *rank >= count)
            }
        }
    }
}

/// The way of a message to elements on several PEs: along a tree of these PEs, once to each.
#[derive(Serialize, Deserialize)]
pub(crate) struct Multicast {
    /// The PE of the sender.
    pub origin: u32,
    /// The PEs that the sender knows the receivers on, in ascending order: first the PE to which this order goes, then the PEs
    /// to which that PE forwards the message.
    pub branches: Vec<Branch>,
}

/// A PE, and the receivers of a multicast there, each with the epoch that the sender knew.
pub(crate) type Branch = (u32, Vec<(u32, u32)>);

/// A part of a reduction: contributions of some elements of an array or a section to an entry of an array.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Partial<M> {
    pub of: Share,
    /// The contributions.
    pub pieces: Pieces<M>,
}

/// The reduction to which contributions belong, and how many they are.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Share {
    /// The elements that contribute.
    pub source: Source,
    /// The number of the reduction.
    pub round: u32,
    /// The entry that receives the result.
    pub entry: u16,
    /// The elements that receive the result.
    pub to: Receivers,
    /// Whether each receiver receives the combination of the contributions up to its own.
    pub prefixes: bool,
    /// The contributor with the lowest array and rank, as [`element_key`](crate::load::element_key).
    pub by: u64,
    /// The number of contributions.
    pub tally: Tally,
}

impl Share {
    /// Whether a contribution belongs to the same target.
    #[inline(always)]
    pub(crate) fn agrees(&self, entry: u16, to: &Receivers, prefixes: bool) -> bool {
        self.entry == entry && self.prefixes == prefixes && self.to == *to
    }

    /// Whether these are contributions to this reduction.
    pub(crate) fn is_of(&self, source: Source, round: u32) -> bool {
        self.source == source && self.round == round
    }
}

/// How many elements of an array called `at_sync` for the step of this round.
pub(crate) type Calls = ((u16, u32), Tally);

/// An order about the run.
#[derive(Serialize, Deserialize)]
pub(crate) enum PeOrder {
    /// Elements of a subtree called `at_sync`, and PEs of it say their loads since the last sync point (sent to the parent in the
    /// tree).
    AtSync { calls: Vec<Calls>, loads: Option<Loads> },
    /// The elements of an array on this PE have called `at_sync` (sent by the PE to itself).
    AllCalled,
    /// An element ended (sent to PE 0).
    Ended(Box<Ended>),
    /// Asks every PE for its load before sync point number `point`, unless it has said it.
    Weigh { point: u32 },
    /// Asks every PE for its statistics.
    Collect,
    /// The statistics of all PEs of a subtree (sent to the parent in the tree).
    Statistics(Vec<Statistics>),
    /// The plans of a load-balancing step for the PEs of a subtree (sent to its root). A PE without a plan has no migrations.
    Migrate { step: u32, plans: Vec<Plan> },
    /// `count` elements that the receiver expects in a step ended before they could migrate.
    WillNotArrive { step: u32, count: u32 },
    /// Resumes the elements of a PE if the load-balancing step is over (sent by the PE to itself).
    TryResume { step: u32 },
    /// A load-balancing step without a centre.
    Decentral(Box<Decentral>),
    /// The reply to a parked closure.
    Reply { parked: u64, answer: Answer },
    /// Nothing is in flight.
    Quiet(Quiet),
    /// Orders from a PE of another process, encoded (sent by the connection to other processes).
    #[serde(skip)]
    Batch { from_process: u32, bytes: Vec<u8> },
}

/// Orders of load-balancing step `step` without a centre.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Decentral {
    /// Begins the step (sent along the tree), with the costs of migrations, which only PE 0's process measures.
    Begin { step: u32, migration: Option<EndCosts> },
    /// Begins a round of the strategy; `totals` are those of the round before (sent along the tree).
    Round { step: u32, round: u32, totals: Totals },
    /// A letter of a round, from a PE.
    Letter { step: u32, round: u32, from: u32, letter: Arc<Letter> },
    /// A letter of this PE has arrived.
    Arrived { step: u32 },
    /// What PEs of a subtree add to the totals of the round (sent to the parent in the tree).
    Sum { step: u32, pes: u32, totals: Totals },
    /// What PEs of a subtree have decided (sent to the parent in the tree).
    Decided { step: u32, pes: u32, account: Account },
    /// Ends the step, at the sync point with this number: the objects move, or none does (sent along the tree). A PE without elements may
    /// receive it after the begin of the next step.
    End { step: u32, point: u32, is_applied: bool },
}

/// What PEs have decided in a load-balancing step without a centre, for its report.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Account {
    /// The loads before the step.
    pub(crate) loads: Totals,
    /// The longest period since the last step.
    pub(crate) wall_seconds: f64,
    /// The longest time that the strategy took.
    pub(crate) strategy_seconds: f64,
    /// The heaviest PE after the step.
    pub(crate) after_seconds: f64,
    /// The most seconds of background and of objects that cannot move.
    pub(crate) fixed_seconds: f64,
    /// The heaviest object that can move, on its PE.
    pub(crate) heaviest_seconds: f64,
    pub(crate) objects: u64,
    pub(crate) migrations: u64,
    pub(crate) migrated_bytes: u64,
    /// The most seconds that a PE needs for migrations; 0 if the costs are unknown.
    pub(crate) migration_seconds: f64,
}

impl Account {
    /// Adds that of other PEs.
    pub(crate) fn add(&mut self, other: &Account) {
        self.loads.add(&other.loads);
        for (most, seconds) in [
            (&mut self.wall_seconds, other.wall_seconds),
            (&mut self.strategy_seconds, other.strategy_seconds),
            (&mut self.after_seconds, other.after_seconds),
            (&mut self.fixed_seconds, other.fixed_seconds),
            (&mut self.heaviest_seconds, other.heaviest_seconds),
            (&mut self.migration_seconds, other.migration_seconds),
        ] {
            *most = most.max(seconds);
        }
        self.objects += other.objects;
        self.migrations += other.migrations;
        self.migrated_bytes += other.migrated_bytes;
    }
}

/// The tallies of an element that ended, for PE 0.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// Its array.
    pub array: u16,
    /// The number of its next reduction, and its tally for that reduction.
    pub reductions: (u32, Tally),
    /// The number of its next load-balancing barrier, and its tally for that barrier.
    pub syncs: (u32, Tally),
}

/// A reply to a parked closure.
#[derive(Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Encoded.
    Bytes(#[serde(with = "crate::codec::numbers")] Vec<u8>),
    /// Unencoded, within a process.
    #[serde(skip)]
    Value(Box<dyn Any + Send>),
}

/// The records of one PE for a period between load-balancing steps.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Statistics {
    pub(crate) pe: u32,
    pub(crate) wall_seconds: f64,
    pub(crate) idle_seconds: f64,
    /// The measured time of the objects, including deliveries that charged.
    pub(crate) measured_seconds: f64,
    /// The speed factor of the PE; 1 is normal.
    pub(crate) speed: f64,
    pub(crate) objects: Vec<ObjectStatistics>,
    /// Communication from the PE itself, outside elements.
    pub(crate) edges: Vec<Sent>,
}

/// The records of one element.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ObjectStatistics {
    pub(crate) array: u16,
    pub(crate) rank: u32,
    pub(crate) index: ObjectIndex,
    pub(crate) load_seconds: f64,
    /// The part of the load that is of the last interval between sync points.
    pub(crate) interval_part: f32,
    pub(crate) bytes: Option<u64>,
    pub(crate) migratable: bool,
    pub(crate) edges: Vec<Sent>,
}

/// The migrations of one PE in a step.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) pe: u32,
    /// Elements to migrate: array, rank, destination PE.
    pub(crate) moves: Vec<(u16, u32, u32)>,
    /// The number of elements to expect.
    pub(crate) incoming: u32,
}
