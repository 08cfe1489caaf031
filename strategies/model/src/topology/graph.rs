//! `graph:FILE`: a machine whose PEs are the vertices of a graph and whose links are its edges.
//!
//! The file is a task graph (METIS, Matrix Market, edge list), or a spec of a generated graph, as in
//! `graph:random:n=64,degree=8`. An edge is a link in each direction. Weights are relative lengths: a length is a
//! weight divided by the greatest common divisor of all weights. If all weights are equal, every link is one hop, and
//! it does not matter whether a file has an edge once or in both directions. Edges of weight 0 are ignored.
//!
//! Distances are lengths of shortest paths, stored as a table of 4 bytes per pair, so such a machine has at most
//! [`MAX_TABLE_PES`] PEs. At each PE, a message to b goes to the lowest-numbered neighbor on a shortest path.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::{
    DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Kind, Link, MAX_TABLE_PES, SpecError, Topology, check_table,
};
use crate::fault::{Classified as _, Fault};
use crate::graph::{Graph, extensions, is_graph_file, load};
use crate::search::cheapest;

/// The entry of `graph:FILE` in the list of machines.
pub const KIND: Kind = Kind {
    name: "graph",
    form: "graph:FILE",
    help: "The vertices of a graph (a file such as .graph, .mtx or .csv, or a generated graph) as PEs, its edges as \
           links with their weights as lengths; shortest paths over the lowest-numbered neighbor. Weights are \
           divided by their greatest common divisor; an edge that a .csv lists in both directions counts double.",
    params: &[],
    item: |text| Ok(Arc::new(MachineGraph::parse(text)?)),
};

/// A machine with the links of a graph.
#[derive(Debug)]
pub struct MachineGraph {
    /// The file or generator.
    source: String,
    graph: Graph,
    /// The weight of a link of length 1.
    unit: u64,
    has_unit_lengths: bool,
    /// The distances of all pairs, one row per PE.
    distances: Vec<u32>,
}

impl MachineGraph {
    /// The machine of `graph`; its spec is `graph:SOURCE`.
    ///
    /// # Errors
    /// If there is no vertex or more than [`MAX_TABLE_PES`], the graph is not connected, or distances exceed 32 bits.
    pub fn new(source: &str, graph: Graph) -> Result<Self, String> {
        let pes = graph.vertices();
        if pes == 0 || pes > MAX_TABLE_PES {
            return Err(format!("a machine graph has 1 to {MAX_TABLE_PES} vertices, this one has {pes}"));
        }
        let weights = graph.rows().2;
        let unit = weights.iter().fold(0, |unit, &weight| divisor(unit, weight)).max(1);
        let has_unit_lengths = weights.iter().all(|&weight| weight == unit);
        if let Some(weight) = weights.iter().find(|&&weight| weight / unit > u64::from(u32::MAX)) {
            return Err(format!(
                "a link of weight {weight} is too long relative to the unit {unit}; lengths are below 2^32"
            ));
        }
        check_table(pes)?;
        let distances = Vec::new();
        let mut machine =
            MachineGraph { source: source.to_string(), graph, unit, has_unit_lengths, distances };
        let mut row = vec![0; pes];
        machine.count_hops(0, &mut row);
        if let Some(lost) = row.iter().position(|&hops| hops == u32::MAX) {
            return Err(format!(
                "no path leads from vertex 0 to vertex {lost} (counted from 0); add the missing links"
            ));
        }
        machine.search(0, &mut row);
        // Any distance is at most that of the path over vertex 0.
        if row.iter().any(|&distance| distance > u32::MAX / 2 - 1) {
            return Err("distances do not fit 32 bits; divide the weights by a number".into());
        }
        let mut distances = vec![0; pes * pes];
        distances.par_chunks_exact_mut(pes).enumerate().for_each(|(a, row)| machine.search(a, row));
        machine.distances = distances;
        Ok(machine)
    }

    fn parse(text: &str) -> Result<Self, SpecError> {
        if !text.contains(':') && !is_graph_file(Path::new(text)) {
            let extensions = extensions();
            return Err(format!(
                "expected a file whose name ends in {extensions}, or a generated graph such as kneighbor:64,4; found \
                 `{text}`"
            )
            .into());
        }
        let tasks =
            load(text).map_err(|error| SpecError { fault: error.fault(), reason: error.to_string() })?;
        // The spec determines a generated graph completely, so errors are in the spec.
        let fault = if is_graph_file(Path::new(text)) { Fault::Input } else { Fault::Usage };
        MachineGraph::new(text, Graph::of(&tasks)).map_err(|reason| SpecError { fault, reason })
    }

    /// The distances from `a` to all PEs.
    fn row(&self, a: usize) -> &[u32] {
        &self.distances[a * self.pes()..][..self.pes()]
    }

