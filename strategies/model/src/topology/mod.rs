//! Machines: distances between PEs, and the links of message routes.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

mod allocation;
mod altered;
mod axes;
mod degraded;
mod dragonfly;
mod dragonfly_plus;
mod error;
mod fat_tree;
mod flat;
mod graph;
mod grid;
mod hierarchy;
mod hosts;
mod hwloc;
mod hypercube;
mod hyperx;
mod job;
mod matrix;
mod named_tree;
mod nvidia_smi;
mod operators;
mod platform;
mod product;
mod rails;
mod running_job;
mod scotch;
mod shape;
mod slurm;
mod slurm_env;
mod spec;
mod switches;
mod topograph;
mod tree;

pub use allocation::Allocation;
pub use axes::Axes;
pub use dragonfly::Dragonfly;
pub use dragonfly_plus::DragonflyPlus;
pub use error::{SpecError, TopologyError};
pub use fat_tree::FatTree;
pub use flat::Flat;
pub use graph::MachineGraph;
pub use grid::Grid;
pub use hierarchy::Hierarchy;
pub use hierarchy::prime_factors;
pub use hypercube::Hypercube;
pub use hyperx::HyperX;
pub use job::Job;
pub use matrix::DistanceMatrix;
pub use named_tree::{NamedTree, Part};
pub use platform::Platform;
pub use product::Product;
pub use rails::Rails;
pub use running_job::job;
pub use shape::Shape;
pub use spec::parse;
pub use tree::Tree;

use crate::descriptor::{self, Descriptor};
pub use crate::grid::MAX_PES;
use crate::grid::count_pes;
use crate::memory;
use crate::table::count;

/// All kinds of machines, in the order of help texts.
pub const ALL: &[&Kind] = &[
    &flat::KIND,
    &grid::TORUS,
    &grid::MESH,
    &hypercube::KIND,
    &tree::KIND,
    &fat_tree::KIND,
    &dragonfly::KIND,
    &dragonfly_plus::KIND,
    &hyperx::KIND,
    &rails::KIND,
    &graph::KIND,
    &matrix::KIND,
    &platform::KIND,
    &slurm::KIND,
    &slurm_env::KIND,
    &hosts::KIND,
    &switches::KIND,
    &nvidia_smi::KIND,
    &degraded::KIND,
    &topograph::KIND,
    &scotch::KIND,
    &hwloc::KIND,
    &job::KIND,
];

/// A kind of machine; `item` makes the machine from the text after the colon.
pub type Kind = Descriptor<fn(&str) -> Result<Arc<dyn Topology>, SpecError>>;

/// The largest number of links of a machine.
pub const MAX_LINKS: usize = 1 << 30;

/// The largest number of PEs of a machine whose distances are stored as a table of 4 bytes per pair.
pub const MAX_TABLE_PES: usize = 1 << 14;

/// The default bandwidth of a link, in bytes per second.
pub const DEFAULT_BANDWIDTH: f64 = 1e9;

/// The default latency of a link.
pub const DEFAULT_LATENCY_SECONDS: f64 = 1e-6;

/// A machine as seen by strategies.
///
/// PEs are numbered from 0, first dimension fastest (`id = x0 + X0*(x1 + X1*x2)`). Distances are in hops unless the
/// machine defines others (trees with level distances). They are symmetric, and 0 only between a PE and itself.
pub trait Topology: Send + Sync {
    /// The spec of this machine, such as `torus:8x8x8`.
    fn spec(&self) -> String;

    /// The number of PEs; at least 1.
    fn pes(&self) -> usize;

    /// The distance between two PEs.
    fn distance(&self, a: usize, b: usize) -> u32;

    /// The distance from `a` to every PE, written to `row` (one entry per PE).
    ///
    /// Inner loops use rows rather than single pairs.
    fn distances_from(&self, a: usize, row: &mut [u32]) {
        for (b, distance) in row.iter_mut().enumerate() {
            *distance = self.distance(a, b);
        }
    }

    /// The distance from `a` to each of `others`, written to `row` (one entry per entry of `others`).
    fn distances_to(&self, a: usize, others: &[u32], row: &mut [u32]) {
        for (distance, &b) in row.iter_mut().zip(others) {
            *distance = self.distance(a, b as usize);
        }
    }

    /// The largest distance; for an allocation, that of the whole machine.
    ///
    /// The default implementation visits all pairs.
    fn diameter(&self) -> u32 {
        let mut row = vec![0; self.pes()];
        let farthest = |a| {
            self.distances_from(a, &mut row);
            row.iter().copied().max().unwrap_or(0)
        };
        (0..self.pes()).map(farthest).max().unwrap_or(0)
    }

    /// The number of directed links; they are numbered from 0.
    fn links(&self) -> usize;

    /// The link with a given number.
    fn link(&self, id: usize) -> Link;

