//! Scotch `.grf` files (F. Pellegrini, "Scotch and libScotch user's guide", graph files).
//!
//! Numbers separated by whitespace: the version 0, the numbers of vertices and arcs, the number of the first vertex,
//! and three digits for the presence of vertex labels, edge weights and vertex weights. For each vertex: its label, its
//! weight (here the load), its number of arcs, and for each arc the weight and the other end (the label, if there are
//! labels). Both ends have an arc of the same weight: the bytes exchanged in both directions. Half of the weight is
//! assigned to each direction; an odd byte goes from the lower to the higher vertex. Loops are ignored.
//!
//! Weights are integers without a unit. They are read as seconds; loads with fractions of seconds are written in
//! nanoseconds.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use super::{Graph, MAX_EDGES, MAX_VERTICES, check_tasks, edge, merge, tasks};
use crate::database::Database;
use crate::files::AtLine;
use crate::table::count;

/// The largest load in units: integers up to this value are exact in `f64`.
const MAX_WEIGHT: f64 = 9_007_199_254_740_992.0;

/// The words of a file with their lines.
struct Numbers<'a> {
    words: Box<dyn Iterator<Item = (usize, &'a str)> + 'a>,
    /// The line of the last word.
    line: usize,
}

impl<'a> Numbers<'a> {
    fn of(text: &'a str) -> Self {
        let lines = (1..).zip(text.lines());
        let words =
            lines.flat_map(|(line, text)| text.split_ascii_whitespace().map(move |word| (line, word)));
        Numbers { words: Box::new(words), line: 1 }
    }

    fn next<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, AtLine> {
        let Some((line, word)) = self.words.next() else {
            return Err((self.line, format!("expected {what}, found the end of the file")));
        };
        self.line = line;
        word.parse().map_err(|_| (line, format!("expected {what}, found `{word}`")))
    }
}

/// An arc: the vertex, the other end as written, the weight, and the line.
type Arc = (u32, u64, u64, usize);

/// Parses a file.
pub(super) fn read(text: &str) -> Result<Database, AtLine> {
    let mut numbers = Numbers::of(text);
    let version: u64 = numbers.next("the version of the format, 0")?;
    if version != 0 {
        return Err((numbers.line, format!("the version is {version}, but only version 0 is supported")));
    }
    let vertices: usize = numbers.next("the number of vertices")?;
    let arcs: usize = numbers.next("the number of arcs")?;
    if vertices > MAX_VERTICES || arcs > 2 * MAX_EDGES {
        let sentence = format!(
            "{vertices} vertices and {arcs} arcs are more than the allowed {MAX_VERTICES} vertices and {} arcs",
            2 * MAX_EDGES
        );
        return Err((numbers.line, sentence));
    }
    // Every number needs at least two characters, so the file size bounds the numbers before memory is allocated.
    if text.len() < 2 * (vertices + arcs) {
        return Err((
            numbers.line,
            format!(
                "{} and {} do not fit into a file of this size",
                count(vertices as u64, "vertex"),
                count(arcs as u64, "arc")
            ),
        ));
    }
    // An arc needs no more than a vertex.
    check_tasks(vertices + arcs).map_err(|reason| (numbers.line, reason))?;
    let base: u64 = numbers.next("the number of the first vertex, 0 or 1")?;
    let flags: u32 = numbers.next("three digits 0 or 1 for labels, weights of edges and of vertices")?;
    let [has_labels, has_edge_weights, has_loads] = match (flags / 100, flags / 10 % 10, flags % 10) {
        (a @ 0..=1, b @ 0..=1, c @ 0..=1) => [a, b, c].map(|digit| digit == 1),
        _ => return Err((numbers.line, format!("the flags are up to three digits 0 or 1, found {flags}"))),
    };
    let mut database = tasks(vertices);
    let (mut all, mut labels) = (Vec::<Arc>::with_capacity(arcs), FxHashMap::default());
    for v in 0..vertices {
        if has_labels {
            let label: u64 = numbers.next("the label of a vertex")?;
            if labels.insert(label, v as u32).is_some() {
                return Err((numbers.line, format!("the label {label} is used twice")));
            }
        }
        if has_loads {
            database.objects[v].load_seconds = numbers.next::<u64>("the weight of a vertex")? as f64;
        }
        let degree: usize = numbers.next("the number of arcs of a vertex")?;
        if degree > arcs - all.len() {
            return Err((
                numbers.line,
                format!("vertex {v} (from 0) has more arcs than the total of {arcs} in the header"),
            ));
        }
        for _ in 0..degree {
            let weight = if has_edge_weights { numbers.next("the weight of an edge")? } else { 1 };
            let end = numbers.next("the vertex at the end of an arc")?;
            all.push((v as u32, end, weight, numbers.line));
        }
    }
    if all.len() < arcs {
        return Err((
            numbers.line,
            format!("the header says {}, but the file has {}", count(arcs as u64, "arc"), all.len()),
        ));
    }
    if let Some((line, word)) = numbers.words.next() {
        return Err((line, format!("the graph ends before `{word}`; remove the rest")));
    }
    let vertex = |end: u64| match has_labels {
        true => labels.get(&end).copied(),
        false => end.checked_sub(base).filter(|&end| end < vertices as u64).map(|end| end as u32),
    };
    database.edges = edges(&all, vertex)?;
    Ok(database)
}

