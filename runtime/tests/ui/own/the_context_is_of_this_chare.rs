//! The context has the type of its chare.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(&mut self, _cx: &Cx<Other>) {
        self.iter += 1;
    }
}

fn main() {}
