//! Jacobi's method in 3D, by blocks: every block exchanges faces with its neighbors and replaces each of its cells by
//! the mean of the neighboring cells; a reduction finds the largest change.

use equipoise::Report;
use equipoise::prelude::*;
use equipoise::reduce;

use crate::cells::Cells;
use crate::stencil::{self, Rules, Side, Solution, neighbors, temperature};

/// The flags of this program.
pub type Options = stencil::Options<3>;

#[derive(Serialize, Deserialize)]
struct Block {
    rules: Rules,
    cells: Cells<3>,
    iteration: u32,
    /// Faces that are still missing in this iteration.
    missing: u32,
    residual: f64,
    done: Exit<Solution>,
}

#[chare(index = [i32; 3], sync)]
impl Block {
    /// Starts an iteration: sends the face on each side to the neighbor there.
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        self.charge(cx, 0);
        self.iteration += 1;
        for (side, neighbor) in neighbors(cx.index(), cx.shape(), self.rules.periodic) {
            self.missing += 1;
            cx.peer(neighbor).halo(self.iteration, side.opposite(), self.cells.edge(side));
        }
        // Without neighbors no face arrives that would continue the iteration.
        if self.missing == 0 {
            self.relax(cx);
        }
    }

    /// Receives a neighbor's face for this iteration; faces for the next iteration are buffered.
    #[entry(when = iteration == self.iteration)]
    fn halo(&mut self, cx: &Cx<Self>, iteration: u32, side: Side, face: Vec<f64>) {
        self.charge(cx, 0);
        self.cells.set_halo(side, &face);
        self.missing -= 1;
        if self.missing == 0 {
            self.relax(cx);
        }
    }

    /// Receives the largest change of all cells.
    #[entry(reduce = f64::max)]
    fn relaxed(&mut self, cx: &Cx<Self>, change: f64) {
        self.charge(cx, 0);
        self.residual = change;
        if self.rules.finished(self.iteration, change) {
            cx.peer([0, 0, 0]).contribute().finished(self.cells.sum());
        } else if self.rules.balances(self.iteration) {
            cx.at_sync().step(); // balance, maybe migrate, then step
        } else {
            self.step(cx);
        }
    }

    /// Receives the sum of all cells, added in the order of the blocks, not of arrival.
    #[entry(reduce = reduce::sum)]
    fn finished(&mut self, cx: &Cx<Self>, heat: f64) {
        self.done.exit(cx, Solution { iterations: self.iteration, residual: self.residual, heat });
    }
}

impl Block {
    fn relax(&mut self, cx: &Cx<Self>) {
        let times = self.rules.repeats(cx.index(), cx.shape());
        let change = self.cells.relax(times);
        self.charge(cx, self.cells.count() * times as usize);
        cx.peers().contribute().relaxed(change);
    }

    /// Charges the load of cell updates, unless loads are measured.
    fn charge(&self, cx: &Cx<Self>, updates: usize) {
        if let Some(seconds) = self.rules.charge {
            cx.charge(seconds * updates as f64);
        }
    }
}

/// Runs the program.
pub fn solve(config: Config, options: &Options) -> Report<Solution> {
    let (blocks, cells, rules) = (options.blocks.0, options.cells.0, options.rules);
    let world = [0, 1, 2].map(|d| i64::from(blocks[d]) * i64::from(cells[d]));
    equipoise::run(config, |pe, done| {
        let array = pe.array(blocks, |index| {
            let origin = [0, 1, 2].map(|d| i64::from(index[d]) * i64::from(cells[d]));
            let cells = Cells::new(cells, |[x, y, z]| {
                temperature([origin[0] + x, origin[1] + y, origin[2] + z], world)
            });
            Block { rules, cells, iteration: 0, missing: 0, residual: 0.0, done }
        });
        pe.main(move |pe| array.all(pe).step());
    })
}
