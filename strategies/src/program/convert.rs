//! Programs of recorded runs: of our own event traces, and of traces in the format of PICL.
//!
//! A trace says what happened once: who computed for how long, sent what to whom, and received it. Where messages of a
//! channel were received in another order than they were sent, the program receives them in the order of their
//! sends, as its language wants it; that cannot deadlock, since as many had been sent by then. What follows
//! itself exactly becomes a repetition.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{Instruction, MAX_AMOUNT, MAX_PROCESSES, Process, Program, Statement};
use crate::trace::{Step, Trace};

pub use super::picl::picl;

/// What a process did, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Act {
    /// It computed for so many cycles.
    Work(f64),
    /// It sent a message of so many bytes.
    Send(u32, u64),
    /// It received a message.
    Receive(u32),
}

/// The program of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// It comes to an end.
    pub program: Program,
    /// Messages of the trace that the program has not: of which only the sending or only the receiving is known, and of
    /// processes to themselves.
    pub left_out: u64,
}

/// Why a trace is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unconverted {
    /// A cycle of another length is the remedy.
    #[error("{0}")]
    Cycle(String),
    /// The trace cannot be used: the line, from 1, if it is a text, and a sentence.
    #[error("{1}")]
    Trace(Option<usize>, String),
}

impl From<String> for Unconverted {
    fn from(reason: String) -> Self {
        Unconverted::Trace(None, reason)
    }
}

/// The program of an event trace that has passed [`Trace::check`]: a process for every object, in their order, and after
/// them one for every PE that did something itself. Seconds of work are cycles of `cycle_seconds`, bytes are flits.
///
/// What a message answers becomes its receive. Messages that nothing answers and those of an object to itself are left
/// out and counted; so is, uncounted, what executions waited for beside messages.
///
/// # Errors
/// When there are more processes than a program may have, or nobody did anything.
pub fn trace(trace: &Trace, cycle_seconds: f64) -> Result<Converted, Unconverted> {
    let objects = trace.objects.len() as u32;
    let mut process_of_pe: FxHashMap<u32, u32> = FxHashMap::default();
    let mut process = |object: u32| match object.checked_sub(trace.pes) {
        Some(object) => object,
        None => {
            let next = objects + process_of_pe.len() as u32;
            *process_of_pe.entry(object).or_insert(next)
        }
    };
    // Who sent each message, and the first execution of its receiver that answers it.
    let mut sender = vec![None; trace.messages.len()];
    let mut answer = vec![None; trace.messages.len()];
    for execution in &trace.executions {
        for step in &execution.steps {
            if let Step::Send(message) = step {
                sender[*message as usize] = Some((execution.object, trace.messages[*message as usize].to));
            }
        }
    }
    for (number, execution) in trace.executions.iter().enumerate() {
        if let Some(cause) = execution.cause {
            let is_its =
                sender[cause as usize].is_some_and(|(from, to)| to == execution.object && from != to);
            if is_its {
                answer[cause as usize].get_or_insert(number);
            }
        }
    }
    let mut acts: Vec<Vec<Act>> = vec![Vec::new(); objects as usize];
    for (number, execution) in trace.executions.iter().enumerate() {
        let id = process(execution.object) as usize;
        if acts.len() <= id {
            acts.resize(id + 1, Vec::new());
        }
        let cause = execution.cause.filter(|&cause| answer[cause as usize] == Some(number));
        if let Some((from, _)) = cause.and_then(|cause| sender[cause as usize]) {
            let from = process(from);
            acts[id].push(Act::Receive(from));
        }
        for step in &execution.steps {
            match *step {
                Step::Work(seconds) => acts[id].push(Act::Work(seconds / cycle_seconds)),
                Step::Send(message) if answer[message as usize].is_some() => {
                    let TraceEnd { to, bytes } = end(trace, message);
                    let to = process(to);
                    acts[id].push(Act::Send(to, bytes));
                }
                Step::Send(_) => {}
            }
        }
    }
    let unanswered = answer.iter().filter(|answer| answer.is_none()).count() as u64;
    let Converted { program, left_out } = program(acts)?;
    Ok(Converted { program, left_out: left_out + unanswered })
}

/// Where a message goes, and its size.
struct TraceEnd {
    to: u32,
    bytes: u64,
}

fn end(trace: &Trace, message: u32) -> TraceEnd {
    let message = &trace.messages[message as usize];
    TraceEnd { to: message.to, bytes: message.bytes }
}

