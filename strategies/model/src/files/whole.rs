//! Files that appear complete or not at all: they grow under a temporary name next to the final one, and are renamed at
//! the end.
//!
//! The temporary name of `FILE` is `FILE.PID.partial`, with the id of the process, so that no two processes share one.
//! The list of temporary files is global: when a signal ends the process, [`interrupt`] removes or completes them,
//! whichever thread and library made them. A file is in the list from before it exists until after it is renamed or
//! removed, because the lock of the list is held for each of these operations.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The temporary files of this process, by name.
static TEMPORARY: Mutex<BTreeMap<PathBuf, Temporary>> = Mutex::new(BTreeMap::new());

/// The list of temporary files; while it is locked, no file is created, extended, renamed or removed.
fn temporary() -> MutexGuard<'static, BTreeMap<PathBuf, Temporary>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes written between two looks at the lock: a signal waits for one such write.
const CHUNK_BYTES: usize = 1 << 20;

/// A temporary file.
struct Temporary {
    /// The final name.
    path: PathBuf,
    kept: Option<Kept>,
}

/// The part of a temporary file that is valuable although the file is not complete.
struct Kept {
    /// The length of the part.
    bytes: u64,
    /// What follows the part in a readable file.
    tail: &'static [u8],
    /// What the part is, for messages.
    what: String,
}

impl Temporary {
    /// Gives the valuable part of the file the final name, or removes the file. Returns a clause about what is kept.
    fn end(self, partial: &Path) -> Option<String> {
        let Some(Kept { bytes, tail, what }) = self.kept else {
            // An error cannot be reported from here, and the name says what the file is.
            let _ = fs::remove_file(partial);
            return None;
        };
        let cut = OpenOptions::new().write(true).open(partial).and_then(|mut file| {
            file.set_len(bytes)?;
            file.seek(SeekFrom::End(0))?;
            file.write_all(tail)
        });
        let path = match cut.and_then(|()| fs::rename(partial, &self.path)) {
            Ok(()) => &self.path,
            Err(_) => partial,
        };
        Some(format!("`{}` holds {what}", path.display()))
    }
}

/// Ends all temporary files of this process, because the process is about to end: they are removed, or get their final
/// name if a part of them was marked with [`NewFile::keep`]. Returns a clause for each file that is kept.
///
/// The list of files stays locked forever: other threads stop where they next touch a file.
pub fn interrupt() -> Vec<String> {
    let mut list = temporary();
    let kept = std::mem::take(&mut *list);
    let kept = kept.into_iter().filter_map(|(partial, entry)| entry.end(&partial)).collect();
    std::mem::forget(list);
    kept
}

/// A file that is being written and appears under its name when it is finished.
///
/// If it is dropped before, the file is removed, except for a part that was marked with [`Self::keep`]; an earlier file
/// under the name is not touched. Special files such as pipes are written directly. `/dev/stdout` and `/dev/stderr` are
/// written at the end, at the current position of this process. A symbolic link keeps its target.
pub struct NewFile(Target);

/// Where the bytes of a new file go.
enum Target {
    /// A regular file.
    Partial { partial: PathBuf, path: PathBuf, bytes: u64, file: Option<File> },
    /// A pipe or a device.
    Special(File),
    /// The standard output or error. The bytes are collected, so that other output does not come between them.
    Stream(Box<dyn Write + Send>, Vec<u8>),
}

