//! Tutorial, step 6: the same program as a function, run with 20 message orders.

use equipoise::prelude::*;

/// The run ends when no cell changes by more than this.
const TOLERANCE: f64 = 0.01;

/// Iterations between load-balancing steps.
const LB_EVERY: u32 = 100;

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
    done: Exit<(u32, f64)>,
}

#[chare(index = [i32; 1], sync)]
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
            let change = self.relax();
            self.charge(cx);
            cx.peers().contribute().agreed(change);
        }
    }

    /// Receives the largest change of all blocks.
    #[entry(reduce = f64::max)]
    fn agreed(&mut self, cx: &Cx<Self>, change: f64) {
        if change > TOLERANCE && self.iteration % LB_EVERY == 0 {
            cx.at_sync().step();
        } else if change > TOLERANCE {
            self.step(cx);
        } else {
            cx.peer([0]).contribute().total(self.cells.iter().sum());
        }
    }

    /// Receives the heat of all blocks.
    #[entry(reduce = equipoise::reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, heat: f64) {
        self.done.exit(cx, (self.iteration, heat));
    }
}

impl Block {
    /// Declares the work of an iteration: blocks in the first quarter of the rod have four times the work of others.
    fn charge(&self, cx: &Cx<Self>) {
        let ([i], [count]) = (cx.index(), cx.shape());
        cx.charge(if i < count / 4 { 40e-6 } else { 10e-6 });
    }

    /// Replaces every cell by the mean of its two neighbors; returns the largest change.
    fn relax(&mut self) -> f64 {
        let old = [&self.ghosts[..1], &self.cells, &self.ghosts[1..]].concat();
        let mut change: f64 = 0.0;
        for (cell, around) in self.cells.iter_mut().zip(old.windows(3)) {
            *cell = (around[0] + around[2]) / 2.0;
            change = change.max((*cell - around[1]).abs());
        }
        change
    }
}

/// Runs the program; returns the number of iterations and the heat of the rod.
fn solve(config: Config) -> (u32, f64) {
    let report = equipoise::run(config, |pe, done| {
        let blocks = pe.array([8], |_| Block {
            cells: vec![0.0; 16],
            ghosts: [0.0, 100.0],
            iteration: 0,
            missing: 0,
            done,
        });
        pe.main(move |pe| blocks.all(pe).step());
    });
    report.result
}

fn main() {
    let expected = solve(Config::simulated(1, 0));
    for seed in 0..20 {
        let config = Config { balancer: vec!["RotateLB".into()], ..Config::simulated(4, seed) };
        assert_eq!(solve(config), expected, "seed {seed}");
    }
    println!("20 message orders give the same result: {} iterations", expected.0);
}
