//! The sample programs, as a library for the command `equipoise`, the figures, tests and benches.
//!
//! A program is a module: its flags (`Options`), its chares, and a function that runs it with a
//! [`Config`](equipoise::Config) of the runtime. [`stencil`], which [`stencil2d`] runs in 2 dimensions, is the one to read
//! first.
//!
//! ```
//! use equipoise::Config;
//! use equipoise_apps::kneighbor::{Options, exchange};
//!
//! // The last element computes; a load balancer runs every 10 iterations, on 4 PEs of a simulated machine.
//! let options = Options { elements: 16, iterations: 40, work: 1000, charge: Some(1e-9), ..Options::default() };
//! let config = Config { balancer: vec!["GreedyRefineLB".into()], ..Config::simulated(4, 1) };
//! let report = exchange(config, &options);
//! assert_eq!(report.result.iterations, 40);
//! let step = &report.lb_steps[0];
//! assert!(step.after.imbalance < step.before.imbalance);
//! ```

pub mod amr;
pub mod blast;
pub mod cells;
mod command;
pub mod failure;
pub mod gas;
pub mod kneighbor;
pub mod leanmd;
pub mod output;
pub mod particles;
pub mod pic;
pub mod plasma;
pub mod quadtree;
pub mod stencil;
pub mod stencil2d;
pub mod stencil3d;

pub use command::{Command, Outcome, seconds};
pub use failure::Failure;
pub use output::{Format, FormatArg};

use std::process::ExitCode;

/// The sample programs.
#[derive(Debug, clap::Subcommand)]
pub enum Program {
    /// Jacobi's method in 2D, with a 5-point stencil
    Stencil2d(Command<stencil2d::Options>),
    /// Jacobi's method in 3D, with a 7-point stencil
    Stencil3d(Command<stencil3d::Options>),
    /// Elements on a ring exchange messages with their k neighbors
    Kneighbor(Command<kneighbor::Options>),
    /// Molecular dynamics: cells of particles, and forces between neighboring cells
    Leanmd(Command<leanmd::Options>),
    /// Adaptive mesh refinement: blocks follow a shock, so elements are created and destroyed
    Amr(Command<amr::Options>),
    /// Particles in cells: a cloud of plasma drifts through the blocks, and the load follows it
    Pic(Command<pic::Options>),
}

impl Program {
    /// Runs the program and prints its result; returns the exit code of the process.
    ///
    /// # Errors
    /// If stdout cannot be written to. A run that fails ends the process with an error message.
    pub fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Program::Stencil2d(command) => command.run("stencil2d", stencil2d::solve),
            Program::Stencil3d(command) => command.run("stencil3d", stencil3d::solve),
            Program::Kneighbor(command) => command.run("kneighbor", kneighbor::exchange),
            Program::Leanmd(command) => command.run("leanmd", leanmd::simulate),
            Program::Amr(command) => command.run("amr", amr::simulate),
            Program::Pic(command) => command.run("pic", pic::simulate),
        }
    }
}
