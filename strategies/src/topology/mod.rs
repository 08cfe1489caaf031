//! Machines: how far apart PEs are, and over which links their messages go.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

mod allocation;
mod dragonfly;
mod fat_tree;
mod flat;
mod graph;
mod grid;
mod hierarchy;
mod hwloc;
mod hypercube;
mod matrix;
mod named_tree;
mod platform;
mod product;
mod scotch;
mod shape;
mod slurm;
mod spec;
mod topograph;
mod tree;

pub use allocation::Allocation;
pub use dragonfly::Dragonfly;
pub use fat_tree::FatTree;
pub use flat::Flat;
pub use graph::MachineGraph;
pub use grid::Grid;
pub use hierarchy::Hierarchy;
pub(crate) use hierarchy::prime_factors;
pub use hypercube::Hypercube;
pub use matrix::DistanceMatrix;
pub use named_tree::{NamedTree, Part};
pub use platform::Platform;
pub use product::Product;
pub use shape::Shape;
pub use spec::{Fault, TopologyError, parse};
pub use tree::Tree;

/// Every kind of machine, in the order help lists them.
pub const ALL: &[&Kind] = &[
    &flat::KIND,
    &grid::TORUS,
    &grid::MESH,
    &hypercube::KIND,
    &tree::KIND,
    &fat_tree::KIND,
    &dragonfly::KIND,
    &graph::KIND,
    &matrix::KIND,
    &platform::KIND,
    &slurm::KIND,
    &topograph::KIND,
    &scotch::KIND,
    &hwloc::KIND,
];

/// A kind of machine as a spec names it.
pub struct Kind {
    /// What a spec begins with, before the colon.
    pub name: &'static str,
    /// What a spec looks like, as in `torus:8x8x8`.
    pub form: &'static str,
    /// What the machine is, how its PEs are numbered and how its messages travel.
    pub help: &'static str,
    /// Makes the machine of what stands after the colon, or says what is wrong with it.
    pub parse: fn(&str) -> Result<Arc<dyn Topology>, Fault>,
}

/// The most PEs a machine may have; a spec with more is refused.
pub const MAX_PES: usize = 1 << 24;

/// The most links a machine may have; a spec with more is refused.
pub const MAX_LINKS: usize = 1 << 30;

/// The most PEs of a machine whose distances are kept as a table, 4 bytes for each pair.
pub const MAX_TABLE_PES: usize = 1 << 14;

/// Bytes per second of a link of a machine whose spec does not say.
pub const DEFAULT_BANDWIDTH: f64 = 1e9;

/// Latency of a link of a machine whose spec does not say.
pub const DEFAULT_LATENCY_SECONDS: f64 = 1e-6;

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

    /// The distance from `a` to each of `others`, written to `row` (one entry per entry of `others`).
    fn distances_to(&self, a: usize, others: &[u32], row: &mut [u32]) {
        for (distance, &b) in row.iter_mut().zip(others) {
            *distance = self.distance(a, b as usize);
        }
    }

    /// The largest distance there is; of an allocation, that of its whole machine.
    ///
    /// Machines without a formula look at all pairs.
    fn diameter(&self) -> u32 {
        let mut row = vec![0; self.pes()];
        let farthest = |a| {
            self.distances_from(a, &mut row);
            row.iter().copied().max().unwrap_or(0)
        };
        (0..self.pes()).map(farthest).max().unwrap_or(0)
    }

    /// How many directed links it has; they are numbered from 0.
    fn links(&self) -> usize;

    /// The link of that number.
    fn link(&self, id: usize) -> Link;

    /// Appends the links a message from `a` to `b` crosses, in order; none if `a == b`.
    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>);

    /// Appends the links that a message from `a` to `b` whose last link was `crossed` (none: it is still at
    /// `a`) may take next on a way that is as short as the route; none if it has arrived.
    ///
    /// Whatever it takes, it arrives, on a way as long as [`Self::route`]; who always takes the first takes
    /// that. Machines that know only one way follow the route.
    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let first = links.len();
        self.route(a, b, links);
        let position = |crossed| links[first..].iter().position(|&link| link == crossed);
        let next = crossed.map_or(Some(0), |crossed| Some(position(crossed)? + 1));
        let next = next.and_then(|next| links.get(first + next).copied());
        links.truncate(first);
        links.extend(next);
    }

    /// The tree whose leaves are its PEs, where the machine is built as one or is a network of nodes.
    fn hierarchy(&self) -> Option<Hierarchy> {
        None
    }

    /// How its PEs lie: what a mapper that cuts the machine into pieces goes by.
    fn shape(&self) -> Shape {
        self.hierarchy().map_or(Shape::Any, Shape::Nested)
    }

    /// The operating system's number of the hardware thread that the PE is, on machines that are the one
    /// this program runs on.
    fn cpu_of(&self, _pe: usize) -> Option<usize> {
        None
    }

    /// The name of the host that the PE is, or is a part of, where the machine's file says.
    fn host(&self, _pe: usize) -> Option<&str> {
        None
    }

    /// The node that the PE is a part of, as a launcher of processes counts nodes: that of the network in a
    /// product; on other machines every PE is a node of its own. An allocation keeps the numbers of its machine.
    fn node_of(&self, pe: usize) -> usize {
        pe
    }

    /// Which PE of its node it is, from 0: also where an allocation has not all of the node, a place in the whole.
    fn core_of(&self, _pe: usize) -> usize {
        0
    }

    /// Which PE it is of the whole machine that an allocation is a part of; elsewhere the PE itself.
    fn number_of(&self, pe: usize) -> usize {
        pe
    }
}

