//! Matrix Market `.mtx` files (R. Boisvert, R. Pozo, K. Remington, "The Matrix Market exchange formats",
//! NISTIR 5935, 1996), as communication matrices.
//!
//! The entry in row `i` and column `j` is the number of bytes sent from task `i` to task `j`; entries of a symmetric
//! matrix count in both directions. Entries of a pattern are one byte. Equal entries are added up, and the diagonal is
//! ignored. Supported are `coordinate` and `array`, `general` and `symmetric`, with non-negative integers; for matrices
//! that are multiplied ([`nonzeros`]), `coordinate` with any values.

use std::fmt::Write as _;

use super::{MAX_EDGES, MAX_VERTICES, Matrix, check_sparsity, edge, ends, merge, tasks};
use crate::database::{Database, Edge};
use crate::files::AtLine;
use crate::memory;
use crate::table::count;

/// The content of the first line.
#[derive(Clone, Copy)]
struct Banner {
    is_dense: bool,
    is_pattern: bool,
    is_symmetric: bool,
}

/// Parses a file as a task graph.
pub(super) fn read(text: &str) -> Result<Database, AtLine> {
    let Start { banner, mut lines, size_line, vertices, entries } = start(text, false)?;
    let mut edges: Vec<Edge> = Vec::new();
    let mut found = 0;
    // Dense matrices are stored by column; symmetric ones from the diagonal down.
    let (mut row, mut column) = (0, 0);
    for (line, text) in &mut lines {
        found += 1;
        check_count(found, entries, line)?;
        let (from, to, bytes) = if banner.is_dense {
            let at = (row as u32, column as u32);
            row += 1;
            if row == vertices {
                column += 1;
                row = if banner.is_symmetric { column } else { 0 };
            }
            (at.0, at.1, parse_bytes(text).map_err(|reason| (line, reason))?)
        } else {
            parse_entry(text, vertices, banner).map_err(|reason| (line, reason))?
        };
        if from == to || bytes == 0 {
            continue;
        }
        memory::push(&mut edges, edge(from, to, 1, bytes)).map_err(|reason| (line, reason))?;
        if banner.is_symmetric {
            memory::push(&mut edges, edge(to, from, 1, bytes)).map_err(|reason| (line, reason))?;
        }
    }
    check_end(found, entries, vertices, size_line)?;
    let mut database = tasks(vertices);
    database.edges = merge(edges).map_err(|reason| (size_line, reason))?;
    Ok(database)
}

/// Parses a file as a nonzero pattern; values are ignored.
pub(super) fn nonzeros(text: &str) -> Result<Matrix, AtLine> {
    let Start { banner, lines, size_line, vertices, entries } = start(text, true)?;
    let (mut all, mut found) = (Vec::new(), 0);
    for (line, text) in lines {
        found += 1;
        check_count(found, entries, line)?;
        let mut words = text.split_ascii_whitespace();
        let (Some(row), Some(column)) = (words.next(), words.next()) else {
            return Err((line, format!("expected a row and a column, found `{text}`")));
        };
        // Values are ignored, but other text is a mistake: a complex value has two numbers.
        let is_number = |word: &str| word.parse::<f64>().is_ok();
        if !words.clone().all(is_number) || words.count() > 2 {
            return Err((line, format!("expected a row, a column and a value, found `{text}`")));
        }
        let number = |text| parse_vertex(text, vertices).map_err(|reason| (line, reason));
        let (row, column) = (number(row)?, number(column)?);
        if row != column {
            memory::push(&mut all, (row, column)).map_err(|reason| (line, reason))?;
        }
    }
    check_end(found, entries, vertices, size_line)?;
    Ok(Matrix { rows: vertices, entries: all, is_symmetric: banner.is_symmetric })
}

/// The header of a file, and the remaining lines with their numbers.
struct Start<'a, L: Iterator<Item = (usize, &'a str)>> {
    banner: Banner,
    lines: L,
    size_line: usize,
    vertices: usize,
    entries: usize,
}

/// Parses the header; `is_numerical` for a matrix that is multiplied rather than a communication matrix.
fn start(text: &str, is_numerical: bool) -> Result<Start<'_, impl Iterator<Item = (usize, &str)>>, AtLine> {
    let banner =
        parse_banner(text.lines().next().unwrap_or_default(), is_numerical).map_err(|reason| (1, reason))?;
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('%'));
    let (size_line, sizes) =
        lines.next().ok_or((1, "expected a line of sizes after the comments".to_string()))?;
    let (vertices, entries) = parse_sizes(sizes, banner).map_err(|reason| (size_line, reason))?;
    Ok(Start { banner, lines, size_line, vertices, entries })
}

/// Checks that the number of entries so far does not exceed the header.
fn check_count(found: usize, entries: usize, line: usize) -> Result<(), AtLine> {
    if found > entries {
        return Err((line, format!("there are more entries than the {entries} of the size line")));
    }
    Ok(())
}

