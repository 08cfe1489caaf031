//! Mapping files: the PE of every object, one per line, in object order.
//!
//! Empty lines and lines that begin with `#` are ignored. `FileLB`, `equipoise map` and `equipoise evaluate` share this
//! reader, so that they reject the same files with the same errors.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::{Assignment, Impossible};
use crate::Database;
use crate::fault::{Classified, Fault};
use crate::files::write_whole;
use crate::files::{self, Unread};
use crate::quote::{sentence, shown};
use crate::table::count;

/// The content of a mapping file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappingFile {
    /// The path, for error messages.
    path: PathBuf,
    /// The PE of every object.
    pe_of: Vec<u32>,
    /// The line of each entry, from 1.
    line_of: Vec<u32>,
}

/// Why a mapping file cannot be used. The message names the file, what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The file cannot be read.
    #[error("cannot read the list of PEs `{}`: {source}; check its name and that it may be read", shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The file cannot be written; the old content remains.
    #[error(
        "cannot write the mapping `{}`: {source}; name a place that exists, is writable and has room",
        shown(.path)
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The number of entries differs from the number of objects.
    #[error(
        "the mapping `{}` places {}, not {}; give one PE per line",
        shown(.path), count(*.lines as u64, "object"), .objects
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// Lines with a PE.
        lines: usize,
        /// Objects to be placed.
        objects: usize,
    },
    /// A line is invalid.
    #[error("the mapping `{}`: line {line}: {}", shown(.path), sentence(.reason))]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
        /// What is wrong and what was expected.
        reason: String,
    },
}

impl Classified for MappingError {
    fn fault(&self) -> Fault {
        match self {
            MappingError::Read { .. } => Fault::Usage,
            MappingError::Write { source, .. } => source.fault(),
            MappingError::Length { .. } | MappingError::Line { .. } => Fault::Input,
        }
    }
}

impl MappingFile {
    /// Reads the mapping file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not a PE number.
    pub fn read(path: &Path) -> Result<Self, MappingError> {
        let mut mapping = MappingFile { path: path.into(), ..MappingFile::default() };
        let text = files::text(path).map_err(|unread| match unread {
            Unread::System(source) => MappingError::Read { path: path.into(), source },
            Unread::Content((line, reason)) => mapping.at(line as u32, reason),
        })?;
        let entries = lines(&text).map_err(|(line, reason)| mapping.at(line as u32, reason))?;
        (mapping.pe_of, mapping.line_of) = entries.into_iter().unzip();
        Ok(mapping)
    }

    /// The PE of every object of `database`; does not check whether the objects may move there.
    ///
    /// # Errors
    /// If the number of entries differs from the number of objects, or a PE does not exist.
    pub fn placement(&self, database: &Database) -> Result<&[u32], MappingError> {
        self.of(database.objects.len(), database.pes.len())
    }

    /// The PE of each of `objects` objects on a machine with `pes` PEs.
    ///
    /// # Errors
    /// As for [`Self::placement`].
    pub fn of(&self, objects: usize, pes: usize) -> Result<&[u32], MappingError> {
        let lines = self.pe_of.len();
        if lines != objects {
            return Err(MappingError::Length { path: self.path.clone(), lines, objects });
        }
        self.below(pes)
    }

    /// The PEs in file order, for a machine with `pes` PEs.
    ///
    /// # Errors
    /// If a PE does not exist.
    pub fn below(&self, pes: usize) -> Result<&[u32], MappingError> {
        if let Some(object) = self.pe_of.iter().position(|&pe| pe as usize >= pes) {
            let pe = self.pe_of[object];
            let reason = format!("there is no PE {pe}; PEs are 0 to {}", pes - 1);
            return Err(self.at(self.line_of[object], reason));
        }
        Ok(&self.pe_of)
    }

    /// The assignment of every object of `database` to its PE in the file.
    ///
    /// # Errors
    /// As for [`Self::placement`], and if an object that is not migratable would move, or a PE is not available.
    pub fn assignment(&self, database: &Database) -> Result<Assignment, MappingError> {
        let assignment = Assignment::new(self.placement(database)?.to_vec());
        let Err(impossible) = assignment.check(database) else { return Ok(assignment) };
        match impossible {
            Impossible::Pinned { object, from, .. } => {
                let reason = format!("object {object} is not migratable; it must stay on PE {from}");
                Err(self.at(self.line_of[object], reason))
            }
            Impossible::Unavailable { object, pe } => {
                Err(self.at(self.line_of[object], format!("PE {pe} is not available")))
            }
            // `placement` has checked these conditions.
            Impossible::Length { .. } | Impossible::UnknownPe { .. } => Ok(assignment),
        }
    }

    fn at(&self, line: u32, reason: String) -> MappingError {
        MappingError::Line { path: self.path.clone(), line, reason }
    }
}

