//! The runtime as programs see it, in one binary: a module per subject. Long runs are in the slow group
//! (`cargo test -p equipoise -- --ignored`).

mod broadcasts;
mod checkpoints;
mod common;
mod corners;
mod endings;
mod expedited;
mod failures;
mod families;
mod flags;
mod flows;
mod front_page;
pub mod generated;
mod grid;
mod lb_storm;
mod lives;
mod load_balancing;
mod machine;
mod measuring;
mod messages;
mod order;
mod other_build;
mod populations;
mod processes;
mod quiescence;
mod recovery;
mod reductions;
mod regroup;
mod replayed;
mod replies;
mod saving;
mod stress;
mod traces;
mod ui;
mod wrong_calls;
