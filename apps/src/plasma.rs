//! The particles and the field of a block of the program [`pic`](crate::pic), and a step of both.
//!
//! The scheme is that of Yee (1966) for the field, of Boris for the motion, and of Umeda et al. (2003) for
//! currents, whose charge is that of the particles (the "zigzag" scheme). Positions and currents are integers, so the
//! continuity equation holds exactly, and sums do not depend on their order.

use equipoise_model::random::splitmix;
use serde::{Deserialize, Serialize};
use std::ops::Range;

use crate::cells::{Cells, Side};
use crate::particles::noise;

/// Positions count in this fraction of the width of a cell.
const UNIT: i64 = 1 << 20;

/// The time of a step. Cells have the width 1, and the speed of light is 1.
const STEP: f64 = 0.5;

/// The plasma frequency at the center of the cloud.
const PLASMA_FREQUENCY: f64 = 0.2;

/// The thermal velocity of electrons: the Debye length should not be much less than a cell.
const THERMAL: f64 = 0.1;

/// The mass of an ion, in masses of an electron.
const ION_MASS: f64 = 100.0;

/// Energies and momenta are summed as integers in this unit, so that the order of the sum does not matter.
pub const QUANTUM: f64 = 1.0 / (1u64 << 32) as f64;

/// An electron or an ion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Particle {
    /// Even for electrons and odd for ions.
    id: u64,
    /// The position relative to the corner of the block, in [`UNIT`]s.
    at: [i64; 2],
    /// The momentum per mass, half a step before the position.
    momentum: [f64; 2],
}

impl Particle {
    /// The sign of the charge, and the mass.
    fn kind(&self) -> (i64, f64) {
        if self.id.is_multiple_of(2) { (-1, 1.0) } else { (1, ION_MASS) }
    }

    /// The cell of the particle, and the position in the cell as a fraction.
    fn cell(&self) -> ([i64; 2], [f64; 2]) {
        let fraction = self.at.map(|x| x.rem_euclid(UNIT) as f64 / UNIT as f64);
        (self.at.map(|x| x.div_euclid(UNIT)), fraction)
    }
}

/// The Lorentz factor of a momentum per mass.
fn lorentz([x, y]: [f64; 2]) -> f64 {
    (1.0 + x * x + y * y).sqrt()
}

/// Integers on the nodes of a block, and on the nodes next to it where its particles deposit: from -1 to one after
/// the first node of the next block.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Nodes {
    extent: [i64; 2],
    #[serde(with = "equipoise::numbers")]
    values: Vec<i64>,
}

impl Nodes {
    fn new(extent: [i64; 2]) -> Self {
        Nodes { extent, values: vec![0; extent.iter().map(|size| (size + 3) as usize).product()] }
    }

    fn index(&self, [i, j]: [i64; 2]) -> usize {
        ((i + 1) + (j + 1) * (self.extent[0] + 3)) as usize
    }

    fn add(&mut self, at: [i64; 2], value: i64) {
        let index = self.index(at);
        self.values[index] += value;
    }

    fn at(&self, at: [i64; 2]) -> i64 {
        self.values[self.index(at)]
    }

    /// The nodes that belong to the neighbor at an offset.
    fn part(&self, toward: [i64; 2]) -> impl Iterator<Item = [i64; 2]> + use<> {
        let range = |d: usize| -> Range<i64> {
            let size = self.extent[d];
            [-1..0, 0..size, size..size + 2][(toward[d] + 1) as usize].clone()
        };
        let columns = range(0);
        range(1).flat_map(move |j| columns.clone().map(move |i| [i, j]))
    }

    /// The values that belong to the neighbor at an offset.
    fn deposits(&self, toward: [i64; 2]) -> Vec<i64> {
        self.part(toward).map(|at| self.at(at)).collect()
    }

