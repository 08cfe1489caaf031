//! Adaptive mesh refinement: the blast of a hot bubble in a windy box with periodic boundaries. Blocks near the shock are
//! refined and blocks behind it are coarsened, so the number of blocks and the load of PEs change all the time.
//!
//! A block is a leaf of a [quadtree](crate::quadtree) and an element of a sparse array. In a step, blocks send their edges to
//! neighbors of the same level and to finer ones. These send the fluxes through their sides to coarser neighbors.
//! At every regridding the blocks report to the mesh, one element that knows all leaves. It sends each block its
//! new neighbors, or the order to be refined or coarsened: then the block inserts its successors and destroys itself.
//!
//! The [gas](crate::gas) is counted in integers, so mass, momentum and energy are conserved exactly. Every bit of the
//! result is independent of the number of PEs and of migrations.

use equipoise::Report;
use equipoise::prelude::*;
use std::collections::BTreeMap;
use std::fmt;

use crate::cells::Side;
use crate::command::{Outcome, seconds};
use crate::gas::{Density, Gas, Quanta};
use crate::quadtree::{Neighbor, Node, SIDES, Tree, children, number, parent};
use crate::stencil::Extent;

/// The flags of this program.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct Options {
    /// Coarsest blocks along each dimension, at most 1024 in all
    #[arg(long, value_name = "NxN", default_value = "4x4", value_parser = roots)]
    pub blocks: [i32; 2],

    /// Cells per block along each dimension, an even number from 4 to 32
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = cells)]
    pub cells: u32,

    /// Levels of blocks: blocks of a level are half as wide as those of the previous level
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(i32).range(1..=6))]
    pub levels: i32,

    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,

    /// Steps between regriddings
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub regrid_every: u32,

    /// Regriddings between load-balancing steps; 0: no load balancing
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub lb_every: u32,

    /// Load of the update of a cell, in seconds [default: the load is measured]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub charge: Option<f64>,
}

impl Default for Options {
    /// The defaults of the flags.
    fn default() -> Self {
        Options {
            blocks: [4; 2],
            cells: 8,
            levels: 4,
            iterations: 200,
            regrid_every: 4,
            lb_every: 5,
            charge: None,
        }
    }
}

fn roots(text: &str) -> Result<[i32; 2], String> {
    let Extent(blocks) = text.parse()?;
    if blocks.iter().product::<i32>() > 1024 {
        return Err(
            "give at most 1024 coarsest blocks, such as `32x32`, and more `--levels` for a finer mesh".into(),
        );
    }
    Ok(blocks)
}

fn cells(text: &str) -> Result<u32, &'static str> {
    let cells = text.parse().ok().filter(|cells| (4..=32).contains(cells) && cells % 2 == 0);
    cells.ok_or("expected an even number of cells from 4 to 32 such as 8")
}

/// A block with a larger relative difference between neighboring cells is refined.
const REFINE: f64 = 0.08;

/// A block with a smaller relative difference between neighboring cells may be coarsened.
const COARSEN: f64 = 0.02;

impl Options {
    /// The width of the cells of a level, in widths of a finest cell.
    fn width(&self, level: i32) -> i64 {
        1 << (self.levels - 1 - level)
    }

    /// The initial gas of a leaf.
    fn gas(&self, [level, x, y]: Node) -> Gas {
        let finest = f64::from(self.cells) * self.width(0) as f64;
        let world = self.blocks.map(|blocks| f64::from(blocks) * finest);
        Gas::new(self.cells as usize, self.width(level), [x, y], world)
    }

    /// The initial leaves: refined where the gas is rough.
    fn tree(&self) -> Tree {
        let mut tree = Tree::new(self.blocks, self.levels);
        for _ in 1..self.levels {
            let wants = tree.leaves().iter().map(|&leaf| (leaf, want(&self.gas(leaf)).max(0))).collect();
            tree.adapt(&wants);
        }
        tree
    }

    /// The steps from step `first` to the next regridding, or to the end.
    fn steps(&self, first: u32) -> u32 {
        self.regrid_every.min(self.iterations - first)
    }

