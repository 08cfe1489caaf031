//! Files: their text, writing them whole or not at all, and who can help when the file system refuses.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

/// Why there is no text.
#[derive(Debug)]
pub enum Unread {
    /// The file system does not give the file.
    System(io::Error),
    /// The file is not text from this line on, counted from 1.
    NotText(usize),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::System(error) => write!(f, "{error}; check its name and that it may be read"),
            Unread::NotText(line) => write!(f, "line {line}: {NOT_TEXT}"),
        }
    }
}

/// What is wrong with a line that is not text.
pub(crate) const NOT_TEXT: &str = "this is not text in UTF-8; give another file, or convert it";

/// The text of a file, without the byte-order mark that some programs put before it.
///
/// # Errors
/// When the file cannot be read, or is not UTF-8.
pub fn text(path: &Path) -> Result<String, Unread> {
    let mut bytes = fs::read(path).map_err(Unread::System)?;
    drop_mark(&mut bytes);
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Unread::NotText(1 + good.iter().filter(|&&byte| byte == b'\n').count())
    })
}

/// Drops the byte-order mark that some programs put before text.
pub(crate) fn drop_mark(bytes: &mut Vec<u8>) {
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(..'\u{feff}'.len_utf8());
    }
}

/// The files of all ranks of which `path` is one, by rank: `data.0.json`, `data.1.json` .. of `data.1.json`, or of
/// `data.%p.json`. `None` where the name says no rank.
///
/// # Errors
/// When the folder cannot be read, or one of the ranks from 0 to the highest has no file.
pub(crate) fn of_ranks(path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    let Some((before, after)) = around_rank(name) else { return Ok(None) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut ranks: Vec<u64> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let found = entry?.file_name();
        let rank = found.to_str().and_then(|found| found.strip_prefix(before)?.strip_suffix(after));
        let is_rank = |rank: &&str| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit());
        // Of `data.01.json` it would not be known which rank it is of.
        let rank = rank.filter(is_rank).filter(|rank| *rank == "0" || !rank.starts_with('0'));
        ranks.extend(rank.and_then(|rank| rank.parse::<u64>().ok()));
    }
    ranks.sort_unstable();
    let missing = (0..).zip(&ranks).find(|(expected, rank)| expected != *rank).map(|(expected, _)| expected);
    let missing = missing.or(ranks.is_empty().then_some(0));
    if let Some(rank) = missing {
        let sentence = format!(
            "there is no file of rank {rank}, {before}{rank}{after}, and all ranks are read together"
        );
        return Err(io::Error::new(io::ErrorKind::NotFound, sentence));
    }
    Ok(Some(ranks.into_iter().map(|rank| folder.join(format!("{before}{rank}{after}"))).collect()))
}

/// What stands before and after the rank in the name of a file: `%p`, or a number between dots.
fn around_rank(name: &str) -> Option<(&str, &str)> {
    if let Some(around) = name.split_once("%p") {
        return Some(around);
    }
    let mut end = name.len();
    for part in name.rsplit('.') {
        let start = end - part.len();
        let is_rank = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if is_rank && start > 0 && end < name.len() {
            return Some((&name[..start], &name[end..]));
        }
        end = start.saturating_sub(1);
    }
    None
}

/// The line, from 1, in which a part of a text begins.
pub(crate) fn line_of(text: &str, part: &str) -> usize {
    let offset = part.as_ptr().addr().saturating_sub(text.as_ptr().addr()).min(text.len());
    1 + text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count()
}

/// From a value of JSON to one that it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Within {
    /// The value of a key of an object.
    Key(&'static str),
    /// A value of a list, counted from 0.
    Item(usize),
}

/// The line, from 1, in which a value of JSON begins; where there is none, that of the last on the way to it.
pub(crate) fn line_in_json(text: &str, way: &[Within]) -> usize {
    let mut part = text.trim_start();
    for step in way {
        let next: Option<&RawValue> = match step {
            Within::Key(key) => serde_json::from_str::<BTreeMap<String, &RawValue>>(part)
                .ok()
                .and_then(|values| values.get(*key).copied()),
            Within::Item(at) => {
                serde_json::from_str::<Vec<&RawValue>>(part).ok().and_then(|values| values.get(*at).copied())
            }
        };
        let Some(next) = next else { break };
        part = next.get();
    }
    line_of(text, part)
}