    /// Adds the [`deposits`](Self::deposits) of a neighbor, which sent them toward this offset.
    fn join(&mut self, toward: [i64; 2], deposits: &[i64]) {
        let extent = self.extent;
        for (at, &value) in self.part(toward).zip(deposits) {
            self.add([at[0] - toward[0] * extent[0], at[1] - toward[1] * extent[1]], value);
        }
    }
}

/// What a block sends to a neighbor after the motion of the particles.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Handover {
    /// Particles that left the block.
    particles: Vec<Particle>,
    /// Currents along each dimension; at the end of the run, charges and nothing.
    deposits: [Vec<i64>; 2],
    /// The edge of the magnetic field for the two upper neighbors; at the end of the run, of the electric field.
    #[serde(with = "equipoise::numbers")]
    edge: Vec<f64>,
}

/// The offsets of the 8 neighbors.
pub fn offsets() -> impl Iterator<Item = [i64; 2]> {
    (0..9).filter(|&number| number != 4).map(|number| [number / 3 - 1, number % 3 - 1])
}

/// The side of a block that faces the neighbor at an offset, except for neighbors at corners.
fn side([x, y]: [i64; 2]) -> Option<Side> {
    let side = |dimension, step| Side { dimension, upper: step > 0 };
    (x == 0 || y == 0).then(|| if y == 0 { side(0, x) } else { side(1, y) })
}

/// A box of cells with its particles and its part of the field.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Patch {
    weight: f64,
    /// The position of the corner in the world, in cells.
    origin: [i64; 2],
    extent: [i64; 2],
    /// Sorted by id at the beginning of a step.
    pub particles: Vec<Particle>,
    /// The component along the first dimension in the middle of horizontal edges, along the second of vertical edges.
    electric: [Cells<2>; 2],
    /// In the middle of cells, perpendicular to the plane.
    magnetic: Cells<2>,
    /// Charge times distance along each dimension in this step, in halves of a `UNIT` squared.
    currents: [Nodes; 2],
}

impl Patch {
    /// The cells at `origin` at the beginning of a run.
    pub fn new(cloud: Cloud, origin: [i64; 2], extent: [i32; 2]) -> Self {
        let zero = || Cells::new(extent, |_| 0.0);
        let size = extent.map(i64::from);
        let mut particles = Vec::new();
        for (j, i) in (0..size[1]).flat_map(|j| (0..size[0]).map(move |i| (j, i))) {
            cloud.pairs(origin, [i, j], &mut particles);
        }
        particles.sort_by_key(|particle: &Particle| particle.id);
        Patch {
            weight: cloud.weight(),
            origin,
            extent: size,
            particles,
            electric: [zero(), zero()],
            magnetic: zero(),
            currents: [Nodes::new(size), Nodes::new(size)],
        }
    }

    /// The cells.
    pub fn cells(&self) -> impl Iterator<Item = [i64; 2]> + use<> {
        let [width, height] = self.extent;
        (0..height).flat_map(move |j| (0..width).map(move |i| [i, j]))
    }

    /// Advances the magnetic field by half a step.
    pub fn advance_magnetic(&mut self) {
        for [i, j] in self.cells() {
            let [x, y] = &self.electric;
            let curl = (y.at([i + 1, j]) - y.at([i, j])) - (x.at([i, j + 1]) - x.at([i, j]));
            self.magnetic.add([i, j], -0.5 * STEP * curl);
        }
    }

    /// Advances the electric field by a step.
    fn advance_electric(&mut self) {
        let scale = self.weight / (2 * UNIT * UNIT) as f64;
        for [i, j] in self.cells() {
            let b = self.magnetic.at([i, j]);
            let change = [b - self.magnetic.at([i, j - 1]), self.magnetic.at([i - 1, j]) - b];
            for (d, change) in change.into_iter().enumerate() {
                let current = self.currents[d].at([i, j]) as f64;
                self.electric[d].add([i, j], STEP * change - scale * current);
            }
        }
    }

