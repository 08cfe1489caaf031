//! Gossip between PEs, simulated in rounds: PEs learn which PEs are underloaded without a central collector.
//!
//! H. Menon, L. V. Kalé, "A distributed dynamic load balancer for iterative applications", SC 2013, section
//! 4.1 (Grapevine): a PE below the average sends a message to a few random PEs, and each PE that receives a message
//! forwards all underloaded PEs it knows to a few others. In a running program messages overtake each other. Here all
//! messages of a round are sent before any of them is read. Every PE has its own random number generator, so the
//! outcome does not depend on the number of threads.
//!
//! The rank of a PE is its position among the available PEs.

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use rayon::prelude::*;

use equipoise_model::memory;
use equipoise_model::params::Param;
use equipoise_model::random::{below, generator};

use super::load::Work;
use crate::StrategyError;
use crate::part::{LEAST_PES, PES_PER_OBJECT};

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
        // A message in two lists; a known PE in a list, its news and its load; the generator and the lists of a PE.
        let bytes = 8 * each_round + ranks as u64 * (16 * self.known.min(ranks) as u64 + 600);
        memory::check(
            bytes,
            &format!("gossip between {ranks} PEs"),
            "use a smaller fanout or a smaller `known`",
        )
        .map_err(StrategyError::Request)
    }
}

/// The outcome of the gossip.
pub(super) struct Outcome {
    /// For each rank, the underloaded ranks it has learned of, in order of arrival. An underloaded rank itself comes first.
    pub(super) known: Vec<Vec<u32>>,
    /// Messages sent.
    pub(super) messages: u64,
}

/// The random number generator of every rank at load-balancing step `step`.
pub(super) fn rank_rngs(seed: u64, step: u64, ranks: usize) -> Vec<ChaCha8Rng> {
    // The step selects the streams, so that the steps of a run differ although the seed is the same.
    (0..ranks as u64).map(|rank| generator(seed, (step << 32) ^ rank)).collect()
}

/// A set of ranks that is emptied in constant time.
struct Marks {
    mark_of: Vec<u32>,
    mark: u32,
}

impl Marks {
    fn new(ranks: usize) -> Marks {
        Marks { mark_of: vec![0; ranks], mark: 0 }
    }

    fn clear(&mut self) {
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 {
            self.mark_of.fill(0);
            self.mark = 1;
        }
    }

    /// Adds `rank`; returns whether the set did not contain `rank` before.
    fn insert(&mut self, rank: u32) -> bool {
        std::mem::replace(&mut self.mark_of[rank as usize], self.mark) != self.mark
    }
}

/// Simulates the gossip about underloaded ranks.
pub(super) fn spread(gossip: Gossip, is_underloaded: &[bool], rngs: &mut [ChaCha8Rng]) -> Outcome {
    let ranks = is_underloaded.len();
    let mut known: Vec<Vec<u32>> = (0..ranks as u32)
        .map(|rank| if is_underloaded[rank as usize] { vec![rank] } else { Vec::new() })
        .collect();
    let mut is_sender = is_underloaded.to_vec();
    let mut messages = 0;
    for _ in 0..gossip.rounds {
        let targets: Vec<Vec<u32>> = (rngs.par_iter_mut().enumerate())
            .map_init(
                || Marks::new(ranks),
                |marks, (rank, rng)| match is_sender[rank] {
                    true => targets(gossip, rank as u32, &known[rank], ranks, rng, marks),
                    false => Vec::new(),
                },
            )
            .collect();
        let mut senders = vec![Vec::new(); ranks];
        for (rank, targets) in (0..).zip(&targets) {
            targets.iter().for_each(|&target| senders[target as usize].push(rank));
        }
        messages += targets.iter().map(|targets| targets.len() as u64).sum::<u64>();
        // Ranks received in this round are forwarded only in the next one, so `known` is updated after all reads.
        let news: Vec<Vec<u32>> = (senders.par_iter().enumerate())
            .map_init(
                || Marks::new(ranks),
                |marks, (rank, senders)| {
                    // Each rank first reads the messages of higher ranks, so that not all ranks remember the same few.
                    let (before, after) = senders.split_at(senders.partition_point(|&s| (s as usize) < rank));
                    let messages = after.iter().chain(before).map(|&sender| &known[sender as usize]);
                    new_ranks(gossip.known, &known[rank], messages, marks)
                },
            )
            .collect();
        known.par_iter_mut().zip(news).for_each(|(known, news)| known.extend(news));
        is_sender = senders.iter().map(|senders| !senders.is_empty()).collect();
    }
    Outcome { known, messages }
}

/// The ranks that `rank` informs in a round: `fanout` different ranks, chosen at random.
fn targets(
    gossip: Gossip,
    rank: u32,
    known: &[u32],
    ranks: usize,
    rng: &mut ChaCha8Rng,
    marks: &mut Marks,
) -> Vec<u32> {
    marks.clear();
    let mut left = ranks - usize::from(marks.insert(rank));
    if gossip.avoids_known {
        left -= known.iter().filter(|&&known| marks.insert(known)).count();
    }
    let fanout = gossip.fanout.min(left);
    let mut targets = Vec::with_capacity(fanout);
    if 2 * fanout < left && left > ranks / 8 {
        while targets.len() < fanout {
            let target = below(rng, ranks as u64) as u32;
            if marks.insert(target) {
                targets.push(target);
            }
        }
        return targets;
    }
    // Few candidates are left: partial Fisher-Yates shuffle of their list.
    let mut others: Vec<u32> = (0..ranks as u32).filter(|&other| marks.insert(other)).collect();
    for i in 0..fanout {
        let chosen = i + below(rng, (others.len() - i) as u64) as usize;
        others.swap(i, chosen);
    }
    others.truncate(fanout);
    others
}

