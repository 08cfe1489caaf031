//! `DistributedLB`: PEs above the average hand objects to PEs they heard of by gossip.
//!
//! Charm++'s strategy of that name: H. Menon, L. V. Kalé, "A distributed dynamic load balancer for iterative
//! applications", SC 2013 (Grapevine). PEs below the average spread their loads (`gossip.rs`). Then, in
//! phases, each PE above a threshold proposes its lightest objects to PEs it knows, drawn with a probability
//! in proportion to 1 - load/average (or 1 - load/target, once nobody below the average is left); a PE that
//! would rise too high declines, and tells what it has. Both limits begin half-way between maximum and
//! average, so that the heaviest PEs are relieved first, and come down as the maximum does. Where a phase
//! brought nothing, PEs below the threshold give as well; what a PE takes is not restricted by that, as it is
//! in Charm++, so that objects that are a large part of the average still find a place.
//!
//! In Charm++ every PE decides for itself; here all of them are simulated, each with its own dice and with
//! what it knows, so that a recorded step shows what the real thing would have done. Proposals of a phase
//! reach their receivers in the order they were made, as if all PEs were equally fast. Objects on PEs that
//! take none are placed before.

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::gossip::{Gossip, KNOWN, OrAuto, Ranks, dice, draw, spread};
use super::load::Work;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `DistributedLB` for the registry.
pub const NAMED: Named = Named {
    name: "DistributedLB",
    aliases: &[],
    help: "PEs hear by gossip who is below the average and hand it objects (Menon, Kalé 2013), as if no PE \
           knew all: what a balancer without a centre can do. Moves many small objects.",
    params: &[
        Param { key: "imbalance", default: "0.05", help: "max/avg - 1 at which it ends" },
        Param { key: "phases", default: "10", help: "most phases of handing over" },
        Param { key: "fanout", default: "2", help: "PEs that each one tells per round" },
        Param { key: "rounds", default: "auto", help: "rounds of gossip; `auto`: log2 of the PEs" },
        KNOWN,
    ],
    needs_communication: false,
    make: |params: &mut Params| {
        let imbalance = params.take_imbalance()?;
        let phases = params.take("phases")?;
        let OrAuto(fanout) = params.take("fanout")?;
        let OrAuto(rounds) = params.take("rounds")?;
        Ok(Box::new(Distributed { imbalance, phases, fanout, rounds, known: params.take("known")? }))
    },
};

/// The strategy that simulates every PE deciding for itself.
#[derive(Clone, Copy, Debug)]
pub struct Distributed {
    /// How far above the average a PE may be: max/avg - 1.
    pub imbalance: f64,
    /// Phases of handing over at most.
    pub phases: usize,
    /// PEs that each one tells per round; if it is left open, 2.
    pub fanout: Option<usize>,
    /// Rounds of gossip; if it is left open, log2 of the number of PEs, rounded up.
    pub rounds: Option<usize>,
    /// How many others a PE remembers at most.
    pub known: usize,
}

impl Strategy for Distributed {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        let (placement, _) = work.settle();
        Ok(self.balance(&work, placement, seed, database.step))
    }
}

/// An object that `sender` wants to hand to `receiver`: the `turn`-th of its proposals in this phase.
#[derive(Clone, Copy, Debug)]
struct Proposal {
    turn: u32,
    sender: u32,
    object: u32,
    receiver: u32,
    /// The position of the receiver in what the sender knows.
    position: u32,
}

