//! Whether a program comes to an end, and every message finds its receive.
//!
//! Sends never wait, and a receive names its sender: so what every process has sent and received in the end does
//! not depend on how long anything takes (G. Kahn, "The semantics of a simple language for parallel programming",
//! 1974), and one execution without times shows every deadlock there is.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::code::{Code, Cursor, MAX_STEPS, Op};
use super::{MAX_AMOUNT, Program};

/// Why a program is none that can be executed, by process and line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// It executes too many instructions.
    #[error("the program executes {steps} instructions, and at most {MAX_STEPS} can be; repeat less")]
    TooLong {
        /// How many.
        steps: u64,
        /// Where the longest process begins.
        line: u32,
    },
    /// The processes compute and send more than can be counted exactly.
    #[error(
        "with process {process}, more than 2^50 cycles and flits are computed and sent; divide them by a number"
    )]
    TooMuch {
        /// The process.
        process: u32,
        /// Where it begins.
        line: u32,
    },
    /// A message that nobody receives.
    #[error(
        "process {process} sends a message of {flits} flits to process {to} in line {line}, which never receives it"
    )]
    Unreceived {
        /// The sender.
        process: u32,
        /// The line of the send.
        line: u32,
        /// The receiver.
        to: u32,
        /// The length of the message.
        flits: u64,
    },
    /// A receive whose message is never sent.
    #[error(
        "process {process} waits in line {line} for a message of process {from}, which stops without sending it"
    )]
    Unsent {
        /// The receiver.
        process: u32,
        /// The line of the receive.
        line: u32,
        /// Who should have sent it.
        from: u32,
    },
    /// A send and its receive that do not say the same length.
    #[error(
        "process {process} receives {flits} flits of process {from} in line {line}, and the message sent in line \
         {send_line} has {sent}"
    )]
    Length {
        /// The receiver.
        process: u32,
        /// The line of the receive.
        line: u32,
        /// The sender.
        from: u32,
        /// The flits that are expected.
        flits: u64,
        /// The flits that were sent.
        sent: u64,
        /// The line of the send.
        send_line: u32,
    },
    /// Processes that wait for each other in a circle.
    #[error("deadlock: {}", circle(.waiting))]
    Deadlock {
        /// Processes, the lines they wait in, and the processes they wait for: each waits for the next, and the
        /// last for the first.
        waiting: Vec<(u32, u32, u32)>,
    },
}

