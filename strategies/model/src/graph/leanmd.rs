//! `leanmd`: the task graph of LeanMD, a molecular dynamics benchmark used in mapping papers.
//!
//! Particles are in a periodic box of cells as wide as the cutoff, so that only neighboring cells interact ("1-away").
//! There is a chare per cell for its particles, and a compute per cell and per pair of neighboring cells for the
//! forces. These are 1 + 13 + 1 = 15 objects per cell: 3240 for 6x6x6 cells (Agarwal, Sharma, Kalé 2006, section
//! 5.2.3), 960 for 4x4x4 (Jeannot et al. 2013, section 5). The additional chare per processor of the first paper does
//! not communicate and is omitted.
//!
//! The objects are the cells, first dimension fastest, followed by the computes in groups of 14 per cell: the compute
//! of the cell itself, then those with the 13 neighbors at positive offsets.
//!
//! - In a step, a cell sends a compute the positions of its n particles (24 bytes each) and receives the forces (24
//!   bytes each); each is one message with a header. Each cell has 27 computes.
//! - A compute tests the distance of every pair of particles (1 ns) and computes the force of pairs within the cutoff
//!   (10 ns). For evenly distributed particles, cells of 30 Å and a cutoff of 26 Å, 78 % of the pairs of a cell are
//!   within the cutoff, 22 % for cells with a common face, 5 % with an edge, and 1 % with a corner. A cell integrates
//!   (50 ns per particle).

use super::making::{Generator, Make, check_size};
use super::{edge, tasks};
use crate::database::{Database, ObjectIndex};
use crate::grid::Grid;
use crate::params::{Param, Params};

/// The generator of LeanMD's task graph.
pub(super) const GENERATOR: Generator = Generator {
    name: "leanmd",
    form: "leanmd:6x6x6,particles=300",
    help: "The cells of LeanMD, and a task for each pair of neighboring cells (15 tasks per cell).",
    params: &[
        Param {
            key: "particles",
            default: "300",
            help: "particles of a cell, or A-B: from A in the first cell to B in the last",
        },
        Param { key: "pinned", default: "no", help: "yes: cells cannot migrate" },
    ],
    item: Make::Arguments(|arguments| Ok(make(arguments)?)),
};

/// The number of computes per cell.
const COMPUTES_PER_CELL: usize = 14;

/// Positions or forces: three numbers of 8 bytes per particle.
const BYTES_PER_PARTICLE: u64 = 24;

/// The size of a message without particles.
const HEADER_BYTES: u64 = 32;

/// The mean cost of a pair of particles in nanoseconds: the distance test, and the force if within the cutoff. Indexed
/// by the number of dimensions in which the two cells differ: same cell, common face, edge, corner.
const PAIR_NANOSECONDS: [f64; 4] = [8.8, 3.2, 1.5, 1.1];

/// The cost of moving a particle, in nanoseconds.
const PARTICLE_NANOSECONDS: f64 = 50.0;

/// The largest number of particles of a cell; the number of pairs is then exact in `f64`.
const MAX_PARTICLES: u64 = 1 << 26;

fn make(arguments: &mut Params) -> Result<Database, String> {
    let [sizes] = arguments.positional(["numbers of cells such as 6x6x6"])?;
    let grid = Grid::parse(&sizes, true)?;
    let cells = grid.pes();
    let last: Vec<usize> = grid.coordinates(cells - 1).collect();
    if last.len() != 3 || sizes.contains('m') || last.iter().any(|&last| last < 2) {
        return Err("expected 3 dimensions that all wrap, with at least 3 cells in each".into());
    }
    let size = [last[0] + 1, last[1] + 1, last[2] + 1];
    check_size(cells.saturating_mul(1 + COMPUTES_PER_CELL), cells.saturating_mul(2 * 27))?;
    let range: String = arguments.take("particles")?;
    let (first, end) = particle_range(&range)?;
    let pinned = match arguments.take::<String>("pinned")?.as_str() {
        "no" => false,
        "yes" => true,
        other => return Err(format!("pinned={other} is not understood: expected yes or no")),
    };
    let counts: Vec<u64> = (0..cells as u64).map(|cell| particles(first, end, cell, cells as u64)).collect();

    let mut database = tasks(cells * (1 + COMPUTES_PER_CELL));
    database.arrays = vec!["cell".into(), "compute".into()];
    for cell in 0..cells {
        let here = coordinates(&grid, cell);
        let object = &mut database.objects[cell];
        object.index = index(&[here]);
        object.load_seconds = particle_seconds(counts[cell]);
        object.migratable = !pinned;
        for (made, offset) in (0..).zip(offsets()) {
            let there: [usize; 3] =
                std::array::from_fn(|i| (here[i] as isize + offset[i]).rem_euclid(size[i] as isize) as usize);
            let other = there[0] + size[0] * (there[1] + size[1] * there[2]);
            let compute = cells + cell * COMPUTES_PER_CELL + made;
            let apart = offset.iter().filter(|&&step| step != 0).count();
            let pairs = match apart {
                0 => counts[cell] * counts[cell].saturating_sub(1) / 2,
                _ => counts[cell] * counts[other],
            };
            let object = &mut database.objects[compute];
            (object.array, object.index) = (1, index(&[here, there]));
            object.load_seconds = pair_seconds(apart, pairs);
            let ends = [cell, other];
            for &end in &ends[..if apart == 0 { 1 } else { 2 }] {
                let bytes = HEADER_BYTES + BYTES_PER_PARTICLE * counts[end];
                database.edges.push(edge(end as u32, compute as u32, 1, bytes));
                database.edges.push(edge(compute as u32, end as u32, 1, bytes));
            }
        }
    }
    database.edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    Ok(database)
}