impl NewFile {
    /// Begins a file that will be named `path`.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        if let Some(stream) = stream(path) {
            return Ok(NewFile(Target::Stream(stream, Vec::new())));
        }
        if is_special_file(path) {
            return Ok(NewFile(Target::Special(OpenOptions::new().write(true).open(path)?)));
        }
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut list = temporary();
        let (path, partial, file) = create_temporary_file(path)?;
        list.insert(partial.clone(), Temporary { path: path.clone(), kept: None });
        Ok(NewFile(Target::Partial { partial, path, bytes: 0, file: Some(file) }))
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn append(&mut self, more: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Target::Special(file) => file.write_all(more),
            Target::Stream(_, collected) => {
                collected.extend_from_slice(more);
                Ok(())
            }
            Target::Partial { file: None, .. } => Err(io::Error::other("the file is complete")),
            Target::Partial { file: Some(file), bytes, .. } => {
                for chunk in more.chunks(CHUNK_BYTES) {
                    let _list = temporary();
                    file.write_all(chunk)?;
                    *bytes += chunk.len() as u64;
                }
                Ok(())
            }
        }
    }

    /// Marks the bytes so far as valuable: if the file is not finished, these bytes and `tail` get its name. `what` is
    /// what they are, as in ``the steps up to 7``.
    pub fn keep(&mut self, tail: &'static [u8], what: String) {
        let Target::Partial { partial, bytes, .. } = &self.0 else { return };
        if let Some(entry) = temporary().get_mut(partial) {
            entry.kept = Some(Kept { bytes: *bytes, tail, what });
        }
    }

    /// The bytes so far. A pipe or a device cannot be read again.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        match &self.0 {
            Target::Partial { partial, .. } => {
                let mut bytes = Vec::new();
                File::open(partial)?.read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Target::Stream(_, collected) => Ok(collected.clone()),
            Target::Special(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Ends the file before it is complete, as dropping it does. Returns a clause about the part that is kept, if there is
    /// one.
    pub fn abandon(self) -> Option<String> {
        self.end()
    }

    fn end(&self) -> Option<String> {
        let Target::Partial { partial, .. } = &self.0 else { return None };
        let mut list = temporary();
        list.remove(partial)?.end(partial)
    }

    /// Removes the file, with all its parts.
    pub fn discard(self) {
        if let Target::Partial { partial, .. } = &self.0
            && let Some(entry) = temporary().get_mut(partial)
        {
            entry.kept = None;
        }
    }

    /// Gives the complete file its name; replaces an earlier file.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn finish(self) -> io::Result<()> {
        finish_all(vec![self])
    }

    /// Moves all bytes to the disk, and closes the file, so that nothing but renaming is left.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn complete(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Target::Partial { file, .. } => file.take().map_or(Ok(()), |file| file.sync_all()),
            Target::Special(file) => file.flush(),
            Target::Stream(stream, collected) => {
                stream.write_all(&std::mem::take(collected)).and_then(|()| stream.flush())
            }
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        _ = self.end();
    }
}

/// Gives several complete files their names, all or none of them.
///
/// If a file cannot be renamed, the files renamed before get their old content again. That needs hard links; on a file
/// system without them the error says how many files are replaced.
///
/// # Errors
/// If the file system reports an error.
pub fn finish_all(mut files: Vec<NewFile>) -> io::Result<()> {
    files.iter_mut().try_for_each(NewFile::complete)?;
    let mut list = temporary();
    let mut done: Vec<Replaced> = Vec::new();
    let several = files.len() > 1;
    for file in &files {
        let Target::Partial { partial, path, .. } = &file.0 else { continue };
        let replaced = Replaced::prepare(path, partial, several);
        if let Err(error) = fs::rename(partial, path) {
            let renamed = done.len();
            replaced.forget();
            let restored = done.into_iter().rev().filter(|replaced| replaced.restore()).count();
            // The remaining files are removed when they are dropped, which needs the list.
            drop(list);
            return Err(match renamed - restored {
                0 => error,
                lost => io::Error::new(
                    error.kind(),
                    format!("{error}; {lost} of {} files are replaced already", files.len()),
                ),
            });
        }
        list.remove(partial);
        done.push(replaced);
    }
    done.iter().for_each(Replaced::forget);
    Ok(())
}

/// A file that is replaced together with others.
struct Replaced<'a> {
    path: &'a Path,
    /// A link to the old content; none if there was no file, or no link could be made.
    backup: Option<PathBuf>,
    /// Whether there was a file.
    existed: bool,
}

impl<'a> Replaced<'a> {
    /// Remembers the old content of `path` if it may be needed again.
    fn prepare(path: &'a Path, partial: &Path, several: bool) -> Replaced<'a> {
        let existed = fs::symlink_metadata(path).is_ok();
        let mut backup = OsString::from(partial);
        backup.push(".old");
        let backup = Some(PathBuf::from(backup))
            .filter(|backup| several && existed && fs::hard_link(path, backup).is_ok());
        Replaced { path, backup, existed }
    }

    /// Restores the old content; whether that succeeded.
    fn restore(&self) -> bool {
        match &self.backup {
            Some(backup) => fs::rename(backup, self.path).is_ok(),
            None => !self.existed && fs::remove_file(self.path).is_ok(),
        }
    }

    /// Removes the link to the old content.
    fn forget(&self) {
        if let Some(backup) = &self.backup {
            let _ = fs::remove_file(backup);
        }
    }
}

/// Writes a file as [`NewFile`] does: after a crash, the path has either the old content or the new content.
///
/// # Errors
/// If the file system reports an error.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::create(path)?;
    file.append(bytes)?;
    file.finish()
}