/// Who waits for whom.
fn circle(waiting: &[(u32, u32, u32)]) -> String {
    let one = |(process, line, from): &(u32, u32, u32)| {
        format!("process {process} waits in line {line} for process {from}")
    };
    waiting.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl Mistake {
    /// The line at fault, from 1.
    pub fn line(&self) -> u32 {
        match self {
            Mistake::TooLong { line, .. }
            | Mistake::TooMuch { line, .. }
            | Mistake::Unreceived { line, .. }
            | Mistake::Unsent { line, .. }
            | Mistake::Length { line, .. } => *line,
            Mistake::Deadlock { waiting } => waiting.first().map_or(1, |&(_, line, _)| line),
        }
    }
}

/// What may be computed and sent in all: times then are exact in `f64`, and in the estimate's fractions.
const MOST: u64 = MAX_AMOUNT << 10;

/// Messages that were sent and not received: their flits and the lines of their sends.
type Waiting = VecDeque<(u64, u32)>;

impl Program {
    /// Whether it comes to an end with every message received.
    ///
    /// # Errors
    /// The first of what is wrong.
    pub fn check(&self) -> Result<(), Mistake> {
        let steps = self.steps();
        if steps > MAX_STEPS {
            let longest = self.processes.iter().rev().max_by_key(|process| process.steps());
            return Err(Mistake::TooLong { steps, line: longest.map_or(1, |process| process.line) });
        }
        let codes = Code::of(self);
        let mut cursors = vec![Cursor::default(); codes.len()];
        let mut total = 0u64;
        let mut sent: FxHashMap<(u32, u32), Waiting> = FxHashMap::default();
        // The line each process waits in and for whom; none if it runs or has stopped.
        let mut waits: Vec<Option<(u32, u32)>> = vec![None; codes.len()];
        let mut has_stopped = vec![false; codes.len()];
        let mut ready: VecDeque<u32> = (0..codes.len() as u32).collect();
        while let Some(process) = ready.pop_front() {
            let id = process as usize;
            loop {
                let (op, line) = cursors[id].op(&codes[id]);
                match op {
                    Op::Compute(amount) | Op::Send { flits: amount, .. } => {
                        total += amount;
                        if total > MOST {
                            let line = self.processes[id].line;
                            return Err(Mistake::TooMuch { process, line });
                        }
                        if let Op::Send { to, flits } = op {
                            sent.entry((process, to)).or_default().push_back((flits, line));
                            if waits[to as usize].is_some_and(|(_, from)| from == process) {
                                waits[to as usize] = None;
                                ready.push_back(to);
                            }
                        }
                    }
                    Op::Receive { from, flits } => {
                        let queue = sent.get_mut(&(from, process));
                        let Some((sent, send_line)) = queue.and_then(VecDeque::pop_front) else {
                            waits[id] = Some((line, from));
                            break;
                        };
                        if sent != flits {
                            return Err(Mistake::Length { process, line, from, flits, sent, send_line });
                        }
                    }
                    Op::Stop | Op::Begin { .. } | Op::End { .. } => {
                        has_stopped[id] = true;
                        break;
                    }
                }
                cursors[id].go_on();
            }
        }
        self.is_over(&waits, &has_stopped, &sent)
    }

    /// Whether nobody waits and nothing is left.
    fn is_over(
        &self,
        waits: &[Option<(u32, u32)>],
        has_stopped: &[bool],
        sent: &FxHashMap<(u32, u32), Waiting>,
    ) -> Result<(), Mistake> {
        if let Some(first) = waits.iter().position(Option::is_some) {
            // From whoever waits to whom it waits for, until that has stopped or was seen.
            let (mut path, mut at) = (Vec::<(u32, u32, u32)>::new(), first as u32);
            while let Some((line, from)) = waits[at as usize] {
                if let Some(begin) = path.iter().position(|&(process, ..)| process == at) {
                    return Err(Mistake::Deadlock { waiting: path.split_off(begin) });
                }
                path.push((at, line, from));
                at = from;
            }
            debug_assert!(has_stopped[at as usize], "who does not wait has stopped");
            if let Some(&(process, line, from)) = path.last() {
                return Err(Mistake::Unsent { process, line, from });
            }
        }
        let left = sent.iter().filter_map(|(&(process, to), queue)| {
            queue.front().map(|&(flits, line)| (line, Mistake::Unreceived { process, line, to, flits }))
        });
        left.min_by_key(|&(line, _)| line).map_or(Ok(()), |(_, mistake)| Err(mistake))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let program = parse(text).expect("a text of the language");
        match program.check() {
            Ok(()) => assert_eq!(expected, "", "nothing is wrong"),
            Err(mistake) => assert_eq!(mistake.to_string(), expected),
        }
    }

    #[test]
    fn a_program_that_comes_to_an_end_is_right() {
        check("PROCESS 0\nSTOP", "");
        check(
            "PROCESS 0\nREPEAT 0\nRECEIVE 1 1\nEND\nREPEAT 2\nREPEAT 3\nSEND 1 2\nEND\nRECEIVE 1 1\nEND\nSTOP\n\
             PROCESS 1\nREPEAT 2\nSEND 0 1\nEND\nREPEAT 6\nRECEIVE 0 2\nEND\nSTOP",
            "",
        );
    }

    #[test]
    fn whoever_waits_in_a_circle_is_named() {
        check(
            "PROCESS 0\nRECEIVE 1 1\nSEND 1 1\nSTOP\nPROCESS 1\nINT_OP 1\nRECEIVE 2 1\nSEND 0 1\nSTOP\n\
             PROCESS 2\nRECEIVE 1 1\nSEND 1 1\nSTOP",
            "deadlock: process 1 waits in line 7 for process 2, process 2 waits in line 11 for process 1",
        );
    }

    #[test]
    fn messages_without_a_match_are_named() {
        check(
            "PROCESS 0\nREPEAT 3\nSEND 1 5\nEND\nSTOP\nPROCESS 1\nREPEAT 2\nRECEIVE 0 5\nEND\nSTOP",
            "process 0 sends a message of 5 flits to process 1 in line 3, which never receives it",
        );
        check(
            "PROCESS 0\nSTOP\nPROCESS 1\nRECEIVE 2 1\nSTOP\nPROCESS 2\nRECEIVE 0 1\nSEND 1 1\nSTOP",
            "process 2 waits in line 7 for a message of process 0, which stops without sending it",
        );
        check(
            "PROCESS 0\nSEND 1 5\nSTOP\nPROCESS 1\nRECEIVE 0 6\nSTOP",
            "process 1 receives 6 flits of process 0 in line 5, and the message sent in line 2 has 5",
        );
    }

    #[test]
    fn what_would_take_too_long_or_cannot_be_counted_is_refused() {
        let text = "PROCESS 0\nREPEAT 4000000000\nREPEAT 4000000000\nINT_OP 1\nEND\nEND\nSTOP";
        let error = parse(text).expect("a text").check().expect_err("too long");
        assert!(error.to_string().contains("repeat less"), "{error}");
        // The line is that of the process that takes longest, not of the one with the longest text.
        let text = format!(
            "PROCESS 0\nINT_OP 1\nINT_OP 1\nINT_OP 1\nSTOP\n{}",
            text.replace("PROCESS 0", "PROCESS 1")
        );
        assert_eq!(parse(&text).expect("a text").check().expect_err("too long").line(), 6);
        let text = "PROCESS 0\nREPEAT 2000\nINT_OP 1099511627776\nEND\nSTOP";
        let error = parse(text).expect("a text").check().expect_err("too much");
        assert!(error.to_string().starts_with("with process 0, more than 2^50"), "{error}");
    }
}
