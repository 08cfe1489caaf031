//! A priority is an integer.

use equipoise::chare;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    step: i64,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(priority = step * 1.5)]
    fn set(&mut self, _cx: &equipoise::Cx<Self>, step: f64) {
        self.step = step as i64;
    }
}

fn main() {}
