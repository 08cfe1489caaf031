//! Checks that a program terminates and that all of its messages are received.
//!
//! Sends never wait, and a receive names its sender. So the messages that each process sends and receives do not depend
//! on times (G. Kahn, "The semantics of a simple language for parallel programming", 1974), and one execution without
//! times finds every deadlock.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::code::{Code, Cursor, MAX_STEPS, Op};
use super::{MAX_AMOUNT, Program};
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::table::count;

/// Why a program cannot be executed, by process and line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Too many instructions are executed.
    #[error("the program executes {steps} instructions, more than the maximum of {MAX_STEPS}; repeat less")]
    TooLong {
        /// The number of instructions.
        steps: u64,
        /// The first line of the process that executes most instructions.
        line: u32,
    },
    /// The sum of all cycles and flits is too large to be exact.
    #[error(
        "up to process {process}, the cycles and flits of the program add up to more than 2^50; divide all of them by a \
         number"
    )]
    TooMuch {
        /// The process with which the sum exceeds the maximum.
        process: u32,
        /// Its first line.
        line: u32,
    },
    /// A message that is never received.
    #[error(
        "process {process} sends a message of {} to process {to} in line {line}, which is never received; \
         add a RECEIVE or remove the SEND",
        count(*.flits, "flit")
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
        "process {process} waits in line {line} for a message from process {from}, which is never sent; add a SEND or \
         remove the RECEIVE"
    )]
    Unsent {
        /// The receiver.
        process: u32,
        /// The line of the receive.
        line: u32,
        /// The process that should send the message.
        from: u32,
    },
    /// A send and its receive with different lengths.
    #[error(
        "process {process} expects {} from process {from} in line {line}, but the message sent in line {send_line} \
         has {sent}; use the same length",
        count(*.flits, "flit")
    )]
    Length {
        /// The receiver.
        process: u32,
        /// The line of the receive.
        line: u32,
        /// The sender.
        from: u32,
        /// The expected flits.
        flits: u64,
        /// The sent flits.
        sent: u64,
        /// The line of the send.
        send_line: u32,
    },
    /// Processes that wait for each other in a cycle.
    #[error("deadlock: {}; change the order of sends and receives", describe_cycle(.waiting))]
    Deadlock {
        /// Waiting processes, their lines, and the processes that they wait for: each entry waits for the process of
        /// the next entry, and the last entry for the first.
        waiting: Vec<(u32, u32, u32)>,
    },
}

impl Classified for CheckError {
    fn fault(&self) -> Fault {
        Fault::Input
    }
}

fn describe_cycle(waiting: &[(u32, u32, u32)]) -> String {
    let one = |(process, line, from): &(u32, u32, u32)| {
        format!("process {process} waits in line {line} for process {from}")
    };
    waiting.iter().map(one).collect::<Vec<_>>().join(", ")
}

impl CheckError {
    /// The line with the problem, from 1.
    pub fn line(&self) -> u32 {
        match self {
            CheckError::TooLong { line, .. }
            | CheckError::TooMuch { line, .. }
            | CheckError::Unreceived { line, .. }
            | CheckError::Unsent { line, .. }
            | CheckError::Length { line, .. } => *line,
            CheckError::Deadlock { waiting } => waiting.first().map_or(1, |&(_, line, _)| line),
        }
    }
}

/// The maximum sum of all cycles and flits: times are then exact in `f64` and in the ticks of the estimate.
const MAX_TOTAL: u64 = MAX_AMOUNT << 10;

/// Messages of a channel that were sent and not received: their flits and the lines of their sends.
type Unreceived = VecDeque<(u64, u32)>;

