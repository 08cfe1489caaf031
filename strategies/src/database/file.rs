//! Reading and writing database files, whatever their layout.
//!
//! A file is recognised by its content, never by its name: ours in binary ([`super::binary`]) and in JSON
//! ([`super::json`]), Charm++'s dumps ([`super::charm`]), which hold one step each, and vt's LB data ([`super::vt`]),
//! which has a file per rank: of `data.1.json`, or `data.%p.json`, those of all ranks are read.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Dump, binary, charm, json, vt};
use crate::files::{self, Refused, can_write_whole, write_whole};

#[cfg(test)]
mod tests;

/// Why a database file cannot be read or written: a sentence that names the file, what is wrong, and the
/// remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The file system does not give it.
    #[error(
        "cannot read the database `{}`: {source}; check its name and that it may be read",
        .path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file system does not take it; what stood there before still stands.
    #[error(
        "cannot write the database `{}`: {source}; name a place that exists, is writable and has room",
        .path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is whole, and does not hold the steps that were asked for.
    #[error("the database `{}` {refused}", .path.display())]
    Steps {
        /// The file.
        path: PathBuf,
        /// Which steps there are.
        refused: Refused,
    },
    /// Its content is not what it should be.
    #[error("the database `{}` {refused}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        refused: Refused,
    },
}

impl DatabaseError {
    /// Whether another name or step is the remedy; otherwise the file is broken, or there is no room.
    pub fn is_of_the_request(&self) -> bool {
        match self {
            DatabaseError::Read { .. } | DatabaseError::Steps { .. } => true,
            DatabaseError::Write { source, .. } => files::is_of_the_name(source),
            DatabaseError::Refused { .. } => false,
        }
    }
}

