//! `torus:4x4x4/1e9:2e9:3e9`: a grid whose links have another bandwidth in each dimension, in bytes per second, first
//! dimension first. All else is as on the grid.

use super::{Link, Shape, Topology};
use crate::grid::Grid;

/// A grid with a bandwidth per dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes {
    grid: Grid,
    /// By dimension.
    bandwidths: Vec<f64>,
}

impl Axes {
    /// The grid whose links along dimension `i` have `bandwidths[i]` bytes per second.
    ///
    /// # Errors
    /// If the numbers of dimensions differ, or a bandwidth is not above 0 and finite.
    pub fn new(grid: Grid, bandwidths: Vec<f64>) -> Result<Self, String> {
        let dimensions = grid.dimensions.len();
        if bandwidths.len() != dimensions {
            return Err(format!(
                "there are {dimensions} dimensions, but {} bandwidths; give one for each dimension",
                bandwidths.len()
            ));
        }
        match bandwidths.iter().find(|&&bandwidth| !(bandwidth > 0.0 && bandwidth.is_finite())) {
            Some(wrong) => {
                Err(format!("a bandwidth is a positive number of bytes per second, found {wrong}"))
            }
            None => Ok(Axes { grid, bandwidths }),
        }
    }

    /// Parses bandwidths such as `1e9:2e9:3e9`.
    pub(super) fn parse(grid: Grid, bandwidths: &str) -> Result<Self, String> {
        let parsed = super::per_level(bandwidths).ok_or_else(|| {
            format!("expected a bandwidth per dimension such as 1e9:2e9:3e9, found `{bandwidths}`")
        })?;
        Axes::new(grid, parsed)
    }
}

impl Topology for Axes {
    fn spec(&self) -> String {
        let bandwidths: Vec<String> =
            self.bandwidths.iter().map(|bandwidth| format!("{bandwidth:e}")).collect();
        format!("{}/{}", self.grid.spec(), bandwidths.join(":"))
    }

    fn pes(&self) -> usize {
        self.grid.pes()
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.grid.distance(a, b)
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        self.grid.distances_from(a, row);
    }

    fn distances_to(&self, a: usize, others: &[u32], row: &mut [u32]) {
        self.grid.distances_to(a, others, row);
    }

    fn diameter(&self) -> u32 {
        self.grid.diameter()
    }

    fn links(&self) -> usize {
        self.grid.links()
    }

    fn link(&self, id: usize) -> Link {
        Link { bandwidth: self.bandwidths[self.grid.dimension_of(id)], ..self.grid.link(id) }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        self.grid.route(a, b, links);
    }

    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        self.grid.onward(a, b, crossed, links);
    }

    fn shape(&self) -> Shape {
        self.grid.shape()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse;
    use super::super::tests::check;
    use super::*;

    #[test]
    fn links_have_the_bandwidth_of_their_dimension() {
        let machine = parse("torus:4x3mx2/1e9:2e9:3e9").expect("a torus");
        check(&*machine);
        assert_eq!(machine.spec(), "torus:4x3mx2/1e9:2e9:3e9");
        for id in 0..machine.links() {
            let link = machine.link(id);
            let ends: Vec<usize> = link.name.split(" -> ").map(|end| end.parse().expect("a PE")).collect();
            let expected = match ends[0].abs_diff(ends[1]) {
                1 | 3 => 1e9,
                4 => 2e9,
                _ => 3e9,
            };
            assert_eq!(link.bandwidth, expected, "{}", link.name);
        }
    }

    proptest! {
        #[test]
        fn grids_with_bandwidths_have_the_properties_of_machines(
            sizes in prop::collection::vec((1..5usize, any::<bool>(), 1..9u32), 1..4),
        ) {
            let grid = Grid::new(&sizes.iter().map(|&(size, wraps, _)| (size, wraps)).collect::<Vec<_>>());
            let bandwidths = sizes.iter().map(|size| f64::from(size.2) * 1e8).collect();
            check(&Axes::new(grid.expect("small sizes"), bandwidths).expect("bandwidths"));
        }
    }
}
