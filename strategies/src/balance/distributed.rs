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
//! Every PE decides for itself, with its own random number generator and its own information: in a run as a member on each PE
//! ([`crate::decentral`]), in a replay as all members in one place. Rounds are synchronous, and a receiver reads the proposals of a phase
//! in the order in which their donors made them, as if all PEs were equally fast. If some PEs are unavailable, the strategy runs in one
//! place: objects on unavailable PEs are placed before the first phase. If there are far more PEs than objects, only as many of the idle
//! PEs take part there as the objects can use.
//!
//! The rounds of a member:
//!
//! 1. It says its load and speed.
//! 2. If the heaviest PE is above the target: rounds of gossip.
//! 3. A phase of three rounds. Donors make offers. Receivers answer. All sum up what they have, and send their seconds. Then the
//!    next phase follows, with new limits.
//! 4. It tells the PEs that have its new objects in memory that it takes them.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use equipoise_model::assignment::Note;
use equipoise_model::descriptor::Descriptor;
use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::gossip::{
    Gossip, KNOWN, MAX_FANOUT, MAX_KNOWN, MAX_ROUNDS, Rumours, participating, rank_rng, sample,
};
use super::load::Work;
use super::members::{Pile, decide, taken};
use crate::decentral::{Decentral, Item, Known, Letter, Member, Outcome, Own, Sends, Totals};
use crate::descriptor::Recipe;
use crate::strategy::check;
use crate::{Strategy, StrategyError};

/// `DistributedLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "DistributedLB",
    form: "",
    help: "Without a centre (Menon, Kalé 2013): PEs learn by gossip which PEs are below the average and send \
           objects to them. Moves many small objects.",
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

/// The strategy with which every PE decides by itself.
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
        let work = participating(work, &placement);
        self.gossip(work.available.len()).check(work.available.len(), 1)?;
        let (placement, notes) = decide(self, &work, placement, seed);
        Ok(Assignment { notes, ..Assignment::new(placement) })
    }

    fn decentral(&self) -> Option<&dyn Decentral> {
        Some(self)
    }
}

impl Distributed {
    fn gossip(&self, ranks: usize) -> Gossip {
        Gossip {
            fanout: self.fanout.unwrap_or(2),
            rounds: self.rounds.unwrap_or(((ranks as f64).log2().ceil() as usize).max(1)),
            known: self.known,
            avoids_known: false,
        }
    }
}

impl Decentral for Distributed {
    fn check(&self, ranks: u32) -> Result<(), String> {
        match ranks {
            0 | 1 => Ok(()),
            _ => self
                .gossip(ranks as usize)
                .check(ranks as usize, self.phases)
                .map_err(|error| error.to_string()),
        }
    }

    fn member(&self, own: Own) -> Box<dyn Member> {
        Box::new(OnPe {
            gossip: self.gossip(own.ranks as usize),
            imbalance: self.imbalance,
            max_phases: self.phases,
            ranks: own.ranks,
            rng: rank_rng(own.seed, own.step, own.rank),
            pile: Pile::new(&own),
            rumours: Rumours::new(own.rank, None),
            limits: Limits::new(0.0, 0.0, 0.0),
            max_seconds: 0.0,
            expected_seconds: Vec::new(),
            offered: Vec::new(),
            accepted: Vec::new(),
            phases: 0,
            counts: [0; 3],
            next: Next::Begin,
            outcome: Outcome::default(),
        })
    }
}

/// What a member does in its next round.
#[derive(Clone, Copy)]
enum Next {
    /// Says its load and speed.
    Begin,
    /// Learns the limits and begins with the gossip.
    Compare,
    /// Reads the gossip of the round with this number, from 1.
    Gossip(usize),
    /// Answers offers.
    Answer,
    /// Reads the answers.
    Sum,
    /// Begins a phase, or ends.
    Phase,
    /// Learns which of its objects leave.
    End,
}

/// The member on one PE.
struct OnPe {
    gossip: Gossip,
    imbalance: f64,
    max_phases: usize,
    ranks: u32,
    rng: ChaCha8Rng,
    pile: Pile,
    rumours: Rumours,
    limits: Limits,
    /// The heaviest PE before the phase.
    max_seconds: f64,
    /// The expected seconds of each rank that it knows. Offers and refusals update them.
    expected_seconds: Vec<f64>,
    /// The objects offered in this phase, each with the position of the receiver among the ranks that it knows.
    offered: Vec<(usize, Item)>,
    /// The objects accepted in this phase.
    accepted: Vec<Item>,
    phases: usize,
    counts: [u64; 3],
    next: Next,
    outcome: Outcome,
}