impl Program {
    /// Checks that the program terminates and that every message is received.
    ///
    /// # Errors
    /// The first problem.
    pub fn check(&self) -> Result<(), CheckError> {
        let steps = self.steps();
        if steps > MAX_STEPS {
            let longest = self.processes.iter().rev().max_by_key(|process| process.steps());
            return Err(CheckError::TooLong { steps, line: longest.map_or(1, |process| process.line) });
        }
        let codes = Code::of(self);
        let mut cursors = vec![Cursor::default(); codes.len()];
        let mut total = 0u64;
        let mut sent: FxHashMap<(u32, u32), Unreceived> = FxHashMap::default();
        // By process: the line in which it waits, and the sender it waits for; `None` if it runs or has stopped.
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
                        if total > MAX_TOTAL {
                            let line = self.processes[id].line;
                            return Err(CheckError::TooMuch { process, line });
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
                            return Err(CheckError::Length { process, line, from, flits, sent, send_line });
                        }
                    }
                    Op::Stop | Op::Begin { .. } | Op::End { .. } => {
                        has_stopped[id] = true;
                        break;
                    }
                }
                cursors[id].advance();
            }
        }
        self.check_end(&waits, &has_stopped, &sent)
    }

    /// Checks that no process waits and that no message is left.
    fn check_end(
        &self,
        waits: &[Option<(u32, u32)>],
        has_stopped: &[bool],
        sent: &FxHashMap<(u32, u32), Unreceived>,
    ) -> Result<(), CheckError> {
        if let Some(first) = waits.iter().position(Option::is_some) {
            // Follow the waits until a process that has stopped or was visited before.
            let (mut path, mut at) = (Vec::<(u32, u32, u32)>::new(), first as u32);
            while let Some((line, from)) = waits[at as usize] {
                if let Some(begin) = path.iter().position(|&(process, ..)| process == at) {
                    return Err(CheckError::Deadlock { waiting: path.split_off(begin) });
                }
                path.push((at, line, from));
                at = from;
            }
            debug_assert!(has_stopped[at as usize], "a process that does not wait has stopped");
            if let Some(&(process, line, from)) = path.last() {
                return Err(CheckError::Unsent { process, line, from });
            }
        }
        let left = sent.iter().filter_map(|(&(process, to), queue)| {
            queue.front().map(|&(flits, line)| (line, CheckError::Unreceived { process, line, to, flits }))
        });
        left.min_by_key(|&(line, _)| line).map_or(Ok(()), |(_, error)| Err(error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let program = parse(text).expect("a text of the language");
        match program.check() {
            Ok(()) => assert_eq!(expected, "", "the program is valid"),
            Err(error) => assert_eq!(error.to_string(), expected),
        }
    }

    #[test]
    fn accepts_programs_that_terminate() {
        check("PROCESS 0\nSTOP", "");
        check(
            "PROCESS 0\nREPEAT 0\nRECEIVE 1 1\nEND\nREPEAT 2\nREPEAT 3\nSEND 1 2\nEND\nRECEIVE 1 1\nEND\nSTOP\n\
             PROCESS 1\nREPEAT 2\nSEND 0 1\nEND\nREPEAT 6\nRECEIVE 0 2\nEND\nSTOP",
            "",
        );
    }

    #[test]
    fn a_deadlock_names_all_processes_of_the_cycle() {
        check(
            "PROCESS 0\nRECEIVE 1 1\nSEND 1 1\nSTOP\nPROCESS 1\nINT_OP 1\nRECEIVE 2 1\nSEND 0 1\nSTOP\n\
             PROCESS 2\nRECEIVE 1 1\nSEND 1 1\nSTOP",
            "deadlock: process 1 waits in line 7 for process 2, process 2 waits in line 11 for process 1; \
             change the order of sends and receives",
        );
    }

    #[test]
    fn names_messages_without_a_matching_send_or_receive() {
        check(
            "PROCESS 0\nREPEAT 3\nSEND 1 5\nEND\nSTOP\nPROCESS 1\nREPEAT 2\nRECEIVE 0 5\nEND\nSTOP",
            "process 0 sends a message of 5 flits to process 1 in line 3, which is never received; add a RECEIVE or \
             remove the SEND",
        );
        check(
            "PROCESS 0\nSTOP\nPROCESS 1\nRECEIVE 2 1\nSTOP\nPROCESS 2\nRECEIVE 0 1\nSEND 1 1\nSTOP",
            "process 2 waits in line 7 for a message from process 0, which is never sent; add a SEND or remove the RECEIVE",
        );
        check(
            "PROCESS 0\nSEND 1 5\nSTOP\nPROCESS 1\nRECEIVE 0 6\nSTOP",
            "process 1 expects 6 flits from process 0 in line 5, but the message sent in line 2 has 5; use the \
             same length",
        );
    }

    #[test]
    fn refuses_programs_that_are_too_long_or_whose_sums_are_inexact() {
        let text = "PROCESS 0\nREPEAT 4000000000\nREPEAT 4000000000\nINT_OP 1\nEND\nEND\nSTOP";
        let error = parse(text).expect("a text").check().expect_err("too long");
        assert!(error.to_string().contains("repeat less"), "{error}");
        // The line belongs to the process that executes most instructions, not to the longest text.
        let text = format!(
            "PROCESS 0\nINT_OP 1\nINT_OP 1\nINT_OP 1\nSTOP\n{}",
            text.replace("PROCESS 0", "PROCESS 1")
        );
        assert_eq!(parse(&text).expect("a text").check().expect_err("too long").line(), 6);
        let text = "PROCESS 0\nREPEAT 2000\nINT_OP 1099511627776\nEND\nSTOP";
        let error = parse(text).expect("a text").check().expect_err("too much");
        assert!(error.to_string().starts_with("up to process 0, the cycles and flits"), "{error}");
    }
}
