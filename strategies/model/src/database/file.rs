//! Reading database files in all formats, and the errors of database files.
//!
//! The format is recognised by the content of a file, never by its name: the binary ([`super::binary`]) and JSON
//! ([`super::json`]) formats of this project, Charm++ dumps ([`super::charm`]) with one step per file, and LB data of
//! vt ([`super::vt`]) with one file per rank; given `data.1.json` or `data.%p.json`, the files of all ranks are read.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Dump, binary, charm, json, vt};
use crate::fault::{Classified, Fault};
use crate::files::{self, Refused, Unread};
use crate::frames::TRACE_MAGIC;
use crate::memory;
use crate::quote::shown;
use crate::table;

#[cfg(test)]
mod tests;

/// Why a database file cannot be read or written. The message names the file, what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The file cannot be read.
    #[error(
        "cannot read the database `{}`: {source}; check its name and that it may be read",
        shown(.path)
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The file cannot be written; the old content remains.
    #[error(
        "cannot write the database `{}`: {source}; name a place that exists, is writable and has room",
        shown(.path)
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The format has no such version.
    #[error("cannot write the database `{}` in version {version}: {reason}", shown(.path))]
    Version {
        /// The file.
        path: PathBuf,
        /// The version asked for.
        version: u32,
        /// Which versions there are.
        reason: String,
    },
    /// The file is valid, but does not have the requested steps.
    #[error("the database `{}` {refused}", shown(.path))]
    Steps {
        /// The file.
        path: PathBuf,
        /// The steps in the file.
        refused: Refused,
    },
    /// The content is invalid.
    #[error("the database `{}` {refused}", shown(.path))]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        refused: Refused,
    },
}

impl Classified for DatabaseError {
    fn fault(&self) -> Fault {
        match self {
            DatabaseError::Read { .. } | DatabaseError::Steps { .. } | DatabaseError::Version { .. } => {
                Fault::Usage
            }
            DatabaseError::Write { source, .. } => source.fault(),
            DatabaseError::Refused { .. } => Fault::Input,
        }
    }
}

impl Dump {
    /// Reads all steps of the file at `path`.
    ///
    /// The step of a Charm++ dump is the number at the end of the file name, as in `base.3` (0 without a number). Of a
    /// file of this project that was cut, because its run was interrupted, the whole steps are read; fields and columns
    /// that this version does not know are skipped. [`Dump::warnings`] says so.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a consistent database in a known format.
    pub fn read(path: impl AsRef<Path>) -> Result<Dump, DatabaseError> {
        let path = path.as_ref();
        let refused = |refused| DatabaseError::Refused { path: path.into(), refused };
        let texts = match content(path)? {
            Content::One(bytes) => {
                let step = split_step(path).map_or(0, |(_, step)| step);
                return decode(&bytes, step).map_err(refused);
            }
            Content::Ranks(texts) => texts,
        };
        let dump = vt::decode(texts).map_err(refused)?;
        check_order(dump.steps.iter().map(|database| database.step)).map_err(refused)?;
        Ok(dump)
    }

    /// Content of the file at `path` that [`Dump::read`] drops, in phrases such as `subphases of 12 tasks`. Only LB
    /// data of vt have such content.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn dropped_fields(path: impl AsRef<Path>) -> Result<Vec<String>, DatabaseError> {
        let path = path.as_ref();
        // A pipe cannot be read twice, and a base name of Charm++ dumps is not a file.
        if !vt::is_pattern(path) && !path.is_file() {
            return Ok(Vec::new());
        }
        Ok(match content(path)? {
            Content::One(_) => Vec::new(),
            Content::Ranks(texts) => vt::dropped_fields(&texts),
        })
    }

    /// Reads `count` steps from step `first` on. `None` means all following steps, or the earliest step.
    ///
    /// `path` is a file, or the base name of Charm++ dumps as in `+LBDumpFile`, for `path.0`, `path.1` and so on.
    ///
    /// # Errors
    /// As for [`Self::read`], and if one of these steps does not exist.
    pub fn read_steps(
        path: impl AsRef<Path>,
        first: Option<u64>,
        count: Option<u64>,
    ) -> Result<Dump, DatabaseError> {
        let path = path.as_ref();
        // Pipes are read like files.
        let whole = if vt::is_pattern(path) || path.exists() && !path.is_dir() {
            Some(Dump::read(path)?)
        } else {
            None
        };
        let there = match &whole {
            Some(dump) => dump.steps.iter().map(|database| database.step).collect(),
            None => steps_of_base(path)?,
        };
        if let Some(Dump { steps, warnings, .. }) = &whole
            && steps.is_empty()
        {
            let refused = match warnings.is_empty() {
                true => "holds no steps; have the program dump at least one".into(),
                false => format!("holds no steps: it {}; record it again", warnings.join("; ")),
            };
            return Err(DatabaseError::Refused { path: path.into(), refused: Refused(refused) });
        }
        let wanted = choose(&there, first, count)
            .map_err(|refused| DatabaseError::Steps { path: path.into(), refused })?;
        if let Some(mut dump) = whole {
            dump.steps.retain(|database| wanted.contains(&database.step));
            return Ok(dump);
        }
        let mut dump = Dump::default();
        for step in wanted {
            let mut name = OsString::from(path);
            name.push(format!(".{step}"));
            let one = Dump::read(PathBuf::from(name))?;
            dump.program = one.program;
            dump.steps.extend(one.steps);
            dump.warnings.extend(one.warnings);
        }
        Ok(dump)
    }
}

