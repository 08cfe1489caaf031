//! Reading and writing database files, whatever their layout.
//!
//! A file is recognised by its content, never by its name: ours in binary ([`super::binary`]) and in JSON
//! ([`super::json`]), and Charm++'s dumps ([`super::charm`]), which hold one step each.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Dump, binary, charm, json};
use crate::files;

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

/// Why content was refused: what follows the name of the file in a sentence, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

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
        let bytes = fs::read(path).map_err(|source| DatabaseError::Read { path: path.into(), source })?;
        let step = split_step(path).map_or(0, |(_, step)| step);
        decode(&bytes, step).map_err(|refused| DatabaseError::Refused { path: path.into(), refused })
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
        let whole = if path.exists() && !path.is_dir() { Some(Dump::read(path)?) } else { None };
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

    /// Writes a file at `path`: JSON if it ends in `.json`, otherwise binary.
    ///
    /// The file appears whole or not at all, and replaces the one that stood there.
    ///
    /// # Errors
    /// When a step is not consistent or does not follow the one before, or the file system refuses.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), DatabaseError> {
        let path = path.as_ref();
        let bytes =
            self.encode(path).map_err(|refused| DatabaseError::Refused { path: path.into(), refused })?;
        write_whole(path, &bytes).map_err(|source| DatabaseError::Write { path: path.into(), source })
    }

    /// Whether [`Self::write`] will find a place for a file at `path`, for those who know long before; only
    /// that the room suffices is not known.
    ///
    /// # Errors
    /// When the file system does not let one be made there.
    pub fn can_write(path: impl AsRef<Path>) -> Result<(), DatabaseError> {
        let path = path.as_ref();
        can_write_whole(path).map_err(|source| DatabaseError::Write { path: path.into(), source })
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

/// The dump in `bytes`, of whatever layout; `step` is the number of a Charm++ dump.
fn decode(bytes: &[u8], step: u64) -> Result<Dump, Refused> {
    let dump = if binary::recognises(bytes) {
        binary::decode(bytes)
    } else if charm::recognises(bytes) {
        charm::decode(bytes, step)
    } else if json::recognises(bytes) {
        json::decode(bytes)
    } else if bytes.is_empty() {
        Err(Refused("is empty; have the program dump it again".into()))
    } else {
        Err(Refused(
            "is not a database: readable are those of equipoise, in binary or JSON, and the LB dumps of \
             Charm++ 8.x and 6.10 (+LBDump)"
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

/// Writes beside the target first, and renames: a crash leaves the old file or the new one.
///
/// What is no regular file, such as a pipe or `/dev/stdout`, takes the bytes itself, and a link keeps
/// pointing at the file that is replaced.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if takes_bytes_itself(path) {
        return fs::write(path, bytes);
    }
    let (path, partial, mut file) = create_beside(path)?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // The first error is the one worth telling; this one would only add that litter remains.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Whether [`write_whole`] would find a place.
pub(crate) fn can_write_whole(path: &Path) -> io::Result<()> {
    if takes_bytes_itself(path) {
        return Ok(());
    }
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let (_, partial, _) = create_beside(path)?;
    fs::remove_file(partial)
}

/// Whether there is something that is neither a file nor a folder.
fn takes_bytes_itself(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Where `path` points, and a new file beside it that no other process or thread writes.
fn create_beside(path: &Path) -> io::Result<(PathBuf, PathBuf, File)> {
    // A file that is not there yet is behind no link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let process = std::process::id();
    let mut attempt = 0;
    loop {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{process}-{attempt}.partial"));
        let partial = path.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&partial) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
            Err(e) => return Err(e),
            Ok(file) => return Ok((path, partial, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, PeRecord};

    fn dump(steps: &[u64]) -> Dump {
        let step = |&step| Database { step, pes: vec![PeRecord::default()], ..Database::default() };
        Dump {
            program: "kneighbor".into(),
            topology: "flat:1".into(),
            steps: steps.iter().map(step).collect(),
        }
    }

    /// A Charm++ dump without objects, in the layout of 8.x.
    fn charm_dump() -> Vec<u8> {
        let ints = |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        let machine = [0x10, 0xea, 0xbd, 0xf9, 1, 1, 2, 4, 8, 16, 1, 4, 8, 1, 1, 8];
        let pe = [0.0, 0.0, 0.0, 1.0f64].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        [machine.to_vec(), ints(&[3, 1, 0, 1, 0]), pe, vec![1], ints(&[0; 8])].concat()
    }

    fn steps(dump: &Dump) -> Vec<u64> {
        dump.steps.iter().map(|database| database.step).collect()
    }

    #[track_caller]
    fn check_error<T: std::fmt::Debug>(result: Result<T, DatabaseError>, expected: &[&str]) {
        let error = result.expect_err(expected[0]).to_string();
        for part in expected {
            assert!(error.contains(part), "`{error}` does not contain `{part}`");
        }
    }

    #[test]
    fn the_name_chooses_the_form_that_is_written_and_the_content_the_one_that_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let whole = dump(&[3, 5]);
        for (written, read) in
            [("a.json", "as-binary.db"), ("a.JSON", "b.1"), ("c.db", "as-json.json"), ("d", "e")]
        {
            let (written, read) = (folder.path().join(written), folder.path().join(read));
            whole.write(&written).unwrap();
            let json = fs::read(&written).unwrap().starts_with(b"{");
            assert_eq!(json, written.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")));
            fs::rename(&written, &read).unwrap();
            assert_eq!(Dump::read(&read).unwrap(), whole);
        }
        fs::write(folder.path().join("lb.dat.17"), charm_dump()).unwrap();
        assert_eq!(steps(&Dump::read(folder.path().join("lb.dat.17")).unwrap()), [17]);
        fs::write(folder.path().join("lb"), charm_dump()).unwrap();
        assert_eq!(steps(&Dump::read(folder.path().join("lb")).unwrap()), [0]);
    }

    #[test]
    fn a_replay_sees_the_steps_it_asks_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lb.db");
        dump(&[2, 3, 7]).write(&file).unwrap();
        let base = folder.path().join("lb.dat");
        for step in [2, 3, 7] {
            fs::write(folder.path().join(format!("lb.dat.{step}")), charm_dump()).unwrap();
        }
        fs::write(folder.path().join("lb.dat.txt"), "not a step").unwrap();
        for path in [&file, &base] {
            let read = |first, count| Dump::read_steps(path, first, count);
            assert_eq!(steps(&read(None, None).unwrap()), [2, 3, 7]);
            assert_eq!(steps(&read(None, Some(1)).unwrap()), [2]);
            assert_eq!(steps(&read(Some(3), None).unwrap()), [3, 7]);
            assert_eq!(steps(&read(Some(3), Some(2)).unwrap()), [3, 7]);
            check_error(read(Some(4), Some(1)), &["has no step 4; choose among steps 2, 3, 7"]);
            check_error(read(Some(9), None), &["has no step 9"]);
            check_error(read(Some(7), Some(3)), &["has only 1 of the 3 steps asked for from step 7 on"]);
            check_error(read(None, Some(0)), &["was asked for 0 steps"]);
        }
        dump(&[]).write(&file).unwrap();
        check_error(Dump::read_steps(&file, None, None), &["lb.db", "holds no steps"]);
    }

    #[test]
    fn files_that_are_not_there_or_not_databases_are_named_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mesh.graph");
        check_error(Dump::read(&path), &["mesh.graph", "cannot read", "check its name"]);
        check_error(
            Dump::read_steps(&path, None, None),
            &["mesh.graph", "there is no such file, and there is no file of that name followed by"],
        );
        check_error(Dump::read_steps(folder.path(), None, None), &["it is a folder, and there is no file"]);
        fs::write(&path, "3 2\n2\n1 3\n2\n").unwrap();
        check_error(Dump::read(&path), &["mesh.graph", "is not a database: readable are", "8.x and 6.10"]);
        fs::write(&path, "").unwrap();
        check_error(Dump::read(&path), &["mesh.graph", "is empty"]);
        check_error(Dump::read(folder.path()), &["cannot read the database"]);
    }

    #[test]
    fn steps_out_of_order_or_twice_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lb.db");
        for (steps, expected) in
            [(&[1, 5, 3][..], "has step 3 after step 5"), (&[2, 2], "step 2 after step 2")]
        {
            check_error(dump(steps).write(&path), &[expected, "in ascending order"]);
            fs::write(&path, binary::encode(&dump(steps)).unwrap()).unwrap();
            check_error(Dump::read(&path), &[expected]);
            fs::write(&path, json::encode(&dump(steps)).unwrap()).unwrap();
            check_error(Dump::read_steps(&path, None, Some(1)), &[expected]);
        }
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lb.json");
        dump(&[0]).write(&path).unwrap();
        dump(&[0, 1]).write(&path).unwrap();
        let mut broken = dump(&[4]);
        broken.steps[0].pes[0].speed = -1.0;
        check_error(broken.write(&path), &["lb.json", "cannot hold step 4: the speed of PE 0 is -1"]);
        assert_eq!(Dump::read(&path).unwrap(), dump(&[0, 1]));
        check_error(dump(&[0]).write(folder.path().join("no/such/place")), &["cannot write", "name a place"]);
        check_error(dump(&[0]).write(folder.path()), &["cannot write"]);
        for (path, can) in [("lb.json", true), ("new.db", true), ("no/such/place", false), ("", false)] {
            assert_eq!(Dump::can_write(folder.path().join(path)).is_ok(), can, "{path}");
        }
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["lb.json"], "no partial file is left");
    }

    #[test]
    #[cfg(unix)]
    fn links_and_devices_are_not_replaced_by_files() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, device] = ["lb.db", "link", "device"].map(|name| folder.path().join(name));
        dump(&[0]).write(&file).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        // Through a link, because a mistake in what is tested would replace the device itself.
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        dump(&[1]).write(&link).unwrap();
        dump(&[1]).write(&device).unwrap();
        assert_eq!(Dump::read(&file).unwrap(), dump(&[1]));
        assert!([&link, &device].iter().all(|path| path.is_symlink()));
    }
}
