//! Load balancing and mapping: assigns the objects of a parallel program to PEs.
//!
//! A [`Strategy`] takes a [`Database`] (the loads of objects and their communication) and a [`Topology`] (the
//! machine), and returns an [`Assignment`] (the PE of every object). The crate does not depend on chares,
//! threads or processes. The runtime calls strategies at load-balancing steps. The command `equipoise` calls
//! the same code on recorded databases and on task graphs.
//!
//! - [`strategy`]: the trait that every strategy implements; [`descriptor`]: the registry data of strategies;
//! - [`partition`]: groups of objects; [`cost`]: the costs of a placement;
//! - `placement`: the assignment of groups to PEs, shared by mappers;
//! - [`balance`]: strategies for load; [`mapping`]: strategies for the topology;
//! - [`poise`]: a strategy for hops, loads and migrations together;
//! - [`max_moves`]: any strategy with a limit of moves;
//! - [`near_pes`]: a part of machines with far more PEs than objects, for strategies that need it;
//! - [`registry`]: every strategy by name; [`schedule`]: the strategy of each load-balancing step;
//! - [`predict`]: the loads of the coming period, from those of past periods;
//! - [`replay`]: the assignments of other strategies at a recorded step;
//! - [`room`]: what constraints leave free while objects are placed;
//! - [`workloads`]: task graphs of all generators, including those that need a partitioner.
//!
//! A grid of 64 tasks is placed on a torus of 64 PEs such that every message takes one hop:
//!
//! ```
//! use equipoise_model::{graph, topology};
//! use equipoise_strategies::{cost::Metrics, registry};
//!
//! let machine = topology::parse("torus:4x4x4")?;
//! let tasks = graph::load("mesh:4x4x4,bytes=1000")?.remap(64);
//! let strategy = registry::parse("TopoLB", &[])?.strategy;
//! let placement = strategy.assign(&tasks, &*machine, 0)?;
//! let metrics = Metrics::of(&tasks, &*machine, &placement.pe_of);
//! assert_eq!(metrics.communication.expect("tasks communicate").hops_per_byte, 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod auto;
pub mod balance;
pub mod constrained;
pub mod cost;
pub mod decentral;
pub mod descriptor;
pub mod mapping;
pub mod max_moves;
pub mod near_pes;
pub mod partition;
mod placement;
pub mod poise;
pub mod predict;
pub mod registry;
pub mod replay;
pub mod replicas;
pub mod room;
pub mod schedule;
pub mod strategy;
#[cfg(test)]
mod testing;
pub mod workloads;

pub use equipoise_model::{Assignment, Database, Topology};
pub use strategy::{Strategy, StrategyError};