/// A directed link of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What a person calls it, as in `3 -> 4` (from PE 3 to PE 4) or `switch 1.0 -> 5`.
    pub name: String,
    /// Bytes per second it carries.
    pub bandwidth: f64,
    /// Seconds it takes a first byte.
    pub latency_seconds: f64,
    /// How much of the distance it is (1 for a hop).
    pub length: u32,
}

/// A machine of `pes` PEs that are all one hop apart.
///
/// # Panics
/// Without a PE, or with more than [`MAX_PES`].
pub fn flat(pes: usize) -> Arc<dyn Topology> {
    Arc::new(Flat::new(pes).expect("1 to 2^24 PEs"))
}

/// The first `pes` hardware threads of the machine this runs on; [`flat`] where the library was built
/// without the feature `hwloc`, or there are not so many.
///
/// # Panics
/// As `flat`.
pub fn this_machine(pes: usize) -> Arc<dyn Topology> {
    let machine = parse("hwloc").ok().filter(|machine| machine.pes() >= pes);
    let part = |machine: Arc<dyn Topology>| -> Option<Arc<dyn Topology>> {
        if machine.pes() == pes {
            return Some(machine);
        }
        Some(Arc::new(Allocation::new(machine, (0..pes as u32).collect()).ok()?))
    };
    machine.and_then(part).unwrap_or_else(|| flat(pes))
}

/// What `equipoise topology help` prints: every kind of machine.
pub fn help() -> String {
    let mut text = String::new();
    for kind in ALL {
        let _ = writeln!(text, "{}\n    {}", kind.form, kind.help);
    }
    for (form, help) in [product::HELP, allocation::HELP] {
        let _ = writeln!(text, "{form}\n    {help}");
    }
    text
}

/// The number of PEs of a machine with these sizes, at most [`MAX_PES`].
fn count_pes(sizes: impl IntoIterator<Item = usize>) -> Result<usize, String> {
    let mut pes: usize = 1;
    for size in sizes {
        if size == 0 {
            return Err("a size is at least 1".into());
        }
        pes = pes
            .checked_mul(size)
            .filter(|&pes| pes <= MAX_PES)
            .ok_or_else(|| format!("sizes multiply to at most {MAX_PES}"))?;
    }
    Ok(pes)
}

/// The number of links of a machine whose parts have `counts` of them, at most [`MAX_LINKS`].
fn count_links(counts: impl IntoIterator<Item = Option<usize>>) -> Result<usize, String> {
    let sum = counts.into_iter().try_fold(0usize, |sum, count| sum.checked_add(count?));
    sum.filter(|&links| links <= MAX_LINKS).ok_or_else(|| format!("it has more than {MAX_LINKS} links"))
}

/// Whole numbers with colons between them, top level first as in `16:8:4`.
fn per_level<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(':').map(|number| number.parse().ok()).collect()
}

/// The name of a link whose ends are called something else, told by what they were called and, where
/// that was a PE, by its number.
fn rename(name: &str, called: impl Fn(&str, Option<usize>) -> String) -> String {
    let ends: Vec<String> = name.split(" -> ").map(|end| called(end, end.parse().ok())).collect();
    ends.join(" -> ")
}

#[cfg(test)]
mod tests;
