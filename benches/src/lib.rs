//! Benchmarks of the runtime and of the strategies. Each prints the median of several rounds beside a floor taken in the
//! same round, because absolute times mean little on shared machines: the ratio does not drift.
//!
//! A round of every measurement is taken in turn, so a machine that changes its speed changes it for
//! all of them. In small mode (the tests run it) the numbers mean nothing, but the code cannot rot.

pub mod floors;
pub mod near;
pub mod programs;
pub mod ring;
pub mod table;

pub use table::{Measurement, Row, run};
