//! Errors in specs of machines and in the files that they name.

use std::fmt;
use std::path::Path;

use crate::fault::{Classified, Fault};
use crate::files::{self, Unread};
use crate::params::ParamError;
use crate::quote::{quoted, sentence};

/// An invalid spec of a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a topology: {}", quoted(.spec), sentence(.reason))]
pub struct TopologyError {
    /// The spec as written.
    pub spec: String,
    /// What is wrong and what was expected.
    pub reason: String,
    /// Whether the spec is wrong, or the content of a file named in it.
    pub fault: Fault,
}

impl Classified for TopologyError {
    fn fault(&self) -> Fault {
        self.fault
    }
}

/// An error in a spec or in a part of a spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SpecError {
    /// Whether the spec is wrong, or the content of a file named in it.
    pub fault: Fault,
    /// What is wrong and what was expected.
    pub reason: String,
}

impl Classified for SpecError {
    fn fault(&self) -> Fault {
        self.fault
    }
}

impl From<String> for SpecError {
    fn from(reason: String) -> Self {
        SpecError { fault: Fault::Usage, reason }
    }
}

impl From<ParamError> for SpecError {
    fn from(error: ParamError) -> Self {
        SpecError { fault: error.fault(), reason: error.into() }
    }
}

impl From<&str> for SpecError {
    fn from(reason: &str) -> Self {
        reason.to_string().into()
    }
}

impl SpecError {
    /// An error in the content of the file `name`.
    pub(super) fn in_file(name: &str, reason: impl fmt::Display) -> Self {
        SpecError { fault: Fault::Input, reason: format!("{name}: {reason}") }
    }
}

/// Reads a file and parses its content with `read`; `what` describes the content in errors.
pub(super) fn from_file<T>(
    what: &str,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, SpecError> {
    read(&text(what, name)?).map_err(|reason| SpecError::in_file(name, reason))
}

/// The text of a file; `what` describes the content in errors.
pub(super) fn text(what: &str, name: &str) -> Result<String, SpecError> {
    files::text(Path::new(name)).map_err(|unread| {
        let reason = match &unread {
            Unread::System(_) => format!("cannot read the {what} `{name}`: {unread}"),
            Unread::Content(_) => format!("{name}: {unread}"),
        };
        SpecError { fault: unread.fault(), reason }
    })
}
