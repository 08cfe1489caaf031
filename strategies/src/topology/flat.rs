//! `flat:N`: every PE is one hop from every other.

use super::{Link, MAX_PES, Topology};

/// A machine without a shape: `pes` PEs, each one hop from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flat {
    pes: usize,
}

impl Flat {
    /// The machine with `pes` PEs, from 1 to [`MAX_PES`].
    ///
    /// # Errors
    /// With another number of PEs.
    pub fn new(pes: usize) -> Result<Self, String> {
        if (1..=MAX_PES).contains(&pes) {
            Ok(Flat { pes })
        } else {
            Err(format!("expected 1 to {MAX_PES} PEs, found {pes}"))
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let pes =
            text.parse().map_err(|_| format!("expected a number of PEs after `flat:`, found `{text}`"))?;
        Self::new(pes)
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

    /// Each PE has one link into the network: a message uses its sender's.
    fn links(&self) -> usize {
        self.pes
    }

    fn link(&self, id: usize) -> Link {
        Link { name: format!("{id} -> network"), bandwidth: 1e9, latency_seconds: 1e-6, length: 1 }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        if a != b {
            links.push(a);
        }
    }
}
