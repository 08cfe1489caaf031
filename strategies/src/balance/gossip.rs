//! How PEs hear of each other without anybody who knows all: gossip, simulated in rounds.
//!
//! H. Menon, L. V. Kalé, "A distributed dynamic load balancer for iterative applications", SC 2013, section
//! 4.1 (Grapevine): a PE below the average tells a few PEs drawn at random that it is, and whoever hears
//! something passes all it knows on to a few others. In a running program messages overtake each other; here
//! a round is all messages sent before any of them is read. Every PE has its own dice, so that the outcome
//! is the same on any number of threads.
//!
//! PEs are numbered by their position among the available ones, their rank.

use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use rayon::prelude::*;

use super::load::Work;
use crate::random::{below, generator};
use crate::registry::Param;

/// The parameter of [`Gossip::known`]. Its default lets 100,000 PEs be simulated in memory.
pub(super) const KNOWN: Param = Param {
    key: "known",
    default: "256",
    help: "how many others a PE remembers at most, first heard first kept",
};

/// A number that may be left to the strategy: `auto`, or at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrAuto(pub(super) Option<usize>);

impl FromStr for OrAuto {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<u32>() {
            _ if text == "auto" => Ok(OrAuto(None)),
            Ok(number) if number > 0 => Ok(OrAuto(Some(number as usize))),
            _ => Err("expected `auto` or a number of at least 1".into()),
        }
    }
}

/// The rules of the gossip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gossip {
    /// PEs that each one tells per round.
    pub(super) fanout: usize,
    /// Rounds.
    pub(super) rounds: usize,
    /// How many others a PE remembers at most.
    pub(super) known: usize,
    /// Whether a PE tells only such PEs as it has not heard of.
    pub(super) avoids_known: bool,
}

/// What came of it.
pub(super) struct Heard {
    /// For each rank those it knows to be underloaded, in the order it heard of them; itself first if it is.
    pub(super) known: Vec<Vec<u32>>,
    /// Messages sent.
    pub(super) messages: u64,
}

/// The dice of every rank, at the step `step`.
pub(super) fn dice(seed: u64, step: u64, ranks: usize) -> Vec<ChaCha8Rng> {
    // The step chooses the streams, so that the steps of a run differ although its seed does not.
    (0..ranks as u64).map(|rank| generator(seed, (step << 32) ^ rank)).collect()
}

/// A set of ranks that is emptied in no time.
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

    /// Whether `rank` was not in it.
    fn insert(&mut self, rank: u32) -> bool {
        std::mem::replace(&mut self.mark_of[rank as usize], self.mark) != self.mark
    }
}

/// Spreads which ranks are underloaded.
pub(super) fn spread(gossip: Gossip, is_underloaded: &[bool], dice: &mut [ChaCha8Rng]) -> Heard {
    let ranks = is_underloaded.len();
    let mut known: Vec<Vec<u32>> = (0..ranks as u32)
        .map(|rank| if is_underloaded[rank as usize] { vec![rank] } else { Vec::new() })
        .collect();
    let mut tells = is_underloaded.to_vec();
    let mut messages = 0;
    for _ in 0..gossip.rounds {
        let targets: Vec<Vec<u32>> = (dice.par_iter_mut().enumerate())
            .map_init(
                || Marks::new(ranks),
                |marks, (rank, dice)| match tells[rank] {
                    true => targets(gossip, rank as u32, &known[rank], ranks, dice, marks),
                    false => Vec::new(),
                },
            )
            .collect();
        let mut senders = vec![Vec::new(); ranks];
        for (rank, targets) in (0..).zip(&targets) {
            targets.iter().for_each(|&target| senders[target as usize].push(rank));
        }
        messages += targets.iter().map(|targets| targets.len() as u64).sum::<u64>();
        // What is heard in this round is not passed on in it, so everybody reads what the others knew before.
        let news: Vec<Vec<u32>> = (senders.par_iter().enumerate())
            .map_init(
                || Marks::new(ranks),
                |marks, (rank, senders)| {
                    // Everybody listens to those after it first: not all shall remember the same few.
                    let (before, after) = senders.split_at(senders.partition_point(|&s| (s as usize) < rank));
                    let messages = after.iter().chain(before).map(|&sender| &known[sender as usize]);
                    news(gossip.known, &known[rank], messages, marks)
                },
            )
            .collect();
        known.par_iter_mut().zip(news).for_each(|(known, news)| known.extend(news));
        tells = senders.iter().map(|senders| !senders.is_empty()).collect();
    }
    Heard { known, messages }
}

/// Whom `rank` tells in a round: that many different ranks, drawn at random.
fn targets(
    gossip: Gossip,
    rank: u32,
    known: &[u32],
    ranks: usize,
    dice: &mut ChaCha8Rng,
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
            let target = below(dice, ranks as u64) as u32;
            if marks.insert(target) {
                targets.push(target);
            }
        }
        return targets;
    }
    // Few are left to be drawn from, so they are listed, and the chosen ones moved to the front.
    let mut others: Vec<u32> = (0..ranks as u32).filter(|&other| marks.insert(other)).collect();
    for i in 0..fanout {
        let chosen = i + below(dice, (others.len() - i) as u64) as usize;
        others.swap(i, chosen);
    }
    others.truncate(fanout);
    others
}