    /// Moves all particles by a step and deposits their currents; returns kinetic energy and momentum at the beginning
    /// of the step, in quanta.
    pub fn push(&mut self) -> [i64; 2] {
        self.currents = [Nodes::new(self.extent), Nodes::new(self.extent)];
        let mut sums = [0; 2];
        let mut particles = std::mem::take(&mut self.particles);
        for particle in &mut particles {
            let (sign, mass) = particle.kind();
            let (electric, magnetic) = self.field(particle);
            let factor = 0.5 * STEP * sign as f64 / mass;
            // Boris: half of the acceleration, a rotation, and the other half.
            let [x, y] = [0, 1].map(|d| particle.momentum[d] + factor * electric[d]);
            let gamma = lorentz([x, y]);
            sums[0] += (mass * (gamma - 1.0) / QUANTUM).round() as i64;
            sums[1] += (mass * x / QUANTUM).round() as i64;
            let t = factor * magnetic / gamma;
            let s = 2.0 * t / (1.0 + t * t);
            let [p, q] = [x + y * t, y - x * t];
            let rotated = [x + q * s, y - p * s];
            particle.momentum = [0, 1].map(|d| rotated[d] + factor * electric[d]);
            let velocity = STEP * UNIT as f64 / lorentz(particle.momentum);
            let from = particle.at;
            particle.at = [0, 1].map(|d| from[d] + (particle.momentum[d] * velocity).round() as i64);
            self.deposit(sign, from, particle.at);
        }
        self.particles = particles;
        sums
    }

    /// The electric and the magnetic field at a particle. The electric field is interpolated as currents are deposited,
    /// which conserves energy.
    fn field(&self, particle: &Particle) -> ([f64; 2], f64) {
        let ([i, j], [fx, fy]) = particle.cell();
        let [x, y] = &self.electric;
        let electric = [
            x.at([i, j]) * (1.0 - fy) + x.at([i, j + 1]) * fy,
            y.at([i, j]) * (1.0 - fx) + y.at([i + 1, j]) * fx,
        ];
        (electric, self.magnetic.at([i, j]))
    }

    /// Deposits the current of a particle that moves by less than a cell, on two straight lines. The point where they
    /// meet is on the boundary of both cells.
    fn deposit(&mut self, sign: i64, from: [i64; 2], to: [i64; 2]) {
        let cells = [from, to].map(|at| at.map(|x| x.div_euclid(UNIT)));
        let middle = [0, 1].map(|d| {
            let (before, after) = (cells[0][d], cells[1][d]);
            if before == after { (from[d] + to[d]).div_euclid(2) } else { before.max(after) * UNIT }
        });
        for ([i, j], a, b) in [(cells[0], from, middle), (cells[1], middle, to)] {
            let moved = [0, 1].map(|d| sign * (b[d] - a[d]));
            let twice = [a[0] + b[0] - 2 * i * UNIT, a[1] + b[1] - 2 * j * UNIT];
            self.currents[0].add([i, j], moved[0] * (2 * UNIT - twice[1]));
            self.currents[0].add([i, j + 1], moved[0] * twice[1]);
            self.currents[1].add([i, j], moved[1] * (2 * UNIT - twice[0]));
            self.currents[1].add([i + 1, j], moved[1] * twice[0]);
        }
    }

    /// The charges of the particles on the nodes, in halves of a `UNIT` squared.
    pub fn charges(&self) -> Nodes {
        let mut charges = Nodes::new(self.extent);
        for particle in &self.particles {
            let (sign, _) = particle.kind();
            let [i, j] = particle.at.map(|x| x.div_euclid(UNIT));
            let [x, y] = particle.at.map(|x| x.rem_euclid(UNIT));
            for (node, weight) in [
                ([i, j], (UNIT - x) * (UNIT - y)),
                ([i + 1, j], x * (UNIT - y)),
                ([i, j + 1], (UNIT - x) * y),
                ([i + 1, j + 1], x * y),
            ] {
                charges.add(node, 2 * sign * weight);
            }
        }
        charges
    }

