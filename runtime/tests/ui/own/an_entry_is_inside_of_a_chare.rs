//! An entry without `#[chare]` has no message.

use equipoise::entry;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

impl Block {
    #[entry]
    fn step(&mut self) {
        self.iter += 1;
    }
}

fn main() {}