impl Member for OnPe {
    fn round(
        &mut self,
        totals: &Totals,
        received: &[(u32, Arc<Letter>)],
        sends: &mut Sends,
    ) -> Option<Totals> {
        self.counts.iter_mut().zip(totals.counts).for_each(|(sum, count)| *sum += count);
        match self.next {
            Next::Begin => {
                self.next = Next::Compare;
                Some(Totals::with_work(self.pile.seconds, self.pile.speed))
            }
            Next::Compare => {
                let average = totals.average_seconds();
                let target = (1.0 + self.imbalance) * average;
                if totals.max_seconds <= target || self.ranks < 2 {
                    return None;
                }
                self.max_seconds = totals.max_seconds;
                self.limits = Limits::new(average, target, totals.max_seconds);
                let Pile { rank, speed, seconds, .. } = self.pile;
                let own = Known { rank, speed: speed as f32, seconds };
                self.rumours = Rumours::new(rank, (seconds < average).then_some(own));
                Some(self.whisper(1, sends))
            }
            Next::Gossip(round) => {
                self.rumours.read(self.gossip, received);
                if round < self.gossip.rounds {
                    return Some(self.whisper(round + 1, sends));
                }
                self.expected_seconds = self.rumours.known().iter().map(|known| known.seconds).collect();
                Some(self.offer(sends))
            }
            Next::Answer => Some(self.answer(received, sends)),
            Next::Sum => Some(self.sum_up(received)),
            Next::Phase => {
                self.phases += 1;
                let [_, moved, _] = totals.counts;
                let is_stuck = moved == 0 && self.limits.donor_seconds <= self.limits.target_seconds;
                if !is_stuck {
                    self.lower_limits(totals.max_seconds);
                }
                if is_stuck
                    || self.phases >= self.max_phases
                    || self.max_seconds <= self.limits.target_seconds
                {
                    self.next = Next::End;
                    self.outcome.coming = self.pile.take(sends);
                    return Some(Totals::default());
                }
                Some(self.offer(sends))
            }
            Next::End => {
                self.outcome.leaving = taken(received);
                let [messages, _, declined] = self.counts.map(|count| count as f64);
                self.outcome.notes = [
                    ("gossip messages", messages),
                    ("phases", self.phases as f64),
                    ("proposals declined", declined),
                ]
                .map(|(name, value)| Note::new(name, value))
                .into();
                None
            }
        }
    }

    fn outcome(&mut self) -> Outcome {
        Outcome { seconds: self.pile.seconds, ..std::mem::take(&mut self.outcome) }
    }
}

impl OnPe {
    /// Sends the gossip of a round.
    fn whisper(&mut self, round: usize, sends: &mut Sends) -> Totals {
        let messages = self.rumours.send(self.gossip, self.ranks, &mut self.rng, sends);
        self.next = Next::Gossip(round);
        Totals::of(0.0, [messages, 0, 0])
    }

