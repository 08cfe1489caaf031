//! Gossip between PEs in rounds: PEs learn which PEs are underloaded without a central collector.
//!
//! H. Menon, L. V. Kalé, "A distributed dynamic load balancer for iterative applications", SC 2013, section
//! 4.1 (Grapevine): a PE below the average sends a message to a few random PEs, and each PE that receives a message
//! forwards all underloaded PEs it knows to a few others. In a running program messages overtake each other. Here all
//! messages of a round are sent before any of them is read. Every PE has its own random number generator, so the
//! outcome does not depend on the number of threads.
//!
//! The rank of a PE is its position among the available PEs.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use equipoise_model::memory;
use equipoise_model::params::Param;
use equipoise_model::random::{below, generator};

use super::load::Work;
use crate::StrategyError;
use crate::decentral::{Known, Letter, Sends};
use crate::near_pes::{LEAST_PES, PES_PER_OBJECT};

/// The parameter of [`Gossip::known`]. With the default, a simulation of 100,000 PEs fits in memory.
pub(super) const KNOWN: Param = Param {
    key: "known",
    default: "256",
    help: "maximum number of underloaded PEs that a PE remembers, 1 to 65536; the first ones received are kept",
};

/// The maximum of `known`.
pub(super) const MAX_KNOWN: usize = 65_536;

/// The maximum of `rounds`. With a fanout of 2, log2 of the number of PEs suffices.
pub(super) const MAX_ROUNDS: usize = 1000;

/// The maximum of `fanout`.
pub(super) const MAX_FANOUT: usize = 1000;

/// The maximum number of messages of a strategy (about a minute).
const MAX_MESSAGES: u64 = 1 << 30;

/// The work with the PEs that take part in the gossip as its available PEs.
///
/// These are all PEs, unless there are far more PEs than objects. Then they are the PEs that can give objects away and,
/// evenly spaced, as many of the other PEs below the average as the objects can use; otherwise almost all messages would
/// be between PEs that stay idle.
pub(super) fn participating<'a>(mut work: Work<'a>, placement: &[u32]) -> Work<'a> {
    let loaded = || work.movable.iter().filter(|&&object| work.load_seconds(object) > 0.0);
    let most = LEAST_PES.max(PES_PER_OBJECT * loaded().count());
    if work.available.len() <= most {
        return work;
    }
    let (seconds, average) = (work.seconds_at(placement), work.average_seconds());
    let mut gives = vec![false; seconds.len()];
    loaded().for_each(|&object| gives[placement[object as usize] as usize] = true);
    let (mut chosen, others): (Vec<u32>, Vec<u32>) =
        work.available.iter().partition(|&&pe| gives[pe as usize]);
    let below: Vec<u32> = others.into_iter().filter(|&pe| seconds[pe as usize] < average).collect();
    let count = (most - chosen.len()).min(below.len());
    chosen.extend((0..count).map(|at| below[at * below.len() / count]));
    chosen.sort_unstable();
    work.available = chosen;
    work
}

/// The parameters of the gossip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gossip {
    /// PEs that each PE informs per round.
    pub(super) fanout: usize,
    /// Number of rounds.
    pub(super) rounds: usize,
    /// Maximum number of underloaded PEs that a PE remembers.
    pub(super) known: usize,
    /// Whether a PE informs only PEs that are not in its own list.
    pub(super) avoids_known: bool,
}

impl Gossip {
    /// Refuses gossip between `ranks` PEs, `repetitions` times, that would take too much time or memory.
    pub(super) fn check(&self, ranks: usize, repetitions: usize) -> Result<(), StrategyError> {
        let each_round = ranks as u64 * self.fanout.min(ranks) as u64;
        let all = each_round.saturating_mul(self.rounds as u64).saturating_mul(repetitions as u64);
        if all > MAX_MESSAGES {
            return Err(StrategyError::Request(format!(
                "{all} messages of gossip between {ranks} PEs are more than the maximum of {MAX_MESSAGES}; use a \
                 smaller fanout, fewer rounds or iterations, or fewer PEs"
            )));
        }
        // A message in two lists; a known PE in a list, a letter, and its expected load; the generator and the lists of a PE.
        let bytes = 40 * each_round + ranks as u64 * (40 * self.known.min(ranks) as u64 + 800);
        memory::check(
            bytes,
            &format!("gossip between {ranks} PEs"),
            "use a smaller fanout or a smaller `known`",
        )
        .map_err(StrategyError::Request)
    }
}

/// The random number generator of a rank at load-balancing step `step`.
pub(super) fn rank_rng(seed: u64, step: u64, rank: u32) -> ChaCha8Rng {
    // The step selects the stream, so that the steps of a run differ although the seed is the same.
    generator(seed, (step << 32) ^ u64::from(rank))
}

