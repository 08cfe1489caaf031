//! A program as a list of operations per process, which is what is executed.

use super::{Instruction, Process, Program, Statement};

/// The most instructions that a program may execute in all its repetitions.
pub const MAX_STEPS: u64 = 1 << 26;

/// An operation; places in the code are counted from the beginning of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Compute(u64),
    Send {
        to: u32,
        flits: u64,
    },
    Receive {
        from: u32,
        flits: u64,
    },
    /// Does what follows so many times, or goes on at `over` if there is none to do.
    Begin {
        times: u64,
        over: u32,
    },
    /// Back to behind the `Begin` at that place, or on.
    End {
        begin: u32,
    },
    Stop,
}

/// The operations of a process, and the line of each.
pub(super) struct Code {
    pub(super) ops: Vec<(Op, u32)>,
}

/// Where a process is in its code, and how often it still repeats what it is in.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    at: u32,
    left: Vec<u64>,
}

impl Code {
    /// The code of every process.
    pub(super) fn of(program: &Program) -> Vec<Code> {
        let code = |process: &Process| {
            let mut ops = Vec::new();
            flatten(&process.body, &mut ops);
            ops.push((Op::Stop, process.line));
            Code { ops }
        };
        program.processes.iter().map(code).collect()
    }
}

fn flatten(body: &[Statement], ops: &mut Vec<(Op, u32)>) {
    for Statement { line, instruction } in body {
        match *instruction {
            Instruction::IntOp(cycles) => ops.push((Op::Compute(cycles), *line)),
            Instruction::Send { to, flits } => ops.push((Op::Send { to, flits }, *line)),
            Instruction::Receive { from, flits } => ops.push((Op::Receive { from, flits }, *line)),
            Instruction::Repeat { times, ref body } => {
                let begin = ops.len();
                ops.push((Op::Stop, *line));
                flatten(body, ops);
                ops.push((Op::End { begin: begin as u32 }, *line));
                ops[begin].0 = Op::Begin { times, over: ops.len() as u32 };
            }
        }
    }
}

impl Cursor {
    /// The operation it is at, which is none of repetition, and its line.
    pub(super) fn op(&mut self, code: &Code) -> (Op, u32) {
        loop {
            let (op, line) = code.ops[self.at as usize];
            match op {
                Op::Begin { times: 0, over } => self.at = over,
                Op::Begin { times, .. } => {
                    self.left.push(times);
                    self.at += 1;
                }
                Op::End { begin } => {
                    let left = self.left.last_mut().expect("an end has a beginning");
                    *left -= 1;
                    if *left == 0 {
                        self.left.pop();
                        self.at += 1;
                    } else {
                        self.at = begin + 1;
                    }
                }
                op => return (op, line),
            }
        }
    }

    /// On to what follows.
    pub(super) fn go_on(&mut self) {
        self.at += 1;
    }
}

impl Program {
    /// How many instructions are executed in all, those of repetitions as often as they are done, one for
    /// every time something is repeated, and one for every repetition.
    pub fn steps(&self) -> u64 {
        self.processes.iter().fold(0, |sum, process| sum.saturating_add(process.steps()))
    }
}

impl Process {
    /// How many instructions it executes.
    pub(super) fn steps(&self) -> u64 {
        steps(&self.body)
    }
}

fn steps(body: &[Statement]) -> u64 {
    let of = |statement: &Statement| match &statement.instruction {
        Instruction::Repeat { times, body } => {
            // One that is done no time is passed, too.
            times.saturating_mul(steps(body).saturating_add(1)).saturating_add(1)
        }
        _ => 1,
    };
    body.iter().map(of).fold(0, u64::saturating_add)
}
