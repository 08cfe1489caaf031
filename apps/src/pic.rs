//! A plasma by particles in cells: a cloud of electrons and ions drifts through a periodic box in 2D, in the
//! electromagnetic field of its own charges and currents. The load follows the cloud from block to block.
//!
//! In a step every block moves its particles, and sends to its 8 neighbors the particles that left the block and
//! the currents that these particles deposited beyond its boundary. Then it advances the field, and sends its edges to 2
//! neighbors. The scheme is that of Yee (1966) for the field, of Boris for the motion, and of Umeda et al. (2003) for
//! currents, whose charge is that of the particles (the "zigzag" scheme).
//!
//! Positions and currents are integers, so the continuity equation holds exactly, and sums do not depend on
//! their order. Every bit of the result is independent of the number of PEs, of migrations, and of the blocks.

use equipoise::prelude::*;
use equipoise::{Report, reduce};
use equipoise_model::random::splitmix;
use std::fmt;
use std::ops::Range;

use crate::cells::{Cells, Side};
use crate::command::{Outcome, seconds};
use crate::particles::noise;
use crate::stencil::Extent;

/// The flags of this program.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub struct Options {
    /// Blocks along each dimension; one number is used for both
    #[arg(long, value_name = "NxN", default_value = "8")]
    pub blocks: Extent<2>,

    /// Cells per block along each dimension, at least 2; one number is used for both
    #[arg(long, value_name = "NxN", default_value = "8", value_parser = cells)]
    pub cells: Extent<2>,

    /// The flags for blocks.
    #[command(flatten)]
    #[serde(flatten)]
    pub rules: Rules,
}

/// The flags that every block needs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, clap::Args)]
pub struct Rules {
    /// Electrons, and as many ions, in a cell at the center of the cloud
    #[arg(long, value_name = "N", default_value_t = Self::default().particles)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub particles: u32,

    /// Velocity of the cloud along the first dimension, as a fraction of the speed of light
    #[arg(long, value_name = "FRACTION", default_value_t = Self::default().drift, value_parser = drift)]
    pub drift: f64,

    /// Number of steps; light crosses a cell in 2 steps
    #[arg(long, value_name = "N", default_value_t = Self::default().iterations)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,

    /// Steps between load-balancing steps; 0: no load balancing
    #[arg(long, value_name = "N", default_value_t = Self::default().lb_every)]
    pub lb_every: u32,

    /// Load of a step of a particle, in seconds; the load of a cell is a fifth of it [default: the load is measured]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub charge: Option<f64>,
}

impl Default for Rules {
    /// The defaults of the flags.
    fn default() -> Self {
        Rules { particles: 16, drift: 0.4, iterations: 200, lb_every: 20, charge: None }
    }
}

impl Rules {
    /// Whether there is a load-balancing step after this number of steps.
    fn balances(&self, steps: u32) -> bool {
        // No number of steps is a multiple of 0.
        steps < self.iterations && steps.is_multiple_of(self.lb_every)
    }

    /// The charge of a particle, which makes the plasma frequency at the center of the cloud independent of the number
    /// of particles.
    fn weight(&self) -> f64 {
        PLASMA_FREQUENCY * PLASMA_FREQUENCY / f64::from(self.particles)
    }
}

fn cells(text: &str) -> Result<Extent<2>, String> {
    let extent: Extent<2> = text.parse()?;
    if extent.0.iter().any(|&size| size < 2) {
        return Err("a block needs at least 2 cells along each dimension, such as `2x2`".into());
    }
    Ok(extent)
}

fn drift(text: &str) -> Result<f64, &'static str> {
    let drift = text.parse().ok().filter(|drift| (0.0..=0.9).contains(drift));
    drift.ok_or("expected a fraction of the speed of light from 0 to 0.9 such as 0.4")
}

