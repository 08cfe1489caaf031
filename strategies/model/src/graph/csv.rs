//! Edge lists, `src,dst,bytes[,messages]` per line.
//!
//! Vertices are numbered from 0; their number is the highest number plus 1. An edge leads from a sender to a receiver.
//! Equal pairs are added up, and loops are dropped. The number of messages defaults to 1; bytes may be written as
//! `1.5e3`, and fields may be in quotes. Empty lines and lines that begin with `#` are ignored, and so is a first line with
//! the names of the columns, `src,dst,bytes` or `src,dst,bytes,messages`. A file has at least one edge; a loop of 0 bytes
//! declares a vertex without edges.

use std::fmt::Write as _;

use super::matrix_market::parse_bytes;
use super::{MAX_VERTICES, check_sparsity, edge, ends, merge, tasks};
use crate::cells::unquoted;
use crate::database::Database;
use crate::files::AtLine;
use crate::memory;

/// The content of a line: sender, receiver, bytes and messages.
pub type Row = (u32, u32, u64, u64);

/// Parses a file.
pub(super) fn read(text: &str) -> Result<Database, AtLine> {
    let (mut edges, mut vertices) = (Vec::new(), 0);
    // The line of the highest vertex.
    let mut last = 1;
    for row in rows(text) {
        let (number, (from, to, bytes, messages)) = row?;
        let highest = from.max(to) as usize;
        if highest >= vertices {
            (vertices, last) = (highest + 1, number);
        }
        if from != to {
            memory::push(&mut edges, edge(from, to, messages, bytes)).map_err(|reason| (number, reason))?;
        }
    }
    check_sparsity(vertices, text.lines().count()).map_err(|reason| (last, reason))?;
    let mut database = tasks(vertices);
    database.edges = merge(edges).map_err(|reason| (1, reason))?;
    Ok(database)
}

/// The names of the columns; the last one may be missing.
const HEADER: [&str; 4] = ["src", "dst", "bytes", "messages"];

/// The rows with their line numbers from 1, or errors. A text without rows has one error.
pub fn rows(text: &str) -> impl Iterator<Item = Result<(usize, Row), AtLine>> {
    let has_content = |&(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    let lines = (1..).zip(text.lines().map(str::trim_ascii)).filter(has_content);
    let after_header = lines.enumerate().filter(|&(place, (_, line))| place > 0 || !is_header(line));
    let mut rows = after_header
        .map(|(_, (number, line))| {
            parse_line(line).map(|row| (number, row)).map_err(|reason| (number, reason))
        })
        .peekable();
    let is_empty = rows.peek().is_none();
    let empty = || (1, "the file has no task; expected lines such as `0,1,4096` (src,dst,bytes)".to_string());
    is_empty.then(|| Err(empty())).into_iter().chain(rows)
}

/// Whether a line has the names of the columns.
fn is_header(line: &str) -> bool {
    let names: Vec<&str> = line.split(',').map(unquoted).collect();
    let is_same = |(name, known): (&&str, &str)| name.eq_ignore_ascii_case(known);
    (3..=4).contains(&names.len()) && names.iter().zip(HEADER).all(is_same)
}

/// Formats a file. If the last object has no edges, it gets a loop of 0 bytes, so that readers count it.
pub(super) fn write(database: &Database) -> String {
    let mut text = String::from("src,dst,bytes,messages\n");
    let mut last = 0;
    for (edge, (from, to)) in database.edges.iter().filter_map(|edge| Some((edge, ends(edge)?))) {
        let _ = writeln!(text, "{from},{to},{},{}", edge.bytes, edge.messages);
        last = last.max(from + 1).max(to + 1);
    }
    let objects = database.objects.len();
    if (last as usize) < objects {
        let _ = writeln!(text, "{0},{0},0,0", objects - 1);
    }
    text
}

fn parse_line(line: &str) -> Result<Row, String> {
    let expected = || format!("expected `src,dst,bytes` or `src,dst,bytes,messages`, found `{line}`");
    let fields: Vec<&str> = line.split(',').map(unquoted).collect();
    if !(3..=4).contains(&fields.len()) {
        let is_matrix = fields.len() > 4 && fields.iter().all(|field| field.parse::<f64>().is_ok());
        let hint = if is_matrix { "; a matrix with a row for each task has the ending .mat" } else { "" };
        return Err(format!("{}{hint}", expected()));
    }
    let number = |text: &str| text.parse::<u64>().map_err(|_| expected());
    let vertex = |text: &str| match number(text)? {
        vertex if vertex < MAX_VERTICES as u64 => Ok(vertex as u32),
        vertex => Err(format!(
            "vertex {vertex} is too large; vertices are numbered from 0 and below {MAX_VERTICES}"
        )),
    };
    let bytes = parse_bytes(fields[2]).map_err(|_| match fields[2].parse::<f64>() {
        Ok(_) => format!("bytes are whole numbers from 0 to 2^64 - 1, found `{}`", fields[2]),
        Err(_) => expected(),
    })?;
    let messages = fields.get(3).map_or(Ok(1), |text| number(text))?;
    Ok((vertex(fields[0])?, vertex(fields[1])?, bytes, messages))
}