/// The number of particles of a cell: it changes linearly from `first` in cell 0 to `end`, which is that of the cell
/// after the last of `cells` cells.
pub fn particles(first: u64, end: u64, cell: u64, cells: u64) -> u64 {
    let part = |change: u64| (u128::from(change) * u128::from(cell) / u128::from(cells)) as u64;
    if end >= first { first + part(end - first) } else { first - part(first - end) }
}

/// The cost of the forces of `pairs` pairs of particles in seconds. `apart` is the number of dimensions in which the
/// cells differ.
///
/// # Panics
/// If `apart` is more than 3.
pub fn pair_seconds(apart: usize, pairs: u64) -> f64 {
    PAIR_NANOSECONDS[apart] * 1e-9 * pairs as f64
}

/// The cost of moving `particles` particles, in seconds.
pub fn particle_seconds(particles: u64) -> f64 {
    PARTICLE_NANOSECONDS * 1e-9 * particles as f64
}

/// Parses `A` or `A-B` to `first` and `end` of [`particles`].
fn particle_range(text: &str) -> Result<(u64, u64), String> {
    let parse = |number: &str| number.parse().ok().filter(|&number: &u64| number <= MAX_PARTICLES);
    let (first, end) = text.split_once('-').unwrap_or((text, text));
    parse(first).zip(parse(end)).ok_or_else(|| {
        format!(
            "particles={text} is not understood: expected at most {MAX_PARTICLES} per cell, or from the \
             first to the last as in 100-250"
        )
    })
}

/// The offsets of the partner cells of a cell's computes: the cell itself and half of its neighbors, those
/// lexicographically after `(0, 0, 0)`.
fn offsets() -> impl Iterator<Item = [isize; 3]> {
    let all = (0..27).map(|number: isize| [number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1]);
    all.filter(|offset| *offset >= [0, 0, 0])
}

fn coordinates(grid: &Grid, cell: usize) -> [usize; 3] {
    let mut all = grid.coordinates(cell);
    std::array::from_fn(|_| all.next().unwrap_or(0))
}

/// The index of the chare of these cells.
fn index(cells: &[[usize; 3]]) -> ObjectIndex {
    let coordinates: Vec<i32> = cells.iter().flatten().map(|&coordinate| coordinate as i32).collect();
    ObjectIndex::new(&coordinates)
}

#[cfg(test)]
mod tests {
    use crate::database::{Database, End};
    use crate::graph::{Graph, load};

    fn leanmd(spec: &str) -> Database {
        let database = load(spec).expect(spec);
        assert_eq!(database.check(), Ok(()), "{spec}");
        database
    }

    #[test]
    fn there_are_15_objects_per_cell_and_every_cell_has_27_computes() {
        for (spec, cells) in [("leanmd:3x3x3", 27), ("leanmd:4x4x4", 64), ("leanmd:3x4x6", 72)] {
            let database = leanmd(spec);
            let graph = Graph::of(&database);
            assert_eq!((graph.vertices(), graph.edges()), (15 * cells, 27 * cells), "{spec}");
            for v in 0..graph.vertices() {
                let own = v >= cells && (v - cells) % 14 == 0;
                let expected = if v < cells { 27 } else { 2 - usize::from(own) };
                assert_eq!(graph.degree(v), expected, "{spec}, object {v}");
                assert!(graph.neighbors(v).all(|(u, _)| (u < cells) != (v < cells)), "{spec}, object {v}");
            }
            assert!(database.edges.iter().all(|edge| edge.messages == 1));
        }
    }

