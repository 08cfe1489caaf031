//! A program as one list of operations per process, in the form that is executed.

use super::{Instruction, Process, Program, Statement};

/// The maximum number of instructions that a program may execute, repetitions included.
pub const MAX_STEPS: u64 = 1 << 26;

/// An operation. Positions in the code count from the beginning of the process.
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
    /// Begins a loop of `times` iterations; continues at position `after` if `times` is 0.
    Begin {
        times: u64,
        after: u32,
    },
    /// Ends an iteration of the loop whose `Begin` is at this position.
    End {
        begin: u32,
    },
    Stop,
}

/// The operations of a process, and the line of each.
pub(super) struct Code {
    pub(super) ops: Vec<(Op, u32)>,
}

/// The position of a process in its code, and the remaining iterations of the loops around it.
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
                ops[begin].0 = Op::Begin { times, after: ops.len() as u32 };
            }
        }
    }
}

impl Cursor {
    /// The present operation and its line. Loop operations are executed on the way, so they are never returned.
    pub(super) fn op(&mut self, code: &Code) -> (Op, u32) {
        loop {
            let (op, line) = code.ops[self.at as usize];
            match op {
                Op::Begin { times: 0, after } => self.at = after,
                Op::Begin { times, .. } => {
                    self.left.push(times);
                    self.at += 1;
                }
                Op::End { begin } => {
                    let left = self.left.last_mut().expect("an END has a REPEAT");
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

    /// Moves to the next operation.
    pub(super) fn advance(&mut self) {
        self.at += 1;
    }
}

impl Program {
    /// The number of instructions that are executed. A `REPEAT` counts as one instruction, plus one per iteration, plus
    /// its body in each iteration.
    pub fn steps(&self) -> u64 {
        self.processes.iter().fold(0, |sum, process| sum.saturating_add(process.steps()))
    }
}

impl Process {
    /// The number of instructions that the process executes.
    pub(super) fn steps(&self) -> u64 {
        steps(&self.body)
    }
}

fn steps(body: &[Statement]) -> u64 {
    let of = |statement: &Statement| match &statement.instruction {
        Instruction::Repeat { times, body } => {
            // A `REPEAT 0` is executed, too.
            times.saturating_mul(steps(body).saturating_add(1)).saturating_add(1)
        }
        _ => 1,
    };
    body.iter().map(of).fold(0, u64::saturating_add)
}
