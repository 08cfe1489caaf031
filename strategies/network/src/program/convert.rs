//! Converts recorded runs into programs: our own event traces, and traces in the format of PICL.
//!
//! A trace records the computations, sends and receives of one run. A program receives the messages of a channel in the
//! order of their sends, even if the recorded run received them in another order. This cannot deadlock, because at each
//! receive the recorded run had sent at least as many messages of the channel. Sequences of instructions that repeat exactly become a `REPEAT`.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{Instruction, MAX_AMOUNT, MAX_PROCESSES, Process, Program, Statement};
use crate::trace::{Step, Trace, TraceMessage};
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::quote::sentence;

mod picl;

pub use picl::picl;

/// A recorded action of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    /// A computation, in cycles.
    Work(f64),
    /// A send: the receiver and the bytes.
    Send(u32, u64),
    /// A receive: the sender.
    Receive(u32),
}

/// The result of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The program; it has passed [`Program::check`].
    pub program: Program,
    /// The number of omitted messages: those with only a send or only a receive, and those of a process to itself.
    pub left_out: u64,
}

/// Why a trace cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The length of the cycle is unsuitable.
    #[error("{}", sentence(.0))]
    Cycle(String),
    /// The trace cannot be used: the line, from 1, if the trace is a text, and the problem.
    #[error("{}", sentence(.1))]
    Trace(Option<usize>, String),
}

impl Classified for ConvertError {
    fn fault(&self) -> Fault {
        match self {
            ConvertError::Cycle(_) => Fault::Usage,
            ConvertError::Trace(..) => Fault::Input,
        }
    }
}

impl From<String> for ConvertError {
    fn from(reason: String) -> Self {
        ConvertError::Trace(None, reason)
    }
}

/// Converts an event trace that has passed [`Trace::check`]. The program has one process per object, in the same order,
/// and after them one per PE that executed work itself. Work becomes cycles of `cycle_seconds`, and bytes become flits.
///
/// The first execution that a message caused at its receiver ([`Trace::receives`]) becomes the receive. Messages without such an execution,
/// and messages of an object to itself, are omitted and counted. Dependencies other than messages are omitted.
///
/// # Errors
/// When there are no processes, or more than a program may have.
pub fn trace(trace: &Trace, cycle_seconds: f64) -> Result<Converted, ConvertError> {
    let objects = trace.objects.len() as u32;
    let mut process_of_pe: FxHashMap<u32, u32> = FxHashMap::default();
    let mut process = |object: u32| match object.checked_sub(trace.pes) {
        Some(object) => object,
        None => {
            let next = objects + process_of_pe.len() as u32;
            *process_of_pe.entry(object).or_insert(next)
        }
    };
    // By message: its sender and receiver.
    let mut ends = vec![None; trace.messages.len()];
    for execution in &trace.executions {
        for step in &execution.steps {
            if let Step::Send(message) = step {
                ends[*message as usize] = Some((execution.object, trace.messages[*message as usize].to));
            }
        }
    }
    let received_by = trace.receives(|number| {
        let execution = &trace.executions[number as usize];
        let (from, to) = ends[execution.cause? as usize]?;
        (to == execution.object && from != to).then_some(execution.begin_seconds)
    });
    let mut acts: Vec<Vec<Act>> = vec![Vec::new(); objects as usize];
    for (number, execution) in (0u32..).zip(&trace.executions) {
        let id = process(execution.object) as usize;
        if acts.len() <= id {
            acts.resize(id + 1, Vec::new());
        }
        let cause = execution.cause.filter(|&cause| received_by[cause as usize] == Some(number));
        if let Some((from, _)) = cause.and_then(|cause| ends[cause as usize]) {
            let from = process(from);
            acts[id].push(Act::Receive(from));
        }
        for step in &execution.steps {
            match *step {
                Step::Work(seconds) => acts[id].push(Act::Work(seconds / cycle_seconds)),
                Step::Send(message) if received_by[message as usize].is_some() => {
                    let TraceMessage { to, bytes, .. } = trace.messages[message as usize];
                    let to = process(to);
                    acts[id].push(Act::Send(to, bytes));
                }
                Step::Send(_) => {}
            }
        }
    }
    let unreceived = received_by.iter().filter(|execution| execution.is_none()).count() as u64;
    let Converted { program, left_out } = program(acts)?;
    Ok(Converted { program, left_out: left_out + unreceived })
}

