//! Strategies that look at load: every PE gets its fair share of seconds.
//!
//! A file each. What some of them share: `load` (what there is to balance, and the best place), `limit` (the
//! lowest limit that can be kept), `traffic` (messages and what they cost), `gossip` (PEs that hear of each
//! other without a centre).

pub mod comm_aware_refine;
pub mod distributed;
pub mod dummy;
pub mod file;
mod gossip;
pub mod greedy;
pub mod greedy_comm;
pub mod greedy_refine;
mod limit;
pub(crate) mod load;
pub mod metis_lb;
pub mod random;
pub mod rec_bipart;
pub mod refine;
pub mod refine_comm;
pub mod refine_swap;
pub mod rotate;
pub mod tempered;
mod traffic;
