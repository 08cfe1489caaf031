//! A reduction combines two values, not two lists of values.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(reduce = f64::max)]
    fn relaxed(&mut self, _cx: &Cx<Self>, change: f64, iter: u32) {
        self.iter = iter + change as u32;
    }
}

fn main() {}
