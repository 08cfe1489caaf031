//! A `for` that contains a wait has a type.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        for _ in 0..self.sum {
            at_sync!(cx);
        }
    }
}

fn main() {}
