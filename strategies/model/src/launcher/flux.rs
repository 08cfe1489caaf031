//! Task maps of Flux (RFC 34 of the Flux framework; `flux run --taskmap=manual:MAP`): the ranks of each node, in
//! blocks.
//!
//! `[[0,4,2,3]]`: from node 0 on, 4 nodes with 2 ranks each, repeated 3 times; ranks are assigned in ascending order. A
//! map may be wrapped in `{"version":1,"map":..}`.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Entries, Format, Job, Place, RankFile, Slots};
use crate::files::AtLine;
use crate::files::line_of;

/// The entry of `flux` in the list of formats.
pub const FORMAT: Format = Format {
    name: "flux",
    form: "",
    help: "A task map of Flux (RFC 34; flux run --taskmap=manual:\"$(cat FILE)\"): blocks [node, nodes, ranks \
           per node, repetitions]. Contains nodes, but no slots.",
    params: &[],
    item: RankFile { write, read, has_slots: false },
};

/// First node, number of nodes, ranks per node, repetitions.
type Block = [u64; 4];

#[derive(Deserialize)]
struct Wrapped<'a> {
    version: u64,
    #[serde(borrow)]
    map: Vec<&'a RawValue>,
}

fn write(job: &Job) -> Result<String, String> {
    let blocks: Vec<String> = blocks(job.nodes())
        .iter()
        .map(|[node, nodes, per_node, times]| format!("[{node},{nodes},{per_node},{times}]"))
        .collect();
    let mut text = String::new();
    let _ = writeln!(text, "[{}]", blocks.join(","));
    Ok(text)
}

/// The blocks for the node of every rank.
fn blocks(node_of: impl Iterator<Item = usize>) -> Vec<Block> {
    // Consecutive ranks of a node are combined, then consecutive nodes, then equal blocks.
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for node in node_of.map(|node| node as u64) {
        match runs.last_mut().filter(|run| run.0 == node) {
            Some(run) => run.1 += 1,
            None => runs.push((node, 1)),
        }
    }
    let mut rows: Vec<(u64, u64, u64)> = Vec::new();
    for (node, ranks) in runs {
        match rows.last_mut().filter(|row| row.0 + row.1 == node && row.2 == ranks) {
            Some(row) => row.1 += 1,
            None => rows.push((node, 1, ranks)),
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (node, nodes, per_node) in rows {
        match blocks.last_mut().filter(|block| block[..3] == [node, nodes, per_node]) {
            Some(block) => block[3] += 1,
            None => blocks.push([node, nodes, per_node, 1]),
        }
    }
    blocks
}

fn read(text: &str, slots: &Slots) -> Result<Entries, AtLine> {
    let expected =
        "expected a task map such as [[0,4,2,1]], blocks of node, nodes, ranks per node and repetitions";
    let at = |error: serde_json::Error| (error.line().max(1), format!("{expected}; {error}"));
    let map: Vec<&RawValue> = if text.trim_start().starts_with('{') {
        let Wrapped { version, map } = serde_json::from_str(text).map_err(at)?;
        if version != 1 {
            return Err((1, format!("the task map has version {version}, but only version 1 is supported")));
        }
        map
    } else {
        serde_json::from_str(text).map_err(at)?
    };
    let mut entries: Entries = Vec::new();
    for raw in map {
        let (block, line) = (raw.get(), line_of(text, raw.get()));
        let [first, nodes, per_node, times]: Block =
            serde_json::from_str(block).map_err(|error| (line, format!("{expected}; {block}: {error}")))?;
        if [nodes, per_node, times].contains(&0) {
            return Err((
                line,
                format!("the block {block} has no rank; nodes, ranks and repetitions are at least 1"),
            ));
        }
        let last = slots.nodes() as u64 - 1;
        if first.checked_add(nodes - 1).is_none_or(|end| end > last) {
            return Err((line, format!("the block {block} extends beyond the last node, {last}")));
        }
        let ranks = nodes.checked_mul(per_node).and_then(|ranks| ranks.checked_mul(times));
        if ranks.is_none_or(|ranks| ranks > slots.max_ranks() - entries.len() as u64) {
            return Err((
                line,
                format!("with the block {block}, there are more than {} ranks", slots.max_ranks()),
            ));
        }
        for _ in 0..times {
            for node in first..first + nodes {
                entries.extend((0..per_node).map(|_| (Place::Node(node as usize), line)));
            }
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 34: the ranks of each node, and the map.
    const VECTORS: &[(&str, &str)] = &[
        ("0", "[[0,1,1,1]]"),
        ("0;1", "[[0,2,1,1]]"),
        ("0-1", "[[0,1,2,1]]"),
        ("0-1;2-3", "[[0,2,2,1]]"),
        ("0,2;1,3", "[[0,2,1,2]]"),
        ("1;0", "[[1,1,1,1],[0,1,1,1]]"),
        ("0-3;4-7;8-11;12-15", "[[0,4,4,1]]"),
        ("0,4,8,12;1,5,9,13;2,6,10,14;3,7,11,15", "[[0,4,1,4]]"),
        ("0-1,8-9;2-3,10-11;4-5,12-13;6-7,14-15", "[[0,4,2,2]]"),
        ("0-1;2-3;4-5;6-7;8-11;12-15", "[[0,4,2,1],[4,2,4,1]]"),
        ("0,6;1,7;2,8;3,9;4,10,12,14;5,11,13,15", "[[0,6,1,2],[4,2,1,2]]"),
        ("14-15;12-13;10-11;8-9;4-7;0-3", "[[5,1,4,1],[4,1,4,1],[3,1,2,1],[2,1,2,1],[1,1,2,1],[0,1,2,1]]"),
        ("0-1;2-3;4-5;6-7;8-9;12-13;10-11;14-15", "[[0,5,2,1],[6,1,2,1],[5,1,2,1],[7,1,2,1]]"),
        ("12-15;8-11;4-7;0-3", "[[3,1,4,1],[2,1,4,1],[1,1,4,1],[0,1,4,1]]"),
    ];

    #[test]
    fn writes_the_test_vectors_of_the_rfc() {
        for (raw, map) in VECTORS {
            let mut node_of = Vec::new();
            for (node, ranks) in raw.split(';').enumerate() {
                for range in ranks.split(',') {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    let [first, last] = [first, last].map(|rank| rank.parse::<usize>().expect("a rank"));
                    node_of.extend((first..=last).map(|rank| (rank, node)));
                }
            }
            node_of.sort_unstable();
            let found: Vec<Block> = blocks(node_of.iter().map(|&(_, node)| node));
            assert_eq!(serde_json::to_string(&found).expect("JSON"), *map, "{raw}");
        }
    }
}
