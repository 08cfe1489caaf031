//! Parts of given sizes, for mappers that assign processes to nodes of given sizes.
//!
//! The preprocessing and the cuts of J. Wu, X. Xiong, Z. Lan ("Hierarchical task mapping for parallel
//! applications on supercomputers", J. Supercomput. 71, 2015, sections 3.1 and 4): a multilevel partitioner
//! makes parts of about the right sizes; then vertices move out of parts that are too large, at each step the vertex
//! that adds least to the cut ([`super::correct`]). The recursion is our own: the list of sizes is split into two
//! halves of about the same sum, and the graph is bisected accordingly. Graphs with few vertices are bisected by
//! exchanges (`small`), with either partitioner.

use std::borrow::Cow;
use std::ops::Range;
use std::str::FromStr;

use equipoise_model::graph::Graph;
use rayon::prelude::*;

use super::bisection::bisect_within;
use super::correct::correct;
use super::exchange::exchange;
use super::{metis, small};
use crate::strategy::StrategyError;

/// The bisection algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioner {
    /// METIS, corrected.
    Metis,
    /// The multilevel bisection of `PoiseLB`, whose sides have exact sizes; slower.
    Poise,
}

impl FromStr for Partitioner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "metis" => Ok(Partitioner::Metis),
            "poise" => Ok(Partitioner::Poise),
            _ => Err("expected `metis` or `poise`".into()),
        }
    }
}

/// The part of every vertex. Part `i` weighs at most `rooms[i]`, as far as the weights allow, and exactly `rooms[i]` if
/// all weights are 1 and the rooms sum to the number of vertices. Parts of different sizes are tried in several orders.
///
/// # Errors
/// When the partitioner fails.
///
/// # Panics
/// When the numbers of weights and vertices differ, or there are vertices but no rooms.
pub fn partition(
    graph: &Graph,
    weights: &[u32],
    rooms: &[u64],
    partitioner: Partitioner,
    seed: u64,
) -> Result<Vec<u32>, StrategyError> {
    assert_eq!(weights.len(), graph.vertices(), "every vertex has a weight");
    assert!(!rooms.is_empty() || weights.is_empty(), "vertices need at least one part");
    let orders = orders(rooms);
    if orders.len() == 1 {
        return partition_in_order(graph, weights, rooms, partitioner, seed);
    }
    let found = orders.into_par_iter().map(|order| {
        let ordered: Vec<u64> = order.iter().map(|&part| rooms[part as usize]).collect();
        let mut part_of = partition_in_order(graph, weights, &ordered, partitioner, seed)?;
        part_of.iter_mut().for_each(|part| *part = order[*part as usize]);
        Ok((grade(graph, weights, rooms, &part_of), part_of))
    });
    let found = found.collect::<Result<Vec<_>, StrategyError>>()?;
    // `min_by_key` returns the first of equal elements.
    Ok(found.into_iter().min_by_key(|&(grade, _)| grade).map(|(_, part_of)| part_of).unwrap_or_default())
}

/// The orders of the parts in which the list of sizes is split into halves. Parts of different sizes are also tried by their
/// sizes, ascending and descending. Halves of equal size are then exchanged: one of them may be a single part, into which the side
/// that exchanges more inside belongs. No two orders have the same list of sizes, because it decides the parts.
fn orders(rooms: &[u64]) -> Vec<Vec<u32>> {
    let given: Vec<u32> = (0..rooms.len() as u32).collect();
    if rooms.len() < 3 {
        return vec![given];
    }
    let mut descending = given.clone();
    descending.sort_by_key(|&part| std::cmp::Reverse(rooms[part as usize]));
    let ascending: Vec<u32> = descending.iter().rev().copied().collect();
    let is_other =
        |order: &Vec<u32>| order.iter().zip(rooms).any(|(&part, &room)| rooms[part as usize] != room);
    let others = [descending, ascending].into_iter().filter(is_other);
    std::iter::once(given).chain(others).collect()
}

