//! The context is not part of the message.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn ghost(&mut self, iter: u32, _cx: &Cx<Self>) {
        self.iter = iter;
    }
}

fn main() {}
