//! `torus:8x8x8` and `mesh:16x16`: grids of PEs with any number of dimensions.
//!
//! A distance is the number of links on a shortest path. Messages take the dimension-order (e-cube) route: dimension 0
//! is corrected first, each dimension in the shorter direction, in the positive direction if both are equally long. A
//! dimension of two PEs has one link in each direction whether it wraps or not, since both directions lead to the same
//! neighbor. `torus:4x4x4/1e9:2e9:3e9` has a bandwidth per dimension.

use std::sync::Arc;

use super::axes::Axes;
use super::{DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Kind, Link, Shape, SpecError, Topology};
use crate::grid::Dimension;
pub use crate::grid::Grid;

/// The entry of `torus:8x8x8` in the list of machines.
pub const TORUS: Kind = Kind {
    name: "torus",
    form: "torus:8x8x8, torus:4x4x4/1e9:2e9:3e9",
    help: "A grid whose dimensions wrap, except those marked m (torus:8x8x4m). First dimension fastest; \
           dimension-order routes. After a slash, the bandwidth of the links of each dimension in bytes per second.",
    params: &[],
    item: |text| parse(text, true),
};

/// The entry of `mesh:16x16` in the list of machines.
pub const MESH: Kind = Kind {
    name: "mesh",
    form: "mesh:16x16",
    help: "A grid whose dimensions do not wrap. First dimension fastest; dimension-order routes.",
    params: &[],
    item: |text| parse(text, false),
};

fn parse(text: &str, wraps: bool) -> Result<Arc<dyn Topology>, SpecError> {
    Ok(match text.split_once('/') {
        Some((sizes, bandwidths)) => Arc::new(Axes::parse(Grid::parse(sizes, wraps)?, bandwidths)?),
        None => Arc::new(Grid::parse(text, wraps)?),
    })
}

impl Topology for Grid {
    fn spec(&self) -> String {
        let wraps = self.dimensions.iter().any(|d| d.wraps);
        let mark = |d: &Dimension| if wraps && !d.wraps { "m" } else { "" };
        let sizes: Vec<String> = self.dimensions.iter().map(|d| format!("{}{}", d.size, mark(d))).collect();
        format!("{}:{}", if wraps { "torus" } else { "mesh" }, sizes.join("x"))
    }

    fn pes(&self) -> usize {
        Grid::pes(self)
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.dimensions.iter().map(|d| d.distance(d.coordinate(a), d.coordinate(b)) as u32).sum()
    }

    /// Distances add up over dimensions, so the row is built one dimension after the other with one addition per PE.
    fn distances_from(&self, a: usize, row: &mut [u32]) {
        row[0] = 0;
        for d in &self.dimensions {
            let from = d.coordinate(a);
            for to in (0..d.size).rev() {
                let step = d.distance(from, to) as u32;
                let (first, rest) = row.split_at_mut(d.stride);
                if to == 0 {
                    first.iter_mut().for_each(|distance| *distance += step);
                } else {
                    let block = &mut rest[(to - 1) * d.stride..to * d.stride];
                    block.iter_mut().zip(first).for_each(|(distance, before)| *distance = *before + step);
                }
            }
        }
    }

    /// One division and one table lookup per dimension.
    fn distances_to(&self, a: usize, others: &[u32], row: &mut [u32]) {
        row.fill(0);
        let mut places = others.to_vec();
        for d in &self.dimensions {
            let from = d.coordinate(a);
            let steps: Vec<u32> = (0..d.size).map(|to| d.distance(from, to) as u32).collect();
            for (place, distance) in places.iter_mut().zip(&mut *row) {
                let further = *place / d.size as u32;
                *distance += steps[(*place - further * d.size as u32) as usize];
                *place = further;
            }
        }
    }

    fn diameter(&self) -> u32 {
        let farthest = |d: &Dimension| if d.is_ring() { d.size / 2 } else { d.size - 1 };
        self.dimensions.iter().map(|d| farthest(d) as u32).sum()
    }

    fn shape(&self) -> Shape {
        let sizes = self.dimensions.iter().map(|d| (d.size, d.is_ring())).collect();
        Shape::Grid { sizes, nodes: (0..Grid::pes(self) as u32).collect() }
    }

    fn links(&self) -> usize {
        Grid::links(self)
    }

    fn link(&self, id: usize) -> Link {
        let (from, to) = self.ends(id);
        Link {
            name: format!("{from} -> {to}"),
            bandwidth: DEFAULT_BANDWIDTH,
            latency_seconds: DEFAULT_LATENCY_SECONDS,
            length: 1,
        }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        let mut at = a;
        for d in &self.dimensions {
            let (from, to) = (d.coordinate(at), d.coordinate(b));
            if from == to {
                continue;
            }
            let (first, positive) = d.line_of(at);
            let forward = (to + d.size - from) % d.size;
            let is_forward = if d.is_ring() { 2 * forward <= d.size } else { from < to };
            if is_forward {
                links.extend((0..forward).map(|step| first + (from + step) % d.size));
            } else if d.is_ring() {
                let backward = d.size - forward;
                links.extend((0..backward).map(|step| first + positive + (from + d.size - step) % d.size));
            } else {
                links.extend((to..from).rev().map(|coordinate| first + positive + coordinate));
            }
            at = at - from * d.stride + to * d.stride;
        }
    }

    /// In every uncorrected dimension, the shorter direction, or both directions if equally long.
    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let at = crossed.map_or(a, |link| self.ends(link).1);
        for d in &self.dimensions {
            let (from, to) = (d.coordinate(at), d.coordinate(b));
            if from == to {
                continue;
            }
            let (first, positive) = d.line_of(at);
            if !d.is_ring() {
                links.push(if from < to { first + from } else { first + positive + from - 1 });
                continue;
            }
            let forward = (to + d.size - from) % d.size;
            links.extend((2 * forward <= d.size).then_some(first + from));
            links.extend((2 * forward >= d.size).then_some(first + positive + from));
        }
    }
}
