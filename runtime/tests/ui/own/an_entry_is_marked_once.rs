//! An entry has one attribute with all its keys.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(when = iter == self.iter)]
    #[entry(reduce = u32::max)]
    fn ghost(&mut self, _cx: &Cx<Self>, iter: u32) {
        self.iter = iter;
    }
}

fn main() {}
