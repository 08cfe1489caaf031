//! Square matrices as text (`.mat`), as read and written by TreeMatch.
//!
//! A line per task with the bytes it sends to each task, separated by blanks or commas; the diagonal is ignored. Empty
//! lines and lines that begin with `#` are ignored.

use std::fmt::Write as _;

use super::matrix_market::parse_bytes;
use super::{MAX_VERTICES, edge, ends, merge, tasks};
use crate::cells::numbers;
use crate::database::Database;
use crate::files::AtLine;
use crate::memory;
use crate::table::count;

/// Parses a file.
pub(super) fn read(text: &str) -> Result<Database, AtLine> {
    let (mut edges, mut vertices, mut rows) = (Vec::new(), None, 0usize);
    let mut last = 1;
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        last = line;
        let mut columns = 0usize;
        for word in numbers(text).map_err(|reason| (line, reason))? {
            let bytes = parse_bytes(word).map_err(|reason| (line, reason))?;
            if bytes > 0 && columns != rows {
                let edge = edge(rows as u32, columns as u32, 1, bytes);
                memory::push(&mut edges, edge).map_err(|reason| (line, reason))?;
            }
            columns += 1;
        }
        let vertices = *vertices.get_or_insert(columns);
        if columns != vertices {
            return Err((
                line,
                format!(
                    "this line has {}, but the first line has {vertices}",
                    count(columns as u64, "number")
                ),
            ));
        }
        if rows == vertices || vertices > MAX_VERTICES {
            let numbers = count(vertices as u64, "number");
            return Err((line, format!("a line has {numbers}, but there are more lines")));
        }
        rows += 1;
    }
    let columns = vertices.unwrap_or(0);
    if columns != rows {
        return Err((
            last,
            format!(
                "found {} of {}; give a line of numbers for each task",
                count(rows as u64, "line"),
                count(columns as u64, "number")
            ),
        ));
    }
    let mut database = tasks(rows);
    database.edges = merge(edges).map_err(|reason| (1, reason))?;
    Ok(database)
}

/// Formats a file.
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
