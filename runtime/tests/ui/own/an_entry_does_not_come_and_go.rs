//! Messages contain the number of their entry.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[cfg(debug_assertions)]
    #[entry]
    fn step(&mut self, _cx: &Cx<Self>) {
        self.iter += 1;
    }
}

fn main() {}
