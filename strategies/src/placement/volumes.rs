//! Byte volumes as integers small enough that sums of bytes times distances are exact.

use equipoise_model::graph::Graph;

/// Converts byte volumes to integers in a suitable unit.
///
/// Mappings depend on ties, so costs are exact integers: volumes are divided by their greatest common divisor. Low bits
/// are dropped only if the costs would still exceed 62 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Volumes {
    unit: u64,
    shift: u32,
    /// Upper bound of the cost of a vertex.
    pub(crate) largest_cost: i64,
}

impl Volumes {
    /// The conversion for the volumes of `graph` if a byte costs at most `farthest`.
    pub(crate) fn new(graph: &Graph, farthest: u128) -> Self {
        let (_, _, bytes) = graph.rows();
        let unit = bytes.iter().fold(0, |unit, &bytes| gcd(unit, bytes)).max(1);
        let heaviest = (0..graph.vertices()).map(|v| graph.weight(v) / unit).max().unwrap_or(0);
        let largest = u128::from(heaviest).saturating_mul(farthest);
        let shift = (u128::BITS - largest.leading_zeros()).saturating_sub(62);
        Volumes { unit, shift, largest_cost: (largest >> shift) as i64 }
    }

    /// As [`Volumes::new`] if a byte costs at most `factor` times `diameter`. `diameter` is called only if costs might not
    /// fit otherwise, because most machines examine all pairs of PEs to compute it.
    pub(crate) fn within(graph: &Graph, factor: u128, diameter: impl FnOnce() -> u32) -> Self {
        let any = Volumes::new(graph, factor * u128::from(u32::MAX));
        if any.is_exact() { any } else { Volumes::new(graph, factor * u128::from(diameter())) }
    }

    /// Whether no bits are dropped.
    pub(crate) fn is_exact(&self) -> bool {
        self.shift == 0
    }

    /// `bytes` in the unit.
    pub(crate) fn of(&self, bytes: u64) -> i64 {
        ((bytes / self.unit) >> self.shift) as i64
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