    /// Whether there is a load-balancing step before step `first`, which follows a regridding.
    fn balances(&self, first: u32) -> bool {
        // No number of regriddings is a multiple of 0.
        first > 0 && (first / self.regrid_every).is_multiple_of(self.lb_every)
    }
}

/// Whether a block wants to be refined (1), coarsened (-1) or neither (0).
fn want(gas: &Gas) -> i32 {
    match gas.roughness() {
        rough if rough > REFINE => 1,
        smooth if smooth < COARSEN => -1,
        _ => 0,
    }
}

/// The result. Every bit of it is independent of the number of PEs and of migrations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blast {
    /// Number of steps.
    pub iterations: u32,
    /// Blocks at the beginning, at the end, and the largest number between.
    pub blocks: [usize; 3],
    /// Blocks that were created and destroyed during the run.
    pub changes: [usize; 2],
    /// Updates of cells in all steps, and those of a mesh of finest cells only.
    pub updates: [u64; 2],
    /// Mass, momentum along both dimensions, and energy at the end, in quanta.
    pub totals: Quanta,
    /// The difference of the totals at the end and at the beginning, which is 0.
    pub lost: Quanta,
    /// Hash of all blocks at the end.
    pub checksum: i64,
}

/// What a block reports to the mesh.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Status {
    want: i32,
    totals: Quanta,
    checksum: i64,
}

impl Status {
    fn of(gas: &Gas, leaf: Node) -> Self {
        Status { want: want(gas), totals: gas.totals(), checksum: gas.checksum(leaf) }
    }
}

/// What the mesh sends a block before its next steps.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Plan {
    /// -1: the block is coarsened. 1: the block is refined. 0: it remains.
    change: i32,
    neighbors: [Neighbor; 4],
}

/// All leaves, and what is counted about them.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Survey {
    options: Options,
    tree: Tree,
    first_totals: Option<Quanta>,
    blocks: [usize; 3],
    changes: [usize; 2],
    updates: u64,
}

impl Survey {
    fn new(options: &Options) -> Self {
        let tree = options.tree();
        let blocks = [tree.leaves().len(); 3];
        let options = options.clone();
        Survey { options, tree, first_totals: None, blocks, changes: [0; 2], updates: 0 }
    }

    /// Counts the steps that follow step `first`.
    fn count_steps(&mut self, first: u32) {
        let cells = u64::from(self.options.cells * self.options.cells);
        self.updates += self.tree.leaves().len() as u64 * cells * u64::from(self.options.steps(first));
    }

    /// Adapts the leaves; returns the change of every previous leaf.
    fn adapt(&mut self, reports: &BTreeMap<Node, Status>) -> BTreeMap<Node, i32> {
        let wants = reports.iter().map(|(&leaf, status)| (leaf, status.want)).collect();
        let changes = self.tree.adapt(&wants);
        let of = |change: i32| changes.values().filter(|&&it| it == change).count();
        let (refined, coarsened) = (of(1), of(-1));
        self.changes = [self.changes[0] + 4 * refined + coarsened / 4, self.changes[1] + refined + coarsened];
        let blocks = self.tree.leaves().len();
        self.blocks = [self.blocks[0], blocks, self.blocks[2].max(blocks)];
        changes
    }

    /// The result, from what all blocks report at the end.
    fn result(&self, reports: &BTreeMap<Node, Status>) -> Blast {
        let totals = totals(reports);
        let first = self.first_totals.unwrap_or(totals);
        let Options { iterations, cells, blocks, .. } = self.options;
        let finest = blocks.map(|blocks| i64::from(blocks) * i64::from(cells) * self.options.width(0));
        Blast {
            iterations,
            blocks: self.blocks,
            changes: self.changes,
            updates: [self.updates, u64::from(iterations) * (finest[0] * finest[1]) as u64],
            totals,
            lost: std::array::from_fn(|k| totals[k] - first[k]),
            checksum: reports.values().map(|status| status.checksum).sum(),
        }
    }
}

fn totals(reports: &BTreeMap<Node, Status>) -> Quanta {
    std::array::from_fn(|k| reports.values().map(|status| status.totals[k]).sum())
}

