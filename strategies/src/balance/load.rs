//! Shared by the load balancers: the movable objects, the fixed load of each PE, and the search for the best PE.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use equipoise_model::Database;

use crate::cost::LoadBound;
use crate::room::Room;

/// A number that orders finite, non-negative `seconds` by their values; 0 equals -0.
pub(crate) fn order(seconds: f64) -> u64 {
    // The bits of non-negative numbers have the same order as the numbers; the sum turns -0 into 0.
    (seconds + 0.0).to_bits()
}

/// The load to balance.
///
/// Times are seconds on the PE: an object's load divided by the PE's speed. Loads are finite and not
/// negative, because the database was checked.
pub(crate) struct Work<'a> {
    database: &'a Database,
    /// The available PEs, ascending.
    pub(crate) available: Vec<u32>,
    /// The migratable objects, heaviest first, lowest index first among equals.
    pub(crate) movable: Vec<u32>,
    /// Fixed seconds of each PE: its background and its objects that are not migratable.
    pub(crate) fixed_seconds: Vec<f64>,
}

impl<'a> Work<'a> {
    /// The work of a checked database; only the PEs `available` receive objects.
    pub(crate) fn new(database: &'a Database, available: Vec<u32>) -> Self {
        let mut fixed_seconds: Vec<f64> = database.pes.iter().map(|pe| pe.background_seconds).collect();
        let mut keys = Vec::with_capacity(database.objects.len());
        for (index, object) in database.objects.iter().enumerate() {
            if object.migratable {
                keys.push((Reverse(order(object.load_seconds)), index as u32));
            } else {
                let pe = object.pe as usize;
                fixed_seconds[pe] += object.load_seconds / database.pes[pe].speed;
            }
        }
        keys.sort_unstable();
        let movable = keys.into_iter().map(|(_, index)| index).collect();
        Work { database, available, movable, fixed_seconds }
    }

    /// The database of this work.
    pub(crate) fn database(&self) -> &'a Database {
        self.database
    }

    /// Seconds that `object` takes at speed 1.
    pub(crate) fn load_seconds(&self, object: u32) -> f64 {
        self.database.objects[object as usize].load_seconds
    }

    /// Seconds that `object` takes on `pe`.
    pub(crate) fn seconds(&self, object: u32, pe: u32) -> f64 {
        self.load_seconds(object) / self.database.pes[pe as usize].speed
    }

    /// The present PE of `object`.
    pub(crate) fn home(&self, object: u32) -> u32 {
        self.database.objects[object as usize].pe
    }

    /// Whether `pe` is available.
    pub(crate) fn is_available(&self, pe: u32) -> bool {
        self.database.pes[pe as usize].available
    }

    /// Whether the available PEs differ in speed or in fixed seconds.
    pub(crate) fn pes_differ(&self) -> bool {
        let character = |&pe: &u32| (self.fixed_seconds[pe as usize], self.speed(pe));
        self.available.iter().any(|pe| character(pe) != character(&self.available[0]))
    }

    /// The average in max/avg: [`LoadBound::average_seconds`].
    pub(crate) fn average_seconds(&self) -> f64 {
        LoadBound::of(self.database).average_seconds
    }

    /// Seconds of each PE when object `i` is on `placement[i]`.
    pub(crate) fn seconds_at(&self, placement: &[u32]) -> Vec<f64> {
        let mut seconds = self.fixed_seconds.clone();
        for &object in &self.movable {
            let pe = placement[object as usize];
            seconds[pe as usize] += self.seconds(object, pe);
        }
        seconds
    }

    /// The most of `seconds`, which has an entry for each PE, of an available PE.
    pub(crate) fn max_seconds(&self, seconds: &[f64]) -> f64 {
        self.available.iter().map(|&pe| seconds[pe as usize]).fold(0.0, f64::max)
    }

    /// The present placement, except that objects on unavailable PEs move, heaviest first, to the PE that finishes
    /// them first. Returns the PE of each object and the seconds of each PE.
    pub(crate) fn placement(&self) -> (Vec<u32>, Vec<f64>) {
        self.placement_within(None)
    }

    /// As [`Self::placement`], where objects on unavailable PEs move to PEs with room for them, if there are any. In the room, all
    /// objects have their places afterwards.
    pub(crate) fn placement_within(&self, mut room: Option<&mut Room>) -> (Vec<u32>, Vec<f64>) {
        let mut placement = self.database.placement();
        let mut seconds = self.fixed_seconds.clone();
        let (at_home, displaced): (Vec<u32>, Vec<u32>) =
            self.movable.iter().partition(|&&object| self.is_available(self.home(object)));
        for object in at_home {
            let home = self.home(object);
            seconds[home as usize] += self.seconds(object, home);
            room.iter_mut().for_each(|room| room.put(object, home));
        }
        let mut pes = Pes::new(self.database, seconds, &self.available);
        for object in displaced {
            let Some(pe) = pes.soonest_within(room.as_deref(), object, self) else { break };
            pes.add(pe, self.seconds(object, pe));
            room.iter_mut().for_each(|room| room.put(object, pe));
            placement[object as usize] = pe;
        }
        (placement, pes.seconds)
    }

    /// The speed of `pe`.
    pub(crate) fn speed(&self, pe: u32) -> f64 {
        self.database.pes[pe as usize].speed
    }

    /// The PEs before any movable object is placed. The available PEs are open.
    pub(crate) fn pes(&self) -> Pes<'a> {
        Pes::new(self.database, self.fixed_seconds.clone(), &self.available)
    }
}

