//! `RefineSwapLB`: `RefineLB` that exchanges two objects where no single move helps.
//!
//! Charm++'s strategy of that name (removed there in 2019). First the PEs above the limit give objects away as in
//! [`super::refine`]. A PE still above the limit then exchanges an object for a lighter object of a PE that stays
//! within the limit. The strategy prefers an exchange after which both PEs are within the limit, otherwise the exchange
//! after which the donor is lightest. Partners are sought among the lightest PEs. The result is never worse than that
//! of `RefineLB`, which is where the search begins. If the limit cannot be kept, the lowest limit that can is used
//! (`limit.rs`).

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::limit::{at_lowest_limit, first_limit_seconds};
use super::load::{Work, order};
use super::refine;
use crate::descriptor::Recipe;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `RefineSwapLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "RefineSwapLB",
    form: "",
    help: "RefineLB that also exchanges two objects where no single move fits: a tighter balance with more \
           migrations. For programs with few objects per PE.",
    params: &[Param::imbalance("0.01")],
    item: Recipe {
        needs_communication: false,
        make: |params: &mut Params| Ok(Box::new(RefineSwap { imbalance: params.take_imbalance()? })),
    },
};

/// How many of the lightest PEs are tried as partners of an exchange.
const PARTNERS: usize = 16;

/// Maximum number of rounds; PEs without an exchange try again in the next round.
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

/// Moves and exchanges objects; returns the PE of each object. The search begins with the placements of `RefineLB`, with
/// the imbalance of this strategy and with its own, so that the heaviest PE is never heavier than with `RefineLB`.
fn balance(database: &Database, work: &Work, imbalance: f64) -> Vec<u32> {
    let first = first_limit_seconds(work, imbalance);
    let mut present = refine::balance(database, work, imbalance, None);
    if present.1 > first {
        let other = refine::balance(database, work, refine::IMBALANCE, None);
        if other.1 < present.1 {
            present = other;
        }
    }
    let best = at_lowest_limit(present, first, first, |limit_seconds| {
        let (mut placement, _) = refine::relieve(database, work, work.placement(), limit_seconds, None);
        exchange(work, &mut placement, limit_seconds);
        let max_seconds = work.max_seconds(&work.seconds_at(&placement));
        (placement, max_seconds)
    });
    best.0
}

/// Exchanges objects of the PEs above the limit for lighter objects until no PE is above it or no exchange
/// helps. The number of exchanges is at most the number of objects.
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
    let mut without_exchange = Vec::new();
    let mut left = work.movable.len();
    let (mut left_before, mut rounds) = (left + 1, 0);
    while left > 0 {
        let Some((_, Reverse(donor))) = donors.pop() else {
            // Exchanges of other PEs may have made a new exchange possible.
            rounds += 1;
            if left == left_before || without_exchange.is_empty() || rounds == ROUNDS {
                return;
            }
            left_before = left;
            donors.extend(without_exchange.drain(..));
            continue;
        };
        let Some(swap) = state.best_swap(donor, limit_seconds) else {
            without_exchange.push((order(state.seconds[donor as usize]), Reverse(donor)));
            continue;
        };
        state.apply(donor, swap, placement);
        left -= 1;
        if state.seconds[donor as usize] > limit_seconds {
            donors.push((order(state.seconds[donor as usize]), Reverse(donor)));
        }
    }
}

/// Orders objects: lightest first, lowest index first among equals.
fn key(work: &Work, object: u32) -> (u64, u32) {
    (order(work.load_seconds(object)), object)
}

/// An exchange of a donor with the PE `partner`.
#[derive(Clone, Copy)]
struct Swap {
    /// The object that the donor gives.
    given: u32,
    partner: u32,
    /// The object that the donor receives; `None` if the partner has room without an exchange.
    returned: Option<u32>,
}

struct State<'a> {
    work: &'a Work<'a>,
    /// Seconds of each PE.
    seconds: Vec<f64>,
    /// The available PEs, lightest first.
    by_seconds: BTreeSet<(u64, u32)>,
    /// The movable objects of each PE, sorted by [`key`].
    objects: Vec<Vec<u32>>,
}

impl State<'_> {
    /// The best exchange of `donor`: the exchange with the lightest partner after which `donor` is within the limit,
    /// otherwise the exchange after which `donor` is lightest.
    fn best_swap(&self, donor: u32, limit_seconds: f64) -> Option<Swap> {
        let mut best: Option<(u64, Swap)> = None;
        for &(_, partner) in self.by_seconds.iter().take(PARTNERS) {
            let room_seconds = limit_seconds - self.seconds[partner as usize];
            if partner == donor || room_seconds <= 0.0 {
                break;
            }
            for &given in &self.objects[donor as usize] {
                let Some(returned) = self.lightest_return(given, partner, room_seconds) else { continue };
                let back = returned.map_or(0.0, |object| self.work.seconds(object, donor));
                let relief = self.work.seconds(given, donor) - back;
                // The difference of two infinite times is NaN.
                if relief.is_nan() || relief <= 0.0 {
                    continue;
                }
                let after = order((self.seconds[donor as usize] - relief).max(0.0));
                if best.is_none_or(|(least, _)| after < least) {
                    best = Some((after, Swap { given, partner, returned }));
                }
            }
            if best.is_some_and(|(least, _)| least <= order(limit_seconds)) {
                break;
            }
        }
        best.map(|(_, swap)| swap)
    }

    /// The lightest object of `partner` whose move to the donor makes room for `given`. `Some(None)` if there is room
    /// already, `None` if there is no such object.
    fn lightest_return(&self, given: u32, partner: u32, room_seconds: f64) -> Option<Option<u32>> {
        let needed = self.work.seconds(given, partner) - room_seconds;
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
        self.move_object(swap.given, donor, swap.partner, placement);
        if let Some(object) = swap.returned {
            self.move_object(object, swap.partner, donor, placement);
        }
        for pe in [donor, swap.partner] {
            self.by_seconds.insert((order(self.seconds[pe as usize]), pe));
        }
    }

    fn move_object(&mut self, object: u32, from: u32, to: u32, placement: &mut [u32]) {
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

    use equipoise_model::database::{Database, arbitrary};

    use crate::testing::{assign, check_assignment};

    #[track_caller]
    fn check(pes: usize, objects: &[(f64, u32)], change: impl FnOnce(&mut Database), expected: &[u32]) {
        check_assignment("RefineSwapLB:imbalance=0.1", pes, objects, &[], change, expected);
    }

    #[test]
    fn a_single_move_is_preferred_to_an_exchange() {
        check(2, &[(4.0, 0), (3.0, 0), (2.0, 0), (1.0, 0)], |_| (), &[1, 0, 0, 1]);
    }

    #[test]
    fn two_objects_are_exchanged_where_no_single_move_fits() {
        // The PEs have 10 and 6 seconds. No object fits into the room of 2.8, but exchanging 4 for 2 gives 8 on both.
        check(2, &[(6.0, 0), (4.0, 0), (4.0, 1), (2.0, 1)], |_| (), &[0, 1, 1, 0]);
        // Exchanging 5 for 4 reduces the maximum, although PE 0 stays above the limit.
        check(2, &[(9.0, 0), (5.0, 0), (4.0, 1), (5.0, 1)], |_| (), &[0, 1, 0, 1]);
        // Here one move reduces it as much.
        check(2, &[(9.0, 0), (5.0, 0), (4.0, 1), (4.0, 1)], |_| (), &[0, 1, 1, 1]);
    }

    #[test]
    fn fixed_objects_are_not_exchanged() {
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
        fn the_maximum_is_never_above_that_of_refine(
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
