//! A flow waits in statements.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        self.sum += reduce!(cx, u32::max, self.sum);
    }
}

fn main() {}
