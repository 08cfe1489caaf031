//! Files of text, and who can help when the file system refuses.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(..'\u{feff}'.len_utf8());
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Unread::NotText(1 + good.iter().filter(|&&byte| byte == b'\n').count())
    })
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
