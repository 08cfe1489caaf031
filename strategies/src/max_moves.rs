//! At most a given number of moves, with any strategy: the flag `--max-moves`.
//!
//! A strategy answers with one placement, which may move all objects. Between the present placement and this one are others, which
//! gain less and move less. [`MaxMoves::limit`] makes a strategy that chooses among them:
//!
//! 1. The strategy gives its answer, and placements with fewer moves if it knows some ([`Strategy::alternatives`]).
//! 2. From each of them, objects return to their present PE, one after the other, until all have returned. Those return first whose return
//!    makes no PE heavier than the heaviest PE of the answer, and among these those whose return costs the fewest hop-bytes. On a second way,
//!    whenever a return has made a PE too heavy, an object that has moved there returns next: so exchanges are undone as a whole, which
//!    matters where the loads leave no room.
//! 3. Of all placements on these ways that move few enough objects, the one whose heaviest PE is the lightest wins. Placements whose
//!    heaviest PE is at most as heavy as that of the answer count as equal; of these the one with the fewest hop-bytes wins.
//!
//! An answer that moves few enough objects is taken unchanged. The ways from others do not depend on the limit, and all end at the present
//! placement (but for objects that must leave their PE). So, of limits that the answer exceeds, a larger one never gives a worse placement,
//! and none a placement that is worse than the present one.

mod paying;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use equipoise_model::table::count;
use equipoise_model::{Assignment, Database, Topology};
use equipoise_network::program::Model;
use rayon::prelude::*;

use crate::balance::load::{Work, order};
use crate::cost::commodities::Commodities;
use crate::descriptor::Choice;
use crate::placement::ROUNDING;
use crate::strategy::{Alternatives, check};
use crate::{Strategy, StrategyError};

pub use paying::paying_part;

/// The largest number of objects that a load-balancing step may move. Objects whose PE is not available must leave and do not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxMoves {
    /// This number of objects.
    Objects(u64),
    /// This part of all objects, in percent from 0 to 100.
    Percent(f64),
}

impl FromStr for MaxMoves {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let moves = match text.strip_suffix('%') {
            Some(percent) => {
                percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent)).map(MaxMoves::Percent)
            }
            None => text.parse().ok().map(MaxMoves::Objects),
        };
        moves.ok_or_else(|| {
            "expected a number of objects such as 100, or a part of them from 0% to 100%".into()
        })
    }
}

impl fmt::Display for MaxMoves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MaxMoves::Objects(objects) => write!(f, "{objects}"),
            MaxMoves::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl MaxMoves {
    /// The number of objects, of this many.
    fn of(self, objects: usize) -> usize {
        match self {
            MaxMoves::Objects(most) => usize::try_from(most).unwrap_or(usize::MAX).min(objects),
            MaxMoves::Percent(percent) => (percent * objects as f64 / 100.0) as usize,
        }
    }

    fn in_words(self) -> String {
        match self {
            MaxMoves::Objects(objects) => count(objects, "object"),
            MaxMoves::Percent(percent) => format!("{percent} % of the objects"),
        }
    }

    /// The same strategy with at most this number of moves.
    #[must_use]
    pub fn limit(self, choice: &Choice) -> Choice {
        let strategy = Arc::new(Limited { strategy: Arc::clone(&choice.strategy), most: self });
        Choice { strategy, ..choice.clone() }
    }
}

/// A strategy with a limit of moves.
struct Limited {
    strategy: Arc<dyn Strategy>,
    most: MaxMoves,
}

impl Limited {
    /// Whether the answer is taken unchanged: it moves few enough objects, or is impossible, and the caller says why it is rejected.
    fn is_enough(&self, work: &Work, answer: &Assignment) -> bool {
        let most = self.most.of(work.database().objects.len());
        answer.check(work.database()).is_err() || moves(work, &answer.pe_of) <= most
    }

    /// The best placement within the limit.
    fn choose(
        &self,
        work: &Work,
        topology: &dyn Topology,
        Alternatives { answer, others }: Alternatives,
    ) -> Assignment {
        if self.is_enough(work, &answer) {
            return answer;
        }
        let most = self.most.of(work.database().objects.len());
        let limit_seconds = work.max_seconds(&work.seconds_at(&answer.pe_of)) * (1.0 + ROUNDING);
        let traffic = Commodities::of(work.database());
        let returning = Returning { work, topology, traffic: &traffic, limit_seconds };
        let ends: Vec<Vec<u32>> = others.into_iter().chain([answer.pe_of]).collect();
        let pe_of = returning.best_of_all(&ends, &[most]).swap_remove(0);
        let moved = count(moves(work, &pe_of) as u64, "object");
        let sentence =
            format!("At most {} may move; the chosen placement moves {moved}.", self.most.in_words());
        Assignment { sentence: Some(sentence), ..Assignment::new(pe_of) }
    }
}

