//! The gas in a block of an adaptive mesh: Euler's equations in 2D, by Godunov's method of first order with the fluxes
//! of Harten, Lax and van Leer.
//!
//! Cells hold integers: the mass, momentum and energy in the cell, in small quanta. A flux is a number of quanta, too.
//! So what leaves a cell enters the next one to the last bit, also where a coarse cell touches fine cells.

use equipoise_model::random::splitmix;
use serde::{Deserialize, Serialize};

use crate::cells::Side;
use crate::quadtree::{SIDES, number};

/// Mass, momentum along both dimensions, and energy, per area.
pub type Density = [f64; 4];

/// Mass, momentum along both dimensions, and energy, in quanta.
pub type Quanta = [i64; 4];

/// Quanta per unit of mass, momentum and energy. The area of the finest cell is 1.
const QUANTA: f64 = (1u64 << 26) as f64;

/// The ratio of specific heats.
const GAMMA: f64 = 1.4;

/// The pressure of the gas at rest, whose density is 1.
const AMBIENT: f64 = 1.0;

/// The pressure inside the initial bubble.
const BUBBLE: f64 = 10.0;

/// The velocity of the gas before the shock arrives.
const WIND: [f64; 2] = [1.0, 0.5];

/// The time of a step: the fastest wave crosses less than half of a finest cell, of width 1. Waves are at most
/// 1.5 times as fast as sound in the bubble, in addition to the wind.
pub fn step() -> f64 {
    0.25 / ((GAMMA * BUBBLE).sqrt() + WIND[0])
}

/// A gas of density 1 with a bubble of high pressure, at a position in a world with these sizes.
pub fn initial(position: [f64; 2], world: [f64; 2]) -> Density {
    let (x, y) = (position[0] - 0.3 * world[0], position[1] - 0.4 * world[1]);
    let radius = 0.1 * world[0].min(world[1]);
    let pressure = if x * x + y * y < radius * radius { BUBBLE } else { AMBIENT };
    let kinetic = 0.5 * (WIND[0] * WIND[0] + WIND[1] * WIND[1]);
    [1.0, WIND[0], WIND[1], pressure / (GAMMA - 1.0) + kinetic]
}

fn pressure([mass, x, y, energy]: Density) -> f64 {
    (GAMMA - 1.0) * (energy - 0.5 * (x * x + y * y) / mass)
}

/// The flux along dimension `d` of a gas with uniform density, and its slowest and fastest waves.
fn physical(density: Density, d: usize) -> (Density, [f64; 2]) {
    let [mass, x, y, energy] = density;
    let (pressure, velocity) = (pressure(density), density[1 + d] / mass);
    let mut flux = [mass * velocity, x * velocity, y * velocity, (energy + pressure) * velocity];
    flux[1 + d] += pressure;
    let sound = (GAMMA * pressure / mass).sqrt();
    (flux, [velocity - sound, velocity + sound])
}

/// The flux along dimension `d` between two cells.
fn flux(lower: Density, upper: Density, d: usize) -> Density {
    let ((from, a), (to, b)) = (physical(lower, d), physical(upper, d));
    let (slow, fast) = (a[0].min(b[0]).min(0.0), a[1].max(b[1]).max(0.0));
    std::array::from_fn(|k| {
        (fast * from[k] - slow * to[k] + slow * fast * (upper[k] - lower[k])) / (fast - slow)
    })
}

/// The square block of gas of a leaf.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gas {
    /// Cells along each dimension, an even number.
    size: usize,
    /// The width of a cell, in widths of a finest cell.
    width: i64,
    /// What the cells hold, first dimension fastest.
    #[serde(with = "equipoise::numbers")]
    contents: Vec<Quanta>,
    /// The fluxes of this step through the four sides.
    fluxes: [Vec<Quanta>; 4],
}

/// The number of a side in [`SIDES`].
fn side_number(side: Side) -> usize {
    2 * usize::from(side.dimension) + usize::from(side.upper)
}

impl Gas {
    /// A block with no gas.
    pub fn empty(size: usize, width: i64) -> Self {
        Gas { size, width, contents: vec![[0; 4]; size * size], fluxes: Default::default() }
    }

    /// The initial gas of the block at `position`, in blocks of this size and width.
    pub fn new(size: usize, width: i64, position: [i32; 2], world: [f64; 2]) -> Self {
        let mut gas = Gas::empty(size, width);
        let scale = gas.scale();
        for (at, cell) in gas.contents.iter_mut().enumerate() {
            let place =
                |block: i32, cell: usize| (f64::from(block) * size as f64 + cell as f64 + 0.5) * width as f64;
            let density = initial([place(position[0], at % size), place(position[1], at / size)], world);
            *cell = density.map(|density| (density * scale).round() as i64);
        }
        gas
    }

