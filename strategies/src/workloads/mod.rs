//! Task graphs of all generators: the generators of [`graph`] and those that need a partitioner.

use equipoise_model::database::{Database, Dump};
use equipoise_model::graph::making::Generator;
use equipoise_model::graph::{self, GraphError};

mod spmv;

/// The generators that need a partitioner.
const GENERATORS: &[&Generator] = &[&spmv::GENERATOR];

/// The task graph of a spec: as [`graph::load`], and also `spmv:`.
///
/// # Errors
/// As [`graph::load`].
pub fn load(spec: &str) -> Result<Database, GraphError> {
    Ok(load_steps(spec)?.steps.swap_remove(0))
}

/// All steps of a spec that [`load`] accepts: at least one, and more than one only for databases.
///
/// # Errors
/// As [`load`].
pub fn load_steps(spec: &str) -> Result<Dump, GraphError> {
    graph::load_steps(spec, GENERATORS)
}

/// Help text for specs of task graphs.
pub fn help() -> String {
    graph::help(GENERATORS)
}
