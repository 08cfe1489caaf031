//! The host graph: what the mapper asks of a machine.

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
    /// By PE: how many others are one hop away.
    pub(super) degree: Vec<u64>,
}

/// The dimensions of what is no grid.
const OTHERWISE: usize = 3;

impl Host {
    pub(super) fn new(topology: &dyn Topology, available: &[u32]) -> Self {
        let pes = topology.pes();
        let mut row = vec![0; pes];
        let mut degree = vec![0u64; pes];
        let (mut centre, mut least, mut diameter) = (available[0], u64::MAX, 0);
        for &pe in available {
            topology.distances_from(pe as usize, &mut row);
            let mut sum = 0;
            for &other in available {
                sum += u64::from(row[other as usize]);
                diameter = diameter.max(row[other as usize]);
                degree[pe as usize] += u64::from(row[other as usize] == 1);
            }
            if sum < least {
                (centre, least) = (pe, sum);
            }
        }
        let coordinates = coordinates(topology);
        let dimensions = if coordinates.is_empty() { OTHERWISE } else { coordinates.len() / pes };
        Host { available: available.to_vec(), centre, diameter, dimensions, coordinates, degree }
    }

    /// By PE: the degrees of the PEs nearer than `radius`, itself among them, added up.
    pub(super) fn degrees_around(&self, topology: &dyn Topology, radius: u32) -> Vec<u64> {
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

    /// Whether the ways of two PEs to each other cross the same PEs: they differ in one dimension only.
    pub(super) fn is_one_line(&self, a: u32, b: u32) -> bool {
        let differing = self.position(a).iter().zip(self.position(b)).filter(|(a, b)| a != b);
        differing.count() == 1
    }
}

/// The coordinates of all PEs, one PE after the other, where the machine is a grid with a PE at every place.
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