/// The ranks that a rank adds to its list in a round, until the list has `most` entries.
fn new_ranks<'a>(
    most: usize,
    known: &[u32],
    messages: impl Iterator<Item = &'a Vec<u32>>,
    marks: &mut Marks,
) -> Vec<u32> {
    let mut room = most.saturating_sub(known.len());
    if room == 0 {
        return Vec::new();
    }
    marks.clear();
    known.iter().for_each(|&rank| _ = marks.insert(rank));
    let mut news = Vec::new();
    for &rank in messages.flatten() {
        if marks.insert(rank) {
            news.push(rank);
            room -= 1;
            if room == 0 {
                break;
            }
        }
    }
    news
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

/// Objects and seconds by rank.
pub(super) struct Ranks<'a> {
    work: &'a Work<'a>,
    /// The speed of each rank.
    speeds: Vec<f64>,
    /// The PE of each object of the database.
    pub(super) placement: Vec<u32>,
    /// Seconds of each rank.
    pub(super) seconds: Vec<f64>,
    /// The migratable objects with a load of each rank, lightest first, lowest index first among equals.
    pub(super) objects: Vec<Vec<u32>>,
}

impl<'a> Ranks<'a> {
    /// The ranks if object `i` is on PE `placement[i]`.
    pub(super) fn new(work: &'a Work<'a>, placement: Vec<u32>) -> Self {
        let mut rank_of = rustc_hash::FxHashMap::default();
        rank_of.extend((work.available.iter().copied()).zip(0usize..));
        let mut objects = vec![Vec::new(); work.available.len()];
        let mut seconds: Vec<f64> =
            work.available.iter().map(|&pe| work.fixed_seconds[pe as usize]).collect();
        for &object in work.movable.iter().filter(|&&object| work.load_seconds(object) > 0.0) {
            let pe = placement[object as usize];
            if let Some(&rank) = rank_of.get(&pe) {
                objects[rank].push(object);
                seconds[rank] += work.seconds(object, pe);
            }
        }
        let key = |&object: &u32| (super::load::order(work.load_seconds(object)), object);
        objects.par_iter_mut().for_each(|own: &mut Vec<u32>| own.sort_unstable_by_key(key));
        let speeds = work.available.iter().map(|&pe| work.speed(pe)).collect();
        Ranks { work, speeds, placement, seconds, objects }
    }

    /// Seconds that `object` takes on `rank`.
    pub(super) fn seconds_of(&self, object: u32, rank: usize) -> f64 {
        self.work.load_seconds(object) / self.speeds[rank]
    }

    /// Seconds of the heaviest rank.
    pub(super) fn max_seconds(&self) -> f64 {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Gossip = Gossip { fanout: 2, rounds: 20, known: 1000, avoids_known: false };

    /// Simulates the gossip and checks its invariants: lists contain only underloaded ranks, each once.
    fn check(gossip: Gossip, is_underloaded: &[bool]) -> Outcome {
        let outcome = spread(gossip, is_underloaded, &mut rank_rngs(5, 0, is_underloaded.len()));
        for (rank, known) in outcome.known.iter().enumerate() {
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
        assert!(outcome.known.iter().all(|known| known.len() == 100));
        // A third of the ranks sends in the first round, then every rank that received a message in the round before.
        assert!((18 * 440..18 * 560).contains(&outcome.messages), "{}", outcome.messages);
        let few = check(Gossip { rounds: 1, ..TWO }, &is_underloaded);
        assert_eq!(few.messages, 200);
        assert_eq!(few.known.iter().map(Vec::len).sum::<usize>(), 300);
    }

    #[test]
    fn lists_are_limited_and_known_ranks_are_avoided() {
        let is_underloaded = vec![true; 50];
        assert!(
            check(Gossip { known: 7, ..TWO }, &is_underloaded).known.iter().all(|known| known.len() == 7)
        );
        let gossip = Gossip { fanout: 49, rounds: 1, known: 50, avoids_known: true };
        let complete = check(gossip, &is_underloaded);
        assert!(complete.messages == 50 * 49 && complete.known.iter().all(|known| known.len() == 50));
        // A rank whose list is complete sends no messages.
        assert_eq!(check(Gossip { rounds: 5, ..gossip }, &is_underloaded).messages, 50 * 49);
    }

    #[test]
    fn gossip_works_with_zero_to_two_pes() {
        assert_eq!(check(TWO, &[]).messages, 0);
        assert_eq!(check(TWO, &[true]).known, [[0]]);
        assert_eq!(check(TWO, &[false, true]).known, [[1], [1]]);
        assert_eq!(check(TWO, &[false; 9]).messages, 0);
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
