//! Guarantees of all strategies, and their results on recorded programs.

mod as_balanced;
mod charm_field;
mod constrained_ways;
mod constraints;
mod contracts;
mod feasible;
mod ranks;
mod replicas;
