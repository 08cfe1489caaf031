//! `fem`: the matrix of an elasticity problem on a crankshaft meshed with tetrahedra.
//!
//! Modelled on `F1` and `audikw_1` of the University of Florida Sparse Matrix Collection (T. A. Davis, Y. Hu, ACM
//! Trans. Math. Softw. 38(1), 2011), stiffness matrices of crankshafts with 78 and 82 entries per row. The domain is a
//! box of cubes with the shaft along the first dimension; the cubes of a four-throw crankshaft are kept (bearings on
//! the axis, pins off the axis on alternating sides, webs in between). Each cube is cut into six tetrahedra around its
//! diagonal (H. W. Kuhn 1960), with nodes at corners and edge midpoints. Two nodes of the same tetrahedron have a block
//! of 3 x 3 entries: three displacements each.
//!
//! Tasks are rows, three per node; nodes are ordered by position, first dimension fastest.

use super::making::{BYTES, Generator, Make, Pattern, check_size, uniform};
use crate::grid::Grid;
use crate::params::Params;

/// The generator of these matrices.
pub(super) const GENERATOR: Generator = Generator {
    name: "fem",
    form: "fem:64x16x16",
    help: "The rows of a finite-element matrix like F1 or audikw_1: displacements in a crankshaft of quadratic \
           tetrahedra, in a box of the given numbers of cubes, first along the shaft.",
    params: &[BYTES],
    item: Make::Arguments(|arguments| Ok(uniform(pattern(arguments)?, arguments)?)),
};

/// The smallest number of cubes in a dimension; fewer have no axis.
const MIN_SIDE: usize = 4;

/// The position of a node in half cubes: corners and edge midpoints.
type Place = [usize; 3];

/// The nonzero pattern: pairs of a row and a column.
pub(super) fn pattern(arguments: &mut Params) -> Result<Pattern, String> {
    let [text] = arguments.positional(["numbers of cubes such as 64x16x16"])?;
    let grid = Grid::parse(&text, false)?;
    let last: Vec<usize> = grid.coordinates(grid.pes() - 1).collect();
    let &[x, y, z] = last.as_slice() else {
        return Err("a box has 3 dimensions".into());
    };
    let cubes = [x + 1, y + 1, z + 1];
    if cubes.iter().any(|&side| side < MIN_SIDE) {
        return Err(format!("the box is {text}; every side has at least {MIN_SIDE} cubes"));
    }
    // An upper bound: a block has 9 entries, and a cube adds about 111 pairs of nodes.
    check_size(grid.pes().saturating_mul(3), grid.pes().saturating_mul(9 * 111) / 2)?;
    let places = cubes.map(|side| 2 * side + 1);
    let number = |[x, y, z]: Place| (x + places[0] * (y + places[1] * z)) as u64;
    let node_pairs = node_pairs();
    let mut pairs: Vec<(u64, u64)> = Vec::new();
    for cube in (0..grid.pes()).filter(|&cube| is_shaft(&grid, cubes, cube)) {
        let corner: Vec<usize> = grid.coordinates(cube).map(|at| 2 * at).collect();
        let at = |place: Place| number([0, 1, 2].map(|d| corner[d] + place[d]));
        pairs.extend(node_pairs.iter().map(|&(a, b)| (at(a).min(at(b)), at(a).max(at(b)))));
    }
    pairs.sort_unstable();
    pairs.dedup();
    // Every node has another node in its tetrahedron, so all nodes occur in pairs.
    let mut nodes: Vec<u64> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut row_of = vec![0; places.iter().product()];
    nodes.iter().zip(0u32..).for_each(|(&node, number)| row_of[node as usize] = 3 * number);
    let row = |node: u64| row_of[node as usize];
    check_size(3 * nodes.len(), 9 * pairs.len() + 3 * nodes.len())?;
    let block = |a: u32, b: u32| (0..9).map(move |at| (a + at % 3, b + at / 3));
    let own =
        nodes.iter().flat_map(|&node| [(0, 1), (0, 2), (1, 2)].map(|(a, b)| (row(node) + a, row(node) + b)));
    let pairs = pairs.iter().flat_map(|&(a, b)| block(row(a), row(b))).chain(own).collect();
    Ok(Pattern { vertices: 3 * nodes.len(), pairs, grid: None })
}

