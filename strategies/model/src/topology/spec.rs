//! The syntax of specs, such as `torus:4x4x4*tree:2:4/2:1` or `torus:8x8x8[random:48,seed=1]`.
//!
//! A simple spec is the kind of machine, a colon, and sizes. `A*B` is a network A of nodes B. `A[..]` is an allocation
//! of the PEs of A in the brackets. Brackets bind closer than `*`, and parentheses closer than both. In `job:4x8:A`, the
//! network A ends before a `*` or `[`; other networks are in parentheses.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{ALL, Allocation, Job, Product, Topology, job};
use crate::descriptor::{find, split};
use crate::fault::{Classified, Fault};
use crate::files::{self, Unread};
use crate::memory;
use crate::params::ParamError;
use crate::quote::{quoted, sentence};
use crate::table::count;

/// The deepest nesting of specs.
const MAX_DEPTH: usize = 16;

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

/// Parses a spec such as `torus:8x8x8`.
///
/// # Errors
/// If the kind of machine is unknown, sizes are missing, zero or too large, or a file cannot be used.
pub fn parse(spec: &str) -> Result<Arc<dyn Topology>, TopologyError> {
    checked(spec, machine(spec, 0))
}

/// The machine of `spec` if there is enough memory for it.
pub(super) fn checked(
    spec: &str,
    machine: Result<Arc<dyn Topology>, SpecError>,
) -> Result<Arc<dyn Topology>, TopologyError> {
    machine.and_then(check_memory).map_err(|SpecError { fault, reason }| TopologyError {
        spec: spec.to_string(),
        reason,
        fault,
    })
}

/// The memory that everything on a machine needs for each PE (its record, its load, its place in lists) and for each
/// link (its load).
const BYTES: (u64, u64) = (100, 8);

/// Refuses a machine for which there is not enough memory. The machine itself may be small, but its users have a number
/// for every PE, and some of them for every link.
fn check_memory(machine: Arc<dyn Topology>) -> Result<Arc<dyn Topology>, SpecError> {
    let (pes, links) = (machine.pes() as u64, machine.links() as u64);
    let what = format!("a machine of {}", count(pes, "PE"));
    memory::check(pes * BYTES.0 + links * BYTES.1, &what, "use a smaller machine")?;
    Ok(machine)
}

/// Parses a spec at nesting depth `depth`.
pub(super) fn machine(text: &str, depth: usize) -> Result<Arc<dyn Topology>, SpecError> {
    if depth > MAX_DEPTH {
        return Err(format!("machines can be nested at most {MAX_DEPTH} levels deep").into());
    }
    let part = |part: &str| match part {
        "" => Err("a machine is missing next to `*` or `[`, or after `job:..:`".into()),
        part => machine(part, depth + 1)
            .map_err(|SpecError { fault, reason }| SpecError { fault, reason: within(part, reason) }),
    };
    let operators = Operators::of(text)?;
    if let Some(star) = operators.star {
        return Ok(Arc::new(Product::new(part(&text[..star])?, part(&text[star + 1..])?)?));
    }
    match operators.last {
        Some((open, '[')) if text.ends_with(']') => {
            let chosen = &text[open + 1..text.len() - 1];
            Ok(Arc::new(Allocation::parse(part(&text[..open])?, chosen)?))
        }
        Some((0, '(')) if text.ends_with(')') => machine(&text[1..text.len() - 1], depth + 1),
        _ => match job::complete(text) {
            Some(rest) => Ok(Arc::new(Job::parse(rest, part)?)),
            None => simple_machine(text),
        },
    }
}

fn simple_machine(text: &str) -> Result<Arc<dyn Topology>, SpecError> {
    let (name, rest) = split(text);
    (find("machine", name, ALL.iter().copied())?.item)(rest)
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

/// Adds the part of the spec to an error message, unless an inner part is already named.
fn within(part: &str, reason: String) -> String {
    if reason.starts_with("in `") { reason } else { format!("in `{part}`: {reason}") }
}

/// The spec of a machine for use in another spec: in parentheses if it is a product.
pub(super) fn as_part(spec: String) -> String {
    match Operators::of(&spec) {
        Ok(Operators { star: None, .. }) => spec,
        _ => format!("({spec})"),
    }
}

/// The operators of a spec outside all brackets.
struct Operators {
    /// The position of the first `*`.
    star: Option<usize>,
    /// The position and kind of the last opening bracket.
    last: Option<(usize, char)>,
}

impl Operators {
    fn of(text: &str) -> Result<Operators, String> {
        let (mut found, mut open) = (Operators { star: None, last: None }, Vec::new());
        for (at, letter) in text.char_indices() {
            match letter {
                '[' | '(' => {
                    if open.is_empty() {
                        found.last = Some((at, letter));
                    }
                    open.push(letter);
                }
                ']' | ')' => {
                    let opener = if letter == ']' { '[' } else { '(' };
                    if open.pop() != Some(opener) {
                        return Err(format!("there is a `{letter}` without a matching `{opener}`"));
                    }
                }
                '*' if open.is_empty() => found.star = found.star.or(Some(at)),
                _ => (),
            }
        }
        match open.last() {
            Some(open) => Err(format!("there is a `{open}` that is not closed")),
            None => Ok(found),
        }
    }
}
