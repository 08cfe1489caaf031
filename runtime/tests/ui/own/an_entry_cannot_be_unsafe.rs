//! The runtime calls entries.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    unsafe fn step(&mut self, _cx: &Cx<Self>) {
        self.iter += 1;
    }
}

fn main() {}
