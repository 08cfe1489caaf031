//! Files of text, and who can help when the file system refuses.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

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
    fn another_name_helps_where_there_is_no_such_place_and_not_where_there_is_no_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |path: &Path| is_of_the_name(&fs::write(path, "x").expect_err("refused"));
        assert!(refused(&folder.path().join("no/such/place")) && refused(folder.path()));
        assert!(!is_of_the_name(&io::ErrorKind::StorageFull.into()));
    }
}