    /// Removes what belongs to the neighbor at an offset after [`push`](Self::push).
    pub fn handover(&mut self, toward: [i64; 2]) -> Handover {
        let size = self.extent.map(|size| size * UNIT);
        let leaves = |particle: &mut Particle| {
            let mut at = particle.at.iter().zip(size).zip(toward);
            at.all(|((x, size), toward)| x.div_euclid(size) == toward)
        };
        let mut particles: Vec<Particle> = self.particles.extract_if(.., leaves).collect();
        for particle in &mut particles {
            particle.at = [0, 1].map(|d| particle.at[d] - toward[d] * size[d]);
        }
        let upper = side(toward).filter(|side| side.upper);
        Handover {
            particles,
            deposits: [0, 1].map(|d| self.currents[d].deposits(toward)),
            edge: upper.map(|side| self.magnetic.edge(side)).unwrap_or_default(),
        }
    }

    /// Receives what a neighbor sent toward this offset.
    pub fn receive(&mut self, toward: [i64; 2], handover: Handover) {
        self.particles.extend(handover.particles);
        for (nodes, deposits) in self.currents.iter_mut().zip(&handover.deposits) {
            nodes.join(toward, deposits);
        }
        if let Some(side) = side(toward).filter(|side| side.upper) {
            self.magnetic.set_halo(side.opposite(), &handover.edge);
        }
    }

    /// Advances the electric field when everything has arrived.
    pub fn finish_motion(&mut self) {
        // The order of arrival must not matter.
        self.particles.sort_by_key(|particle| particle.id);
        self.advance_electric();
    }

    /// The edge of the electric field that the lower neighbor along a dimension needs: there, the component along the
    /// other dimension is in the halo.
    pub fn electric_edge(&self, dimension: u8) -> Vec<f64> {
        self.electric[1 - usize::from(dimension)].edge(Side { dimension, upper: false })
    }

    /// Sets the [`electric_edge`](Self::electric_edge) of the upper neighbor along a dimension.
    pub fn set_electric(&mut self, dimension: u8, edge: &[f64]) {
        self.electric[1 - usize::from(dimension)].set_halo(Side { dimension, upper: true }, edge);
    }

    /// The energy of the field, in quanta.
    pub fn field_energy(&self) -> i64 {
        let energy = |at| {
            let [x, y] = [0, 1].map(|d| self.electric[d].at(at));
            let b = self.magnetic.at(at);
            (0.5 * (x * x + y * y + b * b) / self.weight / QUANTUM).round() as i64
        };
        self.cells().map(energy).sum()
    }

    /// What the neighbor at an offset needs for [`gauss_error`](Self::gauss_error).
    pub fn gauss_handover(&self, toward: [i64; 2], charges: &Nodes) -> Handover {
        let upper = side(toward).filter(|side| side.upper);
        let edge = upper.map(|side| self.electric[usize::from(side.dimension)].edge(side));
        let deposits = [charges.deposits(toward), Vec::new()];
        Handover { deposits, edge: edge.unwrap_or_default(), ..Handover::default() }
    }

    /// Receives what a neighbor sent toward this offset.
    pub fn receive_for_gauss(&mut self, toward: [i64; 2], handover: &Handover, charges: &mut Nodes) {
        charges.join(toward, &handover.deposits[0]);
        if let Some(side) = side(toward).filter(|side| side.upper) {
            self.electric[usize::from(side.dimension)].set_halo(side.opposite(), &handover.edge);
        }
    }

