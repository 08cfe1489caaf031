//! METIS `.graph` files (METIS 5 manual, section 4.1.1).
//!
//! The header is `vertices edges [fmt [ncon]]`. The line of vertex `v` has its size (if `fmt` is `1xx`; here the bytes
//! of the object), `ncon` weights (if `x1x`; the first is the load in seconds), and its neighbors, numbered from 1,
//! each followed by the weight of the edge (if `xx1`). Lines that begin with `%` are comments, and an empty line is a
//! vertex without neighbors. Loops are ignored. An edge occurs in the lines of both ends with the same weight: the
//! bytes exchanged in both directions. Half of the weight is assigned to each direction; an odd byte goes from the
//! lower to the higher vertex.
//!
//! Weights are integers, so loads with fractions of seconds are written in a smaller unit. A comment names the unit (`%
//! vertex weights are loads in nanoseconds`); readers use it.

use std::fmt::Write as _;

use super::{Graph, MAX_VERTICES, check_tasks, edge, tasks};
use crate::database::{Database, Edge, Object};
use crate::files::AtLine;
use crate::memory;
use crate::table::count;

/// The comment before the name of the load unit.
const IN_UNITS: &str = "% vertex weights are loads in ";

/// Units of loads below one second, smallest first: name and number per second.
const UNITS: &[(&str, f64)] = &[("nanoseconds", 1e9), ("microseconds", 1e6), ("milliseconds", 1e3)];

/// The largest load in units: integers up to this value are exact in `f64`.
const MAX_WEIGHT: f64 = 9_007_199_254_740_992.0;

/// The fields of a header.
struct Header {
    vertices: usize,
    edges: usize,
    has_sizes: bool,
    /// The number of weights per vertex.
    loads: usize,
    has_edge_weights: bool,
}

/// Parses a file.
pub(super) fn read(text: &str) -> Result<Database, AtLine> {
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
    // Validates the number of vertices before memory is allocated.
    let there = lines.clone().count();
    if there < header.vertices {
        let vertices = header.vertices;
        return Err((
            header_line,
            format!(
                "the header says {}, but the file has lines for {there}",
                count(vertices as u64, "vertex")
            ),
        ));
    }
    check_tasks(header.vertices).map_err(|reason| (header_line, reason))?;
    let mut database = tasks(header.vertices);
    let mut halves: Vec<Half> = Vec::new();
    let mut loops = 0;
    for (v, line) in (0u32..).zip(lines.by_ref().take(header.vertices)) {
        let object = &mut database.objects[v as usize];
        loops += read_vertex(v, line, &header, per_second, object, &mut halves)?;
    }
    if let Some((line, _)) = lines.find(|(_, line)| !line.trim().is_empty()) {
        return Err((
            line,
            format!("the header says {}, but there are more lines", count(header.vertices as u64, "vertex")),
        ));
    }
    database.edges = joined(&mut halves)?;
    let found = halves.len() / 2;
    // The manual does not define whether the header counts loops.
    if !(found..=found + loops).contains(&header.edges) {
        return Err((
            header_line,
            format!("the header says {}, but the file has {found}", count(header.edges as u64, "edge")),
        ));
    }
    database.edges = super::merge(database.edges).map_err(|reason| (header_line, reason))?;
    Ok(database)
}

/// Parses the line of vertex `v` into its object and the halves of its edges; returns the number of loops.
fn read_vertex(
    v: u32,
    (line, text): (usize, &str),
    header: &Header,
    per_second: f64,
    object: &mut Object,
    halves: &mut Vec<Half>,
) -> Result<usize, AtLine> {
    let mut numbers = text.split_ascii_whitespace();
    let mut number = |what: &str| match numbers.next() {
        None => Ok(None),
        Some(word) => {
            word.parse::<u64>().map(Some).map_err(|_| (line, format!("expected {what}, found `{word}`")))
        }
    };
    let missing = |what: &str| (line, format!("expected {what}, found the end of the line"));
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
    let mut loops = 0;
    while let Some(neighbor) = number("a neighbor")? {
        if neighbor == 0 || neighbor > header.vertices as u64 {
            return Err((
                line,
                format!("there is no vertex {neighbor}; vertices are 1 to {}", header.vertices),
            ));
        }
        let u = neighbor as u32 - 1;
        let mut weight = 1;
        if header.has_edge_weights {
            weight = number("the weight of an edge")?.ok_or_else(|| missing("the weight of an edge"))?;
        }
        if u == v {
            loops += 1;
        } else {
            let half = (v.min(u), v.max(u), v < u, weight, line);
            memory::push(halves, half).map_err(|reason| (line, reason))?;
        }
    }
    Ok(loops)
}

/// An edge as found in the line of one end: lower end, higher end, whether the line is that of the lower end, weight,
/// line number.
type Half = (u32, u32, bool, u64, usize);

/// Combines the halves of each edge, which must occur once in the line of each end, into edges of both directions.
fn joined(halves: &mut [Half]) -> Result<Vec<Edge>, AtLine> {
    halves.sort_unstable();
    let mut edges_both_ways = Vec::new();
    for edges in halves.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (low, high, _, weight, line) = edges[0];
        let (a, b) = (low + 1, high + 1);
        match edges {
            [(.., false, there, _), (.., true, back, _)] if there == back => (),
            [(.., false, _, line), (.., true, _, _)] => {
                return Err((
                    *line,
                    format!("the edge {a}-{b} has different weights in its two lines; use the same weight"),
                ));
            }
            [_] => return Err((line, format!("the edge {a}-{b} is missing in the line of its other end"))),
            [.., (.., line)] => return Err((*line, format!("the edge {a}-{b} occurs twice"))),
            [] => (),
        }
        let half = weight / 2;
        if weight > half {
            memory::push(&mut edges_both_ways, edge(low, high, 1, weight - half))
                .map_err(|reason| (line, reason))?;
        }
        if half > 0 {
            memory::push(&mut edges_both_ways, edge(high, low, 1, half)).map_err(|reason| (line, reason))?;
        }
    }
    Ok(edges_both_ways)
}

/// Formats a file: always with edge weights, with sizes if all are known, and with loads unless all are one second.
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

/// Whether `again` is the content of a file written from `database`: the same graph, the same sizes if all are known,
/// and the same loads up to one unit.
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

/// The smallest unit in which the largest load is exact; `None` for seconds, which is used if all loads are integers.
fn unit(objects: &[Object]) -> Option<&'static (&'static str, f64)> {
    let heaviest = objects.iter().map(|o| o.load_seconds).fold(0.0, f64::max);
    let is_whole = objects.iter().all(|o| o.load_seconds.fract() == 0.0);
    UNITS.iter().find(|unit| !is_whole && heaviest * unit.1 <= MAX_WEIGHT)
}

/// The load of an object in units.
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
        return Err(format!("{vertices} vertices are more than the allowed {MAX_VERTICES}"));
    }
    let format = words.get(2).copied().unwrap_or("0");
    if format.len() > 3 || !format.bytes().all(|digit| matches!(digit, b'0' | b'1')) {
        return Err(format!("fmt has up to three digits 0 or 1, found `{format}`"));
    }
    let flag = |place: usize| format.bytes().rev().nth(place) == Some(b'1');
    let constraints = words.get(3).map_or(Ok(1), |text| number(text))?;
    let loads = if flag(1) { constraints } else { 0 };
    Ok(Header { vertices, edges, has_sizes: flag(2), loads, has_edge_weights: flag(0) })
}
