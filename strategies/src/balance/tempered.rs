//! `TemperedLB`: gossip and transfers, several times over, and the best iteration counts.
//!
//! vt's strategy of that name: J. Lifflander, N. L. Slattengren, P. P. Pébaÿ, P. Miller, F. Rizzi, M. T.
//! Bettencourt, "Optimizing distributed load balancing for workloads with time-varying imbalance", CLUSTER
//! 2021. As in Grapevine ([`super::distributed`]) PEs below the average are made known by gossip and PEs
//! above it draw whom to give objects to. But nobody declines, a transfer may leave the receiver above the
//! average if it is not as heavy as the giver was, objects go in an order that needs few migrations, and
//! gossip and transfers are repeated: `iters` times from where the last left off, `trials` times from the
//! beginning. Of all iterations the one with the least maximum is the answer, or what was, if none is
//! better.
//!
//! Parameters have vt's names, values and defaults, in any case and with or without hyphens. Every PE is
//! simulated with its own dice and with what it knows. Rounds of gossip are in step (vt's `SyncInform`, the
//! one that it can reproduce), the probabilities of a draw are vt's `NormByMax`. vt names `Recursive` as a
//! value of `transfer` and has no implementation, so it is refused.

use std::str::FromStr;

use rayon::prelude::*;

use super::gossip::{Gossip, KNOWN, OrAuto, Ranks, dice, spread};
use super::load::Work;
use crate::registry::{Named, Param, ParamError, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

#[cfg(test)]
mod tests;
mod transfer;

pub use transfer::{Criterion, Ordering, Transfer};

/// `TemperedLB` for the registry.
pub const NAMED: Named = Named {
    name: "TemperedLB",
    aliases: &[],
    help: "vt's gossip balancer (Lifflander et al. 2021): as DistributedLB, repeated, with fewer migrations; \
           the best iteration counts.",
    params: &[
        Param {
            key: "knowledge",
            default: "Log",
            help: "`Log` (fanout^rounds = PEs), `Complete` (all tell all once), `UserDefined` (give both)",
        },
        Param { key: "fanout", default: "auto", help: "PEs that each one tells per round" },
        Param { key: "rounds", default: "auto", help: "rounds of gossip" },
        Param { key: "iters", default: "4", help: "times of gossip and transfers" },
        Param { key: "trials", default: "1", help: "repetitions of all this from the beginning" },
        Param {
            key: "criterion",
            default: "ModifiedGrapevine",
            help: "when a transfer is made: `Grapevine` (the receiver stays below the average), \
                   `ModifiedGrapevine` (it stays below what the giver had)",
        },
        Param {
            key: "ordering",
            default: "FewestMigrations",
            help: "which objects go first: `Arbitrary`, `ElmID`, `FewestMigrations`, `SmallObjects`, \
                   `LargestObjects`",
        },
        Param {
            key: "transfer",
            default: "Original",
            help: "`Original` (object by object), `SwapClusters` (also two for one another)",
        },
        KNOWN,
    ],
    needs_communication: false,
    make: |params: &mut Params| Ok(Box::new(Tempered::take(params)?)),
};

/// How fanout and rounds of the gossip are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// So that fanout^rounds is about the number of PEs; one of the two may be given.
    Log,
    /// Everybody tells everybody, once.
    Complete,
    /// As given.
    UserDefined {
        /// PEs that each one tells per round.
        fanout: usize,
        /// Rounds.
        rounds: usize,
    },
    /// As [`Self::Log`], with this fanout.
    LogFanout(usize),
    /// As [`Self::Log`], with so many rounds.
    LogRounds(usize),
}

impl Knowledge {
    /// Fanout and rounds for so many PEs, as in vt.
    fn resolve(self, ranks: usize) -> (usize, usize) {
        let all = ranks as f64;
        let fanout = |rounds: usize| (all.powf(1.0 / rounds as f64).ceil() as usize, rounds);
        match self {
            Knowledge::Log => fanout((all.log2().sqrt().round() as usize).max(1)),
            Knowledge::Complete => (ranks - 1, 1),
            Knowledge::UserDefined { fanout, rounds } => (fanout, rounds),
            Knowledge::LogFanout(1) => (1, ranks),
            Knowledge::LogFanout(each) => (each, ((all.ln() / (each as f64).ln()).ceil() as usize).max(1)),
            Knowledge::LogRounds(rounds) => fanout(rounds),
        }
    }
}

