//! `sync` is a key without a value.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2], sync = true)]
impl Block {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        self.iter += 1;
        cx.peers().step();
    }
}

fn main() {}
