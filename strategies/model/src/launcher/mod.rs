//! Files for process launchers that place ranks: written from a placement, read back and checked.
//!
//! A placement assigns every rank to a PE. A launcher counts nodes and their slots, each for one rank: [`Slots`] is the
//! machine in this form. [`read`] converts a file to a placement; every rank must have one place, and a node at most as
//! many ranks as slots. [`ALL`] lists the formats, one module each.
//!
//! Nodes are numbered in the order of their first PEs, so a machine should list nodes in the order of the launcher;
//! this is irrelevant for files with host names.

use std::io;
use std::path::{Path, PathBuf};

use crate::descriptor::{Descriptor, find};
use crate::fault::{Classified, Fault};
use crate::files::AtLine;
use crate::files::{self, Unread, can_write_whole, write_whole};
use crate::params::ParamError;
use crate::quote::{sentence, shown};

mod flux;
mod fugaku;
mod hostfile;
mod jax;
mod json;
mod mapping;
mod mpich;
mod openmpi;
mod pods;
mod scotch;
mod slots;
mod slurm;
#[cfg(test)]
mod tests;
mod torchrun;

use slots::{Entries, Place, sort_by_rank};
pub use slots::{Job, Slots};

/// All formats, in the order of help texts.
pub const ALL: &[&Format] = &[
    &mpich::FORMAT,
    &openmpi::FORMAT,
    &slurm::FORMAT,
    &fugaku::FORMAT,
    &flux::FORMAT,
    &hostfile::FORMAT,
    &torchrun::FORMAT,
    &jax::FORMAT,
    &pods::FORMAT,
    &scotch::FORMAT,
    &json::FORMAT,
    &mapping::FORMAT,
];

/// A format of launcher's files.
pub type Format = Descriptor<RankFile>;

/// Writing and reading a format.
#[derive(Debug)]
pub struct RankFile {
    /// Formats the placement of a job, or explains why the format cannot represent it.
    write: fn(&Job) -> Result<String, String>,
    /// Parses the place of every rank.
    read: fn(&str, &Slots) -> Result<Entries, AtLine>,
    /// Whether the format contains slots, or only nodes.
    pub has_slots: bool,
}

/// Why a launcher's file cannot be written or read. The message names the file, what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// The format is unknown.
    #[error(transparent)]
    Unknown(#[from] ParamError),
    /// The format cannot represent the placement.
    #[error("{format}: {}", sentence(.reason))]
    Unfit {
        /// The format.
        format: &'static str,
        /// Why, and what to do.
        reason: String,
    },
    /// The file cannot be read.
    #[error("cannot read the launcher's file `{}`: {source}; check its name and that it may be read", shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The file cannot be written; the old content remains.
    #[error(
        "cannot write the launcher's file `{}`: {source}; name a place that exists, is writable and has room",
        shown(.path)
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The content is not a valid placement of ranks on the machine.
    #[error("the launcher's file `{}`: line {line}: {}", shown(.path), sentence(.reason))]
    Content {
        /// The file.
        path: PathBuf,
        /// The line with the error, from 1.
        line: usize,
        /// What is wrong and what was expected.
        reason: String,
    },
}

impl Classified for LauncherError {
    fn fault(&self) -> Fault {
        match self {
            LauncherError::Unknown(_) | LauncherError::Unfit { .. } | LauncherError::Read { .. } => {
                Fault::Usage
            }
            LauncherError::Write { source, .. } => source.fault(),
            LauncherError::Content { .. } => Fault::Input,
        }
    }
}

/// The format with a given name.
///
/// # Errors
/// If there is no such format.
pub fn format(name: &str) -> Result<&'static Format, LauncherError> {
    Ok(find("launcher's file", name, ALL.iter().copied())?)
}

/// The help text on all formats, for `--launcher help`.
pub fn help() -> String {
    ALL.iter().map(|format| format.entry(&format!("{}=FILE", format.name))).collect()
}

/// Writes a [`text`]; the file is replaced atomically.
///
/// # Errors
/// If the file system reports an error.
pub fn write(path: &Path, text: &str) -> Result<(), LauncherError> {
    write_whole(path, text.as_bytes()).map_err(|source| LauncherError::Write { path: path.into(), source })
}

/// Checks early whether a file can be created.
///
/// # Errors
/// As for [`write()`].
pub fn can_write(path: &Path) -> Result<(), LauncherError> {
    can_write_whole(path).map_err(|source| LauncherError::Write { path: path.into(), source })
}

/// The text of a file that places the ranks of `job`.
///
/// # Errors
/// If the format cannot represent the placement.
pub fn text(format: &Format, job: &Job) -> Result<String, LauncherError> {
    (format.item.write)(job).map_err(|reason| LauncherError::Unfit { format: format.name, reason })
}

/// Reads the PE of every rank from the file at `path`. If the format contains only nodes, ranks fill the slots of a
/// node in rank order; in `pods`, in the order of the line.
///
/// # Errors
/// If the file cannot be read, does not have this format, names an unknown node or slot, does not give every rank one
/// place, or gives a node more ranks than slots.
pub fn read(path: &Path, format: &Format, slots: &Slots) -> Result<Vec<u32>, LauncherError> {
    let content = |(line, reason)| LauncherError::Content { path: path.into(), line, reason };
    let text = files::text(path).map_err(|unread| match unread {
        Unread::System(source) => LauncherError::Read { path: path.into(), source },
        Unread::Content(at) => content(at),
    })?;
    parse(&text, format, slots).map_err(content)
}

/// Like [`read`], for the text of a file; errors have a line number, from 1.
///
/// # Errors
/// As for [`read`].
pub fn parse(text: &str, format: &Format, slots: &Slots) -> Result<Vec<u32>, AtLine> {
    let entries = (format.item.read)(text, slots)?;
    if entries.is_empty() {
        return Err((1, "the file has no rank".into()));
    }
    slots.ranks(&entries)
}

/// Whether two placements are equal in files of this format.
pub fn is_same(format: &Format, slots: &Slots, a: &[u32], b: &[u32]) -> bool {
    let node = |pe: &u32| slots.node_of(*pe as usize);
    if format.item.has_slots { a == b } else { a.iter().map(node).eq(b.iter().map(node)) }
}
