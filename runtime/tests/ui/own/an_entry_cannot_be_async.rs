//! Entries run to completion.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    async fn step(&mut self, _cx: &Cx<Self>) {
        self.iter += 1;
    }
}

fn main() {}
