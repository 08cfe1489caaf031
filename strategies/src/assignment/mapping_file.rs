//! Mapping files: the PE of every object, one per line, in object order.
//!
//! Empty lines and lines that begin with `#` do not count. `FileLB`, `equipoise map` and
//! `equipoise evaluate` read them here, so that the same file is refused for the same reason everywhere.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::{Assignment, Impossible};
use crate::Database;
use crate::files::write_whole;
use crate::files::{self, NOT_TEXT, Unread};

/// What a mapping file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappingFile {
    /// Its name, for messages.
    path: PathBuf,
    /// The PE of every object.
    pe_of: Vec<u32>,
    /// The line of the file that says so, from 1.
    line_of: Vec<u32>,
}

/// Why a mapping file cannot be used: a sentence that names it, what is wrong, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The file system does not give it.
    #[error("cannot read the mapping `{}`: {source}; check its name and that it may be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file system does not take it; what stood there before still stands.
    #[error(
        "cannot write the mapping `{}`: {source}; name a place that exists, is writable and has room",
        .path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another number of lines than objects.
    #[error("the mapping `{}` places {lines} objects, and there are {objects}; give one PE per line", .path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Lines with a PE.
        lines: usize,
        /// Objects to be placed.
        objects: usize,
    },
    /// A line that cannot be followed.
    #[error("the mapping `{}`: line {line}: {reason}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
        /// What is wrong with it and what was expected.
        reason: String,
    },
}

impl MappingError {
    /// Whether another name is the remedy; otherwise the file does not fit, or there is no room.
    pub fn is_of_the_request(&self) -> bool {
        match self {
            MappingError::Read { .. } => true,
            MappingError::Write { source, .. } => files::is_of_the_name(source),
            MappingError::Length { .. } | MappingError::Line { .. } => false,
        }
    }
}

impl MappingFile {
    /// The mapping in the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is not a PE number.
    pub fn read(path: &Path) -> Result<Self, MappingError> {
        let mut mapping = MappingFile { path: path.into(), ..MappingFile::default() };
        let text = files::text(path).map_err(|unread| match unread {
            Unread::System(source) => MappingError::Read { path: path.into(), source },
            Unread::NotText(line) => mapping.at(line as u32, NOT_TEXT.into()),
        })?;
        let said = lines(&text).map_err(|(line, reason)| mapping.at(line as u32, reason))?;
        (mapping.pe_of, mapping.line_of) = said.into_iter().unzip();
        Ok(mapping)
    }

    /// The PE of every object of `database`, wherever it says; whether they could move there is not asked.
    ///
    /// # Errors
    /// When it has another number of lines than the database objects, or names a PE that there is not.
    pub fn placement(&self, database: &Database) -> Result<&[u32], MappingError> {
        self.of(database.objects.len(), database.pes.len())
    }

    /// The PE of each of so many objects, on a machine with so many PEs.
    ///
    /// # Errors
    /// As [`Self::placement`].
    pub fn of(&self, objects: usize, pes: usize) -> Result<&[u32], MappingError> {
        let lines = self.pe_of.len();
        if lines != objects {
            return Err(MappingError::Length { path: self.path.clone(), lines, objects });
        }
        self.below(pes)
    }

    /// The PEs it names, in order, on a machine with so many PEs.
    ///
    /// # Errors
    /// When it names one that there is not.
    pub fn below(&self, pes: usize) -> Result<&[u32], MappingError> {
        if let Some(object) = self.pe_of.iter().position(|&pe| pe as usize >= pes) {
            let pe = self.pe_of[object];
            let reason = format!("there is no PE {pe}; PEs are 0 to {}", pes - 1);
            return Err(self.at(self.line_of[object], reason));
        }
        Ok(&self.pe_of)
    }

    /// The answer that moves every object of `database` where it says.
    ///
    /// # Errors
    /// As [`Self::placement`], and when an object that is not migratable would move, or a PE that is not
    /// available would take one.
    pub fn assignment(&self, database: &Database) -> Result<Assignment, MappingError> {
        let assignment = Assignment::new(self.placement(database)?.to_vec());
        let Err(impossible) = assignment.check(database) else { return Ok(assignment) };
        match impossible {
            Impossible::Pinned { object, from, .. } => {
                let reason = format!("object {object} is not migratable; it must stay on PE {from}");
                Err(self.at(self.line_of[object], reason))
            }
            Impossible::Unavailable { object, pe } => {
                Err(self.at(self.line_of[object], format!("PE {pe} takes no objects")))
            }
            // The placement was found to have these objects and PEs.
            Impossible::Length { .. } | Impossible::UnknownPe { .. } => Ok(assignment),
        }
    }

