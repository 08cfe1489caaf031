//! An entry runs on an element.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(_cx: &Cx<Self>, iter: u32) {
        println!("{iter}");
    }
}

fn main() {}
