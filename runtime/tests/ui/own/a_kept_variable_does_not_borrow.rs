//! A variable that is used after a wait does not borrow.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        let name: &str = "first";
        at_sync!(cx);
        self.sum += name.len() as u32;
    }
}

fn main() {}