impl Distributed {
    fn balance(&self, work: &Work, placement: Vec<u32>, seed: u64, step: u64) -> Assignment {
        let average_seconds = work.average_seconds();
        let target_seconds = (1.0 + self.imbalance) * average_seconds;
        let mut ranks = Ranks::new(work, placement);
        let mut max_seconds = ranks.max_seconds();
        if max_seconds <= target_seconds || work.available.len() < 2 {
            return Assignment::new(ranks.placement);
        }
        let count = work.available.len();
        let mut dice = dice(seed, step, count);
        let gossip = Gossip {
            fanout: self.fanout.unwrap_or(2),
            rounds: self.rounds.unwrap_or((count as f64).log2().ceil() as usize),
            known: self.known,
            avoids_known: false,
        };
        let is_underloaded: Vec<bool> =
            ranks.seconds.iter().map(|&seconds| seconds < average_seconds).collect();
        let heard = spread(gossip, &is_underloaded, &mut dice);
        // What each rank believes of those it knows; it changes by what it does and by what it is told.
        let mut beliefs: Vec<Vec<f64>> = (heard.known.iter())
            .map(|known| known.iter().map(|&rank| ranks.seconds[rank as usize]).collect())
            .collect();

        let mut limits = Limits::new(average_seconds, target_seconds, max_seconds);
        let (mut phases, mut declined) = (0, 0);
        while phases < self.phases && max_seconds > target_seconds {
            phases += 1;
            let proposals = propose(&ranks, &heard.known, &mut beliefs, &mut dice, &limits);
            let moved = answer(&mut ranks, &mut beliefs, &proposals, limits.taking_seconds, work);
            declined += proposals.len() - moved;
            if moved == 0 && limits.giving_seconds <= target_seconds {
                break;
            }
            let before = std::mem::replace(&mut max_seconds, ranks.max_seconds());
            let giving_seconds = target_seconds.max(limits.giving_seconds / 2.0 + average_seconds / 2.0);
            limits = Limits::new(average_seconds, target_seconds, max_seconds);
            if before - max_seconds < 0.01 * average_seconds {
                limits.giving_seconds = giving_seconds;
            }
        }
        Assignment {
            pe_of: ranks.placement,
            notes: vec![
                ("gossip messages".into(), heard.messages as f64),
                ("phases".into(), phases as f64),
                ("proposals declined".into(), declined as f64),
            ],
        }
    }
}

/// Who gives and who takes in a phase.
struct Limits {
    average_seconds: f64,
    target_seconds: f64,
    /// A rank above this gives.
    giving_seconds: f64,
    /// No rank takes more than up to this, which is never above the maximum.
    taking_seconds: f64,
}

impl Limits {
    /// Both half-way between maximum and average, but not below the target.
    fn new(average_seconds: f64, target_seconds: f64, max_seconds: f64) -> Limits {
        let halfway = target_seconds.max(average_seconds / 2.0 + max_seconds / 2.0);
        Limits { average_seconds, target_seconds, giving_seconds: halfway, taking_seconds: halfway }
    }
}

/// What all ranks that give propose, in the order the proposals arrive.
fn propose(
    ranks: &Ranks,
    known: &[Vec<u32>],
    beliefs: &mut [Vec<f64>],
    dice: &mut [ChaCha8Rng],
    limits: &Limits,
) -> Vec<Proposal> {
    let of_one = |(sender, (beliefs, dice)): (usize, (&mut Vec<f64>, &mut ChaCha8Rng))| {
        let mut proposals = Vec::new();
        let mut seconds = ranks.seconds[sender];
        let mut weights = Vec::new();
        for &object in &ranks.objects[sender] {
            if seconds <= limits.giving_seconds {
                break;
            }
            let after = |position: usize| {
                beliefs[position] + ranks.seconds_of(object, known[sender][position] as usize)
            };
            // A rank that was underloaded knows itself, and may have been given too much since.
            let takes = |position: usize| {
                let after = after(position);
                after <= limits.taking_seconds && after < seconds && known[sender][position] != sender as u32
            };
            // When nobody below the average is left, one below the target will do.
            let drawn = [limits.average_seconds, limits.target_seconds].into_iter().find_map(|scale| {
                let weight = |position: usize| {
                    let weight = 1.0 - beliefs[position] / scale;
                    if weight > 0.0 && takes(position) { weight } else { 0.0 }
                };
                weights.clear();
                weights.extend((0..beliefs.len()).map(weight));
                draw(dice, &weights)
            });
            // The lightest object fits nowhere, so none does.
            let Some(position) = drawn else { break };
            let receiver = known[sender][position] as usize;
            beliefs[position] = after(position);
            seconds -= ranks.seconds_of(object, sender);
            proposals.push(Proposal {
                turn: proposals.len() as u32,
                sender: sender as u32,
                object,
                receiver: receiver as u32,
                position: position as u32,
            });
        }
        proposals
    };
    let gives = |sender: usize| ranks.seconds[sender] > limits.giving_seconds;
    let all = beliefs.par_iter_mut().zip(dice).enumerate().filter(|&(sender, _)| gives(sender));
    let mut proposals: Vec<Proposal> = all.flat_map_iter(of_one).collect();
    proposals.sort_unstable_by_key(|proposal| (proposal.turn, proposal.sender));
    proposals
}

