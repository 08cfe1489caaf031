//! A misspelt key is not ignored.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(wen = iter == self.iter)]
    fn ghost(&mut self, _cx: &Cx<Self>, iter: u32) {
        self.iter = iter;
    }
}

fn main() {}
