//! The caller of an entry does not wait for it.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(&mut self, _cx: &Cx<Self>) -> u32 {
        self.iter
    }
}

fn main() {}