/// What a rank has learned.
pub(super) struct Rumours {
    rank: u32,
    /// The letter that it sends: the underloaded ranks that it knows, in order of arrival; it itself comes first. Ranks that read the
    /// letter share its memory until this rank learns more.
    letter: Arc<Letter>,
    is_sender: bool,
}

impl Rumours {
    /// A rank before the first round; `own` is what it says of itself if it is underloaded.
    pub(super) fn new(rank: u32, own: Option<Known>) -> Rumours {
        let is_sender = own.is_some();
        Rumours { rank, letter: Arc::new(Letter::Known(own.into_iter().collect())), is_sender }
    }

    /// The underloaded ranks that it knows.
    pub(super) fn known(&self) -> &[Known] {
        listed(&self.letter)
    }

    /// Sends what it knows to ranks chosen at random, if it has learned something in the last round. Returns the number of messages.
    pub(super) fn send(&self, gossip: Gossip, ranks: u32, rng: &mut ChaCha8Rng, sends: &mut Sends) -> u64 {
        if !self.is_sender {
            return 0;
        }
        let targets = self.targets(gossip, ranks as usize, rng);
        let messages = targets.len() as u64;
        sends.push((targets, Arc::clone(&self.letter)));
        messages
    }

    /// Reads the letters of a round, ascending by sender.
    pub(super) fn read(&mut self, gossip: Gossip, letters: &[(u32, Arc<Letter>)]) {
        self.is_sender = !letters.is_empty();
        let mut room = gossip.known.saturating_sub(self.known().len());
        if room == 0 || letters.is_empty() {
            return;
        }
        let mut is_known: FxHashSet<u32> = self.known().iter().map(|known| known.rank).collect();
        // Each rank first reads the letters of higher ranks, so that not all ranks remember the same few.
        let (before, after) = letters.split_at(letters.partition_point(|of| of.0 < self.rank));
        let mut news = Vec::new();
        for &known in after.iter().chain(before).flat_map(|(_, letter)| listed(letter)) {
            if room > 0 && is_known.insert(known.rank) {
                news.push(known);
                room -= 1;
            }
        }
        if news.is_empty() {
            return;
        }
        if let Letter::Known(known) = Arc::make_mut(&mut self.letter) {
            known.append(&mut news);
        }
    }

    /// The ranks that it informs in a round: `fanout` different ones, chosen at random.
    fn targets(&self, gossip: Gossip, ranks: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
        let mut excluded = FxHashSet::default();
        excluded.insert(self.rank);
        if gossip.avoids_known {
            excluded.extend(self.known().iter().map(|known| known.rank));
        }
        let left = ranks - excluded.len();
        let fanout = gossip.fanout.min(left);
        let mut targets = Vec::with_capacity(fanout);
        if 2 * fanout < left && left > ranks / 8 {
            while targets.len() < fanout {
                let target = below(rng, ranks as u64) as u32;
                if excluded.insert(target) {
                    targets.push(target);
                }
            }
            return targets;
        }
        // Few candidates are left: partial Fisher-Yates shuffle of their list.
        let mut others: Vec<u32> = (0..ranks as u32).filter(|other| !excluded.contains(other)).collect();
        for i in 0..fanout {
            let chosen = i + below(rng, (others.len() - i) as u64) as usize;
            others.swap(i, chosen);
        }
        others.truncate(fanout);
        others
    }
}

/// The ranks that a letter of gossip lists.
fn listed(letter: &Letter) -> &[Known] {
    match letter {
        Letter::Known(known) => known,
        _ => &[],
    }
}

/// All rounds of the gossip between ranks in one place: for each rank, the underloaded ranks that it has learned of; and the number of
/// messages.
pub(super) fn spread(
    gossip: Gossip,
    is_underloaded: &[bool],
    rngs: &mut [ChaCha8Rng],
) -> (Vec<Vec<u32>>, u64) {
    let ranks = is_underloaded.len();
    let of_rank = |(rank, &is_underloaded): (u32, &bool)| {
        let own = Known { rank, speed: 1.0, seconds: 0.0 };
        Rumours::new(rank, is_underloaded.then_some(own))
    };
    let mut all: Vec<Rumours> = (0..).zip(is_underloaded).map(of_rank).collect();
    let mut messages = 0;
    for _ in 0..gossip.rounds {
        let send = |(rumours, rng): (&Rumours, &mut ChaCha8Rng)| {
            let mut sends = Sends::new();
            (rumours.send(gossip, ranks as u32, rng, &mut sends), sends)
        };
        let sent: Vec<(u64, Sends)> = all.par_iter().zip(&mut *rngs).map(send).collect();
        let mut inboxes = vec![Vec::new(); ranks];
        for (sender, (count, sends)) in (0..).zip(sent) {
            messages += count;
            for (receivers, letter) in sends {
                receivers.iter().for_each(|&to| inboxes[to as usize].push((sender, Arc::clone(&letter))));
            }
        }
        all.par_iter_mut().zip(&inboxes).for_each(|(rumours, letters)| rumours.read(gossip, letters));
    }
    let ranks_of = |rumours: &Rumours| rumours.known().iter().map(|known| known.rank).collect();
    (all.iter().map(ranks_of).collect(), messages)
}

