//! Parts of given sizes: what a mapper needs that partitions processes for the places they go to.
//!
//! The preprocessing and the cuts of J. Wu, X. Xiong, Z. Lan ("Hierarchical task mapping for parallel
//! applications on supercomputers", J. Supercomput. 71, 2015, sections 3.1 and 4): a multilevel partitioner
//! makes parts of about the right sizes, then vertices move from parts that are too large to others, at each step
//! the one that cuts least ([`super::correct`]). The recursion is ours: the sizes are cut into two halves of
//! about the same sum, and the graph with them; a few vertices are cut by exchanges ([`super::small`]), whoever
//! cuts the rest.

use std::borrow::Cow;
use std::ops::Range;
use std::str::FromStr;

use rayon::prelude::*;

use super::correct::correct;
use super::exchange::exchange;
use super::{metis, small};
use crate::graph::Graph;
use crate::poise::tools;
use crate::strategy::StrategyError;

/// What bisects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioner {
    /// METIS, corrected.
    Metis,
    /// The multilevel bisection of `PoiseLB`, whose sides are as large as they must be; slower.
    Poise,
}

impl FromStr for Partitioner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "metis" => Ok(Partitioner::Metis),
            "poise" => Ok(Partitioner::Poise),
            _ => Err("partitioners are `metis` and `poise`".into()),
        }
    }
}

/// The part of every vertex: part `i` weighs at most `rooms[i]`, as far as the weights allow; exactly that where
/// all weigh 1 and the rooms sum to their number.
///
/// # Errors
/// When the partitioner fails.
///
/// # Panics
/// When there is another number of weights than vertices, or there are vertices and no rooms.
pub fn partition(
    graph: &Graph,
    weights: &[u32],
    rooms: &[u64],
    partitioner: Partitioner,
    seed: u64,
) -> Result<Vec<u32>, StrategyError> {
    assert_eq!(weights.len(), graph.vertices(), "every vertex has a weight");
    assert!(!rooms.is_empty() || weights.is_empty(), "vertices need at least one part");
    let mut part_of = vec![0; weights.len()];
    let vertices: Vec<u32> = (0..weights.len() as u32).collect();
    let whole = Piece {
        graph: is_divided(&vertices, &(0..rooms.len()), weights, rooms).then_some(Cow::Borrowed(graph)),
        vertices,
        parts: 0..rooms.len(),
    };
    let mut pieces = vec![whole];
    while !pieces.is_empty() {
        // What needs no cut any more is told apart first; the rest is cut in parallel.
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

/// Some vertices, which go to some of the parts.
struct Piece<'a> {
    /// What they exchange; none where they need no further cut.
    graph: Option<Cow<'a, Graph>>,
    vertices: Vec<u32>,
    parts: Range<usize>,
}

/// Whether vertices that go to some parts must be cut; else they can be dealt out as they are: to one part, or one to
/// each of as many, as any order is as good where all parts are equally far apart.
fn is_divided(vertices: &[u32], parts: &Range<usize>, weights: &[u32], rooms: &[u64]) -> bool {
    let is_one = |&v: &u32| weights[v as usize] == 1;
    parts.len() > 1
        && !vertices.is_empty()
        && (vertices.len() != parts.len()
            || rooms[parts.clone()].iter().any(|&room| room != 1)
            || !vertices.iter().all(is_one))
}

impl Piece<'_> {
    /// Its two halves.
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
        // Most graphs of the last cuts are not needed any more.
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

/// Where to cut a list of at least two rooms so that both halves are as equal as can be, and neither is empty.
fn middle(rooms: &[u64]) -> usize {
    let total: u64 = rooms.iter().sum();
    let mut sums = rooms.iter().scan(0, |sum, &room| {
        *sum += room;
        Some(*sum)
    });
    let half = sums.position(|sum| 2 * sum >= total).unwrap_or(0);
    let before: u64 = rooms[..half].iter().sum();
    let is_nearer_before = total - 2 * before.min(total / 2) <= 2 * (before + rooms[half]) - total;
    (half + usize::from(!is_nearer_before)).clamp(1, rooms.len() - 1)
}

/// The side, 0 or 1, of every vertex; side `i` weighs at most `capacities[i]`, as far as the weights allow.
///
/// # Errors
/// When the partitioner fails.
pub fn bisect(
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
            let sides = tools::bisect_within(graph, weights, even(weights, capacities), seed);
            sides.into_iter().map(u32::from).collect()
        }
    };
    correct(graph, weights, &capacities, &mut side_of);
    exchange(graph, weights, &capacities, &mut side_of);
    Ok(side_of)
}

/// Capacities with room for a vertex beyond the shares of all weight: where they have more, it is left to the cuts
/// that come after, which cannot do with less than whole vertices. METIS cuts as evenly.
fn even(weights: &[u32], capacities: [u64; 2]) -> [u64; 2] {
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
    use super::*;
    use crate::graph::load;
    use proptest::prelude::*;

    #[test]
    fn lists_are_cut_in_the_middle() {
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
    fn room_that_is_not_needed_is_left_to_later_cuts() {
        assert_eq!(even(&[10; 100], [515, 515]), [510, 510]);
        assert_eq!(even(&[10; 100], [250, 780]), [250, 767]);
        assert_eq!(even(&[1; 10], [4, 6]), [4, 6]);
        assert_eq!(even(&[], [0, 0]), [0, 0]);
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
    fn a_grid_is_cut_along_its_lines() {
        let mesh = Graph::of(&load("mesh:16x16").expect("a generator"));
        let part_of =
            partition(&mesh, &[1; 256], &[64; 4], Partitioner::Metis, 0).expect("METIS serves this");
        let crosses = |&(a, b, _): &(u32, u32, u64)| part_of[a as usize] != part_of[b as usize];
        let cut = mesh.pairs().filter(crosses).count();
        assert!(cut <= 40, "{cut} edges, and 32 are best");
    }
}