/// Checks that all entries were found, and that there are enough for the number of vertices.
fn check_end(found: usize, entries: usize, vertices: usize, size_line: usize) -> Result<(), AtLine> {
    if found < entries {
        let entries = count(entries as u64, "entry");
        return Err((size_line, format!("the size line says {entries}, but the file has {found}")));
    }
    check_sparsity(vertices, found).map_err(|reason| (size_line, reason))
}

/// Formats a file as a sparse matrix with one entry per edge.
pub(super) fn write(database: &Database) -> String {
    let mut text = String::from("%%MatrixMarket matrix coordinate integer general\n");
    text.push_str("% row: sender, column: receiver, value: bytes\n");
    let (objects, edges) = (database.objects.len(), database.edges.len());
    let _ = writeln!(text, "{objects} {objects} {edges}");
    for (edge, (from, to)) in database.edges.iter().filter_map(|edge| Some((edge, ends(edge)?))) {
        let _ = writeln!(text, "{} {} {}", from + 1, to + 1, edge.bytes);
    }
    text
}

fn parse_banner(line: &str, is_numerical: bool) -> Result<Banner, String> {
    let lower = line.to_lowercase();
    let words: Vec<&str> = lower.split_ascii_whitespace().collect();
    let [first, "matrix", layout, field, symmetry] = words.as_slice() else {
        return Err("expected a first line such as `%%MatrixMarket matrix coordinate integer general`".into());
    };
    if *first != "%%matrixmarket" {
        return Err("expected a first line that begins with `%%MatrixMarket`".into());
    }
    let is_dense = match *layout {
        "coordinate" => false,
        "array" if !is_numerical => true,
        "array" => return Err("a sparse matrix has the layout `coordinate`, found `array`".into()),
        other => return Err(format!("the layout is `coordinate` or `array`, found `{other}`")),
    };
    let is_pattern = match *field {
        "pattern" if !is_dense => true,
        "integer" | "real" => false,
        "complex" if is_numerical => false,
        other => return Err(format!("bytes are `integer`, `real` or `pattern`, found `{other}`")),
    };
    let is_symmetric = match *symmetry {
        "general" => false,
        "symmetric" => true,
        "skew-symmetric" | "hermitian" if is_numerical => true,
        other => return Err(format!("communication is `general` or `symmetric`, found `{other}`")),
    };
    Ok(Banner { is_dense, is_pattern, is_symmetric })
}

/// The numbers of vertices and entries.
fn parse_sizes(line: &str, banner: Banner) -> Result<(usize, usize), String> {
    let numbers: Option<Vec<usize>> = line.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    let (rows, columns, entries) = match (numbers.as_deref(), banner.is_dense) {
        (Some(&[rows, columns, entries]), false) => (rows, columns, Some(entries)),
        (Some(&[rows, columns]), true) => (rows, columns, None),
        _ => {
            return Err(format!(
                "expected the numbers of rows, columns and (sparse) entries, found `{line}`"
            ));
        }
    };
    if rows != columns {
        return Err(format!(
            "a matrix of {} and {} is no task graph; give a square matrix",
            count(rows as u64, "row"),
            count(columns as u64, "column")
        ));
    }
    let whole = || {
        if banner.is_symmetric { rows.checked_mul(rows + 1).map(|n| n / 2) } else { rows.checked_mul(rows) }
    };
    match entries.or_else(whole) {
        Some(entries) if rows <= MAX_VERTICES && entries <= 2 * MAX_EDGES => Ok((rows, entries)),
        _ => Err(format!("it has more than {MAX_VERTICES} rows or {} entries", 2 * MAX_EDGES)),
    }
}

/// Parses an entry of a sparse matrix: sender, receiver (from 0) and bytes.
fn parse_entry(line: &str, vertices: usize, banner: Banner) -> Result<(u32, u32, u64), String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (row, column, value) = match (words.as_slice(), banner.is_pattern) {
        (&[row, column], true) => (row, column, "1"),
        (&[row, column, value], false) => (row, column, value),
        (_, true) => return Err(format!("expected a row and a column, found `{line}`")),
        (_, false) => return Err(format!("expected a row, a column and a value, found `{line}`")),
    };
    let bytes = parse_bytes(value).map_err(|reason| {
        format!("{reason}; if the matrix is numerical, declare it as `pattern` and omit the values")
    })?;
    Ok((parse_vertex(row, vertices)?, parse_vertex(column, vertices)?, bytes))
}

/// Parses a row or column number; the result is counted from 0.
fn parse_vertex(text: &str, vertices: usize) -> Result<u32, String> {
    match text.parse::<usize>() {
        Ok(number) if (1..=vertices).contains(&number) => Ok(number as u32 - 1),
        _ => Err(format!("expected a row or column from 1 to {vertices}, found `{text}`")),
    }
}

/// Parses a number of bytes.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    if let Ok(bytes) = text.parse() {
        return Ok(bytes);
    }
    // Some programs write integers as 1.5e3; beyond 2^53 this is not exact.
    match text.parse::<f64>() {
        Ok(bytes) if bytes >= 0.0 && bytes.fract() == 0.0 && bytes <= 9_007_199_254_740_992.0 => {
            Ok(bytes as u64)
        }
        _ => Err(format!("expected a whole number of bytes that is not negative, found `{text}`")),
    }
}
