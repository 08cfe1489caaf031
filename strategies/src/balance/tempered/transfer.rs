//! The transfers of `TemperedLB`: which objects of a PE above the average go first, and to whom.

use std::cmp::Reverse;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;

use super::Word;
use crate::Database;
use crate::balance::gossip::{Ranks, draw};
use crate::balance::load::{Work, order};

/// When a transfer is made (Lifflander et al. 2021, section V-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// The receiver stays at or below the average.
    Grapevine,
    /// The receiver stays below what the giver had.
    ModifiedGrapevine,
}

impl FromStr for Criterion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Word(text.into()).among(&[
            ("Grapevine", Criterion::Grapevine),
            ("ModifiedGrapevine", Criterion::ModifiedGrapevine),
        ])
    }
}

/// Which objects of a PE are offered first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// As they stand in the database.
    Arbitrary,
    /// By their ids.
    ElmId,
    /// First the lightest one that alone brings the PE below the average, then the lighter ones, heaviest
    /// first, then the heavier ones, lightest first.
    FewestMigrations,
    /// As [`Self::FewestMigrations`], but first the one that does so together with all that are lighter.
    SmallObjects,
    /// Heaviest first.
    LargestObjects,
}

impl FromStr for Ordering {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Word(text.into()).among(&[
            ("Arbitrary", Ordering::Arbitrary),
            ("ElmID", Ordering::ElmId),
            ("FewestMigrations", Ordering::FewestMigrations),
            ("SmallObjects", Ordering::SmallObjects),
            ("LargestObjects", Ordering::LargestObjects),
        ])
    }
}

/// What is transferred at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// One object.
    Original,
    /// One object for another or for nothing, with both PEs locked. In vt clusters of objects that share
    /// memory change places; a database knows of no shared memory, so each object is a cluster.
    SwapClusters,
}

impl FromStr for Transfer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Word(text.into()).among(&[("Original", Transfer::Original), ("SwapClusters", Transfer::SwapClusters)])
    }
}

/// What all PEs go by in one iteration.
pub(super) struct Stage<'a> {
    pub(super) database: &'a Database,
    pub(super) work: &'a Work<'a>,
    pub(super) criterion: Criterion,
    pub(super) ordering: Ordering,
    pub(super) target_seconds: f64,
}