    /// Appends the links of the route from `a` to `b`, in order; none if `a == b`.
    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>);

    /// Appends the possible next links of a message from `a` to `b` on a path as short as the route. `crossed` is the
    /// last link of the message so far (`None`: it is still at `a`). Appends none if the message has arrived.
    ///
    /// Any choice leads to `b` on a path as long as [`Self::route`]; the first choices give exactly this route.
    /// Machines with a single path follow the route.
    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let first = links.len();
        self.route(a, b, links);
        let position = |crossed| links[first..].iter().position(|&link| link == crossed);
        let next = crossed.map_or(Some(0), |crossed| Some(position(crossed)? + 1));
        let next = next.and_then(|next| links.get(first + next).copied());
        links.truncate(first);
        links.extend(next);
    }

    /// The tree whose leaves are the PEs, for machines that are trees or networks of nodes.
    fn hierarchy(&self) -> Option<Hierarchy> {
        None
    }

    /// By PE: the number of the switch that is closest above its node (see [`Self::node_of`]). `None` if the machine has no switches, or a
    /// single one. An allocation has the numbers of its machine.
    fn switches(&self) -> Option<Vec<u32>> {
        self.hierarchy()?.closest_parts(|pe| self.node_of(pe))
    }

    /// The arrangement of the PEs, for mappers that partition the machine.
    fn shape(&self) -> Shape {
        self.hierarchy().map_or(Shape::Any, Shape::Nested)
    }

    /// The number of the hardware thread of a PE in the operating system, for machines that represent the current host.
    fn cpu_of(&self, _pe: usize) -> Option<usize> {
        None
    }

    /// The name of the host of a PE, if the machine's file has names.
    fn host(&self, _pe: usize) -> Option<&str> {
        None
    }

    /// The node of a PE for process launchers: in a product, the node of the network; otherwise, every PE is a node. An
    /// allocation keeps the node numbers of its machine.
    fn node_of(&self, pe: usize) -> usize {
        pe
    }

    /// The number of a PE in its node, from 0. In an allocation, the number in the complete node.
    fn core_of(&self, _pe: usize) -> usize {
        0
    }

    /// The name of the switch, or of the group of switches, where the routes of two PEs turn: the lowest part of a tree
    /// that has both. `None` on other machines.
    fn switch_between(&self, _a: usize, _b: usize) -> Option<String> {
        None
    }

    /// The number of a PE in the whole machine of an allocation; for other machines, the PE itself.
    fn number_of(&self, pe: usize) -> usize {
        pe
    }

    /// A sentence about the origin of the machine, for machines that are made from what the system reports.
    fn note(&self) -> Option<&str> {
        None
    }
}

/// A directed link of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The name, such as `3 -> 4` (from PE 3 to PE 4) or `switch 1.0 -> 5`.
    pub name: String,
    /// The bandwidth in bytes per second.
    pub bandwidth: f64,
    /// The latency in seconds.
    pub latency_seconds: f64,
    /// The contribution to the distance (1 for a hop).
    pub length: u32,
}

/// A machine of `pes` PEs with a distance of 1 between any two.
///
/// # Panics
/// If `pes` is 0 or more than [`MAX_PES`].
pub fn flat(pes: usize) -> Arc<dyn Topology> {
    Arc::new(Flat::new(pes).expect("1 to 2^24 PEs"))
}

/// The first `pes` hardware threads of the current host; [`flat`] without the feature `hwloc` or if the host has fewer
/// hardware threads.
///
/// # Panics
/// As for `flat`.
pub fn this_machine(pes: usize) -> Arc<dyn Topology> {
    let machine = parse("hwloc").ok().filter(|machine| machine.pes() >= pes);
    let part = |machine| allocation::part(machine, (0..pes as u32).collect()).ok();
    machine.and_then(part).unwrap_or_else(|| flat(pes))
}

/// The help text on all kinds of machines, for `equipoise topology help`.
pub fn help() -> String {
    let mut text = descriptor::help(ALL.iter().copied());
    for (form, help) in [product::HELP, allocation::HELP] {
        let _ = writeln!(text, "{form}\n    {help}");
    }
    text
}

/// The sum of the numbers of links `counts`, at most [`MAX_LINKS`].
fn count_links(counts: impl IntoIterator<Item = Option<usize>>) -> Result<usize, String> {
    let sum = counts.into_iter().try_fold(0usize, |sum, count| sum.checked_add(count?));
    sum.filter(|&links| links <= MAX_LINKS)
        .ok_or_else(|| format!("the machine has more than {MAX_LINKS} links"))
}

/// Checks that a table of 4 bytes for each pair of `pes` PEs fits into memory.
fn check_table(pes: usize) -> Result<(), String> {
    let what = format!("the table of distances between {}", count(pes as u64, "PE"));
    memory::check(4 * (pes as u64).pow(2), &what, "use a smaller machine")
}

/// Parses numbers separated by colons, one per level from the top, such as `16:8:4`.
fn per_level<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(':').map(|number| number.parse().ok()).collect()
}

/// Renames the ends of a link: calls `new_name` with the name of each end and, if the name is a PE number, with the
/// number.
fn rename(name: &str, new_name: impl Fn(&str, Option<usize>) -> String) -> String {
    let ends: Vec<String> = name.split(" -> ").map(|end| new_name(end, end.parse().ok())).collect();
    ends.join(" -> ")
}

#[cfg(test)]
mod tests;
