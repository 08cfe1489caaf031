//! Edge lists, `src,dst,bytes[,messages]` per line.
//!
//! Vertices count from 0 and there are as many as the highest number asks for. An edge is from a sender to a
//! receiver; equal pairs add up, and what a vertex sends to itself is left out. Messages are 1 if not given;
//! bytes may be written as `1.5e3`. Empty lines, lines that begin with `#` and a first line of names do not
//! count.

use std::fmt::Write as _;

use super::matrix_market::parse_bytes;
use super::{Fault, MAX_VERTICES, check_sparsity, edge, ends, merge, tasks};
use crate::database::Database;

/// A line of a file: sender, receiver, bytes and messages.
pub(crate) type Row = (u32, u32, u64, u64);

/// The task graph of a file with this text.
pub(super) fn read(text: &str) -> Result<Database, Fault> {
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
            edges.push(edge(from, to, messages, bytes));
        }
    }
    check_sparsity(vertices, text.lines().count()).map_err(|reason| (last, reason))?;
    let mut database = tasks(vertices);
    database.edges = merge(edges).map_err(|reason| (1, reason))?;
    Ok(database)
}

/// The lines that count, with their numbers from 1, or what is wrong with them.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = Result<(usize, Row), Fault>> {
    let counts = |&(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with('#');
    let lines = (1..).zip(text.lines().map(str::trim)).filter(counts);
    let is_names = |line: &str| line.starts_with(|first: char| first.is_alphabetic() || first == '"');
    let after_names = lines.enumerate().filter(move |&(place, (_, line))| place > 0 || !is_names(line));
    after_names.map(|(_, (number, line))| match parse_line(line) {
        Ok(row) => Ok((number, row)),
        Err(reason) => Err((number, reason)),
    })
}

/// The text of a file. Where nobody talks to the last object, it talks to itself, so that it is counted.
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
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    if !(3..=4).contains(&fields.len()) {
        return Err(expected());
    }
    let number = |text: &str| text.parse::<u64>().map_err(|_| expected());
    let vertex = |text: &str| match number(text)? {
        vertex if vertex < MAX_VERTICES as u64 => Ok(vertex as u32),
        vertex => Err(format!("vertex {vertex} is beyond the {MAX_VERTICES} that fit; number them from 0")),
    };
    let bytes = parse_bytes(fields[2]).map_err(|_| expected())?;
    let messages = fields.get(3).map_or(Ok(1), |text| number(text))?;
    Ok((vertex(fields[0])?, vertex(fields[1])?, bytes, messages))
}