/// Knows all leaves of the mesh.
#[derive(Serialize, Deserialize)]
struct Mesh {
    survey: Survey,
    /// The number of steps that are done.
    step: u32,
    reports: BTreeMap<Node, Status>,
    blocks: Array<Block>,
    done: Exit<Blast>,
}

#[chare(index = [i32; 1], pinned, expedited)]
impl Mesh {
    /// The status of a block after some steps. Before the first step, blocks report their initial gas.
    #[entry]
    fn report(&mut self, cx: &Cx<Self>, leaf: Node, status: Status) {
        self.charge(cx, 1);
        self.reports.insert(leaf, status);
        if self.reports.len() == self.survey.tree.leaves().len() {
            let reports = std::mem::take(&mut self.reports);
            self.regrid(cx, &reports);
        }
    }
}

impl Mesh {
    fn regrid(&mut self, cx: &Cx<Self>, reports: &BTreeMap<Node, Status>) {
        if self.survey.first_totals.is_none() {
            self.survey.first_totals = Some(totals(reports));
            self.send_plans(cx, &BTreeMap::new());
        } else {
            self.step += self.survey.options.steps(self.step);
            if self.step == self.survey.options.iterations {
                self.done.exit(cx, self.survey.result(reports));
                return;
            }
            let changes = self.survey.adapt(reports);
            self.send_plans(cx, &changes);
        }
        self.survey.count_steps(self.step);
    }

    /// Sends their plans to the blocks that end, and to all blocks of the new mesh.
    fn send_plans(&self, cx: &Cx<Self>, changes: &BTreeMap<Node, i32>) {
        self.charge(cx, self.survey.tree.leaves().len());
        for (&leaf, &change) in changes.iter().filter(|(_, change)| **change != 0) {
            let neighbors = [Neighbor::Same(leaf); 4];
            self.blocks.at(cx, leaf).plan(self.step, Plan { change, neighbors });
        }
        for &leaf in self.survey.tree.leaves() {
            let neighbors = self.survey.tree.neighbors(leaf);
            self.blocks.at(cx, leaf).plan(self.step, Plan { change: 0, neighbors });
        }
    }

    /// Charges the load of the mesh, unless loads are measured: that of a cell for every block.
    fn charge(&self, cx: &Cx<Self>, blocks: usize) {
        if let Some(seconds) = self.survey.options.charge {
            cx.charge(seconds * blocks as f64);
        }
    }
}

/// A block of cells.
#[derive(Serialize, Deserialize)]
struct Block {
    options: Options,
    gas: Gas,
    plan: Option<Plan>,
    /// The number of steps that are done.
    step: u32,
    /// Quarters that the blocks that this block replaces have not sent yet.
    missing: u32,
    mesh: Array<Mesh>,
}

#[chare(index = [i32; 3], sync)]
impl Block {
    /// Runs all steps until the block is refined or coarsened. A block of the initial mesh reports first.
    #[flow]
    fn life(&mut self, cx: &Cx<Self>, initial: bool) {
        self.charge(cx, 0);
        for _ in 0u32..self.missing {
            when!(quarter(number, cells) => self.set_quarter(cx, number, &cells));
        }
        self.missing = 0;
        if initial {
            self.report(cx);
        }
        loop {
            when!(plan(step, plan) if step == self.step => self.plan = Some(plan));
            if self.change(cx) {
                return;
            }
            if self.options.balances(self.step) {
                at_sync!(cx);
                self.charge(cx, 0);
            }
            for _ in 0u32..self.options.steps(self.step) {
                self.send_edges(cx);
                for _ in 0u32..self.edges() {
                    when!(edge(step, side, densities) if step == self.step => self.set_edge(cx, side, &densities));
                }
                self.send_fluxes(cx);
                for _ in 0u32..self.finer_blocks() {
                    when!(fluxes(step, side, half, of_it) if step == self.step => self.set_fluxes(cx, side, half, &of_it));
                }
                self.advance(cx);
            }
            self.report(cx);
        }
    }

    /// The plan of the mesh after some steps.
    #[entry]
    fn plan(step: u32, plan: Plan);