/// Checks whether [`NewFile`] can create the file.
pub fn can_write_whole(path: &Path) -> io::Result<()> {
    if is_special_file(path) {
        // Opening a pipe would wait for its reader.
        return Ok(());
    }
    NewFile::create(path).map(drop)
}

/// Whether content written to `path` can be read again; false for pipes and for the standard output and error of this
/// process.
pub fn is_read_back(path: &Path) -> bool {
    !is_stream(path) && fs::metadata(path).is_ok_and(|there| there.is_file())
}

/// The file that is written at `path`: the path without links and `..`, also if there is no file yet. `None` for streams, pipes and
/// devices, which may take several outputs in sequence.
pub fn file_at(path: &Path) -> Option<PathBuf> {
    let of_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
    };
    let is_file = !is_stream(path) && !is_special_file(path);
    is_file.then(|| fs::canonicalize(path).ok().or_else(of_folder).unwrap_or_else(|| path.to_path_buf()))
}

/// Whether `path` names the standard output or error of this process.
pub fn is_stream(path: &Path) -> bool {
    stream(path).is_some()
}

/// The standard output or error of this process, if `path` names it.
fn stream(path: &Path) -> Option<Box<dyn Write + Send>> {
    match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(Box::new(io::stdout())),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Some(Box::new(io::stderr())),
        _ => None,
    }
}

/// Whether `path` is neither a regular file nor a folder.
fn is_special_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// The target of `path`, and a new temporary file in its folder.
fn create_temporary_file(path: &Path) -> io::Result<(PathBuf, PathBuf, File)> {
    // A path that does not exist yet is no link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let process = std::process::id();
    let mut attempt = 0;
    loop {
        let mut partial = name.to_os_string();
        partial.push(match attempt {
            0 => format!(".{process}.partial"),
            attempt => format!(".{process}-{attempt}.partial"),
        });
        let partial = path.with_file_name(partial);
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

    /// The files of a folder, by name.
    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = fs::read_dir(folder).expect("a folder").map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn an_unfinished_file_keeps_only_what_is_marked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, "old").expect("a file");
        let mut file = NewFile::create(&path).expect("a file");
        file.append(b"new").expect("room");
        assert_eq!(file.bytes().expect("it can be read"), b"new");
        drop(file);
        assert_eq!(
            (names(folder.path()), fs::read(&path).expect("a file")),
            (vec!["file".into()], b"old".to_vec())
        );
        let mut file = NewFile::create(&path).expect("a file");
        file.append(b"whole").expect("room");
        file.keep(b"!", "one word".into());
        file.append(b" half").expect("room");
        let discarded = NewFile::create(&path).expect("a file");
        assert_eq!(names(folder.path()).len(), 3, "each has its own name");
        discarded.discard();
        drop(file);
        assert_eq!(
            (names(folder.path()), fs::read(&path).expect("a file")),
            (vec!["file".into()], b"whole!".to_vec())
        );
    }

    #[test]
    fn several_files_are_replaced_together_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
        fs::write(&paths[0], "old").expect("a file");
        let begin = |text: &str| -> Vec<NewFile> {
            let one = |path: &PathBuf| {
                let mut file = NewFile::create(path).expect("a file");
                file.append(text.as_bytes()).expect("room");
                file
            };
            paths.iter().map(one).collect()
        };
        let files = begin("new");
        fs::create_dir(&paths[2]).expect("a folder");
        finish_all(files).expect_err("the last name is a folder now");
        assert_eq!(names(folder.path()), ["a", "c"]);
        assert_eq!(fs::read(&paths[0]).expect("a file"), b"old");
        fs::remove_dir(&paths[2]).expect("a folder");
        finish_all(begin("new")).expect("they can be replaced");
        assert_eq!(names(folder.path()), ["a", "b", "c"]);
        assert!(paths.iter().all(|path| fs::read(path).expect("a file") == b"new"));
    }
}
