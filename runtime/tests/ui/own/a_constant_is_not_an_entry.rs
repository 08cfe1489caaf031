//! Only methods receive messages.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    const LIMIT: u32 = 3;

    #[entry]
    fn step(&mut self, _cx: &Cx<Self>) {
        self.iter = Self::LIMIT;
    }
}

fn main() {}
