//! `octree`: the communication of processes with an adaptive mesh in a cosmology simulation.
//!
//! Modelled on ART (A. V. Kravtsov, A. A. Klypin, A. M. Khokhlov, Astrophys. J. Suppl. 111, 1997), the program of
//! figure 9 of J. Wu, X. Xiong, Z. Lan (J. Supercomput. 71, 2015). A periodic cube is divided into cells, and dense
//! cells are recursively refined into eight. Cells are sorted along Hilbert's curve (J. Skilling, "Programming the
//! Hilbert curve", 2004), and every process gets the same number of consecutive cells. Cells of different processes
//! with a common face exchange a value in each direction; a large cell sends one value per adjacent small cell.
//!
//! Densities are lognormal, as densities of matter are: the density of a cell is that of its parent times the
//! exponential of a normally distributed number. The first levels are refined everywhere. Below, a cell is refined if
//! its mass exceeds a limit, so each further level requires eight times the density. Unlike in ART, adjacent cells may
//! differ by more than one level.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;

use super::making::{Generator, Make, SEED, check_size};
use super::{edge, tasks};
use crate::database::Database;
use crate::params::{Param, Params};
use crate::random::generator;
use crate::table::count;

/// The generator of these exchanges.
pub(super) const GENERATOR: Generator = Generator {
    name: "octree",
    form: "octree:256,level=4,depth=3",
    help: "Processes with the cells of an adaptive mesh in Hilbert's order; adjacent cells exchange bytes.",
    params: &[
        Param { key: "level", default: "4", help: "2^level cells in each dimension before refinement" },
        Param { key: "depth", default: "3", help: "largest number of refinements of a dense cell" },
        SEED,
        Param { key: "bytes", default: "8", help: "bytes of a face between two cells in each direction" },
    ],
    item: Make::Arguments(|arguments| Ok(make(arguments)?)),
};

/// The stream of random numbers for densities.
const STREAM: u64 = 0x6f63_7472_6565;

/// The standard deviation of the logarithm of the density of a cell relative to its parent.
const SIGMA: f64 = 0.9;

/// The logarithm of the density above which a cell of the first levels is refined.
const LIMIT: f64 = 1.5;

/// The largest number of levels: coordinates are below 2^15.
const MAX_LEVELS: u32 = 15;

fn make(arguments: &mut Params) -> Result<Database, String> {
    let [text] = arguments.positional(["the number of processes"])?;
    let processes: usize =
        text.parse().map_err(|_| format!("expected a number of processes, found `{text}`"))?;
    let (level, depth) = (arguments.take("level")?, arguments.take::<u32>("depth")?);
    let (seed, bytes) = (arguments.take("seed")?, arguments.take::<u64>("bytes")?);
    let levels = depth.checked_add(level).filter(|&levels| levels <= MAX_LEVELS);
    let levels = levels.ok_or_else(|| format!("the sum of level and depth is at most {MAX_LEVELS}"))?;
    // Upper bound: every cell accounts for at most three faces.
    check_size(processes.max(1 << (3 * level)), 3 << (3 * level))?;
    let mut mesh = Mesh { level, levels, cells: Vec::new(), rng: generator(seed, STREAM) };
    mesh.divide([0; 3], 0, 0.0)?;
    mesh.cells.sort_unstable();
    if processes == 0 || mesh.cells.len() < processes {
        return Err(format!(
            "there are {} and {}; use 1 process or more, and at least as many cells",
            count(processes as u64, "process"),
            count(mesh.cells.len() as u64, "cell")
        ));
    }
    let process = |cell: usize| (cell * processes / mesh.cells.len()) as u32;
    let mut values = BTreeMap::<(u32, u32), u64>::new();
    mesh.faces(|a, b| {
        let (a, b) = (process(a), process(b));
        if a != b {
            *values.entry((a.min(b), a.max(b))).or_default() += 1;
        }
    });
    let most = values.values().sum::<u64>().checked_mul(2);
    most.and_then(|values| values.checked_mul(bytes))
        .ok_or_else(|| format!("bytes={bytes} results in more than 2^64 bytes in total; use fewer"))?;
    let mut database = tasks(processes);
    let both_ways =
        |((a, b), values): ((u32, u32), u64)| [edge(a, b, 1, values * bytes), edge(b, a, 1, values * bytes)];
    database.edges = values.into_iter().flat_map(both_ways).collect();
    database.edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    Ok(database)
}

/// An unrefined cell: its first position on the curve, its first corner and its side, in units of the smallest possible
/// cell. Cells are sorted along the curve.
type Cell = (u64, [u32; 3], u32);

/// The mesh.
struct Mesh {
    /// The levels refined everywhere, and the largest number of levels.
    level: u32,
    levels: u32,
    cells: Vec<Cell>,
    rng: ChaCha8Rng,
}

impl Mesh {
    /// Adds the cells of the part of the cube with the given first corner, level, and logarithm of the density.
    fn divide(&mut self, corner: [u32; 3], level: u32, density: f64) -> Result<(), String> {
        let side = 1 << (self.levels - level);
        let limit = LIMIT + f64::from(level.saturating_sub(self.level)) * 8f64.ln();
        if level >= self.level && (level == self.levels || density <= limit) {
            self.cells.push((hilbert(corner, self.levels), corner, side));
            return check_size(self.cells.len(), 3 * self.cells.len());
        }
        for part in 0..8 {
            let at = |d: usize| corner[d] + (part >> d & 1) * side / 2;
            let normal = normal(&mut self.rng);
            self.divide([at(0), at(1), at(2)], level + 1, density + SIGMA * normal)?;
        }
        Ok(())
    }

