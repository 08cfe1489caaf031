//! `TemperedLB`: repeated gossip and transfers; the best iteration is kept.
//!
//! vt's strategy of that name: J. Lifflander, N. L. Slattengren, P. P. Pébaÿ, P. Miller, F. Rizzi, M. T.
//! Bettencourt, "Optimizing distributed load balancing for workloads with time-varying imbalance", CLUSTER
//! 2021. As in Grapevine ([`super::distributed`]), gossip spreads which PEs are below the average, and PEs above the
//! average choose receivers at random. The differences: receivers do not decline; a transfer may take the receiver
//! above the average if it stays below the previous load of the donor; objects are offered in an order that needs few
//! migrations; gossip and transfers are repeated: `iters` times from the previous iteration's placement, `trials`
//! times from the initial placement. The result is the iteration with the least maximum, or the initial placement if
//! no iteration is better.
//!
//! Parameters have vt's names, values and defaults, in any case and with or without hyphens. Every PE has its own random
//! number generator and its own information: in a run it is a member (`member.rs`), in a replay all members are in one place. Rounds of
//! gossip are synchronous (vt's `SyncInform`, its reproducible mode); the probabilities of receivers are vt's `NormByMax`. vt lists
//! `Recursive` as a value of `transfer` but does not implement it, so it is rejected.

use std::str::FromStr;

use equipoise_model::params::{Param, ParamError, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::gossip::{Gossip, KNOWN, MAX_FANOUT, MAX_KNOWN, MAX_ROUNDS, participating};
use super::load::Work;
use super::members::decide;
use crate::decentral::Decentral;
use crate::descriptor::Recipe;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

mod member;
mod swaps;
#[cfg(test)]
mod tests;
mod transfer;

pub use transfer::{Criterion, Ordering, Transfer};

/// `TemperedLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "TemperedLB",
    form: "",
    help: "vt's gossip balancer (Lifflander et al. 2021): DistributedLB repeated, with fewer migrations; the \
           best iteration is kept.",
    params: &[
        Param {
            key: "knowledge",
            default: "Log",
            help: "how fanout and rounds are chosen: `Log` (fanout^rounds = number of PEs), `Complete` (every PE \
                   informs every other PE once), `UserDefined` (give both)",
        },
        Param { key: "fanout", default: "auto", help: "PEs that each PE informs per round, 1 to 1000" },
        Param { key: "rounds", default: "auto", help: "rounds of gossip, 1 to 1000" },
        Param { key: "iters", default: "4", help: "iterations of gossip and transfers, 1 to 100" },
        Param {
            key: "trials",
            default: "1",
            help: "repetitions of all iterations from the initial placement, 1 to 100",
        },
        Param {
            key: "criterion",
            default: "ModifiedGrapevine",
            help: "when a transfer is made: `Grapevine` (the receiver stays below the average), \
                   `ModifiedGrapevine` (the receiver stays below the previous load of the donor)",
        },
        Param {
            key: "ordering",
            default: "FewestMigrations",
            help: "order in which objects are offered: `Arbitrary`, `ElmID`, `FewestMigrations`, `SmallObjects`, \
                   `LargestObjects`",
        },
        Param {
            key: "transfer",
            default: "Original",
            help: "`Original` (one object at a time), `SwapClusters` (also exchanges of two objects)",
        },
        KNOWN,
    ],
    item: Recipe {
        needs_communication: false,
        make: |params: &mut Params| Ok(Box::new(Tempered::take(params)?)),
    },
};

/// The maximum of `iters` and of `trials`.
const MAX_REPETITIONS: usize = 100;

/// How fanout and rounds of the gossip are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// fanout^rounds is about the number of PEs.
    Log,
    /// Every PE informs every other PE once.
    Complete,
    /// As given.
    UserDefined {
        /// PEs that each PE informs per round.
        fanout: usize,
        /// Number of rounds.
        rounds: usize,
    },
    /// As [`Self::Log`], with this fanout.
    LogFanout(usize),
    /// As [`Self::Log`], with this number of rounds.
    LogRounds(usize),
}

