//! Every entry has its own name.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(&mut self, _cx: &Cx<Self>) {
        self.iter += 1;
    }

    #[entry]
    fn step(&mut self, _cx: &Cx<Self>, by: u32) {
        self.iter += by;
    }
}

fn main() {}
