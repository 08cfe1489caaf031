//! Strategies that balance load: every PE gets its fair share of seconds.
//!
//! One file per strategy. Shared modules: `load` (the work to balance and the search for the best PE), `limit` (the
//! lowest limit that can be kept), `relief` (PEs above the limit give objects away), `traffic` (messages and their
//! costs), `gossip` (exchange of information between PEs without a centre), `members` (all PEs of such a strategy in one place).

pub mod comm_aware_refine;
pub mod distributed;
pub mod dummy;
pub mod file;
mod gossip;
pub mod greedy;
pub mod greedy_comm;
pub mod greedy_refine;
pub mod hier;
mod limit;
pub(crate) mod load;
mod members;
pub mod metis_lb;
pub mod random;
pub mod rec_bipart;
pub mod refine;
pub mod refine_comm;
pub mod refine_swap;
pub(crate) mod relief;
pub mod rotate;
pub mod tempered;
pub(crate) mod traffic;
