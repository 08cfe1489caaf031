//! The program of the front page: Jacobi's method in 2D. Every block exchanges edges with its neighbours and updates its
//! cells; a reduction finds the largest change.

#![allow(missing_docs)]

use crate::common::*;
use crate::grid::{Grid, Side, neighbours};
use equipoise::prelude::*;
use equipoise::{Report, Transport};

#[derive(Serialize, Deserialize)]
struct Block {
    shape: [i32; 2],
    iter: u32,
    missing: usize,
    cells: Grid,
    done: Exit<(u32, f64)>,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    /// Starts an iteration: sends one edge to every neighbour.
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        self.iter += 1;
        for (side, peer) in neighbours(cx.index(), self.shape) {
            self.missing += 1;
            cx.peer(peer).ghost(self.iter, side.opposite(), self.cells.edge(side));
        }
    }

    /// Receives an edge of this iteration; edges of the next iteration wait.
    #[entry(when = iter == self.iter)]
    fn ghost(&mut self, cx: &Cx<Self>, iter: u32, side: Side, row: Vec<f64>) {
        self.cells.set_halo(side, &row);
        self.missing -= 1;
        if self.missing == 0 {
            let change = self.cells.relax();
            cx.peers().contribute().relaxed(change);
        }
    }

    /// Receives the largest change of all blocks.
    #[entry(reduce = f64::max)]
    fn relaxed(&mut self, cx: &Cx<Self>, change: f64) {
        if change < 1e-3 {
            self.done.exit(cx, (self.iter, change));
        } else if self.iter % 10 == 0 {
            cx.at_sync().step(); // balance, maybe migrate, then step
        } else {
            self.step(cx);
        }
    }
}

fn solve(config: Config, shape: [i32; 2], n: usize) -> Report<(u32, f64)> {
    equipoise::run(config, |pe, done| {
        // The same setup on every PE, before any message.
        let blocks = pe.array(shape, |[x, y]| Block {
            shape,
            iter: 0,
            missing: 0,
            cells: Grid::new(n, (x + y) as f64),
            done,
        });
        pe.main(move |pe| blocks.all(pe).step()); // PE 0 only
    })
}

#[test]
fn any_message_order_gives_the_same_answer() {
    let expected = solve(Config::simulated(1, 0), [4, 4], 8).result;
    for seed in 0..20 {
        assert_eq!(solve(Config::simulated(4, seed), [4, 4], 8).result, expected, "seed {seed}");
    }
}

#[test]
fn any_transport_any_number_of_pes_and_any_balancer_give_the_same_answer() {
    let expected = solve(Config::simulated(1, 0), [4, 4], 8).result;
    for balancer in ["RotateLB", "RandomLB", "GreedyLB", "GreedyRefineLB", "RefineLB", "DummyLB"] {
        for pes in if is_full_size() { 1..=8 } else { 3..=3 } {
            for transport in [Transport::Threads, Transport::Simulated] {
                let config =
                    Config { balancer: vec![balancer.into()], transport, seed: 7, ..Config::threads(pes) };
                let report = solve(config, [4, 4], 8);
                assert_eq!(report.result, expected, "{balancer} on {pes} PEs, {transport:?}");
                assert_eq!(report.lb_steps.len(), ((expected.0 - 1) / 10) as usize);
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[any_transport_any_number_of_pes_and_any_balancer_give_the_same_answer]);
}
