//! What the load balancers share: which objects may move, what stays, and the lightest PE.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Database;

/// What there is to balance.
///
/// Times are seconds on the PE: an object's load over the PE's speed. Loads are finite and not
/// negative (the database was checked), so their bits order as the numbers do.
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
                keys.push((Reverse(object.load_seconds.to_bits()), index as u32));
            } else {
                let pe = object.pe as usize;
                fixed_seconds[pe] += object.load_seconds / database.pes[pe].speed;
            }
        }
        keys.sort_unstable();
        let movable = keys.into_iter().map(|(_, index)| index).collect();
        Work { database, available, movable, fixed_seconds }
    }

    /// Seconds that `object` takes on `pe`.
    pub(crate) fn seconds(&self, object: u32, pe: u32) -> f64 {
        self.database.objects[object as usize].load_seconds / self.database.pes[pe as usize].speed
    }

    /// The PE `object` lives on.
    pub(crate) fn home(&self, object: u32) -> u32 {
        self.database.objects[object as usize].pe
    }

    /// Whether `pe` takes objects.
    pub(crate) fn is_available(&self, pe: u32) -> bool {
        self.database.pes[pe as usize].available
    }

    /// Seconds every available PE would take if the load could be divided at will.
    pub(crate) fn average_seconds(&self) -> f64 {
        let speed = |pe: u32| self.database.pes[pe as usize].speed;
        let movable: f64 = self.movable.iter().map(|&o| self.database.objects[o as usize].load_seconds).sum();
        let fixed: f64 = self.available.iter().map(|&pe| self.fixed_seconds[pe as usize] * speed(pe)).sum();
        (movable + fixed) / self.available.iter().map(|&pe| speed(pe)).sum::<f64>()
    }

    /// The PEs as they stand before any object that may move is placed; the available ones are open.
    pub(crate) fn pes(&self) -> Pes {
        Pes::new(self.fixed_seconds.clone(), &self.available)
    }
}

/// Seconds and objects of each PE while they are filled, and the lightest of those that are open.
pub(crate) struct Pes {
    /// Seconds of each PE.
    pub(crate) seconds: Vec<f64>,
    /// Objects put on each PE.
    objects: Vec<u32>,
    /// One entry per open PE; an entry may be out of date, but never too heavy, because open PEs are
    /// only filled.
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
}

impl Pes {
    /// PEs that have `seconds` already, of which `open` take objects.
    pub(crate) fn new(seconds: Vec<f64>, open: &[u32]) -> Self {
        let objects = vec![0; seconds.len()];
        let mut pes = Pes { seconds, objects, heap: BinaryHeap::new() };
        pes.heap = open.iter().map(|&pe| Reverse(pes.key(pe))).collect();
        pes
    }

    /// Lighter first, then fewer objects (so that objects without load are spread), then lowest.
    fn key(&self, pe: u32) -> (u64, u32, u32) {
        (self.seconds[pe as usize].to_bits(), self.objects[pe as usize], pe)
    }

    /// Puts an object that takes `seconds` there on `pe`.
    pub(crate) fn add(&mut self, pe: u32, seconds: f64) {
        self.seconds[pe as usize] += seconds;
        self.objects[pe as usize] += 1;
    }

    /// The open PE with the fewest seconds; `None` if none is open.
    pub(crate) fn lightest(&mut self) -> Option<u32> {
        loop {
            let Reverse(entry) = *self.heap.peek()?;
            let current = self.key(entry.2);
            if entry == current {
                return Some(entry.2);
            }
            *self.heap.peek_mut()? = Reverse(current);
        }
    }

    /// Opens `pe`, which was not.
    pub(crate) fn open(&mut self, pe: u32) {
        self.heap.push(Reverse(self.key(pe)));
    }

    /// Seconds of the heaviest of `pes`.
    pub(crate) fn max_seconds(&self, pes: &[u32]) -> f64 {
        pes.iter().map(|&pe| self.seconds[pe as usize]).fold(0.0, f64::max)
    }
}
