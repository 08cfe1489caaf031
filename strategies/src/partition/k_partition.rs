//! Parts of exactly given sizes, by a greedy randomized search.
//!
//! The `constraint_k_partition` of algorithm 1 in E. Jeannot, E. Meneses, G. Mercier, F. Tessier,
//! G. Zheng, "Communication and topology-aware load balancing in Charm++ with TreeMatch", Cluster 2013,
//! section IV; partitioners of that time did not produce parts of exact and unequal sizes. A trial gives every part
//! with room a random vertex, its seed. Then each other vertex, in index order, joins the part with room that contains
//! its heaviest single neighbor (not the heaviest sum; among equals the lowest vertex). A vertex without placed
//! neighbors joins the part of the lowest placed vertex whose part has room. The trial with the smallest cut wins, the
//! first among equals.
//!
//! Two optimizations do not change the result. Only the neighbors of a vertex are examined, so a trial is
//! O(vertices + edges) instead of O(vertices^2), and it stops as soon as its cut exceeds the best. The seeds determine
//! a trial, so all choices of seeds are tried if there are at most as many as trials.

use std::cmp::Reverse;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use equipoise_model::graph::Graph;
use equipoise_model::random::below;

/// The part of a vertex that has none yet.
const NONE: u32 = u32::MAX;

/// Number of consecutive trials that one thread runs.
const CHUNK: usize = 32;

/// The part of each vertex; part `i` has `capacities[i]` vertices.
///
/// The number of movable vertices of `graph` is the sum of the capacities. They are followed by one vertex for each
/// entry of `fixed`, which is its part; fixed vertices take no room. Runs at most `trials` trials (at least one) with
/// random numbers from `generator`. The result does not depend on the number of threads.
///
/// # Panics
/// When the number of vertices differs from these sums.
pub(crate) fn partition(
    graph: &Graph,
    capacities: &[u32],
    fixed: &[u32],
    trials: usize,
    generator: &mut ChaCha8Rng,
) -> Vec<u32> {
    let vertices = capacities.iter().map(|&capacity| capacity as usize).sum::<usize>();
    assert_eq!(vertices + fixed.len(), graph.vertices(), "every vertex has room or is in a part");
    let open: Vec<u32> = (0..capacities.len() as u32).filter(|&part| capacities[part as usize] > 0).collect();
    let all_are_equivalent = graph.edges() == 0 || (open.len() == vertices && fixed.is_empty());
    if open.len() < 2 || all_are_equivalent {
        let room = |&part: &u32| std::iter::repeat_n(part, capacities[part as usize] as usize);
        return open.iter().flat_map(room).collect();
    }
    let seeds = all_seeds(vertices, &open, capacities, fixed.is_empty(), trials.max(1))
        .unwrap_or_else(|| random_seeds(vertices, open.len(), trials.max(1), generator));
    let rows = Rows::of(graph);
    let new_trial = || Trial::new(&rows, capacities, &open, fixed);
    let chunks = seeds.par_chunks(open.len() * CHUNK).enumerate();
    let best = chunks.map_init(new_trial, |trial, (chunk, seeds)| {
        for (position, seeds) in seeds.chunks(open.len()).enumerate() {
            trial.run(seeds, chunk * CHUNK + position);
        }
        trial.best
    });
    let (_, winner) = best.min().expect("there is a trial");
    let mut trial = new_trial();
    trial.run(&seeds[winner * open.len()..][..open.len()], winner);
    trial.part_of.truncate(vertices);
    trial.part_of
}

/// All choices of seeds in sequence, if there are at most `most`. The number of choices of any first few seeds must not
/// exceed `most` either.
///
/// If no vertex is fixed, successive parts of the same capacity are interchangeable. So only choices in which the later
/// part has the higher seed are listed.
fn all_seeds(
    vertices: usize,
    open: &[u32],
    capacities: &[u32],
    nothing_is_fixed: bool,
    most: usize,
) -> Option<Vec<u32>> {
    let like_previous: Vec<bool> = (0..open.len())
        .map(|i| {
            nothing_is_fixed && i > 0 && capacities[open[i] as usize] == capacities[open[i - 1] as usize]
        })
        .collect();
    let (mut choices, mut run) = (1, 1);
    for (i, like) in like_previous.iter().enumerate() {
        run = if *like { run + 1 } else { 1 };
        choices = choices * (vertices - i) / run;
        if choices > most {
            return None;
        }
    }
    let mut all = Vec::with_capacity(choices * open.len());
    let mut seeds: Vec<u32> = Vec::with_capacity(open.len());
    let mut next = 0;
    loop {
        while next < vertices as u32 && seeds.contains(&next) {
            next += 1;
        }
        if next == vertices as u32 {
            let Some(last) = seeds.pop() else { return Some(all) };
            next = last + 1;
            continue;
        }
        seeds.push(next);
        if seeds.len() == open.len() {
            all.extend_from_slice(&seeds);
            seeds.pop();
            next += 1;
        } else {
            next = if like_previous[seeds.len()] { next + 1 } else { 0 };
        }
    }
}

