//! Cells: the parts of a line that are separated by commas or blanks.

use crate::memory;

/// A cell without the blanks around it, and without the quotes of a quoted one.
pub(crate) fn unquoted(cell: &str) -> &str {
    let cell = cell.trim_ascii();
    cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).map_or(cell, str::trim_ascii)
}

/// The cells of a line of numbers, which are separated by commas, blanks, or both.
///
/// # Errors
/// If there is no number before or after a comma, because the numbers after it would move to other columns; or if the
/// cells do not fit into memory.
pub(crate) fn numbers(line: &str) -> Result<Vec<&str>, String> {
    let mut cells = Vec::new();
    for part in line.split(',') {
        let before = cells.len();
        for cell in part.split_ascii_whitespace() {
            memory::push(&mut cells, unquoted(cell))?;
        }
        if cells.len() == before && line.contains(',') {
            return Err("a number is missing before or after a comma".into());
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_separated_by_commas_or_blanks() {
        for (line, expected) in [
            ("1 2\t3", Ok("1 2 3")),
            ("1,2, 3", Ok("1 2 3")),
            ("\"1\", \"2\" 3", Ok("1 2 3")),
            ("", Ok("")),
            ("1,,3", Err("a number is missing before or after a comma")),
            ("1,2,", Err("a number is missing before or after a comma")),
        ] {
            let found = numbers(line).map(|cells| cells.join(" "));
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{line}");
        }
        assert_eq!(["\" 1 \"", "\"1", "\"", " x "].map(unquoted), ["1", "\"1", "\"", "x"]);
    }
}
