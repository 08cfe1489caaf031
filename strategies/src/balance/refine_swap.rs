//! `RefineSwapLB`: as `RefineLB`, and where no single move helps, two objects change places.
//!
//! Charm++'s strategy of that name (removed there in 2019). First the PEs above the limit give objects away
//! as in [`super::refine`]. One that is still above, because no object of its own fits anywhere, then
//! exchanges an object for a lighter one of a PE below the limit, so that this one remains within it: if it
//! can, so that both end within the limit, otherwise so that it gets as light as it can. It is never worse
//! than `RefineLB`. Partners are sought among the lightest PEs. Where the limit cannot be kept, the lowest
//! one that can is sought (`limit.rs`).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::limit::lowest;
use super::load::{Pes, Work, order};
use super::refine;
use crate::cost::LoadBound;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `RefineSwapLB` for the registry.
pub const NAMED: Named = Named {
    name: "RefineSwapLB",
    aliases: &[],
    help: "RefineLB that also exchanges objects where none fits by itself: a tighter balance with more \
           migrations. For programs with few objects per PE.",
    params: &[Param::imbalance("0.01")],
    needs_communication: false,
    make: |params: &mut Params| Ok(Box::new(RefineSwap { imbalance: params.take_imbalance()? })),
};

/// How many of the lightest PEs are tried as partners of an exchange.
const PARTNERS: usize = 16;

/// How often PEs that found no exchange try again after others did.
const ROUNDS: usize = 4;

/// The strategy that moves and exchanges objects of the PEs above the limit.
#[derive(Clone, Copy, Debug)]
pub struct RefineSwap {
    /// How far above the average a PE may be: max/avg - 1.
    pub imbalance: f64,
}

impl Strategy for RefineSwap {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        Ok(Assignment::new(balance(database, &work, self.imbalance)))
    }
}

/// Moves and exchanges objects, and gives the PE of each.
fn balance(database: &Database, work: &Work, imbalance: f64) -> Vec<u32> {
    let average_seconds = work.average_seconds();
    let max_seconds =
        |placement: &[u32]| Pes::new(database, work.seconds_at(placement), &[]).max_seconds(&work.available);
    let attempt = |limit_seconds: f64| {
        let mut placement = refine::relieve(database, work, limit_seconds);
        exchange(work, &mut placement, limit_seconds);
        let max_seconds = max_seconds(&placement);
        (placement, max_seconds)
    };
    let limit_seconds = (1.0 + imbalance) * average_seconds;
    let best = lowest(limit_seconds, LoadBound::of(database), attempt);
    // A limit that cannot be kept is a heuristic for what can, and RefineLB's may be a luckier one.
    let other_limit_seconds = (1.0 + refine::IMBALANCE) * average_seconds;
    let best_seconds = max_seconds(&best);
    if best_seconds > limit_seconds {
        let (other, other_seconds) = attempt(other_limit_seconds);
        if other_seconds < best_seconds {
            return other;
        }
    }
    best
}

/// Exchanges objects of the PEs above the limit for lighter ones until none is above it or no exchange
/// helps; at most as many exchanges are made as there are objects.
fn exchange(work: &Work, placement: &mut [u32], limit_seconds: f64) {
    let seconds = work.seconds_at(placement);
    let mut donors: BinaryHeap<(u64, Reverse<u32>)> = (work.available.iter())
        .filter(|&&pe| seconds[pe as usize] > limit_seconds)
        .map(|&pe| (order(seconds[pe as usize]), Reverse(pe)))
        .collect();
    if donors.is_empty() {
        return;
    }
    let by_seconds = work.available.iter().map(|&pe| (order(seconds[pe as usize]), pe)).collect();
    let mut objects = vec![Vec::new(); seconds.len()];
    for &object in &work.movable {
        objects[placement[object as usize] as usize].push(object);
    }
    objects.iter_mut().for_each(|own: &mut Vec<u32>| own.sort_unstable_by_key(|&object| key(work, object)));
    let mut state = State { work, seconds, by_seconds, objects };
    let mut hopeless = Vec::new();
    let mut left = work.movable.len();
    let (mut left_before, mut rounds) = (left + 1, 0);
    while left > 0 {
        let Some((_, Reverse(donor))) = donors.pop() else {
            // What did not help before may help after other exchanges.
            rounds += 1;
            if left == left_before || hopeless.is_empty() || rounds == ROUNDS {
                return;
            }
            left_before = left;
            donors.extend(hopeless.drain(..));
            continue;
        };
        let Some(swap) = state.best_swap(donor, limit_seconds) else {
            hopeless.push((order(state.seconds[donor as usize]), Reverse(donor)));
            continue;
        };
        state.apply(donor, swap, placement);
        left -= 1;
        if state.seconds[donor as usize] > limit_seconds {
            donors.push((order(state.seconds[donor as usize]), Reverse(donor)));
        }
    }
}

/// Orders objects: lightest first, lowest first among equals.
fn key(work: &Work, object: u32) -> (u64, u32) {
    (order(work.load_seconds(object)), object)
}

/// An exchange: what goes, to whom, and what comes back; nothing, where there is room by now.
#[derive(Clone, Copy)]
struct Swap {
    goes: u32,
    partner: u32,
    comes: Option<u32>,
}

struct State<'a> {
    work: &'a Work<'a>,
    /// Seconds of each PE.
    seconds: Vec<f64>,
    /// The available PEs, lightest first.
    by_seconds: BTreeSet<(u64, u32)>,
    /// The objects of each PE that may move, by [`key`].
    objects: Vec<Vec<u32>>,
}