/// Seconds and objects of each PE while objects are placed, and the search for the best open PE.
///
/// The open PEs are grouped by speed. Speeds within a class differ by less than a sixteenth, so the lightest PE of the
/// class counts as its best. There are few classes, so a search takes O(log PEs).
pub(crate) struct Pes<'a> {
    database: &'a Database,
    /// Seconds of each PE.
    pub(crate) seconds: Vec<f64>,
    /// Number of objects placed on each PE.
    objects: Vec<u32>,
    /// The open PEs of each class of speeds.
    classes: BTreeMap<u64, Heap>,
    /// PEs that are no longer open, although the heaps have them.
    closed: Vec<bool>,
    /// How often all PEs may still be searched for one with room.
    searches: usize,
}

/// How often all PEs are searched for one with room; beyond that, constraints leave too little room for a strategy that looks for loads.
const SEARCHES: usize = 256;

/// The open PEs of a class, lightest first.
///
/// There is at least one entry per open PE. Entries may be out of date, but at least one entry per PE has at most the
/// present load: the load of an open PE only grows, or the PE is opened again.
type Heap = BinaryHeap<Reverse<Key>>;

/// Orders PEs: lightest first, then fewest objects (which spreads objects without load), then lowest index.
pub(crate) type Key = (u64, u32, u32);

impl<'a> Pes<'a> {
    /// PEs of `database` with initial `seconds`. Only the PEs `open` receive objects.
    pub(crate) fn new(database: &'a Database, seconds: Vec<f64>, open: &[u32]) -> Self {
        let objects = vec![0; seconds.len()];
        let closed = vec![false; seconds.len()];
        let classes = BTreeMap::new();
        let mut pes = Pes { database, seconds, objects, classes, closed, searches: SEARCHES };
        open.iter().for_each(|&pe| pes.open(pe));
        pes
    }

    /// Places on `pe` an object that takes `seconds` there.
    pub(crate) fn add(&mut self, pe: u32, seconds: f64) {
        self.seconds[pe as usize] += seconds;
        self.objects[pe as usize] += 1;
    }

    /// Adds `seconds` to `pe` without an object.
    pub(crate) fn add_seconds(&mut self, pe: u32, seconds: f64) {
        self.seconds[pe as usize] += seconds;
    }