    /// Offers objects if this PE is above the threshold: the lightest first, to receivers with room that are chosen at random.
    fn offer(&mut self, sends: &mut Sends) -> Totals {
        self.next = Next::Answer;
        let (known, expected) = (self.rumours.known(), &mut self.expected_seconds);
        let after = |expected: &[f64], position: usize, item: &Item| {
            expected[position] + item.load_seconds / f64::from(known[position].speed)
        };
        let mut seconds = self.pile.seconds;
        let mut weights = Vec::new();
        for item in &self.pile.items {
            if seconds <= self.limits.donor_seconds {
                break;
            }
            // The list of an underloaded rank contains the rank itself. The rank may have received objects since the
            // gossip.
            let takes = |expected: &[f64], position: usize| {
                let after = after(expected, position, item);
                let is_other = known[position].rank != self.pile.rank;
                after <= self.limits.receiver_seconds && after < seconds && is_other
            };
            // If no known rank is below the average, a rank below the target is chosen.
            let scales = [self.limits.average_seconds, self.limits.target_seconds];
            let sampled = scales.into_iter().find_map(|scale| {
                let weight = |position: usize| {
                    let weight = 1.0 - expected[position] / scale;
                    if weight > 0.0 && takes(expected, position) { weight } else { 0.0 }
                };
                weights.clear();
                weights.extend((0..expected.len()).map(weight));
                sample(&mut self.rng, &weights)
            });
            // If the lightest object fits nowhere, no heavier one does.
            let Some(position) = sampled else { break };
            expected[position] = after(expected, position, item);
            seconds -= self.pile.seconds_of(item);
            self.offered.push((position, *item));
        }
        let mut turns: Vec<(usize, u32, Item)> =
            (0..).zip(&self.offered).map(|(turn, &(position, item))| (position, turn, item)).collect();
        turns.sort_unstable_by_key(|&(position, turn, _)| (position, turn));
        for of_one in turns.chunk_by(|a, b| a.0 == b.0) {
            let offers = of_one.iter().map(|&(_, turn, item)| (turn, item)).collect();
            sends.push((vec![known[of_one[0].0].rank], Arc::new(Letter::Offers(offers))));
        }
        Totals::default()
    }

    /// Accepts the offers that leave this PE below the limit, in the order of their turns.
    fn answer(&mut self, received: &[(u32, Arc<Letter>)], sends: &mut Sends) -> Totals {
        self.next = Next::Sum;
        let mut answers: Vec<(u32, Vec<bool>, Option<f64>)> = Vec::new();
        let mut offers = Vec::new();
        for (donor, letter) in received {
            if let Letter::Offers(of_donor) = &**letter {
                let letter = answers.len();
                answers.push((*donor, vec![false; of_donor.len()], None));
                let numbered = of_donor.iter().enumerate();
                offers.extend(numbered.map(|(at, &(turn, item))| (turn, letter, at, item)));
            }
        }
        // Letters are in the order of their senders.
        offers.sort_unstable_by_key(|&(turn, letter, ..)| (turn, letter));
        let mut seconds = self.pile.seconds;
        let declined = offers.len() as u64;
        for (_, letter, at, item) in offers {
            let after = seconds + self.pile.seconds_of(&item);
            if after > self.limits.receiver_seconds {
                answers[letter].2 = Some(seconds);
                continue;
            }
            seconds = after;
            answers[letter].1[at] = true;
            self.accepted.push(item);
        }
        for (donor, accepted, seconds) in answers {
            sends.push((vec![donor], Arc::new(Letter::Answer(accepted, seconds))));
        }
        let moved = self.accepted.len() as u64;
        Totals::of(0.0, [0, 0, declined - moved])
    }

    /// Reads the answers, and has the objects that it has accepted.
    fn sum_up(&mut self, received: &[(u32, Arc<Letter>)]) -> Totals {
        self.next = Next::Phase;
        let mut given = Vec::new();
        for (receiver, letter) in received {
            let Letter::Answer(accepted, seconds) = &**letter else { continue };
            let Some(position) = self.rumours.known().iter().position(|known| known.rank == *receiver) else {
                continue;
            };
            let offers = self.offered.iter().filter(|(to, _)| *to == position).zip(accepted);
            given.extend(offers.filter(|&(_, accepted)| *accepted).map(|((_, item), _)| item.key));
            if let Some(seconds) = seconds {
                self.expected_seconds[position] = *seconds;
            }
        }
        self.offered.clear();
        self.pile.remove(given);
        let moved = self.accepted.len() as u64;
        self.pile.items.append(&mut self.accepted);
        self.pile.sum_up();
        Totals::of(self.pile.seconds, [0, moved, 0])
    }

    /// The limits of the next phase; `max_seconds` is the heaviest PE now.
    fn lower_limits(&mut self, max_seconds: f64) {
        let before = std::mem::replace(&mut self.max_seconds, max_seconds);
        let Limits { average_seconds, target_seconds, donor_seconds, .. } = self.limits;
        let donor_seconds = target_seconds.max(donor_seconds / 2.0 + average_seconds / 2.0);
        self.limits = Limits::new(average_seconds, target_seconds, max_seconds);
        if before - max_seconds < 0.01 * average_seconds {
            self.limits.donor_seconds = donor_seconds;
        }
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
