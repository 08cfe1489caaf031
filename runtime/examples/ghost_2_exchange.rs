//! Tutorial, step 2: neighboring blocks of a rod exchange ghost cells; a guard separates iterations.

use equipoise::prelude::*;

const ITERATIONS: u32 = 100;

/// The side of a block on which a ghost cell is.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Side {
    Left,
    Right,
}

#[derive(Serialize, Deserialize)]
struct Block {
    cells: Vec<f64>,
    /// The cells next to this block, left and right; at the ends of the rod, the temperature of the wall.
    ghosts: [f64; 2],
    iteration: u32,
    /// Ghost cells that have not arrived in this iteration.
    missing: u32,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Block {
    /// Starts an iteration: sends the outermost cells to the neighbors.
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        self.iteration += 1;
        let ([i], [count]) = (cx.index(), cx.shape());
        if i > 0 {
            self.missing += 1;
            cx.peer([i - 1]).ghost(self.iteration, Side::Right, self.cells[0]);
        }
        if i + 1 < count {
            self.missing += 1;
            cx.peer([i + 1]).ghost(self.iteration, Side::Left, self.cells[self.cells.len() - 1]);
        }
    }

    /// Receives a ghost cell of this iteration; ghost cells of later iterations wait.
    #[entry(when = iteration == self.iteration)]
    fn ghost(&mut self, cx: &Cx<Self>, iteration: u32, side: Side, value: f64) {
        self.ghosts[side as usize] = value;
        self.missing -= 1;
        if self.missing == 0 {
            self.relax();
            if self.iteration < ITERATIONS {
                self.step(cx);
            } else {
                cx.peer([0]).contribute().total(self.cells.iter().sum());
            }
        }
    }

    /// Receives the heat of all blocks.
    #[entry(reduce = equipoise::reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, heat: f64) {
        self.done.exit(cx, heat);
    }
}

impl Block {
    /// Replaces every cell by the mean of its two neighbors.
    fn relax(&mut self) {
        let old = [&self.ghosts[..1], &self.cells, &self.ghosts[1..]].concat();
        for (cell, around) in self.cells.iter_mut().zip(old.windows(3)) {
            *cell = (around[0] + around[2]) / 2.0;
        }
    }
}

fn main() {
    let report = equipoise::run(Config::threads(2), |pe, done| {
        let blocks = pe.array([8], |_| Block {
            cells: vec![0.0; 16],
            ghosts: [0.0, 100.0],
            iteration: 0,
            missing: 0,
            done,
        });
        pe.main(move |pe| blocks.all(pe).step());
    });
    println!("heat after {ITERATIONS} iterations: {:.3}", report.result);
}
