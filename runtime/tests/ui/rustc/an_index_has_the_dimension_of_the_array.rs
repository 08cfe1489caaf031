//! The index of a peer has the type given in `#[chare]`.

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
        self.iter += 1;
        cx.peer([0]).step();
    }
}

fn main() {}
