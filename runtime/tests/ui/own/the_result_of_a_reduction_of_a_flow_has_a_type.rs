//! The result of `reduce!` has a type.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        reduce!(cx, u32::max, self.sum);
    }
}

fn main() {}