/// The weight that exceeds the sizes, then the weight of the edges between parts.
fn grade(graph: &Graph, weights: &[u32], rooms: &[u64], part_of: &[u32]) -> (u64, u128) {
    let mut loads = vec![0; rooms.len()];
    part_of.iter().zip(weights).for_each(|(&part, &weight)| loads[part as usize] += u64::from(weight));
    let excess = loads.iter().zip(rooms).map(|(&load, &room): (&u64, _)| load.saturating_sub(room)).sum();
    let between = graph.pairs().filter(|&(a, b, _)| part_of[a as usize] != part_of[b as usize]);
    (excess, between.map(|(_, _, weight)| u128::from(weight)).sum())
}

/// The part of every vertex by recursion: the list of sizes is split into two halves, and the graph accordingly.
fn partition_in_order(
    graph: &Graph,
    weights: &[u32],
    rooms: &[u64],
    partitioner: Partitioner,
    seed: u64,
) -> Result<Vec<u32>, StrategyError> {
    let mut part_of = vec![0; weights.len()];
    let vertices: Vec<u32> = (0..weights.len() as u32).collect();
    let whole = Piece {
        graph: is_divided(&vertices, &(0..rooms.len()), weights, rooms).then_some(Cow::Borrowed(graph)),
        vertices,
        parts: 0..rooms.len(),
    };
    let mut pieces = vec![whole];
    while !pieces.is_empty() {
        // Pieces that need no bisection are assigned first; the others are bisected in parallel.
        let (divided, whole): (Vec<Piece<'_>>, Vec<Piece<'_>>) =
            pieces.into_iter().partition(|piece| piece.graph.is_some());
        for Piece { vertices, parts, .. } in whole {
            let last = parts.len().saturating_sub(1);
            vertices
                .iter()
                .zip(0..)
                .for_each(|(&v, at)| part_of[v as usize] = (parts.start + last.min(at)) as u32);
        }
        let cut = divided.into_par_iter().map(|piece| piece.cut(weights, rooms, partitioner, seed));
        pieces = cut.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    }
    Ok(part_of)
}

/// Vertices and the parts they are divided among.
struct Piece<'a> {
    /// The graph of the vertices; `None` if they need no further bisection.
    graph: Option<Cow<'a, Graph>>,
    vertices: Vec<u32>,
    parts: Range<usize>,
}

/// Whether the vertices must be bisected further. Otherwise they are assigned in order: all to the only part, or one to
/// each part of size 1, where any order is equally good.
fn is_divided(vertices: &[u32], parts: &Range<usize>, weights: &[u32], rooms: &[u64]) -> bool {
    let is_one = |&v: &u32| weights[v as usize] == 1;
    parts.len() > 1
        && !vertices.is_empty()
        && (vertices.len() != parts.len()
            || rooms[parts.clone()].iter().any(|&room| room != 1)
            || !vertices.iter().all(is_one))
}

impl Piece<'_> {
    /// Bisects the piece.
    fn cut(
        self,
        weights: &[u32],
        rooms: &[u64],
        partitioner: Partitioner,
        seed: u64,
    ) -> Result<Vec<Piece<'static>>, StrategyError> {
        let Piece { graph: Some(graph), vertices, parts } = self else { return Ok(Vec::new()) };
        let inside: Vec<u32> = vertices.iter().map(|&v| weights[v as usize]).collect();
        let half = parts.start + middle(&rooms[parts.clone()]);
        let sides = [parts.start..half, half..parts.end];
        let capacities = sides.clone().map(|side| rooms[side].iter().sum());
        let side_of = bisect(&graph, &inside, capacities, partitioner, seed)?;
        let mut positions = [Vec::new(), Vec::new()];
        for (&side, position) in side_of.iter().zip(0u32..) {
            positions[side as usize].push(position);
        }
        let members = positions
            .each_ref()
            .map(|side| side.iter().map(|&at| vertices[at as usize]).collect::<Vec<u32>>());
        let divided = [0, 1].map(|side| is_divided(&members[side], &sides[side], weights, rooms));
        // Graphs of pieces that need no further bisection are not built.
        let kept = [0, 1].map(|side| if divided[side] { positions[side].as_slice() } else { &[] });
        let pieces = graph.split(&kept).into_iter().zip(divided).zip(members).zip(sides);
        let pieces = pieces.map(|(((graph, is_divided), vertices), parts)| Piece {
            graph: is_divided.then_some(Cow::Owned(graph)),
            vertices,
            parts,
        });
        Ok(pieces.collect())
    }
}

