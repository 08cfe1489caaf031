//! The answer of a strategy: the PE of every object.
//!
//! [`Assignment::check`] says whether it can be carried out; a [`mapping_file`] holds one.

use crate::Database;

pub mod mapping_file;

pub use mapping_file::{MappingError, MappingFile};

/// An object that changes its PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Position of the object in the database.
    pub object: usize,
    /// Where it lives.
    pub from: u32,
    /// Where it should live.
    pub to: u32,
}

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

    /// The objects of `database` that it moves, in object order.
    pub fn moves<'a>(&'a self, database: &'a Database) -> impl Iterator<Item = Move> + 'a {
        let places = database.objects.iter().zip(&self.pe_of).enumerate();
        places.filter(|(_, (o, to))| o.pe != **to).map(|(object, (o, &to))| Move { object, from: o.pe, to })
    }

    /// Whether the answer can be carried out on `database`.
    ///
    /// An object may stay where it is, even if its PE takes no others.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// Objects on PEs 0, 1 and 2 of 4; the second must stay, and PE 2 is not available.
    fn database() -> Database {
        let mut database = testing::database(4, &[(1.0, 0), (1.0, 1), (1.0, 2)]);
        database.objects[1].migratable = false;
        database.pes[2].available = false;
        database
    }

    #[track_caller]
    fn check(pe_of: &[u32], expected: Result<(), Impossible>) {
        assert_eq!(Assignment::new(pe_of.to_vec()).check(&database()), expected);
    }

    #[test]
    fn an_answer_is_possible_or_the_reason_is_named() {
        check(&[0, 1, 2], Ok(()));
        check(&[3, 1, 0], Ok(()));
        check(&[0, 1], Err(Impossible::Length { placed: 2, objects: 3 }));
        check(&[4, 1, 2], Err(Impossible::UnknownPe { object: 0, pe: 4, pes: 4 }));
        check(&[0, 9, 2], Err(Impossible::UnknownPe { object: 1, pe: 9, pes: 4 }));
        check(&[2, 1, 2], Err(Impossible::Unavailable { object: 0, pe: 2 }));
        check(&[0, 0, 2], Err(Impossible::Pinned { object: 1, from: 1, to: 0 }));
    }

    #[test]
    fn moves_are_the_objects_that_change_their_pe() {
        let moves = |pe_of: &[u32]| Assignment::new(pe_of.to_vec()).moves(&database()).collect::<Vec<_>>();
        assert_eq!(
            moves(&[3, 1, 0]),
            [Move { object: 0, from: 0, to: 3 }, Move { object: 2, from: 2, to: 0 }]
        );
        assert_eq!(Assignment::unchanged(&database()).moves(&database()).count(), 0);
    }
}
