//! Molecular dynamics, after LeanMD: a cell of space holds particles, and for each pair of neighboring
//! cells (and for each cell by itself) a compute finds the forces between them.
//!
//! In a step every cell sends its 27 computes the positions of its particles, gets their forces back and
//! moves the particles; every 20 steps particles that left their cell are handed to the neighbors. Cells
//! stay where they are, computes take part in load balancing. What comes for cells is expedited: 27 computes wait
//! for a cell that has little to do. (In LeanMD forces are reduced on their way by Charm++'s multicast library,
//! whose entries are expedited.) The task graph of this program, without the
//! program, is `leanmd:..` ([`equipoise_strategies::graph`]).

use crate::command::Outcome;
use crate::particles::{Forces, HERE, Particles, between, offset, sigma, within};
use clap::ValueEnum;
use equipoise::prelude::*;
use equipoise::{Report, reduce};
use equipoise_strategies::graph::leanmd;
use std::fmt;

/// The flags of this program.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct Options {
    /// Cells in each dimension, at least 3: the box is periodic
    #[arg(long, value_name = "XxYxZ", default_value = "4x4x4", value_parser = sizes)]
    pub cells: [i32; 3],

    /// Particles of each cell, or of the first to the last as in 100-250
    #[arg(long, value_name = "N", default_value = "100", value_parser = range)]
    pub particles: [u32; 2],

    /// Stop after so many steps
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,

    /// Steps between load-balancing steps; 0: no load balancing
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub lb_every: u32,

    /// Whether forces are computed and measured, computed and charged as the task graph has them, or only
    /// charged
    #[arg(long, value_enum, default_value_t)]
    pub forces: Work,

    /// A cell puts its computes on the PEs after its own, one on each, as LeanMD does; without this they start
    /// where --initial says
    #[arg(long)]
    pub spread: bool,
}

/// What forces cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// What they take.
    #[default]
    Measured,
    /// What the task graph says: 1 ns a pair, 10 ns a force, 50 ns a particle.
    Charged,
    /// The same, and nothing is computed: no particle moves.
    Modelled,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            cells: [4; 3],
            particles: [100; 2],
            iterations: 20,
            lb_every: 10,
            forces: Work::Measured,
            spread: false,
        }
    }
}

/// There are 14 computes for each cell, and both have numbers of 32 bits.
const MOST_CELLS: i128 = 1 << 24;

fn sizes(text: &str) -> Result<[i32; 3], String> {
    let sizes: Option<Vec<i32>> =
        text.split('x').map(|size| size.parse().ok().filter(|&it| it >= 3)).collect();
    let sizes = sizes.and_then(|sizes| <[i32; 3]>::try_from(sizes).ok());
    let fits = |sizes: &[i32; 3]| sizes.iter().map(|&size| i128::from(size)).product::<i128>() <= MOST_CELLS;
    sizes.filter(fits).ok_or_else(|| {
        format!("write three sizes of at least 3 with at most {MOST_CELLS} cells in all, such as 4x4x4")
    })
}

fn range(text: &str) -> Result<[u32; 2], String> {
    let number = |text: &str| text.parse().ok().filter(|&it| it <= 1 << 20);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = number(first).zip(number(last)).map(|(first, last)| [first, last]);
    range.ok_or_else(|| "write a number up to 1048576, or from the first to the last as in 100-250".into())
}

/// What comes out: the same on any number of PEs, whatever moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Motion {
    /// How many steps there were.
    pub iterations: u32,
    /// How many particles, at the end.
    pub particles: u64,
    /// Their kinetic and potential energy in the first step, in units of the well depth.
    pub first_energy: [f64; 2],
    /// The same in the last.
    pub last_energy: [f64; 2],
}

/// Steps between two in which particles that left their cell are handed on.
const HAND_ON: u32 = 20;

#[derive(Serialize, Deserialize)]
struct Cell {
    options: Options,
    /// The computes, once it has been told.
    computes: Option<Array<Compute>>,
    iteration: u32,
    particles: Particles,
    /// What came back in this step, by neighbor: forces and potential energy.
    forces: Vec<Option<(Vec<f64>, f64)>>,
    /// Whether particles are being handed on, and how many neighbors have yet to.
    handing_on: bool,
    missing: u32,
    /// Kinetic and potential energy in the first step.
    first: [f64; 2],
    done: Exit<Motion>,
}

#[chare(index = [i32; 3], pinned, expedited)]
impl Cell {
    /// Learns who the computes are, and begins.
    #[entry]
    fn start(&mut self, cx: &Cx<Self>, computes: Array<Compute>) {
        self.charge(cx, 0);
        self.computes = Some(computes);
        self.step(cx);
    }