/// The position that splits a list of at least two rooms into two non-empty halves with sums as equal as possible.
fn middle(rooms: &[u64]) -> usize {
    let total: u64 = rooms.iter().sum();
    let mut sums = rooms.iter().scan(0, |sum, &room| {
        *sum += room;
        Some(*sum)
    });
    let half = sums.position(|sum| 2 * sum >= total).unwrap_or(0);
    let before: u64 = rooms[..half].iter().sum();
    let is_closer_before = total - 2 * before.min(total / 2) <= 2 * (before + rooms[half]) - total;
    (half + usize::from(!is_closer_before)).clamp(1, rooms.len() - 1)
}

/// The side, 0 or 1, of every vertex. Side `i` weighs at most `capacities[i]`, as far as the weights allow.
///
/// # Errors
/// When the partitioner fails.
pub(crate) fn bisect(
    graph: &Graph,
    weights: &[u32],
    capacities: [u64; 2],
    partitioner: Partitioner,
    seed: u64,
) -> Result<Vec<u32>, StrategyError> {
    let is_exact = capacities[0] + capacities[1] == graph.vertices() as u64;
    if graph.vertices() <= small::MAX_VERTICES && is_exact && weights.iter().all(|&weight| weight == 1) {
        return Ok(small::bisect(graph, capacities[0] as usize));
    }
    let mut side_of = match partitioner {
        Partitioner::Metis => metis::bisect(graph, weights, capacities, seed)?,
        Partitioner::Poise => {
            let sides = bisect_within(graph, weights, limited_capacities(weights, capacities), seed);
            sides.into_iter().map(u32::from).collect()
        }
    };
    correct(graph, weights, &capacities, &mut side_of);
    exchange(graph, weights, &capacities, &mut side_of);
    Ok(side_of)
}

/// Capacities limited to the proportional share of the weight plus one vertex. Surplus capacity is left to later
/// bisections, which need room for whole vertices. METIS also divides the weight in proportion.
fn limited_capacities(weights: &[u32], capacities: [u64; 2]) -> [u64; 2] {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let heaviest = weights.iter().max().map_or(0, |&weight| u64::from(weight));
    let all = u128::from(capacities[0]) + u128::from(capacities[1]);
    capacities.map(|capacity| {
        let share = (u128::from(total) * u128::from(capacity)).checked_div(all).unwrap_or(0) as u64;
        capacity.min(share + heaviest)
    })
}

#[cfg(test)]
mod tests {
    use equipoise_model::graph::load;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_split_into_equal_sums() {
        let check = |rooms: &[u64], expected: usize| assert_eq!(middle(rooms), expected, "{rooms:?}");
        check(&[1, 1], 1);
        check(&[1, 1, 1], 1);
        check(&[4, 4, 4, 4], 2);
        check(&[9, 1, 1], 1);
        check(&[1, 1, 9], 2);
        check(&[0, 0], 1);
        check(&[1, 2, 3, 4, 5], 3);
    }

