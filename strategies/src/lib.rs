//! Decides where the objects of a parallel program should live.
//!
//! The crate knows nothing of chares, threads or processes: it takes a [`Database`] (what each object
//! costs and whom it talks to) and a [`Topology`] (the machine), and a [`Strategy`] answers with an
//! [`Assignment`] (the PE of every object). The runtime calls it at load-balancing steps, the command
//! `equipoise` calls it on recorded databases and on plain task graphs; it is the same code.
//!
//! The rooms:
//! - [`database`]: what was recorded, and its files;
//! - [`topology`]: machines: distances, links and routes;
//! - [`graph`]: the weighted task graph;
//! - [`assignment`]: the answer, and the check that it is possible;
//! - [`cost`]: what an answer costs;
//! - [`partition`]: grouping objects;
//! - [`balance`]: strategies that look at load;
//! - [`mapping`]: strategies that look at the machine;
//! - [`launcher`]: files that tell launchers of processes where ranks go;
//! - [`poise`]: the strategy that weighs hops, loads and migrations together;
//! - [`network`]: how long messages take on a machine's links;
//! - [`program`]: programs that compute, send and receive, for the contention-aware mapper;
//! - [`replay`]: what other strategies would have done at a recorded step;
//! - [`registry`]: every strategy by name, its parameters and its help;
//! - [`schedule`]: which strategy runs at which load-balancing step;
//! - [`files`]: files of text, and who can help when the file system refuses;
//! - [`trace`]: what happened in a run, to be timed on other networks;
//! - [`spelling`]: what a misspelt name may mean;
//! - [`table`]: aligned tables, and numbers as a person reads them.

pub mod assignment;
pub mod balance;
mod breadth_first;
pub mod cost;
pub mod database;
pub mod files;
mod frames;
pub mod graph;
mod hostlist;
pub mod launcher;
pub mod mapping;
pub mod network;
mod params;
pub mod partition;
pub mod poise;
pub mod program;
mod random;
pub mod registry;
pub mod replay;
pub mod schedule;
pub mod spelling;
pub mod strategy;
pub mod table;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod trace;

pub use assignment::Assignment;
pub use database::Database;
pub use strategy::{Strategy, StrategyError};
pub use topology::Topology;
