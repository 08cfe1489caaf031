//! Proxies have methods with this name.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn contribute(&mut self, _cx: &Cx<Self>, iter: u32) {
        self.iter += iter;
    }

    #[entry(reduce = u32::max)]
    fn step(&mut self, cx: &Cx<Self>, iter: u32) {
        cx.peers().contribute().step(iter);
    }
}

fn main() {}
