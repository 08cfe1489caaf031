//! `index` takes a type, not a shape.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = 2)]
impl Block {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        self.iter += 1;
        cx.peers().step();
    }
}

fn main() {}