/// Hands over what the receivers accept, and gives the number of objects that moved.
fn answer<'a>(
    ranks: &mut Ranks<'a>,
    beliefs: &mut [Vec<f64>],
    proposals: &[Proposal],
    taking_seconds: f64,
    work: &'a Work<'a>,
) -> usize {
    let mut moved = 0;
    for &Proposal { sender, object, receiver, position, .. } in proposals {
        let after = ranks.seconds[receiver as usize] + ranks.seconds_of(object, receiver as usize);
        if after > taking_seconds {
            beliefs[sender as usize][position as usize] = ranks.seconds[receiver as usize];
            continue;
        }
        ranks.placement[object as usize] = work.available[receiver as usize];
        ranks.seconds[receiver as usize] = after;
        moved += 1;
    }
    if moved > 0 {
        // Added up anew, so that nothing is left of rounding.
        *ranks = Ranks::new(work, std::mem::take(&mut ranks.placement));
    }
    moved
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::database::arbitrary;
    use crate::testing::{assign, database, max_per_average, uneven};

    #[test]
    fn the_target_is_reached_and_only_heavy_pes_give() {
        // With few PEs chance may keep one from hearing of those that have room.
        for (pes, most) in [(4, 1.06), (17, 1.15), (64, 1.06), (500, 1.08)] {
            let database = uneven(pes);
            let answer = assign("DistributedLB", &database).expect("DistributedLB serves every database");
            let ratio = max_per_average(&database, &answer.pe_of);
            assert!(ratio <= most, "{pes} PEs: {ratio}");
            let average = crate::cost::LoadBound::of(&database).average_seconds;
            let before = database.pe_loads(&database.placement());
            assert!(answer.moves(&database).all(|m| before[m.from as usize] > average));
        }
    }

    #[test]
    fn what_is_balanced_is_left_alone() {
        let database = database(3, &[(1.0, 0), (1.02, 1), (0.98, 2)]);
        let answer = assign("DistributedLB", &database).expect("DistributedLB serves every database");
        assert!(answer.pe_of == [0, 1, 2] && answer.notes.is_empty());
    }

    #[test]
    fn seeds_and_steps_differ() {
        let mut database = uneven(32);
        let first = assign("DistributedLB", &database);
        assert_eq!(assign("DistributedLB", &database), first);
        database.step = 1;
        assert_ne!(assign("DistributedLB", &database), first);
    }

    #[test]
    fn less_talk_is_worse() {
        let database = uneven(256);
        let ratio = |spec: &str| {
            let answer = assign(spec, &database).expect("DistributedLB serves every database");
            max_per_average(&database, &answer.pe_of)
        };
        let deaf = ratio("DistributedLB:rounds=1,fanout=1,phases=1");
        let best = ratio("DistributedLB");
        assert!(best < deaf && deaf <= ratio("DummyLB"), "{best}, {deaf}");
    }

    proptest! {
        #[test]
        fn the_heaviest_pe_never_gets_heavier(mut database in arbitrary::database(8, 1, false)) {
            database.pes.iter_mut().for_each(|pe| pe.available = true);
            let answer = assign("DistributedLB:imbalance=0", &database).expect("it serves every database");
            let [before, after] = [database.placement(), answer.pe_of]
                .map(|pe_of| database.pe_loads(&pe_of).into_iter().fold(0.0, f64::max));
            prop_assert!(after <= before * (1.0 + 1e-9), "{} became {}", before, after);
        }
    }
}
