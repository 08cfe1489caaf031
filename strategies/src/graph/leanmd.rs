//! `leanmd`: the task graph of LeanMD, the molecular dynamics benchmark of the mapping papers.
//!
//! Particles live in a periodic box of cells as wide as the cutoff, so that only neighboring cells
//! interact ("1-away"). One chare per cell holds its particles; one per pair of neighboring cells, and one
//! per cell for the pairs within it, computes forces. That is 1 + 13 + 1 = 15 objects per cell: 3240 of
//! 6x6x6 cells (Agarwal, Sharma, Kalé 2006, section 5.2.3), 960 of 4x4x4 (Jeannot et al. 2013, section 5).
//! The additional chare per processor of the first paper exchanges nothing and is left out.
//!
//! The objects are the cells, first dimension fastest, and after them the computes: those that a cell
//! makes follow each other, its own first, then those with the 13 neighbors at positive offsets.
//!
//! - In a step, a cell with n particles sends a compute their positions (24 bytes each) and gets their
//!   forces back (as many); either is one message with a header. Each cell has 27 computes.
//! - A compute tests the distance of every pair of particles (1 ns) and, of those within the cutoff,
//!   computes the force (10 ns). Of particles spread evenly over cells of 30 Å with a cutoff of 26 Å, 78 %
//!   of the pairs in one cell are within it, 22 % of those of cells with a common face, 5 % with an edge,
//!   and 1 % with a corner. A cell integrates (50 ns per particle).

use super::generate::{Arguments, Generator, Make, check_size};
use super::{edge, tasks};
use crate::database::{Database, ObjectIndex};
use crate::topology::{Grid, Topology as _};

/// The generator of LeanMD's task graph.
pub(super) const GENERATOR: Generator = Generator {
    name: "leanmd",
    form: "leanmd:6x6x6,particles=300",
    help: "LeanMD's cells, and a task for each pair of neighboring ones (15 tasks per cell). particles=A-B: A in \
           the first cell to B in the last (300 in all if left out); pinned=yes: cells stay where they are.",
    keys: &["particles", "pinned"],
    make: Make::Arguments(|arguments| Ok(make(arguments)?)),
};

/// The computes that a cell makes.
const COMPUTES_PER_CELL: usize = 14;

/// Positions, or forces, are three numbers of 8 bytes per particle.
const BYTES_PER_PARTICLE: u64 = 24;

/// What a message carries beside particles.
const HEADER_BYTES: u64 = 32;

/// The mean cost of a pair of particles in nanoseconds: the test of its distance, and the force of those
/// within the cutoff. By the number of dimensions in which its two cells differ: in the same cell, in
/// cells with a common face, edge, corner.
const PAIR_NANOSECONDS: [f64; 4] = [8.8, 3.2, 1.5, 1.1];

/// What it costs to move a particle, in nanoseconds.
const PARTICLE_NANOSECONDS: f64 = 50.0;

/// The most particles of a cell: their pairs must not be more than a number can hold exactly.
const MAX_PARTICLES: u64 = 1 << 26;

