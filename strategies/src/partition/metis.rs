//! METIS: multilevel partitioning that cuts few bytes.
//!
//! G. Karypis, V. Kumar, "A fast and high quality multilevel scheme for partitioning irregular graphs",
//! SIAM J. Sci. Comput. 20(1), 1998 (recursive bisection), and "Multilevel k-way partitioning scheme for
//! irregular graphs", J. Parallel Distrib. Comput. 48, 1998. METIS itself is the C library, through the
//! crate `metis`. It keeps its random numbers in global state, so one call runs at a time, from seeding
//! to return, and then the same seed gives the same partition.
//!
//! METIS counts in 32 bits: byte volumes are scaled down when they do not fit. What it calls balanced
//! may not be, so its answer is corrected ([`super::correct`], [`super::exchange`]).

use metis::option::{Seed, UFactor};
use parking_lot::Mutex;

use super::correct::correct;
use super::exchange::exchange;
use super::{capacity, greedy};
use crate::graph::Graph;
use crate::strategy::StrategyError;

/// How METIS cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// In two, and each half in two: better and faster when there are many parts.
    Recursive,
    /// Into all parts at once: faster when there are few.
    Kway,
}

/// METIS's random numbers are global: whoever holds this lock owns them.
static METIS: Mutex<()> = Mutex::new(());

/// The weight all edges have together at most; twice that fits METIS's integers.
const TOTAL_EDGE_WEIGHT: u64 = 1 << 29;

/// Cuts `graph` into `parts` parts that weigh at most (1 + `imbalance`) times the average each, where
/// the weights of its vertices allow.
///
/// A vertex is its own part when there are enough parts; without edges only weights count.
///
/// # Errors
/// When METIS fails, or the graph has more than 2^31 rows or entries.
///
/// # Panics
/// When there are vertices and no parts, or another number of weights than vertices.
pub fn partition(
    graph: &Graph,
    weights: &[u32],
    parts: usize,
    imbalance: f64,
    method: Method,
    seed: u64,
) -> Result<Vec<u32>, StrategyError> {
    assert_eq!(weights.len(), graph.vertices(), "every vertex has a weight");
    if parts >= graph.vertices() {
        return Ok((0..graph.vertices() as u32).collect());
    }
    if parts == 1 {
        return Ok(vec![0; graph.vertices()]);
    }
    if graph.edges() == 0 {
        return Ok(greedy::partition(weights, parts));
    }
    let mut part_of = call(graph, weights, parts, imbalance, method, seed)
        .map_err(|error| StrategyError(format!("METIS cannot partition these objects: {error}")))?;
    let capacities = vec![capacity(weights, parts, imbalance); parts];
    correct(graph, weights, &capacities, &mut part_of);
    exchange(graph, weights, &capacities, &mut part_of);
    Ok(part_of)
}

fn call(
    graph: &Graph,
    weights: &[u32],
    parts: usize,
    imbalance: f64,
    method: Method,
    seed: u64,
) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    let (offsets, targets, bytes) = graph.rows();
    let rows: Vec<i32> = offsets.iter().map(|&offset| i32::try_from(offset)).collect::<Result<_, _>>()?;
    let targets: Vec<i32> = targets.iter().map(|&target| i32::try_from(target)).collect::<Result<_, _>>()?;
    let weights: Vec<i32> = weights.iter().map(|&weight| i32::try_from(weight)).collect::<Result<_, _>>()?;
    let parts = i32::try_from(parts)?;
    // Each edge stands in `bytes` twice.
    let total = bytes.iter().map(|&bytes| u128::from(bytes)).sum::<u128>() / 2;
    let scale = |bytes: u64| {
        if total <= u128::from(TOTAL_EDGE_WEIGHT) {
            bytes as i32
        } else {
            (u128::from(bytes) * u128::from(TOTAL_EDGE_WEIGHT) / total).max(1) as i32
        }
    };
    let edge_weights: Vec<i32> = bytes.iter().map(|&bytes| scale(bytes)).collect();
    // The imbalance of bisections multiplies over the levels.
    let levels = match method {
        Method::Recursive => f64::from(parts).log2().ceil(),
        Method::Kway => 1.0,
    };
    let allowed = (1.0 + imbalance.min(1.0)).powf(1.0 / levels) - 1.0;
    let mut part_of = vec![0; weights.len()];
    let problem = metis::Graph::new(1, parts, &rows, &targets)?
        .set_vwgt(&weights)
        .set_adjwgt(&edge_weights)
        .set_option(UFactor(((allowed * 1000.0) as i32).max(1)))
        .set_option(Seed((seed % i32::MAX as u64) as i32));
    {
        let _global = METIS.lock();
        match method {
            Method::Recursive => problem.part_recursive(&mut part_of)?,
            Method::Kway => problem.part_kway(&mut part_of)?,
        };
    }
    Ok(part_of.into_iter().map(|part| part as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::load;

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
    fn a_grid_is_cut_into_compact_parts_of_equal_size() {
        let mesh = graph("mesh:32x32");
        for method in [Method::Recursive, Method::Kway] {
            // 16 squares of 8x8 cut 2 * 3 * 32 edges of weight 2.
            let cut = check(&mesh, &[1; 1024], 16, 0.0, method);
            assert!(cut <= 384 * 13 / 10, "{method:?}: {cut}");
            check(&mesh, &[1; 1024], 100, 0.05, method);
            check(&mesh, &[1; 1024], 1000, 0.0, method);
        }
    }

    #[test]
    fn weights_count() {
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
        // The cheap edges of a heavy graph must not vanish either.
        let mixed = Graph::new(256, near.pairs().chain([(0, 1, u64::MAX / 2)]));
        for part_of in [run(&far), run(&mixed)] {
            assert!(cut(&near, &part_of) <= 2 * 100, "{}", cut(&near, &part_of));
        }
    }

    #[test]
    fn degenerate_graphs_need_no_metis() {
        let run =
            |graph: &Graph, weights: &[u32], parts| partition(graph, weights, parts, 0.0, Method::Kway, 0);
        assert_eq!(run(&Graph::new(0, []), &[], 0), Ok(vec![]));
        assert_eq!(run(&Graph::new(3, [(0, 1, 1)]), &[1; 3], 5), Ok(vec![0, 1, 2]));
        assert_eq!(run(&Graph::new(3, [(0, 1, 1)]), &[1; 3], 1), Ok(vec![0, 0, 0]));
        assert_eq!(run(&Graph::new(4, []), &[1; 4], 2), Ok(vec![0, 1, 0, 1]));
    }

    #[test]
    fn threads_do_not_disturb_each_other() {
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