/// The strategy that simulates every PE deciding for itself, and keeps the best of several times.
#[derive(Clone, Copy, Debug)]
pub struct Tempered {
    /// How fanout and rounds of the gossip are found.
    pub knowledge: Knowledge,
    /// Times of gossip and transfers.
    pub iters: usize,
    /// Repetitions of all this from the beginning.
    pub trials: usize,
    /// When a transfer is made.
    pub criterion: Criterion,
    /// Which objects go first.
    pub ordering: Ordering,
    /// What is transferred at once.
    pub transfer: Transfer,
    /// How many others a PE remembers at most.
    pub known: usize,
}

impl Tempered {
    fn take(params: &mut Params) -> Result<Tempered, ParamError> {
        let word: Word = params.take("knowledge")?;
        let OrAuto(fanout) = params.take("fanout")?;
        let OrAuto(rounds) = params.take("rounds")?;
        let bad = |params: &Params, expected: &str| Err(params.bad("knowledge", &word.0, expected));
        let knowledge = match (word.simple().as_str(), fanout, rounds) {
            ("log", None, None) => Knowledge::Log,
            ("log", Some(fanout), None) => Knowledge::LogFanout(fanout),
            ("log", None, Some(rounds)) => Knowledge::LogRounds(rounds),
            ("log", ..) => return bad(params, "give fanout or rounds, or take knowledge=UserDefined"),
            ("complete", None, None) => Knowledge::Complete,
            ("complete", ..) => return bad(params, "fanout and rounds follow from it, so give neither"),
            ("userdefined", Some(fanout), Some(rounds)) => Knowledge::UserDefined { fanout, rounds },
            ("userdefined", ..) => return bad(params, "give both fanout and rounds"),
            _ => return bad(params, "known are Log, Complete, UserDefined"),
        };
        Ok(Tempered {
            knowledge,
            iters: params.take("iters")?,
            trials: params.take("trials")?,
            criterion: params.take("criterion")?,
            ordering: params.take("ordering")?,
            transfer: params.take("transfer")?,
            known: params.take("known")?,
        })
    }

    fn balance(&self, database: &Database, work: &Work, placement: Vec<u32>, seed: u64) -> Assignment {
        let target_seconds = work.average_seconds();
        let count = work.available.len();
        let mut best = Ranks::new(work, placement.clone());
        let mut best_seconds = best.max_seconds();
        if best_seconds <= target_seconds || count < 2 {
            return Assignment::new(placement);
        }
        let (fanout, rounds) = self.knowledge.resolve(count);
        let gossip = Gossip { fanout, rounds, known: self.known, avoids_known: true };
        let mut dice = dice(seed, database.step, count);
        let (mut messages, mut iterations, mut best_iteration) = (0, 0, 0);
        for _ in 0..self.trials {
            let mut ranks = Ranks::new(work, placement.clone());
            for _ in 0..self.iters {
                let is_underloaded: Vec<bool> =
                    ranks.seconds.iter().map(|&seconds| seconds < target_seconds).collect();
                let heard = spread(gossip, &is_underloaded, &mut dice);
                let stage = transfer::Stage {
                    database,
                    work,
                    criterion: self.criterion,
                    ordering: self.ordering,
                    target_seconds,
                };
                let moves = match self.transfer {
                    Transfer::Original => {
                        let ranks = &ranks;
                        let each = dice.par_iter_mut().zip(&heard.known).enumerate();
                        each.flat_map_iter(|(rank, (dice, known))| stage.one_by_one(ranks, rank, known, dice))
                            .collect()
                    }
                    Transfer::SwapClusters => stage.swaps(&ranks, &heard.known),
                };
                for (object, rank) in moves {
                    ranks.placement[object as usize] = work.available[rank];
                }
                // Added up anew, so that nothing is left of rounding.
                ranks = Ranks::new(work, ranks.placement);
                (messages, iterations) = (messages + heard.messages, iterations + 1);
                if ranks.max_seconds() < best_seconds {
                    (best_seconds, best_iteration) = (ranks.max_seconds(), iterations);
                    best.placement.clone_from(&ranks.placement);
                }
            }
        }
        Assignment {
            pe_of: best.placement,
            notes: vec![
                ("gossip messages".into(), messages as f64),
                ("iterations".into(), f64::from(iterations)),
                ("best iteration".into(), f64::from(best_iteration)),
            ],
        }
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
        let (placement, _) = work.settle();
        Ok(self.balance(database, &work, placement, seed))
    }
}

/// A word in any case, with or without hyphens.
#[derive(Clone, Debug)]
struct Word(String);

impl Word {
    fn simple(&self) -> String {
        self.0.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
    }

    /// What the word means of these; otherwise a phrase that names them all.
    fn among<T: Copy>(&self, known: &[(&str, T)]) -> Result<T, String> {
        let simple = self.simple();
        let found = known.iter().find(|(name, _)| name.to_lowercase() == simple);
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
