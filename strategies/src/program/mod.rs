//! Programs of processes that compute, send and receive: what the contention-aware mapper is given.
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
//! Processes are numbered from 0 and may stand in any order. `INT_OP` computes for so many cycles; `SEND` and
//! `RECEIVE` name the other process and the flits of the message. A send never waits; a receive waits for the
//! message that was sent to it first of those from that process. Ours are `REPEAT`, which keeps iterative programs
//! short, and `MEMORY`, the bytes a process needs, against which the mapper holds the memory of a PE.
//!
//! - [`parse`] and [`Program::text`]: the language; [`load`] also understands generators (see [`generate`]);
//! - [`Program::check`]: deadlocks and unmatched messages, by process and line;
//! - [`execute()`]: when a program is over on a machine; [`Model::of`]: what the mapper needs to know of it;
//! - [`convert`]: programs of recorded traces.

use std::path::{Path, PathBuf};

use crate::files::{self, NOT_TEXT, Unread};

mod check;
mod code;
pub mod convert;
mod execute;
pub mod generate;
mod isomorphic;
mod model;
mod phases;
mod picl;
mod text;
mod trial;

pub use check::Mistake;
pub use code::MAX_STEPS;
pub use execute::{Costs, Delivery, Execution, execute, execute_on};
pub use isomorphic::Isomorphic;
pub use model::{Channel, Model, Task, Waits};
pub use phases::OVERLAP;
pub use text::parse;
pub use trial::Trial;

/// The most processes a program has.
pub const MAX_PROCESSES: usize = 4096;

/// The most cycles or flits that an instruction may name: sums of many remain exact in `f64`.
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
    /// The bytes it needs on its PE, if anybody said.
    pub memory_bytes: Option<u64>,
    /// What it does, in order.
    pub body: Vec<Statement>,
    /// Where its description begins in its text, from 1.
    pub line: u32,
}

/// An instruction and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its line in the text of the program, from 1.
    pub line: u32,
    /// What is done.
    pub instruction: Instruction,
}

/// What a process does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Computes for so many cycles.
    IntOp(u64),
    /// Sends a message; it does not wait.
    Send {
        /// The process it is for.
        to: u32,
        /// Its length.
        flits: u64,
    },
    /// Waits for the next message of that process.
    Receive {
        /// The process that sends it.
        from: u32,
        /// Its length.
        flits: u64,
    },
    /// Does the same so many times.
    Repeat {
        /// How often.
        times: u64,
        /// What.
        body: Vec<Statement>,
    },
}

impl Instruction {
    /// The instruction where it does not matter on which line it stands; [`Program::new`] gives it one.
    pub fn anywhere(self) -> Statement {
        Statement { line: 0, instruction: self }
    }
}

impl Program {
    /// The program of these processes, with the lines of [`Program::text`].
    pub fn new(processes: Vec<Process>) -> Self {
        let mut program = Program { processes };
        text::number(&mut program);
        program
    }

    /// How many processes it has.
    pub fn tasks(&self) -> usize {
        self.processes.len()
    }
}

/// Why there is no program: a sentence that names what was wrong and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// A generator that was asked for something it cannot make.
    #[error("`{spec}` is not a program: {reason}")]
    Spec {
        /// The spec as written.
        spec: String,
        /// What is wrong with it and what was expected.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("cannot read the program `{}`: {source}; check its name and that it may be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file whose content is not what it should be.
    #[error("{}:{line}: {reason}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The line at fault, from 1.
        line: usize,
        /// What is wrong with it and what was expected.
        reason: String,
    },
}

impl ProgramError {
    /// Whether another spec or name is the remedy; otherwise a file is broken.
    pub fn is_of_the_request(&self) -> bool {
        !matches!(self, ProgramError::Content { .. })
    }
}

/// What the names of traces end with, of which programs can be made.
const TRACES: [&str; 2] = ["trf", "trace"];

/// The program of a spec: a generator such as `ring:n=16` (or `ring`), or a file in the language above. It has passed
/// [`Program::check`].
///
/// # Errors
/// When the spec names no generator and no file, or the file holds no program that comes to an end.
pub fn load(spec: &str) -> Result<Program, ProgramError> {
    let (path, whole) = (Path::new(spec), |line: usize, reason: String| ProgramError::Content {
        path: spec.into(),
        line,
        reason,
    });
    let named = spec.split_once(':').or_else(|| generate::is_one(spec).then_some((spec, "")));
    if let Some((name, rest)) = named
        && !path.exists()
    {
        return generate::make(name, rest)
            .map_err(|reason| ProgramError::Spec { spec: spec.to_string(), reason });
    }
    if let Some(kind) =
        TRACES.iter().find(|kind| path.extension().is_some_and(|it| it.eq_ignore_ascii_case(kind)))
    {
        let program = path.with_extension("tcg");
        return Err(ProgramError::Spec {
            spec: spec.to_string(),
            reason: format!(
                "a .{kind} file is a trace, of which `equipoise convert {spec} {}` makes one",
                program.display()
            ),
        });
    }
    let text = files::text(path).map_err(|unread| match unread {
        Unread::System(source) => ProgramError::Read { path: spec.into(), source },
        Unread::NotText(line) => whole(line, NOT_TEXT.into()),
    })?;
    let program = parse(&text).map_err(|(line, reason)| whole(line, reason))?;
    program.check().map_err(|mistake| whole(mistake.line() as usize, mistake.to_string()))?;
    Ok(program)
}

/// What a person can write where a program is asked for.
pub fn help() -> String {
    let file = "any other FILE\n    A program in the language of the greedy mapper: PROCESS (MEMORY), INT_OP, SEND, \
                RECEIVE, REPEAT .. END, STOP.\n";
    generate::help() + file
}
