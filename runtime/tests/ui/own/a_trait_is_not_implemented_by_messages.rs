//! Entries are the chare's own methods.

use equipoise::chare;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

trait Step {
    fn step(&mut self);
}

#[chare(index = [i32; 2])]
impl Step for Block {
    #[entry]
    fn step(&mut self) {
        self.iter += 1;
    }
}

fn main() {}
