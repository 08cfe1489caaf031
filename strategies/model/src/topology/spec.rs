//! The syntax of specs, such as `torus:4x4x4*tree:2:4/2:1` or `torus:8x8x8[random:48,seed=1]`.
//!
//! A simple spec is the kind of machine, a colon, and sizes. `A*B` is a network A of nodes B. `A[..]` is an allocation
//! of the PEs of A in the brackets. Brackets bind closer than `*`, and parentheses closer than both. In `job:4x8:A`, the
//! network A ends before a `*` or `[`; other networks are in parentheses.

use std::sync::Arc;

use super::operators::Operators;
use super::{ALL, Allocation, Job, Product, SpecError, Topology, TopologyError, job};
use crate::descriptor::{find, split};
use crate::memory;
use crate::table::count;

/// The deepest nesting of specs.
const MAX_DEPTH: usize = 16;

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

/// Adds the part of the spec to an error message, between what is wrong and what to do, unless an inner part is already named.
pub(super) fn within(part: &str, reason: String) -> String {
    match reason.split_once("; ") {
        _ if reason.contains(" (in `") => reason,
        Some((wrong, remedy)) => format!("{wrong} (in `{part}`); {remedy}"),
        None => format!("{reason} (in `{part}`)"),
    }
}
