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
    done: Exit<Solution>,
}

#[chare(index = [i32; 3], sync)]
impl Block {
    /// Iterates until the rules say that it is enough.
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        let mut iteration: u32 = 0;
        loop {
            iteration += 1;
            for _ in 0usize..self.send_faces(cx, iteration) {
                when!(halo(i, side, face) if i == iteration => self.set_halo(cx, side, &face));
            }
            let change: f64 = reduce!(cx, f64::max, self.relax(cx));
            self.charge(cx, 0);
            if self.rules.finished(iteration, change) {
                // Added in the order of the blocks, not of arrival.
                let heat: f64 = reduce!(cx, reduce::sum, self.cells.sum());
                self.done.exit(cx, Solution { iterations: iteration, residual: change, heat });
                return;
            }
            if self.rules.balances(iteration) {
                at_sync!(cx); // balance, maybe migrate
            }
        }
    }

    /// A neighbor's face in an iteration.
    #[entry]
    fn halo(iteration: u32, side: Side, face: Vec<f64>);
}

impl Block {
    /// Sends the face on each side to the neighbor there; returns the number of neighbors.
    fn send_faces(&self, cx: &Cx<Self>, iteration: u32) -> usize {
        self.charge(cx, 0);
        let mut count = 0;
        for (side, neighbor) in neighbors(cx.index(), cx.shape(), self.rules.periodic) {
            cx.peer(neighbor).halo(iteration, side.opposite(), self.cells.edge(side));
            count += 1;
        }
        count
    }

    fn set_halo(&mut self, cx: &Cx<Self>, side: Side, face: &[f64]) {
        self.charge(cx, 0);
        self.cells.set_halo(side, face);
    }

    /// Replaces the cells; returns the largest change.
    fn relax(&mut self, cx: &Cx<Self>) -> f64 {
        let times = self.rules.repeats(cx.index(), cx.shape());
        let change = self.cells.relax(times);
        self.charge(cx, self.cells.count() * times as usize);
        change
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
            Block { rules, cells, done }
        });
        pe.main(move |pe| array.all(pe).life());
    })
}
