//! A reduction needs an argument to combine.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(reduce = u32::max)]
    fn relaxed(&mut self, _cx: &Cx<Self>) {
        self.iter += 1;
    }
}

fn main() {}
