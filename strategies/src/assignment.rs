//! The answer of a strategy: the PE of every object.

use crate::Database;

/// Where every object of a database should live.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    /// The PE of each object, in the order of [`Database::objects`].
    pub pe_of: Vec<u32>,
    /// What the strategy wants to report about its work, as (name, value).
    pub notes: Vec<(String, f64)>,
}

/// An answer that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Impossible {
    /// The answer has another number of objects than the database.
    #[error("it placed {placed} objects, and the database has {objects}")]
    Length {
        /// Objects placed.
        placed: usize,
        /// Objects recorded.
        objects: usize,
    },
    /// A PE that does not exist.
    #[error("it put object {object} on PE {pe}, and there are only {pes}")]
    UnknownPe {
        /// Position of the object in the database.
        object: usize,
        /// The PE it was given.
        pe: u32,
        /// PEs there are.
        pes: usize,
    },
    /// A PE that takes no objects.
    #[error("it put object {object} on PE {pe}, which is not available")]
    Unavailable {
        /// Position of the object in the database.
        object: usize,
        /// The PE it was given.
        pe: u32,
    },
    /// An object that must stay was moved.
    #[error("it moved object {object}, which is not migratable, from PE {from} to PE {to}")]
    Pinned {
        /// Position of the object in the database.
        object: usize,
        /// Where it lives.
        from: u32,
        /// Where it was put.
        to: u32,
    },
}

impl Assignment {
    /// An answer without remarks.
    pub fn new(pe_of: Vec<u32>) -> Self {
        Assignment { pe_of, notes: Vec::new() }
    }

    /// The answer that leaves every object where it is.
    pub fn unchanged(database: &Database) -> Self {
        Self::new(database.objects.iter().map(|o| o.pe).collect())
    }

    /// Whether the answer can be carried out on `database`.
    ///
    /// # Errors
    /// The first thing that is impossible about it, in object order.
    pub fn check(&self, database: &Database) -> Result<(), Impossible> {
        let (placed, objects) = (self.pe_of.len(), database.objects.len());
        if placed != objects {
            return Err(Impossible::Length { placed, objects });
        }
        for (object, (&pe, o)) in self.pe_of.iter().zip(&database.objects).enumerate() {
            if pe == o.pe {
                continue;
            }
            let Some(record) = database.pes.get(pe as usize) else {
                return Err(Impossible::UnknownPe { object, pe, pes: database.pes.len() });
            };
            if !o.migratable {
                return Err(Impossible::Pinned { object, from: o.pe, to: pe });
            }
            if !record.available {
                return Err(Impossible::Unavailable { object, pe });
            }
        }
        Ok(())
    }
}
