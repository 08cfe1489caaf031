//! The class of an error: wrong usage, wrong input or a bug. It determines the exit code of commands.

use std::error::Error;
use std::io;

/// Where an error must be corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// In the request: a flag, a spec or a name is malformed, unknown, or inconsistent with the other arguments.
    Usage,
    /// In the data: a file has invalid content, values cannot be used, or a disk is full.
    Input,
    /// In this program or in one of its libraries.
    Bug,
}

/// An error that has a [`Fault`].
pub trait Classified: Error {
    /// The class of the error.
    fn fault(&self) -> Fault;
}

impl Fault {
    /// The exit code of a process that fails with this error.
    pub fn exit_code(self) -> u8 {
        match self {
            Fault::Usage => 2,
            Fault::Input | Fault::Bug => 1,
        }
    }
}

/// An error that another file name can avoid is a usage error; others, such as a full disk, are input errors.
impl Classified for io::Error {
    fn fault(&self) -> Fault {
        use io::ErrorKind::*;
        match self.kind() {
            NotFound | AlreadyExists | IsADirectory | NotADirectory | PermissionDenied
            | ReadOnlyFilesystem | InvalidInput | InvalidFilename => Fault::Usage,
            _ => Fault::Input,
        }
    }
}
