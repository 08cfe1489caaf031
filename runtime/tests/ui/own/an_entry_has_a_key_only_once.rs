//! A key of an entry is given only once.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(when = iter == self.iter, when = iter > 3)]
    fn ghost(&mut self, _cx: &Cx<Self>, iter: u32) {
        self.iter = iter;
    }
}

fn main() {}
