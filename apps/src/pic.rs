//! A plasma by particles in cells: a cloud of electrons and ions drifts through a periodic box in 2D, in the
//! electromagnetic field of its own charges and currents. The load follows the cloud from block to block.
//!
//! In a step every block moves its particles, and sends to its 8 neighbors the particles that left the block and the
//! currents that these particles deposited beyond its boundary. Then it advances the field, and sends its edges to 2
//! neighbors. A step of a block is in [`plasma`](crate::plasma).
//!
//! Positions and currents are integers, and so are the terms of all sums. Every bit of the result is independent of the
//! number of PEs, of migrations, and of the blocks.

use equipoise::prelude::*;
use equipoise::{Report, reduce};
use std::fmt;

use crate::command::{Outcome, seconds};
use crate::plasma::{Cloud, Handover, Nodes, Patch, QUANTUM, offsets};
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
    #[arg(long, value_name = "N", default_value_t = Self::default().particles, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub particles: u32,

    /// Velocity of the cloud along the first dimension, as a fraction of the speed of light
    #[arg(long, value_name = "FRACTION", default_value_t = Self::default().drift, value_parser = drift)]
    pub drift: f64,

    /// Number of steps; light crosses a cell in 2 steps
    #[arg(long, value_name = "N", default_value_t = Self::default().iterations, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,

    /// Steps between load-balancing steps; 0: no load balancing
    #[arg(long, value_name = "N", default_value_t = Self::default().lb_every, allow_negative_numbers = true)]
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
    /// Moves the particles, and sends to the neighbors what belongs to them. Returns kinetic energy, momentum and
    /// energy of the field at the beginning of the step.
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
    let cloud = cloud(options);
    equipoise::run(config, move |pe, done| {
        let array = pe.array(blocks, |index| {
            let origin = [0, 1].map(|d| i64::from(index[d]) * i64::from(cells[d]));
            let patch = Patch::new(cloud, origin, cells);
            Block { rules, patch, charges: Nodes::default(), done }
        });
        pe.main(move |pe| array.all(pe).life());
    })
}

fn cloud(options: &Options) -> Cloud {
    let Rules { particles, drift, .. } = options.rules;
    let world = [0, 1].map(|d| i64::from(options.blocks.0[d]) * i64::from(options.cells.0[d]));
    Cloud { particles, drift, world }
}

/// The result of [`simulate`], computed by a loop over the steps of one block that is its own neighbor.
pub fn sequential(options: &Options) -> Plasma {
    let rules = options.rules;
    let cloud = cloud(options);
    let mut patch = Patch::new(cloud, [0; 2], cloud.world.map(|size| size as i32));
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
    /// The result from the sums of all blocks: number, charge, checksum; kinetic energy, energy of the field and
    /// momentum in the first step and in the last.
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
