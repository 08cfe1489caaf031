//! `RefineLB`: PEs above the limit give objects to the lightest PEs until they are within the limit.
//!
//! Charm++'s strategy of that name. The heaviest PE above the limit gives its largest object that keeps the PE with
//! the most room (the lightest PE, where speeds are equal) within the limit. A PE without such an object is skipped.
//! No other objects move, so nearly balanced loads cause few migrations. If the limit cannot be kept, the lowest limit that can
//! is used (`limit.rs`), as in Charm++.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::limit::{Outcome, at_lowest_limit, first_limit_seconds};
use super::load::{Pes, Work, order};
use crate::descriptor::Recipe;
use crate::room::Room;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `RefineLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "RefineLB",
    form: "",
    help: "Moves objects from PEs above the limit to the lightest PEs until no PE is above it: fewest \
           migrations, keeps locality. For later steps, when loads change slowly.",
    params: &[Param::imbalance("0.05")],
    item: Recipe {
        needs_communication: false,
        make: |params: &mut Params| Ok(Box::new(Refine { imbalance: params.take_imbalance()? })),
    },
};

/// The allowed imbalance of [`NAMED`].
pub(super) const IMBALANCE: f64 = 0.05;

/// The strategy that relieves the PEs above the limit.
#[derive(Clone, Copy, Debug)]
pub struct Refine {
    /// How far above the average a PE may be: max/avg - 1.
    pub imbalance: f64,
}

impl Strategy for Refine {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        Ok(Assignment::new(balance(database, &work, self.imbalance, None).0))
    }

    fn assign_within(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
        room: Room,
    ) -> Result<Option<Assignment>, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        // Objects leave PEs that are too heavy, and no others.
        let homes = work.movable.iter().map(|&object| (object, work.home(object)));
        if !room.clone().put_all(homes.filter(|&(_, home)| work.is_available(home))) {
            return Ok(None);
        }
        Ok(Some(Assignment::new(balance(database, &work, self.imbalance, Some(room)).0)))
    }
}

/// Moves objects off the PEs above the lowest limit that can be kept.
pub(super) fn balance(database: &Database, work: &Work, imbalance: f64, mut room: Option<Room>) -> Outcome {
    let (placement, seconds) = work.placement_within(room.as_mut());
    let first = first_limit_seconds(work, imbalance);
    let present = (placement.clone(), work.max_seconds(&seconds));
    at_lowest_limit(present, first, first, |limit| {
        let start = (placement.clone(), seconds.clone());
        relieve(database, work, start, limit, room.clone())
    })
}

/// Moves objects off the PEs above `limit` seconds, to PEs that have room for them. O(n log n), if all PEs have room.
pub(super) fn relieve(
    database: &Database,
    work: &Work,
    (mut placement, seconds): (Vec<u32>, Vec<f64>),
    limit: f64,
    mut room: Option<Room>,
) -> Outcome {
    let (heavy, light): (Vec<u32>, Vec<u32>) =
        work.available.iter().partition(|&&pe| seconds[pe as usize] > limit);
    let mut donors: BinaryHeap<(u64, Reverse<u32>)> =
        heavy.iter().map(|&pe| (order(seconds[pe as usize]), Reverse(pe))).collect();
    let mut objects: Vec<BTreeSet<Key>> = vec![BTreeSet::new(); database.pes.len()];
    for &object in &work.movable {
        let pe = placement[object as usize] as usize;
        if seconds[pe] > limit {
            objects[pe].insert(key(database, object));
        }
    }
    let mut receivers = Pes::new(database, seconds, &light);
    while let Some((_, Reverse(donor))) = donors.pop() {
        let roomiest = receivers.open_within(room.as_ref(), |pes| pes.roomiest(limit));
        let Some(roomiest) = roomiest else { break };
        let own = &mut objects[donor as usize];
        let left = limit - receivers.seconds[roomiest as usize];
        let largest = largest_within(own, left, work.speed(roomiest));
        let found = match (&mut room, largest) {
            (Some(room), Some(largest)) => {
                with_room(own, largest, work, &mut receivers, (donor, roomiest), limit, room)
            }
            (_, largest) => largest.map(|key| (key, roomiest)),
        };
        // No object fits: the PE is skipped, because the next one may have smaller objects.
        let Some((largest, receiver)) = found else { continue };
        own.remove(&largest);
        let (_, Reverse(object)) = largest;
        placement[object as usize] = receiver;
        receivers.add(receiver, work.seconds(object, receiver));
        let left = (receivers.seconds[donor as usize] - work.seconds(object, donor)).max(0.0);
        receivers.seconds[donor as usize] = left;
        if left > limit {
            donors.push((order(left), Reverse(donor)));
        } else {
            receivers.open(donor);
        }
    }
    let max_seconds = work.max_seconds(&receivers.seconds);
    (placement, max_seconds)
}

/// The largest object of a donor that stays within `limit` seconds on a PE with room for it, and the PE: the one with the most seconds left.
/// The search begins with the object `largest` and the PE `roomiest`. The object moves there in `room`.
fn with_room(
    own: &BTreeSet<Key>,
    largest: Key,
    work: &Work,
    pes: &mut Pes,
    (donor, roomiest): (u32, u32),
    limit: f64,
    room: &mut Room,
) -> Option<(Key, u32)> {
    let (_, Reverse(object)) = largest;
    if let Some(pe) = goes(room, object, donor, std::iter::once(roomiest)) {
        return Some((largest, pe));
    }
    if !pes.may_search() {
        return None;
    }
    let left = |pe: u32| order((limit - pes.seconds[pe as usize]).max(0.0) * work.speed(pe));
    let mut open: Vec<u32> =
        work.available.iter().copied().filter(|&pe| pes.seconds[pe as usize] <= limit).collect();
    open.sort_unstable_by_key(|&pe| (Reverse(left(pe)), pe));
    own.range(..=largest).rev().take_while(|key| key.0 > 0).copied().find_map(|key| {
        let (_, Reverse(object)) = key;
        let fits = |&pe: &u32| pes.seconds[pe as usize] + work.seconds(object, pe) <= limit;
        goes(room, object, donor, open.iter().copied().filter(fits)).map(|pe| (key, pe))
    })
}

/// Moves an object of a donor to the first of these PEs with room for it, if there is one.
fn goes(room: &mut Room, object: u32, donor: u32, mut pes: impl Iterator<Item = u32>) -> Option<u32> {
    room.take(object, donor);
    let found = pes.find(|&pe| room.fits(object, pe));
    room.put(object, found.unwrap_or(donor));
    found
}

/// Orders objects by load, then by descending index.
type Key = (u64, Reverse<u32>);

fn key(database: &Database, object: u32) -> Key {
    (order(database.objects[object as usize].load_seconds), Reverse(object))
}

/// The largest object with a positive load that takes at most `room` seconds at `speed`; the lowest index
/// among equals.
fn largest_within(objects: &BTreeSet<Key>, room: f64, speed: f64) -> Option<Key> {
    let mut load = room.max(0.0) * speed;
    // Rounding may have made the product slightly too large; then the next lower number is tried.
    while load / speed > room && load > 0.0 {
        load = load.next_down();
    }
    objects.range(..=(order(load), Reverse(0))).next_back().copied().filter(|&(bits, _)| bits > 0)
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::Database;

    use crate::testing::check_assignment;

    #[track_caller]
    fn check(pes: usize, objects: &[(f64, u32)], change: impl FnOnce(&mut Database), expected: &[u32]) {
        check_assignment("RefineLB:imbalance=0.1", pes, objects, &[], change, expected);
    }

    #[test]
    fn the_largest_object_that_fits_leaves_the_heaviest_pe() {
        check(2, &[(4.0, 0), (3.0, 0), (2.0, 0), (1.0, 0)], |_| (), &[1, 0, 0, 1]);
        check(2, &[(3.0, 0), (3.0, 0), (3.0, 1), (3.0, 1)], |_| (), &[0, 0, 1, 1]);
        check(3, &[(1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0)], |_| (), &[1, 2, 1, 2, 0, 0]);
    }

    #[test]
    fn a_pe_within_the_limit_gives_nothing_away() {
        check(2, &[(1.0, 0), (10.0, 0), (10.0, 1)], |_| (), &[0, 0, 1]);
    }

    #[test]
    fn a_pe_that_cannot_be_relieved_is_skipped() {
        check(3, &[(10.0, 0), (3.0, 1), (3.0, 1), (2.0, 2)], |_| (), &[0, 1, 1, 2]);
        check(3, &[(9.0, 0), (6.0, 1), (6.0, 1), (1.0, 2)], |_| (), &[0, 2, 1, 2]);
    }

    #[test]
    fn nothing_moves_for_less_than_the_heaviest_object_takes() {
        check(3, &[(9.0, 0), (4.0, 1), (4.0, 1), (1.0, 1)], |_| (), &[0, 1, 1, 1]);
    }

    #[test]
    fn a_limit_that_no_placement_keeps_is_raised() {
        // The average is 4; with four objects on three PEs, one PE has 6 seconds.
        check(3, &[(3.0, 0), (3.0, 0), (3.0, 0), (3.0, 1)], |_| (), &[2, 0, 0, 1]);
    }

    #[test]
    fn only_migratable_objects_move_and_all_leave_a_pe_that_is_not_available() {
        check(
            2,
            &[(4.0, 0), (3.0, 0), (2.0, 0), (1.0, 0)],
            |d| d.objects[0].migratable = false,
            &[0, 1, 1, 0],
        );
        check(3, &[(1.0, 0), (1.0, 1), (1.0, 2)], |d| d.pes[2].available = false, &[0, 1, 0]);
    }

    #[test]
    fn a_fast_pe_takes_more() {
        let objects = [(1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0)];
        check(2, &objects, |d| d.pes[1].speed = 3.0, &[1, 1, 1, 1, 1, 1, 0, 0]);
        // PE 1 is the lightest, but too slow for any object.
        let objects = [(1.0, 0), (1.0, 0), (1.0, 0), (1.0, 2)];
        check(3, &objects, |d| (d.pes[1].speed, d.pes[2].speed) = (0.01, 2.0), &[2, 2, 0, 2]);
    }
}
