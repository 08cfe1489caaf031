//! The transfers of `TemperedLB`: the order of the objects of a PE above the average, and their receivers.

use std::cmp::Reverse;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;

use equipoise_model::Database;

use super::Word;
use crate::balance::gossip::{Ranks, sample};
use crate::balance::load::{Work, order};

/// When a transfer is made (Lifflander et al. 2021, section V-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// The receiver stays at or below the average.
    Grapevine,
    /// The receiver stays below the previous load of the donor.
    ModifiedGrapevine,
}

impl FromStr for Criterion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Word(text.into()).value_in(&[
            ("Grapevine", Criterion::Grapevine),
            ("ModifiedGrapevine", Criterion::ModifiedGrapevine),
        ])
    }
}

/// The order in which the objects of a PE are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// The order of the database.
    Arbitrary,
    /// By id.
    ElmId,
    /// First the lightest object that alone brings the PE below the average, then the lighter objects, heaviest
    /// first, then the heavier objects, lightest first.
    FewestMigrations,
    /// As [`Self::FewestMigrations`], but first the lightest object that suffices together with all lighter objects.
    SmallObjects,
    /// Heaviest first.
    LargestObjects,
}

impl FromStr for Ordering {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Word(text.into()).value_in(&[
            ("Arbitrary", Ordering::Arbitrary),
            ("ElmID", Ordering::ElmId),
            ("FewestMigrations", Ordering::FewestMigrations),
            ("SmallObjects", Ordering::SmallObjects),
            ("LargestObjects", Ordering::LargestObjects),
        ])
    }
}

/// The unit of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// One object.
    Original,
    /// One object, or an exchange of two objects, with both PEs locked. vt exchanges clusters of objects that share
    /// memory. The database does not record shared memory, so each object is a cluster.
    SwapClusters,
}

impl FromStr for Transfer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Word(text.into())
            .value_in(&[("Original", Transfer::Original), ("SwapClusters", Transfer::SwapClusters)])
    }
}

/// The rules of the transfers of one iteration.
pub(super) struct TransferRules<'a> {
    pub(super) database: &'a Database,
    pub(super) work: &'a Work<'a>,
    pub(super) criterion: Criterion,
    pub(super) ordering: Ordering,
    pub(super) target_seconds: f64,
}

