//! Adaptive mesh refinement: the blast of a hot bubble in a windy box with periodic boundaries. Blocks near the shock
//! are refined and blocks behind it are coarsened, so the number of blocks and the load of PEs change all the time.
//!
//! A block is a leaf of a [quadtree](crate::quadtree) and an element of a sparse array. In a step, blocks send their
//! edges to neighbors of the same level and to finer ones. These send the fluxes through their sides to coarser
//! neighbors. At every regridding the blocks report to the mesh, one element that knows all leaves. It sends each block
//! its new neighbors, or the order to be refined or coarsened: then the block inserts its successors and destroys
//! itself.
//!
//! The [problem](crate::blast) is separate from its blocks as elements. The [gas](crate::gas) is counted in integers,
//! so mass, momentum and energy are conserved exactly. Every bit of the result is independent of the number of PEs and
//! of migrations.

use equipoise::Report;
use equipoise::prelude::*;
use std::collections::BTreeMap;

pub use crate::blast::{Blast, Options, sequential};
use crate::blast::{Status, Survey, totals};
use crate::cells::Side;
use crate::gas::{Density, Gas, Quanta};
use crate::quadtree::{Neighbor, Node, SIDES, children, number, parent};

/// What the mesh sends a block before its next steps.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Plan {
    /// -1: the block is coarsened. 1: the block is refined. 0: it remains.
    change: i32,
    neighbors: [Neighbor; 4],
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
