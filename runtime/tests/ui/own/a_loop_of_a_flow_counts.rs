//! A `for` that contains a wait counts.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        for _ in [1, 2] {
            at_sync!(cx);
        }
    }
}

fn main() {}