    /// Takes the forces of the particles of a neighbor, or of the cell itself; when all are there the
    /// particles move.
    #[entry]
    fn forces(&mut self, cx: &Cx<Self>, neighbor: u32, forces: Vec<f64>, potential: f64) {
        self.forces[neighbor as usize] = Some((forces, potential));
        if self.forces.iter().any(Option::is_none) {
            return self.charge(cx, 0);
        }
        self.charge(cx, self.particles.count());
        let energy = self.moves();
        self.iteration += 1;
        if self.iteration == 1 {
            self.first = [energy[1], energy[2]];
        }
        if self.iteration == self.options.iterations {
            cx.peer([0; 3]).contribute().ended([energy, self.first.to_vec()].concat());
        } else if self.iteration.is_multiple_of(HAND_ON) {
            self.hand_on(cx);
        } else {
            self.step(cx);
        }
    }

    /// Takes particles from a neighbor; those of a neighbor that is ahead wait.
    #[entry(when = self.handing_on && iteration == self.iteration)]
    fn take(&mut self, cx: &Cx<Self>, iteration: u32, particles: Particles) {
        self.charge(cx, particles.count());
        self.particles.join(particles);
        self.missing -= 1;
        if self.missing == 0 {
            self.handing_on = false;
            self.step(cx);
        }
    }

    /// Learns how many particles there are, and their energies in the last step and in the first.
    #[entry(reduce = reduce::sums)]
    fn ended(&mut self, cx: &Cx<Self>, sums: Vec<f64>) {
        self.charge(cx, 0);
        let motion = Motion {
            iterations: self.iteration,
            particles: sums[0] as u64,
            first_energy: [sums[3], sums[4]],
            last_energy: [sums[1], sums[2]],
        };
        self.done.exit(cx, motion);
    }
}

impl Cell {
    /// Starts a step: tells every compute where the particles are.
    fn step(&mut self, cx: &Cx<Self>) {
        self.forces = vec![None; 27];
        let Some(computes) = self.computes else { return };
        for neighbor in 0..27 {
            let (compute, side) = compute_of(cx.index(), neighbor, cx.shape());
            let positions = self.particles.positions.clone();
            computes.at(cx, compute).positions(self.iteration, side, positions);
        }
    }

    /// Moves the particles under all forces; returns their number, their kinetic energy and half of the
    /// potential energy that they share with the neighbors.
    fn moves(&mut self) -> Vec<f64> {
        let mut sum = vec![0.0; 3 * self.particles.count()];
        let mut potential = 0.0;
        // In the order of the neighbors, whoever came first: the sum of numbers depends on it.
        for (neighbor, came) in self.forces.iter().enumerate() {
            let Some((forces, energy)) = came else { continue };
            potential += if neighbor == HERE { *energy } else { 0.5 * energy };
            sum.iter_mut().zip(forces).for_each(|(sum, force)| *sum += force);
        }
        let moves = self.options.forces != Work::Modelled;
        let kinetic = if moves { self.particles.integrate(&sum) } else { 0.0 };
        vec![self.particles.count() as f64, kinetic, potential]
    }

    fn hand_on(&mut self, cx: &Cx<Self>) {
        let gone = self.particles.leavers();
        (self.handing_on, self.missing) = (true, 26);
        for (neighbor, particles) in gone.into_iter().enumerate().filter(|(neighbor, _)| *neighbor != HERE) {
            let to = wrapped(cx.index(), offset(neighbor), cx.shape());
            cx.peer(to).take(self.iteration, particles);
        }
    }

    fn charge(&self, cx: &Cx<Self>, particles: usize) {
        if self.options.forces != Work::Measured {
            cx.charge(leanmd::particle_seconds(particles as u64));
        }
    }
}

/// The forces between two cells, or in one. A cell has 14 of them: the first for itself, the others for the
/// neighbors after it; the index is that number and then the cell.
#[derive(Serialize, Deserialize)]
struct Compute {
    options: Options,
    cells: Array<Cell>,
    iteration: u32,
    /// Whether it is at sync.
    balancing: bool,
    /// Positions that came for this step, of its own cell and of the other.
    positions: [Option<Vec<f64>>; 2],
}

#[chare(index = [i32; 4], sync)]
impl Compute {
    /// Takes the positions of a cell; when all are there it answers with the forces.
    #[entry(when = iteration == self.iteration && !self.balancing)]
    fn positions(&mut self, cx: &Cx<Self>, iteration: u32, side: u32, positions: Vec<f64>) {
        self.positions[side as usize] = Some(positions);
        let [number, x, y, z] = cx.index();
        let [_, sx, sy, sz] = cx.shape();
        let neighbor = HERE + number as usize;
        if neighbor == HERE {
            self.positions[1] = Some(Vec::new());
        }
        let [Some(here), Some(there)] = &self.positions else { return self.charge(cx, [0; 2], HERE) };
        self.charge(cx, [here.len(), there.len()], neighbor);
        let Forces { on: [on_here, on_there], potential } = self.forces(here, there, neighbor);
        self.cells.at(cx, [x, y, z]).forces(neighbor as u32, on_here, potential);
        if neighbor != HERE {
            let other = wrapped([x, y, z], offset(neighbor), [sx, sy, sz]);
            self.cells.at(cx, other).forces(26 - neighbor as u32, on_there, potential);
        }
        self.positions = [None, None];
        self.iteration += 1;
        let Options { iterations, lb_every, .. } = self.options;
        if self.iteration < iterations && self.iteration.is_multiple_of(lb_every) {
            self.balancing = true;
            cx.at_sync().resumed();
        }
    }

