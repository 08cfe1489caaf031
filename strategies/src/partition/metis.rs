//! METIS: multilevel partitioning with a small cut.
//!
//! G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
//! SIAM J. Sci. Comput. 20(1), 1998 (recursive bisection), and "Multilevel k-way partitioning scheme for
//! irregular graphs", J. Parallel Distrib. Comput. 48, 1998. METIS itself is the C library, through the crate `metis`.
//! METIS uses the C library's `rand`, whose state is global. Therefore only one call runs at a time, from seeding to
//! return, and the same seed gives the same partition with the same C library. With another C library the partitions
//! differ, with the same quality. Foreign code that calls `rand` on another thread during a call changes the result.
//!
//! METIS prints to the standard output if a bisection leaves a side with fewer vertices than parts, and the imbalance
//! of its bisections accumulates over the levels. Therefore the recursion is our own: METIS bisects, the bisection is
//! corrected ([`super::correct`]), and a vertex as heavy as an average part gets its own part. METIS computes in 32 bits,
//! so large byte volumes are scaled down.

use metis::option::{Seed, UFactor};
use parking_lot::Mutex;

use equipoise_model::graph::Graph;

use super::correct::correct;
use super::exchange::exchange;
use super::{capacity, greedy};
use crate::strategy::StrategyError;

/// The algorithm of METIS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Recursive bisection: better, and faster for many parts.
    Recursive,
    /// K-way partitioning: faster for few parts. Falls back to [`Method::Recursive`] if parts have few vertices or some
    /// vertices are heavy.
    Kway,
}

/// Serializes the calls, because the random number generator of METIS is global.
static METIS: Mutex<()> = Mutex::new(());

/// Maximum sum of all edge weights. Twice this sum fits the 32-bit integers of METIS.
const TOTAL_EDGE_WEIGHT: u64 = 1 << 29;

/// Partitions `graph` into `parts` parts that weigh at most (1 + `imbalance`) times the average each, where
/// the weights of the vertices allow. Some parts may be empty.
///
/// Each vertex gets its own part if there are enough parts. Without edges, the partition depends on weights only.
///
/// # Errors
/// When METIS fails, or the graph has more than 2^31 vertices or twice as many edges.
///
/// # Panics
/// When there are vertices but no parts, or the numbers of weights and vertices differ.
pub fn partition(
    graph: &Graph,
    weights: &[u32],
    parts: usize,
    imbalance: f64,
    method: Method,
    seed: u64,
) -> Result<Vec<u32>, StrategyError> {
    assert_eq!(weights.len(), graph.vertices(), "every vertex has a weight");
    assert!(parts > 0 || weights.is_empty(), "vertices need at least one part");
    let limit = capacity(weights, parts.max(1), imbalance);
    let average = limit as f64 / (1.0 + imbalance);
    let heaviest = weights.iter().max().map_or(0.0, |&weight| f64::from(weight));
    // With at least four average vertices per part, no bisection inside METIS leaves a side with too few vertices.
    let is_fine = graph.vertices() >= 8 * parts && 4.0 * heaviest <= average;
    let mut part_of = if method == Method::Kway && is_fine && parts > 1 && graph.edges() > 0 {
        call(graph, weights, &vec![1.0 / parts as f32; parts], imbalance, method, seed)
    } else {
        recurse(graph, weights, parts, limit, imbalance, seed)
    }
    .map_err(|error| StrategyError::Data(format!("METIS cannot partition these objects: {error}")))?;
    let capacities = vec![limit; parts];
    correct(graph, weights, &capacities, &mut part_of);
    exchange(graph, weights, &capacities, &mut part_of);
    Ok(part_of)
}

