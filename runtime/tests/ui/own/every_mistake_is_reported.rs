//! One compilation reports all mistakes.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2], sink, sync = 1)]
impl Block {
    #[entry]
    async fn step(&mut self, cx: &Cx<Self>) -> u32 {
        cx.peers().ghost(3, "row");
        self.iter
    }

    #[entry(wen = iter == self.iter, reduce)]
    fn ghost(&mut self, _cx: &Cx<Self>, _: u32, row: &str) {
        self.iter = row.len() as u32;
    }
}

fn main() {}
