//! Aligned text tables, and numbers with units.
//!
//! Cells may have text from files: control characters are escaped, and columns hold at most 200 characters.
//!
//! Each number is scaled to its own unit. A caller that wants a column in one unit formats the numbers itself.

use crate::quote::{escaped, quoted};

/// Formats rows as lines: the first column is left-aligned, the others right-aligned, two spaces between columns.
///
/// Rows may have different lengths. Lines have no trailing spaces.
pub fn aligned<C: AsRef<str>>(rows: &[Vec<C>]) -> String {
    let cells = |row: &Vec<C>| row.iter().map(|cell| quoted(cell.as_ref())).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            match column {
                0 => line.extend([cell.as_str(), &padding]),
                _ => line.extend(["  ", &padding, cell]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats rows as CSV (RFC 4180, except that lines end with a line feed). Fields with commas, quotes or line breaks
/// are quoted.
pub fn csv<C: AsRef<str>>(rows: &[Vec<C>]) -> String {
    let field = |cell: &C| match cell.as_ref() {
        text if text.contains([',', '"', '\n', '\r']) => format!("\"{}\"", text.replace('"', "\"\"")),
        text => text.into(),
    };
    rows.iter().map(|row| row.iter().map(field).collect::<Vec<_>>().join(",") + "\n").collect()
}

/// Formats names and values as lines; both columns are left-aligned.
pub fn pairs<N: AsRef<str>, V: AsRef<str>>(pairs: &[(N, V)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
    let line = |(name, value): &(N, V)| {
        let (name, value) = (name.as_ref(), escaped(value.as_ref()));
        format!("{name:width$}  {value}").trim_end().to_string() + "\n"
    };
    pairs.iter().map(line).collect()
}

/// A volume: `640 B`, `1.5 kB`, `2.33 GB` (powers of 1000).
pub fn bytes(bytes: impl Into<u128>) -> String {
    let bytes = bytes.into();
    if bytes < 1000 {
        format!("{bytes} B")
    } else {
        scaled(bytes as f64, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
    }
}

/// A time: `1.25 us`, `12.5 ms`, `3.2 s`, `5400 s`.
pub fn seconds(seconds: f64) -> String {
    if seconds == 0.0 {
        "0 s".into()
    } else if seconds.abs() >= 1.0 {
        format!("{} s", digits(seconds))
    } else {
        scaled(seconds * 1e9, &["ns", "us", "ms", "s"])
    }
}

/// A number without a unit: `3`, `10.5`, `0.333`.
pub fn plain(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A fraction as a percentage: `27.3 %`.
pub fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

/// A number with its noun in singular or plural: `1 object`, `12 objects`, `2 processes`, `3 vertices`.
pub fn count(number: impl Into<u128>, thing: &str) -> String {
    match number.into() {
        1 => format!("1 {thing}"),
        number => format!("{number} {}", plural(thing)),
    }
}

/// The plural of a noun.
fn plural(thing: &str) -> String {
    if let Some(stem) = thing.strip_suffix("ex") {
        format!("{stem}ices")
    } else if let Some(stem) = thing.strip_suffix("ry") {
        format!("{stem}ries")
    } else if thing.ends_with("ss") || thing.ends_with("ch") {
        format!("{thing}es")
    } else {
        format!("{thing}s")
    }
}

/// The clause with all numbers of a thing: `there is 1 PE (0)`, `there are 2 PEs (0 and 1)`, `there are 8 PEs (0 to 7)`.
pub fn there_are(number: usize, thing: &str) -> String {
    match number {
        0 => format!("there are no {}", plural(thing)),
        1 => format!("there is 1 {thing} (0)"),
        2 => format!("there are 2 {} (0 and 1)", plural(thing)),
        _ => format!("there are {number} {} (0 to {})", plural(thing), number - 1),
    }
}

/// `number` in the largest of `units` (each 1000 times the one before) in which it is at least 1.
fn scaled(mut number: f64, units: &[&str]) -> String {
    let mut units = units.iter().peekable();
    let mut unit = units.next().copied().unwrap_or_default();
    // A number that rounds to 1000 is shown as 1 of the next unit.
    while number.abs() >= 999.5 && units.peek().is_some() {
        number /= 1000.0;
        unit = units.next().copied().unwrap_or_default();
    }
    format!("{} {unit}", digits(number))
}

/// Three significant digits, but never fewer than the digits before the decimal point.
fn digits(number: f64) -> String {
    let places = match number.abs() {
        n if n >= 99.95 => 0,
        n if n >= 9.995 => 1,
        _ => 2,
    };
    format!("{number:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["strategy", "ms"], vec!["A", "12.5", "x"], vec!["LongerThanThat"], vec!["B", ""]];
        let expected = "strategy          ms\nA               12.5  x\nLongerThanThat\nB\n";
        assert_eq!(aligned(&rows), expected);
        assert_eq!(aligned::<&str>(&[]), "");
        assert_eq!(
            pairs(&[("PEs", "4"), ("objects", "12"), ("none", "")]),
            "PEs      4\nobjects  12\nnone\n"
        );
    }

    #[test]
    fn nouns_have_their_plural() {
        for (number, thing, text) in [
            (1u64, "process", "1 process"),
            (2, "process", "2 processes"),
            (0, "vertex", "0 vertices"),
            (3, "entry", "3 entries"),
            (2, "switch", "2 switches"),
            (2, "more cable", "2 more cables"),
        ] {
            assert_eq!(count(number, thing), text);
        }
    }

    #[test]
    fn fields_of_csv_with_separators_are_quoted() {
        let rows = [vec!["name", "why"], vec!["A:x=1,y=2", "say \"B\""], vec!["two\nlines", ""]];
        assert_eq!(csv(&rows), "name,why\n\"A:x=1,y=2\",\"say \"\"B\"\"\"\n\"two\nlines\",\n");
        assert_eq!(csv::<&str>(&[]), "");
    }

    #[test]
    fn plain_numbers_have_no_trailing_zeros() {
        for (number, text) in [(0.0, "0"), (3.0, "3"), (10.5, "10.5"), (1.0 / 3.0, "0.333"), (1200.0, "1200")]
        {
            assert_eq!(plain(number), text);
        }
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (number, text) in [
            (0u64, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (12_345, "12.3 kB"),
            (999_499, "999 kB"),
            (999_999, "1.00 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(number), text);
        }
        for (number, text) in [
            (0.0, "0 s"),
            (1.25e-9, "1.25 ns"),
            (0.000_999_99, "1.00 ms"),
            (0.0125, "12.5 ms"),
            (3.2, "3.20 s"),
            (5400.0, "5400 s"),
        ] {
            assert_eq!(seconds(number), text);
        }
        assert_eq!((percent(0.2731), percent(0.0)), ("27.3 %".into(), "0.0 %".into()));
        assert_eq!((count(1u64, "move"), count(0u64, "move")), ("1 move".into(), "0 moves".into()));
    }
}
