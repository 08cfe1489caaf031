//! Tables of numbers that are not negative, in files: loads of experts, tokens from nodes to experts.
//!
//! `.npy` is NumPy's format; `.json` has a list of rows, alone or as `logical_count` of a document as SGLang reads it; other files are text with a row per line, whose numbers are separated
//! by commas or blanks. In text, empty lines and lines that begin with `#` are ignored. An array of `.npy` has at
//! most two dimensions, or three where a table may have rows for each layer.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cells;
use crate::fault::{Classified, Fault};
use crate::files::{self, AtLine, JsonStep, Unread, line_in_json};
use crate::memory;
use crate::quote::{sentence, shown};
use crate::table::count;

mod npy;

/// The largest number that a table may have, so that sums are finite.
const LARGEST: f64 = 1e100;

/// A table of finite numbers that are not negative. All rows have the same length, at least 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// The rows.
    pub rows: Vec<Vec<f64>>,
}

/// Why a file has no table of numbers. The message names the file, what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum NumbersError {
    /// The file cannot be read.
    #[error("cannot read the numbers `{}`: {source}; check its name and that it may be read", shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The content is invalid.
    #[error("the numbers `{}`: {}", shown(.path), sentence(.reason))]
    Content {
        /// The file.
        path: PathBuf,
        /// Where and what is wrong, and what is expected.
        reason: String,
    },
}

impl Classified for NumbersError {
    fn fault(&self) -> Fault {
        match self {
            NumbersError::Read { source, .. } => source.fault(),
            NumbersError::Content { .. } => Fault::Input,
        }
    }
}

impl Numbers {
    /// Reads a table from a file.
    ///
    /// # Errors
    /// If the file cannot be read, or is no table of numbers that are not negative.
    pub fn read(path: &Path) -> Result<Numbers, NumbersError> {
        Self::read_with(path, 2).map(|(numbers, _)| numbers)
    }

    /// Reads a table that may have several rows for each layer, layer by layer. Also returns the number of rows of a layer, if the file says
    /// it: a file of NumPy with the shape (layers, rows, columns).
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn read_by_layer(path: &Path) -> Result<(Numbers, Option<usize>), NumbersError> {
        Self::read_with(path, 3)
    }

    /// Reads a table from a file whose array, if it is one of NumPy, has at most `dimensions` dimensions.
    fn read_with(path: &Path, dimensions: usize) -> Result<(Numbers, Option<usize>), NumbersError> {
        let content = |reason: String| NumbersError::Content { path: path.into(), reason };
        let unread = |unread: Unread| match unread {
            Unread::System(source) => NumbersError::Read { path: path.into(), source },
            Unread::Content((line, reason)) => content(format!("line {line}: {reason}")),
        };
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default().to_ascii_lowercase();
        if extension == "npy" {
            let bytes = files::bytes(path).map_err(unread)?;
            return npy::read(&bytes, dimensions).map_err(content);
        }
        let text = files::text(path).map_err(unread)?;
        let table = if extension == "json" { from_json(&text) } else { from_lines(&text) };
        let table = table.map_err(|(line, reason)| content(format!("line {line}: {reason}")))?;
        Ok((table, None))
    }

    /// The number of columns; 0 without rows.
    pub fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }
}

/// The number, if a table may have it.
fn checked(number: f64) -> Result<f64, String> {
    match (0.0..=LARGEST).contains(&number) {
        true => Ok(number),
        false => Err(format!("expected a number from 0 to {LARGEST:e}, found {number}")),
    }
}

/// The error for a row with another length than the first.
fn uneven(columns: usize, first: usize) -> String {
    format!("this row has {}, but the first row has {first}", count(columns as u64, "number"))
}

fn empty() -> String {
    "there are no numbers; give a row with at least one number".into()
}

fn from_lines(text: &str) -> Result<Numbers, AtLine> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let at_line = |reason| (line, reason);
        let mut row = Vec::new();
        for cell in cells::numbers(text).map_err(at_line)? {
            let number = cell.parse().map_err(|_| at_line(format!("expected a number, found `{cell}`")))?;
            memory::push(&mut row, checked(number).map_err(at_line)?).map_err(at_line)?;
        }
        if let Some(first) = rows.first().filter(|first| first.len() != row.len()) {
            return Err(at_line(uneven(row.len(), first.len())));
        }
        memory::push(&mut rows, row).map_err(at_line)?;
    }
    if rows.is_empty() { Err((1, empty())) } else { Ok(Numbers { rows }) }
}