impl Strategy for Limited {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        let is_enough = |answer: &Assignment| self.is_enough(&work, answer);
        let alternatives = self.strategy.alternatives(database, topology, seed, &is_enough)?;
        Ok(self.choose(&work, topology, alternatives))
    }

    fn assign_program(
        &self,
        model: &Model,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let answer = self.strategy.assign_program(model, database, topology, seed)?;
        let work = Work::new(database, check(database, topology)?);
        Ok(self.choose(&work, topology, Alternatives { answer, others: Vec::new() }))
    }
}

/// The best placements between the present placement and another one, by their moves: at most 1, 2, 5, 10, 20, 40, 60, 80 and 100 % of the
/// moves of the other one, which is the last. Of placements with the same moves there is one. `others` are further placements of all objects
/// that may be near, as the [alternatives](Strategy::alternatives) of the strategy: with them, the limits choose as [`MaxMoves::limit`].
///
/// # Errors
/// If no PE is available, or the database and the machine do not fit.
pub fn between(
    database: &Database,
    topology: &dyn Topology,
    pe_of: &[u32],
    others: Vec<Vec<u32>>,
) -> Result<Vec<Vec<u32>>, StrategyError> {
    let work = Work::new(database, check(database, topology)?);
    let limit_seconds = work.max_seconds(&work.seconds_at(pe_of)) * (1.0 + ROUNDING);
    let traffic = Commodities::of(database);
    let returning = Returning { work: &work, topology, traffic: &traffic, limit_seconds };
    let ends: Vec<Vec<u32>> = others.into_iter().chain([pe_of.to_vec()]).collect();
    let all = moves(&work, pe_of);
    let limits = [1, 2, 5, 10, 20, 40, 60, 80].map(|percent| percent * all / 100);
    let inner = returning.best_of_all(&ends, &limits).into_iter();
    let mut placements: Vec<Vec<u32>> = inner.chain([pe_of.to_vec()]).collect();
    placements.dedup_by_key(|placement| moves(&work, placement));
    placements.retain(|placement| moves(&work, placement) > 0);
    Ok(placements)
}

/// The objects on another PE than now, without those that must leave their PE.
fn moves(work: &Work, placement: &[u32]) -> usize {
    let is_moved = |&&object: &&u32| is_moved(work, placement, object);
    work.movable.iter().filter(is_moved).count()
}

fn is_moved(work: &Work, placement: &[u32], object: u32) -> bool {
    let home = work.home(object);
    placement[object as usize] != home && work.is_available(home)
}

/// Objects return to their present PE.
struct Returning<'a> {
    work: &'a Work<'a>,
    topology: &'a dyn Topology,
    traffic: &'a Commodities,
    /// The heaviest PE of the strategy's answer.
    limit_seconds: f64,
}

/// The seconds of the heaviest PE, or of the PE to which an object returns, as a number that orders them; and hop-bytes, or those that a
/// return adds.
type Grade = (u64, i128);

/// A way from a placement to the present one: objects return one after the other.
struct Way {
    /// The objects in the order of their return.
    returned: Vec<u32>,
    /// The grade of the placement after each number of returns, from 0 on.
    grades: Vec<Grade>,
}

impl Way {
    /// The best grade of a placement on this way that moves at most `most` objects, and its number of returns.
    fn best(&self, most: usize) -> (Grade, usize) {
        let first = self.returned.len().saturating_sub(most);
        let graded = self.grades[first..].iter().copied().zip(first..);
        graded.min().unwrap_or(((u64::MAX, 0), self.returned.len()))
    }
}

