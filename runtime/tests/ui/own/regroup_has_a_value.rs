//! `regroup` names a function.

use equipoise::{Cx, Pe, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Counter {
    sum: u32,
}

#[chare(index = Pe, regroup)]
impl Counter {
    #[entry]
    fn add(&mut self, _cx: &Cx<Self>, more: u32) {
        self.sum += more;
    }
}

fn main() {}