impl Dump {
    /// Everything the file at `path` holds.
    ///
    /// A Charm++ dump holds one step, whose number is the number its name ends with, as in `base.3`
    /// (0 if there is none).
    ///
    /// # Errors
    /// When the file cannot be read, or is not a whole and consistent database in a known layout.
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
        check_order(&dump).map_err(refused)?;
        Ok(dump)
    }

    /// What the file at `path` says that [`Dump::read`] has no place for, in phrases such as `subphases of 12 tasks`:
    /// only vt's LB data say such.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn unkept(path: impl AsRef<Path>) -> Result<Vec<String>, DatabaseError> {
        let path = path.as_ref();
        // A pipe cannot be read twice, and a base name of dumps is none.
        if !vt::is_pattern(path) && !path.is_file() {
            return Ok(Vec::new());
        }
        Ok(match content(path)? {
            Content::One(_) => Vec::new(),
            Content::Ranks(texts) => vt::unkept(&texts),
        })
    }

    /// The steps that a replay is to see: `count` of them (all that follow if `None`) from step `first` on
    /// (the earliest if `None`).
    ///
    /// `path` is a file, or the base name of Charm++ dumps as `+LBDumpFile` takes it, for `path.0`,
    /// `path.1` and so on.
    ///
    /// # Errors
    /// As [`Self::read`], and when one of these steps is not there.
    pub fn read_steps(
        path: impl AsRef<Path>,
        first: Option<u64>,
        count: Option<u64>,
    ) -> Result<Dump, DatabaseError> {
        let path = path.as_ref();
        // A pipe is not a regular file, and can be read all the same.
        let whole = if vt::is_pattern(path) || path.exists() && !path.is_dir() {
            Some(Dump::read(path)?)
        } else {
            None
        };
        let there = match &whole {
            Some(dump) => dump.steps.iter().map(|database| database.step).collect(),
            None => steps_of_base(path)?,
        };
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
        }
        Ok(dump)
    }

    /// Writes a file at `path`: JSON if it ends in `.json`, otherwise binary; or vt's LB data where its name has
    /// `%p` for the rank, compressed if it ends in `.br`.
    ///
    /// A file appears whole or not at all, and replaces the one that stood there.
    ///
    /// # Errors
    /// When a step is not consistent or does not follow the one before, or the file system refuses.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), DatabaseError> {
        let path = path.as_ref();
        if vt::is_pattern(path) {
            return self.write_ranks(path);
        }
        if vt::is_packed(path) {
            let sentence =
                "only files of vt are compressed, one for each rank; name them as in data.%p.json.br";
            let source = io::Error::new(io::ErrorKind::InvalidInput, sentence);
            return Err(DatabaseError::Write { path: path.into(), source });
        }
        let bytes =
            self.encode(path).map_err(|refused| DatabaseError::Refused { path: path.into(), refused })?;
        write_whole(path, &bytes).map_err(|source| DatabaseError::Write { path: path.into(), source })
    }

    /// Whether the file that [`Self::write`] made at `path` reads back as what such a file holds.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn reads_back(&self, path: impl AsRef<Path>) -> Result<bool, DatabaseError> {
        let again = Dump::read(path.as_ref())?;
        Ok(if vt::is_pattern(path.as_ref()) { vt::is_same(self, &again) } else { again == *self })
    }

    /// Writes a file of vt's LB data per PE, whose number takes the place of `%p` in the name.
    fn write_ranks(&self, path: &Path) -> Result<(), DatabaseError> {
        let refused = |refused| DatabaseError::Refused { path: path.into(), refused };
        check_order(self).map_err(refused)?;
        let pes = self.steps.first().map_or(0, |database| database.pes.len());
        if let Ok(Some(there)) = files::of_ranks(path)
            && there.len() > pes
        {
            // They would be read as ranks of this dump.
            let sentence = format!("`{}` is there, of a dump of more ranks", there[pes].display());
            let source = io::Error::new(io::ErrorKind::AlreadyExists, sentence);
            return Err(DatabaseError::Write { path: path.into(), source });
        }
        let encoder = vt::Encoder::new(self).map_err(refused)?;
        for rank in 0..pes {
            let mut bytes = encoder.text(rank).map_err(refused)?;
            let path = of_rank(path, rank);
            let failed = |source| DatabaseError::Write { path: path.clone(), source };
            if vt::is_packed(&path) {
                bytes = vt::pack(&bytes).map_err(failed)?;
            }
            write_whole(&path, &bytes).map_err(failed)?;
        }
        Ok(())
    }

    /// Whether [`Self::write`] will find a place for a file at `path`, for those who know long before; only
    /// that the room suffices is not known.
    ///
    /// # Errors
    /// When the file system does not let one be made there.
    pub fn can_write(path: impl AsRef<Path>) -> Result<(), DatabaseError> {
        let path = path.as_ref();
        let place = if vt::is_pattern(path) { of_rank(path, 0) } else { path.into() };
        can_write_whole(&place).map_err(|source| DatabaseError::Write { path: path.into(), source })
    }

    /// The bytes of a file of that name.
    fn encode(&self, path: &Path) -> Result<Vec<u8>, Refused> {
        check_order(self)?;
        for database in &self.steps {
            let step = database.step;
            database.check().map_err(|e| Refused(format!("cannot hold step {step}: {e}")))?;
        }
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
            json::encode(self)
        } else {
            binary::encode(self)
        }
    }
}

/// What is read together.
enum Content {
    /// Of a file by itself.
    One(Vec<u8>),
    /// Of vt's LB data, the files of all ranks.
    Ranks(Vec<vt::RankText>),
}

/// What stands at `path`, and beside it where it is one of several.
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
    Ok(Content::Ranks(texts.collect::<Result<_, DatabaseError>>()?))
}

