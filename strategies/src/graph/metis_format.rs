//! METIS `.graph` files (METIS 5 manual, section 4.1.1).
//!
//! The header is `vertices edges [fmt [ncon]]`; the line of vertex `v` has its size (if `fmt` is `1xx`;
//! here the object's bytes), its `ncon` weights (`x1x`; the first is its load in seconds), and its
//! neighbors from 1, each followed by the weight of the edge (`xx1`). Lines that begin with `%` are
//! comments, and an empty line is a vertex without neighbors; what a vertex says of
//! itself as its neighbor does not count. An edge stands in both its ends' lines with the same weight, which is what
//! both exchange; here half of it goes each way, and the odd byte from the lower to the higher.
//!
//! Weights are whole numbers, so loads that are not whole seconds are written in a smaller unit, which a
//! comment names (`% vertex weights are loads in nanoseconds`) and which is read back.

use std::fmt::Write as _;

use super::{Fault, Graph, MAX_VERTICES, edge, tasks};
use crate::database::{Database, Object};

/// What a comment says before the name of the unit of loads.
const IN_UNITS: &str = "% vertex weights are loads in ";

/// Units of loads smaller than seconds: what they are called and how many are a second, smallest first.
const UNITS: &[(&str, f64)] = &[("nanoseconds", 1e9), ("microseconds", 1e6), ("milliseconds", 1e3)];

/// The largest load in units: whole numbers up to here are exact in `f64`.
const MAX_WEIGHT: f64 = 9_007_199_254_740_992.0;

/// The fields of a header.
struct Header {
    vertices: usize,
    edges: usize,
    has_sizes: bool,
    /// Weights per vertex.
    loads: usize,
    has_edge_weights: bool,
}

/// The task graph of a file with this text.
pub(super) fn read(text: &str) -> Result<Database, Fault> {
    let unit_of = |line: &str| {
        let name = line.strip_prefix(IN_UNITS)?.trim_end();
        UNITS.iter().find(|unit| unit.0 == name)
    };
    let per_second = text.lines().find_map(unit_of).map_or(1.0, |unit| unit.1);
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line))
        .filter(|(_, line)| !line.starts_with('%'));
    let (header_line, header) = lines
        .by_ref()
        .find(|(_, line)| !line.trim().is_empty())
        .ok_or((1, "the file is empty; expected a header `vertices edges`".to_string()))?;
    let header = parse_header(header).map_err(|reason| (header_line, reason))?;
    // Before anything is allocated for them.
    let there = lines.clone().count();
    if there < header.vertices {
        let vertices = header.vertices;
        return Err((
            header_line,
            format!("the header says {vertices} vertices, and there are lines for {there}"),
        ));
    }
    let mut database = tasks(header.vertices);
    // (lower end, higher end, whether the line is the lower end's, weight, line)
    let mut halves: Vec<(u32, u32, bool, u64, usize)> = Vec::new();
    let mut loops = 0;
    for v in 0..header.vertices {
        let (line, text) = lines.next().ok_or_else(|| {
            (
                header_line,
                format!("the header says {} vertices, and there are lines for {v}", header.vertices),
            )
        })?;
        let mut numbers = text.split_ascii_whitespace();
        let mut number = |what: &str| match numbers.next() {
            None => Ok(None),
            Some(word) => {
                word.parse::<u64>().map(Some).map_err(|_| (line, format!("expected {what}, found `{word}`")))
            }
        };
        let missing = |what: &str| (line, format!("expected {what}, found the end of the line"));
        let object = &mut database.objects[v];
        if header.has_sizes {
            object.bytes =
                Some(number("the size of the vertex")?.ok_or_else(|| missing("the size of the vertex"))?);
        }
        for constraint in 0..header.loads {
            let load = number("a vertex weight")?.ok_or_else(|| missing("a vertex weight"))?;
            if constraint == 0 {
                object.load_seconds = load as f64 / per_second;
            }
        }
        while let Some(neighbor) = number("a neighbor")? {
            if neighbor == 0 || neighbor > header.vertices as u64 {
                return Err((
                    line,
                    format!("there is no vertex {neighbor}; they are 1 to {}", header.vertices),
                ));
            }
            let (v, u) = (v as u32, neighbor as u32 - 1);
            let mut weight = 1;
            if header.has_edge_weights {
                weight = number("the weight of an edge")?.ok_or_else(|| missing("the weight of an edge"))?;
            }
            if u == v {
                loops += 1;
            } else {
                halves.push((v.min(u), v.max(u), v < u, weight, line));
            }
        }
    }
    if let Some((line, _)) = lines.find(|(_, line)| !line.trim().is_empty()) {
        return Err((
            line,
            format!("the header says {} vertices, and there are more lines", header.vertices),
        ));
    }
    halves.sort_unstable();
    for edges in halves.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (low, high, _, weight, line) = edges[0];
        let (a, b) = (low + 1, high + 1);
        match edges {
            [(.., false, there, _), (.., true, back, _)] if there == back => (),
            [(.., false, _, line), (.., true, _, _)] => {
                return Err((*line, format!("the edge {a}-{b} has two weights; give both lines the same")));
            }
            [_] => return Err((line, format!("the edge {a}-{b} stands in only one of its lines"))),
            [.., (.., line)] => return Err((*line, format!("the edge {a}-{b} stands there twice"))),
            [] => (),
        }
        let half = weight / 2;
        if weight > half {
            database.edges.push(edge(low, high, 1, weight - half));
        }
        if half > 0 {
            database.edges.push(edge(high, low, 1, half));
        }
    }
    let found = halves.len() / 2;
    // Whether its header counts loops, the manual does not say.
    if !(found..=found + loops).contains(&header.edges) {
        return Err((header_line, format!("the header says {} edges, and there are {found}", header.edges)));
    }
    database.edges = super::merge(database.edges).map_err(|reason| (header_line, reason))?;
    Ok(database)
}

