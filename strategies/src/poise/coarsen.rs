//! Coarsening: which vertices become one on the next coarser level.
//!
//! Heavy-edge matching (G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning
//! irregular graphs", 1998) with the rating weight^2 / (load * load) of M. Holtgrewe, P. Sanders, C. Schulz
//! ("Engineering a scalable high quality graph partitioner", 2010, section 3.1), which keeps vertices of a
//! level about equally heavy. Vertices are visited in random order, those of small degree first, so that the
//! leaves of a star find their centre before it is taken. Where a matching shrinks the graph too little, as
//! on power-law graphs, what is left over joins the best cluster around it, or another left-over vertex of the
//! same neighbor.

use rand_core::RngCore;
use rustc_hash::FxHashMap;

use super::csr::Csr;
use crate::random::shuffle;

/// The part of the vertices that may remain before left-over vertices are joined to clusters.
const MAX_REMAINING: (usize, usize) = (60, 100);

/// Degrees are sorted into classes of this width, up to [`LARGE_DEGREE`].
const DEGREE_CLASS: usize = 4;

/// Vertices are shuffled among so many whose numbers follow each other, whose rows fit a second-level cache.
const WINDOW: usize = 1 << 13;

/// All degrees from here on are one class.
const LARGE_DEGREE: usize = 64;

const NONE: u32 = u32::MAX;

/// The cluster of every vertex of `graph`, numbered by their lowest vertices, and how many there are.
///
/// No cluster of several vertices is heavier than `max_load`. Where `part_of` is given, all vertices of a
/// cluster belong to the same part; vertices from `movable` on stay alone, and their clusters come last.
pub(crate) fn cluster(
    graph: &Csr,
    movable: usize,
    part_of: Option<&[u32]>,
    max_load: i64,
    dice: &mut impl RngCore,
) -> (Vec<u32>, usize) {
    let order = order(graph, movable, dice);
    let may_join = |a: usize, b: usize| b < movable && part_of.is_none_or(|part_of| part_of[a] == part_of[b]);
    let load = |v: usize| graph.loads[v].max(1) as f64;
    let mut cluster_of = vec![NONE; graph.vertices()];
    let mut cluster_loads: Vec<i64> = Vec::with_capacity(movable / 2 + 1);
    for &v in &order {
        let v = v as usize;
        if cluster_of[v] != NONE {
            continue;
        }
        let (mut best, mut best_rating) = (NONE, -1.0);
        for half in graph.row(v) {
            let u = half.to as usize;
            if u == v || u >= movable || cluster_of[u] != NONE || !may_join(v, u) {
                continue;
            }
            if graph.loads[u] + graph.loads[v] > max_load {
                continue;
            }
            let weight = f64::from(half.weight);
            let rating = weight * weight / load(u);
            if rating > best_rating {
                (best, best_rating) = (half.to, rating);
            }
        }
        if best != NONE {
            let number = cluster_loads.len() as u32;
            (cluster_of[v], cluster_of[best as usize]) = (number, number);
            cluster_loads.push(graph.loads[v] + graph.loads[best as usize]);
        }
    }
    let left_over = order.iter().filter(|&&v| cluster_of[v as usize] == NONE).count();
    let (part, whole) = MAX_REMAINING;
    let joins = (cluster_loads.len() + left_over) * whole > movable * part;
    // The cluster of a left-over vertex that waits for another one of the same neighbor and part.
    let mut waiting: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for &v in &order {
        let v = v as usize;
        if cluster_of[v] != NONE {
            continue;
        }
        if joins {
            let (mut best, mut best_rating) = (NONE, -1.0);
            for half in graph.row(v) {
                let cluster = cluster_of[half.to as usize];
                if cluster == NONE || !may_join(v, half.to as usize) {
                    continue;
                }
                let there = cluster_loads[cluster as usize];
                if there + graph.loads[v] > max_load {
                    continue;
                }
                let weight = f64::from(half.weight);
                let rating = weight * weight / there.max(1) as f64;
                if rating > best_rating {
                    (best, best_rating) = (cluster, rating);
                }
            }
            let around = graph.row(v).first().map_or(NONE, |half| half.to);
            let key = (around, part_of.map_or(0, |part_of| part_of[v]));
            if best == NONE
                && let Some(&partner) = waiting.get(&key)
                && cluster_loads[partner as usize] + graph.loads[v] <= max_load
            {
                waiting.remove(&key);
                best = partner;
            }
            if best != NONE {
                cluster_of[v] = best;
                cluster_loads[best as usize] += graph.loads[v];
                continue;
            }
            waiting.insert(key, cluster_loads.len() as u32);
        }
        cluster_of[v] = cluster_loads.len() as u32;
        cluster_loads.push(graph.loads[v]);
    }
    for (cluster, number) in cluster_of[movable..].iter_mut().zip(cluster_loads.len() as u32..) {
        *cluster = number;
    }
    let clusters = cluster_loads.len() + graph.vertices() - movable;
    renumber(&mut cluster_of, clusters);
    (cluster_of, clusters)
}

/// The movable vertices in random order, sorted by class of degree.
fn order(graph: &Csr, movable: usize, dice: &mut impl RngCore) -> Vec<u32> {
    let mut shuffled: Vec<u32> = (0..movable as u32).collect();
    shuffled.chunks_mut(WINDOW).for_each(|window| shuffle(dice, window));
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

/// Numbers clusters by their lowest vertex: neighbors in memory stay neighbors.
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
    use super::*;
    use crate::poise::csr::Half;
    use crate::random::generator;

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
            // Anchors come last, in their order.
            assert!(cluster_of[90..].iter().enumerate().all(|(i, &c)| c as usize == clusters - 10 + i));
        }
    }
}