/// All pairs of nodes of a cube that share a tetrahedron.
fn node_pairs() -> Vec<(Place, Place)> {
    let mut pairs = Vec::new();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        // A path from a corner to the opposite corner, one dimension after the other.
        let mut corners = [[0; 3]; 4];
        for (step, dimension) in order.into_iter().enumerate() {
            corners[step + 1] = corners[step];
            corners[step + 1][dimension] = 2;
        }
        let middle = |a: Place, b: Place| [0, 1, 2].map(|d| (a[d] + b[d]) / 2);
        let mut places = Vec::new();
        for a in 0..4 {
            places.extend((a..4).map(|b| middle(corners[a], corners[b])));
        }
        for (first, a) in places.iter().enumerate() {
            pairs.extend(places[first + 1..].iter().map(|&b| (*a.min(&b), *a.max(&b))));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Whether a cube belongs to the shaft: to a bearing, a web, or a pin of one of the four throws.
fn is_shaft(grid: &Grid, cubes: [usize; 3], cube: usize) -> bool {
    const THROWS: usize = 4;
    let at: Vec<usize> = grid.coordinates(cube).collect();
    // Distances from the axis in units of half the box; position along the shaft in units of a throw.
    let from_axis = |d: usize| (2 * at[d] + 1) as f64 / cubes[d] as f64 - 1.0;
    let along = THROWS as f64 * (at[0] as f64 + 0.5) / cubes[0] as f64;
    // The pins of the two outer throws are on one side, the pins of the inner throws on the other.
    let side = if matches!(along as usize, 0 | 3) { 0.45 } else { -0.45 };
    let (center, radius) = match along.fract() {
        part if !(0.2..0.8).contains(&part) => (0.0, 0.6),
        part if (0.35..0.65).contains(&part) => (side, 0.5),
        _ => (0.0, 1.0),
    };
    from_axis(1).powi(2) + (from_axis(2) - center).powi(2) <= radius * radius
}

#[cfg(test)]
mod tests {
    use crate::graph::{Graph, load};

    fn graph(spec: &str) -> Graph {
        Graph::of(&load(spec).expect("a matrix"))
    }

    #[test]
    #[ignore = "slow"]
    fn rows_have_about_as_many_entries_as_in_the_collection() {
        // A solid has 86.25 entries per row; the surface reduces this.
        let shaft = graph("fem:48x16x16");
        let per_row = 1.0 + 2.0 * shaft.edges() as f64 / shaft.vertices() as f64;
        assert!((72.0..84.0).contains(&per_row), "{per_row}");
        let most = (0..shaft.vertices()).map(|row| shaft.degree(row)).max();
        // An inner corner: 64 neighboring nodes with three displacements each, and the two others of the node itself.
        assert_eq!(most, Some(3 * 64 + 2));
    }

    #[test]
    fn displacements_of_a_node_have_the_same_neighbors_and_the_shaft_is_connected() {
        let shaft = graph("fem:16x6x6");
        let near = |row: usize| {
            let mut all: Vec<usize> = shaft.neighbors(row).map(|(other, _)| other).chain([row]).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(shaft.vertices() % 3, 0);
        for node in 0..shaft.vertices() / 3 {
            assert_eq!(near(3 * node), near(3 * node + 2), "node {node}");
        }
        let mut found = vec![false; shaft.vertices()];
        let mut open = vec![0];
        while let Some(row) = open.pop() {
            if !std::mem::replace(&mut found[row], true) {
                open.extend(near(row));
            }
        }
        assert!(found.into_iter().all(|found| found));
    }

    #[test]
    fn refuses_invalid_boxes() {
        for spec in ["fem:4x4", "fem:3x8x8", "fem:8", "fem:8x8x8x8", "fem:900x900x900", "fem:8x8x8,nodes=3"] {
            assert!(load(spec).is_err(), "{spec}");
        }
    }
}
