//! The blast of the program [`amr`](crate::amr): its flags, the initial mesh and when blocks change, its result, and a
//! run without PEs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

use crate::command::{Outcome, seconds};
use crate::gas::{Gas, Quanta};
use crate::quadtree::{Neighbor, Node, SIDES, Tree, children, number, parent};
use crate::stencil::Extent;

/// The flags of this program.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct Options {
    /// Coarsest blocks along each dimension, at most 1024 in all
    #[arg(long, value_name = "NxN", default_value = "4x4", value_parser = roots)]
    pub blocks: [i32; 2],

    /// Cells per block along each dimension, an even number from 4 to 32
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = cells, allow_negative_numbers = true)]
    pub cells: u32,

    /// Levels of blocks: blocks of a level are half as wide as those of the previous level
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(i32).range(1..=6), allow_negative_numbers = true)]
    pub levels: i32,

    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub iterations: u32,

    /// Steps between regriddings
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub regrid_every: u32,

    /// Regriddings between load-balancing steps; 0: no load balancing
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true)]
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
    pub fn width(&self, level: i32) -> i64 {
        1 << (self.levels - 1 - level)
    }

    /// The initial gas of a leaf.
    pub fn gas(&self, [level, x, y]: Node) -> Gas {
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
    pub fn steps(&self, first: u32) -> u32 {
        self.regrid_every.min(self.iterations - first)
    }

    /// Whether there is a load-balancing step before step `first`, which follows a regridding.
    pub fn balances(&self, first: u32) -> bool {
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
pub struct Status {
    /// Whether the block wants to be refined (1), coarsened (-1) or neither (0).
    pub want: i32,
    /// The sums over the cells.
    pub totals: Quanta,
    /// Hash of the cells.
    pub checksum: i64,
}

impl Status {
    /// The status of a leaf.
    pub fn of(gas: &Gas, leaf: Node) -> Self {
        Status { want: want(gas), totals: gas.totals(), checksum: gas.checksum(leaf) }
    }
}

/// All leaves, and what is counted about them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Survey {
    /// The flags.
    pub options: Options,
    /// The leaves.
    pub tree: Tree,
    /// The sums over all blocks before the first step, if they are known.
    pub first_totals: Option<Quanta>,
    blocks: [usize; 3],
    changes: [usize; 2],
    updates: u64,
}

impl Survey {
    /// The initial mesh.
    pub fn new(options: &Options) -> Self {
        let tree = options.tree();
        let blocks = [tree.leaves().len(); 3];
        let options = options.clone();
        Survey { options, tree, first_totals: None, blocks, changes: [0; 2], updates: 0 }
    }

    /// Counts the steps that follow step `first`.
    pub fn count_steps(&mut self, first: u32) {
        let cells = u64::from(self.options.cells * self.options.cells);
        self.updates += self.tree.leaves().len() as u64 * cells * u64::from(self.options.steps(first));
    }

    /// Adapts the leaves; returns the change of every previous leaf.
    pub fn adapt(&mut self, reports: &BTreeMap<Node, Status>) -> BTreeMap<Node, i32> {
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
    pub fn result(&self, reports: &BTreeMap<Node, Status>) -> Blast {
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

/// The sums over all blocks.
pub fn totals(reports: &BTreeMap<Node, Status>) -> Quanta {
    std::array::from_fn(|k| reports.values().map(|status| status.totals[k]).sum())
}

/// The blocks of a run without PEs and messages.
struct Sequential {
    survey: Survey,
    gas: BTreeMap<Node, Gas>,
}

/// The result of [`simulate`](crate::amr::simulate), computed by a loop over all blocks.
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

    /// The mean absolute difference of the mass per area of two runs, over all finest cells, where `fine` has no
    /// coarser cells.
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
