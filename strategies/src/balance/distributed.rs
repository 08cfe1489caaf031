//! `DistributedLB`: PEs above the average send objects to underloaded PEs that they learned of by gossip.
//!
//! Charm++'s strategy of that name: H. Menon, L. V. Kalé, "A distributed dynamic load balancer for iterative
//! applications", SC 2013 (Grapevine). PEs below the average spread their loads (`gossip.rs`). The transfers follow in
//! phases. Each PE above a threshold proposes its lightest objects to underloaded PEs that it learned of. The PE
//! chooses each receiver with a probability proportional to 1 - load/average (or 1 - load/target if no known PE is
//! below the average). A receiver declines if its load would exceed its limit, and reports its load to the donor. Both
//! limits start half-way between maximum and average, so that the heaviest PEs are relieved first, and fall with the
//! maximum. After a phase without progress, PEs below the threshold give objects away, too. In Charm++ that restricts
//! what a PE accepts; here it does not, so that objects that are a large part of the average find a place.
//!
//! In Charm++ every PE decides for itself. Here all PEs are simulated, each with its own random number generator and
//! its own information, so that a recorded step shows what the decentralized strategy would have done. The proposals
//! of a phase arrive in the order in which they were made, as if all PEs were equally fast. Objects on unavailable
//! PEs are placed before the first phase. If there are far more PEs than objects, only as many of the idle PEs take part
//! as the objects can use.

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::gossip::{
    Gossip, KNOWN, MAX_FANOUT, MAX_KNOWN, MAX_ROUNDS, Ranks, participating, rank_rngs, sample, spread,
};
use super::load::Work;
use crate::descriptor::Recipe;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `DistributedLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "DistributedLB",
    form: "",
    help: "Simulates a decentralized balancer (Menon, Kalé 2013): PEs learn by gossip which PEs are below the \
           average and send objects to them. Moves many small objects.",
    params: &[
        Param { key: "imbalance", default: "0.05", help: "max/avg - 1 at which the strategy stops" },
        Param { key: "phases", default: "10", help: "maximum number of transfer phases, 1 to 1000" },
        Param { key: "fanout", default: "2", help: "PEs that each PE informs per round, 1 to 1000" },
        Param {
            key: "rounds",
            default: "auto",
            help: "rounds of gossip, 1 to 1000; `auto`: log2 of the number of PEs",
        },
        KNOWN,
    ],
    item: Recipe {
        needs_communication: false,
        make: |params: &mut Params| {
            let imbalance = params.take_imbalance()?;
            let phases = params.take_count("phases", MAX_PHASES)?;
            let fanout = params.take_count_or_auto("fanout", MAX_FANOUT)?;
            let rounds = params.take_count_or_auto("rounds", MAX_ROUNDS)?;
            let known = params.take_count("known", MAX_KNOWN)?;
            Ok(Box::new(Distributed { imbalance, phases, fanout, rounds, known }))
        },
    },
};

/// The maximum of `phases`.
const MAX_PHASES: usize = 1000;

/// The strategy that simulates every PE deciding by itself.
#[derive(Clone, Copy, Debug)]
pub struct Distributed {
    /// How far above the average a PE may be: max/avg - 1.
    pub imbalance: f64,
    /// Maximum number of transfer phases.
    pub phases: usize,
    /// PEs that each PE informs per round; 2 if `None`.
    pub fanout: Option<usize>,
    /// Rounds of gossip; if `None`, log2 of the number of PEs, rounded up.
    pub rounds: Option<usize>,
    /// Maximum number of underloaded PEs that a PE remembers.
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
        let (placement, _) = work.placement();
        self.balance(&participating(work, &placement), placement, seed, database.step)
    }
}

/// A rank's proposal to move `object` to `receiver`.
#[derive(Clone, Copy, Debug)]
struct Proposal {
    /// The number of earlier proposals of the donor in this phase.
    turn: u32,
    donor: u32,
    object: u32,
    receiver: u32,
    /// The position of the receiver in the list of ranks known to the donor.
    position: u32,
}

impl Distributed {
    fn balance(
        &self,
        work: &Work,
        placement: Vec<u32>,
        seed: u64,
        step: u64,
    ) -> Result<Assignment, StrategyError> {
        let average_seconds = work.average_seconds();
        let target_seconds = (1.0 + self.imbalance) * average_seconds;
        let mut ranks = Ranks::new(work, placement);
        let mut max_seconds = ranks.max_seconds();
        if max_seconds <= target_seconds || work.available.len() < 2 {
            return Ok(Assignment::new(ranks.placement));
        }
        let count = work.available.len();
        let gossip = Gossip {
            fanout: self.fanout.unwrap_or(2),
            rounds: self.rounds.unwrap_or((count as f64).log2().ceil() as usize),
            known: self.known,
            avoids_known: false,
        };
        gossip.check(count, 1)?;
        let mut rngs = rank_rngs(seed, step, count);
        let is_underloaded: Vec<bool> =
            ranks.seconds.iter().map(|&seconds| seconds < average_seconds).collect();
        let outcome = spread(gossip, &is_underloaded, &mut rngs);
        // By rank: the expected seconds of each rank in its list. Proposals and refusals update these.
        let mut expected_seconds: Vec<Vec<f64>> = (outcome.known.iter())
            .map(|known| known.iter().map(|&rank| ranks.seconds[rank as usize]).collect())
            .collect();

        let mut limits = Limits::new(average_seconds, target_seconds, max_seconds);
        let (mut phases, mut declined) = (0, 0);
        while phases < self.phases && max_seconds > target_seconds {
            phases += 1;
            let proposals = propose(&ranks, &outcome.known, &mut expected_seconds, &mut rngs, &limits);
            let moved =
                apply_accepted(&mut ranks, &mut expected_seconds, &proposals, limits.receiver_seconds, work);
            declined += proposals.len() - moved;
            if moved == 0 && limits.donor_seconds <= target_seconds {
                break;
            }
            let before = std::mem::replace(&mut max_seconds, ranks.max_seconds());
            let donor_seconds = target_seconds.max(limits.donor_seconds / 2.0 + average_seconds / 2.0);
            limits = Limits::new(average_seconds, target_seconds, max_seconds);
            if before - max_seconds < 0.01 * average_seconds {
                limits.donor_seconds = donor_seconds;
            }
        }
        Ok(Assignment::new(ranks.placement)
            .with_note("gossip messages", outcome.messages as f64)
            .with_note("phases", phases as f64)
            .with_note("proposals declined", declined as f64))
    }
}

/// The thresholds of a phase.
struct Limits {
    average_seconds: f64,
    target_seconds: f64,
    /// Ranks above this give objects away.
    donor_seconds: f64,
    /// No rank accepts an object that takes its load above this. Never above the maximum.
    receiver_seconds: f64,
}

impl Limits {
    /// Both half-way between maximum and average, but not below the target.
    fn new(average_seconds: f64, target_seconds: f64, max_seconds: f64) -> Limits {
        let halfway = target_seconds.max(average_seconds / 2.0 + max_seconds / 2.0);
        Limits { average_seconds, target_seconds, donor_seconds: halfway, receiver_seconds: halfway }
    }
}

/// The proposals of all donors, in the order of arrival.
fn propose(
    ranks: &Ranks,
    known: &[Vec<u32>],
    expected_seconds: &mut [Vec<f64>],
    rngs: &mut [ChaCha8Rng],
    limits: &Limits,
) -> Vec<Proposal> {
    let of_one = |(donor, (expected_seconds, rng)): (usize, (&mut Vec<f64>, &mut ChaCha8Rng))| {
        let mut proposals = Vec::new();
        let mut seconds = ranks.seconds[donor];
        let mut weights = Vec::new();
        for &object in &ranks.objects[donor] {
            if seconds <= limits.donor_seconds {
                break;
            }
            let after = |position: usize| {
                expected_seconds[position] + ranks.seconds_of(object, known[donor][position] as usize)
            };
            // The list of an underloaded rank contains the rank itself. The rank may have received objects since the
            // gossip.
            let takes = |position: usize| {
                let after = after(position);
                after <= limits.receiver_seconds && after < seconds && known[donor][position] != donor as u32
            };
            // If no known rank is below the average, a rank below the target is chosen.
            let sampled = [limits.average_seconds, limits.target_seconds].into_iter().find_map(|scale| {
                let weight = |position: usize| {
                    let weight = 1.0 - expected_seconds[position] / scale;
                    if weight > 0.0 && takes(position) { weight } else { 0.0 }
                };
                weights.clear();
                weights.extend((0..expected_seconds.len()).map(weight));
                sample(rng, &weights)
            });
            // If the lightest object fits nowhere, no heavier one does.
            let Some(position) = sampled else { break };
            let receiver = known[donor][position] as usize;
            expected_seconds[position] = after(position);
            seconds -= ranks.seconds_of(object, donor);
            proposals.push(Proposal {
                turn: proposals.len() as u32,
                donor: donor as u32,
                object,
                receiver: receiver as u32,
                position: position as u32,
            });
        }
        proposals
    };
    let gives = |donor: usize| ranks.seconds[donor] > limits.donor_seconds;
    let all = expected_seconds.par_iter_mut().zip(rngs).enumerate().filter(|&(donor, _)| gives(donor));
    let mut proposals: Vec<Proposal> = all.flat_map_iter(of_one).collect();
    proposals.sort_unstable_by_key(|proposal| (proposal.turn, proposal.donor));
    proposals
}

/// Moves the objects that the receivers accept; returns their number.
fn apply_accepted<'a>(
    ranks: &mut Ranks<'a>,
    expected_seconds: &mut [Vec<f64>],
    proposals: &[Proposal],
    receiver_seconds: f64,
    work: &'a Work<'a>,
) -> usize {
    let mut moved = 0;
    for &Proposal { donor, object, receiver, position, .. } in proposals {
        let after = ranks.seconds[receiver as usize] + ranks.seconds_of(object, receiver as usize);
        if after > receiver_seconds {
            expected_seconds[donor as usize][position as usize] = ranks.seconds[receiver as usize];
            continue;
        }
        ranks.placement[object as usize] = work.available[receiver as usize];
        ranks.seconds[receiver as usize] = after;
        moved += 1;
    }
    if moved > 0 {
        // The sums are computed again, which removes accumulated rounding errors.
        *ranks = Ranks::new(work, std::mem::take(&mut ranks.placement));
    }
    moved
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::database::arbitrary;

    use crate::testing::{assign, database, max_per_average, uneven};

    #[test]
    fn the_target_is_reached_and_only_pes_above_the_average_give_objects_away() {
        // With few PEs, a donor may by chance not learn of a PE with room.
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
    fn a_balanced_placement_is_unchanged() {
        let database = database(3, &[(1.0, 0), (1.02, 1), (0.98, 2)]);
        let answer = assign("DistributedLB", &database).expect("DistributedLB serves every database");
        assert!(answer.pe_of == [0, 1, 2] && answer.notes.is_empty());
    }

    #[test]
    fn different_steps_give_different_placements() {
        let mut database = uneven(32);
        let first = assign("DistributedLB", &database);
        assert_eq!(assign("DistributedLB", &database), first);
        database.step = 1;
        assert_ne!(assign("DistributedLB", &database), first);
    }

    #[test]
    fn fewer_gossip_messages_give_a_worse_balance() {
        let database = uneven(256);
        let ratio = |spec: &str| {
            let answer = assign(spec, &database).expect("DistributedLB serves every database");
            max_per_average(&database, &answer.pe_of)
        };
        let little = ratio("DistributedLB:rounds=1,fanout=1,phases=1");
        let best = ratio("DistributedLB");
        assert!(best < little && little <= ratio("DummyLB"), "{best}, {little}");
    }

    proptest! {
        #[test]
        fn the_heaviest_pe_never_gets_heavier(mut database in arbitrary::database(8, 1, false)) {
            database.pes.iter_mut().for_each(|pe| pe.available = true);
            let answer = assign("DistributedLB:imbalance=0", &database).expect("DistributedLB supports every database");
            let [before, after] = [database.placement(), answer.pe_of]
                .map(|pe_of| database.pe_loads(&pe_of).into_iter().fold(0.0, f64::max));
            prop_assert!(after <= before * (1.0 + 1e-9), "{} became {}", before, after);
        }
    }
}
