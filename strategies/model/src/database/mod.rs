//! The load-balancing database: measurements of the runtime between two load-balancing steps.
//!
//! Loads are `f64` seconds, volumes are `u64` bytes (totals exceed 2^32 in real programs).
//!
//! A [`Dump`] is the content of a file: all dumped steps of a program. [`mod@file`] reads and writes files; each format
//! has its own module: [`binary`] and [`json`] are formats of this project, [`charm`] is the format of Charm++ and
//! [`vt`] that of vt. [`Database::check`] checks consistency, and [`Database::remap`] changes the number of PEs.

use std::fmt;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::{SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};

use crate::constraints::Constraints;
use crate::costs::Costs;

#[cfg(any(test, feature = "testing"))]
pub mod arbitrary;
pub mod binary;
pub mod charm;
mod check;
pub mod file;
pub mod json;
mod remap;
mod totals;
pub mod vt;
mod write;

pub use check::Inconsistent;
pub use file::DatabaseError;
pub use totals::{Summary, Volumes};
pub use write::DumpWriter;

/// The content of a database file: all dumped steps of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    /// The name of the program; empty if unknown.
    pub program: String,
    /// The spec of the machine, such as `torus:4x4`; empty if unknown.
    pub topology: String,
    /// The steps in ascending order.
    pub steps: Vec<Database>,
    /// What the reader ignored, as clauses that follow the name of the file, such as `was cut after step 7 (..)`.
    pub warnings: Vec<String>,
}

/// The record of one step: PEs, objects, and the communication between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Database {
    /// The number of the load-balancing step, from 0.
    pub step: u64,
    /// The names of the chare arrays, by [`Object::array`]; empty if unknown.
    pub arrays: Vec<String>,
    /// The PEs, by number.
    #[serde(deserialize_with = "json::list")]
    pub pes: Vec<PeRecord>,
    /// The objects, ordered by (array, index in its array) where the runtime made the record.
    #[serde(deserialize_with = "json::list")]
    pub objects: Vec<Object>,
    /// Whether communication was recorded. If not, there are no edges, although messages may have been sent.
    pub communication_recorded: bool,
    /// The communication: one edge per sender and receiver.
    #[serde(deserialize_with = "json::list")]
    pub edges: Vec<Edge>,
    /// Communication records with an object that is not in the database; they are only counted.
    pub dangling_edges: u64,
    /// What messages and migrations cost in the run; none if unknown.
    pub costs: Option<Costs>,
    /// What a placement of the objects must keep. `keep` of the crate `equipoise-strategies` makes strategies keep it.
    pub constraints: Constraints,
}

impl Default for Database {
    /// An empty database in which communication was recorded.
    fn default() -> Self {
        Database {
            step: 0,
            arrays: Vec::new(),
            pes: Vec::new(),
            objects: Vec::new(),
            communication_recorded: true,
            edges: Vec::new(),
            dangling_edges: 0,
            costs: None,
            constraints: Constraints::default(),
        }
    }
}

/// The record of a PE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeRecord {
    /// Relative speed; 1 is normal.
    pub speed: f64,
    /// Wall-clock time of the period, in seconds.
    pub wall_seconds: f64,
    /// Idle time in the period, in seconds.
    pub idle_seconds: f64,
    /// Time spent outside the objects, in seconds: wall time minus idle time minus the loads of the objects.
    pub background_seconds: f64,
    /// Whether the PE accepts objects.
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

/// The record of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Unique in the database, and constant across the steps of a dump.
    pub id: u64,
    /// The chare array, by position in [`Database::arrays`].
    #[serde(default)]
    pub array: u32,
    /// The index in the array; empty if unknown.
    #[serde(default)]
    pub index: ObjectIndex,
    /// Measured work in seconds at speed 1.
    pub load_seconds: f64,
    /// The encoded size, if measured.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// The current PE.
    pub pe: u32,
    /// Whether it may be moved.
    #[serde(default = "yes")]
    pub migratable: bool,
}

/// The default of [`Object::migratable`] in files without the field.
fn yes() -> bool {
    true
}

/// An index of 1 to 6 dimensions, or of 0 dimensions (unknown, or a singleton); does not allocate.
///
/// Serialized as the sequence of its coordinates.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectIndex {
    dimensions: u8,
    coordinates: [i32; ObjectIndex::MAX_DIMENSIONS],
}

impl ObjectIndex {
    /// The largest number of dimensions.
    pub const MAX_DIMENSIONS: usize = 6;

    /// The index with the given coordinates.
    ///
    /// # Panics
    /// If there are more than [`Self::MAX_DIMENSIONS`] coordinates.
    pub fn new(coordinates: &[i32]) -> Self {
        let mut index = ObjectIndex { dimensions: coordinates.len() as u8, ..Self::default() };
        index.coordinates[..coordinates.len()].copy_from_slice(coordinates);
        index
    }

    /// The coordinates.
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

/// The messages from one end to another in the period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The sender.
    pub from: End,
    /// The receiver.
    pub to: End,
    /// The number of messages.
    pub messages: u64,
    /// The total number of bytes.
    pub bytes: u64,
}

/// The sender or receiver of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// An object, by position in [`Database::objects`].
    Object(u32),
    /// A PE: the runtime itself, `main`, or a reply. It does not move.
    Pe(u32),
}

impl End {
    /// The PE of this end when object `i` is on `placement[i]`.
    pub fn pe(self, placement: &[u32]) -> u32 {
        match self {
            End::Object(object) => placement[object as usize],
            End::Pe(pe) => pe,
        }
    }
}

impl Database {
    /// The current PE of every object, in object order.
    pub fn placement(&self) -> Vec<u32> {
        self.objects.iter().map(|o| o.pe).collect()
    }

    /// The same record with object `i` on PE `placement[i]`.
    ///
    /// Later stages of a pipeline receive the result of earlier stages in this form.
    ///
    /// # Panics
    /// If the number of entries of `placement` is not the number of objects.
    pub fn placed(mut self, placement: &[u32]) -> Database {
        assert_eq!(placement.len(), self.objects.len(), "a placement gives every object one PE");
        for (object, &pe) in self.objects.iter_mut().zip(placement) {
            object.pe = pe;
        }
        self
    }
}
