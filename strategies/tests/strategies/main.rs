//! Guarantees of all strategies, and their results on recorded programs. The target has a name of its own, so that `cargo test --workspace --test strategies`
//! builds no tests of other crates.

mod as_balanced;
mod charm_field;
mod constrained_ways;
mod constraints;
mod contracts;
mod ranks;
mod replicas;
