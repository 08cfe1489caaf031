//! Traces in the format of PICL, the Portable Instrumented Communication Library (the input format of ParaGraph).
//!
//! G. A. Geist, M. T. Heath, B. W. Peyton, P. H. Worley, "A user's guide to PICL" (ORNL/TM-11616, 1990). There is one
//! record per line, in numbers only or with a word before each number:
//!
//! ```text
//! 4 0 1200 3 5 17 256
//! send clock 0 1200 node 3 to 5 type 17 lth 256
//! ```
//!
//! A record has its kind, the seconds and microseconds of the clock, the node, and fields that depend on the kind. The
//! kinds send (4), recv (6), recv_blocking (7) and recv_waking (8) are about messages; every other record only states
//! that the node was busy until then. (The later format of ORNL/TM-12125, whose records begin with negative numbers, is
//! not supported.)

use super::{Act, ConvertError, Converted, program};

/// The kinds of records, from 1.
const KINDS: [&str; 22] = [
    "trace_start",
    "open",
    "load",
    "send",
    "probe",
    "recv",
    "recv_blocking",
    "recv_waking",
    "message",
    "sync",
    "compstats",
    "commstats",
    "close",
    "trace_level",
    "trace_mark",
    "trace_message",
    "trace_stop",
    "trace_flush",
    "trace_exit",
    "block_begin",
    "block_end",
    "trace_marks",
];

const SEND: usize = 4;
const RECEIVE: usize = 6;
const BLOCKING: usize = 7;
const WAKING: usize = 8;

/// The labels of records about messages.
const LABELS: [&str; 6] = ["clock", "node", "to", "from", "type", "lth"];

/// The maximum number of nodes. Any other node number is the host, whose records and messages are omitted.
const MAX_NODES: i64 = super::MAX_PROCESSES as i64;

/// A record.
struct Record {
    microseconds: i64,
    kind: usize,
    /// The other node and the bytes, for records about messages.
    message: (i64, u64),
}

/// Converts a trace in the format of PICL into a program with one process per node. Busy time becomes cycles of
/// `cycle_seconds`, and bytes become flits. Messages to or from the host are omitted and not counted.
///
/// # Errors
/// The number of the first invalid line, from 1, and the problem.
pub fn picl(text: &str, cycle_seconds: f64) -> Result<Converted, ConvertError> {
    let mut nodes: Vec<Vec<Record>> = Vec::new();
    let mut last = 1;
    for (number, line) in (1..).zip(text.lines()) {
        last = number;
        let Some((node, record)) =
            record(line).map_err(|reason| ConvertError::Trace(Some(number), reason))?
        else {
            continue;
        };
        let Ok(id) = usize::try_from(node) else { continue };
        if node >= MAX_NODES {
            continue;
        }
        if nodes.len() <= id {
            nodes.resize_with(id + 1, Vec::new);
        }
        nodes[id].push(record);
    }
    let count = nodes.len() as i64;
    let is_node = |node: i64| (0..count).contains(&node);
    let mut acts = Vec::with_capacity(nodes.len());
    let mut unmatched = 0u64;
    for (id, mut records) in (0..).zip(nodes) {
        records.sort_by_key(|record| record.microseconds);
        let (mut node_acts, mut since) = (Vec::new(), None);
        for Record { microseconds, kind, message: (other, bytes) } in records {
            // Before a `recv_waking` record, the node was idle.
            if let Some(since) = since.filter(|_| kind != WAKING) {
                node_acts.push(Act::Work((microseconds - since) as f64 * 1e-6 / cycle_seconds));
            }
            since = Some(microseconds);
            let is_other = is_node(other) && other != id;
            // A message from or to a node without records has no second record. A message of a node to itself is counted
            // at its send. (The number of the host is outside the range of nodes.)
            let is_unmatched = (0..MAX_NODES).contains(&other) && !is_node(other);
            let is_own = other == id && kind == SEND;
            unmatched += u64::from(is_own || is_unmatched && [SEND, RECEIVE, WAKING].contains(&kind));
            match kind {
                SEND if is_other => node_acts.push(Act::Send(other as u32, bytes)),
                RECEIVE | WAKING if is_other => node_acts.push(Act::Receive(other as u32)),
                _ => {}
            }
        }
        acts.push(node_acts);
    }
    match program(acts) {
        Ok(converted) => Ok(Converted { left_out: converted.left_out + unmatched, ..converted }),
        Err(ConvertError::Trace(None, reason)) => Err(ConvertError::Trace(Some(last), reason)),
        Err(other) => Err(other),
    }
}