    /// Orders PEs for an object of `load_seconds` at speed 1 as [`Self::soonest`] does: earliest end, then
    /// lightest, then fewest objects, then lowest index.
    pub(crate) fn rank(&self, pe: u32, load_seconds: f64) -> (u64, Key) {
        let done = self.seconds[pe as usize] + load_seconds / self.database.pes[pe as usize].speed;
        // An object that joins its partners may reduce the seconds of the PE.
        (order(done.max(0.0)), key(&self.seconds, &self.objects, pe))
    }

    /// The PE with the least rank, by seconds and speed, among the lightest open PEs of all classes.
    fn best<R: Ord>(&mut self, rank: impl Fn(f64, f64) -> R) -> Option<u32> {
        let Pes { database, seconds, objects, classes, closed, .. } = self;
        let lightest = classes.values_mut().filter_map(|heap| {
            loop {
                let Reverse(entry) = *heap.peek()?;
                if closed[entry.2 as usize] {
                    heap.pop();
                    continue;
                }
                let current = key(seconds, objects, entry.2);
                if entry == current {
                    return Some(entry);
                }
                *heap.peek_mut()? = Reverse(current);
            }
        });
        let rank_of = |&(.., pe): &Key| rank(seconds[pe as usize], database.pes[pe as usize].speed);
        lightest.min_by_key(|entry| (rank_of(entry), *entry)).map(|(.., pe)| pe)
    }

    /// The open PE that finishes an object of `load_seconds` at speed 1 first; `None` if no PE is
    /// open.
    pub(crate) fn soonest(&mut self, load_seconds: f64) -> Option<u32> {
        self.best(|seconds, speed| order(seconds + load_seconds / speed))
    }

    /// As [`Self::soonest`] for an object without a place; if there is no room on that PE, the available PE with room that finishes the
    /// object first, if there is one.
    pub(crate) fn soonest_within(&mut self, room: Option<&Room>, object: u32, work: &Work) -> Option<u32> {
        let load_seconds = work.load_seconds(object);
        let soonest = self.open_within(room, |pes| pes.soonest(load_seconds))?;
        let Some(room) = room.filter(|room| !room.fits(object, soonest)) else { return Some(soonest) };
        if !self.may_search() {
            return Some(soonest);
        }
        let others = work.available.iter().copied().filter(|&pe| room.fits(object, pe));
        others.min_by_key(|&pe| self.rank(pe, load_seconds)).or(Some(soonest))
    }

    /// The best open PE by `best` that is not full. Full ones are closed, because no object leaves a PE that receives objects.
    pub(crate) fn open_within(
        &mut self,
        room: Option<&Room>,
        mut best: impl FnMut(&mut Self) -> Option<u32>,
    ) -> Option<u32> {
        loop {
            let pe = best(self)?;
            if room.is_none_or(|room| !room.is_full(pe)) {
                return Some(pe);
            }
            self.closed[pe as usize] = true;
        }
    }

    /// Whether all PEs may be searched once more.
    pub(crate) fn may_search(&mut self) -> bool {
        let before = self.searches;
        self.searches = before.saturating_sub(1);
        before > 0
    }

    /// The open PE with room for the largest load below `limit_seconds`; `None` if no PE is open.
    pub(crate) fn roomiest(&mut self, limit_seconds: f64) -> Option<u32> {
        self.best(|seconds, speed| Reverse(order((limit_seconds - seconds).max(0.0) * speed)))
    }

    /// Opens `pe`, or updates its entry after its load fell.
    pub(crate) fn open(&mut self, pe: u32) {
        // The exponent and four bits of the fraction.
        let class = self.database.pes[pe as usize].speed.to_bits() >> 48;
        let key = key(&self.seconds, &self.objects, pe);
        self.classes.entry(class).or_default().push(Reverse(key));
    }
}

fn key(seconds: &[f64], objects: &[u32], pe: u32) -> Key {
    (order(seconds[pe as usize]), objects[pe as usize], pe)
}
