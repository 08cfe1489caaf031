//! The error shows the arguments of the entry to the caller of a proxy.

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
        cx.peer([0, 1]).ghost("north", vec![1.0]);
    }
}

fn main() {}
