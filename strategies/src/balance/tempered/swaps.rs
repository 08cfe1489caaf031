//! Exchanges of two objects in `TemperedLB`: vt locks both PEs meanwhile, so a PE takes part in one exchange at a time. Here they are made
//! in one place, by the heaviest PE first.

use std::cmp::Reverse;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use equipoise_model::{Assignment, Database};

use super::{Criterion, Tempered};
use crate::balance::gossip::{rank_rng, spread};
use crate::balance::load::{Work, order};

impl Tempered {
    /// Iterations of gossip and exchanges.
    pub(super) fn exchange(
        &self,
        database: &Database,
        work: &Work,
        placement: Vec<u32>,
        seed: u64,
    ) -> Assignment {
        let target_seconds = work.average_seconds();
        let count = work.available.len();
        let mut best = Ranks::new(work, placement.clone());
        let mut best_seconds = best.max_seconds();
        if best_seconds <= target_seconds || count < 2 {
            return Assignment::new(placement);
        }
        let gossip = self.gossip(count);
        let mut rngs: Vec<ChaCha8Rng> =
            (0..count as u32).map(|rank| rank_rng(seed, database.step, rank)).collect();
        let (mut messages, mut iterations, mut best_iteration) = (0, 0, 0);
        for _ in 0..self.trials {
            let mut ranks = Ranks::new(work, placement.clone());
            for _ in 0..self.iters {
                let is_underloaded: Vec<bool> =
                    ranks.seconds.iter().map(|&seconds| seconds < target_seconds).collect();
                let (known, sent) = spread(gossip, &is_underloaded, &mut rngs);
                let rules = Exchanges { work, criterion: self.criterion, target_seconds };
                let moves = rules.swaps(&ranks, &known);
                for (object, rank) in moves {
                    ranks.placement[object as usize] = work.available[rank];
                }
                // The sums are computed again, which removes accumulated rounding errors.
                ranks = Ranks::new(work, ranks.placement);
                (messages, iterations) = (messages + sent, iterations + 1);
                if ranks.max_seconds() < best_seconds {
                    (best_seconds, best_iteration) = (ranks.max_seconds(), iterations);
                    best.placement.clone_from(&ranks.placement);
                }
            }
        }
        Assignment::new(best.placement)
            .with_note("gossip messages", messages as f64)
            .with_note("iterations", f64::from(iterations))
            .with_note("best iteration", f64::from(best_iteration))
    }
}

/// Objects and seconds by rank.
struct Ranks<'a> {
    work: &'a Work<'a>,
    /// The speed of each rank.
    speeds: Vec<f64>,
    /// The PE of each object of the database.
    placement: Vec<u32>,
    /// Seconds of each rank.
    seconds: Vec<f64>,
    /// The migratable objects with a load of each rank, lightest first, lowest index first among equals.
    objects: Vec<Vec<u32>>,
}

impl<'a> Ranks<'a> {
    /// The ranks if object `i` is on PE `placement[i]`.
    fn new(work: &'a Work<'a>, placement: Vec<u32>) -> Self {
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
        let key = |&object: &u32| (order(work.load_seconds(object)), object);
        objects.par_iter_mut().for_each(|own: &mut Vec<u32>| own.sort_unstable_by_key(key));
        let speeds = work.available.iter().map(|&pe| work.speed(pe)).collect();
        Ranks { work, speeds, placement, seconds, objects }
    }

    /// Seconds that `object` takes on `rank`.
    fn seconds_of(&self, object: u32, rank: usize) -> f64 {
        self.work.load_seconds(object) / self.speeds[rank]
    }

    /// Seconds of the heaviest rank.
    fn max_seconds(&self) -> f64 {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }
}

/// The rules of the exchanges of one iteration.
struct Exchanges<'a> {
    work: &'a Work<'a>,
    criterion: Criterion,
    target_seconds: f64,
}

impl Exchanges<'_> {
    /// The moves when each rank above the target, heaviest first, repeats its best swap with the ranks it knows. In vt,
    /// locks ensure that a rank takes part in only one swap at a time, and that it has the current list of its
    /// partner's objects.
    fn swaps(&self, ranks: &Ranks, known: &[Vec<u32>]) -> Vec<(u32, usize)> {
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
                if donor_after >= seconds[donor]
                    || !self.criterion.allows(seconds[donor], receiver_after, self.target_seconds)
                {
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
