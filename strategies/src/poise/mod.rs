//! `PoiseLB`: load, hops and migrations together, on any machine.
//!
//! The machine is cut in halves down to its PEs, and the task graph with it; after every cut the placement is
//! refined with the distances known by then. A file each:
//! - [`balancer`]: the strategy; [`problem`]: a database in whole numbers; [`settings`]: how much work to spend;
//! - [`machine`]: the tree of blocks, [`cut`]: where to cut, [`distance`]: how far blocks are apart;
//! - [`csr`], [`coarsen`]: the graph, and a smaller one; [`bisect`], [`two_way`]: two sides, and their refinement;
//! - [`scratch`]: from nothing to a placement, layer by layer;
//! - [`kway`], [`local`], [`swaps`], [`blocks`], [`repair`]: refinement over all blocks.

pub mod balancer;
mod bisect;
mod blocks;
mod coarsen;
mod csr;
mod cut;
mod distance;
mod kway;
mod local;
mod machine;
mod problem;
mod repair;
mod scratch;
mod settings;
mod swaps;
mod two_way;

pub use balancer::PoiseLb;
pub use settings::Quality;
