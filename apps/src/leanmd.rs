//! Molecular dynamics, after LeanMD: a cell of space holds particles. For each pair of neighboring cells, and for each
//! cell alone, a compute calculates the forces between their particles.
//!
//! In a step every cell sends the positions of its particles to its 27 computes, receives the forces and moves the
//! particles. Every 20 steps, particles that left their cell are sent to the neighbors. Cells are pinned; computes
//! take part in load balancing. Messages to cells are expedited, because 27 computes wait for each cell, which has
//! little work. (In LeanMD the multicast library of Charm++ reduces forces on their way; its entries are expedited.)
//! The task graph of this program is the generator `leanmd:..` ([`equipoise_model::graph`]).

use clap::ValueEnum;
use equipoise::prelude::*;
use equipoise::{Report, reduce};
use equipoise_model::graph::leanmd;
use std::fmt;

use crate::command::Outcome;
use crate::particles::{Forces, HERE, Particles, between, offset, sigma, within};

/// The flags of this program.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct Options {
    /// Cells in each dimension, at least 3; the box is periodic
    #[arg(long, value_name = "XxYxZ", default_value = "4x4x4", value_parser = sizes)]
    pub cells: [i32; 3],

    /// Particles per cell, or a range from the first to the last cell, as in 100-250
    #[arg(long, value_name = "N", default_value = "100", value_parser = range, allow_negative_numbers = true)]
    pub particles: [u32; 2],

    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub iterations: u32,

    /// Steps between load-balancing steps; 0: no load balancing
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    pub lb_every: u32,

    /// Whether forces are computed, and how their load is determined
    #[arg(long, value_enum, default_value_t)]
    pub forces: Work,

    /// Place the computes of a cell on the PEs after that of the cell, one per PE, as in LeanMD [default: as --initial]
    #[arg(long)]
    pub spread: bool,
}

/// The load of forces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Compute forces; loads are measured.
    #[default]
    Measured,
    /// Compute forces; loads are those of the task graph: 1 ns per pair, 10 ns per force, 50 ns per particle.
    Charged,
    /// The same loads, but no forces are computed and no particle moves.
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

/// There are 14 computes per cell, and their indices have 32 bits.
const MOST_CELLS: i128 = 1 << 24;

fn sizes(text: &str) -> Result<[i32; 3], String> {
    let sizes: Option<Vec<i32>> =
        text.split('x').map(|size| size.parse().ok().filter(|&it| it >= 3)).collect();
    let sizes = sizes.and_then(|sizes| <[i32; 3]>::try_from(sizes).ok());
    let fits = |sizes: &[i32; 3]| sizes.iter().map(|&size| i128::from(size)).product::<i128>() <= MOST_CELLS;
    sizes.filter(fits).ok_or_else(|| {
        format!("give three sizes of at least 3 with at most {MOST_CELLS} cells in total, such as 4x4x4")
    })
}

fn range(text: &str) -> Result<[u32; 2], String> {
    let number = |text: &str| text.parse().ok().filter(|&it| it <= 1 << 20);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = number(first).zip(number(last)).map(|(first, last)| [first, last]);
    range.ok_or_else(|| {
        "give a number up to 1048576, or a range from the first to the last as in 100-250".into()
    })
}

/// The result, which depends neither on the number of PEs nor on migrations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Motion {
    /// Number of steps.
    pub iterations: u32,
    /// Number of particles at the end.
    pub particles: u64,
    /// Kinetic and potential energy in the first step, in units of the well depth.
    pub first_energy: [f64; 2],
    /// Kinetic and potential energy in the last step.
    pub last_energy: [f64; 2],
}

/// Steps between exchanges of the particles that left their cell.
const EXCHANGE_PERIOD: u32 = 20;

#[derive(Serialize, Deserialize)]
struct Cell {
    options: Options,
    particles: Particles,
    /// The forces and potential energies received in this step, by neighbor.
    forces: Vec<Option<(Vec<f64>, f64)>>,
    done: Exit<Motion>,
}