/// The result. Every bit of it is independent of the number of PEs, of migrations and of the blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plasma {
    /// Number of steps.
    pub iterations: u32,
    /// Number of particles at the end.
    pub particles: i64,
    /// Sum of the charges of all particles, in charges of one particle.
    pub charge: i64,
    /// Kinetic energy and energy of the field in the first step, in rest energies of an electron.
    pub first_energy: [f64; 2],
    /// Kinetic energy and energy of the field in the last step.
    pub last_energy: [f64; 2],
    /// Momentum of all particles along the first dimension, in the first and in the last step.
    pub momentum: [f64; 2],
    /// The largest error of Gauss's law in a cell at the end, in charges of one particle.
    pub gauss_error: f64,
    /// Hash of all particles and of the field at the end.
    pub checksum: i64,
}

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
const QUANTUM: f64 = 1.0 / (1u64 << 32) as f64;

/// An electron or an ion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Particle {
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
struct Nodes {
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
struct Handover {
    /// Particles that left the block.
    particles: Vec<Particle>,
    /// Currents along each dimension; at the end of the run, charges and nothing.
    deposits: [Vec<i64>; 2],
    /// The edge of the magnetic field for the two upper neighbors; at the end of the run, of the electric field.
    #[serde(with = "equipoise::numbers")]
    edge: Vec<f64>,
}

/// The offsets of the 8 neighbors.
fn offsets() -> impl Iterator<Item = [i64; 2]> {
    (0..9).filter(|&number| number != 4).map(|number| [number / 3 - 1, number % 3 - 1])
}

/// The side of a block that faces the neighbor at an offset, except for neighbors at corners.
fn side([x, y]: [i64; 2]) -> Option<Side> {
    let side = |dimension, step| Side { dimension, upper: step > 0 };
    (x == 0 || y == 0).then(|| if y == 0 { side(0, x) } else { side(1, y) })
}

/// A box of cells with its particles and its part of the field.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Patch {
    weight: f64,
    /// The position of the corner in the world, in cells.
    origin: [i64; 2],
    extent: [i64; 2],
    /// Sorted by id at the beginning of a step.
    particles: Vec<Particle>,
    /// The component along the first dimension in the middle of horizontal edges, along the second of vertical edges.
    electric: [Cells<2>; 2],
    /// In the middle of cells, perpendicular to the plane.
    magnetic: Cells<2>,
    /// Charge times distance along each dimension in this step, in halves of a [`UNIT`] squared.
    currents: [Nodes; 2],
}

impl Patch {
    /// The cells at `origin` of a world with `world` cells, at the beginning of a run.
    fn new(rules: &Rules, world: [i64; 2], origin: [i64; 2], extent: [i32; 2]) -> Self {
        let zero = || Cells::new(extent, |_| 0.0);
        let size = extent.map(i64::from);
        let mut particles = Vec::new();
        for (j, i) in (0..size[1]).flat_map(|j| (0..size[0]).map(move |i| (j, i))) {
            pairs(rules, world, origin, [i, j], &mut particles);
        }
        particles.sort_by_key(|particle: &Particle| particle.id);
        Patch {
            weight: rules.weight(),
            origin,
            extent: size,
            particles,
            electric: [zero(), zero()],
            magnetic: zero(),
            currents: [Nodes::new(size), Nodes::new(size)],
        }
    }

    fn cells(&self) -> impl Iterator<Item = [i64; 2]> + use<> {
        let [width, height] = self.extent;
        (0..height).flat_map(move |j| (0..width).map(move |i| [i, j]))
    }

