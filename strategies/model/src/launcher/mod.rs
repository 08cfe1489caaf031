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

use crate::assignment::mapping_file::{MappingError, MappingFile};
use crate::descriptor::{Descriptor, find};
use crate::fault::{Classified, Fault};
use crate::files::AtLine;
use crate::files::{self, Unread, can_write_whole, write_whole};
use crate::params::ParamError;
use crate::quote::{sentence, shown};
use crate::table::count;
use crate::{Database, Topology};

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

/// A launcher's file and its format.
#[derive(Clone, Debug)]
pub struct LauncherFile {
    /// The format.
    pub format: &'static Format,
    /// The name of the file.
    pub path: PathBuf,
}

impl LauncherFile {
    /// The file of `FORMAT=FILE`; `None` if the text does not have this form.
    fn of(text: &str) -> Option<Result<Self, LauncherError>> {
        let (format, path) = text.split_once('=').filter(|(_, path)| !path.is_empty())?;
        Some(self::format(format).map(|format| LauncherFile { format, path: path.into() }))
    }

    /// The file of `FORMAT=FILE`.
    ///
    /// # Errors
    /// If the text does not have this form, or there is no such format.
    pub fn parse(text: &str) -> Result<Self, String> {
        match LauncherFile::of(text) {
            Some(found) => found.map_err(|error| error.to_string()),
            None => Err(format!("expected FORMAT=FILE such as mpich=MPICH_RANK_ORDER, found `{text}`")),
        }
    }
}

/// The PE of every task of `database` on `machine`: from the mapping at `file`, or if `file` is `FORMAT=FILE` and no file has
/// this name, from a launcher's file with one rank per task. A PE has `slots` slots in that file, or more if the tasks
/// need more.
///
/// # Errors
/// If the file cannot be used, or does not place exactly the tasks.
///
/// # Panics
/// If the machine has no PE, or `slots` is 0.
pub fn placement(
    file: &Path,
    database: &Database,
    machine: &dyn Topology,
    slots: u32,
) -> Result<Vec<u32>, LauncherError> {
    // The name of a mapping may contain `=`.
    let launcher_file = file.to_str().filter(|_| !file.exists()).and_then(LauncherFile::of);
    let Some(LauncherFile { format, path }) = launcher_file.transpose()? else {
        return Ok(MappingFile::read(file)?.placement(database)?.to_vec());
    };
    let tasks = database.objects.len();
    let per_pe = u32::try_from(tasks.div_ceil(machine.pes())).unwrap_or(u32::MAX).max(slots);
    let pe_of = read(&path, format, &Slots::of(machine, per_pe))?;
    if pe_of.len() != tasks {
        return Err(LauncherError::Ranks { path, ranks: pe_of.len(), tasks });
    }
    Ok(pe_of)
}

/// Why a launcher's file cannot be written or read. The message names the file, what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LauncherError {
    /// The format is unknown.
    #[error(transparent)]
    Unknown(#[from] ParamError),
    /// A mapping was given in place of a launcher's file, and cannot be used.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// The ranks do not fit on the machine.
    #[error("cannot write a launcher's file: {0}")]
    Job(String),
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
    /// The file does not have a rank per task.
    #[error(
        "the launcher's file `{}` places {}, but the graph has {}; use a file with a rank per task",
        shown(.path), count(*.ranks as u64, "rank"), count(*.tasks as u64, "task")
    )]
    Ranks {
        /// The file.
        path: PathBuf,
        /// The ranks of the file.
        ranks: usize,
        /// The tasks of the graph.
        tasks: usize,
    },
}

impl Classified for LauncherError {
    fn fault(&self) -> Fault {
        match self {
            LauncherError::Unknown(_)
            | LauncherError::Job(_)
            | LauncherError::Unfit { .. }
            | LauncherError::Read { .. } => Fault::Usage,
            LauncherError::Mapping(error) => error.fault(),
            LauncherError::Write { source, .. } => source.fault(),
            LauncherError::Content { .. } | LauncherError::Ranks { .. } => Fault::Input,
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
