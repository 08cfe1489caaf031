//! Files that tell a launcher of processes where ranks go: written from a placement, read back and checked.
//!
//! A placement puts every rank on a PE of a machine. A launcher knows nodes, and slots of them for a rank each:
//! [`Slots`] are the machine as it counts. What a file says is made a placement by [`read`], if every rank has
//! one place and no node more ranks than slots. [`ALL`] is the table of formats, a file each.
//!
//! Nodes are counted in the order of their first PEs, so a machine should list them as the launcher does; where a
//! file names hosts, that does not matter.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{self, NOT_TEXT, Unread, can_write_whole, write_whole};
use crate::spelling::meant;

mod flux;
mod fugaku;
mod json;
mod mapping;
mod mpich;
mod openmpi;
mod scotch;
mod slots;
mod slurm;
#[cfg(test)]
mod tests;

use slots::{Fault, MAX_RANKS, Place, Said, each_once};
pub use slots::{Job, Slots};

/// Every format, in the order help lists them.
pub const ALL: &[&Format] = &[
    &mpich::FORMAT,
    &openmpi::FORMAT,
    &slurm::FORMAT,
    &fugaku::FORMAT,
    &flux::FORMAT,
    &scotch::FORMAT,
    &json::FORMAT,
    &mapping::FORMAT,
];

/// A kind of launcher's file.
#[derive(Debug)]
pub struct Format {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What such a file is, how it is used, and what it holds.
    pub help: &'static str,
    /// The text that places the ranks of a job, or why there is none and what to do about it.
    write: fn(&Job) -> Result<String, String>,
    /// What a text says of every rank.
    read: fn(&str, &Slots) -> Result<Said, Fault>,
    /// Whether it says the slot of a rank, and not only its node.
    pub has_slots: bool,
}

/// Why there is no launcher's file, or none that can be used: a sentence that names it, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// A format that there is not.
    #[error("there is no launcher's file `{name}`{meant}; known are {known}")]
    Unknown {
        /// As it was written.
        name: String,
        /// What was probably meant.
        meant: String,
        /// All names.
        known: String,
    },
    /// A placement that such a file cannot say.
    #[error("{format}: {reason}")]
    Unfit {
        /// The format.
        format: &'static str,
        /// Why, and what to do about it.
        reason: String,
    },
    /// The file system does not give it.
    #[error("cannot read the launcher's file `{}`: {source}; check its name and that it may be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file system does not take it; what stood there before still stands.
    #[error(
        "cannot write the launcher's file `{}`: {source}; name a place that exists, is writable and has room",
        .path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Content that is no placement of ranks on that machine.
    #[error("the launcher's file `{}`: line {line}: {reason}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The line at fault, from 1.
        line: usize,
        /// What is wrong with it and what was expected.
        reason: String,
    },
}

impl LauncherError {
    /// Whether another name, format or machine is the remedy; otherwise a file is broken, or there is no room.
    pub fn is_of_the_request(&self) -> bool {
        match self {
            LauncherError::Unknown { .. } | LauncherError::Unfit { .. } | LauncherError::Read { .. } => true,
            LauncherError::Write { source, .. } => files::is_of_the_name(source),
            LauncherError::Content { .. } => false,
        }
    }
}

/// The format of that name.
///
/// # Errors
/// When there is none.
pub fn format(name: &str) -> Result<&'static Format, LauncherError> {
    ALL.iter().find(|format| format.name == name).copied().ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|format| format.name).collect();
        let meant = meant(name, &known);
        LauncherError::Unknown { name: name.into(), meant, known: known.join(", ") }
    })
}

/// What `--launcher help` prints: every format.
pub fn help() -> String {
    ALL.iter().fold(String::new(), |mut text, format| {
        let _ = writeln!(text, "{}=FILE\n    {}", format.name, format.help);
        text
    })
}

/// Writes a [`text`]. The file appears whole or not at all.
///
/// # Errors
/// When the file system refuses.
pub fn write(path: &Path, text: &str) -> Result<(), LauncherError> {
    write_whole(path, text.as_bytes()).map_err(|source| LauncherError::Write { path: path.into(), source })
}

/// Whether there is a place for a file, as long as nothing of it was written.
///
/// # Errors
/// As [`write()`].
pub fn can_write(path: &Path) -> Result<(), LauncherError> {
    can_write_whole(path).map_err(|source| LauncherError::Write { path: path.into(), source })
}

/// The text of the file that places the ranks of `job`.
///
/// # Errors
/// When such a file cannot say the placement.
pub fn text(format: &Format, job: &Job) -> Result<String, LauncherError> {
    (format.write)(job).map_err(|reason| LauncherError::Unfit { format: format.name, reason })
}

/// The PE of every rank that the file at `path` says; of files that only name nodes, the ranks of a node fill
/// its slots in their order.
///
/// # Errors
/// When the file cannot be read, is not of that format, names a node or slot that there is not, does not give
/// every rank one place, or gives a node more ranks than it has slots.
pub fn read(path: &Path, format: &Format, slots: &Slots) -> Result<Vec<u32>, LauncherError> {
    let content = |(line, reason)| LauncherError::Content { path: path.into(), line, reason };
    let text = files::text(path).map_err(|unread| match unread {
        Unread::System(source) => LauncherError::Read { path: path.into(), source },
        Unread::NotText(line) => content((line, NOT_TEXT.into())),
    })?;
    parse(&text, format, slots).map_err(content)
}

/// As [`read`], of the text of a file; what is wrong comes with its line, from 1.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, format: &Format, slots: &Slots) -> Result<Vec<u32>, (usize, String)> {
    let said = (format.read)(text, slots)?;
    if said.is_empty() {
        return Err((1, "there is no rank in it".into()));
    }
    slots.settle(&said)
}

/// Whether two placements are the same to a launcher with files of that format.
pub fn is_same(format: &Format, slots: &Slots, a: &[u32], b: &[u32]) -> bool {
    let node = |pe: &u32| slots.node_of(*pe as usize);
    if format.has_slots { a == b } else { a.iter().map(node).eq(b.iter().map(node)) }
}