impl TransferRules<'_> {
    /// Whether a PE with `donor_seconds` may raise a receiver to `after_seconds`.
    fn allows(&self, donor_seconds: f64, after_seconds: f64) -> bool {
        match self.criterion {
            Criterion::Grapevine => after_seconds <= self.target_seconds,
            Criterion::ModifiedGrapevine => after_seconds < donor_seconds,
        }
    }

    /// The objects that `rank` gives away, each with its receiver among the ranks `known`.
    pub(super) fn single_transfers(
        &self,
        ranks: &Ranks,
        rank: usize,
        known: &[u32],
        rng: &mut ChaCha8Rng,
    ) -> Vec<(u32, usize)> {
        let mut moves = Vec::new();
        let mut seconds = ranks.seconds[rank];
        if seconds <= self.target_seconds || known.is_empty() {
            return moves;
        }
        let mut expected_seconds: Vec<f64> =
            known.iter().map(|&other| ranks.seconds[other as usize]).collect();
        let mut weights = Vec::new();
        for object in self.ordered_objects(ranks, rank) {
            let scale = expected_seconds.iter().copied().fold(self.target_seconds, f64::max);
            // A single known rank is chosen even if its weight is 0.
            weights.clear();
            weights.extend(expected_seconds.iter().map(|&expected| 1.0 - expected / scale));
            let sampled = if known.len() == 1 { Some(0) } else { sample(rng, &weights) };
            let Some(position) = sampled else { break };
            let receiver = known[position] as usize;
            let after = expected_seconds[position] + ranks.seconds_of(object, receiver);
            if self.allows(seconds, after) {
                expected_seconds[position] = after;
                seconds -= ranks.seconds_of(object, rank);
                moves.push((object, receiver));
            }
            if seconds <= self.target_seconds {
                break;
            }
        }
        moves
    }

    /// The objects of `rank` in the order in which they are offered.
    pub(super) fn ordered_objects(&self, ranks: &Ranks, rank: usize) -> Vec<u32> {
        let mut objects = ranks.objects[rank].clone();
        let over = ranks.seconds[rank] - self.target_seconds;
        let seconds = |object: u32| ranks.seconds_of(object, rank);
        match self.ordering {
            Ordering::Arbitrary => objects.sort_unstable(),
            Ordering::ElmId => objects.sort_by_key(|&object| self.database.objects[object as usize].id),
            Ordering::LargestObjects => self.heaviest_first(&mut objects),
            Ordering::FewestMigrations => {
                let enough = objects.partition_point(|&object| seconds(object) <= over);
                self.heaviest_first_up_to(&mut objects, enough);
            }
            Ordering::SmallObjects => {
                let mut sum = 0.0;
                let enough = objects.iter().position(|&object| {
                    sum += seconds(object);
                    sum >= over
                });
                let last = objects.len().saturating_sub(1);
                self.heaviest_first_up_to(&mut objects, enough.unwrap_or(last));
            }
        }
        objects
    }

    fn heaviest_first(&self, objects: &mut [u32]) {
        objects.sort_by_key(|&object| (Reverse(order(self.work.load_seconds(object))), object));
    }

    /// Reorders objects that are sorted lightest first: the objects up to `last`, heaviest first, then the
    /// others.
    fn heaviest_first_up_to(&self, objects: &mut [u32], last: usize) {
        let end = (last + 1).min(objects.len());
        self.heaviest_first(&mut objects[..end]);
    }

    /// The moves when each rank above the target, heaviest first, repeats its best swap with the ranks it knows. In vt,
    /// locks ensure that a rank takes part in only one swap at a time, and that it has the current list of its
    /// partner's objects.
    pub(super) fn swaps(&self, ranks: &Ranks, known: &[Vec<u32>]) -> Vec<(u32, usize)> {
        let mut moves = Vec::new();
        let mut seconds = ranks.seconds.clone();
        let mut objects = ranks.objects.clone();
        let mut donors: Vec<usize> =
            (0..seconds.len()).filter(|&rank| seconds[rank] > self.target_seconds).collect();
        donors.sort_by_key(|&rank| (Reverse(order(seconds[rank])), rank));
        for donor in donors {
            // Every swap makes the donor lighter, but possibly by very little, so the number of swaps is limited.
            for _ in 0..ranks.objects[donor].len() {
                if seconds[donor] <= self.target_seconds {
                    break;
                }
                let swaps = known[donor].iter().map(|&other| other as usize).filter(|&other| other != donor);
                let swaps = swaps.filter_map(|other| self.best_swap(ranks, &seconds, &objects, donor, other));
                let Some(swap) = swaps.min_by_key(|swap| swap.0) else { break };
                let (_, receiver, given, returned) = swap;
                let moved = [(Some(given), donor, receiver), (returned, receiver, donor)];
                for (object, from, to) in moved.into_iter().filter_map(|(o, f, t)| Some((o?, f, t))) {
                    objects[from].retain(|&other| other != object);
                    let key = |object: u32| (order(self.work.load_seconds(object)), object);
                    let position = objects[to].partition_point(|&other| key(other) < key(object));
                    objects[to].insert(position, object);
                    seconds[from] = (seconds[from] - ranks.seconds_of(object, from)).max(0.0);
                    seconds[to] += ranks.seconds_of(object, to);
                    moves.push((object, to));
                }
            }
        }
        moves
    }

    /// The swap of two ranks after which the heavier of them is lightest: its seconds (as an ordered number), the
    /// receiver, the object given, and the object returned.
    fn best_swap(
        &self,
        ranks: &Ranks,
        seconds: &[f64],
        objects: &[Vec<u32>],
        donor: usize,
        receiver: usize,
    ) -> Option<(u64, usize, u32, Option<u32>)> {
        let speed = |rank: usize| self.work.speed(self.work.available[rank]);
        // The load at speed 1 whose move would make both ranks equal.
        let ideal = (seconds[donor] - seconds[receiver]) / (1.0 / speed(donor) + 1.0 / speed(receiver));
        let mut best: Option<(u64, usize, u32, Option<u32>)> = None;
        for &given in &objects[donor] {
            let wanted = self.work.load_seconds(given) - ideal;
            let at = objects[receiver].partition_point(|&object| self.work.load_seconds(object) < wanted);
            let near = [at.checked_sub(1), Some(at)].into_iter().flatten();
            let near = near.filter_map(|at| objects[receiver].get(at).copied()).map(Some);
            for returned in near.chain([None]) {
                let back = |rank: usize| returned.map_or(0.0, |object| ranks.seconds_of(object, rank));
                let donor_after = seconds[donor] - ranks.seconds_of(given, donor) + back(donor);
                let receiver_after = seconds[receiver] + ranks.seconds_of(given, receiver) - back(receiver);
                if donor_after >= seconds[donor] || !self.allows(seconds[donor], receiver_after) {
                    continue;
                }
                let rank = order(donor_after.max(receiver_after).max(0.0));
                if best.is_none_or(|(least, ..)| rank < least) {
                    best = Some((rank, receiver, given, returned));
                }
            }
        }
        best
    }
}
