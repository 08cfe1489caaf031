//! Guarantees of all strategies, and their results on recorded programs.

mod charm_field;
mod constraints;
mod contracts;
mod ranks;
mod replicas;
