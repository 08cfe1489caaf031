//! Conversion of a step to columns and back.
//!
//! From version 3 on, columns have names in the file, and a reader skips columns that it does not know.

use serde::{Deserialize, Serialize};

use super::{damaged, text};
use crate::constraints::Constraints;
use crate::database::{Database, Edge, End, Object, ObjectIndex, PeRecord};
use crate::files::Refused;
use crate::frames::{NewSection, Section};

/// Declares the columns of a step, and how they are put into a section and taken out.
macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// A step with one column per field.
        #[derive(Default, Serialize, Deserialize)]
        pub(super) struct Columns {
            $($(#[$doc])* pub(super) $name: $kind,)*
        }

        impl Columns {
            /// The section with these columns, each under the name of its field.
            pub(super) fn put(&self, section: &mut NewSection) -> Result<(), Refused> {
                $(section.put(stringify!($name), &self.$name)?;)*
                Ok(())
            }

            /// The columns of a section.
            pub(super) fn take(section: &mut Section) -> Result<Columns, Refused> {
                Ok(Columns { $($name: section.take(stringify!($name))?,)* })
            }
        }
    };
}

columns! {
    step: u64,
    dangling_edges: u64,
    array_names: Vec<Vec<u8>>,
    pe_speed: Vec<f64>,
    pe_wall_seconds: Vec<f64>,
    pe_idle_seconds: Vec<f64>,
    pe_background_seconds: Vec<f64>,
    pe_available: Vec<bool>,
    object_id: Vec<u64>,
    object_array: Vec<u32>,
    object_dimensions: Vec<u8>,
    /// The coordinates of all objects, concatenated.
    object_coordinates: Vec<i32>,
    object_load_seconds: Vec<f64>,
    object_size_known: Vec<bool>,
    /// The sizes of the objects whose size is known.
    object_bytes: Vec<u64>,
    object_pe: Vec<u32>,
    object_migratable: Vec<bool>,
    /// Bit 0: the sender is a PE; bit 1: the receiver is a PE.
    edge_kinds: Vec<u8>,
    edge_from: Vec<u32>,
    edge_to: Vec<u32>,
    edge_messages: Vec<u64>,
    edge_bytes: Vec<u64>,
}

/// An end as (number, whether it is a PE).
fn split(end: End) -> (u32, bool) {
    match end {
        End::Object(object) => (object, false),
        End::Pe(pe) => (pe, true),
    }
}

fn join(number: u32, is_pe: bool) -> End {
    if is_pe { End::Pe(number) } else { End::Object(number) }
}

impl Columns {
    /// The columns of `database`, without those that are stored separately.
    pub(super) fn from_database(database: &Database) -> Columns {
        let Database { step, arrays, pes, objects, edges, dangling_edges, .. } = database;
        let coordinates = objects.iter().flat_map(|o| o.index.coordinates().iter().copied());
        Columns {
            step: *step,
            dangling_edges: *dangling_edges,
            array_names: arrays.iter().map(|name| name.clone().into_bytes()).collect(),
            pe_speed: pes.iter().map(|pe| pe.speed).collect(),
            pe_wall_seconds: pes.iter().map(|pe| pe.wall_seconds).collect(),
            pe_idle_seconds: pes.iter().map(|pe| pe.idle_seconds).collect(),
            pe_background_seconds: pes.iter().map(|pe| pe.background_seconds).collect(),
            pe_available: pes.iter().map(|pe| pe.available).collect(),
            object_id: objects.iter().map(|o| o.id).collect(),
            object_array: objects.iter().map(|o| o.array).collect(),
            object_dimensions: objects.iter().map(|o| o.index.coordinates().len() as u8).collect(),
            object_coordinates: coordinates.collect(),
            object_load_seconds: objects.iter().map(|o| o.load_seconds).collect(),
            object_size_known: objects.iter().map(|o| o.bytes.is_some()).collect(),
            object_bytes: objects.iter().filter_map(|o| o.bytes).collect(),
            object_pe: objects.iter().map(|o| o.pe).collect(),
            object_migratable: objects.iter().map(|o| o.migratable).collect(),
            edge_kinds: edges
                .iter()
                .map(|e| u8::from(split(e.from).1) | u8::from(split(e.to).1) << 1)
                .collect(),
            edge_from: edges.iter().map(|e| split(e.from).0).collect(),
            edge_to: edges.iter().map(|e| split(e.to).0).collect(),
            edge_messages: edges.iter().map(|e| e.messages).collect(),
            edge_bytes: edges.iter().map(|e| e.bytes).collect(),
        }
    }

    /// Converts the columns to a database; references are not checked.
    pub(super) fn into_database(self, communication_recorded: bool) -> Result<Database, Refused> {
        let unequal = || damaged("columns have different lengths");
        let pes = self.pe_speed.len();
        let times = [&self.pe_wall_seconds, &self.pe_idle_seconds, &self.pe_background_seconds];
        let objects = self.object_id.len();
        let object_columns = [
            self.object_array.len(),
            self.object_dimensions.len(),
            self.object_load_seconds.len(),
            self.object_size_known.len(),
            self.object_pe.len(),
            self.object_migratable.len(),
        ];
        let edges = self.edge_kinds.len();
        let edge_columns =
            [self.edge_from.len(), self.edge_to.len(), self.edge_messages.len(), self.edge_bytes.len()];
        let whole = times.iter().all(|column| column.len() == pes)
            && self.pe_available.len() == pes
            && object_columns.iter().all(|&length| length == objects)
            && edge_columns.iter().all(|&length| length == edges);
        if !whole {
            return Err(unequal());
        }
        let (mut coordinates, mut sizes) = (&self.object_coordinates[..], self.object_bytes.iter());
        let mut object = |i: usize| {
            let dimensions = usize::from(self.object_dimensions[i]);
            if dimensions > ObjectIndex::MAX_DIMENSIONS {
                return Err(damaged("an index has more than 6 dimensions"));
            }
            let (index, others) = coordinates.split_at_checked(dimensions).ok_or_else(unequal)?;
            coordinates = others;
            let known = self.object_size_known[i];
            Ok(Object {
                id: self.object_id[i],
                array: self.object_array[i],
                index: ObjectIndex::new(index),
                load_seconds: self.object_load_seconds[i],
                bytes: if known { Some(*sizes.next().ok_or_else(unequal)?) } else { None },
                pe: self.object_pe[i],
                migratable: self.object_migratable[i],
            })
        };
        let objects = (0..objects).map(&mut object).collect::<Result<_, _>>()?;
        if !coordinates.is_empty() || sizes.next().is_some() {
            return Err(unequal());
        }
        let pe = |i: usize| PeRecord {
            speed: self.pe_speed[i],
            wall_seconds: self.pe_wall_seconds[i],
            idle_seconds: self.pe_idle_seconds[i],
            background_seconds: self.pe_background_seconds[i],
            available: self.pe_available[i],
        };
        let edge = |i: usize| Edge {
            from: join(self.edge_from[i], self.edge_kinds[i] & 1 != 0),
            to: join(self.edge_to[i], self.edge_kinds[i] & 2 != 0),
            messages: self.edge_messages[i],
            bytes: self.edge_bytes[i],
        };
        Ok(Database {
            step: self.step,
            arrays: self.array_names.into_iter().map(text).collect::<Result<_, _>>()?,
            pes: (0..pes).map(pe).collect(),
            objects,
            communication_recorded,
            edges: (0..edges).map(edge).collect(),
            dangling_edges: self.dangling_edges,
            costs: None,
            constraints: Constraints::default(),
        })
    }
}
