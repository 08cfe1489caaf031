//! The load-balancing database: what the runtime recorded between two load-balancing steps.
//!
//! All loads are `f64` seconds, all volumes `u64` bytes (totals exceed 2^32 in real programs).

use serde::{Deserialize, Serialize};

/// One step's record: the PEs, the objects on them, and who sent how much to whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Database {
    /// The load-balancing step it was taken at, from 0.
    pub step: u64,
    /// The names of the chare arrays, by [`Object::array`]; empty if unknown.
    pub arrays: Vec<String>,
    /// The PEs, by number.
    pub pes: Vec<PeRecord>,
    /// The objects, ordered by (array, index in its array) where the runtime made the record.
    pub objects: Vec<Object>,
    /// The communication, one entry per (sender, receiver).
    pub edges: Vec<Edge>,
    /// Communication records that named an object which is not in the database; tolerated, not kept.
    pub dangling_edges: u64,
}

/// What was recorded about a PE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        PeRecord { speed: 1.0, wall_seconds: 0.0, idle_seconds: 0.0, background_seconds: 0.0, available: true }
    }
}

/// What was recorded about an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Unique in the database; equal across the steps of one dump.
    pub id: u64,
    /// The chare array it belongs to, by position in [`Database::arrays`].
    pub array: u32,
    /// Its index in the array; empty if unknown.
    pub index: ObjectIndex,
    /// Measured seconds of work at speed 1.
    pub load_seconds: f64,
    /// Encoded size, if it was ever measured.
    pub bytes: Option<u64>,
    /// The PE it lives on.
    pub pe: u32,
    /// Whether it may be moved.
    pub migratable: bool,
}

/// An index of 0 (unknown, or a singleton) to 6 dimensions, without an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectIndex {
    dimensions: u8,
    coordinates: [i32; 6],
}

impl ObjectIndex {
    /// The index with these coordinates.
    ///
    /// # Panics
    /// With more than 6 coordinates.
    pub fn new(coordinates: &[i32]) -> Self {
        let mut index = ObjectIndex { dimensions: coordinates.len() as u8, coordinates: [0; 6] };
        index.coordinates[..coordinates.len()].copy_from_slice(coordinates);
        index
    }

    /// Its coordinates.
    pub fn coordinates(&self) -> &[i32] {
        &self.coordinates[..usize::from(self.dimensions.min(6))]
    }
}

/// Messages from one end to another in the period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
pub enum End {
    /// An object, by position in [`Database::objects`].
    Object(u32),
    /// A PE: the runtime itself, `main`, a reply. It stays where it is.
    Pe(u32),
}

impl Database {
    /// Where every object lives now, in object order.
    pub fn placement(&self) -> Vec<u32> {
        self.objects.iter().map(|o| o.pe).collect()
    }
}