    /// The cells of a finer block that this block replaces.
    #[entry]
    fn quarter(number: u32, cells: Vec<Quanta>);

    /// The cells of a neighbor of the same level, or of a coarser one, next to a side of this block.
    #[entry]
    fn edge(step: u32, side: Side, densities: Vec<Density>);

    /// The fluxes of a finer neighbor through one half of a side of this block.
    #[entry]
    fn fluxes(step: u32, side: Side, half: u32, of_it: Vec<Quanta>);
}

impl Block {
    fn report(&self, cx: &Cx<Self>) {
        let leaf = cx.index();
        self.mesh.at(cx, [0]).report(leaf, Status::of(&self.gas, leaf));
    }

    fn neighbors(&self) -> impl Iterator<Item = (Side, Neighbor)> + use<> {
        let neighbors = self.plan.map(|plan| plan.neighbors);
        neighbors.into_iter().flat_map(|neighbors| SIDES.into_iter().zip(neighbors))
    }

    /// The number of finer neighbors.
    fn finer_blocks(&self) -> u32 {
        2 * (4 - self.edges())
    }

    /// The number of sides with a neighbor of the same level or a coarser one.
    fn edges(&self) -> u32 {
        self.neighbors().filter(|(_, neighbor)| !matches!(neighbor, Neighbor::Finer(_))).count() as u32
    }

    fn send_edges(&self, cx: &Cx<Self>) {
        self.charge(cx, 0);
        for (side, neighbor) in self.neighbors() {
            let opposite = side.opposite();
            match neighbor {
                Neighbor::Same(node) => cx.peer(node).edge(self.step, opposite, self.gas.edge(side)),
                Neighbor::Coarser(..) => {}
                Neighbor::Finer(nodes) => {
                    for (half, node) in nodes.into_iter().enumerate() {
                        cx.peer(node).edge(self.step, opposite, self.gas.half_edge(side, half));
                    }
                }
            }
        }
    }

    fn set_edge(&mut self, cx: &Cx<Self>, side: Side, densities: &[Density]) {
        self.charge(cx, 0);
        self.gas.set_neighbor(side, densities);
    }

    /// Sends the fluxes to the coarser neighbors.
    fn send_fluxes(&self, cx: &Cx<Self>) {
        for (side, neighbor) in self.neighbors() {
            if let Neighbor::Coarser(node, half) = neighbor {
                let fluxes = self.gas.coarse_fluxes(side);
                cx.peer(node).fluxes(self.step, side.opposite(), half as u32, fluxes);
            }
        }
    }

    fn set_fluxes(&mut self, cx: &Cx<Self>, side: Side, half: u32, fluxes: &[Quanta]) {
        self.charge(cx, 0);
        self.gas.set_fluxes(side, half as usize, fluxes);
    }

    fn advance(&mut self, cx: &Cx<Self>) {
        self.charge(cx, self.gas.cells());
        self.gas.advance();
        self.step += 1;
    }

    fn set_quarter(&mut self, cx: &Cx<Self>, number: u32, cells: &[Quanta]) {
        self.charge(cx, 0);
        self.gas.set_quarter(number as usize, cells);
    }

    /// Replaces this block by its children, or by its parent, if the plan says so; returns whether it does.
    fn change(&mut self, cx: &Cx<Self>) -> bool {
        self.charge(cx, 0);
        let change = self.plan.map_or(0, |plan| plan.change);
        let leaf = cx.index();
        if change > 0 {
            for (child, gas) in children(leaf).into_iter().zip(self.gas.refined()) {
                self.insert(cx, child, gas, 0);
            }
        } else if change < 0 {
            let (number, cells) = (number(leaf), self.gas.coarsened());
            if number == 0 {
                let mut gas = Gas::empty(self.options.cells as usize, self.options.width(leaf[0] - 1));
                gas.set_quarter(0, &cells);
                self.insert(cx, parent(leaf), gas, 3);
            } else {
                cx.peer(parent(leaf)).quarter(number as u32, cells);
            }
        }
        if change != 0 {
            cx.destroy();
        }
        change != 0
    }

