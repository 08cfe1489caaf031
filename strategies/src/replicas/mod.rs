//! Objects with replicas whose load divides among them: how many of each, and where. Made for the experts of models.
//!
//! - [`eplb`]: the published algorithm that plans are compared with.

mod chain;
mod complete;
pub mod eplb;
mod exchange;
mod groups;
mod layout;
mod reduce;
mod search;

/// Temporary.
#[allow(missing_docs)]
pub fn place_layer(loads: &[f64], pes: usize, slots: usize, nodes: usize, groups: usize, previous: Option<&[u32]>, message_cost: Vec<f64>, gamma: f64, tolerance: f64) -> Vec<u32> {
    let z: Vec<u32> = (0..pes).map(|p| (p / (pes / nodes)) as u32).collect(); search::Layer { loads, zone_of: &z, zones: nodes, slots, groups, previous, message_cost, gamma, tolerance }.place()
}
