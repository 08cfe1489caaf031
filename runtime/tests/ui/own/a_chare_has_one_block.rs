//! A second `#[chare]` block on a struct gives one error, and its entries can be called.

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
        cx.peers().set(3);
    }
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn set(&mut self, cx: &Cx<Self>, iter: u32) {
        self.iter = iter;
        cx.peer([0, 0]).step();
    }
}

fn main() {}