    /// Advances the magnetic field by half a step.
    fn advance_magnetic(&mut self) {
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
    fn push(&mut self) -> [i64; 2] {
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

    /// The charges of the particles on the nodes, in halves of a [`UNIT`] squared.
    fn charges(&self) -> Nodes {
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
    fn handover(&mut self, toward: [i64; 2]) -> Handover {
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
    fn receive(&mut self, toward: [i64; 2], handover: Handover) {
        self.particles.extend(handover.particles);
        for (nodes, deposits) in self.currents.iter_mut().zip(&handover.deposits) {
            nodes.join(toward, deposits);
        }
        if let Some(side) = side(toward).filter(|side| side.upper) {
            self.magnetic.set_halo(side.opposite(), &handover.edge);
        }
    }

    /// Advances the electric field when everything has arrived.
    fn finish_motion(&mut self) {
        // The order of arrival must not matter.
        self.particles.sort_by_key(|particle| particle.id);
        self.advance_electric();
    }

    /// The edge of the electric field that the lower neighbor along a dimension needs: there, the component along the
    /// other dimension is in the halo.
    fn electric_edge(&self, dimension: u8) -> Vec<f64> {
        self.electric[1 - usize::from(dimension)].edge(Side { dimension, upper: false })
    }

    fn set_electric(&mut self, dimension: u8, edge: &[f64]) {
        self.electric[1 - usize::from(dimension)].set_halo(Side { dimension, upper: true }, edge);
    }

    /// The energy of the field, in quanta.
    fn field_energy(&self) -> i64 {
        let energy = |at| {
            let [x, y] = [0, 1].map(|d| self.electric[d].at(at));
            let b = self.magnetic.at(at);
            (0.5 * (x * x + y * y + b * b) / self.weight / QUANTUM).round() as i64
        };
        self.cells().map(energy).sum()
    }

    /// What the neighbor at an offset needs for [`gauss_error`](Self::gauss_error).
    fn gauss_handover(&self, toward: [i64; 2], charges: &Nodes) -> Handover {
        let upper = side(toward).filter(|side| side.upper);
        let edge = upper.map(|side| self.electric[usize::from(side.dimension)].edge(side));
        let deposits = [charges.deposits(toward), Vec::new()];
        Handover { deposits, edge: edge.unwrap_or_default(), ..Handover::default() }
    }

    fn receive_for_gauss(&mut self, toward: [i64; 2], handover: &Handover, charges: &mut Nodes) {
        charges.join(toward, &handover.deposits[0]);
        if let Some(side) = side(toward).filter(|side| side.upper) {
            self.electric[usize::from(side.dimension)].set_halo(side.opposite(), &handover.edge);
        }
    }

    /// The largest difference between the divergence of the electric field and the charge of a cell.
    fn gauss_error(&self, charges: &Nodes) -> f64 {
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
    fn counts(&self) -> Vec<i64> {
        vec![self.particles.len() as i64, self.total_charge(), self.checksum()]
    }
}

/// Adds the electrons and ions of a cell. The density falls from the center of the cloud, at a quarter of the world, to
/// 0 at the distance of a quarter of the shorter side. Each electron has an ion at its place, so the field is 0.
fn pairs(rules: &Rules, world: [i64; 2], origin: [i64; 2], at: [i64; 2], particles: &mut Vec<Particle>) {
    let [width, height] = world.map(|size| size as f64);
    let place = [0, 1].map(|d| (origin[d] + at[d]) as f64 + 0.5);
    let (x, y) = (place[0] - 0.25 * width, place[1] - 0.5 * height);
    let radius = 0.25 * width.min(height);
    let inside = (1.0 - (x * x + y * y) / (radius * radius)).max(0.0);
    let count = (f64::from(rules.particles) * inside * inside).round() as u64;
    let cell = (origin[0] + at[0]) + (origin[1] + at[1]) * world[0];
    let bulk = rules.drift / (1.0 - rules.drift * rules.drift).sqrt();
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

#[derive(Serialize, Deserialize)]
struct Block {
    rules: Rules,
    patch: Patch,
    /// The charges on the nodes at the end.
    charges: Nodes,
    done: Exit<Plasma>,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    /// Runs all steps.
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        let mut first: Vec<i64> = Vec::new();
        let mut last: Vec<i64> = Vec::new();
        for step in 0u32..self.rules.iterations {
            last = self.push(cx, step);
            if step == 0 {
                first = last.clone();
            }
            for _ in 0u32..8 {
                when!(hand(s, toward, handover) if s == step => self.receive(cx, toward, handover));
            }
            self.advance_electric(cx, step);
            for _ in 0u32..2 {
                when!(electric(s, dimension, edge) if s == step => self.set_electric(cx, dimension, &edge));
            }
            self.patch.advance_magnetic();
            if self.rules.balances(step + 1) {
                at_sync!(cx);
                self.charge(cx, 0, 0);
            }
        }
        self.send_charges(cx);
        for _ in 0u32..8 {
            when!(hand(s, toward, handover) if s == self.rules.iterations => self.add_charges(cx, toward, &handover));
        }
        let error: f64 = reduce!(cx, f64::max, self.patch.gauss_error(&self.charges));
        let sums: Vec<i64> = reduce!(cx, reduce::sums, [&self.patch.counts()[..], &first, &last].concat());
        self.charge(cx, 0, 0);
        self.done.exit(cx, Plasma::new(self.rules.iterations, &sums, error));
    }

    /// What a neighbor sends after the motion of a step, toward an offset.
    #[entry]
    fn hand(step: u32, toward: [i64; 2], handover: Handover);

    /// The edge of the electric field of the upper neighbor along a dimension.
    #[entry]
    fn electric(step: u32, dimension: u8, edge: Vec<f64>);
}

impl Block {
    /// Moves the particles, and sends to the neighbors what belongs to them. Returns kinetic energy, momentum and energy
    /// of the field at the beginning of the step.
    fn push(&mut self, cx: &Cx<Self>, step: u32) -> Vec<i64> {
        self.charge(cx, self.patch.particles.len(), 0);
        let field = self.patch.field_energy();
        self.patch.advance_magnetic();
        let [kinetic, momentum] = self.patch.push();
        for toward in offsets() {
            cx.peer(neighbor(cx, toward)).hand(step, toward, self.patch.handover(toward));
        }
        vec![kinetic, field, momentum]
    }

    fn receive(&mut self, cx: &Cx<Self>, toward: [i64; 2], handover: Handover) {
        self.charge(cx, 0, 0);
        self.patch.receive(toward, handover);
    }

    fn advance_electric(&mut self, cx: &Cx<Self>, step: u32) {
        self.charge(cx, 0, self.patch.cells().count());
        self.patch.finish_motion();
        for dimension in [0, 1] {
            let mut toward = [0; 2];
            toward[usize::from(dimension)] = -1;
            cx.peer(neighbor(cx, toward)).electric(step, dimension, self.patch.electric_edge(dimension));
        }
    }

    fn set_electric(&mut self, cx: &Cx<Self>, dimension: u8, edge: &[f64]) {
        self.charge(cx, 0, 0);
        self.patch.set_electric(dimension, edge);
    }

    /// Sends what the neighbors need to check Gauss's law.
    fn send_charges(&mut self, cx: &Cx<Self>) {
        self.charge(cx, 0, 0);
        self.charges = self.patch.charges();
        for toward in offsets() {
            let handover = self.patch.gauss_handover(toward, &self.charges);
            cx.peer(neighbor(cx, toward)).hand(self.rules.iterations, toward, handover);
        }
    }

    fn add_charges(&mut self, cx: &Cx<Self>, toward: [i64; 2], handover: &Handover) {
        self.charge(cx, 0, 0);
        self.patch.receive_for_gauss(toward, handover, &mut self.charges);
    }

    /// Charges the load of particles and cells, unless loads are measured.
    fn charge(&self, cx: &Cx<Self>, particles: usize, cells: usize) {
        if let Some(seconds) = self.rules.charge {
            cx.charge(seconds * (particles as f64 + 0.2 * cells as f64));
        }
    }
}

/// The block at an offset in the periodic box.
fn neighbor(cx: &Cx<Block>, toward: [i64; 2]) -> [i32; 2] {
    let (index, shape) = (cx.index(), cx.shape());
    [0, 1].map(|d| (index[d] + toward[d] as i32).rem_euclid(shape[d]))
}

/// Runs the program.
pub fn simulate(config: Config, options: &Options) -> Report<Plasma> {
    let (blocks, cells, rules) = (options.blocks.0, options.cells.0, options.rules);
    let world = world(options);
    equipoise::run(config, move |pe, done| {
        let array = pe.array(blocks, |index| {
            let origin = [0, 1].map(|d| i64::from(index[d]) * i64::from(cells[d]));
            let patch = Patch::new(&rules, world, origin, cells);
            Block { rules, patch, charges: Nodes::default(), done }
        });
        pe.main(move |pe| array.all(pe).life());
    })
}

/// The cells of the box along each dimension.
fn world(options: &Options) -> [i64; 2] {
    [0, 1].map(|d| i64::from(options.blocks.0[d]) * i64::from(options.cells.0[d]))
}

/// The result of [`simulate`], computed by a loop over the steps of one block that is its own neighbor.
pub fn sequential(options: &Options) -> Plasma {
    let rules = options.rules;
    let world = world(options);
    let mut patch = Patch::new(&rules, world, [0; 2], world.map(|size| size as i32));
    let [mut first, mut last] = [[0; 3]; 2];
    for step in 0..rules.iterations {
        let field = patch.field_energy();
        patch.advance_magnetic();
        let [kinetic, momentum] = patch.push();
        last = [kinetic, field, momentum];
        if step == 0 {
            first = last;
        }
        let handovers: Vec<_> = offsets().map(|toward| (toward, patch.handover(toward))).collect();
        handovers.into_iter().for_each(|(toward, handover)| patch.receive(toward, handover));
        patch.finish_motion();
        for dimension in [0, 1] {
            patch.set_electric(dimension, &patch.electric_edge(dimension));
        }
        patch.advance_magnetic();
    }
    let mut charges = patch.charges();
    let handovers: Vec<_> =
        offsets().map(|toward| (toward, patch.gauss_handover(toward, &charges))).collect();
    for (toward, handover) in &handovers {
        patch.receive_for_gauss(*toward, handover, &mut charges);
    }
    let sums = [&patch.counts()[..], &first, &last].concat();
    Plasma::new(rules.iterations, &sums, patch.gauss_error(&charges))
}

impl Plasma {
    /// The result from the sums of all blocks: number, charge, checksum; kinetic energy, energy of the field and momentum in the
    /// first step and in the last.
    fn new(iterations: u32, sums: &[i64], gauss_error: f64) -> Self {
        let quanta = |at: usize| sums[at] as f64 * QUANTUM;
        Plasma {
            iterations,
            particles: sums[0],
            charge: sums[1],
            first_energy: [quanta(3), quanta(4)],
            last_energy: [quanta(6), quanta(7)],
            momentum: [quanta(5), quanta(8)],
            gauss_error,
            checksum: sums[2],
        }
    }
}

impl Outcome for Plasma {
    fn iterations(&self) -> u32 {
        self.iterations
    }
}

impl fmt::Display for Plasma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let energy = |[kinetic, field]: [f64; 2]| {
            format!("{:.4} (kinetic {kinetic:.4}, field {field:.4})", kinetic + field)
        };
        writeln!(f, "steps         {}", self.iterations)?;
        writeln!(f, "particles     {}, total charge {}", self.particles, self.charge)?;
        writeln!(f, "first energy  {}", energy(self.first_energy))?;
        writeln!(f, "last energy   {}", energy(self.last_energy))?;
        writeln!(f, "momentum      {:.4} first, {:.4} last", self.momentum[0], self.momentum[1])?;
        writeln!(f, "Gauss's law   largest error {:.1e} of a particle's charge", self.gauss_error)?;
        write!(f, "checksum      {:#x}", self.checksum)
    }
}
