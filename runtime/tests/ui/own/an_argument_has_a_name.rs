//! An argument is a field of the message.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn ghost(&mut self, _cx: &Cx<Self>, (iter, _): (u32, f64)) {
        self.iter = iter;
    }
}

fn main() {}
