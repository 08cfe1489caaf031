//! An entry says how contributions are combined.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn ghost(&mut self, _cx: &Cx<Self>, iter: u32, row: Vec<f64>) {
        self.iter = iter + row.len() as u32;
    }

    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        cx.peers().contribute().ghost(self.iter, vec![1.0]);
    }
}

fn main() {}