/// The program of the actions of all processes. Messages that are sent and never received, or received and never sent,
/// are omitted and counted.
///
/// # Errors
/// When there are no processes or too many, or a process computed or sent too much.
fn program(mut acts: Vec<Vec<Act>>) -> Result<Converted, ConvertError> {
    if acts.is_empty() || acts.len() > MAX_PROCESSES {
        return Err(format!("there are {} processes; a program has 1 to {MAX_PROCESSES}", acts.len()).into());
    }
    // By channel: the numbers of sends and receives, and the lengths of the messages that are kept.
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
            push_work(&mut body, std::mem::take(&mut worked))?;
            body.push(instruction.without_line());
        }
        push_work(&mut body, worked)?;
        processes.push(Process { memory_bytes: None, body: fold_repetitions(&body), line: 0 });
    }
    let program = Program::new(processes);
    program.check().map_err(|error| error.to_string())?;
    Ok(Converted { program, left_out })
}

fn push_work(body: &mut Vec<Statement>, cycles: f64) -> Result<(), ConvertError> {
    let cycles = cycles.round();
    if cycles > MAX_AMOUNT as f64 {
        return Err(ConvertError::Cycle(format!(
            "a process computes for {cycles} cycles at once, more than the maximum of {MAX_AMOUNT}; make a cycle longer"
        )));
    }
    if cycles >= 1.0 {
        body.push(Instruction::IntOp(cycles as u64).without_line());
    }
    Ok(())
}

/// The maximum length of a loop body that is searched for.
const MAX_PERIOD: usize = 64;

/// Replaces exact repetitions by `REPEAT`. At each position the repetition that shortens the program most is taken.
fn fold_repetitions(body: &[Statement]) -> Vec<Statement> {
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
                folded.push(Instruction::Repeat { times: times as u64, body: part }.without_line());
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
    fn every_object_and_active_pe_becomes_a_process() {
        let Converted { program, left_out } = trace(&exchange(), 0.01).expect("a program");
        assert_eq!(left_out, 0);
        // Two objects, and PE 0, which receives the reply.
        let expected = "PROCESS 0\n  INT_OP 100\n  SEND 1 100\n  INT_OP 100\nSTOP\n\
                        PROCESS 1\n  RECEIVE 0 100\n  INT_OP 200\n  SEND 2 50\nSTOP\n\
                        PROCESS 2\n  RECEIVE 1 50\n  INT_OP 50\nSTOP\n";
        assert_eq!(program.text(), expected);
        // Further executions with the same cause are no receives.
        let mut repeated = exchange();
        let execution = repeated.executions[1].clone();
        repeated.executions.push(Execution { steps: Vec::new(), ..execution.clone() });
        repeated.executions.push(Execution { object: 4, steps: Vec::new(), ..execution });
        assert_eq!(trace(&repeated, 0.01).expect("a program").program.text(), expected);
        let mut unreceived = exchange();
        unreceived.executions.pop();
        let Converted { program, left_out } = trace(&unreceived, 1.0).expect("a program");
        assert_eq!(left_out, 1);
        assert_eq!(
            program.text(),
            "PROCESS 0\n  INT_OP 1\n  SEND 1 100\n  INT_OP 1\nSTOP\nPROCESS 1\n  RECEIVE 0 100\n  INT_OP 2\nSTOP\n"
        );
    }

    #[test]
    fn exact_repetitions_become_loops() {
        let round = [Act::Work(3.2), Act::Work(1.9), Act::Send(1, 0)];
        let acts = vec![[&[Act::Work(9.0)][..], &round, &round, &round].concat(), vec![Act::Receive(0); 4]];
        let expected = "PROCESS 0\n  INT_OP 14\n  REPEAT 2\n    SEND 1 1\n    INT_OP 5\n  END\n  SEND 1 1\nSTOP\n\
                        PROCESS 1\n  REPEAT 3\n    RECEIVE 0 1\n  END\nSTOP\n";
        assert_eq!(program(acts).expect("a program").program.text(), expected);
    }

    #[test]
    fn refuses_too_much_work_and_empty_programs() {
        let error = program(vec![vec![Act::Work(1e15)]]).expect_err("too long");
        assert!(error.to_string().contains("make a cycle longer"), "{error}");
        assert!(program(Vec::new()).expect_err("no process").to_string().contains("there are 0 processes"));
    }
}
