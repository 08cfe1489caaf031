//! The function after `regroup` takes all saved elements and a number.

use equipoise::{Cx, Pe, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Counter {
    sum: u32,
}

impl Counter {
    fn merge(saved: Vec<Self>) -> Self {
        let sum = saved.iter().map(|counter| counter.sum).sum();
        Counter { sum }
    }
}

#[chare(index = Pe, regroup = Counter::merge)]
impl Counter {
    #[entry]
    fn add(&mut self, _cx: &Cx<Self>, more: u32) {
        self.sum += more;
    }
}

fn main() {}