fn make(arguments: &Arguments) -> Result<Database, String> {
    let [sizes] = arguments.positional(["numbers of cells such as 6x6x6"])?;
    let grid = Grid::parse(sizes, true)?;
    let cells = grid.pes();
    let last: Vec<usize> = grid.coordinates(cells - 1).collect();
    if last.len() != 3 || sizes.contains('m') || last.iter().any(|&last| last < 2) {
        return Err("the box of cells wraps, has 3 dimensions, and at least 3 cells in each".into());
    }
    let size = [last[0] + 1, last[1] + 1, last[2] + 1];
    check_size(cells.saturating_mul(1 + COMPUTES_PER_CELL), cells.saturating_mul(2 * 27))?;
    let range: String = arguments.take("particles", Some("300".to_string()))?;
    let (first, end) = particle_range(&range)?;
    let pinned = match arguments.take("pinned", Some("no".to_string()))?.as_str() {
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

/// How many particles a cell has if the first of `cells` has `first` and one after the last had `end`.
pub fn particles(first: u64, end: u64, cell: u64, cells: u64) -> u64 {
    let part = |change: u64| (u128::from(change) * u128::from(cell) / u128::from(cells)) as u64;
    if end >= first { first + part(end - first) } else { first - part(first - end) }
}

/// What the forces of so many pairs of particles cost, in seconds; `apart` is in how many dimensions
/// their cells differ.
///
/// # Panics
/// If it is more than 3.
pub fn pair_seconds(apart: usize, pairs: u64) -> f64 {
    PAIR_NANOSECONDS[apart] * 1e-9 * pairs as f64
}

/// What it costs to move so many particles, in seconds.
pub fn particle_seconds(particles: u64) -> f64 {
    PARTICLE_NANOSECONDS * 1e-9 * particles as f64
}

/// The particles of the first cell, and those of the one after the last, in `A` or `A-B`.
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

/// The offsets of the cells with which a cell makes computes: itself and half of its neighbors, those at
/// `(dx, dy, dz)` after `(0, 0, 0)` in the order of the dimensions.
fn offsets() -> impl Iterator<Item = [isize; 3]> {
    let all = (0..27).map(|number: isize| [number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1]);
    all.filter(|offset| *offset >= [0, 0, 0])
}

fn coordinates(grid: &Grid, cell: usize) -> [usize; 3] {
    let mut all = grid.coordinates(cell);
    std::array::from_fn(|_| all.next().unwrap_or(0))
}

/// The index of the chare that belongs to these cells.
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
    fn there_are_15_objects_per_cell_and_every_cell_talks_to_27() {
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
    fn a_compute_talks_to_the_cells_of_its_index() {
        let database = leanmd("leanmd:3x4x5,particles=10-70");
        for edge in database.edges.iter().filter(|edge| edge.to > edge.from) {
            let (End::Object(cell), End::Object(compute)) = (edge.from, edge.to) else {
                panic!("{edge:?} is between objects")
            };
            let [cell, compute] = [cell, compute].map(|object| &database.objects[object as usize]);
            let (here, there) = compute.index.coordinates().split_at(3);
            assert!([here, there].contains(&cell.index.coordinates()), "{edge:?}");
            // Cells have one particle more each.
            assert_eq!(edge.bytes, 32 + 24 * (10 + cell.id), "{edge:?}");
        }
    }

    #[test]
    fn loads_follow_the_pairs_of_particles_and_volumes_the_particles() {
        let database = leanmd("leanmd:3x3x3,particles=100");
        let load = |object: usize| (database.objects[object].load_seconds * 1e9).round() as u64;
        // A cell; its own pairs; a face (0, 0, 1), an edge (0, 1, -1), a corner (1, -1, -1).
        assert_eq!([0, 27, 28, 29, 32].map(load), [5_000, 43_560, 32_000, 15_000, 11_000]);
        let of_cell = database.edges.iter().filter(|edge| edge.from == End::Object(5));
        assert_eq!(of_cell.map(|edge| edge.bytes).sum::<u64>(), 27 * (32 + 2400));
        // Four times the pairs.
        let twice = leanmd("leanmd:3x3x3,particles=200");
        assert_eq!(twice.objects[28].load_seconds, 4.0 * database.objects[28].load_seconds);
    }

    #[test]
    fn particles_may_differ_and_cells_may_stay() {
        let database = leanmd("leanmd:4x4x4,particles=250-100,pinned=yes");
        let moves = |object: usize| (database.objects[object].load_seconds * 2e7).round() as u64;
        assert_eq!([0, 1, 32, 63].map(moves), [250, 248, 175, 103]);
        let stay = database.objects.iter().filter(|object| !object.migratable).count();
        assert_eq!(stay, 64);
    }

    #[test]
    fn what_cannot_be_a_box_is_said() {
        for (spec, expected) in [
            ("leanmd:4x4", "has 3 dimensions"),
            ("leanmd:4x4x2", "at least 3 cells in each"),
            ("leanmd:4x4x4m", "the box of cells wraps"),
            ("leanmd:", "expected sizes such as"),
            ("leanmd:4x4x4,2", "expected numbers of cells such as 6x6x6; found 2"),
            ("leanmd:4x4x4,particles=many", "particles=many is not understood: expected at most 67108864"),
            ("leanmd:4x4x4,particles=1-", "as in 100-250"),
            ("leanmd:4x4x4,particles=99999999999", "at most 67108864 per cell"),
            ("leanmd:4x4x4,pinned=cells", "expected yes or no"),
            ("leanmd:4x4x4,bytes=3", "it takes no `bytes`; known are particles, pinned"),
            ("leanmd:200x200x200", "it has more than"),
            ("leanmd:999x999x999", "sizes multiply to at most"),
        ] {
            let error = load(spec).map(|_| ()).expect_err(expected).to_string();
            assert!(error.contains(expected), "{spec}: `{error}` does not contain `{expected}`");
        }
    }
}
