//! The context is a shared reference.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(&mut self, _cx: &mut Cx<Self>) {
        self.iter += 1;
    }
}

fn main() {}
