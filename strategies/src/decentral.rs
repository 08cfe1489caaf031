//! Strategies without a centre: PEs decide together, each knowing only its own objects, in rounds of letters.
//!
//! A [`Member`] is the part of a strategy on one PE. In a round it reads the letters that were sent to it in the round before, sends
//! letters, and adds to [`Totals`], which all members see in the next round. What ends the protocol depends on rounds and totals only, so
//! all members end it in the same round.
//!
//! The runtime runs one member on every PE. The strategies themselves run all members in one place: for replays, and for
//! steps of a run at which PE 0 has the database for another reason. Both give the same placement, to the last bit: totals are sums of
//! integers, and letters are read in the order of their senders.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use equipoise_model::assignment::Note;

/// A strategy that PEs can execute together.
pub trait Decentral: Send + Sync {
    /// Checks whether this number of PEs can take part.
    ///
    /// # Errors
    /// A sentence that says what to do.
    fn check(&self, ranks: u32) -> Result<(), String> {
        let _ = ranks;
        Ok(())
    }

    /// The part of the PE with these objects.
    fn member(&self, own: Own) -> Box<dyn Member>;
}

/// The part of a strategy on one PE.
pub trait Member: Send {
    /// Takes part in a round: reads the letters of the round before, ascending by sender, and returns what it adds to the totals of this
    /// round. `totals` are those of the round before. `None` if the protocol is over.
    fn round(
        &mut self,
        totals: &Totals,
        received: &[(u32, Arc<Letter>)],
        sends: &mut Sends,
    ) -> Option<Totals>;

    /// The decision, after the protocol.
    fn outcome(&mut self) -> Outcome;
}

/// What a PE knows at the begin of the protocol.
#[derive(Clone, Debug)]
pub struct Own {
    /// Its rank among the PEs that take part.
    pub rank: u32,
    /// The number of PEs that take part.
    pub ranks: u32,
    /// The seed of the run.
    pub seed: u64,
    /// The load-balancing step.
    pub step: u64,
    /// The speed of the PE; 1 is normal.
    pub speed: f64,
    /// The seconds of its background and of its objects that cannot move.
    pub fixed_seconds: f64,
    /// Its other objects.
    pub objects: Vec<Item>,
}

/// An object that can move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its number; of equal objects the one with the lowest comes first.
    pub key: u64,
    /// Its id in the database.
    pub id: u64,
    /// The rank of the PE that has it in memory until the protocol is over.
    pub home: u32,
    /// Its load, at speed 1.
    pub load_seconds: f64,
    /// Its encoded size; 0 if unknown.
    pub bytes: u64,
}

/// What members send each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Letter {
    /// PEs below the average.
    Known(Vec<Known>),
    /// Objects that the receiver may decline, each with its turn among the offers of the sender.
    Offers(Vec<(u32, Item)>),
    /// Which of the offers are accepted; and if one is not, the seconds of the PE that declined it.
    Answer(Vec<bool>, Option<f64>),
    /// Objects that the receiver has from now on.
    Given(Vec<Item>),
    /// The keys of objects of the receiver that the sender has at the end.
    Taken(Vec<u64>),
}

/// A PE below the average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Its rank.
    pub rank: u32,
    /// Its speed, rounded so that long lists are short.
    pub speed: f32,
    /// Its seconds when it said so.
    pub seconds: f64,
}

/// Letters that a member receives, each with its sender.
pub type Letters = Vec<(u32, Arc<Letter>)>;

/// Letters that a member sends in a round, each to some members.
pub type Sends = Vec<(Vec<u32>, Arc<Letter>)>;

/// The unit of exact sums: 2^-44, about 6e-14. Sums end at 2^84, about 2e25.
const UNIT: f64 = 1.0 / (1u64 << 44) as f64;

/// Sums and maxima over all members. The sums are exact, so their order does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// The load at speed 1, in units of [`UNIT`] seconds.
    work: u128,
    /// The speeds, in units of [`UNIT`].
    speed: u128,
    /// The seconds of the heaviest PE.
    pub max_seconds: f64,
    /// Messages of gossip, objects that moved, and objects that were declined.
    pub counts: [u64; 3],
}

impl Totals {
    /// Those of one member.
    pub fn of(max_seconds: f64, counts: [u64; 3]) -> Totals {
        Totals { max_seconds, counts, ..Totals::default() }
    }

    /// Those of one member that also says its load and speed.
    pub fn with_work(max_seconds: f64, speed: f64) -> Totals {
        let fixed_point = |value: f64| (value / UNIT) as u128;
        Totals {
            work: fixed_point(max_seconds * speed),
            speed: fixed_point(speed),
            max_seconds,
            counts: [0; 3],
        }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Totals) {
        self.work = self.work.saturating_add(other.work);
        self.speed = self.speed.saturating_add(other.speed);
        self.max_seconds = self.max_seconds.max(other.max_seconds);
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, count)| *sum += count);
    }

    /// The seconds of every PE if the load could be divided arbitrarily.
    pub fn average_seconds(&self) -> f64 {
        if self.speed == 0 { 0.0 } else { self.work as f64 / self.speed as f64 }
    }
}

/// What a member has decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The objects that leave its PE: key, and rank of the new PE.
    pub leaving: Vec<(u64, u32)>,
    /// The objects that come to its PE, and their bytes.
    pub coming: (u32, u64),
    /// The seconds of its PE with the new objects.
    pub seconds: f64,
    /// What is notable about the protocol; the same on all PEs.
    pub notes: Vec<Note>,
}
