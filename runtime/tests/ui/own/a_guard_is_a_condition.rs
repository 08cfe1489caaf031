//! A key of an entry has a value.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(when)]
    fn ghost(&mut self, _cx: &Cx<Self>, iter: u32) {
        self.iter = iter;
    }
}

fn main() {}
