//! `torus:8x8x8` and `mesh:16x16`: PEs on a grid of any number of dimensions.
//!
//! A distance is the number of links on a shortest path. Messages take the dimension-order (e-cube)
//! route: dimension 0 is corrected first, each the shorter way round, and the positive way when both
//! are equally long. A dimension of two PEs has one link each way whether it wraps or not, since both
//! ways round would be the same neighbour.

use std::sync::Arc;

use super::{DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Kind, Link, Shape, Topology, count_pes};

/// `torus:8x8x8` for the table of machines.
pub const TORUS: Kind = Kind {
    name: "torus",
    form: "torus:8x8x8",
    help: "A grid whose dimensions wrap, except those marked m (torus:8x8x4m). First dimension fastest; \
           dimension-order routes.",
    parse: |text| Ok(Arc::new(Grid::parse(text, true)?)),
};

/// `mesh:16x16` for the table of machines.
pub const MESH: Kind = Kind {
    name: "mesh",
    form: "mesh:16x16",
    help: "A grid whose dimensions do not wrap. First dimension fastest; dimension-order routes.",
    parse: |text| Ok(Arc::new(Grid::parse(text, false)?)),
};

/// The most dimensions a grid has; 24 of size 2 are as many PEs as a machine may have.
const MAX_DIMENSIONS: usize = 32;

/// PEs on a grid: a torus, a mesh, or wrapping in some dimensions only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    dimensions: Vec<Dimension>,
    pes: usize,
    links: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Dimension {
    /// PEs along it.
    size: usize,
    /// Whether it was asked to wrap.
    wraps: bool,
    /// What a step along it adds to a PE's number.
    stride: usize,
    /// The number of its first link. Its links are grouped by line (PEs that differ in this
    /// coordinate only), in each the positive ones by coordinate, then the negative ones.
    first_link: usize,
}

impl Grid {
    /// The grid with these sizes, first dimension fastest, and whether each dimension wraps.
    ///
    /// # Errors
    /// Without a dimension, with more than 32, with a size of 0, or with too many PEs.
    pub fn new(sizes: &[(usize, bool)]) -> Result<Self, String> {
        if sizes.is_empty() || sizes.len() > MAX_DIMENSIONS {
            return Err(format!("a grid has 1 to {MAX_DIMENSIONS} dimensions, this one has {}", sizes.len()));
        }
        let pes = count_pes(sizes.iter().map(|&(size, _)| size))?;
        let (mut dimensions, mut stride, mut links) = (Vec::with_capacity(sizes.len()), 1, 0);
        for &(size, wraps) in sizes {
            let dimension = Dimension { size, wraps, stride, first_link: links };
            links += pes / size * dimension.links_per_line();
            stride *= size;
            dimensions.push(dimension);
        }
        Ok(Grid { dimensions, pes, links })
    }

    /// The grid of `8x8x4m`: sizes, and a mark for those that do not wrap although `wraps`.
    pub(crate) fn parse(text: &str, wraps: bool) -> Result<Self, String> {
        let mut sizes = Vec::new();
        for part in text.split('x') {
            let (digits, marked) = part.strip_suffix('m').map_or((part, false), |digits| (digits, true));
            let size = digits
                .parse()
                .map_err(|_| format!("expected sizes such as 8x8x4m (m: does not wrap), found `{text}`"))?;
            sizes.push((size, wraps && !marked));
        }
        Grid::new(&sizes)
    }

    /// The coordinates of a PE.
    pub fn coordinates(&self, pe: usize) -> impl Iterator<Item = usize> {
        self.dimensions.iter().map(move |d| d.coordinate(pe))
    }

    /// The PEs at the ends of a link, in the direction of the message.
    pub fn ends(&self, link: usize) -> (usize, usize) {
        let after = self.dimensions.partition_point(|d| d.first_link <= link);
        // Dimensions without links begin where the next one does, so the last that begins there is it.
        let d = &self.dimensions[after - 1];
        let (line, offset) =
            ((link - d.first_link) / d.links_per_line(), (link - d.first_link) % d.links_per_line());
        let start = line / d.stride * d.stride * d.size + line % d.stride;
        let positive = d.links_per_line() / 2;
        let (from, to) = if offset < positive {
            (offset, (offset + 1) % d.size)
        } else if d.is_ring() {
            (offset - positive, (offset - positive + d.size - 1) % d.size)
        } else {
            (offset - positive + 1, offset - positive)
        };
        (start + from * d.stride, start + to * d.stride)
    }
}

impl Dimension {
    fn is_ring(&self) -> bool {
        self.wraps && self.size > 2
    }

    fn links_per_line(&self) -> usize {
        if self.is_ring() { 2 * self.size } else { 2 * (self.size - 1) }
    }

    /// The first link of the line that the PE is on, and how many positive ones there are.
    fn line_of(&self, pe: usize) -> (usize, usize) {
        let line = pe / (self.stride * self.size) * self.stride + pe % self.stride;
        (self.first_link + line * self.links_per_line(), self.links_per_line() / 2)
    }

    fn coordinate(&self, pe: usize) -> usize {
        pe / self.stride % self.size
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        let direct = from.abs_diff(to);
        if self.is_ring() { direct.min(self.size - direct) } else { direct }
    }
}

impl Topology for Grid {
    fn spec(&self) -> String {
        let wraps = self.dimensions.iter().any(|d| d.wraps);
        let mark = |d: &Dimension| if wraps && !d.wraps { "m" } else { "" };
        let sizes: Vec<String> = self.dimensions.iter().map(|d| format!("{}{}", d.size, mark(d))).collect();
        format!("{}:{}", if wraps { "torus" } else { "mesh" }, sizes.join("x"))
    }

    fn pes(&self) -> usize {
        self.pes
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.dimensions.iter().map(|d| d.distance(d.coordinate(a), d.coordinate(b)) as u32).sum()
    }

    /// Distances add up over the dimensions, so the row grows by a dimension at a time: one addition
    /// per PE.
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

    /// A division and a look at a table per dimension.
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
        Shape::Grid { sizes, nodes: (0..self.pes as u32).collect() }
    }

    fn links(&self) -> usize {
        self.links
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

    /// In every dimension that is not corrected, the shorter way round, or both where they are equally
    /// long.
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