/// The content of one or several files that are read together.
enum Content {
    /// The content of a single file.
    One(Vec<u8>),
    /// LB data of vt: the files of all ranks.
    Ranks(Vec<vt::RankText>),
}

/// The content of the file at `path`, together with the files of the other ranks for LB data of vt.
fn content(path: &Path) -> Result<Content, DatabaseError> {
    if !vt::is_pattern(path) {
        let bytes = load(path)?;
        if !vt::recognises(&bytes) {
            return Ok(Content::One(bytes));
        }
    }
    let ranks = files::of_ranks(path).map_err(|source| DatabaseError::Read { path: path.into(), source })?;
    let text = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(vt::RankText { name, text: load(&path)? })
    };
    let texts = ranks.unwrap_or_else(|| vec![path.into()]).into_iter().map(text);
    let texts = texts.collect::<Result<Vec<_>, DatabaseError>>()?;
    let bytes = texts.iter().map(|rank| rank.text.len() as u64).sum::<u64>();
    let what = format!("LB data of {}", table::bytes(bytes));
    memory::check(bytes.saturating_mul(VT_MEMORY_PER_BYTE), &what, memory::SMALLER_FILE)
        .map_err(|reason| unfit(path, &reason))?;
    Ok(Content::Ranks(texts))
}

/// Bytes of memory for a byte of LB data of vt: the values of its JSON, and the database that is made of them.
const VT_MEMORY_PER_BYTE: u64 = 8;

/// The error for a file that does not fit into memory.
fn unfit(path: &Path, reason: &str) -> DatabaseError {
    let refused = Refused(format!("cannot be read: {reason}"));
    DatabaseError::Refused { path: path.into(), refused }
}

/// The bytes of a file without a leading byte-order mark, decompressed if the name says that the file is compressed.
fn load(path: &Path) -> Result<Vec<u8>, DatabaseError> {
    let mut bytes = files::bytes(path).map_err(|unread| match unread {
        Unread::System(source) => DatabaseError::Read { path: path.into(), source },
        Unread::Content((_, reason)) => unfit(path, &reason),
    })?;
    if vt::is_packed(path) {
        bytes = vt::unpack(&bytes).map_err(|error| {
            let sentence = match error.kind() {
                io::ErrorKind::FileTooLarge => {
                    format!("is not read: {error}; decompress it yourself (brotli -d) if you trust it")
                }
                _ => format!("ends in .br, but is damaged or not compressed with brotli: {error}"),
            };
            DatabaseError::Refused { path: path.into(), refused: Refused(sentence) }
        })?;
    }
    files::drop_byte_order_mark(&mut bytes);
    Ok(bytes)
}