/// Bisects `graph` into sides 0 and 1 with weights about proportional to `shares`.
///
/// # Errors
/// As [`partition`].
///
/// # Panics
/// When the numbers of weights and vertices differ.
pub(crate) fn bisect(
    graph: &Graph,
    weights: &[u32],
    shares: [u64; 2],
    seed: u64,
) -> Result<Vec<u32>, StrategyError> {
    assert_eq!(weights.len(), graph.vertices(), "every vertex has a weight");
    let total = shares[0] + shares[1];
    // METIS rejects empty sides, and prints a message if a side becomes empty.
    if shares.contains(&0)
        || graph.vertices() < 4
        || graph.edges() == 0
        || weights.iter().all(|&weight| weight == 0)
    {
        return Ok(in_order(weights, shares));
    }
    let shares = shares.map(|share| share as f32 / total as f32);
    call(graph, weights, &shares, 0.0, Method::Recursive, seed)
        .map_err(|error| StrategyError::Data(format!("METIS cannot bisect these objects: {error}")))
}

/// Fills side 0 with the first vertices that fit; the others are on side 1.
fn in_order(weights: &[u32], shares: [u64; 2]) -> Vec<u32> {
    let mut left = shares[0];
    let side = |&weight: &u32| match left.checked_sub(u64::from(weight)) {
        Some(rest) => {
            left = rest;
            0
        }
        None => 1,
    };
    weights.iter().map(side).collect()
}

type Failure = Box<dyn std::error::Error>;

/// A part of the graph to be partitioned into the parts `first..first + parts`.
struct Piece {
    graph: Graph,
    /// Its vertices, as numbers in the whole graph, ascending.
    vertices: Vec<u32>,
    weights: Vec<u32>,
    first: u32,
    parts: usize,
}

/// Recursive bisection into `parts` parts, each of weight at most `limit`.
fn recurse(
    graph: &Graph,
    weights: &[u32],
    parts: usize,
    limit: u64,
    imbalance: f64,
    seed: u64,
) -> Result<Vec<u32>, Failure> {
    // The imbalances of successive levels multiply.
    let levels = (parts.max(2) as f64).log2().ceil();
    let allowed = (1.0 + imbalance).powf(1.0 / levels) - 1.0;
    let mut part_of = vec![0; weights.len()];
    let vertices = (0..weights.len() as u32).collect();
    let mut pieces =
        vec![Piece { graph: graph.clone(), vertices, weights: weights.to_vec(), first: 0, parts }];
    while let Some(piece) = pieces.pop() {
        let Piece { graph, vertices, weights, mut first, parts } = split_off_heavy(piece, &mut part_of);
        let is_weightless = weights.iter().all(|&weight| weight == 0);
        if vertices.len() <= parts || parts <= 1 || is_weightless {
            for (&v, part) in vertices.iter().zip(0..) {
                part_of[v as usize] = first + if parts <= 1 || is_weightless { 0 } else { part };
            }
            continue;
        }
        if graph.edges() == 0 {
            for (&v, part) in vertices.iter().zip(greedy::partition(&weights, parts)) {
                part_of[v as usize] = first + part;
            }
            continue;
        }
        let sizes = [parts / 2, parts - parts / 2];
        let shares = sizes.map(|size| size as f32 / parts as f32);
        let mut side_of = call(&graph, &weights, &shares, allowed, Method::Recursive, seed)?;
        correct(&graph, &weights, &sizes.map(|size| size as u64 * limit), &mut side_of);
        for (side, size) in sizes.into_iter().enumerate() {
            let inside: Vec<u32> =
                (0..side_of.len() as u32).filter(|&v| side_of[v as usize] == side as u32).collect();
            pieces.push(Piece {
                graph: graph.induced(&inside),
                vertices: inside.iter().map(|&v| vertices[v as usize]).collect(),
                weights: inside.iter().map(|&v| weights[v as usize]).collect(),
                first,
                parts: size,
            });
            first += size as u32;
        }
    }
    Ok(part_of)
}

