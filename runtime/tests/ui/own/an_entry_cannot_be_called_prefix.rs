//! Proxies have methods with these names.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn prefix(&mut self, _cx: &Cx<Self>, sum: u32) {
        self.sum += sum;
    }

    #[entry]
    fn contribute_in(&mut self, _cx: &Cx<Self>, sum: u32) {
        self.sum -= sum;
    }
}

fn main() {}