    /// The number of hops from `a` to every PE by breadth-first search; `u32::MAX` if unreachable.
    fn count_hops(&self, a: usize, hops: &mut [u32]) {
        let (offsets, targets, _) = self.graph.rows();
        hops.fill(u32::MAX);
        hops[a] = 0;
        let (mut found, mut next) = (vec![a as u32], 0);
        while let Some(&at) = found.get(next) {
            next += 1;
            let at = at as usize;
            for &to in &targets[offsets[at]..offsets[at + 1]] {
                if hops[to as usize] == u32::MAX {
                    hops[to as usize] = hops[at] + 1;
                    found.push(to);
                }
            }
        }
    }

    /// The lengths of shortest paths from `a` to all PEs.
    fn search(&self, a: usize, row: &mut [u32]) {
        if self.has_unit_lengths {
            return self.count_hops(a, row);
        }
        // Sums of lengths are exact in `f64`.
        let leaving =
            |at: usize| self.graph.neighbors(at).map(|(to, weight)| (to, f64::from(self.length(weight))));
        let found = cheapest(row.len(), a, leaving);
        // The cast saturates, so a distance beyond 32 bits counts as unreachable.
        row.iter_mut().zip(found).for_each(|(distance, length)| *distance = length as u32);
    }

    /// The links of `at` on shortest paths to `b`, sorted by the PE they lead to.
    fn nearer(&self, at: usize, b: usize) -> impl Iterator<Item = usize> {
        let (offsets, targets, weights) = self.graph.rows();
        let to_go = self.row(b);
        let is_nearer = move |&link: &usize| {
            let left = to_go[targets[link] as usize];
            left.checked_add(self.length(weights[link])) == Some(to_go[at])
        };
        (offsets[at]..offsets[at + 1]).filter(is_nearer)
    }

    fn length(&self, weight: u64) -> u32 {
        (weight / self.unit) as u32
    }
}

/// The greatest common divisor (Euclid).
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl Topology for MachineGraph {
    fn spec(&self) -> String {
        format!("graph:{}", self.source)
    }

    fn pes(&self) -> usize {
        self.graph.vertices()
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.distances[a * self.pes() + b]
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        row.copy_from_slice(self.row(a));
    }

    fn diameter(&self) -> u32 {
        self.distances.iter().copied().max().unwrap_or(0)
    }

    fn links(&self) -> usize {
        2 * self.graph.edges()
    }

    /// Links are numbered by source PE, then by target PE.
    fn link(&self, id: usize) -> Link {
        let (offsets, targets, weights) = self.graph.rows();
        let from = offsets.partition_point(|&first| first <= id) - 1;
        Link {
            name: format!("{from} -> {}", targets[id]),
            bandwidth: DEFAULT_BANDWIDTH,
            latency_seconds: DEFAULT_LATENCY_SECONDS,
            length: self.length(weights[id]),
        }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        let mut at = a;
        while let Some(link) = self.nearer(at, b).next() {
            links.push(link);
            at = self.graph.rows().1[link] as usize;
        }
    }

    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let at = crossed.map_or(a, |link| self.graph.rows().1[link] as usize);
        links.extend(self.nearer(at, b));
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{check, route, row};

    #[test]
    fn link_lengths_are_relative_weights() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("links.csv");
        let machine = |text: &str| {
            std::fs::write(&file, text).expect("a file");
            parse(&format!("graph:{}", file.display()))
        };
        // The same links, once and in both directions.
        for text in ["0,1,10\n1,2,20\n0,2,40\n", "0,1,10\n1,2,20\n0,2,40\n1,0,10\n2,1,20\n2,0,40\n"] {
            let machine = machine(text).expect("a machine");
            check(&*machine);
            assert_eq!(row(&*machine, 0), [0, 1, 3]);
        }
        let error = machine("0,1,1\n2,3,1\n").err().expect("two parts").to_string();
        assert!(error.contains("no path leads from vertex 0 to vertex 2 (counted from 0)"), "{error}");
        let error = machine("0,1,1\n1,2,4294967296\n").err().expect("too long").to_string();
        assert!(error.contains("a link of weight 4294967296 is too long"), "{error}");
        let error = machine("0,1,1\n1,2,4294967295\n").err().expect("too long").to_string();
        assert!(error.contains("distances do not fit 32 bits"), "{error}");
        // Among two shortest paths, the one over the lower-numbered neighbor.
        assert_eq!(route("graph:ring:6", 0, 3), "0 -> 1, 1 -> 2, 2 -> 3");
        assert_eq!(route("graph:ring:6", 3, 0), "3 -> 2, 2 -> 1, 1 -> 0");
        assert_eq!(route("graph:ring:6", 5, 2), "5 -> 0, 0 -> 1, 1 -> 2");
    }
}
