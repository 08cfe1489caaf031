//! Output of Open MPI's monitoring components (`.prof`; `--mca pml_monitoring_enable 2` with `--mca
//! pml_monitoring_enable_output 3`, which makes every rank write a file), as a task graph of ranks.
//!
//! Lines with `E`, `I`, `S` or `R` are added up. They have two ranks, the bytes and the messages: `I 0 1 4096 bytes 8 msgs
//! sent`. `E` and `I` are messages from the first rank to the second, of the program and of collective operations (the
//! examples of Open MPI disagree on which is which). `S` are puts of one-sided operations by the first rank to the second,
//! and `R` are gets by the first rank from the second.
//!
//! The lines of collective operations are ignored: `C` has the bytes that they logically exchange between two ranks, but the
//! messages that carry these bytes are already in `E` and `I`. `D` names a communicator and its ranks, and the sums over
//! its operations follow without receivers: `O2A` from one rank to all, `A2O` from all to one, and `A2A` from all to all.
//!
//! Lines without the words `bytes` and `msgs` are ignored, so captured output with other text is accepted, as is
//! the file of a rank that sends nothing. Every process writes its own file, `NAME.0.prof`, `NAME.1.prof` ..: if the name
//! contains a rank, the files of all ranks are read.
//!
//! Source: `ompi/mca/common/monitoring` of Open MPI 5.

use std::fmt::Write as _;

use super::{MAX_VERTICES, check_sparsity, edge, ends, merge, tasks};
use crate::database::Database;
use crate::files::AtLine;
use crate::memory;

/// The first words of records.
const KINDS: [&str; 4] = ["I", "E", "S", "R"];

/// The first words of lines about collective operations.
const COLLECTIVES: [&str; 5] = ["C", "D", "O2A", "A2O", "A2A"];

/// Parses a file.
pub(super) fn read(text: &str) -> Result<Database, AtLine> {
    let (mut edges, mut vertices, mut last) = (Vec::new(), 0usize, 1);
    for (line, text) in (1..).zip(text.lines()) {
        let mut words = text.split_ascii_whitespace();
        let first = words.clone().next();
        if first.is_some_and(|word| COLLECTIVES.contains(&word)) {
            continue;
        }
        let kind = first.filter(|kind| KINDS.contains(kind));
        // An ordinary sentence may begin with `I`, but a sentence with the words of a record is a damaged record.
        let is_number = |word: &str| word.parse::<u64>().is_ok();
        let is_record = kind.is_some() && words.clone().nth(1).is_some_and(is_number)
            || ["bytes", "msgs"].iter().all(|unit| words.clone().any(|word| word == *unit));
        if !is_record {
            continue;
        }
        let expected = || {
            let kind = kind.unwrap_or("I");
            (line, format!("expected `{kind} FROM TO N bytes M msgs sent`, found `{}`", text.trim_ascii()))
        };
        let kind = words.next().and(kind).ok_or_else(expected)?;
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).ok_or_else(expected);
        let (first, second, bytes) = (number()?, number()?, number()?);
        let (unit, messages, messages_unit) = (words.next(), words.next(), words.next());
        let messages = messages.and_then(|word| word.parse::<u64>().ok());
        let (Some("bytes"), Some(messages), Some("msgs")) = (unit, messages, messages_unit) else {
            return Err(expected());
        };
        let highest = first.max(second);
        if highest >= MAX_VERTICES as u64 {
            return Err((line, format!("rank {highest} is too large; ranks are below {MAX_VERTICES}")));
        }
        if highest as usize >= vertices {
            (vertices, last) = (highest as usize + 1, line);
        }
        let (from, to) = if kind == "R" { (second, first) } else { (first, second) };
        if from != to {
            let edge = edge(from as u32, to as u32, messages, bytes);
            memory::push(&mut edges, edge).map_err(|reason| (line, reason))?;
        }
    }
    check_sparsity(vertices, text.lines().count()).map_err(|reason| (last, reason))?;
    let mut database = tasks(vertices);
    database.edges = merge(edges).map_err(|reason| (1, reason))?;
    Ok(database)
}

/// Formats a file. If the last rank has no edges, it gets a loop of 0 bytes, so that readers count it.
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

/// Whether two task graphs have the same edges, including the numbers of messages.
pub(super) fn is_same(database: &Database, again: &Database) -> bool {
    let between = |database: &Database| {
        let mut edges = database.edges.clone();
        edges.retain(|edge| ends(edge).is_some_and(|(from, to)| from != to));
        merge(edges)
    };
    database.objects.len() == again.objects.len() && between(database) == between(again)
}
