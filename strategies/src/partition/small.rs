//! Bisection of graphs with few vertices into sides of given sizes.
//!
//! B. W. Kernighan, S. Lin, "An efficient heuristic procedure for partitioning graphs", Bell Syst. Tech. J. 49, 1970. A
//! pass exchanges the pair of vertices with the largest gain, then the best pair of the remaining vertices, and so on,
//! and restores the best state. Passes repeat until one gains nothing. The initial bisections are grown: one side starts
//! at a vertex and repeatedly adds the vertex with most weight to that side. There are up to `STARTS` of them, with start
//! vertices at even distances in index order. For such small graphs the result is as good as that of a multilevel
//! partitioner in a fraction of the time. The time matters: a mapping needs about as many of these bisections as there
//! are nodes.

use equipoise_model::graph::Graph;

/// Maximum number of vertices. Beyond this, the cubic time exceeds that of a multilevel partitioner.
pub const MAX_VERTICES: usize = 32;

/// Maximum number of initial bisections.
const STARTS: usize = 6;

/// The side, 0 or 1, of every vertex; `first` vertices are on side 0.
///
/// # Panics
/// When there are more than [`MAX_VERTICES`] vertices, or fewer than `first`.
pub fn bisect(graph: &Graph, first: usize) -> Vec<u32> {
    let vertices = graph.vertices();
    assert!(first <= vertices && vertices <= MAX_VERTICES, "{first} of {vertices} vertices");
    if first == 0 || first == vertices {
        return vec![u32::from(first == 0); vertices];
    }
    let total: u128 = graph.pairs().map(|(_, _, weight)| u128::from(weight)).sum();
    // Twice the sum of all weights fits 64 bits. Very light edges may be rounded to 0 if the sum exceeds 2^61.
    let unit = total.div_ceil(1 << 61).max(1) as u64;
    let mut weights = [[0i64; MAX_VERTICES]; MAX_VERTICES];
    for (a, b, weight) in graph.pairs() {
        let weight = (weight / unit) as i64;
        weights[a as usize][b as usize] = weight;
        weights[b as usize][a as usize] = weight;
    }
    let starts = STARTS.min(vertices);
    let bisections = (0..starts).map(|start| {
        let mut bisection = Bisection { weights: &weights, vertices, is_first: [false; MAX_VERTICES] };
        bisection.grow(start * vertices / starts, first);
        while bisection.pass() {}
        (bisection.cut(), bisection.is_first)
    });
    // `min_by_key` returns the first of equal elements.
    let best = bisections.min_by_key(|&(cut, _)| cut).map_or([false; MAX_VERTICES], |(_, is_first)| is_first);
    best[..vertices].iter().map(|&is_first| u32::from(!is_first)).collect()
}

/// A bisection.
struct Bisection<'a> {
    weights: &'a [[i64; MAX_VERTICES]; MAX_VERTICES],
    vertices: usize,
    is_first: [bool; MAX_VERTICES],
}

