//! An invalid entry causes no errors in its callers or in other entries.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        cx.peer([0, 1]).ghost(self.iter, vec![1.0]);
        cx.peers().ghost(self.iter, vec![1.0]);
    }

    #[entry(when = iter == self.iter)]
    fn ghost(&mut self, cx: &Cx<Self>, iter: u32, row: &[f64]) {
        self.iter = iter + row.len() as u32;
        cx.peers().step();
    }
}

fn main() {}
