//! A variable that is used after a wait is not hidden by another one.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        for i in 0u32..3 {
            when!(add(i) => self.sum += i);
            self.sum += i;
        }
    }

    #[entry]
    fn add(i: u32);
}

fn main() {}
