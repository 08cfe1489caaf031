//! `hypercube:6`: 2^6 PEs; two PEs are neighbors if their numbers differ in one bit.
//!
//! The distance of two PEs is the number of bits in which they differ. Messages take the e-cube route: the lowest bit
//! is corrected first (H. Sullivan, T. R. Bashkow, "A large scale, homogeneous, fully distributed parallel machine",
//! 1977).

use std::sync::Arc;

use super::{DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Kind, Link, MAX_PES, Shape, Topology};

/// The entry of `hypercube:6` in the list of machines.
pub const KIND: Kind = Kind {
    name: "hypercube",
    form: "hypercube:6",
    help: "2^6 PEs; two PEs are neighbors if their numbers differ in one bit. E-cube routes, lowest bit first.",
    params: &[],
    item: |text| {
        let dimensions =
            text.parse().map_err(|_| format!("expected a number of dimensions, found `{text}`"))?;
        Ok(Arc::new(Hypercube::new(dimensions)?))
    },
};

/// A binary hypercube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hypercube {
    dimensions: usize,
}

impl Hypercube {
    /// The hypercube of 2^`dimensions` PEs.
    ///
    /// # Errors
    /// If this is more than [`MAX_PES`].
    pub fn new(dimensions: usize) -> Result<Self, String> {
        let most = MAX_PES.ilog2() as usize;
        if dimensions > most {
            return Err(format!("a hypercube has at most {most} dimensions, this one has {dimensions}"));
        }
        Ok(Hypercube { dimensions })
    }
}

impl Topology for Hypercube {
    fn spec(&self) -> String {
        format!("hypercube:{}", self.dimensions)
    }

    fn pes(&self) -> usize {
        1 << self.dimensions
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        (a ^ b).count_ones()
    }

    fn diameter(&self) -> u32 {
        self.dimensions as u32
    }

    fn shape(&self) -> Shape {
        Shape::Grid { sizes: vec![(2, false); self.dimensions], nodes: (0..self.pes() as u32).collect() }
    }

    fn links(&self) -> usize {
        self.pes() * self.dimensions
    }

    fn link(&self, id: usize) -> Link {
        let (from, dimension) = (id / self.dimensions, id % self.dimensions);
        Link {
            name: format!("{from} -> {}", from ^ 1 << dimension),
            bandwidth: DEFAULT_BANDWIDTH,
            latency_seconds: DEFAULT_LATENCY_SECONDS,
            length: 1,
        }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        let mut at = a;
        for dimension in 0..self.dimensions {
            if (at ^ b) >> dimension & 1 == 1 {
                links.push(at * self.dimensions + dimension);
                at ^= 1 << dimension;
            }
        }
    }

    /// In every uncorrected dimension.
    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let end = |link: usize| (link / self.dimensions) ^ 1 << (link % self.dimensions);
        let at = crossed.map_or(a, end);
        let differs = |dimension: &usize| (at ^ b) >> dimension & 1 == 1;
        links.extend((0..self.dimensions).filter(differs).map(|dimension| at * self.dimensions + dimension));
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::route;

    #[test]
    fn a_hypercube_equals_a_mesh_with_two_pes_in_every_dimension() {
        let (cube, mesh) = (parse("hypercube:5").expect("a cube"), parse("mesh:2x2x2x2x2").expect("a mesh"));
        for (a, b) in (0..32).flat_map(|a| (0..32).map(move |b| (a, b))) {
            assert_eq!(cube.distance(a, b), mesh.distance(a, b));
            assert_eq!(route("hypercube:5", a, b), route("mesh:2x2x2x2x2", a, b));
        }
    }
}
