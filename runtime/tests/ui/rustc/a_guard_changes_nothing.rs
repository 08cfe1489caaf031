//! A guard may run any number of times, so it changes nothing.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(when = { self.iter += 1; self.iter > 3 })]
    fn step(&mut self, _cx: &Cx<Self>) {
        self.iter = 0;
    }
}

fn main() {}
