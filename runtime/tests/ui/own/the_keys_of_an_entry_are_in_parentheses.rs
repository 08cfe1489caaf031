//! The keys of an entry are in parentheses.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry = "ghost"]
    fn ghost(&mut self, _cx: &Cx<Self>, iter: u32) {
        self.iter = iter;
    }
}

fn main() {}
