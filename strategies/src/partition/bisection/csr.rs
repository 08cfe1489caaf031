//! The graph of all phases: compact, weighted, and efficient to contract.
//!
//! [`equipoise_model::graph::Graph`] holds bytes as they were recorded. This graph holds 32-bit weights in its own
//! unit. Each weight is stored next to the adjacent vertex, because the algorithms only traverse rows.

use std::ops::Range;

use rayon::prelude::*;

/// Minimum number of half-edges for which a graph is contracted in parallel.
const PARALLEL: usize = 1 << 16;

/// The number of members of a cluster whose edges are collected before they are merged.
const MEMBERS: usize = 16;

/// A half-edge: one entry of the row of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Half {
    /// The adjacent vertex.
    pub to: u32,
    /// The weight of the edge, in the unit of the graph. All weights sum to less than 2^32.
    pub weight: u32,
}

/// An undirected graph in compressed sparse rows, with a load for every vertex.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Csr {
    /// The row of `v` is `halves[offsets[v]..offsets[v + 1]]`.
    offsets: Vec<u32>,
    halves: Vec<Half>,
    /// The load of each vertex, in the unit of loads; at least 0.
    pub loads: Vec<i64>,
}

impl Csr {
    /// An empty graph with capacity for `vertices` vertices, to be filled by [`Self::push`].
    pub fn with_capacity(vertices: usize) -> Self {
        let mut offsets = Vec::with_capacity(vertices + 1);
        offsets.push(0);
        Csr { offsets, halves: Vec::new(), loads: Vec::with_capacity(vertices) }
    }

    /// The graph with these rows; `offsets` and `halves` are as in the fields. Half-edges of a row with the same end are
    /// merged to one, whose weight is `weight` of all of them; without a weight there is none.
    pub fn merged(
        mut offsets: Vec<u32>,
        mut halves: Vec<Half>,
        loads: Vec<i64>,
        weight: impl Fn(&[Half]) -> u32,
    ) -> Csr {
        // In place, because the rows of a large graph have a hundred megabytes: no row is written before it is read.
        let (mut end, mut next) = (0, 0);
        for offset in &mut offsets[1..] {
            let row = next..*offset as usize;
            halves[row.clone()].sort_unstable_by_key(|half| half.to);
            while next < row.end {
                let to = halves[next].to;
                let same = halves[next..row.end].iter().take_while(|half| half.to == to).count();
                let merged = Half { to, weight: weight(&halves[next..next + same]) };
                next += same;
                if merged.weight > 0 {
                    halves[end] = merged;
                    end += 1;
                }
            }
            *offset = end as u32;
        }
        halves.truncate(end);
        halves.shrink_to_fit();
        Csr { offsets, halves, loads }
    }

    /// Appends a vertex.
    pub fn push(&mut self, load: i64, row: impl Iterator<Item = Half>) {
        self.halves.extend(row);
        self.offsets.push(self.halves.len() as u32);
        self.loads.push(load);
    }

    /// The number of vertices.
    pub fn vertices(&self) -> usize {
        self.loads.len()
    }

    /// The edges of `v`.
    #[inline]
    pub fn row(&self, v: usize) -> &[Half] {
        &self.halves[self.offsets[v] as usize..self.offsets[v + 1] as usize]
    }

    /// The number of edges of `v`.
    pub fn degree(&self, v: usize) -> usize {
        (self.offsets[v + 1] - self.offsets[v]) as usize
    }

    /// The sum of all loads.
    pub fn total_load(&self) -> i64 {
        self.loads.iter().sum()
    }