/// A document that SGLang reads as loads of experts.
#[derive(Deserialize)]
struct Counts {
    logical_count: Vec<Vec<f64>>,
}

fn from_json(text: &str) -> Result<Numbers, AtLine> {
    let is_document = text.trim_start().starts_with('{');
    let rows = match is_document {
        true => serde_json::from_str(text).map(|counts: Counts| counts.logical_count),
        false => serde_json::from_str(text),
    };
    let rows: Vec<Vec<f64>> = rows.map_err(|error| {
        let forms =
            "a list of rows such as [[90, 132], [20, 107]], or {\"logical_count\": [[90, 132], [20, 107]]}";
        (error.line().max(1), format!("expected {forms}; {error}"))
    })?;
    let columns = rows.first().map_or(0, Vec::len);
    let key = if is_document { &[JsonStep::Key("logical_count")][..] } else { &[] };
    for (at, row) in rows.iter().enumerate() {
        let line = |steps: &[JsonStep]| line_in_json(text, &[key, steps].concat());
        if row.len() != columns {
            return Err((line(&[JsonStep::Item(at)]), uneven(row.len(), columns)));
        }
        for (column, &number) in row.iter().enumerate() {
            checked(number)
                .map_err(|reason| (line(&[JsonStep::Item(at), JsonStep::Item(column)]), reason))?;
        }
    }
    if columns == 0 { Err((1, empty())) } else { Ok(Numbers { rows }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in a file with this name and content, or the error without the name of the file.
    fn read(name: &str, content: &[u8]) -> Result<Vec<Vec<f64>>, String> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("a temporary file can be written");
        let error = |error: NumbersError| {
            assert!(error.fault() == Fault::Input);
            error.to_string().replace(&format!("the numbers `{}`: ", path.display()), "")
        };
        Numbers::read(&path).map(|numbers| numbers.rows).map_err(error)
    }

    #[track_caller]
    fn check(name: &str, content: &str, expected: Result<&[&[f64]], &str>) {
        let found = read(name, content.as_bytes());
        let expected = expected.map(|rows| rows.iter().map(|row| row.to_vec()).collect());
        match (&found, &expected) {
            (Err(found), Err(expected)) => assert!(found.starts_with(expected), "{found}"),
            _ => assert_eq!(found, expected.map_err(String::from), "{content}"),
        }
    }

    #[test]
    fn text_has_a_row_per_line() {
        check("a.csv", "# loads\n1,2.5\n\n3e2 4\n", Ok(&[&[1.0, 2.5], &[300.0, 4.0]]));
        check("a.txt", "7\n", Ok(&[&[7.0]]));
        check("a.csv", "1,2\n3\n", Err("line 2: this row has 1 number, but the first row has 2"));
        check("a.csv", "1,x\n", Err("line 1: expected a number, found `x`"));
        check("a.csv", "1,-2\n", Err("line 1: expected a number from 0 to 1e100, found -2"));
        check("a.csv", "1,NaN\n", Err("line 1: expected a number from 0 to 1e100, found NaN"));
        check("a.csv", "inf\n", Err("line 1: expected a number from 0 to 1e100, found inf"));
        check("a.csv", "1,,2\n", Err("line 1: a number is missing before or after a comma"));
        check("a.csv", "\n", Err("line 1: there are no numbers"));
    }

    #[test]
    fn json_has_a_list_of_rows() {
        check("a.json", "[[1, 2],\n[3, 4.5]]", Ok(&[&[1.0, 2.0], &[3.0, 4.5]]));
        check("a.json", "[[1, 2],\n[3]]", Err("line 2: this row has 1 number, but the first row has 2"));
        check("a.json", "[[1,\n-2]]", Err("line 2: expected a number from 0"));
        check("a.json", "[[]]", Err("line 1: there are no numbers"));
        check(
            "a.json",
            "[[1, \"2\"]]",
            Err("line 1: expected a list of rows such as [[90, 132], [20, 107]], or "),
        );
        check("a.json", "{\"logical_count\": [[1, 2],\n[3, 4]], \"x\": 1}", Ok(&[&[1.0, 2.0], &[3.0, 4.0]]));
        check("a.json", "{\"logical_count\": [[1, 2],\n[3]]}", Err("line 2: this row has 1 number"));
    }

    #[test]
    fn a_file_that_is_not_there_is_a_usage_error() {
        let error = Numbers::read(Path::new("no/such.npy")).expect_err("there is none");
        assert!(error.fault() == Fault::Usage && error.to_string().starts_with("cannot read the numbers `"));
    }
}
