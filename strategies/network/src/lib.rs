//! Simulation of messages on a machine's links, and of recorded runs and programs that send them.
//!
//! - [`models`]: network models, made from specs such as `flow:bandwidth=154e6`, and the halo exchanges and batches
//!   that send messages over them;
//! - [`trace`]: recorded runs, and their simulation on another network or placement;
//! - [`program`]: programs of processes that compute, send and receive: their language, execution and phases.
//!
//! A message over two links of 1 GB/s and 1 us each:
//!
//! ```
//! use equipoise_model::topology;
//! use equipoise_network::models::{self, Message};
//!
//! let machine = topology::parse("mesh:3")?;
//! let mut network = models::parse("ideal")?.on(&machine)?;
//! network.send(0.0, Message { token: 7, from: 0, to: 2, bytes: 1_000_000 });
//! let mut arrivals = Vec::new();
//! network.advance(1.0, &mut arrivals);
//! assert_eq!(arrivals[0].token, 7);
//! assert!((arrivals[0].seconds - 1.002e-3).abs() < 1e-9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod models;
pub mod program;
pub mod trace;
