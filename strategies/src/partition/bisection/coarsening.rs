//! Coarsening: chooses the vertices that are merged on the next coarser level.
//!
//! Heavy-edge matching (G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning
//! irregular graphs", 1998) with the rating weight^2 / (load * load) of M. Holtgrewe, P. Sanders, C. Schulz
//! ("Engineering a scalable high quality graph partitioner", 2010, section 3.1), which keeps the loads of a level about
//! equal. Vertices are visited in random order, vertices of small degree first, so that a leaf of a star finds its
//! center before the center is matched. If a matching shrinks the graph too little, as on power-law graphs, each
//! unmatched vertex joins the best adjacent cluster, or another unmatched vertex with the same neighbor.

use equipoise_model::random::shuffle;
use rand_core::RngCore;
use rustc_hash::FxHashMap;

use super::csr::Csr;

/// The fraction (60/100) of the vertices that may remain after the matching. If more remain, unmatched vertices join
/// clusters.
const MAX_REMAINING: (usize, usize) = (60, 100);

/// Width of the classes of degrees, up to [`LARGE_DEGREE`].
const DEGREE_CLASS: usize = 4;

/// Vertices are shuffled within blocks of this many consecutive vertices, whose rows fit a second-level cache.
const WINDOW: usize = 1 << 13;

/// All degrees from this value on form one class.
const LARGE_DEGREE: usize = 64;

const NONE: u32 = u32::MAX;

/// The cluster of every vertex of `graph` and the number of clusters. Clusters are numbered by their lowest vertices.
///
/// No cluster of several vertices is heavier than `max_load`. With `part_of`, all vertices of a cluster belong to the
/// same part. Vertices from `movable` on form single-vertex clusters, which come last.
pub(crate) fn cluster(
    graph: &Csr,
    movable: usize,
    part_of: Option<&[u32]>,
    max_load: i64,
    rng: &mut impl RngCore,
) -> (Vec<u32>, usize) {
    let order = order(graph, movable, rng);
    let (cluster_of, loads) = (vec![NONE; graph.vertices()], Vec::with_capacity(movable / 2 + 1));
    let mut clusters = Clusters { graph, movable, part_of, max_load, cluster_of, loads };
    clusters.match_pairs(&order);
    let unmatched = order.iter().filter(|&&v| clusters.cluster_of[v as usize] == NONE).count();
    let (part, whole) = MAX_REMAINING;
    let joins = (clusters.loads.len() + unmatched) * whole > movable * part;
    clusters.cluster_unmatched(&order, joins);
    let Clusters { mut cluster_of, loads, .. } = clusters;
    for (cluster, number) in cluster_of[movable..].iter_mut().zip(loads.len() as u32..) {
        *cluster = number;
    }
    let count = loads.len() + graph.vertices() - movable;
    renumber(&mut cluster_of, count);
    (cluster_of, count)
}

/// The clusters built so far.
struct Clusters<'a> {
    graph: &'a Csr,
    movable: usize,
    part_of: Option<&'a [u32]>,
    max_load: i64,
    /// The cluster of each vertex; [`NONE`] if it has none yet.
    cluster_of: Vec<u32>,
    /// The load of each cluster.
    loads: Vec<i64>,
}

