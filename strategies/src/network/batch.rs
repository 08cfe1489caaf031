//! A batch: a list of messages that are all sent at time 0, each PE's in the order of the list.
//!
//! That is the personalised communication of a phase of a program. How a network shares a PE's port is its
//! own affair: in `wormhole` a message leaves when the one before it has left, in `packet` packets queue, in
//! `flow` all go at once.

use super::{Arrival, Message, Network};
use crate::graph::edge_list;

/// A message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The PE that sends it.
    pub from: u32,
    /// The PE that receives it.
    pub to: u32,
    /// Its size.
    pub bytes: u64,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// When the last message had arrived, in seconds.
    pub seconds: f64,
    /// By message of the list: when it had arrived, in seconds.
    pub arrivals: Vec<f64>,
}

impl Outcome {
    /// When a message had arrived on average, in seconds; 0 without messages.
    pub fn mean_latency_seconds(&self) -> f64 {
        // The sum of nothing is -0.0 for the standard library.
        self.arrivals.iter().fold(0.0, |sum, seconds| sum + seconds) / self.arrivals.len().max(1) as f64
    }
}

/// The messages of a text with lines `src,dst,bytes[,messages]`, where `src` and `dst` are PEs of a machine
/// with so many, in their order. A line that counts several messages is as many of them in a row, its bytes
/// spread evenly, the first ones larger by 1 where they are no multiple. Empty lines, lines that begin with
/// `#` and a first line of names do not count.
///
/// # Errors
/// The number of the first line that is wrong, from 1, and a sentence that says what.
pub fn read(text: &str, pes: usize) -> Result<Vec<Item>, (usize, String)> {
    let mut items = Vec::new();
    let most = MAX_MESSAGES.max(text.lines().count().saturating_mul(64));
    for row in edge_list(text) {
        let (line, (from, to, bytes, messages)) = row?;
        let highest = from.max(to);
        if highest as usize >= pes {
            let last = pes - 1;
            return Err((line, format!("there is no PE {highest}; the machine has PEs 0 to {last}")));
        }
        if messages > (most - items.len()) as u64 {
            return Err((line, format!("there are more than {most} messages; leave some out")));
        }
        for message in 0..messages {
            let bytes = bytes / messages + u64::from(message < bytes % messages);
            items.push(Item { from, to, bytes });
        }
    }
    Ok(items)
}

/// The most messages of a list that is short: a slip in one number must not cost the memory of millions.
const MAX_MESSAGES: usize = 1 << 22;

/// Sends all messages at time 0 over a network on which nothing is under way, and waits for them.
///
/// # Panics
/// When a message names a PE that the network's machine does not have, or the network loses one.
pub fn run(items: &[Item], network: &mut dyn Network) -> Outcome {
    for (&Item { from, to, bytes }, token) in items.iter().zip(0..) {
        network.send(0.0, Message { token, from, to, bytes });
    }
    let mut outcome = Outcome { seconds: 0.0, arrivals: vec![f64::NAN; items.len()] };
    let mut arrived: Vec<Arrival> = Vec::new();
    while let Some(next) = network.next_event() {
        network.advance(next, &mut arrived);
        for Arrival { token, seconds } in arrived.drain(..) {
            outcome.arrivals[token as usize] = seconds;
            outcome.seconds = outcome.seconds.max(seconds);
        }
    }
    assert!(!outcome.arrivals.iter().any(|seconds| seconds.is_nan()), "a network delivers what it is given");
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::parse;
    use crate::topology;

    fn run_on(spec: &str, machine: &str, text: &str) -> Outcome {
        let machine = topology::parse(machine).expect(machine);
        let items = read(text, machine.pes()).expect("a list of messages");
        run(&items, &mut *parse(spec).expect(spec).on(&machine).expect(spec))
    }

    #[test]
    fn a_batch_is_over_when_its_last_message_has_arrived() {
        let text = "src,dst,bytes\n3,4,10\n2,4,10\n1,3,10\n";
        let outcome = run_on("wormhole:flit=1,cycles_per_hop=1,buffer=1,handoff=0", "mesh:5", text);
        assert!((outcome.seconds - 29e-9).abs() < 1e-18);
        assert!((outcome.mean_latency_seconds() - 59e-9 / 3.0).abs() < 1e-18);
        let outcome = run_on("ideal:hop=1,bandwidth=10", "mesh:5", text);
        assert_eq!(outcome.seconds, 3.0);
        assert_eq!(outcome.arrivals, [2.0, 3.0, 3.0]);
        let nothing = run_on("packet", "mesh:5", "# nothing\n");
        assert_eq!((nothing.seconds, nothing.mean_latency_seconds()), (0.0, 0.0));
    }

    #[test]
    fn several_messages_of_a_line_share_its_bytes() {
        let item = |bytes| Item { from: 0, to: 1, bytes };
        assert_eq!(read("0,1,11,3\n\n0,1,5,0\n0,1,2\n", 2), Ok([4, 4, 3, 2].map(item).to_vec()));
        assert_eq!(read("1,1,7\n", 2), Ok(vec![Item { from: 1, to: 1, bytes: 7 }]));
    }

    #[test]
    fn what_is_wrong_with_a_list_is_said_with_its_line() {
        for (text, line, expected) in [
            ("0,1,1\n\n0,2,1\n", 3, "there is no PE 2; the machine has PEs 0 to 1"),
            ("src,dst\n0,1\n", 2, "expected `src,dst,bytes` or `src,dst,bytes,messages`, found `0,1`"),
            ("0,1,-1\n", 1, "expected `src,dst,bytes`"),
            ("0,1,1,99999999999999\n", 1, "there are more than 4194304 messages; leave some out"),
        ] {
            let (number, reason) = read(text, 2).expect_err(expected);
            assert!(number == line && reason.contains(expected), "line {number}: {reason}");
        }
    }
}
