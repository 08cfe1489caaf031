//! The start for objects whose numbers follow their communication: runs of objects along a path through the machine.
//!
//! Rings, lines and grids are numbered such that neighbors have close numbers. If each object communicates with a few
//! objects before and after it, runs of objects on successive PEs are optimal. Bisection does not find this placement:
//! it cuts a ring into two arcs, and later cuts have to bend both arcs. On grids the path is the reflected Gray code
//! (M. Cohn, "Affine m-ary Gray codes", 1963): each of its steps crosses one link, and the path is closed on tori of
//! even sizes. On all other machines the path follows the blocks in the order in which they were cut.

use equipoise_model::Topology;
use equipoise_model::topology::Shape;

use crate::poise::problem::Problem;

/// Runs of objects along the path; the load of each run is proportional to the capacity of its block of the last layer.
pub(crate) fn start(problem: &Problem, topology: &dyn Topology) -> Vec<u32> {
    let path = path(problem, topology);
    let room: i64 = problem.capacity.iter().sum();
    let part = room as f64 / problem.graph.total_load().max(1) as f64;
    let mut block_of = Vec::with_capacity(problem.graph.vertices());
    let (mut place, mut end, mut before) = (0, problem.capacity[path[0] as usize], 0);
    for &load in &problem.graph.loads[..problem.movable] {
        // An object belongs to the block that contains the middle of its load.
        let middle = (before as f64 + load as f64 / 2.0) * part;
        while end as f64 <= middle && place + 1 < path.len() {
            place += 1;
            end += problem.capacity[path[place] as usize];
        }
        before += load;
        block_of.push(path[place]);
    }
    block_of.extend(&problem.anchors);
    block_of
}

/// The blocks of the last layer, in the order of the path.
fn path(problem: &Problem, topology: &dyn Topology) -> Vec<u32> {
    let order = &problem.machine.order;
    let mut path: Vec<u32> = (0..order.len() as u32).collect();
    if let Shape::Grid { sizes, nodes } = topology.shape() {
        path.sort_by_cached_key(|&block| place(&sizes, nodes[order[block as usize] as usize]));
    }
    path
}

/// The position of a grid node on the path, which traverses the lines of the first dimension in alternating directions.
fn place(sizes: &[(usize, bool)], node: u32) -> usize {
    let (mut rest, mut digits) = (node as usize, Vec::with_capacity(sizes.len()));
    for &(size, _) in sizes {
        digits.push((rest % size, size));
        rest /= size;
    }
    digits.into_iter().rev().fold(0, |place, (at, size)| {
        let is_back = place % 2 == 1;
        place * size + if is_back { size - 1 - at } else { at }
    })
}

#[cfg(test)]
mod tests {
    use equipoise_model::{graph, topology};

    use super::*;
    use crate::cost::Metrics;
    use crate::testing::assign_on;

    #[test]
    fn successive_nodes_of_the_path_are_one_link_apart() {
        for spec in ["mesh:5", "torus:4x3", "mesh:3x4x5", "torus:2x3x2x3", "hypercube:4"] {
            let machine = topology::parse(spec).expect(spec);
            let Shape::Grid { sizes, nodes } = machine.shape() else { panic!("{spec} is a grid") };
            let mut pes: Vec<usize> = (0..machine.pes()).collect();
            pes.sort_by_key(|&pe| place(&sizes, nodes[pe]));
            assert!(pes.windows(2).all(|pair| machine.distance(pair[0], pair[1]) == 1), "{spec}: {pes:?}");
        }
    }

    #[test]
    fn a_ring_is_placed_along_a_closed_path_on_a_torus() {
        let machine = topology::parse("torus:4x4x4").expect("a torus");
        let tasks = graph::load("ring:256").expect("a ring").remap(64);
        let placed = assign_on("PoiseLB:gamma=0", &tasks, "torus:4x4x4").expect("an answer").pe_of;
        let cost = Metrics::of(&tasks, &*machine, &placed).communication.expect("it was recorded");
        // One edge in four leaves its PE, over one link.
        assert_eq!(cost.hops_per_byte, 0.25);
    }
}