/// The program of what processes did, and how many messages it leaves out: those that are sent and never received, or
/// received and never sent.
///
/// # Errors
/// When there are no processes, or too many, or one computed or sent too much.
pub(super) fn program(mut acts: Vec<Vec<Act>>) -> Result<Converted, Unconverted> {
    if acts.is_empty() || acts.len() > MAX_PROCESSES {
        return Err(format!("there are {} processes; a program has 1 to {MAX_PROCESSES}", acts.len()).into());
    }
    // By channel: how many are sent and received; then the lengths of those that are both.
    let mut counts: FxHashMap<(u32, u32), (u64, u64)> = FxHashMap::default();
    for (id, acts) in (0..).zip(&acts) {
        for act in acts {
            match *act {
                Act::Send(to, _) => counts.entry((id, to)).or_default().0 += 1,
                Act::Receive(from) => counts.entry((from, id)).or_default().1 += 1,
                Act::Work(_) => {}
            }
        }
    }
    let left_out = counts.values().map(|&(sent, received)| sent.abs_diff(received)).sum();
    let mut lengths: FxHashMap<(u32, u32), VecDeque<u64>> = FxHashMap::default();
    for (id, acts) in (0..).zip(&mut acts) {
        acts.retain(|act| {
            let Act::Send(to, bytes) = *act else { return true };
            let (sent, received) = counts[&(id, to)];
            let queue = lengths.entry((id, to)).or_default();
            let is_received = (queue.len() as u64) < sent.min(received);
            if is_received {
                queue.push_back(bytes.clamp(1, MAX_AMOUNT));
            }
            is_received
        });
    }
    let mut processes = Vec::with_capacity(acts.len());
    for (id, acts) in (0..).zip(acts) {
        let (mut body, mut worked) = (Vec::new(), 0.0);
        for act in acts {
            let instruction = match act {
                Act::Work(cycles) => {
                    worked += cycles;
                    continue;
                }
                Act::Send(to, bytes) => Instruction::Send { to, flits: bytes.clamp(1, MAX_AMOUNT) },
                Act::Receive(from) => {
                    let flits = lengths.get_mut(&(from, id)).and_then(VecDeque::pop_front);
                    let Some(flits) = flits else { continue };
                    Instruction::Receive { from, flits }
                }
            };
            work(&mut body, std::mem::take(&mut worked))?;
            body.push(instruction.anywhere());
        }
        work(&mut body, worked)?;
        processes.push(Process { memory_bytes: None, body: folded(body), line: 0 });
    }
    let program = Program::new(processes);
    program.check().map_err(|mistake| mistake.to_string())?;
    Ok(Converted { program, left_out })
}

fn work(body: &mut Vec<Statement>, cycles: f64) -> Result<(), Unconverted> {
    let cycles = cycles.round();
    if cycles > MAX_AMOUNT as f64 {
        return Err(Unconverted::Cycle(format!(
            "somebody computes for {cycles} cycles at once, of at most {MAX_AMOUNT}; make a cycle longer"
        )));
    }
    if cycles >= 1.0 {
        body.push(Instruction::IntOp(cycles as u64).anywhere());
    }
    Ok(())
}

/// The longest part whose repetitions are looked for.
const MAX_PERIOD: usize = 64;

/// The same with what follows itself exactly as a repetition: at every place, that which makes it shortest.
fn folded(body: Vec<Statement>) -> Vec<Statement> {
    let (mut folded, mut at) = (Vec::new(), 0);
    while at < body.len() {
        let rest = &body[at..];
        let times =
            |period: usize| rest.chunks_exact(period).take_while(|part| *part == &rest[..period]).count();
        let periods = (1..=MAX_PERIOD.min(rest.len() / 2)).map(|period| (period, times(period)));
        let best = periods
            .filter(|&(_, times)| times > 1)
            .max_by_key(|&(period, times)| (period * (times - 1), std::cmp::Reverse(period)));
        match best {
            Some((period, times)) => {
                let part = rest[..period].to_vec();
                folded.push(Instruction::Repeat { times: times as u64, body: part }.anywhere());
                at += period * times;
            }
            None => {
                folded.push(rest[0].clone());
                at += 1;
            }
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Execution;
    use crate::trace::tests::exchange;

    #[test]
    fn a_trace_becomes_what_its_objects_did() {
        let Converted { program, left_out } = trace(&exchange(), 0.01).expect("a program");
        assert_eq!(left_out, 0);
        // Two objects, and PE 0, which gets the answer.
        let expected = "PROCESS 0\n  INT_OP 100\n  SEND 1 100\n  INT_OP 100\nSTOP\n\
                        PROCESS 1\n  RECEIVE 0 100\n  INT_OP 200\n  SEND 2 50\nSTOP\n\
                        PROCESS 2\n  RECEIVE 1 50\n  INT_OP 50\nSTOP\n";
        assert_eq!(program.text(), expected);
        // What else a message set off, there or elsewhere, received nothing.
        let mut twice = exchange();
        let answer = twice.executions[1].clone();
        twice.executions.push(Execution { steps: Vec::new(), ..answer.clone() });
        twice.executions.push(Execution { object: 4, steps: Vec::new(), ..answer });
        assert_eq!(trace(&twice, 0.01).expect("a program").program.text(), expected);
        let mut unanswered = exchange();
        unanswered.executions.pop();
        let Converted { program, left_out } = trace(&unanswered, 1.0).expect("a program");
        assert_eq!(left_out, 1);
        assert_eq!(
            program.text(),
            "PROCESS 0\n  INT_OP 1\n  SEND 1 100\n  INT_OP 1\nSTOP\nPROCESS 1\n  RECEIVE 0 100\n  INT_OP 2\nSTOP\n"
        );
    }

    #[test]
    fn what_follows_itself_becomes_a_repetition() {
        let round = [Act::Work(3.2), Act::Work(1.9), Act::Send(1, 0)];
        let acts = vec![[&[Act::Work(9.0)][..], &round, &round, &round].concat(), vec![Act::Receive(0); 4]];
        let expected = "PROCESS 0\n  INT_OP 14\n  REPEAT 2\n    SEND 1 1\n    INT_OP 5\n  END\n  SEND 1 1\nSTOP\n\
                        PROCESS 1\n  REPEAT 3\n    RECEIVE 0 1\n  END\nSTOP\n";
        assert_eq!(program(acts).expect("a program").program.text(), expected);
    }

    #[test]
    fn too_much_is_refused() {
        let error = program(vec![vec![Act::Work(1e15)]]).expect_err("too long");
        assert!(error.to_string().contains("make a cycle longer"), "{error}");
        assert!(program(Vec::new()).expect_err("nobody").to_string().contains("there are 0 processes"));
    }
}
