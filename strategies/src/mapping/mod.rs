//! Strategies that look at the machine: who communicates much is put close together.

use rayon::prelude::*;

use crate::Topology;
use crate::graph::Graph;

pub mod refine_topolb;
pub mod topocentlb;
pub mod topolb;
mod volumes;

/// The largest distance from one of `from` to one of `to`.
pub(crate) fn farthest(from: &[u32], to: &[u32], topology: &dyn Topology) -> u32 {
    let row = || vec![0; topology.pes()];
    let far = |row: &mut Vec<u32>, &pe: &u32| {
        topology.distances_from(pe as usize, row);
        to.iter().map(|&q| row[q as usize]).max().unwrap_or(0)
    };
    from.par_iter().map_init(row, far).max().unwrap_or(0)
}

/// Hop-bytes when the vertices of `graph` are on `places` and, those after them, on `anchors`.
pub(crate) fn hop_bytes(graph: &Graph, anchors: &[u32], places: &[u32], topology: &dyn Topology) -> u128 {
    let place = |vertex: usize| places.get(vertex).copied().unwrap_or_else(|| anchors[vertex - places.len()]);
    let mut row = vec![0; topology.pes()];
    let mut sum = 0;
    for vertex in 0..graph.vertices() {
        topology.distances_from(place(vertex) as usize, &mut row);
        let others = graph.neighbors(vertex).filter(|&(other, _)| other > vertex);
        sum += others
            .map(|(other, bytes)| u128::from(bytes) * u128::from(row[place(other) as usize]))
            .sum::<u128>();
    }
    sum
}