impl Returning<'_> {
    /// By limit: the best placement with at most that number of moves on the two ways from each of `ends` to the present one, of equals the
    /// first.
    fn best_of_all(&self, ends: &[Vec<u32>], limits: &[usize]) -> Vec<Vec<u32>> {
        let of_end = |end: &Vec<u32>| -> Vec<(Grade, Vec<u32>)> {
            let ways = [false, true].map(|undoes_exchanges| self.way(end, undoes_exchanges));
            limits.iter().map(|&most| self.best(end, &ways, most)).collect()
        };
        let better = |(a, b): ((Grade, Vec<u32>), (Grade, Vec<u32>))| if b.0 < a.0 { b } else { a };
        // Two at a time, because all placements of large databases would need gigabytes.
        let best = ends.par_iter().map(of_end).reduce_with(|a, b| a.into_iter().zip(b).map(better).collect());
        best.into_iter().flatten().map(|found| found.1).collect()
    }

    /// The best placement with at most `most` moves on the ways from `placement` to the present one, and its grade.
    fn best(&self, placement: &[u32], ways: &[Way; 2], most: usize) -> (Grade, Vec<u32>) {
        let [one, other] = ways.each_ref().map(|way| way.best(most));
        let (way, (grade, count)) = if other.0 < one.0 { (&ways[1], other) } else { (&ways[0], one) };
        let mut placement = placement.to_vec();
        way.returned[..count].iter().for_each(|&object| placement[object as usize] = self.work.home(object));
        (grade, placement)
    }

    fn way(&self, placement: &[u32], undoes_exchanges: bool) -> Way {
        let mut seconds = self.work.seconds_at(placement);
        let mut places = self.traffic.places(placement);
        let mut heaviest: BTreeSet<(u64, u32)> =
            self.work.available.iter().map(|&pe| (order(seconds[pe as usize]), pe)).collect();
        let mut hop_bytes = self.hop_bytes(&places);
        let moved = self.work.movable.iter().copied();
        let moved: Vec<u32> = moved.filter(|&object| is_moved(self.work, placement, object)).collect();
        let ranked = moved.iter().map(|&object| Reverse((self.rank(object, &seconds, &places), object)));
        let mut queue: BinaryHeap<Reverse<(Grade, u32)>> = ranked.collect();
        let mut moved_to = vec![BinaryHeap::new(); if undoes_exchanges { seconds.len() } else { 0 }];
        if undoes_exchanges {
            let by_pe = queue.iter().map(|ranked| (places[ranked.0.1 as usize] as usize, *ranked));
            by_pe.for_each(|(pe, ranked)| moved_to[pe].push(ranked));
        }
        let mut returned: Vec<u32> = Vec::with_capacity(moved.len());
        let mut grades = Vec::with_capacity(moved.len() + 1);
        loop {
            let most_seconds = heaviest.last().map_or(0, |last| last.0).max(order(self.limit_seconds));
            grades.push((most_seconds, hop_bytes));
            let filled = returned.last().map(|&object| self.work.home(object));
            let too_heavy =
                filled.filter(|&pe| undoes_exchanges && seconds[pe as usize] > self.limit_seconds);
            let of_exchange =
                too_heavy.and_then(|pe| self.next(&mut moved_to[pe as usize], &seconds, &places));
            let next = of_exchange.or_else(|| self.next(&mut queue, &seconds, &places));
            let Some((added, object)) = next else { return Way { returned, grades } };
            let (from, home) = (places[object as usize], self.work.home(object));
            for (pe, change) in
                [(from, -self.work.seconds(object, from)), (home, self.work.seconds(object, home))]
            {
                let of_pe = &mut seconds[pe as usize];
                heaviest.remove(&(order(*of_pe), pe));
                // The rest after all objects have left may be below 0 by rounding.
                *of_pe = (*of_pe + change).max(0.0);
                heaviest.insert((order(*of_pe), pe));
            }
            places[object as usize] = home;
            hop_bytes += added;
            returned.push(object);
            // Its partners are ranked anew: their return may have become better.
            let partners = self.traffic.partners(object as usize).iter().map(|partner| partner.vertex);
            // Vertices after the objects are fixed places.
            for partner in partners.filter(|&partner| (partner as usize) < placement.len()) {
                if is_moved(self.work, &places, partner) {
                    let ranked = Reverse((self.rank(partner, &seconds, &places), partner));
                    queue.push(ranked);
                    if undoes_exchanges {
                        moved_to[places[partner as usize] as usize].push(ranked);
                    }
                }
            }
        }
    }

    /// The object of a queue that returns next, and the hop-bytes that its return adds.
    fn next(
        &self,
        queue: &mut BinaryHeap<Reverse<(Grade, u32)>>,
        seconds: &[f64],
        places: &[u32],
    ) -> Option<(i128, u32)> {
        while let Some(Reverse((before, object))) = queue.pop() {
            if places[object as usize] == self.work.home(object) {
                continue;
            }
            // Other returns may have changed the rank meanwhile.
            let rank = self.rank(object, seconds, places);
            if rank <= before || queue.peek().is_none_or(|Reverse(next)| (rank, object) <= *next) {
                return Some((rank.1, object));
            }
            queue.push(Reverse((rank, object)));
        }
        None
    }

    /// What the return of an object makes of its present PE, and the hop-bytes that it adds.
    fn rank(&self, object: u32, seconds: &[f64], places: &[u32]) -> Grade {
        let (from, home) = (places[object as usize], self.work.home(object));
        let added = self.traffic.partners(object as usize).iter().map(|partner| {
            let other = places[partner.vertex as usize];
            let bytes = i128::from(partner.sent_bytes) + i128::from(partner.received_bytes);
            bytes * (self.hops(home, other) - self.hops(from, other))
        });
        let heavy = seconds[home as usize] + self.work.seconds(object, home);
        (order(heavy.max(self.limit_seconds)), added.sum())
    }

    fn hop_bytes(&self, places: &[u32]) -> i128 {
        let sent = self.traffic.sent();
        sent.map(|(from, to, bytes)| i128::from(bytes) * self.hops(places[from], places[to])).sum()
    }

    fn hops(&self, a: u32, b: u32) -> i128 {
        i128::from(self.topology.distance(a as usize, b as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use equipoise_model::{graph, topology};

    #[test]
    fn limits_are_numbers_or_parts() {
        assert_eq!("100".parse(), Ok(MaxMoves::Objects(100)));
        assert_eq!("2.5%".parse(), Ok(MaxMoves::Percent(2.5)));
        for wrong in ["", "%", "-1", "101%", "1e3", "NaN%", "5 %"] {
            assert!(wrong.parse::<MaxMoves>().is_err(), "{wrong}");
        }
        assert_eq!(MaxMoves::Percent(2.5).of(81), 2);
        assert_eq!([29.0, 57.0, 58.0].map(|percent| MaxMoves::Percent(percent).of(100)), [29, 57, 58]);
        assert_eq!(MaxMoves::Objects(u64::MAX).of(81), 81);
        assert_eq!(
            [MaxMoves::Objects(7), MaxMoves::Percent(2.5)].map(|most| most.to_string()),
            ["7", "2.5%"]
        );
    }

    /// Objects on a grid, on PEs in another order, a few of them heavy.
    fn scattered() -> Database {
        let mut database = graph::load("mesh:16x16,bytes=100").expect("a graph").remap(64);
        for (index, object) in database.objects.iter_mut().enumerate() {
            object.pe = (object.pe * 37 + 11) % 64;
            object.load_seconds = if index % 29 == 0 { 3e-3 } else { 1e-3 };
            object.migratable = index % 17 != 0;
        }
        database
    }

    #[test]
    fn every_limit_holds_and_a_larger_one_is_never_worse() {
        let (database, machine) = (scattered(), topology::parse("torus:8x8").expect("a machine"));
        let work = Work::new(&database, (0..64).collect());
        for choice in registry::without_required_parameters() {
            let name = choice.spec.as_str();
            let unlimited = choice.strategy.assign(&database, &*machine, 3).expect(name);
            let limit = work.max_seconds(&work.seconds_at(&unlimited.pe_of)) * (1.0 + ROUNDING);
            let traffic = Commodities::of(&database);
            let returning =
                Returning { work: &work, topology: &*machine, traffic: &traffic, limit_seconds: limit };
            let grade = |placement: &[u32]| {
                let heaviest = work.max_seconds(&work.seconds_at(placement)).max(limit * (1.0 + ROUNDING));
                (order(heaviest), returning.hop_bytes(&traffic.places(placement)))
            };
            let mut before = grade(&database.placement());
            for most in [0, 3, 30, 120, 200] {
                let limited = MaxMoves::Objects(most).limit(&choice);
                let answer = limited.strategy.assign(&database, &*machine, 3).expect(name);
                answer.check(&database).expect(name);
                assert!(moves(&work, &answer.pe_of) as u64 <= most, "{name}, at most {most}");
                if answer == unlimited {
                    break;
                }
                let after = grade(&answer.pe_of);
                assert!(after <= before, "{name}, at most {most}: {before:?} became {after:?}");
                before = after;
            }
        }
    }

    #[test]
    fn between_the_present_placement_and_one_from_scratch_are_others() {
        let machine = topology::parse("torus:8x8").expect("a machine");
        let mut database = scattered();
        database
            .objects
            .iter_mut()
            .for_each(|object| (object.load_seconds, object.migratable) = (1e-3, true));
        let choice = registry::parse("PoiseLB:gamma=0", &[]).expect("a strategy");
        let hop_bytes = |percent| {
            let limited = MaxMoves::Percent(percent).limit(&choice);
            let answer = limited.strategy.assign(&database, &*machine, 0).expect("an answer");
            let traffic = Commodities::of(&database);
            let sent = traffic.sent();
            let places = traffic.places(&answer.pe_of);
            sent.map(|(from, to, bytes)| {
                bytes * u64::from(machine.distance(places[from] as usize, places[to] as usize))
            })
            .sum::<u64>()
        };
        let front = [1.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 80.0, 100.0].map(hop_bytes);
        assert!(front.is_sorted_by(|a, b| a >= b), "{front:?}");
        let steps = front.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(steps >= 7 && front[8] * 2 < front[0], "{front:?}");
    }

    #[test]
    fn placements_between_two_move_more_and_more_and_are_better_and_better() {
        let (database, machine) = (scattered(), topology::parse("torus:8x8").expect("a machine"));
        let choice = registry::parse("PoiseLB:gamma=0", &[]).expect("a strategy");
        let answer = choice.strategy.assign(&database, &*machine, 0).expect("an answer");
        let placements = between(&database, &*machine, &answer.pe_of, Vec::new()).expect("placements");
        assert!(placements.len() >= 8 && placements.last() == Some(&answer.pe_of));
        let work = Work::new(&database, (0..64).collect());
        let limit = work.max_seconds(&work.seconds_at(&answer.pe_of)) * (1.0 + ROUNDING);
        let traffic = Commodities::of(&database);
        let returning =
            Returning { work: &work, topology: &*machine, traffic: &traffic, limit_seconds: limit };
        let grade = |placement: &Vec<u32>| {
            let heaviest = work.max_seconds(&work.seconds_at(placement)).max(limit);
            (order(heaviest), returning.hop_bytes(&traffic.places(placement)))
        };
        assert!(placements.is_sorted_by_key(|placement| moves(&work, placement)));
        assert!(placements.is_sorted_by(|a, b| grade(a) >= grade(b)));
        assert_eq!(between(&database, &*machine, &database.placement(), Vec::new()), Ok(Vec::new()));
    }

    #[test]
    fn an_impossible_answer_is_left_to_the_caller() {
        struct Wrong;
        impl Strategy for Wrong {
            fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
                Ok(Assignment::new(vec![999]))
            }
        }
        let (database, machine) = (scattered(), topology::parse("torus:8x8").expect("a machine"));
        let choice = Choice { spec: "Wrong".into(), strategy: Arc::new(Wrong), needs_communication: false };
        let answer = MaxMoves::Objects(1).limit(&choice).strategy.assign(&database, &*machine, 0);
        assert_eq!(answer, Ok(Assignment::new(vec![999])));
    }

    #[test]
    fn limits_hold_and_give_the_same_answer_on_any_number_of_threads() {
        let (database, machine) = (scattered(), topology::parse("torus:8x8").expect("a machine"));
        let choice = MaxMoves::Percent(20.0).limit(&registry::parse("PoiseLB", &[]).expect("a strategy"));
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| choice.strategy.assign(&database, &*machine, 5).expect("an answer"))
        };
        assert_eq!(on(1), on(4));
    }

    #[test]
    fn objects_leave_unavailable_pes_whatever_the_limit() {
        let (mut database, machine) = (scattered(), topology::parse("torus:8x8").expect("a machine"));
        database.objects.iter_mut().for_each(|object| object.migratable = true);
        database.pes[5].available = false;
        let choice = registry::parse("GreedyLB", &[]).expect("a strategy");
        let limited = MaxMoves::Objects(0).limit(&choice);
        let answer = limited.strategy.assign(&database, &*machine, 0).expect("an answer");
        answer.check(&database).expect("a possible placement");
        let stays =
            |(object, pe): (&equipoise_model::database::Object, &u32)| object.pe == 5 || object.pe == *pe;
        assert!(database.objects.iter().zip(&answer.pe_of).all(stays));
    }
}
