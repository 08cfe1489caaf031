//! A batch: messages that are all sent at time 0. The messages of a PE are sent in the order of the list.
//!
//! This is the personalised communication of one phase of a program. Each network model shares the port of a PE in its
//! own way: in `wormhole` a message waits until the previous one has left, in `packet` the packets queue, and in `flow`
//! all messages leave at once.

use equipoise_model::files::AtLine;
use equipoise_model::graph::edge_list;

use super::{Arrival, Message, Network};

/// A message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The PE of the sender.
    pub from: u32,
    /// The PE of the receiver.
    pub to: u32,
    /// The size.
    pub bytes: u64,
}

/// The result of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The arrival time of the last message, in seconds.
    pub seconds: f64,
    /// By message: its arrival time, in seconds.
    pub arrivals: Vec<f64>,
}

impl Outcome {
    /// The mean arrival time, in seconds; 0 without messages.
    pub fn mean_latency_seconds(&self) -> f64 {
        // `sum` of an empty iterator is -0.0.
        self.arrivals.iter().fold(0.0, |sum, seconds| sum + seconds) / self.arrivals.len().max(1) as f64
    }
}

/// Reads messages from a text with lines `src,dst,bytes[,messages]`, where `src` and `dst` are PEs of a machine with
/// `pes` PEs. A line with N messages stands for N consecutive messages that share its bytes evenly; the first ones get
/// the remaining bytes, one each. Comments and the header are those of an edge list.
///
/// # Errors
/// The number of the first invalid line, from 1, and the problem; a text without any line of messages is invalid.
pub fn read(text: &str, pes: usize) -> Result<Vec<Item>, AtLine> {
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

/// The maximum number of messages of a short list, so that a typing error in one number does not exhaust the memory.
const MAX_MESSAGES: usize = 1 << 22;

/// Sends all messages at time 0 over an empty network, and waits for their arrivals.
///
/// # Panics
/// When a message names a PE that the machine does not have, or the network loses a message.
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
    assert!(!outcome.arrivals.iter().any(|seconds| seconds.is_nan()), "a network delivers all messages");
    outcome
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;
    use crate::models::parse;

    fn run_on(spec: &str, machine: &str, text: &str) -> Outcome {
        let machine = topology::parse(machine).expect(machine);
        let items = read(text, machine.pes()).expect("a list of messages");
        run(&items, &mut *parse(spec).expect(spec).on(&machine).expect(spec))
    }

    #[test]
    fn a_batch_ends_with_its_last_arrival() {
        let text = "src,dst,bytes\n3,4,10\n2,4,10\n1,3,10\n";
        let outcome = run_on("wormhole:flit=1,cycles_per_hop=1,buffer=1,handoff=0", "mesh:5", text);
        assert!((outcome.seconds - 29e-9).abs() < 1e-18);
        assert!((outcome.mean_latency_seconds() - 59e-9 / 3.0).abs() < 1e-18);
        let outcome = run_on("ideal:hop=1,bandwidth=10", "mesh:5", text);
        assert_eq!(outcome.seconds, 3.0);
        assert_eq!(outcome.arrivals, [2.0, 3.0, 3.0]);
        let nothing = run_on("packet", "mesh:5", "0,1,5,0\n");
        assert_eq!((nothing.seconds, nothing.mean_latency_seconds()), (0.0, 0.0));
    }

    #[test]
    fn the_messages_of_a_line_share_its_bytes() {
        let item = |bytes| Item { from: 0, to: 1, bytes };
        assert_eq!(read("0,1,11,3\n\n0,1,5,0\n0,1,2\n", 2), Ok([4, 4, 3, 2].map(item).to_vec()));
        assert_eq!(read("1,1,7\n", 2), Ok(vec![Item { from: 1, to: 1, bytes: 7 }]));
    }

    #[test]
    fn errors_name_the_line_and_the_problem() {
        for (text, line, expected) in [
            ("0,1,1\n\n0,2,1\n", 3, "there is no PE 2; the machine has PEs 0 to 1"),
            ("src,dst\n0,1\n", 1, "expected `src,dst,bytes` or `src,dst,bytes,messages`, found `src,dst`"),
            ("src,dst,bytes\n0,1\n", 2, "found `0,1`"),
            ("", 1, "expected lines such as `0,1,4096`"),
            ("0,1,-1\n", 1, "bytes are whole numbers from 0 to 2^64 - 1, found `-1`"),
            ("0,1,1,99999999999999\n", 1, "there are more than 4194304 messages; leave some out"),
        ] {
            let (number, reason) = read(text, 2).expect_err(expected);
            assert!(number == line && reason.contains(expected), "line {number}: {reason}");
        }
    }
}
