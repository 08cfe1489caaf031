//! `PoiseLB`: load, hops and migrations together, on any machine.
//!
//! The machine is cut in halves down to its PEs, and the task graph with it; after every cut the placement is
//! refined with the distances known by then. A file each:
//! - `balancer`: the strategy; `problem`: a database in whole numbers; `settings`: how much work to spend;
//! - `machine`: the tree of blocks, `cut`: where to cut, `distance`: how far blocks are apart;
//! - `csr`, `coarsen`: the graph, and a smaller one; `bisect`, `two_way`: two sides, and their refinement;
//! - `scratch`: from nothing to a placement, layer by layer; `v_cycle`: once more, level by level;
//! - `kway`, `local`, `swaps`, `blocks`, `repair`, `settle`: refinement over all blocks;
//! - `one_to_one`, `tabu`, `anneal`: one object per PE; `present`: from where everything is now; `line`: from the order
//!   objects are in;
//! - `tools`: what others can use on its own;
//! - `links`: the most loaded link; `bound`: what cannot be undercut.

mod anneal;
pub mod balancer;
mod bisect;
mod blocks;
mod bound;
mod coarsen;
#[cfg(test)]
mod contract;
mod csr;
mod cut;
mod distance;
mod kway;
mod line;
mod links;
mod local;
mod machine;
mod one_to_one;
mod present;
mod problem;
mod repair;
mod scratch;
mod settings;
mod settle;
mod swaps;
mod tabu;
#[cfg(test)]
mod tests;
pub mod tools;
mod two_way;
mod v_cycle;

pub use balancer::PoiseLb;
pub use settings::{Ingredient, Quality};