/// Samples an index of `weights` with a probability proportional to its weight. Weights that are not positive are
/// never chosen; `None` if no weight is positive.
pub(super) fn sample(rng: &mut impl RngCore, weights: &[f64]) -> Option<usize> {
    let positive = || weights.iter().enumerate().filter(|&(_, &weight)| weight > 0.0);
    let total: f64 = positive().map(|(_, weight)| weight).sum();
    if total == 0.0 {
        return None;
    }
    let mut rest = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
    let mut last = None;
    for (number, weight) in positive() {
        // With rounding errors, `rest` may remain positive at the end. Then the last index is returned.
        last = Some(number);
        rest -= weight;
        if rest < 0.0 {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Gossip = Gossip { fanout: 2, rounds: 20, known: 1000, avoids_known: false };

    /// Simulates the gossip and checks its invariants: lists contain only underloaded ranks, each once.
    fn check(gossip: Gossip, is_underloaded: &[bool]) -> (Vec<Vec<u32>>, u64) {
        let mut rngs: Vec<ChaCha8Rng> =
            (0..is_underloaded.len() as u32).map(|rank| rank_rng(5, 0, rank)).collect();
        let outcome = spread(gossip, is_underloaded, &mut rngs);
        for (rank, known) in outcome.0.iter().enumerate() {
            let mut sorted = known.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), known.len(), "the list of rank {rank} has duplicates");
            assert!(known.iter().all(|&other| is_underloaded[other as usize]));
            assert!(known.len() <= gossip.known.max(1));
        }
        outcome
    }

    #[test]
    fn after_enough_rounds_all_ranks_know_all_underloaded_ranks() {
        let is_underloaded: Vec<bool> = (0..300).map(|rank| rank % 3 == 0).collect();
        let outcome = check(TWO, &is_underloaded);
        assert!(outcome.0.iter().all(|known| known.len() == 100));
        // A third of the ranks sends in the first round, then every rank that received a message in the round before.
        assert!((18 * 440..18 * 560).contains(&outcome.1), "{}", outcome.1);
        let few = check(Gossip { rounds: 1, ..TWO }, &is_underloaded);
        assert_eq!(few.1, 200);
        assert_eq!(few.0.iter().map(Vec::len).sum::<usize>(), 300);
    }

    #[test]
    fn lists_are_limited_and_known_ranks_are_avoided() {
        let is_underloaded = vec![true; 50];
        assert!(check(Gossip { known: 7, ..TWO }, &is_underloaded).0.iter().all(|known| known.len() == 7));
        let gossip = Gossip { fanout: 49, rounds: 1, known: 50, avoids_known: true };
        let complete = check(gossip, &is_underloaded);
        assert!(complete.1 == 50 * 49 && complete.0.iter().all(|known| known.len() == 50));
        // A rank whose list is complete sends no messages.
        assert_eq!(check(Gossip { rounds: 5, ..gossip }, &is_underloaded).1, 50 * 49);
    }

    #[test]
    fn gossip_works_with_zero_to_two_pes() {
        assert_eq!(check(TWO, &[]).1, 0);
        assert_eq!(check(TWO, &[true]).0, [[0]]);
        assert_eq!(check(TWO, &[false, true]).0, [[1], [1]]);
        assert_eq!(check(TWO, &[false; 9]).1, 0);
    }

    #[test]
    fn indices_are_sampled_in_proportion_to_their_weights() {
        let mut rng = generator(1, 1);
        let mut counts = [0; 5];
        for _ in 0..6000 {
            let sampled = sample(&mut rng, &[1.0, 0.5, 0.0, -1.0, 0.5]);
            counts[sampled.expect("three are positive")] += 1;
        }
        assert!((2800..3200).contains(&counts[0]) && (1350..1650).contains(&counts[1]), "{counts:?}");
        assert_eq!((counts[2], counts[3]), (0, 0));
        assert_eq!(sample(&mut rng, &[0.0, f64::NAN]), None);
        assert_eq!(sample(&mut rng, &[]), None);
    }
}
