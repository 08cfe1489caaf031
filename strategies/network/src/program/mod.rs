//! Programs of processes that compute, send and receive: the input of the contention-aware mapper.
//!
//! G. De Petris, R. Perego, "A new mapping heuristic for last generation multicomputers" (report C94-09, 1994),
//! section 3.2. A program is one [`Process`] per task:
//!
//! ```text
//! # Two processes that exchange ten messages each way.
//! PROCESS 0 MEMORY 4096
//!   REPEAT 10
//!     INT_OP 800
//!     SEND 1 64
//!     RECEIVE 1 64
//!   END
//! STOP
//! PROCESS 1
//!   REPEAT 10
//!     RECEIVE 0 64
//!     SEND 0 64
//!   END
//! STOP
//! ```
//!
//! Processes are numbered from 0, in any order. `INT_OP` computes for a number of cycles; `SEND` and `RECEIVE` name the
//! other process and the message length in flits. A send never waits; a receive waits for the oldest message from that
//! process that has not been received. Two instructions are our additions: `REPEAT` keeps iterative programs short, and
//! `MEMORY` states the bytes that a process needs; the mapper compares them with the memory of a PE.
//!
//! - [`parse`] and [`Program::text`]: reading and writing the language; [`load`] also takes generators (see [`generate`]);
//! - [`Program::check`]: deadlocks and unmatched messages, by process and line;
//! - [`execute()`]: the execution of a program on a machine; [`Model::of`]: the model that the mapper works on;
//! - [`convert`]: conversion of recorded traces into programs.

use std::path::{Path, PathBuf};

use equipoise_model::files::{self, Unread};

use equipoise_model::descriptor::split;
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::quote::{quoted, sentence, shown};

mod check;
mod code;
pub mod convert;
mod execute;
pub mod generate;
mod isomorphic;
mod model;
mod phases;
mod simulation;
mod text;

pub use check::CheckError;
pub use code::MAX_STEPS;
pub use execute::{Costs, Delivery, Execution, execute, execute_on};
pub use isomorphic::Isomorphic;
pub use model::{Channel, Model, Task, Waits};
pub use phases::OVERLAP;
pub use simulation::{PreparedSimulation, ProgramSimulation};
pub use text::parse;

/// The maximum number of processes of a program.
pub const MAX_PROCESSES: usize = 4096;

/// The maximum number of cycles or flits of an instruction, so that sums of many remain exact in `f64`.
pub const MAX_AMOUNT: u64 = 1 << 40;

/// A program of communicating processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The processes, by number.
    pub processes: Vec<Process>,
}

/// A process of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The bytes that the process needs on its PE, if stated.
    pub memory_bytes: Option<u64>,
    /// The instructions, in order.
    pub body: Vec<Statement>,
    /// The first line of the process in the text of the program, from 1.
    pub line: u32,
}

/// An instruction and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The line in the text of the program, from 1.
    pub line: u32,
    /// The instruction.
    pub instruction: Instruction,
}

/// An instruction of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Computes for this number of cycles.
    IntOp(u64),
    /// Sends a message without waiting.
    Send {
        /// The receiver.
        to: u32,
        /// The length of the message.
        flits: u64,
    },
    /// Waits for the next message of a process.
    Receive {
        /// The sender.
        from: u32,
        /// The length of the message.
        flits: u64,
    },
    /// Repeats instructions.
    Repeat {
        /// The number of repetitions.
        times: u64,
        /// The instructions.
        body: Vec<Statement>,
    },
}

impl Instruction {
    /// A statement without a line; [`Program::new`] assigns lines.
    pub fn without_line(self) -> Statement {
        Statement { line: 0, instruction: self }
    }
}

impl Program {
    /// A program with these processes and the line numbers of [`Program::text`].
    pub fn new(processes: Vec<Process>) -> Self {
        let mut program = Program { processes };
        text::assign_lines(&mut program);
        program
    }

    /// The number of processes.
    pub fn tasks(&self) -> usize {
        self.processes.len()
    }
}

/// Why a program cannot be loaded. The message names the problem and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// A spec that is no program.
    #[error("`{}` is not a program: {}", quoted(.spec), sentence(.reason))]
    Spec {
        /// The spec as written.
        spec: String,
        /// The problem, and the expected input.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("cannot read the program `{}`: {source}; check its name and that it may be read", shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file with invalid content.
    #[error("{}:{line}: {}", shown(.path), sentence(.reason))]
    Content {
        /// The file.
        path: PathBuf,
        /// The line with the problem, from 1.
        line: usize,
        /// The problem, and the expected input.
        reason: String,
    },
}

impl Classified for ProgramError {
    fn fault(&self) -> Fault {
        match self {
            ProgramError::Spec { .. } | ProgramError::Read { .. } => Fault::Usage,
            ProgramError::Content { .. } => Fault::Input,
        }
    }
}

/// File extensions of traces, which can be converted into programs.
const TRACE_EXTENSIONS: [&str; 2] = ["trf", "trace"];

/// Loads the program of a spec: a file in the language above, or a generator such as `ring:n=16` (or `ring`) if there is no
/// file with this name. The program has passed [`Program::check`].
///
/// # Errors
/// When the spec names neither a generator nor a file, or the file has no program that terminates.
pub fn load(spec: &str) -> Result<Program, ProgramError> {
    let (path, content) = (Path::new(spec), |line: usize, reason: String| ProgramError::Content {
        path: spec.into(),
        line,
        reason,
    });
    if (spec.contains(':') || generate::exists(spec)) && !path.exists() {
        let (name, rest) = split(spec);
        return generate::make(name, rest)
            .map_err(|reason| ProgramError::Spec { spec: spec.to_string(), reason });
    }
    if let Some(kind) =
        TRACE_EXTENSIONS.iter().find(|kind| path.extension().is_some_and(|it| it.eq_ignore_ascii_case(kind)))
    {
        let program = path.with_extension("tcg");
        return Err(ProgramError::Spec {
            spec: spec.to_string(),
            reason: format!(
                "a .{kind} file is a trace; convert it with `equipoise convert {spec} {}`",
                program.display()
            ),
        });
    }
    let text = files::text(path).map_err(|unread| match unread {
        Unread::System(source) => ProgramError::Read { path: spec.into(), source },
        Unread::Content((line, reason)) => content(line, reason),
    })?;
    let program = parse(&text).map_err(|(line, reason)| content(line, reason))?;
    program.check().map_err(|error| content(error.line() as usize, error.to_string()))?;
    Ok(program)
}

/// Help for the specs of programs.
pub fn help() -> String {
    let file = "any other FILE\n    A program in the language of the greedy mapper: PROCESS (MEMORY), INT_OP, SEND, \
                RECEIVE, REPEAT .. END, STOP.\n";
    generate::help() + file
}
