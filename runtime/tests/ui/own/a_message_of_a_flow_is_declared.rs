//! A flow waits for entries of its block.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        when!(add(i) => self.sum += i);
    }
}

fn main() {}
