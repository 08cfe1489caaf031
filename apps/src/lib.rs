//! The sample programs, as a library so that tests and benches can call them, and what the command
//! `equipoise` does beside running them.
//!
//! A program is a module: its flags (`Options`), its chares, and a function that runs it with a
//! [`Config`](equipoise::Config) of the runtime. [`stencil2d`] is the one to read first.

pub mod cells;
mod command;
pub mod kneighbor;
pub mod leanmd;
pub mod particles;
pub mod stencil;
pub mod stencil2d;
pub mod stencil3d;
pub mod tools;

pub use command::{Command, Outcome};

use std::process::ExitCode;

/// How results are shown on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document, and nothing else.
    Json,
}

/// The sample programs.
#[derive(Debug, clap::Subcommand)]
pub enum Program {
    /// Jacobi's method on a plane, with a 5-point stencil
    Stencil2d(Command<stencil2d::Options>),
    /// Jacobi's method in space, with a 7-point stencil
    Stencil3d(Command<stencil3d::Options>),
    /// Elements on a ring send each of their k neighbors a message, and answer those they get
    Kneighbor(Command<kneighbor::Options>),
    /// Molecular dynamics: cells of particles, and forces between neighboring ones
    Leanmd(Command<leanmd::Options>),
}

impl Program {
    /// Runs the program and shows its result; returns what the process should exit with.
    ///
    /// # Errors
    /// If stdout cannot be written to. A run that fails ends the process with a sentence.
    pub fn run(self) -> std::io::Result<ExitCode> {
        match self {
            Program::Stencil2d(command) => command.run("stencil2d", stencil2d::solve),
            Program::Stencil3d(command) => command.run("stencil3d", stencil3d::solve),
            Program::Kneighbor(command) => command.run("kneighbor", kneighbor::exchange),
            Program::Leanmd(command) => command.run("leanmd", leanmd::simulate),
        }
    }
}