impl Knowledge {
    /// Fanout and rounds for `ranks` PEs, as in vt.
    fn resolve(self, ranks: usize) -> (usize, usize) {
        let all = ranks as f64;
        let fanout = |rounds: usize| (all.powf(1.0 / rounds as f64).ceil() as usize, rounds);
        match self {
            Knowledge::Log => fanout((all.log2().sqrt().round() as usize).max(1)),
            Knowledge::Complete => (ranks - 1, 1),
            Knowledge::UserDefined { fanout, rounds } => (fanout, rounds),
            Knowledge::LogFanout(1) => (1, ranks.min(MAX_ROUNDS)),
            Knowledge::LogFanout(each) => (each, ((all.ln() / (each as f64).ln()).ceil() as usize).max(1)),
            Knowledge::LogRounds(rounds) => fanout(rounds),
        }
    }
}

/// The strategy with which every PE decides by itself, and which keeps the best of several iterations.
#[derive(Clone, Copy, Debug)]
pub struct Tempered {
    /// How fanout and rounds of the gossip are chosen.
    pub knowledge: Knowledge,
    /// Iterations of gossip and transfers.
    pub iters: usize,
    /// Repetitions of all iterations from the initial placement.
    pub trials: usize,
    /// When a transfer is made.
    pub criterion: Criterion,
    /// The order in which objects are offered.
    pub ordering: Ordering,
    /// The unit of a transfer.
    pub transfer: Transfer,
    /// Maximum number of underloaded PEs that a PE remembers.
    pub known: usize,
}

impl Tempered {
    fn take(params: &mut Params) -> Result<Tempered, ParamError> {
        let word: Word = params.take("knowledge")?;
        let fanout = params.take_count_or_auto("fanout", MAX_FANOUT)?;
        let rounds = params.take_count_or_auto("rounds", MAX_ROUNDS)?;
        let bad = |params: &Params, expected: &str| Err(params.bad("knowledge", &word.0, expected));
        let knowledge = match (word.normalized().as_str(), fanout, rounds) {
            ("log", None, None) => Knowledge::Log,
            ("log", Some(fanout), None) => Knowledge::LogFanout(fanout),
            ("log", None, Some(rounds)) => Knowledge::LogRounds(rounds),
            ("log", ..) => {
                return bad(params, "give only one of fanout and rounds, or use knowledge=UserDefined");
            }
            ("complete", None, None) => Knowledge::Complete,
            ("complete", ..) => return bad(params, "Complete determines fanout and rounds; leave out both"),
            ("userdefined", Some(fanout), Some(rounds)) => Knowledge::UserDefined { fanout, rounds },
            ("userdefined", ..) => return bad(params, "give both fanout and rounds"),
            _ => return bad(params, "known are Log, Complete, UserDefined"),
        };
        Ok(Tempered {
            knowledge,
            iters: params.take_count("iters", MAX_REPETITIONS)?,
            trials: params.take_count("trials", MAX_REPETITIONS)?,
            criterion: params.take("criterion")?,
            ordering: params.take("ordering")?,
            transfer: params.take("transfer")?,
            known: params.take_count("known", MAX_KNOWN)?,
        })
    }

    fn gossip(&self, ranks: usize) -> Gossip {
        let (fanout, rounds) = self.knowledge.resolve(ranks);
        Gossip { fanout, rounds, known: self.known, avoids_known: true }
    }
}

impl Strategy for Tempered {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        let (placement, _) = work.placement();
        let work = participating(work, &placement);
        if work.available.len() > 1 {
            self.gossip(work.available.len()).check(work.available.len(), self.iters * self.trials)?;
        }
        match self.transfer {
            Transfer::Original => {
                let (placement, notes) = decide(self, &work, placement, seed);
                Ok(Assignment { notes, ..Assignment::new(placement) })
            }
            Transfer::SwapClusters => Ok(self.exchange(database, &work, placement, seed)),
        }
    }

    fn decentral(&self) -> Option<&dyn Decentral> {
        // An exchange locks two PEs, which members cannot do.
        (self.transfer == Transfer::Original).then_some(self)
    }
}

/// A word in any case, with or without hyphens.
#[derive(Clone, Debug)]
struct Word(String);

impl Word {
    fn normalized(&self) -> String {
        self.0.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
    }

    /// The value of the word in `known`; otherwise a message that lists the known words.
    fn value_in<T: Copy>(&self, known: &[(&str, T)]) -> Result<T, String> {
        let normalized = self.normalized();
        let found = known.iter().find(|(name, _)| name.to_lowercase() == normalized);
        let names: Vec<&str> = known.iter().map(|&(name, _)| name).collect();
        found.map(|&(_, value)| value).ok_or_else(|| format!("known are {}", names.join(", ")))
    }
}

impl FromStr for Word {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Word(text.into()))
    }
}