impl State<'_> {
    /// The best exchange of `donor`: one after which it is within the limit with the lightest partner that
    /// offers one, otherwise the one after which it is lightest.
    fn best_swap(&self, donor: u32, limit_seconds: f64) -> Option<Swap> {
        let mut best: Option<(u64, Swap)> = None;
        for &(_, partner) in self.by_seconds.iter().take(PARTNERS) {
            let room_seconds = limit_seconds - self.seconds[partner as usize];
            if partner == donor || room_seconds <= 0.0 {
                break;
            }
            for &goes in &self.objects[donor as usize] {
                let Some(comes) = self.lightest_return(goes, partner, room_seconds) else { continue };
                let back = comes.map_or(0.0, |object| self.work.seconds(object, donor));
                let relief = self.work.seconds(goes, donor) - back;
                // The difference of two infinite times is no relief.
                if relief.is_nan() || relief <= 0.0 {
                    continue;
                }
                let after = order((self.seconds[donor as usize] - relief).max(0.0));
                if best.is_none_or(|(least, _)| after < least) {
                    best = Some((after, Swap { goes, partner, comes }));
                }
            }
            if best.is_some_and(|(least, _)| least <= order(limit_seconds)) {
                break;
            }
        }
        best.map(|(_, swap)| swap)
    }

    /// The lightest object of `partner` whose going makes room for `goes`: `Some(None)` if there is room
    /// already, and `None` if there is no such object.
    fn lightest_return(&self, goes: u32, partner: u32, room_seconds: f64) -> Option<Option<u32>> {
        let needed = self.work.seconds(goes, partner) - room_seconds;
        if needed <= 0.0 {
            return Some(None);
        }
        let own = &self.objects[partner as usize];
        let first = own.partition_point(|&object| self.work.seconds(object, partner) < needed);
        own.get(first).map(|&object| Some(object))
    }

    fn apply(&mut self, donor: u32, swap: Swap, placement: &mut [u32]) {
        for pe in [donor, swap.partner] {
            self.by_seconds.remove(&(order(self.seconds[pe as usize]), pe));
        }
        self.carry(swap.goes, donor, swap.partner, placement);
        if let Some(object) = swap.comes {
            self.carry(object, swap.partner, donor, placement);
        }
        for pe in [donor, swap.partner] {
            self.by_seconds.insert((order(self.seconds[pe as usize]), pe));
        }
    }

    fn carry(&mut self, object: u32, from: u32, to: u32, placement: &mut [u32]) {
        let work = self.work;
        let position = |own: &[u32]| own.partition_point(|&other| key(work, other) < key(work, object));
        let old = &mut self.objects[from as usize];
        old.remove(position(old));
        let new = &mut self.objects[to as usize];
        new.insert(position(new), object);
        self.seconds[from as usize] = (self.seconds[from as usize] - work.seconds(object, from)).max(0.0);
        self.seconds[to as usize] += work.seconds(object, to);
        placement[object as usize] = to;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::database::{Database, arbitrary};
    use crate::testing::{assign, database};

    #[track_caller]
    fn check(pes: usize, objects: &[(f64, u32)], change: impl FnOnce(&mut Database), expected: &[u32]) {
        let mut database = database(pes, objects);
        change(&mut database);
        let answer = assign("RefineSwapLB:imbalance=0.1", &database).map(|answer| answer.pe_of);
        assert_eq!(answer, Ok(expected.to_vec()), "{objects:?}");
    }

    #[test]
    fn a_move_is_made_where_one_is_enough() {
        check(2, &[(4.0, 0), (3.0, 0), (2.0, 0), (1.0, 0)], |_| (), &[1, 0, 0, 1]);
    }

    #[test]
    fn two_objects_change_places_where_none_fits() {
        // 10 and 6 seconds: no object fits into 2.8, but 4 for 2 makes both 8.
        check(2, &[(6.0, 0), (4.0, 0), (4.0, 1), (2.0, 1)], |_| (), &[0, 1, 1, 0]);
        // 5 for 4 is better than nothing although neither PE gets within the limit.
        check(2, &[(9.0, 0), (5.0, 0), (4.0, 1), (4.0, 1)], |_| (), &[0, 1, 0, 1]);
    }

    #[test]
    fn what_may_not_move_is_not_exchanged() {
        let objects = [(6.0, 0), (4.0, 0), (4.0, 1), (2.0, 1)];
        check(2, &objects, |d| d.objects[3].migratable = false, &[1, 0, 0, 1]);
        check(3, &objects, |d| d.pes[2].available = false, &[0, 1, 1, 0]);
    }

    fn max_seconds(database: &Database, placement: &[u32]) -> f64 {
        let loads = database.pe_loads(placement).into_iter().zip(&database.pes);
        loads.filter(|(_, pe)| pe.available).map(|(load, _)| load).fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn it_is_never_worse_than_refine(
            mut database in arbitrary::database(6, 1, false),
            params in prop::sample::select(vec!["", ":imbalance=0", ":imbalance=0.01", ":imbalance=0.2"]),
        ) {
            database.pes[0].available = true;
            let max = |name: &str| {
                let answer = assign(&format!("{name}{params}"), &database).expect(name);
                max_seconds(&database, &answer.pe_of)
            };
            let (refine, swap) = (max("RefineLB"), max("RefineSwapLB"));
            prop_assert!(swap <= refine * (1.0 + 1e-9), "{} and {}", refine, swap);
        }
    }
}
