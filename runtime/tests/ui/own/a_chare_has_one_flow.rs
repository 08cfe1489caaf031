//! A chare has one flow.

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

    #[flow]
    fn other(&mut self, cx: &Cx<Self>) {
        at_sync!(cx);
    }
}

fn main() {}
