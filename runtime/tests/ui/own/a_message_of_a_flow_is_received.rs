//! A flow waits for every entry without a body.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        at_sync!(cx);
    }

    #[entry]
    fn add(i: u32);
}

fn main() {}
