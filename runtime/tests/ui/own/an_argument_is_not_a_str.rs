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
    fn rename(&mut self, _cx: &Cx<Self>, name: Option<&str>) {
        self.iter = name.map_or(0, |name| name.len() as u32);
    }
}

fn main() {}
