//! `kkt`: the matrix of an optimization problem with a partial differential equation as a constraint.
//!
//! The nonzero pattern of `nlpkkt80`, `nlpkkt120`, .. of the University of Florida Sparse Matrix Collection (T. A.
//! Davis, Y. Hu, ACM Trans. Math. Softw. 38(1), 2011), inferred from their sizes: N^3 states on a grid, N^3
//! multipliers, and a control at each of the 6 N^2 places on the faces of the surrounding box. With the constraints A,
//! the matrix is [D A'; A 0], where D is diagonal. The row of A at a grid point has its 27-point stencil; at the rim of
//! the grid, the stencil includes controls, but no edges and corners of the box. The numbers of rows and entries equal
//! those of the collection for all its N (28,192,672 entries for N = 80, 95,117,792 for N = 120).
//!
//! Tasks are rows: the states, first dimension fastest, then the controls, then the multipliers.

use super::making::{BYTES, Generator, Make, Pattern, check_size, one_number, uniform};
use crate::params::Params;

/// The generator of these matrices.
pub(super) const GENERATOR: Generator = Generator {
    name: "kkt",
    form: "kkt:24",
    help: "The rows of a KKT matrix like nlpkkt120 (kkt:120): states on a cubic grid of N^3 points (kkt:N), \
           controls at its faces, multipliers.",
    params: &[BYTES],
    item: Make::Arguments(|arguments| Ok(uniform(pattern(arguments)?, arguments)?)),
};

/// The largest number of points per dimension; more exceed the allowed number of edges.
const MAX_SIDE: usize = 135;

/// Numbers of rows, and of entries above the diagonal, for `side` >= 1 points per dimension.
fn counts(side: usize) -> (usize, usize) {
    let (face, grid) = (side * side, side * side * side);
    (2 * grid + 6 * face, 27 * grid - 12 * (3 * side - 2) - 8)
}

/// The nonzero pattern: pairs of a row and a column.
pub(super) fn pattern(arguments: &mut Params) -> Result<Pattern, String> {
    let side = one_number(arguments)?;
    if !(1..=MAX_SIDE).contains(&side) {
        return Err(format!("a side has 1 to {MAX_SIDE} points, not {side}"));
    }
    let (vertices, entries) = counts(side);
    check_size(vertices, entries)?;
    let (face, grid) = (side * side, side * side * side);
    let mut pairs = Vec::with_capacity(entries);
    for point in 0..grid {
        let multiplier = (grid + 6 * face + point) as u32;
        let here = [point % side, point / side % side, point / face];
        for step in 0..27 {
            // Coordinates of the neighbor plus 1: 0 and `side` + 1 are outside the grid.
            let there = [here[0] + step % 3, here[1] + step / 3 % 3, here[2] + step / 9];
            let is_inside = |&coordinate: &usize| (1..=side).contains(&coordinate);
            let column = match there.iter().filter(|at| !is_inside(at)).count() {
                0 => there[0] - 1 + side * (there[1] - 1 + side * (there[2] - 1)),
                1 => grid + control(side, there),
                _ => continue,
            };
            pairs.push((column as u32, multiplier));
        }
    }
    Ok(Pattern { vertices, pairs, grid: None })
}

/// The number of the control at a place of the box that is outside the grid in one dimension.
fn control(side: usize, there: [usize; 3]) -> usize {
    let outside = there.iter().position(|at| !(1..=side).contains(at)).unwrap_or(0);
    let half = usize::from(there[outside] > side);
    let inside: Vec<usize> = (0..3).filter(|&d| d != outside).map(|d| there[d] - 1).collect();
    (2 * outside + half) * side * side + inside[0] + side * inside[1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, load};

    #[test]
    fn sizes_are_those_of_the_collection() {
        // The diagonal of D has an entry per state and control.
        let sizes = |side: usize| {
            let (rows, above) = counts(side);
            (rows, 2 * above + side * side * side + 6 * side * side)
        };
        assert_eq!(sizes(80), (1_062_400, 28_192_672));
        assert_eq!(sizes(120), (3_542_400, 95_117_792));
        assert_eq!(sizes(160), (8_345_600, 225_422_112));
        for side in [1, 2, 5, 8] {
            let graph = Graph::of(&load(&format!("kkt:{side}")).expect("a matrix"));
            assert_eq!((graph.vertices(), graph.edges()), counts(side), "{side} points per dimension");
        }
    }

    #[test]
    fn states_have_27_neighbors_and_controls_9() {
        let graph = Graph::of(&load("kkt:5").expect("a matrix"));
        let (grid, face) = (125, 25);
        // The middle of the grid, and of its first face.
        assert_eq!(graph.degree(62), 27);
        assert_eq!(graph.degree(grid + 12), 9);
        // At a corner, the stencil loses 7 places at edges and at the corner of the box; 8 states and 12 controls
        // remain.
        assert_eq!(graph.degree(grid + 6 * face), 20);
        let near: Vec<usize> = graph.neighbors(0).map(|(row, _)| row - grid - 6 * face).collect();
        assert_eq!(near, [0, 1, 5, 6, 25, 26, 30, 31]);
    }

    #[test]
    fn refuses_invalid_sizes() {
        for spec in ["kkt:0", "kkt:136", "kkt:99999999999", "kkt:a", "kkt:2,3"] {
            assert!(load(spec).is_err(), "{spec}");
        }
    }
}
