//! Strategies that look at load: every PE gets its fair share of seconds.

pub mod dummy;
