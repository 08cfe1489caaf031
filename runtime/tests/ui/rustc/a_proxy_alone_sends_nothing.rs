//! A proxy without a call of an entry sends nothing, which is reported.

#![deny(unused_must_use)]

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(reduce = u32::max)]
    fn step(&mut self, cx: &Cx<Self>, iter: u32) {
        self.iter = iter;
        cx.peer([0, 1]);
        cx.peers();
        cx.peers().contribute();
        cx.peers().at_quiescence();
    }
}

fn main() {}