    /// Quanta per density.
    fn scale(&self) -> f64 {
        QUANTA * (self.width * self.width) as f64
    }

    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.contents.len()
    }

    /// The density of each quantity in a cell.
    pub fn density(&self, at: usize) -> Density {
        self.contents[at].map(|quanta| quanta as f64 / self.scale())
    }

    /// The outermost cells on a side.
    fn edge_cells(&self, side: Side) -> impl Iterator<Item = usize> + use<> {
        let (size, last) = (self.size, if side.upper { self.size - 1 } else { 0 });
        (0..size).map(move |i| if side.dimension == 0 { last + size * i } else { i + size * last })
    }

    /// The densities that a neighbor of the same level on a side needs.
    pub fn edge(&self, side: Side) -> Vec<Density> {
        self.edge_cells(side).map(|at| self.density(at)).collect()
    }

    /// The densities that a finer neighbor at one half of a side needs: each of these cells touches two of its cells.
    pub fn half_edge(&self, side: Side, half: usize) -> Vec<Density> {
        let cells = self.edge_cells(side).skip(half * self.size / 2).take(self.size / 2);
        cells.flat_map(|at| [self.density(at); 2]).collect()
    }

    /// Computes the fluxes through a side from the cells of the neighbor, which has the same level or is coarser.
    pub fn set_neighbor(&mut self, side: Side, neighbor: &[Density]) {
        let d = usize::from(side.dimension);
        let fluxes = self.edge_cells(side).zip(neighbor).map(|(at, &other)| {
            let own = self.density(at);
            let (lower, upper) = if side.upper { (own, other) } else { (other, own) };
            self.quanta(flux(lower, upper, d))
        });
        self.fluxes[side_number(side)] = fluxes.collect();
    }

    /// The fluxes through a side, for a coarser neighbor: the sums over two cells each.
    pub fn coarse_fluxes(&self, side: Side) -> Vec<Quanta> {
        let pairs = self.fluxes[side_number(side)].chunks_exact(2);
        pairs.map(|pair| std::array::from_fn(|k| pair[0][k] + pair[1][k])).collect()
    }

    /// Sets the fluxes through one half of a side to those of the finer neighbor there.
    pub fn set_fluxes(&mut self, side: Side, half: usize, fluxes: &[Quanta]) {
        let (size, all) = (self.size, &mut self.fluxes[side_number(side)]);
        all.resize(size, [0; 4]);
        all[half * size / 2..][..fluxes.len()].copy_from_slice(fluxes);
    }

    /// The quanta that flow through the side of a cell in a step.
    fn quanta(&self, flux: Density) -> Quanta {
        let scale = step() * self.width as f64 * QUANTA;
        flux.map(|flux| (flux * scale).round() as i64)
    }

    /// Advances the cells by a step, when the fluxes through all sides are known.
    pub fn advance(&mut self) {
        let size = self.size;
        let densities: Vec<Density> = (0..self.cells()).map(|at| self.density(at)).collect();
        let mut move_quanta = |from: usize, to: usize, quanta: Quanta| {
            for (k, quanta) in quanta.into_iter().enumerate() {
                self.contents[from][k] -= quanta;
                self.contents[to][k] += quanta;
            }
        };
        let scale = step() * self.width as f64 * QUANTA;
        for (d, stride) in [(0, 1), (1, size)] {
            for at in (0..size * size).filter(|at| at / stride % size + 1 < size) {
                let flux = flux(densities[at], densities[at + stride], d);
                move_quanta(at, at + stride, flux.map(|flux| (flux * scale).round() as i64));
            }
        }
        for (side, fluxes) in SIDES.into_iter().zip(std::mem::take(&mut self.fluxes)) {
            let sign = if side.upper { -1 } else { 1 };
            for (at, flux) in self.edge_cells(side).zip(fluxes) {
                (0..4).for_each(|k| self.contents[at][k] += sign * flux[k]);
            }
        }
    }

    /// The largest relative difference of mass or pressure between neighboring cells of the block.
    pub fn roughness(&self) -> f64 {
        let size = self.size;
        let values: Vec<[f64; 2]> = (0..self.cells())
            .map(|at| {
                let density = self.density(at);
                [density[0], pressure(density)]
            })
            .collect();
        let mut largest = 0.0;
        for stride in [1, size] {
            for at in (0..size * size).filter(|at| at / stride % size + 1 < size) {
                for (&a, &b) in values[at].iter().zip(&values[at + stride]) {
                    largest = f64::max(largest, (a - b).abs() / a.min(b));
                }
            }
        }
        largest
    }

    /// The four blocks that replace this block: every cell is divided into four, and no quantum is lost.
    pub fn refined(&self) -> [Gas; 4] {
        let (size, half) = (self.size, self.size / 2);
        [0, 1, 2, 3].map(|quarter| {
            let mut fine = Gas::empty(size, self.width / 2);
            for (at, cell) in fine.contents.iter_mut().enumerate() {
                let (x, y) = (at % size, at / size);
                let coarse = self.contents[quarter % 2 * half + x / 2 + size * (quarter / 2 * half + y / 2)];
                let number = number([0, x as i32, y as i32]) as i64;
                // The four parts differ by at most one quantum.
                *cell = coarse.map(|quanta| (quanta + number).div_euclid(4));
            }
            fine
        })
    }

    /// The cells that replace this block in its coarser parent.
    pub fn coarsened(&self) -> Vec<Quanta> {
        let (size, half) = (self.size, self.size / 2);
        let sum = |at: usize| {
            let first = at % half * 2 + size * (at / half * 2);
            let four = [first, first + 1, first + size, first + size + 1].map(|at| self.contents[at]);
            std::array::from_fn(|k| four.iter().map(|quanta| quanta[k]).sum())
        };
        (0..half * half).map(sum).collect()
    }

    /// Sets the cells that replace a finer block.
    pub fn set_quarter(&mut self, quarter: usize, cells: &[Quanta]) {
        let (size, half) = (self.size, self.size / 2);
        for (at, &cell) in cells.iter().enumerate() {
            self.contents[quarter % 2 * half + at % half + size * (quarter / 2 * half + at / half)] = cell;
        }
    }

    /// The sums over all cells.
    pub fn totals(&self) -> Quanta {
        std::array::from_fn(|k| self.contents.iter().map(|cell| cell[k]).sum())
    }

    /// A hash of all cells and of the position of the block.
    pub fn checksum(&self, position: [i32; 3]) -> i64 {
        let start = position.iter().fold(0, |hash, &x| splitmix(hash ^ x as u64));
        let cells = self.contents.iter().flatten();
        // Sums of 2^23 such hashes fit.
        (cells.fold(start, |hash, &quanta| splitmix(hash ^ quanta as u64)) >> 24) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refinement_and_coarsening_keep_every_quantum() {
        let mut gas = Gas::new(8, 4, [1, 1], [60.0; 2]);
        for (at, cell) in gas.contents.iter_mut().enumerate() {
            cell[at % 4] += 7 * at as i64 - 90;
        }
        let mut coarse = Gas::empty(8, 4);
        let mut totals = [0; 4];
        for (quarter, fine) in gas.refined().iter().enumerate() {
            totals = std::array::from_fn(|k| totals[k] + fine.totals()[k]);
            coarse.set_quarter(quarter, &fine.coarsened());
        }
        assert_eq!(totals, gas.totals());
        assert_eq!(coarse, gas);
    }

    #[test]
    fn a_uniform_flow_does_not_change() {
        let mut gas = Gas::new(4, 1, [0, 0], [1e6; 2]);
        let before = gas.clone();
        for side in SIDES {
            let edge = gas.edge(side.opposite());
            gas.set_neighbor(side, &edge);
        }
        gas.advance();
        assert_eq!(gas, before);
    }

    #[test]
    fn a_shock_tube_has_the_exact_pressure_between_its_waves() {
        // Sod's tube: density and pressure 1 on the left, 1/8 and 1/10 on the right; the exact pressure is 0.30313.
        let size = 100;
        let mut gas = Gas::empty(size, 1);
        let scale = gas.scale();
        for (at, cell) in gas.contents.iter_mut().enumerate() {
            let density = if at % size < size / 2 { [1.0, 0.0, 0.0, 2.5] } else { [0.125, 0.0, 0.0, 0.25] };
            *cell = density.map(|density| (density * scale).round() as i64);
        }
        for _ in 0..300 {
            for side in SIDES {
                // Along the tube the ends are open, across it the gas is uniform.
                let edge = gas.edge(if side.dimension == 0 { side } else { side.opposite() });
                gas.set_neighbor(side, &edge);
            }
            gas.advance();
        }
        let middle = pressure(gas.density(size / 2 + 5));
        assert!((middle - 0.30313).abs() < 0.003, "{middle}");
    }
}