/// `trials` uniformly random choices of `count` different vertices.
fn random_seeds(vertices: usize, count: usize, trials: usize, generator: &mut ChaCha8Rng) -> Vec<u32> {
    let mut shuffled: Vec<u32> = (0..vertices as u32).collect();
    let mut seeds = Vec::with_capacity(trials * count);
    for _ in 0..trials {
        for i in 0..count {
            let other = i + below(generator, (vertices - i) as u64) as usize;
            shuffled.swap(i, other);
        }
        seeds.extend_from_slice(&shuffled[..count]);
    }
    seeds
}

/// The neighbors of every vertex with their edge weights, heaviest first.
struct Rows {
    offsets: Vec<usize>,
    ends: Vec<(u32, u64)>,
}

impl Rows {
    fn of(graph: &Graph) -> Self {
        let (offsets, targets, weights) = graph.rows();
        let mut ends: Vec<(u32, u64)> = targets.iter().copied().zip(weights.iter().copied()).collect();
        for bounds in offsets.windows(2) {
            // A stable sort keeps edges of equal weight in the order of their targets.
            ends[bounds[0]..bounds[1]].sort_by_key(|&(_, weight)| Reverse(weight));
        }
        Rows { offsets: offsets.to_vec(), ends }
    }

    fn of_vertex(&self, vertex: usize) -> &[(u32, u64)] {
        &self.ends[self.offsets[vertex]..self.offsets[vertex + 1]]
    }
}

/// Runs trials in sequence and records the best.
struct Trial<'a> {
    rows: &'a Rows,
    capacities: &'a [u32],
    open: &'a [u32],
    part_of: Vec<u32>,
    /// Remaining capacity of each part.
    room: Vec<u32>,
    cut: u64,
    /// Cut and number of the best trial.
    best: (u64, usize),
}

impl<'a> Trial<'a> {
    fn new(rows: &'a Rows, capacities: &'a [u32], open: &'a [u32], fixed: &[u32]) -> Self {
        let vertices = rows.offsets.len() - 1 - fixed.len();
        let part_of = std::iter::repeat_n(NONE, vertices).chain(fixed.iter().copied()).collect();
        let room = vec![0; capacities.len()];
        Trial { rows, capacities, open, part_of, room, cut: 0, best: (u64::MAX, usize::MAX) }
    }

    /// Runs trial `number`.
    fn run(&mut self, seeds: &[u32], number: usize) {
        let vertices = self.capacities.iter().map(|&capacity| capacity as usize).sum();
        self.room.copy_from_slice(self.capacities);
        self.part_of[..vertices].fill(NONE);
        self.cut = 0;
        for (&seed, &part) in seeds.iter().zip(self.open) {
            self.assign(seed as usize, part);
        }
        let mut lowest = 0;
        for vertex in 0..vertices {
            if self.part_of[vertex] != NONE {
                continue;
            }
            let has_room = |&part: &u32| part != NONE && self.room[part as usize] > 0;
            let neighbors = self.rows.of_vertex(vertex).iter();
            let part = neighbors.map(|&(neighbor, _)| self.part_of[neighbor as usize]).find(has_room);
            let part = part.unwrap_or_else(|| {
                // All lower vertices have parts, and full parts remain full.
                while lowest < vertex && !has_room(&self.part_of[lowest]) {
                    lowest += 1;
                }
                if lowest < vertex {
                    return self.part_of[lowest];
                }
                let later = seeds.iter().zip(self.open).filter(|&(_, part)| has_room(part));
                *later.min().expect("a vertex without a part leaves room in one").1
            });
            self.assign(vertex, part);
            if (self.cut, number) > self.best {
                return;
            }
        }
        self.best = self.best.min((self.cut, number));
    }