#[chare(index = [i32; 3], pinned, expedited)]
impl Cell {
    /// Runs all steps.
    #[flow]
    fn life(&mut self, cx: &Cx<Self>, computes: Array<Compute>) {
        self.charge(cx, 0);
        let mut first: Vec<f64> = Vec::new();
        let mut last: Vec<f64> = Vec::new();
        for iteration in 0u32..self.options.iterations {
            self.send_positions(cx, computes, iteration);
            for _ in 0u32..27 {
                when!(forces(neighbor, forces, potential) => self.receive(cx, neighbor, (forces, potential)));
            }
            last = self.integrate();
            if iteration == 0 {
                first = last.clone();
            }
            if (iteration + 1).is_multiple_of(EXCHANGE_PERIOD) && iteration + 1 < self.options.iterations {
                self.send_leaving(cx, iteration);
                for _ in 0u32..26 {
                    when!(take(step, particles) if step == iteration => self.join(cx, particles));
                }
            }
        }
        // The number of particles, and the energies in the last step and in the first.
        let sums: Vec<f64> = reduce!(cx, reduce::sums, [&last[..], &first[1..]].concat());
        self.charge(cx, 0);
        let motion = Motion {
            iterations: self.options.iterations,
            particles: sums[0] as u64,
            first_energy: [sums[3], sums[4]],
            last_energy: [sums[1], sums[2]],
        };
        self.done.exit(cx, motion);
    }

    /// The forces on the particles from those of a neighbor, or of the cell itself.
    #[entry]
    fn forces(neighbor: u32, forces: Vec<f64>, potential: f64);

    /// Particles that left a neighbor after a step.
    #[entry]
    fn take(step: u32, particles: Particles);
}

impl Cell {
    /// Sends the positions of the particles to every compute.
    fn send_positions(&mut self, cx: &Cx<Self>, computes: Array<Compute>, iteration: u32) {
        self.forces = vec![None; 27];
        for neighbor in 0..27 {
            let (compute, side) = compute_of(cx.index(), neighbor, cx.shape());
            let positions = self.particles.positions.clone();
            computes.at(cx, compute).positions(iteration, side, positions);
        }
    }

    fn receive(&mut self, cx: &Cx<Self>, neighbor: u32, forces: (Vec<f64>, f64)) {
        self.forces[neighbor as usize] = Some(forces);
        // The last forces move the particles.
        let all = self.forces.iter().all(Option::is_some);
        self.charge(cx, if all { self.particles.count() } else { 0 });
    }

    fn join(&mut self, cx: &Cx<Self>, particles: Particles) {
        self.charge(cx, particles.count());
        self.particles.join(particles);
    }

    /// Moves the particles under all forces; returns their number, their kinetic energy and half of the
    /// potential energy that they share with the neighbors.
    fn integrate(&mut self) -> Vec<f64> {
        let mut sum = vec![0.0; 3 * self.particles.count()];
        let mut potential = 0.0;
        // In the order of the neighbors, not of arrival: rounding depends on the order of the sum.
        for (neighbor, arrived) in self.forces.iter().enumerate() {
            let Some((forces, energy)) = arrived else { continue };
            potential += if neighbor == HERE { *energy } else { 0.5 * energy };
            sum.iter_mut().zip(forces).for_each(|(sum, force)| *sum += force);
        }
        let moves = self.options.forces != Work::Modelled;
        let kinetic = if moves { self.particles.integrate(&sum) } else { 0.0 };
        vec![self.particles.count() as f64, kinetic, potential]
    }

    /// Sends the particles that left the cell to the neighbors.
    fn send_leaving(&mut self, cx: &Cx<Self>, iteration: u32) {
        let leaving = self.particles.take_leaving();
        for (neighbor, particles) in leaving.into_iter().enumerate().filter(|(neighbor, _)| *neighbor != HERE)
        {
            let to = wrapped(cx.index(), offset(neighbor), cx.shape());
            cx.peer(to).take(iteration, particles);
        }
    }

    fn charge(&self, cx: &Cx<Self>, particles: usize) {
        if self.options.forces != Work::Measured {
            cx.charge(leanmd::particle_seconds(particles as u64));
        }
    }
}