/// Gives each vertex as heavy as the average part of the piece its own part; returns the remaining piece.
fn split_off_heavy(mut piece: Piece, part_of: &mut [u32]) -> Piece {
    let mut total: u64 = piece.weights.iter().map(|&weight| u64::from(weight)).sum();
    let mut order: Vec<usize> = (0..piece.vertices.len()).collect();
    order.sort_by_key(|&v| std::cmp::Reverse(piece.weights[v]));
    let mut is_heavy = vec![false; order.len()];
    let mut has_heavy = false;
    for v in order {
        let weight = u64::from(piece.weights[v]);
        if piece.parts <= 1 || weight == 0 || weight * (piece.parts as u64) < total {
            break;
        }
        (is_heavy[v], has_heavy) = (true, true);
        part_of[piece.vertices[v] as usize] = piece.first;
        piece.first += 1;
        piece.parts -= 1;
        total -= weight;
    }
    if has_heavy {
        let rest: Vec<u32> = (0..is_heavy.len() as u32).filter(|&v| !is_heavy[v as usize]).collect();
        piece.graph = piece.graph.induced(&rest);
        piece.vertices = rest.iter().map(|&v| piece.vertices[v as usize]).collect();
        piece.weights = rest.iter().map(|&v| piece.weights[v as usize]).collect();
    }
    piece
}

/// Calls METIS once; `shares` are the relative weights of the parts.
fn call(
    graph: &Graph,
    weights: &[u32],
    shares: &[f32],
    imbalance: f64,
    method: Method,
    seed: u64,
) -> Result<Vec<u32>, Failure> {
    let (offsets, targets, bytes) = graph.rows();
    let rows: Vec<i32> = offsets.iter().map(|&offset| i32::try_from(offset)).collect::<Result<_, _>>()?;
    let targets: Vec<i32> = targets.iter().map(|&target| i32::try_from(target)).collect::<Result<_, _>>()?;
    let weights: Vec<i32> = weights.iter().map(|&weight| i32::try_from(weight)).collect::<Result<_, _>>()?;
    // `bytes` contains each edge twice.
    let total = bytes.iter().map(|&bytes| u128::from(bytes)).sum::<u128>() / 2;
    let scale = |bytes: u64| {
        if total <= u128::from(TOTAL_EDGE_WEIGHT) {
            bytes as i32
        } else {
            (u128::from(bytes) * u128::from(TOTAL_EDGE_WEIGHT) / total).max(1) as i32
        }
    };
    let edge_weights: Vec<i32> = bytes.iter().map(|&bytes| scale(bytes)).collect();
    let mut part_of = vec![0; weights.len()];
    let problem = metis::Graph::new(1, i32::try_from(shares.len())?, &rows, &targets)?
        .set_vwgt(&weights)
        .set_adjwgt(&edge_weights)
        .set_tpwgts(shares)
        .set_option(UFactor(((imbalance.min(1.0) * 1000.0) as i32).max(1)))
        .set_option(Seed(metis_seed(seed)));
    {
        let _global = METIS.lock();
        match method {
            Method::Recursive => problem.part_recursive(&mut part_of)?,
            Method::Kway => problem.part_kway(&mut part_of)?,
        };
    }
    Ok(part_of.into_iter().map(|part| part as u32).collect())
}