/// Whether a file cannot be written because of its name, so that another name is the remedy; otherwise
/// there is no room, for example.
pub fn is_of_the_name(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(
        error.kind(),
        NotFound
            | AlreadyExists
            | IsADirectory
            | NotADirectory
            | PermissionDenied
            | ReadOnlyFilesystem
            | InvalidInput
            | InvalidFilename
    )
}

/// Why content was refused: what follows the name of the file in a sentence, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Writes beside the target first, and renames: a crash leaves the old file or the new one.
///
/// What is no regular file, such as a pipe, takes the bytes itself, and a link keeps pointing at the file that is
/// replaced. `/dev/stdout` and `/dev/stderr` are written where this process is in them, whatever they lead to: a log
/// that something stands in already is not written anew.
///
/// # Errors
/// When the file system refuses.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(mut stream) = stream(path) {
        return stream.write_all(bytes).and_then(|()| stream.flush());
    }
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
    if stream(path).is_some() || takes_bytes_itself(path) {
        return Ok(());
    }
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let (_, partial, _) = create_beside(path)?;
    fs::remove_file(partial)
}

/// Whether what was written at `path` stands in a file that can be read again: what went into a pipe, or to where
/// this process says all that it says, does not.
pub fn is_read_back(path: &Path) -> bool {
    stream(path).is_none() && fs::metadata(path).is_ok_and(|there| there.is_file())
}

/// Of the process's own output, by its names.
fn stream(path: &Path) -> Option<Box<dyn Write>> {
    match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => Some(Box::new(io::stdout())),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => Some(Box::new(io::stderr())),
        _ => None,
    }
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

    #[test]
    fn a_line_that_is_not_text_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let check = |bytes: &[u8], expected: Result<&str, &str>| {
            fs::write(&path, bytes).expect("a file");
            let found = text(&path).map_err(|unread| unread.to_string());
            assert_eq!(found, expected.map(str::to_string).map_err(|line| format!("{line}: {NOT_TEXT}")));
        };
        check("\u{feff}0\n\u{e9}\n".as_bytes(), Ok("0\n\u{e9}\n"));
        check(b"", Ok(""));
        check(b"\xe9", Err("line 1"));
        check(b"0\n1\n2\xff\n3\n", Err("line 3"));
        let told = text(&folder.path().join("none")).expect_err("no file").to_string();
        assert!(told.ends_with("; check its name and that it may be read"), "{told}");
    }

    #[test]
    fn values_of_json_are_found_by_the_way_to_them() {
        use Within::{Item, Key};
        let text = "\n{\n \"a\": [1,\n  {\"b\": \n 2}],\n \"c\": 3}\n";
        let check = |way: &[Within], line| assert_eq!(line_in_json(text, way), line, "{way:?}");
        check(&[], 2);
        check(&[Key("a")], 3);
        check(&[Key("a"), Item(0)], 3);
        check(&[Key("a"), Item(1)], 4);
        check(&[Key("a"), Item(1), Key("b")], 5);
        check(&[Key("c")], 6);
        check(&[Key("a"), Item(2)], 3);
        check(&[Key("d"), Item(2)], 2);
    }

    #[test]
    fn the_files_of_all_ranks_are_found_from_one() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in
            ["data.0.json", "data.1.json", "data.10.json", "data.2.json.br", "other.1.json", "data.x.json"]
        {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        let found = |name: &str| {
            let ranks = of_ranks(&folder.path().join(name)).map_err(|error| error.to_string())?;
            let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
            Ok(ranks.map(|ranks| ranks.into_iter().filter_map(name).collect::<Vec<_>>().join(" ")))
        };
        let missing = "there is no file of rank 2, data.2.json, and all ranks are read together".to_string();
        assert_eq!(found("data.1.json"), Err(missing));
        fs::remove_file(folder.path().join("data.10.json")).expect("a file");
        assert_eq!(found("data.1.json"), Ok(Some("data.0.json data.1.json".into())));
        assert_eq!(found("data.%p.json"), found("data.1.json"));
        assert_eq!(found("data.json"), Ok(None));
        assert_eq!(found("0.json"), Ok(None), "a rank has something before it");
        assert_eq!(found("data.0"), Ok(None), "and something after it");
    }

    #[test]
    fn another_name_helps_where_there_is_no_such_place_and_not_where_there_is_no_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |path: &Path| is_of_the_name(&fs::write(path, "x").expect_err("refused"));
        assert!(refused(&folder.path().join("no/such/place")) && refused(folder.path()));
        assert!(!is_of_the_name(&io::ErrorKind::StorageFull.into()));
    }
}