/// What a rank hears in a round that it did not know, until it knows `most`.
fn news<'a>(
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

/// A number below the number of `weights`, each with a probability in proportion to its weight; those that
/// are not positive are never drawn. `None` if there is no positive one.
pub(super) fn draw(dice: &mut impl RngCore, weights: &[f64]) -> Option<usize> {
    let positive = || weights.iter().enumerate().filter(|&(_, &weight)| weight > 0.0);
    let total: f64 = positive().map(|(_, weight)| weight).sum();
    if total == 0.0 {
        return None;
    }
    let mut rest = (dice.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
    let mut last = None;
    for (number, weight) in positive() {
        // Rounding may leave something after the last one, which then is it.
        last = Some(number);
        rest -= weight;
        if rest < 0.0 {
            break;
        }
    }
    last
}

/// Who has what, by rank.
pub(super) struct Ranks<'a> {
    work: &'a Work<'a>,
    /// The speed of each rank.
    speeds: Vec<f64>,
    /// The PE of each object of the database.
    pub(super) placement: Vec<u32>,
    /// Seconds of each rank.
    pub(super) seconds: Vec<f64>,
    /// The objects of each rank that may move and have a load, lightest first, lowest first among equals.
    pub(super) objects: Vec<Vec<u32>>,
}

impl<'a> Ranks<'a> {
    /// Object `i` is on `placement[i]`.
    pub(super) fn new(work: &'a Work<'a>, placement: Vec<u32>) -> Self {
        let mut rank_of = rustc_hash::FxHashMap::default();
        rank_of.extend((work.available.iter().copied()).zip(0usize..));
        let mut objects = vec![Vec::new(); work.available.len()];
        for &object in work.movable.iter().filter(|&&object| work.load_seconds(object) > 0.0) {
            if let Some(&rank) = rank_of.get(&placement[object as usize]) {
                objects[rank].push(object);
            }
        }
        let key = |&object: &u32| (super::load::order(work.load_seconds(object)), object);
        objects.par_iter_mut().for_each(|own: &mut Vec<u32>| own.sort_unstable_by_key(key));
        let seconds = work.seconds_at(&placement);
        let seconds = work.available.iter().map(|&pe| seconds[pe as usize]).collect();
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

    /// Spreads, and checks what holds of every gossip: only the underloaded are known, each once.
    fn check(gossip: Gossip, is_underloaded: &[bool]) -> Heard {
        let heard = spread(gossip, is_underloaded, &mut dice(5, 0, is_underloaded.len()));
        for (rank, known) in heard.known.iter().enumerate() {
            let mut sorted = known.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), known.len(), "rank {rank} knows somebody twice");
            assert!(known.iter().all(|&other| is_underloaded[other as usize]));
            assert!(known.len() <= gossip.known.max(1));
        }
        heard
    }

    #[test]
    fn after_enough_rounds_everybody_knows_everybody() {
        let is_underloaded: Vec<bool> = (0..300).map(|rank| rank % 3 == 0).collect();
        let heard = check(TWO, &is_underloaded);
        assert!(heard.known.iter().all(|known| known.len() == 100));
        // A third tells in the first round, and then all who have heard something in the one before.
        assert!((18 * 440..18 * 560).contains(&heard.messages), "{}", heard.messages);
        let few = check(Gossip { rounds: 1, ..TWO }, &is_underloaded);
        assert_eq!(few.messages, 200);
        assert_eq!(few.known.iter().map(Vec::len).sum::<usize>(), 300);
    }

    #[test]
    fn a_pe_remembers_so_many_and_tells_strangers_if_it_should() {
        let is_underloaded = vec![true; 50];
        assert!(
            check(Gossip { known: 7, ..TWO }, &is_underloaded).known.iter().all(|known| known.len() == 7)
        );
        let gossip = Gossip { fanout: 49, rounds: 1, known: 50, avoids_known: true };
        let complete = check(gossip, &is_underloaded);
        assert!(complete.messages == 50 * 49 && complete.known.iter().all(|known| known.len() == 50));
        // Whoever knows all has nobody to tell.
        assert_eq!(check(Gossip { rounds: 5, ..gossip }, &is_underloaded).messages, 50 * 49);
    }

    #[test]
    fn few_or_no_pes_are_no_trouble() {
        assert_eq!(check(TWO, &[]).messages, 0);
        assert_eq!(check(TWO, &[true]).known, [[0]]);
        assert_eq!(check(TWO, &[false, true]).known, [[1], [1]]);
        assert_eq!(check(TWO, &[false; 9]).messages, 0);
    }

    #[test]
    fn what_weighs_more_is_drawn_more_often() {
        let mut dice = generator(1, 1);
        let mut counts = [0; 5];
        for _ in 0..6000 {
            let drawn = draw(&mut dice, &[1.0, 0.5, 0.0, -1.0, 0.5]);
            counts[drawn.expect("three are positive")] += 1;
        }
        assert!((2800..3200).contains(&counts[0]) && (1350..1650).contains(&counts[1]), "{counts:?}");
        assert_eq!((counts[2], counts[3]), (0, 0));
        assert_eq!(draw(&mut dice, &[0.0, f64::NAN]), None);
        assert_eq!(draw(&mut dice, &[]), None);
    }
}
