//! What Open MPI's monitoring components write (`.prof`; `--mca pml_monitoring_enable 2` with
//! `--mca pml_monitoring_enable_output 3`, which has every rank write its file), as a task graph of ranks.
//!
//! `E` and `I` (what the program sends itself, and what its collective operations do; Open MPI's own examples do not
//! agree which is which) and `S` (what one-sided operations put) are followed by the sender, the receiver, the bytes
//! and the messages: `I 0 1 4096 bytes 8 msgs sent`. `R` is what the first rank got from the second. All of them add
//! up. All other lines do not count, so output that was caught with something else in it is read as well, and the file
//! of a rank that sends nothing. Every process writes its own file, `NAME.0.prof`, `NAME.1.prof` ..:
//! where the name says a rank, the files of all ranks beside it are read, and else the one that is named.
//!
//! Source: `ompi/mca/common/monitoring` of Open MPI 5.

use std::fmt::Write as _;

use super::{Fault, MAX_VERTICES, check_sparsity, edge, ends, merge, tasks};
use crate::database::Database;

/// The task graph of a file with this text.
pub(super) fn read(text: &str) -> Result<Database, Fault> {
    let (mut edges, mut vertices, mut last) = (Vec::new(), 0usize, 1);
    for (line, text) in (1..).zip(text.lines()) {
        let mut words = text.split_ascii_whitespace();
        let kind = words.next().filter(|kind| ["I", "E", "S", "R"].contains(kind));
        let (Some(kind), Some(first)) = (kind, words.next()) else { continue };
        // A word such as `I` may begin a sentence.
        let Ok(first) = first.parse::<u64>() else { continue };
        let expected =
            || (line, format!("expected `{kind} FROM TO N bytes M msgs sent`, found `{}`", text.trim()));
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).ok_or_else(expected);
        let (second, bytes) = (number()?, number()?);
        let (unit, messages, messages_unit) = (words.next(), words.next(), words.next());
        let messages = messages.and_then(|word| word.parse::<u64>().ok());
        let (Some("bytes"), Some(messages), Some("msgs")) = (unit, messages, messages_unit) else {
            return Err(expected());
        };
        let highest = first.max(second);
        if highest >= MAX_VERTICES as u64 {
            return Err((line, format!("rank {highest} is beyond the {MAX_VERTICES} that fit")));
        }
        if highest as usize >= vertices {
            (vertices, last) = (highest as usize + 1, line);
        }
        let (from, to) = if kind == "R" { (second, first) } else { (first, second) };
        if from != to {
            edges.push(edge(from as u32, to as u32, messages, bytes));
        }
    }
    check_sparsity(vertices, text.lines().count()).map_err(|reason| (last, reason))?;
    let mut database = tasks(vertices);
    database.edges = merge(edges).map_err(|reason| (1, reason))?;
    Ok(database)
}

/// The text of a file. A last rank that nobody talks to sends itself nothing, so that it is counted.
pub(super) fn write(database: &Database) -> String {
    let mut text = String::from("# POINT TO POINT\n");
    let mut last = 0;
    for (edge, (from, to)) in database.edges.iter().filter_map(|edge| Some((edge, ends(edge)?))) {
        let _ = writeln!(text, "I\t{from}\t{to}\t{} bytes\t{} msgs sent", edge.bytes, edge.messages);
        last = last.max(from + 1).max(to + 1);
    }
    let objects = database.objects.len();
    if (last as usize) < objects {
        let _ = writeln!(text, "I\t{0}\t{0}\t0 bytes\t0 msgs sent", objects - 1);
    }
    text
}

/// Whether two task graphs have the same edges, messages and all.
pub(super) fn is_same(database: &Database, again: &Database) -> bool {
    let between = |database: &Database| {
        let mut edges = database.edges.clone();
        edges.retain(|edge| ends(edge).is_some_and(|(from, to)| from != to));
        merge(edges)
    };
    database.objects.len() == again.objects.len() && between(database) == between(again)
}
