//! Data that strategies, simulators and the runtime exchange: object databases, task graphs, machines, assignments.
//!
//! This crate contains no strategy. It holds the data and reads and writes every file format.
//!
//! - [`database`]: loads and communication of objects as recorded in a run, and their files;
//! - [`graph`]: weighted task graphs, their generators and files;
//! - [`topology`]: machines: distances, links and routes, from specs such as `torus:8x8x8`;
//! - [`assignment`]: the PE of every object, and the check that an assignment can be applied;
//! - [`costs`]: what messages and migrations cost, as a run measured it;
//! - [`launcher`]: files that tell process launchers where to start each rank;
//! - [`descriptor`], [`params`]: entries of registries, and the parser of specs `NAME:key=value,key=value`;
//! - [`fault`]: the class of an error, which determines the exit code;
//! - [`memory`]: how much memory is available, and the check of sizes given by a user or a file;
//! - [`grid`], [`search`], [`random`], [`spelling`], [`quote`], [`table`], [`files`], [`decompress`], [`frames`]: grid
//!   arithmetic, graph search, seeded random numbers, suggestions for misspelt names, harmless text in errors, aligned
//!   tables, text files, the limit of decompression, and the frames of binary files.
//!
//! Eight tasks exchange halos on a machine of four PEs:
//!
//! ```
//! use equipoise_model::{Assignment, graph, topology};
//!
//! let machine = topology::parse("torus:4")?;
//! let tasks = graph::load("mesh:8,bytes=100")?.remap(4);
//! let mut placement = Assignment::unchanged(&tasks);
//! assert_eq!(placement.pe_of, [0, 0, 1, 1, 2, 2, 3, 3]);
//! assert_eq!(machine.distance(0, 3), 1);
//! placement.pe_of[0] = 9;
//! assert!(placement.check(&tasks).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod assignment;
mod cells;
pub mod constraints;
pub mod costs;
pub mod database;
pub mod decompress;
pub mod descriptor;
pub mod fault;
pub mod files;
pub mod frames;
pub mod graph;
pub mod grid;
mod hostlist;
pub mod launcher;
pub mod memory;
pub mod numbers;
pub mod params;
pub mod quote;
pub mod random;
pub mod replica_plan;
pub mod rules;
pub mod search;
pub mod spelling;
pub mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod topology;

pub use assignment::Assignment;
pub use database::Database;
pub use topology::Topology;
