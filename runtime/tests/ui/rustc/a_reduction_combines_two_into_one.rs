//! The function after `reduce` combines two values into one.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(reduce = f64::abs)]
    fn relaxed(&mut self, _cx: &Cx<Self>, change: f64) {
        self.iter += change as u32;
    }
}

fn main() {}
