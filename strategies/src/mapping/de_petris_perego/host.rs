//! The host graph: the properties of a machine that the mapper uses.

use equipoise_model::Topology;
use equipoise_model::topology::Shape;

use super::MAX_SEARCHED;
use super::bounds::Bounds;

/// The properties of a machine, computed once.
pub(crate) struct Host {
    /// The available PEs, ascending.
    pub(crate) available: Vec<u32>,
    /// The available PE with the least sum of distances to the others.
    pub(crate) centre: u32,
    /// The largest distance.
    pub(crate) diameter: u32,
    /// n, of an n-dimensional grid.
    pub(crate) dimensions: usize,
    /// By PE and dimension: its coordinate; empty if the machine is not a grid.
    pub(crate) coordinates: Vec<u32>,
    /// By dimension of a grid: its length, and whether its ends are linked.
    pub(crate) sides: Vec<(usize, bool)>,
    /// By PE: the number of PEs one hop away; empty above [`MAX_SEARCHED`] PEs.
    pub(crate) degree: Vec<u64>,
}

/// The number of dimensions assumed for a machine that is not a grid.
const DEFAULT_DIMENSIONS: usize = 3;

/// The number of candidates for the centre if there are more than [`MAX_SEARCHED`] PEs.
const SAMPLE: usize = 64;

impl Host {
    pub(crate) fn new(topology: &dyn Topology, available: &[u32]) -> Self {
        let pes = topology.pes();
        let mut row = vec![0; pes];
        // Above the limit, an evenly spaced sample of PEs suffices for the centre.
        let is_searched = available.len() <= MAX_SEARCHED;
        let mut degree = if is_searched { vec![0u64; pes] } else { Vec::new() };
        let step = if is_searched { 1 } else { available.len().div_ceil(SAMPLE) };
        let (mut centre, mut least, mut diameter) = (available[0], u64::MAX, 0);
        for &pe in available.iter().step_by(step) {
            topology.distances_from(pe as usize, &mut row);
            let mut sum = 0;
            for &other in available {
                sum += u64::from(row[other as usize]);
                diameter = diameter.max(row[other as usize]);
                if is_searched {
                    degree[pe as usize] += u64::from(row[other as usize] == 1);
                }
            }
            if sum < least {
                (centre, least) = (pe, sum);
            }
        }
        let coordinates = coordinates(topology);
        let dimensions = if coordinates.is_empty() { DEFAULT_DIMENSIONS } else { coordinates.len() / pes };
        let sides = match topology.shape() {
            Shape::Grid { sizes, .. } => sizes,
            _ => Vec::new(),
        };
        let available = available.to_vec();
        Host { available, centre, diameter, dimensions, coordinates, sides, degree }
    }

    /// By PE: the sum of the degrees of the PEs nearer than `radius`, including the PE itself; empty if `degree` is
    /// empty.
    pub(crate) fn degrees_around(&self, topology: &dyn Topology, radius: u32) -> Vec<u64> {
        if self.degree.is_empty() {
            return Vec::new();
        }
        let (mut sums, mut row) = (vec![0; topology.pes()], vec![0; topology.pes()]);
        for &pe in &self.available {
            topology.distances_from(pe as usize, &mut row);
            let near = self.available.iter().filter(|&&other| row[other as usize] < radius);
            sums[pe as usize] = near.map(|&other| self.degree[other as usize]).sum();
        }
        sums
    }

    /// The coordinates of a PE; empty if the machine is not a grid.
    pub(crate) fn position(&self, pe: u32) -> &[u32] {
        match self.coordinates.is_empty() {
            true => &[],
            false => &self.coordinates[pe as usize * self.dimensions..][..self.dimensions],
        }
    }

    /// The empty box.
    pub(crate) fn no_bounds(&self) -> Bounds {
        Bounds::new(self.position(self.centre).len())
    }

    /// Whether the routes between two PEs in both directions cross the same PEs in between, at least one. The PEs then
    /// differ in one dimension only, and not by half a ring: there both routes go the same way around.
    pub(crate) fn is_one_line(&self, a: u32, b: u32) -> bool {
        let apart = self.position(a).iter().zip(self.position(b)).map(|(a, b)| a.abs_diff(*b) as usize);
        let mut differing = self.sides.iter().zip(apart).filter(|(_, apart)| *apart > 0);
        let (Some((&(size, wraps), apart)), None) = (differing.next(), differing.next()) else {
            return false;
        };
        if wraps { apart.min(size - apart) > 1 && 2 * apart != size } else { apart > 1 }
    }
}

/// The coordinates of all PEs in PE order; empty if the machine is not a grid.
fn coordinates(topology: &dyn Topology) -> Vec<u32> {
    let Shape::Grid { sizes, nodes } = topology.shape() else { return Vec::new() };
    let pes = topology.pes();
    let mut coordinates = vec![0; pes * sizes.len()];
    if nodes.len() != pes {
        return Vec::new();
    }
    for (pe, &node) in nodes.iter().enumerate() {
        let mut node = node as usize;
        for (dimension, &(size, _)) in sizes.iter().enumerate() {
            coordinates[pe * sizes.len() + dimension] = (node % size) as u32;
            node /= size;
        }
    }
    coordinates
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;

    #[test]
    fn routes_in_both_directions_cross_the_same_pes_along_one_line() {
        for (spec, a, b, expected) in [
            ("mesh:4x4", 0, 2, true),
            ("mesh:4x4", 0, 12, true),
            ("mesh:4x4", 0, 1, false),
            ("mesh:4x4", 0, 6, false),
            ("torus:6", 0, 2, true),
            ("torus:6", 0, 3, false),
            ("torus:6", 0, 5, false),
            ("torus:5x5", 1, 3, true),
            ("hypercube:3", 0, 1, false),
            ("tree:2:4/5:1", 0, 3, false),
        ] {
            let machine = topology::parse(spec).expect(spec);
            let all: Vec<u32> = (0..machine.pes() as u32).collect();
            let host = Host::new(&*machine, &all);
            assert_eq!(host.is_one_line(a, b), expected, "{a} and {b} on {spec}");
            // Compares with the routes of the machine; the name of a link contains its two ends.
            let crossed = |from: u32, to: u32| {
                let mut route = Vec::new();
                machine.route(from as usize, to as usize, &mut route);
                let ends = route.iter().map(|&link| machine.link(link).name);
                let mut pes: Vec<String> =
                    ends.flat_map(|name| name.split(" -> ").map(String::from).collect::<Vec<_>>()).collect();
                pes.retain(|pe| *pe != from.to_string() && *pe != to.to_string());
                pes.sort();
                pes.dedup();
                pes
            };
            if !host.sides.is_empty() {
                let same = crossed(a, b) == crossed(b, a) && !crossed(a, b).is_empty();
                assert_eq!(same, expected, "{a} and {b} on {spec}");
            }
        }
    }
}