    /// The largest difference between the divergence of the electric field and the charge of a cell.
    pub fn gauss_error(&self, charges: &Nodes) -> f64 {
        let error = |[i, j]: [i64; 2]| {
            let [x, y] = &self.electric;
            let divergence = (x.at([i, j]) - x.at([i - 1, j])) + (y.at([i, j]) - y.at([i, j - 1]));
            let charge = charges.at([i, j]) as f64 / (2 * UNIT * UNIT) as f64;
            (divergence / self.weight - charge).abs()
        };
        self.cells().map(error).fold(0.0, f64::max)
    }

    /// The sum of the charges of all particles.
    fn total_charge(&self) -> i64 {
        self.particles.iter().map(|particle| particle.kind().0).sum()
    }

    /// A hash of all particles and of the field, which is a sum over particles and cells.
    fn checksum(&self) -> i64 {
        // Sums of 2^23 such hashes fit.
        let hash = |parts: &[u64]| (parts.iter().fold(0, |hash, &part| splitmix(hash ^ part)) >> 24) as i64;
        let particles = self.particles.iter().map(|particle| {
            let [x, y] = [0, 1].map(|d| (particle.at[d] + self.origin[d] * UNIT) as u64);
            let [p, q] = particle.momentum.map(f64::to_bits);
            hash(&[particle.id, x, y, p, q])
        });
        let cells = self.cells().map(|at| {
            let [x, y] = [0, 1].map(|d| (at[d] + self.origin[d]) as u64);
            let [e, f] = [0, 1].map(|d| self.electric[d].at(at).to_bits());
            hash(&[x, y, e, f, self.magnetic.at(at).to_bits()])
        });
        particles.chain(cells).sum()
    }

    /// Number and charge of the particles, and the checksum.
    pub fn counts(&self) -> Vec<i64> {
        vec![self.particles.len() as i64, self.total_charge(), self.checksum()]
    }
}

/// The cloud of plasma at the beginning, in a neutral vacuum.
#[derive(Clone, Copy, Debug)]
pub struct Cloud {
    /// Electrons, and as many ions, in a cell at the center.
    pub particles: u32,
    /// Velocity along the first dimension.
    pub drift: f64,
    /// Cells of the box along each dimension.
    pub world: [i64; 2],
}

impl Cloud {
    /// The charge of a particle, which makes the plasma frequency at the center independent of the number of particles.
    fn weight(&self) -> f64 {
        PLASMA_FREQUENCY * PLASMA_FREQUENCY / f64::from(self.particles)
    }

    /// Adds the electrons and ions of a cell. The density falls from the center of the cloud, at a quarter of the
    /// world, to 0 at the distance of a quarter of the shorter side. Each electron has an ion at its place, so the
    /// field is 0.
    fn pairs(&self, origin: [i64; 2], at: [i64; 2], particles: &mut Vec<Particle>) {
        let [width, height] = self.world.map(|size| size as f64);
        let place = [0, 1].map(|d| (origin[d] + at[d]) as f64 + 0.5);
        let (x, y) = (place[0] - 0.25 * width, place[1] - 0.5 * height);
        let radius = 0.25 * width.min(height);
        let inside = (1.0 - (x * x + y * y) / (radius * radius)).max(0.0);
        let count = (f64::from(self.particles) * inside * inside).round() as u64;
        let cell = (origin[0] + at[0]) + (origin[1] + at[1]) * self.world[0];
        let bulk = self.drift / (1.0 - self.drift * self.drift).sqrt();
        for number in 0..count {
            let id = 2 * (((cell as u64) << 20) | number);
            let at = [0, 1].map(|d| at[d] * UNIT + (noise(id, d as u64) * UNIT as f64) as i64);
            for (id, thermal) in [(id, THERMAL), (id + 1, THERMAL / ION_MASS.sqrt())] {
                // The variance of a uniform distribution from -a to a is a²/3.
                let [x, y] = [2, 3].map(|salt| 3f64.sqrt() * thermal * (2.0 * noise(id, salt) - 1.0));
                particles.push(Particle { id, at, momentum: [bulk + x, y] });
            }
        }
    }
}
