//! A message outlives the entry that sends it.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn ghost(&mut self, _cx: &Cx<Self>, row: &[f64]) {
        self.iter = row.len() as u32;
    }
}

fn main() {}
