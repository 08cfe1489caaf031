//! The sample programs, as a library so that tests and benches can call them, and what the command
//! `equipoise` does beside running them.

pub mod tools;