    /// Goes on after load balancing.
    #[entry]
    fn resumed(&mut self, cx: &Cx<Self>) {
        self.charge(cx, [0; 2], HERE);
        self.balancing = false;
    }
}

impl Compute {
    /// What the particles of two cells do to each other, or those of one if it is no neighbor.
    fn forces(&self, here: &[f64], there: &[f64], neighbor: usize) -> Forces {
        let [first, last] = self.options.particles;
        let sigma = sigma(first.max(last) as usize);
        match self.options.forces {
            Work::Modelled => Forces { on: [vec![0.0; here.len()], vec![0.0; there.len()]], potential: 0.0 },
            _ if neighbor == HERE => within(here, sigma),
            _ => between(here, there, offset(neighbor), sigma),
        }
    }

    /// Says what the forces between so many coordinates of two cells cost.
    fn charge(&self, cx: &Cx<Self>, coordinates: [usize; 2], neighbor: usize) {
        if self.options.forces == Work::Measured {
            return;
        }
        let [here, there] = coordinates.map(|coordinates| coordinates as u64 / 3);
        let apart = offset(neighbor).iter().filter(|&&step| step != 0).count();
        let pairs = if neighbor == HERE { here * here.saturating_sub(1) / 2 } else { here * there };
        cx.charge(leanmd::pair_seconds(apart, pairs));
    }
}

/// The index `offset` away in the periodic box.
fn wrapped(index: [i32; 3], offset: [i32; 3], shape: [i32; 3]) -> [i32; 3] {
    std::array::from_fn(|i| (index[i] + offset[i]).rem_euclid(shape[i]))
}

/// The compute that a cell shares with a neighbor, and which side of it the cell is.
fn compute_of(cell: [i32; 3], neighbor: usize, shape: [i32; 3]) -> ([i32; 4], u32) {
    let (owner, number, side) = match neighbor.checked_sub(HERE) {
        Some(number) => (cell, number, 0),
        None => (wrapped(cell, offset(neighbor), shape), HERE - neighbor, 1),
    };
    ([number as i32, owner[0], owner[1], owner[2]], side)
}

/// Runs the program.
pub fn simulate(config: Config, options: &Options) -> Report<Motion> {
    let cells = options.cells;
    let [x, y, z] = cells.map(|size| size as u64);
    let [first, last] = options.particles.map(u64::from);
    equipoise::run(config, move |pe, done| {
        let array = pe.array(cells, |[i, j, k]| {
            let cell = i as u64 + x * (j as u64 + y * k as u64);
            let count = leanmd::particles(first, last, cell, x * y * z);
            Cell {
                options: options.clone(),
                computes: None,
                iteration: 0,
                // Numbers apart, so that every particle has its own.
                particles: Particles::spread(count as usize, cell << 32),
                forces: Vec::new(),
                handing_on: false,
                missing: 0,
                first: [0.0; 2],
                done,
            }
        });
        let [sx, sy, sz] = cells;
        let compute = |_| Compute {
            options: options.clone(),
            cells: array,
            iteration: 0,
            balancing: false,
            positions: [None, None],
        };
        let shape = [14, sx, sy, sz];
        let computes = if options.spread {
            let (cells, pes) = (x * y * z, pe.pes() as u64);
            // Cells are in blocks, which is the default.
            let place = |[number, i, j, k]: [i32; 4]| {
                let cell = i as u64 + x * (j as u64 + y * k as u64);
                Pe(((cell * pes / cells + 1 + number as u64) % pes) as u32)
            };
            pe.array_placed(shape, place, compute)
        } else {
            pe.array(shape, compute)
        };
        pe.main(move |pe| array.all(pe).start(computes));
    })
}

impl Outcome for Motion {
    fn iterations(&self) -> u32 {
        self.iterations
    }
}

impl fmt::Display for Motion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |[kinetic, potential]: [f64; 2]| {
            format!("{:.4} (kinetic {kinetic:.4}, potential {potential:.4})", kinetic + potential)
        };
        writeln!(f, "steps         {}", self.iterations)?;
        writeln!(f, "particles     {}", self.particles)?;
        writeln!(f, "first energy  {}", shown(self.first_energy))?;
        write!(f, "last energy   {}", shown(self.last_energy))
    }
}
