//! Assignments: the PE of every object, as computed by a strategy.
//!
//! [`Assignment::check`] checks whether an assignment can be applied; a [`mapping_file`] contains one.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::Database;
use crate::fault::{Classified, Fault};
use crate::table::{count, seconds, there_are};

pub mod mapping_file;

pub use mapping_file::{MappingError, MappingFile};

/// An object that changes its PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Position of the object in the database.
    pub object: usize,
    /// The current PE.
    pub from: u32,
    /// The new PE.
    pub to: u32,
}

/// A named number that a strategy reports; in documents it is `[name, value]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The name, such as `groups`. Names of times contain the unit: `busiest_link_seconds`.
    pub name: String,
    /// The number.
    pub value: f64,
}

impl Note {
    /// A note.
    pub fn new(name: impl Into<String>, value: f64) -> Note {
        Note { name: name.into(), value }
    }
}

/// Formats notes as `groups 64` or `busiest link 1.500 ms`.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.strip_suffix("_seconds") {
            Some(name) => write!(f, "{} {}", name.replace('_', " "), seconds(self.value)),
            None => write!(f, "{} {}", self.name, self.value),
        }
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.name, self.value).serialize(serializer)
    }
}

/// The new PE of every object of a database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    /// The PE of each object, in the order of [`Database::objects`].
    pub pe_of: Vec<u32>,
    /// Notes of the strategy; shown in documents, and as text if there is no sentence.
    pub notes: Vec<Note>,
    /// A sentence with the content of the notes, if the strategy provides one.
    pub sentence: Option<String>,
    /// The strategies that a strategy of several has tried.
    pub attempts: Vec<Attempt>,
}

/// A strategy that another one has tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Its spec.
    pub spec: String,
    /// How long it was expected to think, in seconds.
    pub thinking_seconds: f64,
    /// What part of the possible gain over those tried before it found; from 0 to 1.
    pub found: f64,
    /// Whether the assignment is that of this strategy.
    pub is_chosen: bool,
}

/// An assignment that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Impossible {
    /// The number of objects differs from the database.
    #[error("it has PEs for {}, but the database has {objects}", count(*.placed as u64, "object"))]
    Length {
        /// Objects placed.
        placed: usize,
        /// Objects recorded.
        objects: usize,
    },
    /// A PE that does not exist.
    #[error("object {object} is on PE {pe}, but {}", there_are(*.pes, "PE"))]
    UnknownPe {
        /// Position of the object in the database.
        object: usize,
        /// The assigned PE.
        pe: u32,
        /// The number of PEs.
        pes: usize,
    },
    /// The PE is not available.
    #[error("object {object} is on PE {pe}, which is not available")]
    Unavailable {
        /// Position of the object in the database.
        object: usize,
        /// The assigned PE.
        pe: u32,
    },
    /// An object that is not migratable was moved.
    #[error("object {object} is not migratable, but is moved from PE {from} to PE {to}")]
    Pinned {
        /// Position of the object in the database.
        object: usize,
        /// The current PE.
        from: u32,
        /// The assigned PE.
        to: u32,
    },
}

impl Classified for Impossible {
    fn fault(&self) -> Fault {
        Fault::Bug
    }
}

impl Assignment {
    /// An assignment without notes.
    pub fn new(pe_of: Vec<u32>) -> Self {
        Assignment { pe_of, ..Assignment::default() }
    }

    /// Adds a note.
    #[must_use]
    pub fn with_note(mut self, name: impl Into<String>, value: f64) -> Self {
        self.notes.push(Note::new(name, value));
        self
    }

    /// The assignment in which every object stays on its current PE.
    pub fn unchanged(database: &Database) -> Self {
        Self::new(database.objects.iter().map(|o| o.pe).collect())
    }

    /// The objects that change their PE, in object order.
    pub fn moves<'a>(&'a self, database: &'a Database) -> impl Iterator<Item = Move> + 'a {
        let places = database.objects.iter().zip(&self.pe_of).enumerate();
        places.filter(|(_, (o, to))| o.pe != **to).map(|(object, (o, &to))| Move { object, from: o.pe, to })
    }

    /// Checks whether the assignment can be applied to `database`.
    ///
    /// An object may stay on its current PE even if that PE is not available.
    ///
    /// # Errors
    /// The first problem in object order.
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

    /// Objects on PEs 0, 1 and 2 of 4; object 1 is not migratable, and PE 2 is not available.
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
    fn check_names_the_first_problem() {
        check(&[0, 1, 2], Ok(()));
        check(&[3, 1, 0], Ok(()));
        check(&[0, 1], Err(Impossible::Length { placed: 2, objects: 3 }));
        check(&[4, 1, 2], Err(Impossible::UnknownPe { object: 0, pe: 4, pes: 4 }));
        check(&[0, 9, 2], Err(Impossible::UnknownPe { object: 1, pe: 9, pes: 4 }));
        check(&[2, 1, 2], Err(Impossible::Unavailable { object: 0, pe: 2 }));
        check(&[0, 0, 2], Err(Impossible::Pinned { object: 1, from: 1, to: 0 }));
    }

    #[test]
    fn notes_are_pairs_in_documents_and_text_with_units_otherwise() {
        let notes = [Note::new("groups", 64.0), Note::new("busiest_link_seconds", 0.0015)];
        assert_eq!(notes.each_ref().map(Note::to_string), ["groups 64", "busiest link 1.50 ms"]);
        let document = serde_json::to_string(&notes).expect("a document");
        assert_eq!(document, r#"[["groups",64.0],["busiest_link_seconds",0.0015]]"#);
    }

    #[test]
    fn moves_lists_the_objects_that_change_their_pe() {
        let moves = |pe_of: &[u32]| Assignment::new(pe_of.to_vec()).moves(&database()).collect::<Vec<_>>();
        assert_eq!(
            moves(&[3, 1, 0]),
            [Move { object: 0, from: 0, to: 3 }, Move { object: 2, from: 2, to: 0 }]
        );
        assert_eq!(Assignment::unchanged(&database()).moves(&database()).count(), 0);
    }
}
