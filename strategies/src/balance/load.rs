//! What the load balancers share: which objects may move, what stays, and the best place.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::Database;
use crate::cost::LoadBound;

/// A number that orders finite `seconds` that are not negative as they are; 0 is equal to -0.
pub(crate) fn order(seconds: f64) -> u64 {
    // The bits of numbers without a sign order as the numbers do, and the sum has none.
    (seconds + 0.0).to_bits()
}

/// What there is to balance.
///
/// Times are seconds on the PE: an object's load over the PE's speed. Loads are finite and not
/// negative (the database was checked).
pub(crate) struct Work<'a> {
    database: &'a Database,
    /// PEs that take objects, ascending.
    pub(crate) available: Vec<u32>,
    /// The objects that may move, heaviest first and lowest index first among equals.
    pub(crate) movable: Vec<u32>,
    /// Seconds of each PE that stay: its background and its objects that are not migratable.
    pub(crate) fixed_seconds: Vec<f64>,
}

impl<'a> Work<'a> {
    /// The work of a checked database whose PEs `available` take objects.
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

    /// What it is the work of.
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

    /// The PE `object` lives on.
    pub(crate) fn home(&self, object: u32) -> u32 {
        self.database.objects[object as usize].pe
    }

    /// Whether `pe` takes objects.
    pub(crate) fn is_available(&self, pe: u32) -> bool {
        self.database.pes[pe as usize].available
    }

    /// Whether the available PEs differ in speed, or in what they have to do besides movable objects.
    pub(crate) fn pes_differ(&self) -> bool {
        let character = |&pe: &u32| (self.fixed_seconds[pe as usize], self.speed(pe));
        self.available.iter().any(|pe| character(pe) != character(&self.available[0]))
    }

    /// The average of max/avg, as in [`LoadBound::average_seconds`].
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

    /// Every object at home but those that have to leave, because their PE is not available: these go
    /// where they are done soonest, heaviest first. Gives the PE of each object and the seconds of each PE.
    pub(crate) fn settle(&self) -> (Vec<u32>, Vec<f64>) {
        let mut placement = self.database.placement();
        let mut seconds = self.fixed_seconds.clone();
        let (at_home, homeless): (Vec<u32>, Vec<u32>) =
            self.movable.iter().partition(|&&object| self.is_available(self.home(object)));
        for object in at_home {
            let home = self.home(object);
            seconds[home as usize] += self.seconds(object, home);
        }
        let mut pes = Pes::new(self.database, seconds, &self.available);
        for object in homeless {
            let Some(pe) = pes.soonest(self.load_seconds(object)) else { break };
            pes.add(pe, self.seconds(object, pe));
            placement[object as usize] = pe;
        }
        (placement, pes.seconds)
    }

    /// The speed of `pe`.
    pub(crate) fn speed(&self, pe: u32) -> f64 {
        self.database.pes[pe as usize].speed
    }

    /// The PEs as they stand before any object that may move is placed; the available ones are open.
    pub(crate) fn pes(&self) -> Pes<'a> {
        Pes::new(self.database, self.fixed_seconds.clone(), &self.available)
    }
}

/// Seconds and objects of each PE while they are filled, and the best place among those that are open.
///
/// The open PEs are kept in classes of about the same speed, which differ by less than a sixteenth; in a
/// class the lightest PE is best. There are few classes, so that a place is found in O(log PEs).
pub(crate) struct Pes<'a> {
    database: &'a Database,
    /// Seconds of each PE.
    pub(crate) seconds: Vec<f64>,
    /// Objects put on each PE.
    objects: Vec<u32>,
    /// The open PEs of each class of speeds.
    classes: BTreeMap<u64, Heap>,
}

/// The open PEs of a class, lightest first.
///
/// At least one entry per open PE. Entries may be out of date, but one is never too heavy: open PEs are
/// only filled, or opened again.
type Heap = BinaryHeap<Reverse<Key>>;

/// Orders PEs: lighter first, then fewer objects (so that objects without load are spread), then lowest.
pub(crate) type Key = (u64, u32, u32);

impl<'a> Pes<'a> {
    /// PEs of `database` that have `seconds` already, of which `open` take objects.
    pub(crate) fn new(database: &'a Database, seconds: Vec<f64>, open: &[u32]) -> Self {
        let objects = vec![0; seconds.len()];
        let mut pes = Pes { database, seconds, objects, classes: BTreeMap::new() };
        open.iter().for_each(|&pe| pes.open(pe));
        pes
    }

    /// Puts an object that takes `seconds` there on `pe`.
    pub(crate) fn add(&mut self, pe: u32, seconds: f64) {
        self.seconds[pe as usize] += seconds;
        self.objects[pe as usize] += 1;
    }

    /// Gives `pe` work that is no object's.
    pub(crate) fn delay(&mut self, pe: u32, seconds: f64) {
        self.seconds[pe as usize] += seconds;
    }

    /// Orders PEs for an object of `load_seconds` at speed 1 as [`Self::soonest`] does: soonest done, then
    /// lightest, then fewest objects, then lowest.
    pub(crate) fn rank(&self, pe: u32, load_seconds: f64) -> (u64, Key) {
        let done = self.seconds[pe as usize] + load_seconds / self.database.pes[pe as usize].speed;
        // An object that comes to its partners may take less than nothing.
        (order(done.max(0.0)), key(&self.seconds, &self.objects, pe))
    }

    /// Of the lightest open PEs of all classes, the one whose rank by seconds and speed is least.
    fn best<R: Ord>(&mut self, rank: impl Fn(f64, f64) -> R) -> Option<u32> {
        let Pes { database, seconds, objects, classes } = self;
        let lightest = classes.values_mut().filter_map(|heap| {
            loop {
                let Reverse(entry) = *heap.peek()?;
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

    /// The open PE that is done soonest with an object of `load_seconds` at speed 1; `None` if none is
    /// open.
    pub(crate) fn soonest(&mut self, load_seconds: f64) -> Option<u32> {
        self.best(|seconds, speed| order(seconds + load_seconds / speed))
    }

    /// The open PE that has room for the largest load until `limit_seconds`; `None` if none is open.
    pub(crate) fn roomiest(&mut self, limit_seconds: f64) -> Option<u32> {
        self.best(|seconds, speed| Reverse(order((limit_seconds - seconds).max(0.0) * speed)))
    }

    /// Opens `pe`, which was not, or tells that it has become lighter.
    pub(crate) fn open(&mut self, pe: u32) {
        // The exponent and four bits of the fraction.
        let class = self.database.pes[pe as usize].speed.to_bits() >> 48;
        let key = key(&self.seconds, &self.objects, pe);
        self.classes.entry(class).or_default().push(Reverse(key));
    }

    /// Seconds of the heaviest of `pes`.
    pub(crate) fn max_seconds(&self, pes: &[u32]) -> f64 {
        pes.iter().map(|&pe| self.seconds[pe as usize]).fold(0.0, f64::max)
    }
}

fn key(seconds: &[f64], objects: &[u32], pe: u32) -> Key {
    (order(seconds[pe as usize]), objects[pe as usize], pe)
}
