//! A message has a concrete type.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn ghost<T: Into<u32>>(&mut self, _cx: &Cx<Self>, iter: T) {
        self.iter = iter.into();
    }
}

fn main() {}