/// The node and the record of a line, if the line is not empty.
fn record(line: &str) -> Result<Option<(i64, Record)>, String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let Some(first) = words.first() else { return Ok(None) };
    let is_name = |word: &str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let kind = match KINDS.iter().position(|kind| kind == first) {
        Some(at) => at + 1,
        None => match first.parse() {
            Ok(kind) if (1..=KINDS.len()).contains(&kind) => kind,
            Ok(_) => {
                return Err(format!("there is no record kind {first}; known kinds are 1 to {}", KINDS.len()));
            }
            Err(_) if first.starts_with('-') => {
                return Err(
                    "this is the later format of PICL (ORNL/TM-12125); convert it to the format of 1990"
                        .into(),
                );
            }
            Err(_) => {
                return Err(format!(
                    "there is no record kind `{first}`; known kinds are {}",
                    KINDS.join(", ")
                ));
            }
        },
    };
    // Words between the numbers are labels; they do not change the order of the fields.
    let mut numbers = Vec::with_capacity(words.len());
    let is_message = [SEND, RECEIVE, BLOCKING, WAKING].contains(&kind);
    // A number with a wrong digit looks like a label: with `O` for 0, all fields after it would move.
    if let Some(word) = words[1..].iter().find(|word| is_message && is_name(word) && !LABELS.contains(word)) {
        return Err(format!("expected a number or one of {}, found `{word}`", LABELS.join(", ")));
    }
    for word in words[1..].iter().filter(|word| !is_name(word)) {
        match word.parse::<i64>() {
            Ok(number) => numbers.push(number),
            // Records that are not about messages may end with arbitrary text.
            Err(_) if numbers.len() >= 3 && !is_message => break,
            Err(_) => return Err(format!("expected a whole number, found `{word}`")),
        }
    }
    let &[seconds, microseconds, node, ref rest @ ..] = numbers.as_slice() else {
        return Err(format!("expected seconds, microseconds and a node after `{first}`"));
    };
    let message = match (kind, rest) {
        (SEND | RECEIVE | WAKING, &[other, _, bytes]) => match u64::try_from(bytes) {
            Ok(bytes) => (other, bytes),
            Err(_) => return Err(format!("a message has {bytes} bytes; expected at least 0")),
        },
        (SEND | RECEIVE | WAKING, _) => {
            return Err(format!("expected a node, a type and a length after the node of `{first}`"));
        }
        _ => (-1, 0),
    };
    let time =
        seconds.checked_mul(1_000_000).and_then(|it| it.checked_add(microseconds)).filter(|&it| it >= 0);
    let Some(microseconds) = time else {
        return Err(format!("the time {seconds} s {microseconds} us is negative or too large"));
    };
    Ok(Some((node, Record { microseconds, kind, message })))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::testing::mutated;

    use super::*;

    const COMPACT: &str = "1 0 0 0 0 0 0\n1 0 0 1 0 0 0\n4 0 100 0 1 7 64\n7 0 40 1 7\n8 0 170 1 0 7 64\n\
                           4 0 250 1 32767 0 4\n6 0 260 0 32767 1 8\n13 0 300 1\n13 0 300 0\n";

    const VERBOSE: &str = "trace_start clock 0 0 node 0 event 0 compstats 0 commstats 0\n\
                           trace_start clock 0 0 node 1 event 0 compstats 0 commstats 0\n\
                           send clock 0 100 node 0 to 1 type 7 lth 64\nrecv_blocking clock 0 40 node 1 type 7\n\
                           recv_waking clock 0 170 node 1 from 0 type 7 lth 64\nclose clock 0 300 node 1\n\
                           close clock 0 300 node 0\n";

    #[test]
    fn compact_and_verbose_records_give_the_same_program() {
        let expected = |work: [u64; 4]| {
            format!(
                "PROCESS 0\n  INT_OP {}\n  SEND 1 64\n  INT_OP {}\nSTOP\nPROCESS 1\n  INT_OP {}\n  RECEIVE 0 64\n  INT_OP {}\nSTOP\n",
                work[0], work[1], work[2], work[3]
            )
        };
        assert_eq!(picl(COMPACT, 1e-6).expect("a program").program.text(), expected([100, 200, 40, 130]));
        assert_eq!(picl(VERBOSE, 1e-7).expect("a program").program.text(), expected([1000, 2000, 400, 1300]));
    }

    #[test]
    fn counts_messages_with_only_one_record() {
        // Sends to a node without records, to the node itself, and to the host (not counted).
        let lost = "4 0 100 0 1 7 64\n4 0 200 0 0 7 64\n4 0 300 0 32767 7 64\n";
        // A message that is never received, and one of another channel that was never sent.
        let crossed = "4 0 100 0 1 7 64\n6 0 100 1 2 7 64\n13 0 200 2\n";
        for trace in [lost, crossed] {
            let converted = picl(trace, 1e-6).expect("a program");
            let text = converted.program.text();
            assert!(
                converted.left_out == 2 && !text.contains("SEND") && !text.contains("RECEIVE"),
                "{converted:?}"
            );
        }
    }

    #[test]
    fn errors_name_the_line_and_the_problem() {
        for (text, line, expected) in [
            ("1 0 0 0\nfoo 1 2 3\n", 2, "there is no record kind `foo`"),
            ("23 0 0 0\n", 1, "there is no record kind 23; known kinds are 1 to 22"),
            ("-3 -901 0.0 0 0 0\n", 1, "the later format"),
            ("4 0 0\n", 1, "expected seconds, microseconds and a node"),
            ("4 0 0 1 2\n", 1, "expected a node, a type and a length"),
            ("4 0 0x 1 2\n", 1, "expected a whole number, found `0x`"),
            ("4 0 0 1 2 0 -4\n", 1, "a message has -4 bytes"),
            ("13 -1 0 1\n", 1, "the time -1 s 0 us is negative"),
            ("\n", 1, "there are 0 processes"),
        ] {
            let refused = picl(text, 1e-6).expect_err(expected);
            let is_expected = matches!(&refused, ConvertError::Trace(Some(at), reason) if *at == line && reason.contains(expected));
            assert!(is_expected, "{refused:?}");
        }
    }

    proptest! {
        #[test]
        fn a_mutated_trace_gives_a_program_or_an_error(at in any::<usize>(), by in "[a-z0-9 \n-]{0,3}") {
            for text in [COMPACT, VERBOSE] {
                match picl(&mutated(text, at, &by), 1e-6) {
                    Ok(converted) => prop_assert_eq!(converted.program.check(), Ok(())),
                    Err(ConvertError::Trace(line, reason)) => prop_assert!(line >= Some(1) && !reason.is_empty()),
                    Err(ConvertError::Cycle(reason)) => prop_assert!(!reason.is_empty()),
                }
            }
        }
    }
}
