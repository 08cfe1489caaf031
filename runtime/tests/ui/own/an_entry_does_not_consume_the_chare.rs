//! The runtime owns the elements.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(self, _cx: &Cx<Self>) {
        println!("{}", self.iter);
    }
}

fn main() {}
