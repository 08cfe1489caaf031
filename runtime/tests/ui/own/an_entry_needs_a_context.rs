//! Every entry sees the runtime, even one without arguments.

use equipoise::chare;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(&mut self) {
        self.iter += 1;
    }
}

fn main() {}
