//! Square matrices of text (`.mat`), as TreeMatch reads and writes them.
//!
//! A line per task: what it sends to each, in bytes, with blanks or commas between; the diagonal is left out.
//! Empty lines and lines that begin with `#` do not count.

use std::fmt::Write as _;

use super::matrix_market::parse_bytes;
use super::{Fault, MAX_VERTICES, edge, ends, merge, tasks};
use crate::database::Database;

/// The task graph of a file with this text.
pub(super) fn read(text: &str) -> Result<Database, Fault> {
    let (mut edges, mut vertices, mut rows) = (Vec::new(), None, 0usize);
    let mut last = 1;
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        last = line;
        let words = text.split(|letter: char| letter == ',' || letter.is_ascii_whitespace());
        let mut columns = 0usize;
        for word in words.filter(|word| !word.is_empty()) {
            let bytes = parse_bytes(word).map_err(|reason| (line, reason))?;
            if bytes > 0 && columns != rows {
                edges.push(edge(rows as u32, columns as u32, 1, bytes));
            }
            columns += 1;
        }
        let vertices = *vertices.get_or_insert(columns);
        if columns != vertices {
            return Err((line, format!("there are {columns} numbers, and the first line has {vertices}")));
        }
        if rows == vertices || vertices > MAX_VERTICES {
            return Err((line, format!("the lines have {vertices} numbers, and this is one line more")));
        }
        rows += 1;
    }
    let columns = vertices.unwrap_or(0);
    if columns != rows {
        return Err((
            last,
            format!("there are {rows} lines of {columns} numbers; give a line for each task"),
        ));
    }
    let mut database = tasks(rows);
    database.edges = merge(edges).map_err(|reason| (1, reason))?;
    Ok(database)
}

/// The text of a file.
pub(super) fn write(database: &Database) -> String {
    let mut text = String::new();
    let objects = database.objects.len();
    let mut edges: Vec<(u32, u32, u64)> = Vec::new();
    edges
        .extend(database.edges.iter().filter_map(|edge| ends(edge).map(|(from, to)| (from, to, edge.bytes))));
    edges.sort_unstable();
    let mut edges = edges.into_iter().peekable();
    for from in 0..objects as u32 {
        for to in 0..objects as u32 {
            let mut bytes = 0u64;
            while let Some(edge) = edges.next_if(|edge| (edge.0, edge.1) == (from, to)) {
                bytes = bytes.saturating_add(edge.2);
            }
            let blank = if to == 0 { "" } else { " " };
            let _ = write!(text, "{blank}{bytes}");
        }
        text.push('\n');
    }
    text
}
