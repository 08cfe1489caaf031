//! The load-balancing database: what the runtime recorded between two load-balancing steps.
//!
//! All loads are `f64` seconds, all volumes `u64` bytes (totals exceed 2^32 in real programs).
//!
//! A [`Dump`] is what a file holds: every step a program dumped. [`mod@file`] reads and writes them, and
//! each layout has its own file: [`binary`] and [`json`] are ours, [`charm`] is Charm++'s and [`vt`] is vt's.
//! [`Database::check`] says whether a database is whole, and [`Database::remap`] what it would be on
//! another number of PEs.

use std::fmt;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::{SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) mod arbitrary;
pub mod binary;
pub mod charm;
mod check;
pub mod file;
pub mod json;
mod remap;
mod totals;
pub mod vt;

pub use check::Inconsistent;
pub use file::DatabaseError;
pub use totals::{Summary, Volumes};

/// What a database file holds: all steps a program dumped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    /// The program, as a person would recognise it; empty if unknown.
    pub program: String,
    /// The spec of the topology it ran on, as in `torus:4x4`; empty if unknown.
    pub topology: String,
    /// The steps, in the order they were taken.
    pub steps: Vec<Database>,
}

/// One step's record: the PEs, the objects on them, and who sent how much to whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// The load-balancing step it was taken at, from 0.
    pub step: u64,
    /// The names of the chare arrays, by [`Object::array`]; empty if unknown.
    pub arrays: Vec<String>,
    /// The PEs, by number.
    pub pes: Vec<PeRecord>,
    /// The objects, ordered by (array, index in its array) where the runtime made the record.
    pub objects: Vec<Object>,
    /// Whether communication was recorded; if not, there are no edges, and that says nothing.
    pub communication_recorded: bool,
    /// The communication, one entry per (sender, receiver).
    pub edges: Vec<Edge>,
    /// Communication records that named an object which is not in the database; tolerated, not kept.
    pub dangling_edges: u64,
}

impl Default for Database {
    /// Nothing, and that nothing was sent is known.
    fn default() -> Self {
        Database {
            step: 0,
            arrays: Vec::new(),
            pes: Vec::new(),
            objects: Vec::new(),
            communication_recorded: true,
            edges: Vec::new(),
            dangling_edges: 0,
        }
    }
}

/// What was recorded about a PE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeRecord {
    /// Relative speed; 1 is normal.
    pub speed: f64,
    /// Wall-clock seconds of the period.
    pub wall_seconds: f64,
    /// Seconds of it without work.
    pub idle_seconds: f64,
    /// Seconds of it spent outside the objects: wall less idle less the objects' loads.
    pub background_seconds: f64,
    /// Whether objects may be put here.
    pub available: bool,
}

impl Default for PeRecord {
    fn default() -> Self {
        PeRecord {
            speed: 1.0,
            wall_seconds: 0.0,
            idle_seconds: 0.0,
            background_seconds: 0.0,
            available: true,
        }
    }
}

/// What was recorded about an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// Unique in the database; equal across the steps of one dump.
    pub id: u64,
    /// The chare array it belongs to, by position in [`Database::arrays`].
    #[serde(default)]
    pub array: u32,
    /// Its index in the array; empty if unknown.
    #[serde(default)]
    pub index: ObjectIndex,
    /// Measured seconds of work at speed 1.
    pub load_seconds: f64,
    /// Encoded size, if it was ever measured.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// The PE it lives on.
    pub pe: u32,
    /// Whether it may be moved.
    #[serde(default = "yes")]
    pub migratable: bool,
}

/// The default of [`Object::migratable`] in a file that leaves it out.
fn yes() -> bool {
    true
}

/// An index of 0 (unknown, or a singleton) to 6 dimensions, without an allocation.
///
/// It is written as the sequence of its coordinates.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectIndex {
    dimensions: u8,
    coordinates: [i32; ObjectIndex::MAX_DIMENSIONS],
}

impl ObjectIndex {
    /// The most dimensions an index has.
    pub const MAX_DIMENSIONS: usize = 6;

    /// The index with these coordinates.
    ///
    /// # Panics
    /// With more than [`Self::MAX_DIMENSIONS`] coordinates.
    pub fn new(coordinates: &[i32]) -> Self {
        let mut index = ObjectIndex { dimensions: coordinates.len() as u8, ..Self::default() };
        index.coordinates[..coordinates.len()].copy_from_slice(coordinates);
        index
    }

    /// Its coordinates.
    pub fn coordinates(&self) -> &[i32] {
        &self.coordinates[..usize::from(self.dimensions)]
    }
}

impl fmt::Debug for ObjectIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.coordinates().fmt(f)
    }
}

impl Serialize for ObjectIndex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.coordinates().len()))?;
        for coordinate in self.coordinates() {
            sequence.serialize_element(coordinate)?;
        }
        sequence.end()
    }
}

impl<'de> Deserialize<'de> for ObjectIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Coordinates;
        impl<'de> Visitor<'de> for Coordinates {
            type Value = ObjectIndex;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "at most {} integer coordinates", ObjectIndex::MAX_DIMENSIONS)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<ObjectIndex, A::Error> {
                let mut index = ObjectIndex::default();
                while let Some(coordinate) = sequence.next_element::<i32>()? {
                    let at = usize::from(index.dimensions);
                    let place = index
                        .coordinates
                        .get_mut(at)
                        .ok_or_else(|| de::Error::invalid_length(at + 1, &self))?;
                    *place = coordinate;
                    index.dimensions += 1;
                }
                Ok(index)
            }
        }
        deserializer.deserialize_seq(Coordinates)
    }
}

/// Messages from one end to another in the period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// Who sent.
    pub from: End,
    /// Who received.
    pub to: End,
    /// How many messages.
    pub messages: u64,
    /// How many bytes in all.
    pub bytes: u64,
}

/// An end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// An object, by position in [`Database::objects`].
    Object(u32),
    /// A PE: the runtime itself, `main`, a reply. It stays where it is.
    Pe(u32),
}

impl End {
    /// The PE it is on when object `i` is on `placement[i]`.
    pub fn pe(self, placement: &[u32]) -> u32 {
        match self {
            End::Object(object) => placement[object as usize],
            End::Pe(pe) => pe,
        }
    }
}

impl Database {
    /// Where every object lives now, in object order.
    pub fn placement(&self) -> Vec<u32> {
        self.objects.iter().map(|o| o.pe).collect()
    }

    /// The same record with the objects elsewhere: object `i` on `placement[i]`.
    ///
    /// This is what a later stage of a pipeline sees of an earlier one.
    ///
    /// # Panics
    /// When there are more or fewer objects than places.
    pub fn placed(mut self, placement: &[u32]) -> Database {
        assert_eq!(placement.len(), self.objects.len(), "a placement gives every object one PE");
        for (object, &pe) in self.objects.iter_mut().zip(placement) {
            object.pe = pe;
        }
        self
    }
}
