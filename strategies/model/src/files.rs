//! Files: reading text, writing files atomically ([`NewFile`]), and locating errors.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use crate::fault::{Classified, Fault};
use crate::memory;
use crate::quote::sentence;

mod whole;

pub use whole::{
    NewFile, can_write_whole, file_at, finish_all, interrupt, is_read_back, is_stream, write_whole,
};

/// Why a file has no text.
#[derive(Debug)]
pub enum Unread {
    /// The file system reports an error.
    System(io::Error),
    /// The content cannot be used: it is too large, or not text from this line on.
    Content(AtLine),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::System(error) => write!(f, "{error}; check its name and that it may be read"),
            Unread::Content((line, reason)) => write!(f, "line {line}: {reason}"),
        }
    }
}

impl std::error::Error for Unread {}

impl Classified for Unread {
    fn fault(&self) -> Fault {
        match self {
            Unread::System(error) => error.fault(),
            Unread::Content(_) => Fault::Input,
        }
    }
}

/// The error for a line that is not text.
const NOT_TEXT: &str = "this is not text in UTF-8; give another file, or convert it";

/// The bytes of a file.
///
/// # Errors
/// If the file cannot be read or does not fit into memory.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Unread> {
    memory::check_file(path).map_err(|reason| Unread::Content((1, reason)))?;
    fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::OutOfMemory => Unread::Content((1, format!("{error}; use a smaller file"))),
        _ => Unread::System(error),
    })
}

/// The text of a file without a leading byte-order mark.
///
/// # Errors
/// As for [`bytes`], and if the file is not UTF-8.
pub fn text(path: &Path) -> Result<String, Unread> {
    let mut bytes = bytes(path)?;
    drop_byte_order_mark(&mut bytes);
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        Unread::Content((line, NOT_TEXT.into()))
    })
}

/// Removes a leading byte-order mark.
pub fn drop_byte_order_mark(bytes: &mut Vec<u8>) {
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(..'\u{feff}'.len_utf8());
    }
}

/// The files of all ranks, by rank, given one of them or a pattern: `data.0.json`, `data.1.json`, .. for `data.1.json`
/// or `data.%p.json`. `None` if the name contains no rank.
///
/// # Errors
/// If the folder cannot be read, or the file of a rank below the highest is missing.
pub fn of_ranks(path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    let Some((before, after)) = around_rank(name) else { return Ok(None) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut ranks: Vec<u64> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let found = entry?.file_name();
        let rank = found.to_str().and_then(|found| found.strip_prefix(before)?.strip_suffix(after));
        let is_rank = |rank: &&str| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit());
        // Leading zeros are not accepted: `data.01.json` and `data.1.json` would be the same rank.
        let rank = rank.filter(is_rank).filter(|rank| *rank == "0" || !rank.starts_with('0'));
        ranks.extend(rank.and_then(|rank| rank.parse::<u64>().ok()));
    }
    ranks.sort_unstable();
    let missing = (0..).zip(&ranks).find(|(expected, rank)| expected != *rank).map(|(expected, _)| expected);
    let missing = missing.or(ranks.is_empty().then_some(0));
    if let Some(rank) = missing {
        let sentence = format!(
            "all ranks are read together, but the file of rank {rank}, {before}{rank}{after}, is missing"
        );
        return Err(io::Error::new(io::ErrorKind::NotFound, sentence));
    }
    Ok(Some(ranks.into_iter().map(|rank| folder.join(format!("{before}{rank}{after}"))).collect()))
}

/// The parts of a file name before and after the rank, which is `%p` or a number between dots.
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

/// The line, from 1, in which `part`, a slice of `text`, begins.
pub fn line_of(text: &str, part: &str) -> usize {
    let offset = part.as_ptr().addr().saturating_sub(text.as_ptr().addr()).min(text.len());
    1 + text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count()
}

/// A step on the path to a value in a JSON document.
#[derive(Clone, Copy, Debug)]
pub enum JsonStep {
    /// The value of a key of an object.
    Key(&'static str),
    /// A value of a list, counted from 0.
    Item(usize),
}

/// The line, from 1, in which the JSON value at `steps` begins. If there is no such value, the line of the last
/// existing value on this path.
pub fn line_in_json(text: &str, steps: &[JsonStep]) -> usize {
    let mut part = text.trim_start();
    for step in steps {
        let next: Option<&RawValue> = match step {
            JsonStep::Key(key) => serde_json::from_str::<BTreeMap<String, &RawValue>>(part)
                .ok()
                .and_then(|values| values.get(*key).copied()),
            JsonStep::Item(at) => {
                serde_json::from_str::<Vec<&RawValue>>(part).ok().and_then(|values| values.get(*at).copied())
            }
        };
        let Some(next) = next else { break };
        part = next.get();
    }
    line_of(text, part)
}

/// A line number, from 1, and what is wrong in this line.
pub type AtLine = (usize, String);

/// The error for a file whose format needs the feature `formats`.
#[cfg(not(feature = "formats"))]
pub(crate) fn without_formats(name: &str) -> String {
    format!(
        "`{name}` needs the cargo feature `formats` of equipoise-model (brotli, XML, YAML), and this program \
        was built without it; add the feature, or convert the file with a command `equipoise` that has it"
    )
}

/// Why content was rejected: the end of a sentence that begins with the file name, including what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", sentence(.0))]
pub struct Refused(pub String);

impl Classified for Refused {
    fn fault(&self) -> Fault {
        Fault::Input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_the_line_that_is_not_text() {
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
        let error = text(&folder.path().join("none")).expect_err("no file").to_string();
        assert!(error.ends_with("; check its name and that it may be read"), "{error}");
    }

    #[test]
    fn finds_the_line_of_a_json_value_by_its_path() {
        use JsonStep::{Item, Key};
        let text = "\n{\n \"a\": [1,\n  {\"b\": \n 2}],\n \"c\": 3}\n";
        let check = |steps: &[JsonStep], line| assert_eq!(line_in_json(text, steps), line, "{steps:?}");
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
    fn finds_the_files_of_all_ranks_from_one_of_them() {
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
        let missing =
            "all ranks are read together, but the file of rank 2, data.2.json, is missing".to_string();
        assert_eq!(found("data.1.json"), Err(missing));
        fs::remove_file(folder.path().join("data.10.json")).expect("a file");
        assert_eq!(found("data.1.json"), Ok(Some("data.0.json data.1.json".into())));
        assert_eq!(found("data.%p.json"), found("data.1.json"));
        assert_eq!(found("data.json"), Ok(None));
        assert_eq!(found("0.json"), Ok(None), "no text before the rank");
        assert_eq!(found("data.0"), Ok(None), "no text after the rank");
    }

    #[test]
    fn a_wrong_path_is_a_usage_error_and_a_full_disk_an_input_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |path: &Path| fs::write(path, "x").expect_err("refused").fault();
        assert_eq!(refused(&folder.path().join("no/such/place")), Fault::Usage);
        assert_eq!(refused(folder.path()), Fault::Usage);
        assert_eq!(io::Error::from(io::ErrorKind::StorageFull).fault(), Fault::Input);
    }
}
