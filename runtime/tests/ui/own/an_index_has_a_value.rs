//! The key `index` needs a value.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index, sync)]
impl Block {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        self.iter += 1;
        cx.peers().step();
    }
}

fn main() {}
