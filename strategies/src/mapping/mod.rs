//! Strategies that look at the machine: who communicates much is put close together.

pub mod tmlb_min_weight;
pub mod tmlb_tree_based;
pub mod topolb;
pub mod treematch;
pub mod treematch_const;
