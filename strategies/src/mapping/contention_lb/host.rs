//! The host graph: what the mapper asks of a machine.

use super::MAX_SEARCHED;
use super::bounds::Bounds;
use crate::Topology;
use crate::topology::Shape;

/// A machine, looked at once.
pub(super) struct Host {
    /// The PEs that take tasks, ascending.
    pub(super) available: Vec<u32>,
    /// Of these, the one with the least sum of distances to the others.
    pub(super) centre: u32,
    /// The largest distance.
    pub(super) diameter: u32,
    /// n, of an n-dimensional grid.
    pub(super) dimensions: usize,
    /// By PE and dimension: its coordinate; empty where the machine is no grid.
    pub(super) coordinates: Vec<u32>,
    /// By dimension of a grid: how long it is, and whether its ends are linked.
    pub(super) sides: Vec<(usize, bool)>,
    /// The machine, where it is a grid with a PE at every place.
    pub(super) grid: Option<WholeGrid>,
    /// By PE: how many others are one hop away; empty where there are too many PEs to ask each for each.
    pub(super) degree: Vec<u64>,
}

/// A grid with a PE at every place.
pub(super) struct WholeGrid {
    /// By dimension: how long it is, and whether its ends are linked.
    pub(super) sizes: Vec<(usize, bool)>,
    /// By place, the first dimension fastest: the entry of [`Host::available`] there.
    pub(super) pe_at: Vec<u32>,
}

/// The dimensions of what is no grid.
const OTHERWISE: usize = 3;

/// How many PEs may be the centre where there are more than [`MAX_SEARCHED`].
const SAMPLE: usize = 64;

impl Host {
    pub(super) fn new(topology: &dyn Topology, available: &[u32]) -> Self {
        let pes = topology.pes();
        let mut row = vec![0; pes];
        // Of too many PEs some, evenly spread, will do for the centre.
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
        let dimensions = if coordinates.is_empty() { OTHERWISE } else { coordinates.len() / pes };
        let grid = whole_grid(topology, available);
        let sides = match topology.shape() {
            Shape::Grid { sizes, .. } => sizes,
            _ => Vec::new(),
        };
        let available = available.to_vec();
        Host { available, centre, diameter, dimensions, coordinates, sides, grid, degree }
    }

    /// By PE: the degrees of the PEs nearer than `radius`, itself among them, added up; empty where degrees are.
    pub(super) fn degrees_around(&self, topology: &dyn Topology, radius: u32) -> Vec<u64> {
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

    /// The coordinates of a PE; none where the machine is no grid.
    pub(super) fn position(&self, pe: u32) -> &[u32] {
        match self.coordinates.is_empty() {
            true => &[],
            false => &self.coordinates[pe as usize * self.dimensions..][..self.dimensions],
        }
    }

    /// The box of no PE.
    pub(super) fn no_bounds(&self) -> Bounds {
        Bounds::new(self.position(self.centre).len())
    }

    /// Whether the ways of two PEs to each other cross the same PEs in between, of which there are some: they differ in one
    /// dimension only, and not by half a ring, around which each way goes on the same side.
    pub(super) fn is_one_line(&self, a: u32, b: u32) -> bool {
        let apart = self.position(a).iter().zip(self.position(b)).map(|(a, b)| a.abs_diff(*b) as usize);
        let mut differing = self.sides.iter().zip(apart).filter(|(_, apart)| *apart > 0);
        let (Some((&(size, wraps), apart)), None) = (differing.next(), differing.next()) else {
            return false;
        };
        if wraps { apart.min(size - apart) > 1 && 2 * apart != size } else { apart > 1 }
    }
}

/// The grid that PEs lie on, if it has a place for each, and all are available.
fn whole_grid(topology: &dyn Topology, available: &[u32]) -> Option<WholeGrid> {
    let Shape::Grid { sizes, nodes } = topology.shape() else { return None };
    let places = sizes.iter().map(|it| it.0).product::<usize>();
    if nodes.len() != places || available.len() != places {
        return None;
    }
    // All PEs are available, and ascending.
    let mut pe_at = vec![0; places];
    for (pe, &node) in (0..).zip(&nodes) {
        pe_at[node as usize] = pe;
    }
    Some(WholeGrid { sizes, pe_at })
}

/// The coordinates of all PEs, one PE after the other, where they lie on a grid.
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
    use super::*;
    use crate::topology;

    #[test]
    fn ways_to_and_fro_cross_the_same_pes_along_one_line() {
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
            // What is said of the grid is so: links are numbers, but what they join has a name.
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
