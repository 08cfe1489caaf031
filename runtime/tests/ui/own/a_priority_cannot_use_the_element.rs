//! A priority is evaluated where the message waits, without the element.

use equipoise::chare;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    step: i64,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(priority = self.step)]
    fn set(&mut self, _cx: &equipoise::Cx<Self>, step: i64) {
        self.step = step;
    }
}

fn main() {}
