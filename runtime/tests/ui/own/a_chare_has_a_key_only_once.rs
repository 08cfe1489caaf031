//! A key of a chare is given only once.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2], sync, sync)]
impl Block {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        self.iter += 1;
        cx.peers().step();
    }
}

fn main() {}
