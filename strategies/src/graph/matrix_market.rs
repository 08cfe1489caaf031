//! Matrix Market `.mtx` files (R. Boisvert, R. Pozo, K. Remington, "The Matrix Market exchange formats",
//! NISTIR 5935, 1996), as communication matrices.
//!
//! The entry in row `i` and column `j` is what task `i` sends to task `j`, in bytes; in a symmetric
//! matrix each of an entry's two places counts. A pattern has one byte per entry. Entries of the same
//! place add up, and the diagonal is left out. Read are `coordinate` and `array`, `general` and
//! `symmetric`, of whole numbers that are not negative; where a matrix is multiplied ([`places`]), `coordinate` of
//! any values.

use std::fmt::Write as _;

use super::spmv::Places;
use super::{Fault, MAX_EDGES, MAX_VERTICES, check_sparsity, edge, ends, merge, tasks};
use crate::database::{Database, Edge};

/// What the first line says.
#[derive(Clone, Copy)]
struct Banner {
    is_dense: bool,
    is_pattern: bool,
    is_symmetric: bool,
}

/// The task graph of a file with this text.
pub(super) fn read(text: &str) -> Result<Database, Fault> {
    let Start { banner, mut lines, size_line, vertices, entries } = start(text, false)?;
    let mut edges: Vec<Edge> = Vec::new();
    let mut found = 0;
    // A dense matrix lists its values column by column; a symmetric one from the diagonal down.
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
        edges.push(edge(from, to, 1, bytes));
        if banner.is_symmetric {
            edges.push(edge(to, from, 1, bytes));
        }
    }
    check_end(found, entries, vertices, size_line)?;
    let mut database = tasks(vertices);
    database.edges = merge(edges).map_err(|reason| (size_line, reason))?;
    Ok(database)
}

/// The places that are not zero of a sparse matrix, whatever its values are.
pub(super) fn places(text: &str) -> Result<Places, Fault> {
    let Start { banner, lines, size_line, vertices, entries } = start(text, true)?;
    let (mut all, mut found) = (Vec::with_capacity(entries.min(text.len() / 4)), 0);
    for (line, text) in lines {
        found += 1;
        check_count(found, entries, line)?;
        let mut words = text.split_ascii_whitespace();
        let (Some(row), Some(column)) = (words.next(), words.next()) else {
            return Err((line, format!("expected a row and a column, found `{text}`")));
        };
        let number = |text| parse_vertex(text, vertices).map_err(|reason| (line, reason));
        let (row, column) = (number(row)?, number(column)?);
        if row != column {
            all.push((row, column));
        }
    }
    check_end(found, entries, vertices, size_line)?;
    Ok(Places { rows: vertices, entries: all, is_symmetric: banner.is_symmetric })
}

/// What a file begins with, and the lines after it, with their numbers.
struct Start<'a, L: Iterator<Item = (usize, &'a str)>> {
    banner: Banner,
    lines: L,
    size_line: usize,
    vertices: usize,
    entries: usize,
}

/// The beginning of a file; `is_numerical`: of a matrix that is multiplied, and not of communication.
fn start(text: &str, is_numerical: bool) -> Result<Start<'_, impl Iterator<Item = (usize, &str)>>, Fault> {
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

/// Whether there may be so many entries.
fn check_count(found: usize, entries: usize, line: usize) -> Result<(), Fault> {
    if found > entries {
        return Err((line, format!("there are more than the {entries} entries the sizes promise")));
    }
    Ok(())
}

/// Whether there are as many entries as the sizes say, and not too few for so many vertices.
fn check_end(found: usize, entries: usize, vertices: usize, size_line: usize) -> Result<(), Fault> {
    if found < entries {
        return Err((size_line, format!("the sizes promise {entries} entries, and there are {found}")));
    }
    check_sparsity(vertices, found).map_err(|reason| (size_line, reason))
}

/// The text of a file: sparse, one entry per edge.
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

/// The number of vertices and of entries.
fn parse_sizes(line: &str, banner: Banner) -> Result<(usize, usize), String> {
    let numbers: Vec<usize> = line.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let (rows, columns, entries) = match (numbers.as_slice(), banner.is_dense) {
        (&[rows, columns, entries], false) => (rows, columns, Some(entries)),
        (&[rows, columns], true) => (rows, columns, None),
        _ => {
            return Err(format!(
                "expected the numbers of rows, columns and (sparse) entries, found `{line}`"
            ));
        }
    };
    if rows != columns {
        return Err(format!("a matrix of {rows} rows and {columns} columns is no task graph; it is square"));
    }
    let whole = || {
        if banner.is_symmetric { rows.checked_mul(rows + 1).map(|n| n / 2) } else { rows.checked_mul(rows) }
    };
    match entries.or_else(whole) {
        Some(entries) if rows <= MAX_VERTICES && entries <= 2 * MAX_EDGES => Ok((rows, entries)),
        _ => Err(format!("it has more than {MAX_VERTICES} rows or {} entries", 2 * MAX_EDGES)),
    }
}

/// A line of a sparse matrix: sender, receiver (from 0) and bytes.
fn parse_entry(line: &str, vertices: usize, banner: Banner) -> Result<(u32, u32, u64), String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (row, column, value) = match (words.as_slice(), banner.is_pattern) {
        (&[row, column], true) => (row, column, "1"),
        (&[row, column, value], false) => (row, column, value),
        (_, true) => return Err(format!("expected a row and a column, found `{line}`")),
        (_, false) => return Err(format!("expected a row, a column and a value, found `{line}`")),
    };
    let bytes = parse_bytes(value).map_err(|reason| {
        format!(
            "{reason}; the values of a numerical matrix are no bytes: declare it `pattern` and leave them out"
        )
    })?;
    Ok((parse_vertex(row, vertices)?, parse_vertex(column, vertices)?, bytes))
}

/// A row or column, from 0.
fn parse_vertex(text: &str, vertices: usize) -> Result<u32, String> {
    match text.parse::<usize>() {
        Ok(number) if (1..=vertices).contains(&number) => Ok(number as u32 - 1),
        _ => Err(format!("expected a row or column from 1 to {vertices}, found `{text}`")),
    }
}

/// A number of bytes.
pub(super) fn parse_bytes(text: &str) -> Result<u64, String> {
    if let Ok(bytes) = text.parse() {
        return Ok(bytes);
    }
    // Programs write whole numbers as 1.5e3, too; beyond 2^53 that would no longer be exact.
    match text.parse::<f64>() {
        Ok(bytes) if bytes >= 0.0 && bytes.fract() == 0.0 && bytes <= 9_007_199_254_740_992.0 => {
            Ok(bytes as u64)
        }
        _ => Err(format!("expected a whole number of bytes that is not negative, found `{text}`")),
    }
}
