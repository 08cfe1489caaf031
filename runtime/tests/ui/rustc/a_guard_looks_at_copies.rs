//! A guard does not consume its message.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry(when = name.len() > 3)]
    fn rename(&mut self, _cx: &Cx<Self>, name: String) {
        self.iter = name.len() as u32;
    }
}

fn main() {}