/// The METIS seed for `seed`.
fn metis_seed(seed: u64) -> i32 {
    match (seed % i32::MAX as u64) as i32 {
        // METIS passes its seed to `srand`, for which 0 and 1 give the same sequence.
        1 => i32::MAX,
        number => number,
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::graph::load;

    use super::*;

    fn cut(graph: &Graph, part_of: &[u32]) -> u64 {
        let crosses = |&(a, b, _): &(u32, u32, u64)| part_of[a as usize] != part_of[b as usize];
        graph.pairs().filter(crosses).map(|(.., weight)| weight).sum()
    }

    fn graph(spec: &str) -> Graph {
        Graph::of(&load(spec).expect("a generator"))
    }

    /// Partitions, checks that no part is above the limit, and returns the cut.
    #[track_caller]
    fn check(graph: &Graph, weights: &[u32], parts: usize, imbalance: f64, method: Method) -> u64 {
        let part_of = partition(graph, weights, parts, imbalance, method, 1).expect("METIS serves this");
        assert_eq!(partition(graph, weights, parts, imbalance, method, 1), Ok(part_of.clone()), "same seed");
        let mut loads = vec![0; parts];
        part_of.iter().zip(weights).for_each(|(&part, &weight)| loads[part as usize] += u64::from(weight));
        let limit = capacity(weights, parts, imbalance);
        assert!(loads.iter().all(|&load| load <= limit), "{method:?}: {loads:?} above {limit}");
        cut(graph, &part_of)
    }

    #[test]
    fn a_grid_is_partitioned_into_compact_parts_of_equal_size() {
        let mesh = graph("mesh:32x32");
        for method in [Method::Recursive, Method::Kway] {
            // An ideal partition into 16 squares of 8x8 cuts 2 * 3 * 32 edges of weight 2.
            let cut = check(&mesh, &[1; 1024], 16, 0.0, method);
            assert!(cut <= 384 * 13 / 10, "{method:?}: {cut}");
            check(&mesh, &[1; 1024], 100, 0.05, method);
            check(&mesh, &[1; 1024], 1000, 0.0, method);
        }
    }

    #[test]
    fn different_seeds_give_different_partitions() {
        let graph = graph("random:n=400,degree=5,seed=2");
        let run =
            |seed| partition(&graph, &[1; 400], 8, 0.03, Method::Recursive, seed).expect("it serves this");
        let answers: Vec<Vec<u32>> = (0..4).map(run).collect();
        for (a, b) in [(0, 1), (0, 2), (1, 2), (1, 3)] {
            assert_ne!(answers[a], answers[b], "{a} {b}");
        }
    }

    #[test]
    fn unequal_weights_are_balanced() {
        let weights: Vec<u32> = (0..1024).map(|v| 1000 + 37 * v).collect();
        for method in [Method::Recursive, Method::Kway] {
            check(&graph("mesh:32x32"), &weights, 16, 0.02, method);
        }
    }

    #[test]
    fn volumes_beyond_32_bits_are_scaled() {
        let far = graph("mesh:16x16,bytes=100000000000");
        let near = graph("mesh:16x16");
        let weights = [1; 256];
        let run =
            |graph| partition(graph, &weights, 8, 0.0, Method::Recursive, 3).expect("METIS serves this");
        // Light edges must not be rounded to 0 next to a very heavy edge.
        let mixed = Graph::new(256, near.pairs().chain([(0, 1, u64::MAX / 2)]));
        for part_of in [run(&far), run(&mixed)] {
            assert!(cut(&near, &part_of) <= 2 * 100, "{}", cut(&near, &part_of));
        }
    }

    #[test]
    fn degenerate_graphs_are_partitioned_without_metis() {
        let run =
            |graph: &Graph, weights: &[u32], parts| partition(graph, weights, parts, 0.0, Method::Kway, 0);
        assert_eq!(run(&Graph::new(0, []), &[], 0), Ok(vec![]));
        assert_eq!(run(&Graph::new(3, [(0, 1, 1)]), &[1; 3], 5), Ok(vec![0, 1, 2]));
        assert_eq!(run(&Graph::new(3, [(0, 1, 1)]), &[1; 3], 1), Ok(vec![0, 0, 0]));
        assert_eq!(run(&Graph::new(4, []), &[1; 4], 2), Ok(vec![0, 1, 0, 1]));
    }

    #[test]
    fn concurrent_calls_give_the_same_partitions() {
        let mesh = graph("mesh:20x20");
        let run = |seed| partition(&mesh, &[1; 400], 7, 0.0, Method::Recursive, seed);
        let alone: Vec<_> = (0..8).map(run).collect();
        let run = &run;
        let together = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || run(seed))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        assert_eq!(alone, together);
    }
}