    /// Calls `show` for every pair of adjacent cells, with their positions on the curve. Cells that touch at both ends
    /// of the periodic cube are shown twice.
    fn faces(&self, mut show: impl FnMut(usize, usize)) {
        let end = 1u32 << self.levels;
        for (cell, &(_, corner, side)) in self.cells.iter().enumerate() {
            for way in 0..6 {
                let (dimension, is_up) = (way / 2, way % 2 == 1);
                let mut beyond = corner;
                let step = if is_up { side } else { end - 1 };
                beyond[dimension] = (corner[dimension] + step) % end;
                let place = hilbert(beyond, self.levels);
                let other = self.cells.partition_point(|cell| cell.0 <= place) - 1;
                let is_larger = self.cells[other].2 > side;
                // A face is shown by its smaller cell, or by the lower one if the sizes are equal.
                if other != cell && (is_larger || (is_up && self.cells[other].2 == side)) {
                    show(cell, other);
                }
            }
        }
    }
}

/// An approximately normal number with mean 0 and standard deviation 1: the sum of twelve uniform numbers.
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let sum: u64 = (0..12).map(|_| u64::from(rng.next_u32())).sum();
    sum as f64 / 2f64.powi(32) - 6.0
}

/// The position of a point on Hilbert's curve through a cube of 2^`bits` points per dimension (Skilling 2004).
fn hilbert(mut at: [u32; 3], bits: u32) -> u64 {
    for bit in (1..bits).rev() {
        let (bit, low) = (1 << bit, (1 << bit) - 1);
        for d in 0..3 {
            if at[d] & bit != 0 {
                at[0] ^= low;
            } else {
                let swapped = (at[0] ^ at[d]) & low;
                at[0] ^= swapped;
                at[d] ^= swapped;
            }
        }
    }
    at[1] ^= at[0];
    at[2] ^= at[1];
    let turned =
        (1..bits).filter(|bit| at[2] >> bit & 1 == 1).fold(0, |turned, bit| turned ^ ((1 << bit) - 1));
    let at = at.map(|at| at ^ turned);
    (0..bits).rev().fold(0, |place, bit| {
        let digit = at.iter().fold(0, |digit, at| digit << 1 | u64::from(at >> bit & 1));
        place << 3 | digit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, load};

    #[test]
    fn the_curve_visits_every_point_and_steps_to_neighbors() {
        for bits in 1..5 {
            let end = 1u32 << bits;
            let mut places: Vec<(u64, [u32; 3])> = (0..end * end * end)
                .map(|number| [number % end, number / end % end, number / end / end])
                .map(|at| (hilbert(at, bits), at))
                .collect();
            places.sort_unstable();
            assert!(places.iter().zip(0..).all(|(place, number)| place.0 == number), "{bits} bits");
            for pair in places.windows(2) {
                let apart: u32 = (0..3).map(|d| pair[0].1[d].abs_diff(pair[1].1[d])).sum();
                assert_eq!(apart, 1, "{pair:?}");
            }
        }
    }

    #[test]
    fn without_refinement_the_cells_form_a_torus() {
        let graph = Graph::of(&load("octree:512,level=3,depth=0").expect("an exchange"));
        assert_eq!((graph.vertices(), graph.edges()), (512, 3 * 512));
        assert!(graph.pairs().all(|(.., weight)| weight == 16));
        // Blocks of 64 cells are cubes with faces of 16 cells; two directions, and two common faces because the cube
        // wraps.
        let blocks = Graph::of(&load("octree:8,level=3,depth=0,bytes=1").expect("an exchange"));
        assert_eq!(blocks.edges(), 12);
        assert!(blocks.pairs().all(|(.., weight)| weight == 64));
    }

    #[test]
    fn refines_dense_parts_and_places_neighbors_close_on_the_curve() {
        let mut mesh = Mesh { level: 4, levels: 7, cells: Vec::new(), rng: generator(0, STREAM) };
        mesh.divide([0; 3], 0, 0.0).expect("it is small enough");
        let volume: u64 = mesh.cells.iter().map(|&(.., side)| u64::from(side).pow(3)).sum();
        assert_eq!(volume, 1 << 21, "cells fill the cube");
        let sides = [8, 4, 2, 1].map(|side| mesh.cells.iter().filter(|cell| cell.2 == side).count());
        assert!(sides.iter().all(|&cells| cells > 0), "{sides:?}");
        let exchange = Graph::of(&load("octree:64").expect("an exchange"));
        let near: u64 = exchange.pairs().filter(|(a, b, _)| b - a == 1).map(|pair| pair.2).sum();
        let all: u64 = exchange.pairs().map(|pair| pair.2).sum();
        assert!(near * 4 > all, "{near} of {all}");
        assert_ne!(load("octree:64").expect("one").edges, load("octree:64,seed=1").expect("another").edges);
    }

    #[test]
    fn refuses_invalid_arguments() {
        for spec in [
            "octree:0",
            "octree:9,level=1,depth=0",
            "octree:4,level=9",
            "octree:4,level=3,depth=99",
            "octree:",
        ] {
            assert!(load(spec).is_err(), "{spec}");
        }
    }
}