    /// Adds a vertex without a part to `part`.
    fn assign(&mut self, vertex: usize, part: u32) {
        for &(neighbor, weight) in self.rows.of_vertex(vertex) {
            let other = self.part_of[neighbor as usize];
            let is_cut = other != NONE && other != part;
            self.cut = self.cut.saturating_add(if is_cut { weight } else { 0 });
        }
        self.part_of[vertex] = part;
        self.room[part as usize] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::random::generator;
    use proptest::prelude::*;

    use super::*;

    fn cut(graph: &Graph, part_of: &[u32]) -> u64 {
        graph.pairs().filter(|&(a, b, _)| part_of[a as usize] != part_of[b as usize]).map(|pair| pair.2).sum()
    }

    /// The same trial by examining all vertices, as the paper's program does.
    fn reference_trial(graph: &Graph, capacities: &[u32], seeds: &[(u32, u32)]) -> Vec<u32> {
        let n = graph.vertices();
        let weight = |a: usize, b: usize| graph.neighbors(a).find(|&(v, _)| v == b).map_or(0, |(_, w)| w);
        let mut part_of = vec![NONE; n];
        let mut room = capacities.to_vec();
        for &(seed, part) in seeds {
            part_of[seed as usize] = part;
            room[part as usize] -= 1;
        }
        for vertex in 0..n {
            if part_of[vertex] == NONE {
                let mut best: Option<(u64, u32)> = None;
                for (other, &part) in part_of.iter().enumerate() {
                    if part != NONE && room[part as usize] > 0 {
                        let cost = weight(vertex, other);
                        if best.is_none_or(|(most, _)| cost > most) {
                            best = Some((cost, part));
                        }
                    }
                }
                let (_, part) = best.expect("some part has room");
                part_of[vertex] = part;
                room[part as usize] -= 1;
            }
        }
        part_of
    }

    /// Sizes of parts and a graph with that number of vertices.
    fn problem() -> impl Strategy<Value = (Vec<u32>, Graph)> {
        prop::collection::vec(0..5u32, 1..5).prop_flat_map(|capacities| {
            let n = capacities.iter().sum::<u32>();
            let edge = (0..n.max(1), 0..n.max(1), 0..4u64);
            prop::collection::vec(edge, 0..40).prop_map(move |edges| {
                let edges = edges.into_iter().filter(|_| n > 0);
                (capacities.clone(), Graph::new(n as usize, edges))
            })
        })
    }

    proptest! {
        #[test]
        fn the_result_is_the_best_of_the_reference_trials((capacities, graph) in problem(), trials in 1..30usize) {
            let part_of = partition(&graph, &capacities, &[], trials, &mut generator(3, 4));
            for (part, &capacity) in capacities.iter().enumerate() {
                prop_assert_eq!(part_of.iter().filter(|&&p| p as usize == part).count(), capacity as usize);
            }
            let open: Vec<u32> = (0..capacities.len() as u32).filter(|&p| capacities[p as usize] > 0).collect();
            let n = graph.vertices();
            let seeds = all_seeds(n, &open, &capacities, true, trials)
                .unwrap_or_else(|| random_seeds(n, open.len(), trials, &mut generator(3, 4)));
            let reference = seeds.chunks(open.len().max(1)).map(|seeds| {
                let seeds: Vec<(u32, u32)> = seeds.iter().copied().zip(open.iter().copied()).collect();
                cut(&graph, &reference_trial(&graph, &capacities, &seeds))
            });
            prop_assert_eq!(cut(&graph, &part_of), reference.min().unwrap_or(0));
        }

        #[test]
        fn omitting_interchangeable_choices_keeps_the_best_cut((capacities, graph) in problem()) {
            let open: Vec<u32> = (0..capacities.len() as u32).filter(|&p| capacities[p as usize] > 0).collect();
            let best = |nothing_is_fixed| {
                let seeds = all_seeds(graph.vertices(), &open, &capacities, nothing_is_fixed, 10_000)?;
                let trial = |seeds: &[u32]| {
                    let seeds: Vec<(u32, u32)> = seeds.iter().copied().zip(open.iter().copied()).collect();
                    cut(&graph, &reference_trial(&graph, &capacities, &seeds))
                };
                seeds.chunks(open.len().max(1)).map(trial).min()
            };
            if let (Some(few), Some(many)) = (best(true), best(false)) {
                prop_assert_eq!(few, many);
            }
        }
    }

    #[test]
    fn all_choices_of_seeds_are_enumerated() {
        let check = |vertices, capacities: &[u32], expected: Option<&[u32]>| {
            let open: Vec<u32> = (0..capacities.len() as u32).collect();
            assert_eq!(all_seeds(vertices, &open, capacities, true, 6).as_deref(), expected);
        };
        check(3, &[1, 2], Some(&[0, 1, 0, 2, 1, 0, 1, 2, 2, 0, 2, 1]));
        check(4, &[2, 2], Some(&[0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3]));
        check(4, &[3, 1], None);
    }

    #[test]
    fn fixed_vertices_attract_neighbors_and_take_no_room() {
        // Vertex 0 has an edge to part 1, vertex 3 to part 0, and vertices 1 and 2 to each other.
        let graph = Graph::new(6, [(0, 5, 9), (3, 4, 9), (1, 2, 5), (1, 0, 1)]);
        let part_of = partition(&graph, &[1, 3], &[0, 1], 100, &mut generator(0, 0));
        assert_eq!(part_of, [1, 1, 1, 0]);
    }

    #[test]
    fn zero_trials_run_one_trial() {
        let ring = Graph::new(40, (0..40).map(|v| (v, (v + 1) % 40, 1)));
        for trials in [0, 1] {
            let part_of = partition(&ring, &[13, 27], &[], trials, &mut generator(0, 0));
            assert_eq!(part_of.iter().filter(|&&part| part == 0).count(), 13);
        }
    }
}