/// Parses the PEs in a text, each with its line number, from 1.
///
/// # Errors
/// The first line that is not a PE number.
pub(crate) fn lines(text: &str) -> Result<Vec<(u32, u32)>, (usize, String)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let has_entry = |(_, text): &(u32, &str)| !text.is_empty() && !text.starts_with('#');
    let pe = |(line, text): (u32, &str)| {
        let start = || text.chars().take(40).collect::<String>();
        let pe = text
            .parse()
            .map_err(|_| (line as usize, format!("expected one PE number, found `{}`", start())))?;
        Ok((pe, line))
    };
    lines.filter(has_entry).map(pe).collect()
}

/// The text of a mapping file with these PEs.
pub(crate) fn text(pe_of: impl Iterator<Item = u32>) -> String {
    pe_of.fold(String::new(), |mut text, pe| {
        _ = writeln!(text, "{pe}");
        text
    })
}

/// Writes a mapping file at `path` with PE `pe_of[i]` for object `i`.
///
/// The file is replaced atomically.
///
/// # Errors
/// If the file system reports an error.
pub fn write(path: &Path, pe_of: &[u32]) -> Result<(), MappingError> {
    let text = text(pe_of.iter().copied());
    write_whole(path, text.as_bytes()).map_err(|source| MappingError::Write { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// Objects on PEs 0, 1 and 2 of 3; object 1 is not migratable, and PE 2 is not available.
    fn database() -> Database {
        let mut database = testing::database(3, &[(1.0, 0), (1.0, 1), (1.0, 2)]);
        database.objects[1].migratable = false;
        database.pes[2].available = false;
        database
    }

    /// The placement and the assignment read from a file with this text, or the errors.
    fn read(text: &str) -> (Result<Vec<u32>, String>, Result<Vec<u32>, String>) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("lb.map");
        std::fs::write(&path, text).expect("a temporary file can be written");
        let message = |error: MappingError| error.to_string().replace(&path.display().to_string(), "lb.map");
        match MappingFile::read(&path) {
            Err(error) => {
                let sentence = message(error);
                (Err(sentence.clone()), Err(sentence))
            }
            Ok(file) => (
                file.placement(&database()).map(<[u32]>::to_vec).map_err(message),
                file.assignment(&database()).map(|assignment| assignment.pe_of).map_err(message),
            ),
        }
    }

    #[track_caller]
    fn check(text: &str, placement: Result<&[u32], &str>, assignment: Result<&[u32], &str>) {
        let owned = |expected: Result<&[u32], &str>| {
            expected.map(<[u32]>::to_vec).map_err(|rest| format!("the mapping `lb.map`{rest}"))
        };
        assert_eq!(read(text), (owned(placement), owned(assignment)), "{text:?}");
    }

    #[test]
    fn placement_ignores_and_assignment_checks_where_objects_may_move() {
        check("# a comment\n 1\n\n1\n0\n", Ok(&[1, 1, 0]), Ok(&[1, 1, 0]));
        // Staying on an unavailable PE is allowed.
        check("0\n1\n2", Ok(&[0, 1, 2]), Ok(&[0, 1, 2]));
        let pinned = ": line 2: object 1 is not migratable; it must stay on PE 1";
        check("0\n0\n0\n", Ok(&[0, 0, 0]), Err(pinned));
        check("# x\n2\n1\n0\n", Ok(&[2, 1, 0]), Err(": line 2: PE 2 is not available"));
    }

    #[test]
    fn errors_name_the_line() {
        let both = |text, rest| check(text, Err(rest), Err(rest));
        both("0\n1\n# x\ntwo\n", ": line 4: expected one PE number, found `two`");
        both("0\n-1\n0\n", ": line 2: expected one PE number, found `-1`");
        both("0 1\n1\n0\n", ": line 1: expected one PE number, found `0 1`");
        both("0\n1\n", " places 2 objects, not 3; give one PE per line");
        both("0\n1\n0\n1\n", " places 4 objects, not 3; give one PE per line");
        both("0\n\n1\n7\n", ": line 4: there is no PE 7; PEs are 0 to 2");
    }

    #[test]
    fn written_files_are_read_back_unchanged() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("lb.map");
        for placement in [vec![], vec![2, 0, 1]] {
            write(&path, &placement).expect("a temporary file can be written");
            assert_eq!(MappingFile::read(&path).expect("it was written").pe_of, placement);
        }
        let nowhere = folder.path().join("no/such/place");
        let error = write(&nowhere, &[0]).expect_err("no place");
        assert!(error.to_string().contains("cannot write the mapping `"), "{error}");
        assert!(error.fault() == Fault::Usage);
        let full = MappingError::Write { path: nowhere.clone(), source: io::ErrorKind::StorageFull.into() };
        assert!(full.fault() == Fault::Input);
        let error = MappingFile::read(&nowhere).expect_err("no file");
        assert!(error.to_string().contains("cannot read the list of PEs `"), "{error}");
        assert!(error.fault() == Fault::Usage);
    }
}