    #[test]
    fn every_pair_of_neighboring_cells_has_one_compute() {
        let database = leanmd("leanmd:3x4x5");
        let mut pairs: Vec<[Vec<i32>; 2]> = database.objects[60..]
            .iter()
            .map(|object| {
                let (here, there) = object.index.coordinates().split_at(3);
                let mut pair = [here.to_vec(), there.to_vec()];
                for (i, size) in [3, 4, 5].into_iter().enumerate() {
                    let apart = (pair[0][i] - pair[1][i]).rem_euclid(size);
                    assert!(apart.min(size - apart) <= 1, "{pair:?}");
                }
                pair.sort();
                pair
            })
            .collect();
        pairs.sort();
        pairs.dedup();
        assert_eq!(pairs.len(), 14 * 60);
    }

    #[test]
    fn computes_communicate_with_the_cells_of_their_index() {
        let database = leanmd("leanmd:3x4x5,particles=10-70");
        for edge in database.edges.iter().filter(|edge| edge.to > edge.from) {
            let (End::Object(cell), End::Object(compute)) = (edge.from, edge.to) else {
                panic!("{edge:?} is between objects")
            };
            let [cell, compute] = [cell, compute].map(|object| &database.objects[object as usize]);
            let (here, there) = compute.index.coordinates().split_at(3);
            assert!([here, there].contains(&cell.index.coordinates()), "{edge:?}");
            // Each cell has one particle more than the previous cell.
            assert_eq!(edge.bytes, 32 + 24 * (10 + cell.id), "{edge:?}");
        }
    }

    #[test]
    fn loads_depend_on_pairs_and_volumes_on_particles() {
        let database = leanmd("leanmd:3x3x3,particles=100");
        let load = |object: usize| (database.objects[object].load_seconds * 1e9).round() as u64;
        // A cell; its own pairs; a face (0, 0, 1), an edge (0, 1, -1), a corner (1, -1, -1).
        assert_eq!([0, 27, 28, 29, 32].map(load), [5_000, 43_560, 32_000, 15_000, 11_000]);
        let of_cell = database.edges.iter().filter(|edge| edge.from == End::Object(5));
        assert_eq!(of_cell.map(|edge| edge.bytes).sum::<u64>(), 27 * (32 + 2400));
        // Four times as many pairs.
        let twice = leanmd("leanmd:3x3x3,particles=200");
        assert_eq!(twice.objects[28].load_seconds, 4.0 * database.objects[28].load_seconds);
    }

    #[test]
    fn particles_may_differ_and_cells_may_be_pinned() {
        let database = leanmd("leanmd:4x4x4,particles=250-100,pinned=yes");
        let moves = |object: usize| (database.objects[object].load_seconds * 2e7).round() as u64;
        assert_eq!([0, 1, 32, 63].map(moves), [250, 248, 175, 103]);
        let stay = database.objects.iter().filter(|object| !object.migratable).count();
        assert_eq!(stay, 64);
    }

    #[test]
    fn errors_name_the_problem() {
        for (spec, expected) in [
            ("leanmd:4x4", "expected 3 dimensions"),
            ("leanmd:4x4x2", "at least 3 cells in each"),
            ("leanmd:4x4x4m", "expected 3 dimensions that all wrap"),
            ("leanmd:", "expected numbers of cells such as 6x6x6; found 0"),
            ("leanmd:4x4x4,2", "expected numbers of cells such as 6x6x6; found 2"),
            ("leanmd:4x4x4,particles=many", "particles=many is not understood: expected at most 67108864"),
            ("leanmd:4x4x4,particles=1-", "as in 100-250"),
            ("leanmd:4x4x4,particles=99999999999", "at most 67108864 per cell"),
            ("leanmd:4x4x4,pinned=cells", "expected yes or no"),
            ("leanmd:4x4x4,bytes=3", "leanmd has no parameter `bytes`; known are particles, pinned"),
            ("leanmd:200x200x200", "it has more than"),
            ("leanmd:999x999x999", "sizes multiply to at most"),
        ] {
            let error = load(spec).map(|_| ()).expect_err(expected).to_string();
            assert!(error.contains(expected), "{spec}: `{error}` does not contain `{expected}`");
        }
    }
}
