//! Parts of exactly given sizes, by a greedy randomised search.
//!
//! The `constraint_k_partition` of algorithm 1 in E. Jeannot, E. Meneses, G. Mercier, F. Tessier,
//! G. Zheng, "Communication and topology-aware load balancing in Charm++ with TreeMatch", Cluster 2013,
//! section IV: no partitioner of the time made parts of exact and unequal sizes. A trial gives every
//! part that takes vertices one drawn at random, its seed. Then each other vertex, in index order, goes
//! to the part that has room and holds the one vertex it exchanges most with (the heaviest single edge,
//! not the sum; among equals the lowest vertex); one that exchanges nothing with anybody placed joins
//! the lowest placed vertex whose part has room. The trial that cuts least wins, the first of equals.
//!
//! Two things make it fast without changing an answer. Only the neighbors of a vertex are looked at, so
//! a trial is O(vertices + edges) instead of the square of the vertices, and it is given up as soon as it
//! cuts more than the best. And since a trial is known once its seeds are, all choices of seeds are tried
//! where there are no more than trials.

use std::cmp::Reverse;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::graph::Graph;
use crate::random::below;

/// A vertex without a part.
const NONE: u32 = u32::MAX;

/// How many trials one thread does before another may take over.
const CHUNK: usize = 32;

/// The part of each vertex: `capacities[i]` of them are in part `i`.
///
/// The graph has as many vertices as the capacities sum to and, after them, one for each of `fixed`, which
/// is in that part already and takes no room. At most `trials` trials are done (at least one); what is
/// random comes from `generator`. Same answer on any number of threads.
///
/// # Panics
/// When the number of vertices is another.
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
    let any_is_as_good = graph.edges() == 0 || (open.len() == vertices && fixed.is_empty());
    if open.len() < 2 || any_is_as_good {
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

/// Every choice of seeds, one after the other, if there are at most `most` of them and of their beginnings.
///
/// Neighboring parts of the same capacity are interchangeable where nothing is fixed, so there the seed of
/// the later one is the higher vertex.
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

/// `trials` times `count` different vertices, all choices equally likely.
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

/// The neighbors of every vertex and the weights of the edges to them, heaviest first.
struct Rows {
    offsets: Vec<usize>,
    ends: Vec<(u32, u64)>,
}

impl Rows {
    fn of(graph: &Graph) -> Self {
        let (offsets, targets, weights) = graph.rows();
        let mut ends: Vec<(u32, u64)> = targets.iter().copied().zip(weights.iter().copied()).collect();
        for bounds in offsets.windows(2) {
            // Stable: equal edges stay in the order of their targets.
            ends[bounds[0]..bounds[1]].sort_by_key(|&(_, weight)| Reverse(weight));
        }
        Rows { offsets: offsets.to_vec(), ends }
    }

    fn of_vertex(&self, vertex: usize) -> &[(u32, u64)] {
        &self.ends[self.offsets[vertex]..self.offsets[vertex + 1]]
    }
}

/// One trial after another, and the best so far.
struct Trial<'a> {
    rows: &'a Rows,
    capacities: &'a [u32],
    open: &'a [u32],
    part_of: Vec<u32>,
    /// How many vertices each part still takes.
    room: Vec<u32>,
    cut: u64,
    /// What the best trial cuts, and its number.
    best: (u64, usize),
}

impl<'a> Trial<'a> {
    fn new(rows: &'a Rows, capacities: &'a [u32], open: &'a [u32], fixed: &[u32]) -> Self {
        let vertices = rows.offsets.len() - 1 - fixed.len();
        let part_of = std::iter::repeat_n(NONE, vertices).chain(fixed.iter().copied()).collect();
        let room = vec![0; capacities.len()];
        Trial { rows, capacities, open, part_of, room, cut: 0, best: (u64::MAX, usize::MAX) }
    }

    /// The trial of that number.
    fn run(&mut self, seeds: &[u32], number: usize) {
        let vertices = self.capacities.iter().map(|&capacity| capacity as usize).sum();
        self.room.copy_from_slice(self.capacities);
        self.part_of[..vertices].fill(NONE);
        self.cut = 0;
        for (&seed, &part) in seeds.iter().zip(self.open) {
            self.put(seed as usize, part);
        }
        let mut lowest = 0;
        for vertex in 0..vertices {
            if self.part_of[vertex] != NONE {
                continue;
            }
            let has_room = |&part: &u32| part != NONE && self.room[part as usize] > 0;
            let friends = self.rows.of_vertex(vertex).iter();
            let part = friends.map(|&(friend, _)| self.part_of[friend as usize]).find(has_room);
            let part = part.unwrap_or_else(|| {
                // All vertices below this one have a part, and parts that are full remain so.
                while lowest < vertex && !has_room(&self.part_of[lowest]) {
                    lowest += 1;
                }
                if lowest < vertex {
                    return self.part_of[lowest];
                }
                let later = seeds.iter().zip(self.open).filter(|&(_, part)| has_room(part));
                *later.min().expect("a vertex without a part leaves room in one").1
            });
            self.put(vertex, part);
            if (self.cut, number) > self.best {
                return;
            }
        }
        self.best = self.best.min((self.cut, number));
    }