/// The text of a file: weights of edges always, sizes where all are known, and loads unless all are one
/// second.
pub(super) fn write(database: &Database) -> String {
    let graph = Graph::of(database);
    let objects = &database.objects;
    let has_sizes = has_sizes(objects);
    let has_loads = objects.iter().any(|o| o.load_seconds != 1.0);
    let unit = unit(objects);
    let mut text = String::new();
    if let Some((name, _)) = unit {
        let _ = writeln!(text, "{IN_UNITS}{name}");
    }
    let (sizes, loads) = (u8::from(has_sizes), u8::from(has_loads));
    let _ = writeln!(text, "{} {} {sizes}{loads}1", graph.vertices(), graph.edges());
    for (v, object) in objects.iter().enumerate() {
        let mut words = Vec::with_capacity(2 * graph.degree(v) + 2);
        if let Some(bytes) = object.bytes.filter(|_| has_sizes) {
            words.push(bytes.to_string());
        }
        if has_loads {
            words.push(weight(object, unit).to_string());
        }
        for (neighbor, weight) in graph.neighbors(v) {
            words.extend([(neighbor + 1).to_string(), weight.to_string()]);
        }
        text.push_str(&words.join(" "));
        text.push('\n');
    }
    text
}

/// Whether `again` is what a file of `database` reads back as: the same graph, sizes where all are known,
/// and loads but for less than a unit.
pub(super) fn is_same(database: &Database, again: &Database) -> bool {
    let unit = unit(&database.objects);
    let weights = |of: &Database| of.objects.iter().map(|o| weight(o, unit)).collect::<Vec<_>>();
    let sizes = |of: &Database| of.objects.iter().map(|o| o.bytes).collect::<Vec<_>>();
    Graph::of(database) == Graph::of(again)
        && weights(database) == weights(again)
        && (!has_sizes(&database.objects) || sizes(database) == sizes(again))
}

fn has_sizes(objects: &[Object]) -> bool {
    !objects.is_empty() && objects.iter().all(|o| o.bytes.is_some())
}

/// The smallest unit in which the heaviest of these loads is exact; `None` for seconds, which whole ones
/// are written in.
fn unit(objects: &[Object]) -> Option<&'static (&'static str, f64)> {
    let heaviest = objects.iter().map(|o| o.load_seconds).fold(0.0, f64::max);
    let is_whole = objects.iter().all(|o| o.load_seconds.fract() == 0.0);
    UNITS.iter().find(|unit| !is_whole && heaviest * unit.1 <= MAX_WEIGHT)
}

/// The load of an object as a weight.
fn weight(object: &Object, unit: Option<&(&str, f64)>) -> u64 {
    (object.load_seconds * unit.map_or(1.0, |unit| unit.1)).round().min(MAX_WEIGHT) as u64
}

fn parse_header(line: &str) -> Result<Header, String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let expected = || format!("expected a header `vertices edges [fmt [ncon]]`, found `{line}`");
    if !(2..=4).contains(&words.len()) {
        return Err(expected());
    }
    let number = |text: &str| text.parse::<usize>().map_err(|_| expected());
    let (vertices, edges) = (number(words[0])?, number(words[1])?);
    if vertices > MAX_VERTICES {
        return Err(format!("{vertices} vertices are more than the {MAX_VERTICES} that fit"));
    }
    let format = words.get(2).copied().unwrap_or("0");
    if format.len() > 3 || !format.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
        return Err(format!("the format is up to three digits 0 or 1, found `{format}`"));
    }
    let flag = |place: usize| format.bytes().rev().nth(place) == Some(b'1');
    let constraints = words.get(3).map_or(Ok(1), |text| number(text))?;
    let loads = if flag(1) { constraints } else { 0 };
    Ok(Header { vertices, edges, has_sizes: flag(2), loads, has_edge_weights: flag(0) })
}
