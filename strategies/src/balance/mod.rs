//! Strategies that look at load: every PE gets its fair share of seconds.

pub mod dummy;
pub mod file;
pub mod greedy;
pub mod greedy_refine;
pub(crate) mod load;
pub mod random;
pub mod refine;
pub mod rotate;
