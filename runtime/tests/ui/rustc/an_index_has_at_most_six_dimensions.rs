//! Other types cannot be an index.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 7])]
impl Block {
    #[entry]
    fn step(&mut self, _cx: &Cx<Self>) {
        self.iter += 1;
    }
}

fn main() {}