/// Decodes `bytes` in any format; `step` is the step of a Charm++ dump.
fn decode(bytes: &[u8], step: u64) -> Result<Dump, Refused> {
    let dump = if binary::recognises(bytes) {
        binary::decode(bytes)
    } else if charm::recognises(bytes) {
        charm::decode(bytes, step)
    } else if json::recognises(bytes) {
        json::decode(bytes)
    } else if bytes.starts_with(&TRACE_MAGIC) {
        Err(Refused(
            "is the trace of a run, not a database; `equipoise simulate --events` replays a trace, and \
                     `equipoise convert` converts a trace to a program (.tcg) or a timeline (.pftrace)"
                .into(),
        ))
    } else if bytes.trim_ascii_start().starts_with(b"PROCESS") {
        Err(Refused(
            "is a program, not a database; `map`, `evaluate`, `inspect` and `simulate` read \
                     programs with --program"
                .into(),
        ))
    } else if bytes.starts_with(b"\x93NUMPY") {
        Err(Refused(
            "is an array of NumPy, which Python's `equipoise.map` takes; as a task graph, give the matrix as text in a file `.mat`, \
                     as `numpy.savetxt` writes it"
                .into(),
        ))
    } else if bytes.is_empty() {
        Err(Refused("is empty; have the program dump it again".into()))
    } else {
        Err(Refused(
            "is not a database in a known format: binary or JSON databases of equipoise, LB dumps of Charm++ 8.x \
             and 6.10 (+LBDump), or LB data of vt (--vt_lb_data)"
                .into(),
        ))
    }?;
    check_order(dump.steps.iter().map(|database| database.step))?;
    Ok(dump)
}

/// Steps must ascend, so that a number identifies one step and the next step is well defined.
pub(super) fn check_order(steps: impl IntoIterator<Item = u64>) -> Result<(), Refused> {
    let mut last = None;
    for step in steps {
        if let Some(last) = last.filter(|&last| last >= step) {
            return Err(Refused(format!(
                "has step {step} after step {last}; number the steps in ascending order"
            )));
        }
        last = Some(step);
    }
    Ok(())
}

/// The steps of the Charm++ dumps `base.N` in the same folder, in ascending order.
fn steps_of_base(base: &Path) -> Result<Vec<u64>, DatabaseError> {
    let folder = match base.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let same_base = |path: PathBuf| {
        let (found, step) = split_step(&path)?;
        (found.file_name() == base.file_name()).then_some(step)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut steps: Vec<u64> = entries.filter_map(|entry| same_base(entry.path())).collect();
    steps.sort_unstable();
    if steps.is_empty() {
        let (kind, what) = match base.is_dir() {
            true => (io::ErrorKind::IsADirectory, "it is a folder"),
            false => (io::ErrorKind::NotFound, "there is no such file"),
        };
        // Not for the name of the dump of a step.
        let name = base.file_name().filter(|_| split_step(base).is_none());
        let none = name.map_or_else(String::new, |name| {
            format!(", and there is no dump of a step, such as `{}.0`", shown(Path::new(name)))
        });
        let source = io::Error::new(kind, format!("{what}{none}"));
        return Err(DatabaseError::Read { path: base.into(), source });
    }
    Ok(steps)
}

/// Selects the steps of a replay among the existing steps `there`, of which there is at least one.
fn choose(there: &[u64], first: Option<u64>, count: Option<u64>) -> Result<Vec<u64>, Refused> {
    let first = first.or(there.iter().min().copied()).unwrap_or_default();
    let wanted = usize::try_from(count.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let steps: Vec<u64> = there.iter().copied().filter(|&step| step >= first).take(wanted).collect();
    if !there.contains(&first) {
        return Err(Refused(format!("has no step {first}; choose from {}", list(there))));
    }
    match count {
        Some(0) => Err(Refused(format!("was asked for 0 steps; ask for at least one of {}", list(there)))),
        Some(count) if count > steps.len() as u64 => Err(Refused(format!(
            "has only {} of the {count} requested steps from step {first} on; choose from {}",
            steps.len(),
            list(there)
        ))),
        _ => Ok(steps),
    }
}

/// Splits `base.N` into `base` and N.
fn split_step(path: &Path) -> Option<(PathBuf, u64)> {
    let step = path.extension()?.to_str()?;
    // `parse` accepts `+3`, but no program writes such a file name.
    let digits = step.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| step.parse().ok()).flatten().map(|step| (path.with_extension(""), step))
}

/// A list of step numbers for messages, abbreviated if long.
fn list(steps: &[u64]) -> String {
    match steps {
        [] => "none".into(),
        [only] => format!("step {only}"),
        [first, .., last] if steps.len() as u64 == (last - first).saturating_add(1) => {
            format!("steps {first} to {last}")
        }
        _ => {
            let names: Vec<String> = steps.iter().take(20).map(u64::to_string).collect();
            format!("steps {}{}", names.join(", "), if steps.len() > 20 { " .." } else { "" })
        }
    }
}