    /// Inserts a block on this PE, so that no cells are sent.
    fn insert(&self, cx: &Cx<Self>, leaf: Node, gas: Gas, missing: u32) {
        let options = self.options.clone();
        let block = Block { options, gas, plan: None, step: self.step, missing, mesh: self.mesh };
        cx.array().insert_on(cx, leaf, cx.here(), block);
        cx.peer(leaf).life(false);
    }

    /// Charges the load of cell updates, unless loads are measured.
    fn charge(&self, cx: &Cx<Self>, updates: usize) {
        if let Some(seconds) = self.options.charge {
            cx.charge(seconds * updates as f64);
        }
    }
}

/// Runs the program.
pub fn simulate(config: Config, options: &Options) -> Report<Blast> {
    let options = options.clone();
    equipoise::run(config, move |pe, done| {
        let ([x, y], pes) = (options.blocks, pe.pes() as i64);
        let finest = options.width(0) as i32;
        // A block begins on the PE of its root.
        let place = move |[level, i, j]: Node| {
            let root = i64::from(i >> level) + i64::from(x) * i64::from(j >> level);
            Pe((root.min(i64::from(x * y) - 1) * pes / i64::from(x * y)) as u32)
        };
        let blocks: Array<Block> = pe.sparse_placed([options.levels, x * finest, y * finest], place);
        let survey = Survey::new(&options);
        let leaves = survey.tree.leaves().clone();
        let mesh = pe.array([1], |_| Mesh {
            survey: survey.clone(),
            step: 0,
            reports: BTreeMap::new(),
            blocks,
            done,
        });
        let options = options.clone();
        pe.main(move |pe| {
            for leaf in leaves {
                let (options, gas) = (options.clone(), options.gas(leaf));
                blocks.insert(pe, leaf, Block { options, gas, plan: None, step: 0, missing: 0, mesh });
                blocks.at(pe, leaf).life(true);
            }
        });
    })
}

/// The blocks of a run without PEs and messages.
struct Sequential {
    survey: Survey,
    gas: BTreeMap<Node, Gas>,
}

/// The result of [`simulate`], computed by a loop over all blocks.
pub fn sequential(options: &Options) -> Blast {
    Sequential::run(options).1
}

impl Sequential {
    fn run(options: &Options) -> (Sequential, Blast) {
        let survey = Survey::new(options);
        let gas = survey.tree.leaves().iter().map(|&leaf| (leaf, options.gas(leaf))).collect();
        let mut this = Sequential { survey, gas };
        this.survey.first_totals = Some(totals(&this.reports()));
        let mut step = 0;
        loop {
            this.survey.count_steps(step);
            (0..options.steps(step)).for_each(|_| this.advance());
            step += options.steps(step);
            let reports = this.reports();
            if step == options.iterations {
                let result = this.survey.result(&reports);
                return (this, result);
            }
            let changes = this.survey.adapt(&reports);
            this.change(options, &changes);
        }
    }

    fn reports(&self) -> BTreeMap<Node, Status> {
        self.gas.iter().map(|(&leaf, gas)| (leaf, Status::of(gas, leaf))).collect()
    }

    fn advance(&mut self) {
        let sides = |leaf: Node, tree: &Tree| SIDES.into_iter().zip(tree.neighbors(leaf));
        let leaves: Vec<Node> = self.gas.keys().copied().collect();
        for &leaf in &leaves {
            for (side, neighbor) in sides(leaf, &self.survey.tree) {
                let densities = match neighbor {
                    Neighbor::Same(node) => self.gas[&node].edge(side.opposite()),
                    Neighbor::Coarser(node, half) => self.gas[&node].half_edge(side.opposite(), half),
                    Neighbor::Finer(_) => continue,
                };
                self.gas.entry(leaf).and_modify(|gas| gas.set_neighbor(side, &densities));
            }
        }
        for &leaf in &leaves {
            for (side, neighbor) in sides(leaf, &self.survey.tree) {
                if let Neighbor::Coarser(node, half) = neighbor {
                    let fluxes = self.gas[&leaf].coarse_fluxes(side);
                    self.gas.entry(node).and_modify(|gas| gas.set_fluxes(side.opposite(), half, &fluxes));
                }
            }
        }
        self.gas.values_mut().for_each(Gas::advance);
    }

