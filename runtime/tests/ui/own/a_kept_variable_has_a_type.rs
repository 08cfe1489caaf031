//! A variable that is used after a wait has a type.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        let first = self.sum;
        at_sync!(cx);
        self.sum += first;
    }
}

fn main() {}
