//! Benchmarks of the runtime and of the strategies. Each benchmark prints the median over several rounds, and its ratio
//! to a floor that is measured in the same round. On shared machines, the ratio is more stable than absolute times.
//!
//! Each round takes every measurement once, so a change of the machine's speed affects all measurements. Small mode
//! only checks that the code runs; its numbers have no meaning.

pub mod floors;
pub mod near;
pub mod programs;
pub mod ring;
pub mod table;

pub use table::{Measurement, Row, run, run_in_process};