impl Clusters<'_> {
    fn may_join(&self, a: usize, b: usize) -> bool {
        b < self.movable && self.part_of.is_none_or(|part_of| part_of[a] == part_of[b])
    }

    /// Merges every vertex with its best unmatched neighbor.
    fn match_pairs(&mut self, order: &[u32]) {
        let graph = self.graph;
        for &v in order {
            let v = v as usize;
            if self.cluster_of[v] != NONE {
                continue;
            }
            let (mut best, mut best_rating) = (NONE, -1.0);
            for half in graph.row(v) {
                let u = half.to as usize;
                if u == v || u >= self.movable || self.cluster_of[u] != NONE || !self.may_join(v, u) {
                    continue;
                }
                if graph.loads[u] + graph.loads[v] > self.max_load {
                    continue;
                }
                let weight = f64::from(half.weight);
                let rating = weight * weight / graph.loads[u].max(1) as f64;
                if rating > best_rating {
                    (best, best_rating) = (half.to, rating);
                }
            }
            if best != NONE {
                let number = self.loads.len() as u32;
                (self.cluster_of[v], self.cluster_of[best as usize]) = (number, number);
                self.loads.push(graph.loads[v] + graph.loads[best as usize]);
            }
        }
    }

    /// Every unmatched vertex becomes a cluster. With `joins`, an unmatched vertex instead joins the best adjacent
    /// cluster or another unmatched vertex, where possible.
    fn cluster_unmatched(&mut self, order: &[u32], joins: bool) {
        // By first neighbor and part: the cluster of an unmatched vertex that has no partner yet.
        let mut waiting: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        for &v in order {
            let v = v as usize;
            if self.cluster_of[v] != NONE {
                continue;
            }
            let load = self.graph.loads[v];
            if joins {
                let mut best = self.best_cluster(v);
                let first_neighbor = self.graph.row(v).first().map_or(NONE, |half| half.to);
                let key = (first_neighbor, self.part_of.map_or(0, |part_of| part_of[v]));
                if best == NONE
                    && let Some(&partner) = waiting.get(&key)
                    && self.loads[partner as usize] + load <= self.max_load
                {
                    waiting.remove(&key);
                    best = partner;
                }
                if best != NONE {
                    self.cluster_of[v] = best;
                    self.loads[best as usize] += load;
                    continue;
                }
                waiting.insert(key, self.loads.len() as u32);
            }
            self.cluster_of[v] = self.loads.len() as u32;
            self.loads.push(load);
        }
    }

    /// The best adjacent cluster with room for vertex `v`.
    fn best_cluster(&self, v: usize) -> u32 {
        let (mut best, mut best_rating) = (NONE, -1.0);
        for half in self.graph.row(v) {
            let cluster = self.cluster_of[half.to as usize];
            if cluster == NONE || !self.may_join(v, half.to as usize) {
                continue;
            }
            let there = self.loads[cluster as usize];
            if there + self.graph.loads[v] > self.max_load {
                continue;
            }
            let weight = f64::from(half.weight);
            let rating = weight * weight / there.max(1) as f64;
            if rating > best_rating {
                (best, best_rating) = (cluster, rating);
            }
        }
        best
    }
}

/// The movable vertices, sorted by class of degree, in random order within a class.
fn order(graph: &Csr, movable: usize, rng: &mut impl RngCore) -> Vec<u32> {
    let mut shuffled: Vec<u32> = (0..movable as u32).collect();
    shuffled.chunks_mut(WINDOW).for_each(|window| shuffle(rng, window));
    let class = |v: u32| graph.degree(v as usize).min(LARGE_DEGREE) / DEGREE_CLASS;
    let mut next = [0usize; LARGE_DEGREE / DEGREE_CLASS + 2];
    shuffled.iter().for_each(|&v| next[class(v) + 1] += 1);
    for class in 1..next.len() {
        next[class] += next[class - 1];
    }
    let mut sorted = vec![0; movable];
    for v in shuffled {
        let place = &mut next[class(v)];
        sorted[*place] = v;
        *place += 1;
    }
    sorted
}

/// Numbers clusters by their lowest vertex, which preserves memory locality.
fn renumber(cluster_of: &mut [u32], clusters: usize) {
    let mut new = vec![NONE; clusters];
    let mut next = 0;
    for cluster in cluster_of {
        let number = &mut new[*cluster as usize];
        if *number == NONE {
            *number = next;
            next += 1;
        }
        *cluster = *number;
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::random::generator;

    use super::*;
    use crate::partition::bisection::csr::Half;

    fn star(leaves: u32) -> Csr {
        let mut graph = Csr::with_capacity(leaves as usize + 1);
        graph.push(1, (1..=leaves).map(|to| Half { to, weight: 1 }));
        (0..leaves).for_each(|_| graph.push(1, [Half { to: 0, weight: 1 }].into_iter()));
        graph
    }

    #[test]
    fn clusters_are_light_and_within_parts() {
        let graph = star(99);
        let parts: Vec<u32> = (0..100).map(|v| v % 3).collect();
        for seed in 0..20 {
            let (cluster_of, clusters) = cluster(&graph, 90, Some(&parts), 4, &mut generator(seed, 0));
            let coarse = graph.contract(&cluster_of, clusters);
            assert!(coarse.heaviest() <= 4 && clusters < 70, "{clusters} clusters");
            for v in 0..100 {
                let same = (0..100).filter(|&u| cluster_of[u] == cluster_of[v]);
                assert!(same.clone().all(|u| parts[u] == parts[v]));
                assert!(v < 90 || same.count() == 1);
            }
            // The clusters of fixed vertices come last, in order.
            assert!(cluster_of[90..].iter().enumerate().all(|(i, &c)| c as usize == clusters - 10 + i));
        }
    }
}