/// The bytes of a file without the byte-order mark that some programs put before text, decompressed if its
/// name says that they are compressed.
fn load(path: &Path) -> Result<Vec<u8>, DatabaseError> {
    let mut bytes = fs::read(path).map_err(|source| DatabaseError::Read { path: path.into(), source })?;
    if vt::is_packed(path) {
        bytes = vt::unpack(&bytes).map_err(|error| {
            let sentence = format!("ends in .br and is not compressed with brotli, or is broken: {error}");
            DatabaseError::Refused { path: path.into(), refused: Refused(sentence) }
        })?;
    }
    files::drop_mark(&mut bytes);
    Ok(bytes)
}

/// The name of the file of a rank.
fn of_rank(path: &Path, rank: usize) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(name.replacen("%p", &rank.to_string(), 1))
}

/// The dump in `bytes`, of whatever layout; `step` is the number of a Charm++ dump.
fn decode(bytes: &[u8], step: u64) -> Result<Dump, Refused> {
    let dump = if binary::recognises(bytes) {
        binary::decode(bytes)
    } else if charm::recognises(bytes) {
        charm::decode(bytes, step)
    } else if json::recognises(bytes) {
        json::decode(bytes)
    } else if crate::trace::recognises(bytes) {
        Err(Refused("is the trace of a run, not a database; `equipoise simulate --events` replays it, and `equipoise \
             convert` makes a program of it (.tcg)".into()))
    } else if bytes.trim_ascii_start().starts_with(b"PROCESS") {
        Err(Refused("is a program, not a database; `map`, `evaluate`, `inspect` and `simulate` take it with --program".into()))
    } else if bytes.is_empty() {
        Err(Refused("is empty; have the program dump it again".into()))
    } else {
        Err(Refused(
            "is not a database: readable are those of equipoise, in binary or JSON, the LB dumps of Charm++ 8.x \
             and 6.10 (+LBDump), and the LB data of vt (--vt_lb_data)"
                .into(),
        ))
    }?;
    check_order(&dump)?;
    Ok(dump)
}

/// Whether the steps ascend, so that a number names one step and `the next` is the one that follows.
fn check_order(dump: &Dump) -> Result<(), Refused> {
    let disorder = dump.steps.windows(2).find(|pair| pair[0].step >= pair[1].step);
    disorder.map_or(Ok(()), |pair| {
        let (first, second) = (pair[0].step, pair[1].step);
        Err(Refused(format!(
            "has step {second} after step {first}; give every step a number of its own, in ascending order"
        )))
    })
}

/// The numbers of the dumps `base.N` that Charm++ writes beside each other, in ascending order.
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
        let none = "and there is no file of that name followed by the number of a step";
        let source = io::Error::new(kind, format!("{what}, {none}"));
        return Err(DatabaseError::Read { path: base.into(), source });
    }
    Ok(steps)
}

/// Which of the steps `there` a replay is to see.
fn choose(there: &[u64], first: Option<u64>, count: Option<u64>) -> Result<Vec<u64>, Refused> {
    let Some(&earliest) = there.iter().min() else {
        return Err(Refused("holds no steps; have the program dump at least one".into()));
    };
    let first = first.unwrap_or(earliest);
    let wanted = usize::try_from(count.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let steps: Vec<u64> = there.iter().copied().filter(|&step| step >= first).take(wanted).collect();
    if !there.contains(&first) {
        return Err(Refused(format!("has no step {first}; choose among {}", list(there))));
    }
    match count {
        Some(0) => Err(Refused(format!("was asked for 0 steps; ask for at least one of {}", list(there)))),
        Some(count) if count > steps.len() as u64 => Err(Refused(format!(
            "has only {} of the {count} steps asked for from step {first} on; choose among {}",
            steps.len(),
            list(there)
        ))),
        _ => Ok(steps),
    }
}

/// `base.N` as (`base`, N).
fn split_step(path: &Path) -> Option<(PathBuf, u64)> {
    let step = path.extension()?.to_str()?;
    // `+3` is a number to the parser, but not the end of a file name that a program writes.
    let digits = step.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| step.parse().ok()).flatten().map(|step| (path.with_extension(""), step))
}

/// Step numbers for a person, with the long lists cut.
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
