//! Strategies that look at load: every PE gets its fair share of seconds.

pub mod comm_aware_refine;
pub mod distributed;
pub mod dummy;
pub mod file;
mod gossip;
pub mod greedy;
pub mod greedy_comm;
pub mod greedy_refine;
mod limit;
mod load;
pub mod metis_lb;
pub mod random;
pub mod rec_bipart;
pub mod refine;
pub mod refine_comm;
pub mod refine_swap;
pub mod rotate;
pub mod tempered;
mod traffic;