    #[test]
    fn surplus_capacity_is_left_to_later_bisections() {
        assert_eq!(limited_capacities(&[10; 100], [515, 515]), [510, 510]);
        assert_eq!(limited_capacities(&[10; 100], [250, 780]), [250, 767]);
        assert_eq!(limited_capacities(&[1; 10], [4, 6]), [4, 6]);
        assert_eq!(limited_capacities(&[], [0, 0]), [0, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn parts_have_exactly_their_sizes(
            sizes in prop::collection::vec(0u64..9, 1..12),
            edges in prop::collection::vec((0u32..40, 0u32..40, 1u64..50), 0..120),
            seed in 0u64..4,
            partitioner in prop::sample::select(vec![Partitioner::Metis, Partitioner::Poise]),
        ) {
            let vertices = sizes.iter().sum::<u64>() as usize;
            let inside = |v: u32| (v as usize) < vertices;
            let edges = edges.into_iter().filter(|&(a, b, _)| a != b && inside(a) && inside(b));
            let graph = Graph::new(vertices, edges);
            let part_of = partition(&graph, &vec![1; vertices], &sizes, partitioner, seed).expect("METIS serves this");
            let mut found = vec![0; sizes.len()];
            part_of.iter().for_each(|&part| found[part as usize] += 1);
            prop_assert_eq!(found, sizes);
        }
    }

    #[test]
    fn clusters_are_parts_of_their_sizes_in_any_order() {
        for sizes in [[4, 2, 2], [2, 4, 2], [2, 2, 4], [6, 3, 3], [3, 9, 6], [1, 4, 5]] {
            let vertices: u32 = sizes.iter().sum();
            // Cluster 2 has the first vertices.
            let cluster = |v: u32| if v < sizes[2] { 2 } else { usize::from(v >= sizes[2] + sizes[0]) };
            let pairs = (0..vertices).flat_map(|b| (0..b).map(move |a| (a, b)));
            let edges = pairs.map(|(a, b)| (a, b, if cluster(a) == cluster(b) { 10 } else { 1 }));
            let graph = Graph::new(vertices as usize, edges);
            let rooms = sizes.map(u64::from);
            let weights = vec![1; vertices as usize];
            for partitioner in [Partitioner::Metis, Partitioner::Poise] {
                let part_of = partition(&graph, &weights, &rooms, partitioner, 0).expect("METIS serves this");
                let clusters: Vec<usize> = (0..vertices).map(cluster).collect();
                let cut = |part_of: &dyn Fn(usize) -> usize| {
                    let crosses = |&(a, b, _): &(u32, u32, u64)| part_of(a as usize) != part_of(b as usize);
                    graph.pairs().filter(crosses).map(|(_, _, weight)| weight).sum::<u64>()
                };
                assert_eq!(cut(&|v| part_of[v] as usize), cut(&|v| clusters[v]), "{sizes:?}: {part_of:?}");
            }
        }
    }

    #[test]
    fn orders_have_different_sizes() {
        for (rooms, expected) in
            [(vec![2, 2, 2], 1), (vec![2, 1], 1), (vec![3, 2, 2], 2), (vec![2, 2, 3], 2), (vec![2, 3, 2], 3)]
        {
            let orders = orders(&rooms);
            let mut sizes: Vec<Vec<u64>> =
                orders.iter().map(|order| order.iter().map(|&part| rooms[part as usize]).collect()).collect();
            sizes.sort_unstable();
            sizes.dedup();
            assert_eq!((orders.len(), sizes.len()), (expected, expected), "{rooms:?}");
        }
    }

    #[test]
    fn a_grid_is_partitioned_along_its_lines() {
        let mesh = Graph::of(&load("mesh:16x16").expect("a generator"));
        let part_of =
            partition(&mesh, &[1; 256], &[64; 4], Partitioner::Metis, 0).expect("METIS serves this");
        let crosses = |&(a, b, _): &(u32, u32, u64)| part_of[a as usize] != part_of[b as usize];
        let cut = mesh.pairs().filter(crosses).count();
        assert!(cut <= 40, "{cut} edges cut; 32 is optimal");
    }
}