impl Stage<'_> {
    /// Whether a PE that had `giver_seconds` may make another have `after_seconds`.
    fn allows(&self, giver_seconds: f64, after_seconds: f64) -> bool {
        match self.criterion {
            Criterion::Grapevine => after_seconds <= self.target_seconds,
            Criterion::ModifiedGrapevine => after_seconds < giver_seconds,
        }
    }

    /// The objects `rank` gives away, each to the rank beside it, by what it heard of the `known` ones.
    pub(super) fn one_by_one(
        &self,
        ranks: &Ranks,
        rank: usize,
        known: &[u32],
        dice: &mut ChaCha8Rng,
    ) -> Vec<(u32, usize)> {
        let mut moves = Vec::new();
        let mut seconds = ranks.seconds[rank];
        if seconds <= self.target_seconds || known.is_empty() {
            return moves;
        }
        let mut beliefs: Vec<f64> = known.iter().map(|&other| ranks.seconds[other as usize]).collect();
        let mut weights = Vec::new();
        for object in self.ordered(ranks, rank) {
            let scale = beliefs.iter().copied().fold(self.target_seconds, f64::max);
            // Whoever knows only one has no choice.
            weights.clear();
            weights.extend(beliefs.iter().map(|&belief| 1.0 - belief / scale));
            let drawn = if known.len() == 1 { Some(0) } else { draw(dice, &weights) };
            let Some(position) = drawn else { break };
            let receiver = known[position] as usize;
            let after = beliefs[position] + ranks.seconds_of(object, receiver);
            if self.allows(seconds, after) {
                beliefs[position] = after;
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
    pub(super) fn ordered(&self, ranks: &Ranks, rank: usize) -> Vec<u32> {
        let mut objects = ranks.objects[rank].clone();
        let over = ranks.seconds[rank] - self.target_seconds;
        let seconds = |object: u32| ranks.seconds_of(object, rank);
        match self.ordering {
            Ordering::Arbitrary => objects.sort_unstable(),
            Ordering::ElmId => objects.sort_by_key(|&object| self.database.objects[object as usize].id),
            Ordering::LargestObjects => self.heaviest_first(&mut objects),
            Ordering::FewestMigrations => {
                let enough = objects.partition_point(|&object| seconds(object) <= over);
                self.begin_at(&mut objects, enough);
            }
            Ordering::SmallObjects => {
                let mut sum = 0.0;
                let enough = objects.iter().position(|&object| {
                    sum += seconds(object);
                    sum >= over
                });
                let last = objects.len().saturating_sub(1);
                self.begin_at(&mut objects, enough.unwrap_or(last));
            }
        }
        objects
    }

    fn heaviest_first(&self, objects: &mut [u32]) {
        objects.sort_by_key(|&object| (Reverse(order(self.work.load_seconds(object))), object));
    }

    /// Of objects that are lightest first: the one at `first` and the lighter ones, heaviest first, then the
    /// others.
    fn begin_at(&self, objects: &mut [u32], first: usize) {
        let end = (first + 1).min(objects.len());
        self.heaviest_first(&mut objects[..end]);
    }

    /// The objects that change ranks when the heaviest rank makes its best swap, again and again, with the
    /// ranks it knows. Locks let a rank take part in one swap at a time and see what its partner has.
    pub(super) fn swaps(&self, ranks: &Ranks, known: &[Vec<u32>]) -> Vec<(u32, usize)> {
        let mut moves = Vec::new();
        let mut seconds = ranks.seconds.clone();
        let mut objects = ranks.objects.clone();
        let mut givers: Vec<usize> =
            (0..seconds.len()).filter(|&rank| seconds[rank] > self.target_seconds).collect();
        givers.sort_by_key(|&rank| (Reverse(order(seconds[rank])), rank));
        for giver in givers {
            // Every swap makes the giver lighter, by how little is not bounded.
            for _ in 0..ranks.objects[giver].len() {
                if seconds[giver] <= self.target_seconds {
                    break;
                }
                let swaps = known[giver].iter().map(|&other| other as usize).filter(|&other| other != giver);
                let swaps = swaps.filter_map(|other| self.best_swap(ranks, &seconds, &objects, giver, other));
                let Some(swap) = swaps.min_by_key(|swap| swap.0) else { break };
                let (_, taker, goes, comes) = swap;
                let carried = [(Some(goes), giver, taker), (comes, taker, giver)];
                for (object, from, to) in carried.into_iter().filter_map(|(o, f, t)| Some((o?, f, t))) {
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

    /// The swap of two ranks that leaves the heavier of them lightest: what that one has then, the taker,
    /// what goes, and what comes.
    fn best_swap(
        &self,
        ranks: &Ranks,
        seconds: &[f64],
        objects: &[Vec<u32>],
        giver: usize,
        taker: usize,
    ) -> Option<(u64, usize, u32, Option<u32>)> {
        let speed = |rank: usize| self.work.speed(self.work.available[rank]);
        // The load at speed 1 whose going would make both alike.
        let ideal = (seconds[giver] - seconds[taker]) / (1.0 / speed(giver) + 1.0 / speed(taker));
        let mut best: Option<(u64, usize, u32, Option<u32>)> = None;
        for &goes in &objects[giver] {
            let wanted = self.work.load_seconds(goes) - ideal;
            let at = objects[taker].partition_point(|&object| self.work.load_seconds(object) < wanted);
            let near = [at.checked_sub(1), Some(at)].into_iter().flatten();
            let near = near.filter_map(|at| objects[taker].get(at).copied()).map(Some);
            for comes in near.chain([None]) {
                let back = |rank: usize| comes.map_or(0.0, |object| ranks.seconds_of(object, rank));
                let of_giver = seconds[giver] - ranks.seconds_of(goes, giver) + back(giver);
                let of_taker = seconds[taker] + ranks.seconds_of(goes, taker) - back(taker);
                if of_giver >= seconds[giver] || !self.allows(seconds[giver], of_taker) {
                    continue;
                }
                let rank = order(of_giver.max(of_taker).max(0.0));
                if best.is_none_or(|(least, ..)| rank < least) {
                    best = Some((rank, taker, goes, comes));
                }
            }
        }
        best
    }
}