    /// The heaviest load; 0 without vertices.
    pub fn heaviest(&self) -> i64 {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    /// The graph of `clusters` clusters; vertex `v` belongs to cluster `cluster_of[v]`. Loads and parallel edges are
    /// summed; edges inside a cluster are removed. O(vertices + edges).
    pub fn contract(&self, cluster_of: &[u32], clusters: usize) -> Csr {
        let groups = Groups::new(cluster_of, clusters);
        let threads = if self.halves.len() < PARALLEL { 1 } else { rayon::current_num_threads() };
        let size = clusters.div_ceil(threads).max(1);
        let range = |part: usize| (part * size).min(clusters)..((part + 1) * size).min(clusters);
        let piece = |part: usize| self.rows_of(range(part), &groups, cluster_of, clusters);
        if threads == 1 {
            return piece(0);
        }
        let pieces: Vec<Csr> = (0..threads).into_par_iter().map(piece).collect();
        let halves = pieces.iter().map(|piece| piece.halves.len()).sum::<usize>();
        let mut pieces = pieces.into_iter();
        // The first rows stay where they are, which needs less memory.
        let mut whole = pieces.next().unwrap_or_default();
        whole.halves.reserve_exact(halves - whole.halves.len());
        for piece in pieces {
            let before = whole.halves.len() as u32;
            whole.offsets.extend(piece.offsets[1..].iter().map(|offset| before + offset));
            whole.halves.extend(piece.halves);
            whole.loads.extend(piece.loads);
        }
        whole
    }

    /// The rows of the clusters in `range`.
    fn rows_of(&self, range: Range<usize>, groups: &Groups, cluster_of: &[u32], clusters: usize) -> Csr {
        let mut coarse = Csr::with_capacity(range.len());
        // The position of the edge to each cluster. Positions before the current row are out of date.
        let mut places = vec![u32::MAX; clusters];
        // The edges of some members are collected first, so that reading them does not depend on merging them.
        let mut edges: Vec<Half> = Vec::new();
        for cluster in range {
            let first = coarse.halves.len();
            let mut load = 0;
            for members in groups.members(cluster).chunks(MEMBERS) {
                edges.clear();
                for &v in members {
                    load += self.loads[v as usize];
                    let row = self.row(v as usize).iter();
                    edges.extend(
                        row.map(|half| Half { to: cluster_of[half.to as usize], weight: half.weight }),
                    );
                }
                for &edge in edges.iter().filter(|edge| edge.to as usize != cluster) {
                    let place = &mut places[edge.to as usize];
                    if *place != u32::MAX && *place as usize >= first {
                        coarse.halves[*place as usize].weight += edge.weight;
                    } else {
                        *place = coarse.halves.len() as u32;
                        coarse.halves.push(edge);
                    }
                }
            }
            coarse.offsets.push(coarse.halves.len() as u32);
            coarse.loads.push(load);
        }
        coarse
    }
}

/// Vertices sorted by the group they belong to (counting sort).
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl Groups {
    /// The members of each of `count` groups, ascending; vertex `v` belongs to group `group_of[v]`.
    pub fn new(group_of: &[u32], count: usize) -> Self {
        let mut starts = vec![0u32; count + 1];
        for &group in group_of {
            starts[group as usize + 1] += 1;
        }
        for group in 0..count {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut members = vec![0; group_of.len()];
        for (v, &group) in group_of.iter().enumerate() {
            let place = &mut next[group as usize];
            members[*place as usize] = v as u32;
            *place += 1;
        }
        Groups { starts, members }
    }

    /// The members of a group, ascending.
    pub fn members(&self, group: usize) -> &[u32] {
        &self.members[self.starts[group] as usize..self.starts[group + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path 0 - 1 - 2 - 3 with weights 1, 2, 3.
    fn path() -> Csr {
        let half = |to, weight| Half { to, weight };
        let mut graph = Csr::with_capacity(4);
        graph.push(1, [half(1, 1)].into_iter());
        graph.push(2, [half(0, 1), half(2, 2)].into_iter());
        graph.push(3, [half(1, 2), half(3, 3)].into_iter());
        graph.push(4, [half(2, 3)].into_iter());
        graph
    }

    #[test]
    fn contraction_sums_loads_and_parallel_edges() {
        let coarse = path().contract(&[0, 1, 1, 0], 2);
        assert_eq!(coarse.loads, [5, 5]);
        assert_eq!(
            (coarse.row(0), coarse.row(1)),
            (&[Half { to: 1, weight: 4 }][..], &[Half { to: 0, weight: 4 }][..])
        );
        let same = path().contract(&[0, 1, 2, 3], 4);
        assert_eq!(same, path());
    }

    #[test]
    fn groups_list_their_members_in_order() {
        let groups = Groups::new(&[2, 0, 2, 0], 3);
        assert_eq!(
            (groups.members(0), groups.members(1), groups.members(2)),
            (&[1, 3][..], &[][..], &[0, 2][..])
        );
    }
}
