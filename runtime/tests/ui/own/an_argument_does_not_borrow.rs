//! A message outlives the entry that sends it.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn rename(&mut self, _cx: &Cx<Self>, name: Cow<'_, str>) {
        self.iter = name.len() as u32;
    }
}

fn main() {}