/// Combines the two arcs of each edge into edges of both directions.
fn edges(arcs: &[Arc], vertex: impl Fn(u64) -> Option<u32>) -> Result<Vec<crate::database::Edge>, AtLine> {
    // (lower end, higher end, whether the arc belongs to the higher end, weight, line)
    let mut halves = Vec::with_capacity(arcs.len());
    for &(v, end, weight, line) in arcs {
        let Some(u) = vertex(end) else { return Err((line, format!("there is no vertex {end}"))) };
        if u != v {
            halves.push((v.min(u), v.max(u), v > u, weight, line));
        }
    }
    halves.sort_unstable();
    let mut edges = Vec::new();
    for pair in halves.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (low, high, _, weight, line) = pair[0];
        let between = format!("the edge between vertices {low} and {high} (from 0)");
        match pair {
            [(.., false, there, _), (.., true, back, _)] if there == back => (),
            [(.., false, _, _), (.., true, _, line)] => {
                return Err((
                    *line,
                    format!("{between} has two different weights; use the same weight for both arcs"),
                ));
            }
            [_] => return Err((line, format!("{between} has only one arc; give both ends an arc"))),
            [.., (.., line)] => return Err((*line, format!("{between} occurs twice"))),
            [] => (),
        }
        edges.extend((weight > weight / 2).then(|| edge(low, high, 1, weight - weight / 2)));
        edges.extend((weight > 1).then(|| edge(high, low, 1, weight / 2)));
    }
    merge(edges).map_err(|reason| (1, reason))
}

/// Formats a file: always with edge weights, and with vertex weights unless all loads are one second.
pub(super) fn write(database: &Database) -> String {
    let graph = Graph::of(database);
    let has_loads = database.objects.iter().any(|o| o.load_seconds != 1.0);
    let mut text =
        format!("0\n{} {}\n0 {:03}\n", graph.vertices(), 2 * graph.edges(), 10 + u8::from(has_loads));
    let weights = weights(database);
    for (v, weight) in weights.into_iter().enumerate() {
        if has_loads {
            let _ = write!(text, "{weight} ");
        }
        let _ = write!(text, "{}", graph.degree(v));
        for (u, weight) in graph.neighbors(v) {
            let _ = write!(text, " {weight} {u}");
        }
        text.push('\n');
    }
    text
}

/// The loads as written: in seconds if all are integers, otherwise in nanoseconds.
fn weights(database: &Database) -> Vec<u64> {
    let is_whole = database.objects.iter().all(|o| o.load_seconds.fract() == 0.0);
    let per_second = if is_whole { 1.0 } else { 1e9 };
    database.objects.iter().map(|o| (o.load_seconds * per_second).round().min(MAX_WEIGHT) as u64).collect()
}

/// Whether `again` is the content of a file written from `database`: the same graph and the same weights.
pub(super) fn is_same(database: &Database, again: &Database) -> bool {
    let loads = again.objects.iter().map(|o| o.load_seconds as u64);
    Graph::of(database) == Graph::of(again) && weights(database).into_iter().eq(loads)
}