    /// Gives a part to a vertex that had none.
    fn put(&mut self, vertex: usize, part: u32) {
        for &(friend, weight) in self.rows.of_vertex(vertex) {
            let other = self.part_of[friend as usize];
            let is_cut = other != NONE && other != part;
            self.cut = self.cut.saturating_add(if is_cut { weight } else { 0 });
        }
        self.part_of[vertex] = part;
        self.room[part as usize] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::generator;
    use proptest::prelude::*;

    fn cut(graph: &Graph, part_of: &[u32]) -> u64 {
        graph.pairs().filter(|&(a, b, _)| part_of[a as usize] != part_of[b as usize]).map(|pair| pair.2).sum()
    }

    /// The same trials by looking at all vertices, as the paper's program does.
    fn plain_trial(graph: &Graph, capacities: &[u32], seeds: &[(u32, u32)]) -> Vec<u32> {
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

    /// Sizes of parts, and a graph of as many vertices.
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
        fn it_is_the_best_of_the_plain_trials((capacities, graph) in problem(), trials in 1..30usize) {
            let part_of = partition(&graph, &capacities, &[], trials, &mut generator(3, 4));
            for (part, &capacity) in capacities.iter().enumerate() {
                prop_assert_eq!(part_of.iter().filter(|&&p| p as usize == part).count(), capacity as usize);
            }
            let open: Vec<u32> = (0..capacities.len() as u32).filter(|&p| capacities[p as usize] > 0).collect();
            let n = graph.vertices();
            let seeds = all_seeds(n, &open, &capacities, true, trials)
                .unwrap_or_else(|| random_seeds(n, open.len(), trials, &mut generator(3, 4)));
            let plain = seeds.chunks(open.len().max(1)).map(|seeds| {
                let seeds: Vec<(u32, u32)> = seeds.iter().copied().zip(open.iter().copied()).collect();
                cut(&graph, &plain_trial(&graph, &capacities, &seeds))
            });
            prop_assert_eq!(cut(&graph, &part_of), plain.min().unwrap_or(0));
        }

        #[test]
        fn leaving_out_interchangeable_choices_changes_no_cut((capacities, graph) in problem()) {
            let open: Vec<u32> = (0..capacities.len() as u32).filter(|&p| capacities[p as usize] > 0).collect();
            let best = |nothing_is_fixed| {
                let seeds = all_seeds(graph.vertices(), &open, &capacities, nothing_is_fixed, 10_000)?;
                let trial = |seeds: &[u32]| {
                    let seeds: Vec<(u32, u32)> = seeds.iter().copied().zip(open.iter().copied()).collect();
                    cut(&graph, &plain_trial(&graph, &capacities, &seeds))
                };
                seeds.chunks(open.len().max(1)).map(trial).min()
            };
            if let (Some(few), Some(many)) = (best(true), best(false)) {
                prop_assert_eq!(few, many);
            }
        }
    }

    #[test]
    fn all_choices_of_seeds_are_counted_right() {
        let check = |vertices, capacities: &[u32], expected: Option<&[u32]>| {
            let open: Vec<u32> = (0..capacities.len() as u32).collect();
            assert_eq!(all_seeds(vertices, &open, capacities, true, 6).as_deref(), expected);
        };
        check(3, &[1, 2], Some(&[0, 1, 0, 2, 1, 0, 1, 2, 2, 0, 2, 1]));
        check(4, &[2, 2], Some(&[0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3]));
        check(4, &[3, 1], None);
    }

    #[test]
    fn what_is_fixed_draws_its_friends_and_takes_no_room() {
        // 0 talks to what is in part 1, 3 to what is in part 0, and 1 and 2 to each other.
        let graph = Graph::new(6, [(0, 5, 9), (3, 4, 9), (1, 2, 5), (1, 0, 1)]);
        let part_of = partition(&graph, &[1, 3], &[0, 1], 100, &mut generator(0, 0));
        assert_eq!(part_of, [1, 1, 1, 0]);
    }

    #[test]
    fn one_trial_is_a_trial_and_none_is_one() {
        let ring = Graph::new(40, (0..40).map(|v| (v, (v + 1) % 40, 1)));
        for trials in [0, 1] {
            let part_of = partition(&ring, &[13, 27], &[], trials, &mut generator(0, 0));
            assert_eq!(part_of.iter().filter(|&&part| part == 0).count(), 13);
        }
    }
}
