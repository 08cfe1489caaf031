//! Failures of commands: an error sentence and an exit code.
//!
//! The exit code is 2 if the command line must be corrected: an invalid flag or value, a missing file or folder, flags
//! that exclude each other. It is 1 for all other failures: a broken file, a strategy without an assignment, a full
//! disk. It is 0 otherwise, also if the reader of the output closes it.

use std::error::Error;
use std::fmt::{self, Display};
use std::iter;
use std::process::ExitCode;

use equipoise_model::fault::{Classified, Fault};

/// Why a command has no result.
#[derive(Debug)]
pub enum Failure {
    /// An error: its class, and a sentence with the remedy.
    Of(Fault, String),
    /// The reader of the output has closed it, as `head` after some lines.
    ReaderLeft,
}

impl Failure {
    /// The command line is at fault.
    pub fn usage(sentence: impl ToString) -> Failure {
        Failure::Of(Fault::Usage, sentence.to_string())
    }

    /// A file or something else that the command line names is at fault.
    pub fn input(sentence: impl ToString) -> Failure {
        Failure::Of(Fault::Input, sentence.to_string())
    }

    /// The program is at fault.
    pub fn bug(sentence: impl ToString) -> Failure {
        Failure::Of(Fault::Bug, sentence.to_string())
    }

    /// The same failure with the prefix `what: `.
    pub fn about(self, what: impl Display) -> Failure {
        match self {
            Failure::Of(fault, sentence) => Failure::Of(fault, format!("{what}: {sentence}")),
            Failure::ReaderLeft => Failure::ReaderLeft,
        }
    }

    /// The exit code of the process; prints the error of a failure on stderr.
    pub fn exit_code(result: Result<ExitCode, Failure>) -> ExitCode {
        match result {
            Ok(code) => code,
            Err(Failure::ReaderLeft) => ExitCode::SUCCESS,
            Err(Failure::Of(fault, sentence)) => {
                equipoise::print_error(&sentence);
                ExitCode::from(fault.exit_code())
            }
        }
    }
}

impl<E: Classified> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Of(error.fault(), sentence(&error))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Of(_, sentence) => f.write_str(sentence),
            Failure::ReaderLeft => f.write_str("the reader has closed the output"),
        }
    }
}

/// An error and its causes as one sentence. A cause that an error already contains is not repeated.
fn sentence(error: &dyn Error) -> String {
    let causes = iter::successors(error.source(), |&cause| cause.source());
    causes.map(ToString::to_string).fold(error.to_string(), |text, cause| match text.contains(&cause) {
        true => text,
        false => format!("{text}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_failure_keeps_the_class_of_its_error() {
        let check =
            |kind: io::ErrorKind, expected: Fault| match Failure::from(io::Error::from(kind)).about("x") {
                Failure::Of(fault, sentence) => {
                    assert!(fault == expected && sentence.starts_with("x: "), "{sentence}")
                }
                Failure::ReaderLeft => panic!("expected an error"),
            };
        check(io::ErrorKind::NotFound, Fault::Usage);
        check(io::ErrorKind::StorageFull, Fault::Input);
    }
}
