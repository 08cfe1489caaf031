//! Aligned tables of text, and numbers as a person reads them.
//!
//! Every number chooses its own unit; what shall be compared down a column is written by the caller in one.

/// Rows as lines: the first column to the left, the others to the right, two spaces between.
///
/// Rows may be of different lengths. No line ends in spaces.
pub fn aligned<C: AsRef<str>>(rows: &[Vec<C>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.as_ref().chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let cell = cell.as_ref();
            let padding = " ".repeat(width - cell.chars().count());
            match column {
                0 => line.extend([cell, &padding]),
                _ => line.extend(["  ", &padding, cell]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Names and values as lines: both columns to the left.
pub fn pairs<N: AsRef<str>, V: AsRef<str>>(pairs: &[(N, V)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
    let line = |(name, value): &(N, V)| {
        let (name, value) = (name.as_ref(), value.as_ref());
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

/// A part of a whole: `27.3 %`.
pub fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

/// A number with so many of the thing it counts: `1 object`, `12 objects`.
pub fn count(number: impl Into<u128>, thing: &str) -> String {
    match number.into() {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// `number` in the largest of `units`, each 1000 of the one before, that leaves it at least 1.
fn scaled(mut number: f64, units: &[&str]) -> String {
    let mut units = units.iter().peekable();
    let mut unit = units.next().copied().unwrap_or_default();
    // What would be rounded to 1000 is 1 of the next unit.
    while number.abs() >= 999.5 && units.peek().is_some() {
        number /= 1000.0;
        unit = units.next().copied().unwrap_or_default();
    }
    format!("{} {unit}", digits(number))
}

/// Three significant digits, and all of those before the point.
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
