//! Machines: how far apart PEs are, and over which links their messages go.

use std::sync::Arc;

mod flat;

pub use flat::Flat;

/// A machine as the strategies see it.
///
/// PEs are numbered from 0, first dimension fastest (`id = x0 + X0*(x1 + X1*x2)`). Distances are
/// in hops unless the machine defines its own (trees with level distances), symmetric, and 0
/// exactly between a PE and itself.
pub trait Topology: Send + Sync {
    /// The spec string that makes this machine, as in `torus:8x8x8`.
    fn spec(&self) -> String;

    /// How many PEs it has; at least 1.
    fn pes(&self) -> usize;

    /// The distance between two PEs.
    fn distance(&self, a: usize, b: usize) -> u32;

    /// The distance from `a` to every PE, written to `row` (one entry per PE).
    ///
    /// Hot loops ask for a row at a time, never for a pair.
    fn distances_from(&self, a: usize, row: &mut [u32]) {
        for (b, distance) in row.iter_mut().enumerate() {
            *distance = self.distance(a, b);
        }
    }

    /// How many directed links it has; they are numbered from 0.
    fn links(&self) -> usize;

    /// The link of that number.
    fn link(&self, id: usize) -> Link;

    /// Appends the links a message from `a` to `b` crosses, in order; none if `a == b`.
    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>);
}

/// A directed link of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What a person calls it, as in `3 -> 4` or `switch 1 -> 5`.
    pub name: String,
    /// Bytes per second it carries.
    pub bandwidth: f64,
    /// Seconds it takes a first byte.
    pub latency_seconds: f64,
    /// How much of the distance it is (1 for a hop).
    pub length: u32,
}

/// A spec that describes no machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{spec}` is not a topology: {reason}")]
pub struct TopologyError {
    /// The spec as written.
    pub spec: String,
    /// What is wrong with it and what was expected.
    pub reason: String,
}

/// The most PEs a machine may have.
pub const MAX_PES: usize = 1 << 24;

/// The machine of a spec such as `flat:8`.
///
/// # Errors
/// When the kind of machine is unknown, or its sizes are missing, zero or too large.
pub fn parse(spec: &str) -> Result<Arc<dyn Topology>, TopologyError> {
    let error = |reason: String| TopologyError { spec: spec.to_string(), reason };
    match spec.split_once(':') {
        Some(("flat", pes)) => Ok(Arc::new(Flat::parse(pes).map_err(error)?)),
        _ => Err(error("known are flat:N".into())),
    }
}
