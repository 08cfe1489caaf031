//! The Python package `equipoise`: the compiled module `equipoise._core`, which the Python files in `python/` give its interface.
//!
//! Arguments arrive here as columns of numbers and specs; conversions from and to other packages are in Python. Documents
//! such as costs leave as JSON, which Python turns into dictionaries.
//!
//! - [`errors`]: exceptions with the sentences of the library; [`work`]: computations that signals can interrupt;
//! - [`machine`], [`database`]: what Python sees of both; [`limits`]: constraints; [`strategy`]: strategies written in Python;
//! - [`map`], [`replay`], [`experts`]: one file for each function.

use pyo3::prelude::*;

mod database;
mod errors;
mod experts;
mod limits;
mod machine;
mod map;
mod replay;
mod strategy;
mod work;

/// The compiled part of the package `equipoise`.
#[pymodule]
mod _core {
    /// The version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python has for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::database::{Database, read, tasks};
    #[pymodule_export]
    use super::errors::EquipoiseError;
    #[pymodule_export]
    use super::experts::{Plan, experts, read_plan, rebalance_experts};
    #[pymodule_export]
    use super::machine::Machine;
    #[pymodule_export]
    use super::map::{Mapping, map};
    #[pymodule_export]
    use super::replay::{Replay, predict, replay, strategies};
}