    fn at(&self, line: u32, reason: String) -> MappingError {
        MappingError::Line { path: self.path.clone(), line, reason }
    }
}

/// The PEs that a text says, each with its line, from 1.
///
/// # Errors
/// With the line that is not a PE number.
pub(crate) fn lines(text: &str) -> Result<Vec<(u32, u32)>, (usize, String)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let counts = |(_, text): &(u32, &str)| !text.is_empty() && !text.starts_with('#');
    let pe = |(line, text): (u32, &str)| {
        let start = || text.chars().take(40).collect::<String>();
        let pe = text
            .parse()
            .map_err(|_| (line as usize, format!("expected one PE number, found `{}`", start())))?;
        Ok((pe, line))
    };
    lines.filter(counts).map(pe).collect()
}

/// The text that says these PEs.
pub(crate) fn text(pe_of: impl Iterator<Item = u32>) -> String {
    pe_of.fold(String::new(), |mut text, pe| {
        _ = writeln!(text, "{pe}");
        text
    })
}

/// Writes the mapping that puts object `i` on `pe_of[i]` at `path`.
///
/// The file appears whole or not at all, and replaces the one that stood there.
///
/// # Errors
/// When the file system refuses.
pub fn write(path: &Path, pe_of: &[u32]) -> Result<(), MappingError> {
    let text = text(pe_of.iter().copied());
    write_whole(path, text.as_bytes()).map_err(|source| MappingError::Write { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// Objects on PEs 0, 1 and 2 of 3; the second must stay, and PE 2 is not available.
    fn database() -> Database {
        let mut database = testing::database(3, &[(1.0, 0), (1.0, 1), (1.0, 2)]);
        database.objects[1].migratable = false;
        database.pes[2].available = false;
        database
    }

    /// The placement and the answer that a file with this text gives, or why it gives none.
    fn read(text: &str) -> (Result<Vec<u32>, String>, Result<Vec<u32>, String>) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("lb.map");
        std::fs::write(&path, text).expect("a temporary file can be written");
        let said = |error: MappingError| error.to_string().replace(&path.display().to_string(), "lb.map");
        match MappingFile::read(&path) {
            Err(error) => {
                let sentence = said(error);
                (Err(sentence.clone()), Err(sentence))
            }
            Ok(file) => (
                file.placement(&database()).map(<[u32]>::to_vec).map_err(said),
                file.assignment(&database()).map(|answer| answer.pe_of).map_err(said),
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
    fn a_file_says_where_objects_are_and_where_they_can_go() {
        check("# a comment\n 1\n\n1\n0\n", Ok(&[1, 1, 0]), Ok(&[1, 1, 0]));
        // Staying on a PE that is not available is no move.
        check("0\n1\n2", Ok(&[0, 1, 2]), Ok(&[0, 1, 2]));
        let pinned = ": line 2: object 1 is not migratable; it must stay on PE 1";
        check("0\n0\n0\n", Ok(&[0, 0, 0]), Err(pinned));
        check("# x\n2\n1\n0\n", Ok(&[2, 1, 0]), Err(": line 2: PE 2 takes no objects"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let both = |text, rest| check(text, Err(rest), Err(rest));
        both("0\n1\n# x\ntwo\n", ": line 4: expected one PE number, found `two`");
        both("0\n-1\n0\n", ": line 2: expected one PE number, found `-1`");
        both("0 1\n1\n0\n", ": line 1: expected one PE number, found `0 1`");
        both("0\n1\n", " places 2 objects, and there are 3; give one PE per line");
        both("0\n1\n0\n1\n", " places 4 objects, and there are 3; give one PE per line");
        both("0\n\n1\n7\n", ": line 4: there is no PE 7; PEs are 0 to 2");
    }

    #[test]
    fn what_is_written_reads_back() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("lb.map");
        for placement in [vec![], vec![2, 0, 1]] {
            write(&path, &placement).expect("a temporary file can be written");
            assert_eq!(MappingFile::read(&path).expect("it was written").pe_of, placement);
        }
        let nowhere = folder.path().join("no/such/place");
        let error = write(&nowhere, &[0]).expect_err("no place");
        assert!(error.to_string().contains("cannot write the mapping `"), "{error}");
        assert!(error.is_of_the_request());
        let full = MappingError::Write { path: nowhere.clone(), source: io::ErrorKind::StorageFull.into() };
        assert!(!full.is_of_the_request());
        let error = MappingFile::read(&nowhere).expect_err("no file");
        assert!(error.to_string().contains("cannot read the mapping `"), "{error}");
        assert!(error.is_of_the_request());
    }
}