/// The forces between two cells, or within one cell. A cell has 14 computes: the first for itself, the others for the
/// neighbors after it. The index is the number of the compute, then the index of the cell.
#[derive(Serialize, Deserialize)]
struct Compute {
    options: Options,
    cells: Array<Cell>,
}

#[chare(index = [i32; 4], sync)]
impl Compute {
    /// Runs all steps.
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        let neighbor: usize = HERE + cx.index()[0] as usize;
        self.charge(cx, [0; 2], HERE);
        for iteration in 0u32..self.options.iterations {
            // Of the own cell and of the other cell.
            let mut positions: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
            for received in 1u32..if neighbor == HERE { 2 } else { 3 } {
                when!(positions(step, side, of_cell) if step == iteration => positions[side as usize] = of_cell);
                if received == 1 && neighbor != HERE {
                    self.charge(cx, [0; 2], HERE);
                }
            }
            self.interact(cx, &positions, neighbor);
            if iteration + 1 < self.options.iterations
                && (iteration + 1).is_multiple_of(self.options.lb_every)
            {
                at_sync!(cx);
                self.charge(cx, [0; 2], HERE);
            }
        }
    }

    /// The positions of the particles of a cell in a step.
    #[entry]
    fn positions(step: u32, side: u32, of_cell: Vec<f64>);
}

impl Compute {
    /// Sends the forces between the particles to both cells.
    fn interact(&self, cx: &Cx<Self>, [here, there]: &[Vec<f64>; 2], neighbor: usize) {
        let [_, x, y, z] = cx.index();
        let [_, sx, sy, sz] = cx.shape();
        self.charge(cx, [here.len(), there.len()], neighbor);
        let Forces { on: [on_here, on_there], potential } = self.forces(here, there, neighbor);
        self.cells.at(cx, [x, y, z]).forces(neighbor as u32, on_here, potential);
        if neighbor != HERE {
            let other = wrapped([x, y, z], offset(neighbor), [sx, sy, sz]);
            self.cells.at(cx, other).forces(26 - neighbor as u32, on_there, potential);
        }
    }

    /// The forces between the particles of two cells, or within one cell if `neighbor` is [`HERE`].
    fn forces(&self, here: &[f64], there: &[f64], neighbor: usize) -> Forces {
        let [first, last] = self.options.particles;
        let sigma = sigma(first.max(last) as usize);
        match self.options.forces {
            Work::Modelled => Forces { on: [vec![0.0; here.len()], vec![0.0; there.len()]], potential: 0.0 },
            _ if neighbor == HERE => within(here, sigma),
            _ => between(here, there, offset(neighbor), sigma),
        }
    }

    /// Charges the load of the forces between two cells with these numbers of coordinates, unless loads are measured.
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

/// The index at `offset` from `index` in the periodic box.
fn wrapped(index: [i32; 3], offset: [i32; 3], shape: [i32; 3]) -> [i32; 3] {
    std::array::from_fn(|i| (index[i] + offset[i]).rem_euclid(shape[i]))
}

/// The compute that a cell shares with a neighbor, and the side of the compute (0 or 1) for the cell.
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
                // Particles of different cells have different ids.
                particles: Particles::spread(count as usize, cell << 32),
                forces: Vec::new(),
                done,
            }
        });
        let [sx, sy, sz] = cells;
        let compute = |_| Compute { options: options.clone(), cells: array };
        let shape = [14, sx, sy, sz];
        let computes = if options.spread {
            let (cells, pes) = (x * y * z, pe.pes() as u64);
            // Cells have the default placement, in blocks.
            let place = |[number, i, j, k]: [i32; 4]| {
                let cell = i as u64 + x * (j as u64 + y * k as u64);
                Pe(((cell * pes / cells + 1 + number as u64) % pes) as u32)
            };
            pe.array_placed(shape, place, compute)
        } else {
            pe.array(shape, compute)
        };
        pe.main(move |pe| {
            computes.all(pe).life();
            array.all(pe).life(computes);
        });
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
