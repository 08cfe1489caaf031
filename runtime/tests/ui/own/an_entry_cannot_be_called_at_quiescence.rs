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
    fn at_quiescence(&mut self, _cx: &Cx<Self>) {
        self.iter += 1;
    }
}

fn main() {}
