//! Tutorial, step 7: the life cycle of a block from top to bottom, with `#[flow]`.

use equipoise::prelude::*;

/// Blocks stop when no cell changes by more than this.
const TOLERANCE: f64 = 0.1;

/// A side of a block.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Side {
    Left,
    Right,
}

/// Some cells of a rod whose left end is cold (0) and whose right end is hot (100).
#[derive(Serialize, Deserialize)]
struct Block {
    cells: Vec<f64>,
    /// The values next to the cells, on the left and on the right.
    ghosts: [f64; 2],
    done: Exit<(u32, f64)>,
}

#[chare(index = [i32; 1], sync)]
impl Block {
    /// Iterates until all blocks have converged.
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        let mut iteration: u32 = 0;
        loop {
            for _ in 0u32..self.send_edges(cx, iteration) {
                when!(ghost(i, side, value) if i == iteration => self.ghosts[side as usize] = value);
            }
            let change: f64 = reduce!(cx, f64::max, self.relax());
            iteration += 1;
            if change <= TOLERANCE {
                break;
            }
            if iteration % 20 == 0 {
                at_sync!(cx); // balance, maybe migrate
            }
        }
        let heat: f64 = reduce!(cx, equipoise::reduce::sum, self.cells.iter().sum());
        self.done.exit(cx, (iteration, heat));
    }

    /// A neighbor's value for an iteration.
    #[entry]
    fn ghost(iteration: u32, side: Side, value: f64);
}

impl Block {
    /// Sends the values at the ends to the neighbors; returns the number of neighbors.
    fn send_edges(&self, cx: &Cx<Self>, iteration: u32) -> u32 {
        let ([x], [count]) = (cx.index(), cx.shape());
        if x > 0 {
            cx.peer([x - 1]).ghost(iteration, Side::Right, self.cells[0]);
        }
        if x + 1 < count {
            cx.peer([x + 1]).ghost(iteration, Side::Left, self.cells[self.cells.len() - 1]);
        }
        u32::from(x > 0) + u32::from(x + 1 < count)
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

fn main() {
    let config = Config { balancer: vec!["RotateLB".into()], ..Config::threads(2) };
    let report = equipoise::run(config, |pe, done| {
        let blocks = pe.array([8], |_| Block { cells: vec![0.0; 16], ghosts: [0.0, 100.0], done });
        pe.main(move |pe| blocks.all(pe).life());
    });
    let (iterations, heat) = report.result;
    println!("heat after {iterations} iterations: {heat:.3}");
}