impl Bisection<'_> {
    /// Grows side 0 from vertex `start` to `first` vertices.
    fn grow(&mut self, start: usize, first: usize) {
        self.is_first[start] = true;
        let mut inside = self.weights[start];
        for _ in 1..first {
            let outside = (0..self.vertices).rev().filter(|&v| !self.is_first[v]);
            // `max_by_key` returns the last of equal elements.
            let Some(next) = outside.max_by_key(|&v| inside[v]) else { return };
            self.is_first[next] = true;
            inside.iter_mut().zip(&self.weights[next]).for_each(|(inside, weight)| *inside += weight);
        }
    }

    fn cut(&self) -> i64 {
        let crosses = |a: usize, b: usize| self.is_first[a] != self.is_first[b];
        let row = |a: usize| (0..a).filter(|&b| crosses(a, b)).map(|b| self.weights[a][b]).sum::<i64>();
        (0..self.vertices).map(row).sum()
    }

    /// The reduction of the cut if each vertex alone changes sides.
    fn gains(&self) -> [i64; MAX_VERTICES] {
        let mut gains = [0; MAX_VERTICES];
        for (v, gain) in gains[..self.vertices].iter_mut().enumerate() {
            for u in 0..self.vertices {
                let weight = self.weights[v][u];
                *gain += if self.is_first[v] == self.is_first[u] { -weight } else { weight };
            }
        }
        gains
    }

    /// Exchanges pairs until none is left, then restores the best state. Returns whether the cut is smaller than
    /// before.
    fn pass(&mut self) -> bool {
        let (mut gains, mut is_open) = (self.gains(), [true; MAX_VERTICES]);
        let (mut pairs, mut sum, mut best, mut kept) = (Vec::new(), 0, 0, 0);
        loop {
            let (now, all) = (self.is_first, 0..self.vertices);
            let side = |is_first: bool| all.clone().filter(move |&v| now[v] == is_first);
            let mut chosen: Option<(i64, usize, usize)> = None;
            for a in side(true).filter(|&a| is_open[a]) {
                for b in side(false).filter(|&b| is_open[b]) {
                    let gain = gains[a] + gains[b] - 2 * self.weights[a][b];
                    if chosen.is_none_or(|(most, ..)| gain > most) {
                        chosen = Some((gain, a, b));
                    }
                }
            }
            let Some((gain, a, b)) = chosen else { break };
            for v in [a, b] {
                is_open[v] = false;
                for (u, gain) in gains[..self.vertices].iter_mut().enumerate() {
                    let change = 2 * self.weights[v][u];
                    *gain += if self.is_first[v] == self.is_first[u] { change } else { -change };
                }
                self.is_first[v] = !self.is_first[v];
            }
            pairs.push((a, b));
            sum += gain;
            if sum > best {
                (best, kept) = (sum, pairs.len());
            }
        }
        for &(a, b) in &pairs[kept..] {
            (self.is_first[a], self.is_first[b]) = (true, false);
        }
        best > 0
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::graph::load;
    use proptest::prelude::*;

    use super::*;

    fn cut(graph: &Graph, side_of: &[u32]) -> u64 {
        let crosses = |&(a, b, _): &(u32, u32, u64)| side_of[a as usize] != side_of[b as usize];
        graph.pairs().filter(crosses).map(|pair| pair.2).sum()
    }

    /// The least cut of all bisections.
    fn least(graph: &Graph, first: usize) -> u64 {
        let vertices = graph.vertices();
        let bisections =
            (0u32..1 << vertices).filter(|sides| sides.count_ones() as usize == vertices - first);
        bisections
            .map(|sides| cut(graph, &(0..vertices).map(|v| sides >> v & 1).collect::<Vec<_>>()))
            .min()
            .unwrap_or(0)
    }

    #[test]
    fn grids_are_bisected_along_their_lines() {
        for (spec, first, expected) in [
            ("mesh:4x4", 8, 8),
            ("mesh:8x4", 16, 8),
            ("torus:4x4", 8, 16),
            ("ring:32", 16, 4),
            ("ring:9", 2, 4),
        ] {
            let graph = Graph::of(&load(spec).expect("a generator"));
            let side_of = bisect(&graph, first);
            assert_eq!(side_of.iter().filter(|&&side| side == 0).count(), first, "{spec}");
            assert_eq!(cut(&graph, &side_of), expected, "{spec}");
        }
        assert_eq!(bisect(&Graph::new(3, []), 0), [1; 3]);
        assert_eq!(bisect(&Graph::new(3, []), 3), [0; 3]);
        assert!(bisect(&Graph::new(0, []), 0).is_empty());
    }

    proptest! {
        #[test]
        fn sizes_are_exact_and_cuts_are_close_to_the_least(
            vertices in 2..9usize,
            edges in prop::collection::vec((0u32..9, 0u32..9, 1u64..20), 0..24),
            share in 0..9usize,
        ) {
            let edges = edges.into_iter().filter(|&(a, b, _)| (a.max(b) as usize) < vertices);
            let graph = Graph::new(vertices, edges);
            let first = share.min(vertices);
            let side_of = bisect(&graph, first);
            prop_assert_eq!(side_of.iter().filter(|&&side| side == 0).count(), first);
            let all: u64 = graph.pairs().map(|pair| pair.2).sum();
            prop_assert!(cut(&graph, &side_of) <= least(&graph, first) + all / 4);
        }
    }
}
