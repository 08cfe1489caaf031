//! `flat:N`: all PEs have a distance of 1 from each other.
//!
//! The links are those of a non-blocking switch: each PE has a link to the switch (length 1, the hop) and one from the
//! switch (length 0). Contention occurs only where a PE sends or receives too much, and the sum of loads times lengths
//! is the number of hop-bytes.

use std::sync::Arc;

use super::{DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Hierarchy, Kind, Link, Shape, Topology, count_pes};

/// The entry of `flat:N` in the list of machines.
pub const KIND: Kind = Kind {
    name: "flat",
    form: "flat:N",
    help: "N PEs with a distance of 1 hop between any two: a machine without structure.",
    params: &[],
    item: |text| {
        let pes = text.parse().map_err(|_| format!("expected a number of PEs, found `{text}`"))?;
        Ok(Arc::new(Flat::new(pes)?))
    },
};

/// A machine without structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flat {
    pes: usize,
}

impl Flat {
    /// The machine with `pes` PEs.
    ///
    /// # Errors
    /// If `pes` is 0 or more than [`super::MAX_PES`].
    pub fn new(pes: usize) -> Result<Self, String> {
        Ok(Flat { pes: count_pes([pes])? })
    }
}

impl Topology for Flat {
    fn spec(&self) -> String {
        format!("flat:{}", self.pes)
    }

    fn pes(&self) -> usize {
        self.pes
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        u32::from(a != b)
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        row.fill(1);
        row[a] = 0;
    }

    fn diameter(&self) -> u32 {
        u32::from(self.pes > 1)
    }

    fn links(&self) -> usize {
        2 * self.pes
    }

    fn link(&self, id: usize) -> Link {
        let (name, length) = if id < self.pes {
            (format!("{id} -> switch"), 1)
        } else {
            (format!("switch -> {}", id - self.pes), 0)
        };
        Link { name, bandwidth: DEFAULT_BANDWIDTH, latency_seconds: DEFAULT_LATENCY_SECONDS, length }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        if a != b {
            links.extend([a, self.pes + b]);
        }
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        Some(Hierarchy::balanced(&[self.pes]))
    }

    fn shape(&self) -> Shape {
        self.hierarchy().map_or(Shape::Any, Shape::Tree)
    }
}