    fn change(&mut self, options: &Options, changes: &BTreeMap<Node, i32>) {
        for (&leaf, _) in changes.iter().filter(|(_, change)| **change != 0) {
            let Some(gas) = self.gas.remove(&leaf) else { continue };
            if changes[&leaf] > 0 {
                self.gas.extend(children(leaf).into_iter().zip(gas.refined()));
            } else {
                let empty = || Gas::empty(options.cells as usize, options.width(leaf[0] - 1));
                let coarse = self.gas.entry(parent(leaf)).or_insert_with(empty);
                coarse.set_quarter(number(leaf), &gas.coarsened());
            }
        }
    }
}

impl Outcome for Blast {
    fn iterations(&self) -> u32 {
        self.iterations
    }
}

impl fmt::Display for Blast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last, most] = self.blocks;
        let [created, destroyed] = self.changes;
        let [mass, x, y, energy] = self.totals;
        let lost = self.lost.map(|quanta| quanta.to_string()).join(", ");
        writeln!(f, "steps         {}", self.iterations)?;
        writeln!(
            f,
            "blocks        {first} first, {last} last, {most} at most; {created} created, {destroyed} destroyed"
        )?;
        writeln!(f, "cell updates  {}, {} on a mesh of finest cells", self.updates[0], self.updates[1])?;
        writeln!(f, "totals        mass {mass}, momentum {x} and {y}, energy {energy}, in quanta")?;
        writeln!(f, "lost          {lost}")?;
        write!(f, "checksum      {:#x}", self.checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean absolute difference of the mass per area of two runs, over all finest cells, where `fine` has no coarser cells.
    fn distance(coarse: &Sequential, fine: &Sequential) -> f64 {
        let size = fine.survey.options.cells as usize;
        let (mut sum, mut count) = (0.0, 0);
        for (&leaf, gas) in &fine.gas {
            let holds = |node: &Node| coarse.gas.contains_key(node);
            let found =
                std::iter::successors(Some(leaf), |&node| (node[0] > 0).then(|| parent(node))).find(holds);
            let Some(node) = found else { panic!("no leaf holds {leaf:?}") };
            let apart = leaf[0] - node[0];
            for at in 0..gas.cells() {
                let cell = [(at % size) as i32, (at / size) as i32];
                let [x, y] = [0, 1]
                    .map(|d| ((leaf[1 + d] * size as i32 + cell[d]) >> apart) - node[1 + d] * size as i32);
                sum +=
                    (coarse.gas[&node].density(x as usize + size * y as usize)[0] - gas.density(at)[0]).abs();
                count += 1;
            }
        }
        sum / f64::from(count)
    }

    /// A run on a mesh of which all blocks have the same level.
    fn uniform(options: &Options, level: i32) -> Sequential {
        let mut survey = Survey::new(options);
        let all = |tree: &Tree| tree.leaves().iter().map(|&leaf| (leaf, 1)).collect();
        survey.tree = Tree::new(options.blocks, options.levels);
        for _ in 0..level {
            let wants = all(&survey.tree);
            survey.tree.adapt(&wants);
        }
        let gas = survey.tree.leaves().iter().map(|&leaf| (leaf, options.gas(leaf))).collect();
        let mut this = Sequential { survey, gas };
        (0..options.iterations).for_each(|_| this.advance());
        this
    }

    #[test]
    fn the_adaptive_mesh_is_close_to_a_uniform_fine_mesh_and_computes_less() {
        let options = Options { iterations: 80, levels: 3, blocks: [4, 3], ..Options::default() };
        let (adaptive, result) = Sequential::run(&options);
        let fine = uniform(&options, options.levels - 1);
        let (near, far) = (distance(&adaptive, &fine), distance(&uniform(&options, 0), &fine));
        let [updates, of_fine] = result.updates;
        assert!(near < 0.05 * far, "the adaptive mesh is {near} away, a coarse mesh {far}");
        assert!(2 * updates < of_fine, "{updates} updates, {of_fine} on the fine mesh");
        assert_eq!(result.lost, [0; 4]);
    }
}
